package SeckillTest;

# Private servers for the tests: Redis, MariaDB, nginx with the module, seckilld
# and seckillctl.  This file owns the temp directory, the settings and the end:
# whatever was started is stopped at END, and by the parent-death signal when the
# test itself is killed.  At END every log is read; an [alert], [crit], [emerg] or
# sanitizer line fails the test.  How each server starts is in SeckillTest/.
#
# Environment: SECKILL_BUILD (default build), SECKILL_KEEP=1 keeps the temp
# directory, SECKILL_MARIADB_TEMPLATE (default build/mariadb-template),
# SECKILL_TMP (default /tmp; short, for it begins the paths of unix sockets).

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use File::Path qw(remove_tree);
use File::Temp ();
use IO::Socket::INET;
use POSIX ();
use SeckillTest::Text qw(slurp tail);
use Test::More ();
use Time::HiRes qw(sleep time);

use parent qw(SeckillTest::Process SeckillTest::Redis SeckillTest::MariaDB SeckillTest::Nginx);

# servers live in sbin, which the PATH of a plain user lacks
$ENV{PATH} = join ':', $ENV{PATH} // '/usr/bin:/bin', '/usr/sbin', '/sbin';

my $root = abs_path(dirname(__FILE__) . '/../..');

my $bad_line = qr{\[(?:alert|crit|emerg)\]
                  |(?:Address|Leak|Memory|Thread|UndefinedBehavior)Sanitizer
                  |runtime\ error:}x;

my @living;    # every object of this process, for END and the signals

# Returns a new set of private servers with a temp directory of its own.
sub new {
    my ($class) = @_;

    my $build = $ENV{SECKILL_BUILD} // 'build';
    $build = "$root/$build" if $build !~ m{^/};

    my $self = bless {
        owner   => $$,
        root    => $root,
        build   => $build,
        dir     => File::Temp::tempdir('skt-XXXXXX', DIR => $ENV{SECKILL_TMP} // '/tmp'),
        procs   => [],
        logs    => [],
        allowed => [],
        faults  => [],
        serial  => {},
    }, $class;

    push @living, $self;

    # exit() runs END; a handler of the test itself stays in charge
    for my $name (qw(INT TERM HUP)) {
        $SIG{$name} //= sub { exit 128 + 15 };
    }

    return $self;
}

sub dir   { return $_[0]{dir} }

sub root  { return $_[0]{root} }

sub build { return $_[0]{build} }

# True when the build under test carries ASan and UBSan.
sub sanitized { return -e "$_[0]{build}/.sanitize" ? 1 : 0 }

# Returns a TCP port of 127.0.0.1 that was free a moment ago.
sub port {
    my $socket = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 1)
        or croak "no free port: $!";

    return $socket->sockport;
}

# Writes dir/NAME and returns its path; mode 0600 unless given.
sub file {
    my ($self, $name, $content, $mode) = @_;

    my $path = "$self->{dir}/$name";
    open my $fh, '>:raw', $path or croak "cannot write $path: $!";
    print {$fh} $content;
    close $fh or croak "cannot write $path: $!";
    chmod $mode // oct(600), $path;

    return $path;
}

