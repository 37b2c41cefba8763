# What can't be taken back is not done on one reading of one clock (F-F1): settling
# a sale, cancelling an order, deleting entries; and entries that were delivered
# while Redis' clock was ahead are taken over all the same (F-F2).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ClockShim;
use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $clocks = ClockShim->new;
my $c      = ConsumerTest->new(conf => {
    'consumer.settle_after' => '200ms', 'consumer.clock_trust' => '3s', 'consumer.retain' => '1h' });
my $redis  = $c->redis;

sub status { return ($c->dbh->selectrow_array('SELECT status FROM seckill_activities WHERE id = ?', undef, $_[0]))[0] }
sub state_of { return $redis->hget($c->key(activity => $_[0]), 'state') }
sub over { $redis->hset($c->key(activity => $_[0]), end_ms => int((time - 5) * 1000)); return }
sub both { $clocks->step($_, $_[0]) for qw(redis-server mariadbd); return }
sub lines { my ($pattern) = @_; my $n = () = $c->t->log_text($c->{daemon}) =~ /$pattern/g; return $n }

sub ready {
    $c->start;
    $c->t->wait_log($c->{daemon}, qr/server is connected.*mysql/);
    sleep 1.5;
    return;
}

# F-F1 [C22]: Redis' clock is two hours, then three days ahead for seconds
{
    $c->sale(1, units => 10);
    ready();
    $c->buy(1, 1 .. 4);
    $c->wait_settled(1);
    for my $ahead (7200, 3 * 86_400) {
        $clocks->step('redis-server', $ahead);
        sleep 2.5;
        $clocks->step('redis-server', 0);
        sleep 1.2;
    }
    is(state_of(1), 'open', "F-F1: Redis' clock ahead for seconds: the sale is not settled");
    is(status(1), 1, '... in MySQL neither');
    is($redis->xlen($c->key(orders => 1)), 4, '... and no entry is deleted, retain is an hour');
    is(lines(qr/clock was set.*server=redis/), 4, '... each step is said once');
    is(lines(qr/clocks of Redis and MySQL differ/), 2, '... and that they differ');
    is(lines(qr/agree again/), 2, '... and agree again');
    is($c->buy(1, 5), '1', '... buyers go on buying');

    # then it is believed again
    over(1);
    $c->t->wait_for(sub { state_of(1) eq 'settled' }, 8, 'the settle');
    $c->t->wait_log($c->{daemon}, qr/sale is settled/);
    pass('after clock_trust a sale that is over is settled');
    ok($c->stop, 'stops');
}

# both on one host: they agree, and are wrong together
{
    $c->sale(2, units => 10);
    ready();
    $c->buy(2, 1);
    $c->wait_settled(2);
    both(7200);
    sleep 2;
    both(0);
    sleep 1.5;
    is(state_of(2), 'open', 'F-F1: both clocks ahead for seconds: the sale is not settled');
    over(2);
    sleep 0.8;
    is(state_of(2), 'open', '... nor one that is over, for clock_trust');
    $c->t->wait_for(sub { state_of(2) eq 'settled' }, 8, 'the settle');
    pass('... then it is');
    ok($c->stop, 'stops');
}

# they never agreed since the start: no jump to see
{
    $clocks->step('redis-server', 3);
    $c->sale(3, units => 10);
    over(3);
    ready();
    sleep 1.5;
    is(state_of(3), 'open', 'F-F1: clocks that differ by three seconds settle nothing');
    is(lines(qr/differ/), 1, '... which is said once');
    is(lines(qr/clock was set/), 0, '... and is no jump');
    $clocks->step('redis-server', 1.6);
    $c->t->wait_for(sub { state_of(3) eq 'settled' }, 8, 'the settle');
    pass('... once they agree it is settled');
    $clocks->step('redis-server', 0);
    ok($c->stop, 'stops');
}

# HUP makes no clock that jumped a trusted one
{
    $c->{conf} = $c->conf('consumer.clock_trust' => '10m');
    $c->sale(4, units => 10);
    ready();
    both(60);
    $c->t->wait_log($c->{daemon}, qr/clock was set/);
    my ($text) = do { local (@ARGV, $/) = $c->{conf}; <> };
    open my $fh, '>', $c->{conf} or die $!;
    print {$fh} $text =~ s/name = test/name = other/r;
    close $fh;
    kill 'HUP', $c->{daemon}{pid};
    $c->t->wait_log($c->{daemon}, qr/settings are in use/);
    over(4);
    sleep 2.5;
    is(state_of(4), 'open', 'a reload forgets no jump');
    both(0);
    ok($c->stop, 'stops');
}

