package Chaos::Faults::Clocks;

# The clock of a server, or of a process of ours, is stepped and comes back.
# Nothing that can't be taken back may follow from that: no sale is settled, no
# order is cancelled.

use strict;
use warnings;

use Time::HiRes qw(time);

use constant {
    REDIS_AHEAD => 11 * 3600,       # beyond the end of the sale
    MYSQL_AHEAD => 20 * 60,         # beyond pay_timeout
    AFTER_MS    => 1500,            # a node asks for facts again twice a second
};

sub faults {
    return (
        { name => 'clock-redis', party => 'redis', hold => [1, 2],
          begin => sub { _step(@_, 'redis-server', REDIS_AHEAD) },
          end   => sub { _step(@_, 'redis-server', 0) } },
        { name => 'clock-mysql', party => 'mysql', hold => [1.5, 2.5],
          begin => sub { $_[0]->{clocks}->step('mariadbd', MYSQL_AHEAD) },
          end   => sub { $_[0]->{clocks}->step('mariadbd', 0) } },
        { name => 'clock-nginx', party => 'nginx', hold => [1, 2], needs => \&_no_faketime,
          begin => \&_nginx_clock, end => \&_nginx_real },
        { name => 'clock-seckilld', party => 'seckilld', hold => [1, 2], needs => \&_no_faketime,
          begin => \&_daemon_clock, end => \&_daemon_real },
    );
}

# Redis' clock decides what is inside the window, so "ended" is right meanwhile.
sub _step {
    my ($stack, $round, $program, $seconds) = @_;

    $round->{window} //= { from => time * 1000 };
    $round->{window}{to} = time * 1000 + AFTER_MS;
    $stack->{clocks}->step($program, $seconds);
    return;
}

my ($faketime) = glob '/usr/lib/*/faketime/libfaketimeMT.so.1';

sub _no_faketime {
    my ($stack) = @_;
    return 'faketime is not installed' if !$faketime;
    return $stack->t->sanitized ? 'not together with a sanitizer' : undef;
}

sub _fake {
    my ($round) = @_;

    my $offset = $round->{pick} < 0.5 ? '-3600' : '+3600';
    $round->{note} = "${offset}s";
    return (LD_PRELOAD => $faketime, FAKETIME => $offset, FAKETIME_DONT_FAKE_MONOTONIC => 1);
}

sub _nginx_clock {
    my ($stack, $round) = @_;

    $stack->nginx->stop;
    $stack->nginx->start(_fake($round));
    return;
}

sub _nginx_real {
    my ($stack) = @_;

    $stack->nginx->stop;
    $stack->nginx->start;
    return;
}

sub _daemon_clock {
    my ($stack, $round) = @_;

    $stack->t->kill9($stack->{daemon});
    $stack->daemon_start(_fake($round));
    return;
}

sub _daemon_real {
    my ($stack) = @_;

    $stack->t->kill9($stack->{daemon});
    $stack->daemon_start;
    return;
}

1;
