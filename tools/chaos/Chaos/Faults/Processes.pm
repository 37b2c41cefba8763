package Chaos::Faults::Processes;

# What happens to seckilld, to nginx, and to their clocks.

use strict;
use warnings;

use Time::HiRes qw(sleep time);

use constant HIT_SECONDS => 8;      # until a failpoint must have been met

sub faults {
    return (
        (map { _failpoint($_) } qw(read begin insert commit settle)),
        { name => 'seckilld-kill', party => 'seckilld', hold => [0.2, 1],
          begin => sub { $_[0]->t->kill9($_[0]->{daemon}) },
          end   => sub { $_[0]->daemon_start } },
        { name => 'seckilld-freeze', party => 'seckilld', hold => [0.5, 2],
          begin => sub { kill 'STOP', $_[0]->{daemon}{pid} },
          end   => sub { kill 'CONT', $_[0]->{daemon}{pid} } },
        { name => 'seckilld-twin', party => 'seckilld', hold => [0.6, 1.5],
          begin => sub { $_[0]->{twin} = $_[0]->{daemon}; $_[0]->daemon_start },
          end   => sub { $_[0]->t->kill9(delete $_[0]->{twin}) } },
        { name => 'nginx-worker-kill', party => 'nginx', hold => [0.5, 1.2],
          begin => \&_kill_worker, end => \&_kill_worker },
        { name => 'nginx-reloads', party => 'nginx', hold => [1.2, 2.2],
          begin => sub { $_[0]->nginx->reload }, tick => sub { $_[0]->nginx->reload },
          end   => sub { $_[0]->nginx->reload } },
        { name => 'nginx-upgrade', party => 'nginx', hold => [0.1, 0.3],
          begin => sub { $_[0]->nginx->upgrade }, end => sub { $_[0]->nginx->upgrade } },
        { name => 'clock-nginx', party => 'nginx', hold => [1, 2], needs => \&_no_faketime,
          begin => \&_nginx_clock, end => \&_nginx_real },
        { name => 'clock-seckilld', party => 'seckilld', hold => [1, 2], needs => \&_no_faketime,
          begin => \&_daemon_clock, end => \&_daemon_real },
    );
}

# kill -9 of seckilld, by itself, right there
sub _failpoint {
    my ($step) = @_;

    return {
        name => "seckilld-die-after-$step", party => 'seckilld', hold => [0.3, 0.8],
        begin => sub {
            my ($stack, $round) = @_;
            $stack->t->kill9($stack->{daemon});
            my $visit = 1 + int($round->{pick} * 3);
            $round->{note} = "visit $visit";
            $stack->daemon_start(SECKILLD_FAILPOINT => "after_$step:$visit");
        },
        end => sub {
            my ($stack, $round) = @_;
            my $status = $stack->t->wait_exit($stack->{daemon}, HIT_SECONDS);
            if (!defined $status) {
                $round->{note} .= ', not met';
                $stack->t->kill9($stack->{daemon});
            }
            $stack->daemon_start;
        },
    };
}

sub _kill_worker {
    my ($stack, $round) = @_;
    $stack->nginx->kill_worker($round->{pick});
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
