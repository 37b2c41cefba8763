package Chaos::Faults::Keys;

# Somebody's hand in Redis: one key of a running sale is deleted, or its stream
# is at the last id there is.  Each must be noticed, and restore must mend it.

use strict;
use warnings;

use Time::HiRes qw(time);

use constant {
    UNREAD_MS => 2000,      # purchases of so long before may not have been read yet
    LAST_ID   => '18446744073709551615-18446744073709551615',
};

sub faults {
    return (
        (map { _deleted($_) } qw(stock order_users orders activity)),
        { name => 'key-all', party => 'redis', hold => [0.2, 0.6], loss => 1,
          begin => sub { my ($stack, $round) = @_; _loses($round); $stack->client->flushall },
          end   => \&_over },
        { name => 'stream-last-id', party => 'redis', hold => [0.2, 0.6], loss => 1,
          begin => \&_last_id, end => \&_over },
        { name => 'restore-under-load', party => 'redis', hold => [0.1, 0.2], loss => 1,
          begin => sub { my ($stack, $round) = @_; _delete($stack, $round, 'stock'); $round->{hurry} = 1 },
          end   => \&_over },
    );
}

sub _deleted {
    my ($key) = @_;

    return {
        name => "key-$key", party => 'redis', hold => [0.2, 0.6], loss => 1,
        begin => sub { _delete(@_, $key) }, end => \&_over,
    };
}

sub _delete {
    my ($stack, $round, $key) = @_;

    _loses($round);
    $stack->client->del($stack->key($key => $round->{id})) or die "there is no $key\n";
    return;
}

sub _loses {
    my ($round) = @_;
    $round->{loss} = { from => time * 1000 - UNREAD_MS, must => 1 };
    return;
}

sub _over {
    my ($stack, $round) = @_;
    $round->{loss}{to} = time * 1000;
    return;
}

sub _last_id {
    my ($stack, $round) = @_;

    _loses($round);
    $stack->client->xsetid($stack->key(orders => $round->{id}), LAST_ID);
    return;
}

1;
