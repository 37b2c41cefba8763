package Chaos::Facts;

# What Redis and MySQL hold of one sale, read with plain commands and by nothing
# of ours, so that the checker does not believe what it is to check.

use strict;
use warnings;

use Time::Local qw(timegm);

# Returns a hash: orders, records, ledger, row, product_stock from MySQL; state,
# left, buyers, unread, pending, dead, results from Redis.
sub read {
    my ($stack, $id) = @_;

    my $dbh    = $stack->dbh;
    my $client = $stack->client;
    my %facts  = (id => $id);

    $facts{orders} = $dbh->selectall_arrayref(
        'SELECT * FROM seckill_orders WHERE activity_id = ? ORDER BY id', { Slice => {} }, $id);
    $facts{records} = { map { @{$_} } @{ $dbh->selectall_arrayref(
        'SELECT user_id, status FROM seckill_records WHERE activity_id = ?', undef, $id) } };
    $facts{ledger} = $dbh->selectall_arrayref(
        'SELECT * FROM seckill_stock_log WHERE activity_id = ? ORDER BY id', { Slice => {} }, $id);
    $facts{row} = $dbh->selectrow_hashref('SELECT * FROM seckill_activities WHERE id = ?', undef, $id);
    ($facts{product_stock}) = $dbh->selectrow_array('SELECT stock FROM products WHERE id = ?',
        undef, $facts{row}{product_id});

    my $orders = $stack->key(orders => $id);
    $facts{live}   = { @{ $client->hgetall($stack->key(activity => $id)) } };
    $facts{left}   = $client->get($stack->key(stock => $id));
    $facts{buyers} = { map { $_ => 1 } $client->smembers($stack->key(order_users => $id)) };
    my ($unread) = $stack->backlog($id);
    $facts{unread}  = [ map { _entry($_) } @{$unread} ];
    $facts{pending} = [ _pending($client, $orders) ];
    $facts{dead}    = [ map { _entry($_) } @{ $client->xrange($stack->key(dead => $id), '-', '+') } ];

    my @users = sort { $a <=> $b } keys %{ { %{ $facts{buyers} },
                                             map { $_->{user_id} => 1 } @{ $facts{orders} } } };
    $facts{results} = {};
    while (my @some = splice @users, 0, 500) {
        my @texts = $client->mget(map {"seckill:result:$_:{$id}"} @some);
        @{ $facts{results} }{@some} = @texts;
    }

    return \%facts;
}

sub _entry {
    my ($entry) = @_;
    my ($id, $fields) = @{$entry};
    return { id => $id, @{$fields} };
}

sub _pending {
    my ($client, $orders) = @_;

    my $list = $client->xpending($orders, 'seckilld', '-', '+', 100_000);
    my @entries;
    for my $one (@{$list}) {
        my $found = $client->xrange($orders, $one->[0], $one->[0]);
        push @entries, @{$found} ? _entry($found->[0]) : { id => $one->[0] };
    }
    return @entries;
}

# The instant in an order_no, epoch milliseconds by the clock of Redis.
sub order_ms {
    my ($order_no) = @_;

    my ($year, $month, $day, $hour, $minute, $second, $ms) =
        $order_no =~ /\A(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d{3})/ or return;
    return timegm($second, $minute, $hour, $day, $month - 1, 2000 + $year) * 1000 + $ms;
}

1;
