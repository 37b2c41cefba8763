package SeckillTest::Process;

# Servers as processes: their start, their end, their logs.  A part of SeckillTest,
# whose object has the lists; every process dies with the test (setpriv).

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use File::Path qw(make_path);
use POSIX qw(:sys_wait_h);
use SeckillTest::Text qw(slurp tail);
use Time::HiRes qw(sleep time);

# how long a server may take to start or stop, seconds; sanitizers are slow
use constant START_SECONDS => 30;
use constant STOP_SECONDS  => 20;
use constant CTL_SECONDS   => 180;

# Sends TERM and waits; returns the wait status.  What does not end is killed
# and fails the test.
sub stop {
    my ($self, $proc, $signal) = @_;

    return $proc->{status} if defined $proc->{status};

    my @children = $self->children($proc);
    $proc->{stopping} = 1;
    kill $signal // 'TERM', $proc->{pid};
    if (!defined _wait($proc->{pid}, STOP_SECONDS)) {
        push @{ $self->{faults} }, "$proc->{kind} ignored " . ($signal // 'TERM') . ' for '
            . STOP_SECONDS . ' s and was killed';
        kill 'KILL', $proc->{pid}, @children;
        waitpid $proc->{pid}, 0;
    }

    return $proc->{status} = $?;
}

# Kills a server at once, nginx with its workers, and collects it.
sub kill9 {
    my ($self, $proc) = @_;

    return $proc->{status} if defined $proc->{status};

    $proc->{stopping} = 1;
    kill 'KILL', $proc->{pid}, $proc->{kind} eq 'nginx' ? $self->children($proc) : ();
    waitpid $proc->{pid}, 0;

    return $proc->{status} = $?;
}

# Waits until a process ends by itself; returns its wait status or undef.
sub wait_exit {
    my ($self, $proc, $seconds) = @_;

    return $proc->{status} if defined $proc->{status};
    return unless defined _wait($proc->{pid}, $seconds // 10);

    $proc->{stopping} = 1;
    return $proc->{status} = $?;
}

# Starts a stopped server again: same command, ports, files and log.
sub restart {
    my ($self, $proc) = @_;

    $self->stop($proc);
    delete @{$proc}{qw(status stopping)};
    $proc->{pid} = $self->_fork($proc->{command}, $proc->{stdout}, $proc->{stderr},
                                $proc->{env}, $proc->{death});

    if ($proc->{ready}) {
        $self->_ready($proc)
            or croak "$proc->{kind} did not start again: " . tail($proc->{log}, 20);
    }
    $proc->{dbh} = $self->dbh($proc) if $proc->{kind} eq 'mariadb';

    return $proc;
}

# True while the process runs.
sub alive {
    my ($self, $proc) = @_;

    return 0 if defined $proc->{status};
    return 1 if waitpid($proc->{pid}, WNOHANG) == 0;

    $proc->{status} = $?;
    return 0;
}

# Process ids of the direct children (nginx: its workers).
sub children {
    my ($self, $proc) = @_;
    return split ' ', slurp("/proc/$proc->{pid}/task/$proc->{pid}/children");
}

# The log of a process so far, as one string.
sub log_text {
    my ($self, $proc) = @_;
    return slurp($proc->{log});
}

# Waits until the log of a process matches.
sub wait_log {
    my ($self, $proc, $pattern, $seconds) = @_;

    return $self->wait_for(sub { slurp($proc->{log}) =~ $pattern },
                           $seconds // 10, "\"$pattern\" in the log of $proc->{kind}");
}

# Runs any command to its end, without input, for CTL_SECONDS at most.
sub run {
    my ($self, @command) = @_;

    my $base = "$self->{dir}/run-" . ++$self->{serial}{run};
    my $pid  = $self->_fork(\@command, "$base.out", "$base.err", $self->_sanitizer_env, 'KILL');

    if (!defined _wait($pid, CTL_SECONDS)) {
        kill 'KILL', $pid;
        waitpid $pid, 0;
        push @{ $self->{faults} }, "\"@command\" hung for " . CTL_SECONDS . ' s and was killed';
    }
    my $status = $?;
    my ($out, $err) = (slurp("$base.out"), slurp("$base.err"));
    unlink "$base.out", "$base.err";

    push @{ $self->{faults} }, "\"@command\": $err"
        if $err =~ /Sanitizer|runtime error:/;

    return (($status & 127) ? 128 + ($status & 127) : $status >> 8, $out, $err);
}

sub _place {
    my ($self, $kind) = @_;

    my $n   = ++$self->{serial}{$kind};
    my $dir = "$self->{dir}/$kind" . ($n == 1 ? '' : "-$n");
    make_path($dir, { mode => oct(700) });

    return $dir;
}

sub _start {
    my ($self, %proc) = @_;

    my $proc = \%proc;
    $proc->{stdout} //= $proc->{kind} =~ /^(?:seckilld|nginx)$/ ? "$proc->{dir}/stdout.log" : $proc->{log};
    $proc->{stderr} //= $proc->{log};
    $proc->{env}    //= {};
    $proc->{pid} = $self->_fork(@{$proc}{qw(command stdout stderr env death)});

    push @{ $self->{procs} }, $proc;
    for my $log (@{$proc}{qw(log stderr)}) {
        push @{ $self->{logs} }, $log if !grep { $_ eq $log } @{ $self->{logs} };
    }

    return $proc;
}

# exec keeps the pid: setpriv arms the parent-death signal, env(1) adds the
# environment after it, so that a preloaded sanitizer meets the server alone
sub _fork {
    my ($self, $command, $stdout, $stderr, $env, $death) = @_;

    my @command = ('setpriv', '--pdeathsig', $death, '--', 'env',
                   (map {"$_=$env->{$_}"} sort keys %{$env}), @{$command});

    my $pid = fork // croak "fork: $!";
    return $pid if $pid;

    # the child: no END, no destructors, whatever happens
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE CHLD ALRM USR1 USR2);
    open STDIN,  '<',  '/dev/null';
    open STDOUT, '>>', $stdout or POSIX::_exit(126);
    open STDERR, '>>', $stderr or POSIX::_exit(126);
    { no warnings 'exec'; exec { $command[0] } @command; }
    print STDERR "exec $command[0]: $!\n";
    POSIX::_exit(127);
}

# Waits until a server answers; 0 when it died or took too long.
sub _ready {
    my ($self, $proc) = @_;

    my $deadline = time + START_SECONDS;
    while (time < $deadline) {
        my $ok = eval { $proc->{ready}->() };
        return $self->alive($proc) if $ok;
        return 0 if !$self->alive($proc);
        sleep 0.01;
    }

    return 0;
}

# A server that did not start: dies unless its log says why another try helps.
sub _forget {
    my ($self, $proc, $retry) = @_;

    my $text = join "\n", map { slurp($_) } $proc->{log}, $proc->{stderr};
    $self->kill9($proc);
    $proc->{stopping} = 1;
    if ($text !~ $retry) {
        croak "$proc->{kind} did not start: " . substr($text, -2000);
    }

    @{ $self->{procs} } = grep { $_ != $proc } @{ $self->{procs} };
    unlink $proc->{log}, $proc->{stderr};
    return;
}

sub _sanitizer_env {
    my ($self, $preload) = @_;

    return {} if !$self->sanitized;

    my %env = (
        ASAN_OPTIONS  => 'fast_unwind_on_malloc=0:detect_leaks=1',
        UBSAN_OPTIONS => 'print_stacktrace=1:halt_on_error=1',
        LSAN_OPTIONS  => "suppressions=$self->{root}/t/lib/lsan.supp:print_suppressions=0",
    );
    if ($preload) {
        $env{LD_PRELOAD} = join ' ', (map { _gcc_file($_) } qw(libasan.so libubsan.so)),
            "$self->{build}/nginx_reachable.so";
    }

    return \%env;
}

sub _gcc_file {
    my ($name) = @_;

    my $cc = $ENV{CC} // 'gcc';
    chomp(my $path = `$cc -print-file-name=$name`);
    croak "$cc does not know $name" if $path !~ m{^/};

    return abs_path($path);
}

# Waits for one child with a deadline; $? holds its status.
sub _wait {
    my ($pid, $seconds) = @_;

    my $deadline = time + $seconds;
    while (1) {
        my $found = waitpid $pid, WNOHANG;
        return $pid if $found == $pid;
        return      if $found < 0 || time >= $deadline;
        sleep 0.005;
    }
}

1;
