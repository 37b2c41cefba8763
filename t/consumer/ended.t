# A sale that has ended settles itself, once nothing of it is unread, pending or
# dead; then, and only then, its keys get an expiry.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $c = ConsumerTest->new(conf => {
    'consumer.settle_after' => '500ms', 'consumer.attempts' => 1 });
my $redis = $c->redis;

# a sale whose units were taken from the product, as preheat does
sub sale {
    my ($id, $units) = @_;
    $c->sale($id, units => $units);
    $c->dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units,'
        . " actor) VALUES (?, ?, 1, 'preheat', 'test', ?, 'test')", undef, $id, $id, -$units);
    return;
}
sub over { $redis->hset($c->key(activity => $_[0]), end_ms => int(time * 1000)); return }
sub fact { return $redis->hget($c->key(activity => $_[0]), $_[1]) }
sub row  { return join ' ', $c->dbh->selectrow_array('SELECT a.status, a.sold, a.returned, p.stock'
    . ' FROM seckill_activities a JOIN products p ON p.id = a.product_id WHERE a.id = ?', undef, @_) }

$c->start;

{
    sale(1, 100);
    $c->buy(1, 1 .. 30);
    $c->wait_settled(1);
    sleep 1.5;
    is(row(1), '1 30 0 0', 'a sale that runs is left alone');
    is($redis->ttl($c->key(activity => 1)), -1, 'its keys have no expiry');

    my $control = $redis->hget('seckill:control', 'rev') // 0;
    over(1);
    $c->t->wait_for(sub { fact(1, 'state') eq 'settled' }, 6, 'the settle');
    $c->t->wait_for(sub { $redis->ttl($c->key(activity => 1)) > 0 }, 6, 'the expiry');
    is(row(1), '2 30 70 70', 'after the end 70 of 100 units are the product\'s again');
    $c->t->wait_for(sub { ($redis->hget('seckill:control', 'rev') // 0) > $control }, 2, 'the nodes');
    cmp_ok($redis->ttl("seckill:result:7:{1}"), '>', 86_000, 'results go with the rest');
    like($c->t->log_text($c->{daemon}), qr/sale is settled.*activity=1 sold=30 unsold=70/,
        'the log tells it');
}

# a lost result after that: answered, and it goes with the others
{
    $redis->del('seckill:result:7:{1}');
    $redis->sadd($c->key(lookup => 1), 7);
    $c->t->wait_for(sub { $redis->ttl('seckill:result:7:{1}') > 86_000 }, 5, 'the answer');
    $c->all_bought(1, [7], 'a lost result is answered after the settle too');
}

# purchases that wait, and dead letters, hold it back
{
    sale(2, 10);
    $c->stop;
    $c->buy(2, 1 .. 4);
    $c->add(2, $c->message(2, 9, v => 99));
    over(2);
    sleep 0.6;
    $c->start;
    $c->wait_settled(2);
    sleep 2.5;
    is(row(2), '1 4 0 0', 'a dead letter holds the settle back');
    is(fact(2, 'state'), 'open', 'in Redis too');
    $redis->del($c->key(dead => 2));
    $c->t->wait_for(sub { row(2) eq '2 4 6 6' }, 6, 'the settle');
    is($c->count(seckill_stock_log => "activity_id = 2 AND kind = 'settle'"), 1, 'on record once');
}

# a run that was cut off is finished by the next start
{
    sale(3, 10);
    $c->buy(3, 1);
    $c->wait_settled(3);
    $c->stop;
    $redis->hset($c->key(activity => 3), state => 'settled', end_ms => 1000,
        expire_ms => int(time * 1000) + 90_000_000);
    $c->start;
    $c->t->wait_for(sub { row(3) eq '2 1 9 9' }, 6, 'the money');
    $c->t->wait_for(sub { $redis->ttl($c->key(activity => 3)) > 0 }, 6, 'the expiry');
    pass('a settle that was cut off is finished');
}

# two daemons at once
{
    my $other = $c->t->seckilld($c->conf('consumer.name' => 'other'));
    for my $id (4 .. 9) {
        sale($id, 10);
        $c->buy($id, 1 .. 3);
        over($id);
    }
    $c->t->wait_for(sub { row(9) =~ /^2/ }, 15, 'the settles');
    $c->t->wait_for(sub { !grep { row($_) !~ /^2/ } 4 .. 9 }, 10, 'all of them');
    is(join(',', map { row($_) } 4 .. 9), join(',', ('2 3 7 7') x 6), 'two daemons: each once');
    $c->t->stop($other);
}

# F-D5: its other keys have expired: the facts go on to say "settled", nothing reads or makes its
# stream, and it is not registered any more
{
    cmp_ok($redis->ttl($c->key(activity => 4)), '>', 29 * 86_400, 'the facts stay for a month');
    cmp_ok($redis->ttl($c->key(order_users => 4)), '<', 2 * 86_400, '... the rest for a day');
    $redis->del(map { $c->key($_ => 4) } qw(stock order_users orders));
    $redis->hset($c->key(activity => 4), expire_ms => int(time * 1000) - 1000);
    $c->t->wait_for(sub { !$redis->sismember('seckill:activities', 4) }, 6, 'the registry');
    sleep 1.5;
    is(fact(4, 'state'), 'settled', 'a settled sale whose keys expired is still said to be settled');
    is($redis->exists($c->key(orders => 4)), 0, '... its stream is not made again');
    my $log = $c->t->log_text($c->{daemon});
    unlike($log, qr/lost data.*activity=4|consumer group created.*activity=4\n.*activity=4 /, '... and no word is said');
}

# the facts are gone too: nothing is left of it
{
    $redis->del($c->key(activity => 1));
    $c->t->wait_for(sub { !$redis->sismember('seckill:activities', 1) }, 6, 'the registry');
    unlike($c->t->log_text($c->{daemon}), qr/lost data/, 'which is no loss');
}

# a paused sale settles by hand only
{
    sale(10, 10);
    $redis->hset($c->key(activity => 10), state => 'paused');
    over(10);
    $c->t->wait_log($c->{daemon}, qr/can't be settled.*activity=10/);
    is(row(10), '1 0 0 0', 'a sale that lost data is left to somebody');
}

ok($c->stop, 'the daemon stops well');

done_testing;
