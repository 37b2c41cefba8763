# lua/close_out.lua and lua/expire.lua: a sale is closed when nothing of it is on its
# way, and its keys go a day later.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my ($facts, $stock, $buyers, $orders) = ScriptTest::keys_of('preheat', 1);
my $dead = ScriptTest::key('dead', 1);
my $when = 4102444800000;

sub close_out { return scalar $s->call('close_out', [ $facts, $orders, $dead, $buyers ], @_, @_ == 3 ? 'close' : ()) }
sub expire    { return scalar $s->call('expire', [ $facts, $stock, $buyers, $orders, $dead ], @_) }

my $waits = sub {
    my ($status, $name, @argv) = @_;
    my $before = $s->dump_all;
    for my $how (qw(look close)) {
        my @answer = @{ close_out(@argv ? @argv : ($when, 1, 2), $how) };
        is_deeply([ @answer[ 0 .. 2 ] ], [ $status, 0, 0 ], "$name: $how");
        is($answer[3], $status eq 'missing' ? 0 : $redis->scard($buyers), '... how many bought');
    }
    is($s->dump_all, $before, '... nothing is written');
};

$waits->('missing', 'no facts');
$s->sale(1);
$s->buy(1, 1, 2);
$waits->('running', 'a sale that runs');
$redis->hset($facts, end_ms => $s->now_ms - 1);
$waits->('unread', 'unread purchases');
$redis->xgroup('DESTROY', $orders, 'seckilld');
$waits->('unread', 'without a group all is unread');
$redis->xgroup('CREATE', $orders, 'seckilld', 0);
$redis->xreadgroup('GROUP', 'seckilld', 'n', 'COUNT', 9, 'STREAMS', $orders, '>');
$waits->('pending', 'pending purchases');
$redis->xack($orders, 'seckilld', map { $_->{id} } $s->entries(1));
my $letter = $redis->xadd($dead, '*', user => 1);
$waits->('dead', 'dead letters');
$redis->xdel($dead, $letter);
$waits->('lost', 'a seq behind what was seen', $when, 1, 3);
$waits->('lost', 'an epoch behind what was seen', $when, 2, 0);
for my $state (qw(paused lost)) {
    $redis->hset($facts, state => $state);
    $waits->('lost', "a $state sale");
}
$redis->hset($facts, state => 'open', buyers_extra => 1);
$waits->('lost', 'fewer buyers than were counted');
$redis->hset($facts, buyers_extra => 0);

$s->refused(sub { expire($when, $when) }, qr/SECKILL the sale is not settled/, 'nothing expires before');
$s->refused(sub { close_out(@{$_}) }, qr/SECKILL close_out takes/, 'bad arguments')
    for [], [$when], [ 'x', 1, 2 ], [ $when, 'x', 2 ], [ $when, 1, 'x' ];

my $look = $s->dump_all;
is_deeply(close_out($when, 1, 2, 'look'), [ 'ready', 1, 0, 2 ], 'a look');
is($s->dump_all, $look, '... writes nothing');
is_deeply(close_out($when, 1, 2), [ 'closed', 2, $when, 2 ], 'closed');
is($redis->hget($facts, 'state'), 'settled', '... for good');
is($s->verdicts(1, 1, 9), '25', '... nobody buys, a buyer hears so');
is_deeply(close_out($when + 5, 1, 2), [ 'settled', 2, $when, 2 ], 'again tells the first time');

is(expire($when, $when + 5000), 4, 'four keys and the facts expire');
my $left = $when - $s->now_ms;
cmp_ok(abs($redis->pttl($_) - $left), '<', 2000, "$_ does") for $stock, $buyers, $orders;
cmp_ok(abs($redis->pttl($facts) - $left - 5000), '<', 2000, 'F-D5: the facts do later');
my $before = $s->dump_all;
expire($when, $when + 5000);
is($s->dump_all, $before, 'again changes nothing');
$s->refused(sub { expire(@{$_}) }, qr/SECKILL expire takes/, 'bad arguments') for [], ['x'], [ $when, 1 ], [ 'x', $when ], [$when], [ 0, $when ], [ $when, $when - 1 ];

$redis->hdel($facts, 'rev');
$s->refused(sub { close_out($when, 1, 2) }, qr/SECKILL facts/, 'damaged facts');

done_testing();
