# A sale that Redis lost whole (F-D2): seckilld and the tool know it from MySQL,
# nobody makes it look like one that has not begun, and restore brings it back;
# several at once, amid a preheat of the next one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;
use Time::HiRes qw(sleep);

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;

sub fact { return $redis->hget($c->key(activity => $_[0]), $_[1]) }
sub phases { my ($exit, $json) = $c->ctl_json('status'); return ($exit, map { $_->{activity} => $_->{phase} } @{ $json->{activities} }) }
sub control { return $redis->exists('seckill:control') }

my @sales = map { $c->sale(stock_limit => 5) } 1 .. 3;
my ($one, $two, $three) = @sales;
my $next = $c->activity(start => 300, end => 3600, stock_limit => 5);
my $soon = $c->activity(start => 400, end => 3600, stock_limit => 5);
is(($c->ctl('preheat', $soon))[0], 0, 'one that has not begun is preheated');
my $cut = $c->activity(start => -60, end => 3600, stock_limit => 5);
$c->buy($_, 1 .. 3) for @sales;
$c->drain(@sales);
my $token = $redis->hget('seckill:control', 'token_key');

# a first preheat that was cut off: MySQL has it, Redis has not
$c->dbh->do("UPDATE seckill_activities SET epoch = 1 WHERE id = $cut");

$redis->flushall;

# without seckilld: the tool knows it too, and makes nothing
{
    my ($exit, %phase) = phases();
    is($exit, 1, 'F-D2: status says that something is wrong');
    is_deeply([ @phase{@sales} ], [ ('lost') x 3 ], '... it lists what Redis does not list any more');
    ok(!exists $phase{$cut}, '... a preheat that was cut off is no lost sale');
    my ($e, $out) = $c->ctl('reconcile', '--all', '--grace', '0s');
    is($e, 1, '... reconcile --all says so too');
    like($out, qr/^activity $_: Redis has no facts of it/m, "... and lists activity $_") for @sales;
    ok(!control(), '... and none of them made the control hash');
    is(($c->ctl('restock', $one, 1))[0] == 0 ? 'done' : 'refused', 'refused', 'a restock is refused');
    ok(!control(), '... and makes no control hash');
}

$c->start;
$t->wait_log($c->{daemon}, qr/level=error msg="Redis lost data of a sale, restore it" activity=$_ .*lost=facts.*cure="seckillctl restore $_"/) for @sales;
is_deeply([ map { fact($_, 'state') } @sales ], [ ('lost') x 3 ], 'seckilld finds all of them from MySQL\'s side');
is(fact($one, 'price'), '9.90', '... the facts are those of MySQL');
is($redis->exists($c->key(activity => $cut)), 0, '... one that was never opened has none');
$t->wait_log($c->{daemon}, qr/"Redis lost a sale that has not begun, preheat it" activity=$soon /);
is($redis->exists($c->key(activity => $soon)), 0, '... one that has not begun waits for its preheat');
$t->wait_log($c->{daemon}, qr/level=error msg="Redis lost the control hash.*lost=3/);
ok(!control(), 'while a sale is lost seckilld makes no control hash');

# the timer preheats the next sale
{
    my ($exit, $out, $err) = $c->ctl('preheat', '--due', '10m');
    is($exit, 0, 'preheat --due works for what is due') or diag($out, $err);
    like($err, qr/Redis lost activity $_: restore it/, "... and names activity $_") for @sales;
    ok(control(), '... the control hash is made by it');
    is($redis->hget('seckill:control', 'token_key'), $token, 'F-D6: ... with the key that MySQL kept');
    is_deeply([ map { fact($_, 'state') } $next, $soon ], [ 'open', 'open' ], '... what is due is open');
    is_deeply([ map { fact($_, 'state') } @sales ], [ ('lost') x 3 ], '... what is lost says so');
    like(eval { $c->buy($one, 9) } // 'refused', qr/^(?:7|refused)$/, '... and sells nothing');
    is(($c->ctl('preheat', $one, '--late'))[0], 4, '... a preheat of it is refused');
}

for my $id (@sales) {
    my ($exit, $json, $err) = $c->ctl_json('restore', $id, '--yes');
    is($exit, 0, "activity $id is restored") or diag($err);
    is($json->{stock}, 2, '... with what is left');
    is($c->buy($id, 1, 11 .. 13), '2113', '... and sells that, not one more');
}
$c->drain(@sales);
is($c->column("SELECT COUNT(*) FROM seckill_orders WHERE activity_id = $_"), 5, "five orders of activity $_") for @sales;
{
    my ($exit, %phase) = phases();
    is($exit, 0, 'then all is well');
    is_deeply([ @phase{@sales} ], [ ('running') x 3 ], '... they run');
}

# a node of a preheat that was cut off is no loss: it is preheated
is(($c->ctl('preheat', $cut, '--late'))[0], 0, 'the preheat that was cut off is finished');
is($c->buy($cut, 1), '1', '... and it sells');
$c->drain($cut);

# the control hash alone, or the list alone
{
    $redis->del('seckill:control');
    $t->wait_for(sub { control() }, 10, 'the control hash');
    is($redis->hget('seckill:control', 'token_key'), $token, 'the control hash alone: seckilld makes it again, with its key');
    cmp_ok($redis->hget('seckill:control', 'rev'), '>', 1e12, '... and a rev above any that a node remembers');
    $redis->del('seckill:activities');
    $t->wait_for(sub { $redis->sismember('seckill:activities', $one) }, 10, 'the list');
    pass('the list alone: seckilld makes it again');
    is(fact($one, 'state'), 'open', '... and the sale goes on');
}

# the facts alone
{
    $redis->del($c->key(activity => $two));
    $t->wait_for(sub { (fact($two, 'state') // '') eq 'lost' }, 10, 'state lost');
    my ($exit) = $c->ctl('restore', $two, '--yes');
    is($exit, 0, 'facts alone: restored');
    is(($c->reconcile($two))[0], 0, '... the books are in order');
}

# a settled sale is not lost
{
    $redis->hset($c->key(activity => $three), end_ms => time * 1000 - 1000);
    is(($c->ctl('settle', $three, '--yes'))[0], 0, 'settled');
    $redis->del(map { $c->key($_ => $three) } qw(activity stock order_users orders));
    $redis->srem('seckill:activities', $three);
    sleep 6;
    is($redis->exists($c->key(activity => $three)), 0, '... and its keys gone: no lost sale');
    my ($exit, %phase) = phases();
    is($exit, 0, '... nor for status');
}

$c->halt;

done_testing();
