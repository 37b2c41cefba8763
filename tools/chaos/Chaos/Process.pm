package Chaos::Process;

# What Perl lacks to keep processes together: prctl(2).

use strict;
use warnings;

use POSIX ();

use constant {
    PR_SET_PDEATHSIG       => 1,
    PR_SET_CHILD_SUBREAPER => 36,
};
my %prctl = (x86_64 => 157, aarch64 => 167);

# In a child: it ends when its parent does.
sub end_with {
    my ($parent) = @_;

    _prctl(PR_SET_PDEATHSIG, POSIX::SIGKILL());
    POSIX::_exit(1) if getppid != $parent;
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP CHLD USR1);
    $SIG{PIPE} = 'IGNORE';
    return;
}

# Processes whose parents are gone become ours to wait for.
sub adopt_orphans { return _prctl(PR_SET_CHILD_SUBREAPER, 1) }

sub _prctl {
    my ($option, $value) = @_;

    my $call = $prctl{ (POSIX::uname())[4] };
    syscall $call, $option, $value if defined $call;
    return;
}

1;
