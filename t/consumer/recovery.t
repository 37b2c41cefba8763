# kill -9 at every step, and consumer groups that vanish: what was accepted
# becomes exactly one order, told to its buyer, all the same.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use POSIX ();
use Soak qw(soak);
use Test::More;

my $c  = ConsumerTest->new(conf => { 'consumer.workers' => 1 });
my $id = 0;

# B5, B6, F6: the daemon dies once at each place, then a new one has the same name
for my $point (qw(after_read after_begin after_insert after_commit after_settle)) {
    my @users = (1 .. 50);

    $c->sale(++$id, units => 60);
    $c->buy($id, @users);

    my $daemon = $c->start(SECKILLD_FAILPOINT => $point);
    my $status = $c->t->wait_exit($daemon, 20);
    is($status & 127, POSIX::SIGKILL(), "killed $point");

    my %orders = (after_commit => 50, after_settle => 50);
    is($c->order_count($id), $orders{$point} // 0, 'with this many orders');
    is($c->pending($id), $point eq 'after_settle' ? 0 : 50, 'and this many pending');
    is($c->result($id, 1), undef, 'nobody was told too early') if $point ne 'after_settle';

    $c->buy($id, 51 .. 60);
    $c->start;
    $c->wait_settled($id);

    is($c->order_count($id), 60, 'one order each after the restart');
    is($c->sold($id), 60, 'counted once');
    $c->all_bought($id, [1 .. 60], "all buyers have theirs, killed $point");
    is_deeply($c->dead($id), [], 'no dead letters');
    is($c->count(seckill_stock_log => "activity_id = $id AND kind <> 'open'"), 0, 'nothing in the ledger');
    $c->stop;
}

# B13: one name, however often it starts
{
    for (1 .. soak(3, 50)) {
        $c->start;
        $c->t->wait_log($c->{daemon}, qr/seckilld is up/);
        $c->stop;
    }
    my $consumers = $c->redis->xinfo('CONSUMERS', $c->key(orders => 1), 'seckilld');
    is(scalar @{$consumers}, 1, 'one consumer name, however often it started');
}

# the same amid a sale on which two workers take turns, one batch of theirs told,
# another one in its transaction
{
    my $alone = $c->{conf};

    $c->{conf} = $c->conf('consumer.workers' => 2, 'consumer.batch' => 100);
    for my $point (qw(after_read after_begin after_insert after_commit in_settle after_settle)) {
        $c->sale(++$id, units => 2000);
        $c->buy($id, 1 .. 2000);
        my $status = $c->t->wait_exit($c->start(SECKILLD_FAILPOINT => "$point:7"), 20);
        is($status & 127, POSIX::SIGKILL(), "killed $point, at the seventh");

        $c->start;
        $c->wait_settled($id);
        $c->all_bought($id, [1 .. 2000], 'all buyers have theirs');
        is($c->order_count($id), 2000, 'one order each');
        is($c->sold($id), 2000, 'counted once');
        is_deeply($c->dead($id), [], 'no dead letters');
        is($c->count(seckill_stock_log => "activity_id = $id AND kind <> 'open'"), 0, 'nothing in the ledger');
        $c->stop;
    }
    $c->{conf} = $alone;
}

# B5: own pending entries come first, without waiting for any idle limit
{
    $c->sale(++$id, units => 100, group => 1);
    $c->buy($id, 1 .. 50);
    $c->redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'COUNT', 50, 'STREAMS',
        $c->key(orders => $id), '>');
    is($c->pending($id), 50, '50 are delivered and not acknowledged');
    $c->buy($id, 51 .. 100);

    my $began = time;
    $c->start;
    $c->wait_settled($id);
    cmp_ok(time - $began, '<', 5, 'no idle limit was waited for');

    my @by_id = map { $_->{user_id} } @{ $c->orders($id) };
    is_deeply([@by_id[0 .. 49]], [1 .. 50], 'the pending ones came first');
    is(scalar @by_id, 100, 'then the new ones');
}

# B2: groups and streams vanish; from here on one daemon runs on
{
    $c->sale(++$id, units => 100);
    $c->buy($id, 1 .. 10);
    $c->wait_settled($id);
    my $before = $c->orders($id);

    $c->redis->xgroup('DESTROY', $c->key(orders => $id), 'seckilld');
    $c->buy($id, 11 .. 20);
    $c->wait_settled($id, 3);
    $c->all_bought($id, [1 .. 20], 'group destroyed: made again from the begin');
    is($c->order_count($id), 20, 'no double');
    is_deeply([@{ $c->orders($id) }[0 .. 9]], $before, 'old orders are as they were');
    is($c->sold($id), 20, 'and counted once');

    # F-D1: without its stream nothing is sold, and nobody hides that with an empty one
    $c->redis->del($c->key(orders => $id));
    ok(!eval { $c->buy($id, 21); 1 }, 'stream deleted: nothing is sold');
    like($@, qr/SECKILL orders is missing/, '... and Redis says why');
    ok($c->t->wait_for(sub { $c->redis->hget($c->key(activity => $id), 'state') eq 'paused' }, 10, 'a pause'),
        '... the daemon pauses the sale');

    my $lines = () = $c->t->log_text($c->{daemon}) =~ /consumer group created/g;
    cmp_ok($lines, '<=', 6, 'a few lines about it');
}

# B2: Redis comes back empty; the shop sells again
{
    $c->t->kill9($c->{redis});
    sleep 1;
    $c->t->restart($c->{redis});
    $c->{redis}{client} = $c->t->redis_client($c->{redis});
    $c->t->wait_log($c->{daemon}, qr/server is back.*server=redis/);
    $c->preheat($id, units => 10, seq => 30);
    $c->buy($id, 31 .. 40);
    $c->wait_settled($id, 6);
    $c->all_bought($id, [31 .. 40], 'Redis restarted empty: ten more orders');
    is($c->order_count($id), 30, 'no double');

    my $log   = $c->t->log_text($c->{daemon});
    my $lines = () = $log =~ /server is unavailable.*server=redis/g;
    is($lines, 1, 'one line when it went');
    like($log, qr/server is back.*server=redis/, 'one when it came back');
}

# a registered activity without facts: no stream is made in the preheat's way
{
    $c->redis->sadd('seckill:activities', 999);
    $c->t->wait_log($c->{daemon}, qr/activity found.*activity=999/);
    sleep 1;
    is($c->redis->exists($c->key(orders => 999)), 0, 'no stream before the preheat');
    $c->redis->srem('seckill:activities', 999);
    $c->t->wait_log($c->{daemon}, qr/not registered any more.*activity=999/);
    pass('and it is forgotten when it goes');
}

ok($c->stop, 'the daemon stops well');

done_testing;
