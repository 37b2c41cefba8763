package Chaos::Faults::Processes;

# What happens to seckilld and to nginx.

use strict;
use warnings;

use constant {
    HIT_SECONDS => 8,       # until a failpoint must have been met
    STALL_MS    => 3000,
};

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
        { name => 'seckilld-stall-in-transaction', party => 'seckilld', hold => [1.5, 2.5],
          begin => \&_stall, end => \&_stalled },
        { name => 'nginx-worker-kill', party => 'nginx', hold => [0.5, 1.2],
          begin => \&_kill_worker, end => \&_kill_worker },
        { name => 'nginx-reloads', party => 'nginx', hold => [1.2, 2.2],
          begin => sub { $_[0]->nginx->reload }, tick => sub { $_[0]->nginx->reload },
          end   => sub { $_[0]->nginx->reload } },
        { name => 'nginx-upgrade', party => 'nginx', hold => [0.1, 0.3],
          begin => sub { $_[0]->nginx->upgrade }, end => sub { $_[0]->nginx->upgrade } },
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

# It holds an open transaction with orders of the sale, while a second one works.
sub _stall {
    my ($stack, $round) = @_;

    $stack->t->kill9($stack->{daemon});
    my $visit = 1 + int($round->{pick} * 3);
    $round->{note} = "visit $visit";
    $stack->{twin} = $stack->daemon_start(conf => $stack->{other_conf}, SECKILLD_FAILPOINT => "after_insert:$visit:${\STALL_MS}");
    $stack->daemon_start;
    return;
}

sub _stalled {
    my ($stack) = @_;
    $stack->t->stop(delete $stack->{twin});
    return;
}

sub _kill_worker {
    my ($stack, $round) = @_;
    $stack->nginx->kill_worker($round->{pick});
    return;
}

1;