# Writes a file with 32 random bytes as hex digits and returns its path.
sub key_file {
    my ($self, $name) = @_;

    open my $fh, '<:raw', '/dev/urandom' or croak "cannot read /dev/urandom: $!";
    read($fh, my $bytes, 32) == 32 or croak 'short read of /dev/urandom';

    return $self->file($name // 'auth.key', unpack('H*', $bytes));
}

# An expected line of a log: what matches is no fault at END.
sub allow_log {
    my ($self, $pattern) = @_;
    push @{ $self->{allowed} }, $pattern;
    return;
}

# Calls the code until it is true and returns its value.  It may die, which
# counts as "not yet".  After $seconds: dies in void context, else says why and
# returns undef (an empty list).
sub wait_for {
    my ($self, $code, $seconds, $what) = @_;

    my $deadline = time + ($seconds // 10);
    my $error    = '';

    while (1) {
        my $value = eval { $code->() };
        $error = $@ if $@;
        return $value if $value;
        last          if time >= $deadline;
        sleep 0.01;
    }

    my $message = 'timed out waiting for ' . ($what // 'a condition')
        . ($error ? ", last error: $error" : '');
    croak $message unless defined wantarray;
    Test::More::diag($message);

    return;
}

# Writes a seckilld.conf and returns its path.  redis => and mysql => are what
# redis() and mariadb() returned; all others are "section.key" => value or
# section => { key => value }, and undef drops a default.
sub conf {
    my ($self, %args) = @_;

    my $redis = delete $args{redis};
    my $mysql = delete $args{mysql};
    my $n     = ++$self->{serial}{conf};
    my %conf  = (consumer => { name => 'test', clock_trust_start => '200ms' }, log => { level => 'info' });

    if ($redis) {
        $conf{redis}{address} = "unix:$redis->{sock}";
        $conf{redis}{password_file} = $self->file("redis-$n.password", "$redis->{password}\n")
            if defined $redis->{password};
    }
    if ($mysql) {
        $conf{mysql} = { socket => $mysql->{sock}, user => 'root', database => 'seckill' };
    }
    for my $name (keys %args) {
        if (ref $args{$name} eq 'HASH') {
            $conf{$name}{$_} = $args{$name}{$_} for keys %{ $args{$name} };
        } elsif ($name =~ /^(\w+)\.(\w+)$/) {
            $conf{$1}{$2} = $args{$name};
        } else {
            croak "conf: \"$name\" is neither section.key nor a section";
        }
    }

    my $text = '';
    for my $section (sort keys %conf) {
        $text .= "[$section]\n";
        $text .= "$_ = $conf{$section}{$_}\n"
            for sort grep { defined $conf{$section}{$_} } keys %{ $conf{$section} };
    }

    return $self->file($n == 1 ? 'seckilld.conf' : "seckilld-$n.conf", $text);
}

# Starts build/seckilld -c CONF.  It does not wait until the daemon is up: use
# wait_log($proc, qr/.../).
sub seckilld {
    my ($self, $conf, @args) = @_;

    my $dir = $self->_place('seckilld');

    return $self->_start(
        kind => 'seckilld', dir => $dir, log => "$dir/seckilld.log",
        command => ["$self->{build}/seckilld", '-c', $conf, @args],
        env     => $self->_sanitizer_env,
        death   => 'KILL',
    );
}

# Runs build/seckillctl -c CONF ARGS to its end; returns exit code (128 + signal
# when killed), stdout and stderr.
sub ctl {
    my ($self, $conf, @args) = @_;
    return $self->run("$self->{build}/seckillctl", '-c', $conf, @args);
}

# What writes is stopped first, gently, so that leaks are reported; the stores
# hold nothing worth a clean end.
sub _finish {
    my ($self) = @_;

    my %gentle = (nginx => 1, seckilld => 1);

    for my $proc (reverse @{ $self->{procs} }) {
        if (!$self->alive($proc) && $proc->{status} != 0 && !$proc->{stopping}) {
            push @{ $self->{faults} }, sprintf '%s ended by itself, wait status 0x%04x',
                $proc->{kind}, $proc->{status};
        }
    }
    for my $proc (grep { $gentle{ $_->{kind} } && !defined $_->{status} } reverse @{ $self->{procs} }) {
        # after TERM nginx gives its workers a second, too short for a report
        if ($self->sanitized && $proc->{kind} eq 'nginx') {
            kill 'QUIT', $proc->{pid};
            $self->wait_exit($proc, 5);
        }
        my $status = $self->stop($proc);
        push @{ $self->{faults} }, sprintf '%s: wait status 0x%04x after TERM', $proc->{kind}, $status
            if $status & 127 && ($status & 127) != POSIX::SIGKILL() && ($status & 127) != POSIX::SIGTERM();
    }
    for my $proc (grep { !$gentle{ $_->{kind} } } reverse @{ $self->{procs} }) {
        $self->kill9($proc);
    }

    for my $log (@{ $self->{logs} }) {
        for my $line (grep { $_ =~ $bad_line } split /\n/, slurp($log)) {
            next if grep { $line =~ $_ } @{ $self->{allowed} };
            push @{ $self->{faults} }, basename(dirname $log) . '/' . basename($log) . ": $line";
        }
    }

    return @{ $self->{faults} };
}

sub _show_logs {
    my ($self) = @_;

    for my $log (@{ $self->{logs} }) {
        my $tail = tail($log, 25);
        print STDERR "# --- end of $log\n", (map {"# $_\n"} split /\n/, $tail) if $tail ne '';
    }
    return;
}

END {
    my $exit   = $?;
    my $failed = $exit != 0 || !Test::More->builder->is_passing;

    for my $self (grep { $_->{owner} == $$ } @living) {
        local $? = 0;
        local $@ = '';
        my @faults = eval { $self->_finish };
        push @faults, "cleanup: $@" if $@;

        print STDERR "# fault: $_\n" for @faults;
        $self->_show_logs if $failed || @faults;
        $exit ||= 1 if @faults;
        remove_tree($self->{dir}) if !$ENV{SECKILL_KEEP};
    }

    $? = $exit;
}

1;