# F-F1 [C22u]: MySQL's clock is 20 minutes ahead for seconds
{
    $c->{conf} = $c->conf('consumer.pay_timeout' => '5s', 'consumer.settle_after' => '1h');
    $c->sale(5, units => 20);
    ready();
    $c->buy(5, 1 .. 10);
    $c->wait_settled(5);
    $clocks->step('mariadbd', 1200);
    sleep 2.5;
    $clocks->step('mariadbd', 0);
    sleep 1.5;
    is($c->count(seckill_orders => 'activity_id = 5 AND status = 3'), 0,
        'F-F1: no order a few seconds old is cancelled');
    sleep 1.5;
    is($c->count(seckill_orders => 'activity_id = 5 AND status = 3'), 0,
        '... nor within one pay_timeout after it');
    $c->t->wait_for(sub { $c->count(seckill_orders => 'activity_id = 5 AND status = 3') == 10 }, 12,
        'the cancel');
    pass('... then they are');
    ok($c->stop, 'stops');
}

# the smaller of two ages
{
    $c->{conf} = $c->conf('consumer.pay_timeout' => '2s', 'consumer.settle_after' => '1h');
    $c->sale(6, units => 20);
    $clocks->step('redis-server', 1000);
    $c->buy(6, 1);
    $clocks->step('redis-server', 0);
    $c->buy(6, 2);
    ready();
    $c->wait_settled(6);
    $c->t->wait_for(sub { $c->count(seckill_orders => 'activity_id = 6 AND status = 3') == 1 }, 8,
        'the cancel');
    sleep 1;
    is($c->dbh->selectrow_array('SELECT user_id FROM seckill_orders WHERE activity_id = 6 AND status = 3'),
        2, 'F-F1: an order whose number is of the future is as old as that says');
    $c->dbh->do('UPDATE seckill_orders SET created_at = NOW() - INTERVAL 1 YEAR WHERE user_id = 1'
        . ' AND activity_id = 6');
    sleep 1.5;
    is($c->count(seckill_orders => 'activity_id = 6 AND status = 3'), 1, '... whatever created_at is');
    ok($c->stop, 'stops');
}

# F-F2 [B18]: delivered while Redis' clock was ahead, to a consumer that never comes back
{
    $c->{conf} = $c->conf('consumer.claim_idle' => '1s', 'consumer.workers' => 2,
        'consumer.settle_after' => '1h');
    my $given = sub {
        my ($id, $name, $n) = @_;
        return $redis->xreadgroup('GROUP', 'seckilld', $name, 'COUNT', $n, 'STREAMS',
            $c->key(orders => $id), '>');
    };
    my $future = sub {
        my ($id, $n) = @_;
        $c->sale($id, units => 5000, group => 1);
        $c->buy($id, 1 .. $n);
        $clocks->step('redis-server', 7200);
        $given->($id, 'gone-1', $n);
        $clocks->step('redis-server', 0);
    };

    $future->(7, 1500);
    my ($deleted) = map { $_->[0] } ($redis->xrange($c->key(orders => 7), '-', '+'))[4];
    $redis->xdel($c->key(orders => 7), $deleted);
    $c->start;
    sleep 0.8;
    is($c->order_count(7), 0, 'before claim_idle they are left alone');
    $c->wait_settled(7, 20);
    $c->all_bought(7, [1 .. 4, 6 .. 1500], 'F-F2: entries of a consumer that is gone become orders');
    is_deeply([map {"$_->{entry} $_->{reason}"} @{ $c->dead(7) }], ["$deleted deleted"],
        '... one that was deleted has its letter');
    like($c->t->log_text($c->{daemon}), qr/delivered in the future.*activity=7/, '... the log tells it');
    is($c->sold(7), 1499, '... each counted once');
    ok($c->stop, 'stops');

    # a consumer that lives: it holds its entries, or they were delivered once more
    $future->(8, 3);
    my @id = map { $_->[0] } $redis->xrange($c->key(orders => 8), '-', '+');
    $c->start;
    my $end = time + 4;
    while (time < $end) {
        $redis->xclaim($c->key(orders => 8), 'seckilld', 'gone-1', 0, $id[0], 'JUSTID');
        $redis->xclaim($c->key(orders => 8), 'seckilld', 'gone-1', 0, $id[1], 'IDLE', 0);
        sleep 0.1;
    }
    is($c->order_count(8), 1, 'F-F2: what a consumer that lives holds is not taken from it');
    $c->wait_settled(8, 10);
    $c->all_bought(8, [1 .. 3], '... and is when it does not any more');
    ok($c->stop, 'stops');

    # the same clock seen by the daemon's other worker: nobody is robbed of what it works on
    $c->sale(9, units => 100);
    $c->start;
    my $other = $c->t->dbh($c->{mysql});
    $other->begin_work;
    $other->do('SELECT * FROM seckill_activities WHERE id = 9 FOR UPDATE');
    $clocks->step('redis-server', 1800);
    $c->buy(9, 1 .. 20);
    sleep 0.5;
    $clocks->step('redis-server', 0);
    sleep 3;
    $other->rollback;
    $c->wait_settled(9, 15);
    $c->all_bought(9, [1 .. 20], 'a batch that is worked on through the step');
    is($c->sold(9), 20, '... is counted once');
    is_deeply($c->dead(9), [], '... without letters');
    ok($c->stop, 'stops');
}

done_testing;
