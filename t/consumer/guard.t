# MySQL guards the limit alone: Redis may lose writes and sell too much, the
# orders stay within stock_limit and one per user.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;

my $c = ConsumerTest->new;

# What Redis forgets and sells again, before the daemon can look at it in between.
sub unseen {
    my ($do) = @_;

    kill STOP => $c->{daemon}{pid};
    my $said = $do->();
    kill CONT => $c->{daemon}{pid};
    return $said;
}

# B11: after a failover Redis shows more units than were left
{
    $c->sale(1, units => 10);
    $c->buy(1, 1 .. 10);
    $c->start;
    $c->wait_settled(1);
    is($c->sold(1), 10, 'ten of ten are sold');

    # four sales are lost: buyers, units and seq
    my $said = unseen(sub {
        $c->redis->srem($c->key(order_users => 1), 7 .. 10);
        $c->redis->set($c->key(stock => 1), 4);
        $c->redis->hset($c->key(activity => 1), seq => 6);
        return $c->buy(1, 101 .. 200);
    });
    like($said, qr/^1111[^1]+$/, 'four more are sold');
    $c->wait_settled(1);

    is($c->order_count(1), 10, 'orders stay within the limit');
    is($c->sold(1), 10, 'and so does the count');
    my $dead = $c->dead(1);
    is(scalar @{$dead}, 4, 'the surplus is in the dead letters');
    is_deeply([map { $_->{reason} } @{$dead}], [('over_limit') x 4], 'as over the limit')
        or diag(explain($dead));
    is($c->result(1, 101)->{reason}, 'over_limit', 'the buyer hears it');
    is($c->record(1, 101), 2, 'the record says it');
    $c->all_bought(1, [1 .. 10], 'those who were first keep theirs');

    # old entries again: nothing happens
    $c->redis->xgroup('DESTROY', $c->key(orders => 1), 'seckilld');
    sleep 1;
    $c->wait_settled(1);
    is($c->order_count(1), 10, 'redelivered entries are no orders');
    $c->all_bought(1, [1 .. 10], 'successes stay successes');
}

# the same with units left: a purchase number that belongs to somebody else
{
    $c->sale(2, units => 10, stock_limit => 20);
    $c->buy(2, 1 .. 10);
    $c->wait_settled(2);
    unseen(sub {
        $c->redis->hset($c->key(activity => 2), seq => 6);
        $c->redis->set($c->key(stock => 2), 6);
        return $c->buy(2, 101 .. 106);
    });
    $c->wait_settled(2);

    is($c->order_count(2), 12, 'numbers that are free become orders');
    is_deeply([map { $_->{reason} } @{ $c->dead(2) }], [('seq_conflict') x 4],
        'the others are dead letters');
    $c->all_bought(2, [1 .. 10, 105, 106], 'each has one');
}

# in stream order, by quantity
{
    $c->sale(3, units => 100, stock_limit => 10);
    $c->buy(3, [1, 4], [2, 4], [3, 4], [4, 2], [5, 1]);
    $c->wait_settled(3);
    is_deeply([map { $_->{user_id} } @{ $c->orders(3) }], [1, 2, 4], 'those that fit, in order');
    is($c->sold(3), 10, 'up to the limit');
    is_deeply([map { my %f = @{ $_->{fields} }; $f{user} } @{ $c->dead(3) }], [3, 5],
        'the rest is over the limit');
}

# C9: a buyer whom Redis forgot buys again, where nobody counted: with buyers_extra the
# sale would be paused first
sub forget {
    my ($id, $user) = @_;
    $c->redis->srem($c->key(order_users => $id), $user);
    $c->redis->hincrby($c->key(activity => $id), buyers_extra => -1)
        if defined $c->redis->hget($c->key(activity => $id), 'buyers_extra');
    return;
}

{
    $c->sale(4, units => 100);
    $c->buy(4, 9, [1, 2]);
    $c->wait_settled(4);
    my $first = $c->result(4, 1);
    forget(4, 1);
    $c->redis->del('seckill:result:1:{4}');
    $c->buy(4, [1, 3]);
    $c->wait_settled(4);

    is($c->order_count(4), 2, 'one order per user');
    is_deeply($c->result(4, 1), $first, 'the second purchase is answered with the first order');
    is($c->sold(4), 3, 'the units of the orders count');
    my $extra = $c->dbh->selectall_arrayref(
        "SELECT * FROM seckill_stock_log WHERE activity_id = 4 AND kind = 'extra'",
        { Slice => {} });
    is(scalar @{$extra}, 1, 'one line in the ledger');
    is($extra->[0]{units}, 3, 'about the extra units');
    is($extra->[0]{ref}, 3, 'of that purchase');

    # and twice in one batch
    $c->stop;
    $c->buy(4, 2);
    forget(4, 2);
    $c->buy(4, 2, 3);
    $c->start;
    $c->wait_settled(4);
    is($c->order_count(4), 4, 'the same within a batch');
    $c->all_bought(4, [1, 2, 3], 'all have theirs');

    $c->redis->xgroup('DESTROY', $c->key(orders => 4), 'seckilld');
    sleep 1;
    $c->wait_settled(4);
    is($c->count(seckill_stock_log => "activity_id = 4 AND kind <> 'open'"), 2, 'the ledger has each once');
}

# an order_no that belongs to another purchase
{
    $c->sale(5, units => 100);
    my $taken = '26112912000000000000500000010001';
    $c->add(5, $c->message(5, 1, seq => 1));
    $c->wait_settled(5);
    is($c->orders(5)->[0]{order_no}, $taken, 'the first has its number');

    $c->add(5, $c->message(5, 2, seq => 2, order_no => $taken));
    $c->add(5, $c->message(5, 3, seq => 3, order_no => $taken));
    $c->wait_settled(5);
    is_deeply([map { $_->{order_no} } @{ $c->orders(5) }],
        [$taken, '26112912000000000000500000020001', '26112912000000000000500000030001'],
        'the others get new ones of the same layout');
    $c->all_bought(5, [1, 2, 3], 'and are told them');
    is_deeply($c->dead(5), [], 'no dead letters');
}

# a record without an order, as one that waits would have: success afterwards
{
    $c->sale(6, units => 10);
    $c->dbh->do('INSERT INTO seckill_records (user_id, activity_id, status) VALUES (1, 6, 0)');
    $c->buy(6, 1, 2);
    $c->wait_settled(6);
    $c->all_bought(6, [1, 2], 'a queueing record becomes a success');
}

# sold out, and an order is delivered again whose record and result were lost
{
    $c->sale(7, units => 1);
    $c->buy(7, 1);
    $c->wait_settled(7);
    $c->dbh->do('DELETE FROM seckill_records WHERE activity_id = 7');
    $c->redis->del('seckill:result:1:{7}');
    $c->redis->xgroup('DESTROY', $c->key(orders => 7), 'seckilld');
    $c->wait_settled(7);
    $c->all_bought(7, [1], 'the order decides, not the count');
    is_deeply($c->dead(7), [], 'no dead letter');
}

ok($c->stop, 'the daemon stops well');

done_testing;
