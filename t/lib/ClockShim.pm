package ClockShim;

# Clocks that a test may step: every redis-server or mariadbd that is started
# after new() runs with a clock of its own program.
#
#   my $clocks = ClockShim->new;          # before the servers are started
#   $clocks->step('redis-server', 7200);  # two hours ahead from now on
#   $clocks->step('mariadbd', -3);        # three seconds behind
#   $clocks->step('redis-server', 0);     # as the machine's
#
# All servers of one program share their offset, unless a name of one's own is
# given: ClockShim->new(first => 'redis-server', second => 'redis-server'), and
# $clocks->use('first') before each is started.  faketime's library does not get
# along with redis-server, hence clock_shim.c.

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp ();

# %names: a clock's name => the program it is for.
sub new {
    my ($class, %names) = @_;

    %names = ('redis-server' => 'redis-server', mariadbd => 'mariadbd') if !%names;

    my $dir  = File::Temp->newdir('skclock-XXXXXX', DIR => $ENV{SECKILL_TMP} // '/tmp');
    my $self = bless { dir => $dir, names => \%names, owner => $$ }, $class;

    my $source = abs_path(dirname(__FILE__)) . '/clock_shim.c';
    system($ENV{CC} // 'cc', '-O1', '-shared', '-fPIC', '-o', "$dir/clock_shim.so", $source) == 0
        or croak "$source does not compile";

    # servers live in sbin, which the PATH of a plain user lacks
    $self->{path} = join ':', $ENV{PATH} // '/usr/bin:/bin', '/usr/sbin', '/sbin';

    for my $name (sort keys %names) {
        $self->_offset($name, 0);
    }
    for my $name (sort keys %names) {
        $self->use($name) if !-e "$dir/$names{$name}";
    }
    $ENV{PATH} = "$dir:$self->{path}";

    return $self;
}

# The next server of this clock's program gets this clock.
sub use {
    my ($self, $name) = @_;

    my $program = $self->{names}{$name} // croak "no clock \"$name\"";
    # another server than that of the PATH gets the wrapper in its place
    $self->{server} //= delete $ENV{SECKILL_REDIS_SERVER};
    my ($real)  = grep { -x } ($program eq 'redis-server' ? $self->{server} // () : ()),
        map {"$_/$program"} split /:/, $self->{path};
    croak "$program is not installed" if !$real;

    my $wrapper = "$self->{dir}/$program";
    open my $fh, '>', "$wrapper.new" or croak "cannot write $wrapper: $!";
    print {$fh} "#!/bin/sh\nCLOCK_SHIM_FILE=$self->{dir}/$name.offset"
        . " LD_PRELOAD=$self->{dir}/clock_shim.so exec $real \"\$@\"\n";
    close $fh or croak "cannot write $wrapper: $!";
    chmod oct(755), "$wrapper.new";
    rename "$wrapper.new", $wrapper or croak "cannot rename $wrapper: $!";

    return;
}

# Steps a clock: $seconds (a fraction is fine) from the machine's own.
sub step {
    my ($self, $name, $seconds) = @_;

    croak "no clock \"$name\"" if !$self->{names}{$name};
    $self->_offset($name, $seconds);

    return;
}

# What it is stepped by.
sub offset { my ($self, $name) = @_; return $self->{offset}{$name} }

# Eight bytes, written at once into the same file: it is mapped.
sub _offset {
    my ($self, $name, $seconds) = @_;

    my $path = "$self->{dir}/$name.offset";
    open my $fh, (-e $path ? '+<:raw' : '>:raw'), $path or croak "cannot write $path: $!";
    syswrite($fh, pack 'q<', $seconds * 1e6) == 8 or croak "cannot write $path: $!";
    close $fh or croak "cannot write $path: $!";
    $self->{offset}{$name} = $seconds;

    return;
}

# A child that ends must not take the folder away.
sub DESTROY {
    my ($self) = @_;
    $self->{dir}->unlink_on_destroy($self->{owner} == $$) if $self->{dir};
    return;
}

1;
