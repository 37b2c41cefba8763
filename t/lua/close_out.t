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

sub close_out { return scalar $s->call('close_out', [ $facts, $orders, $dead ], @_) }
sub expire    { return scalar $s->call('expire', [ $facts, $stock, $buyers, $orders, $dead ], @_) }

my $waits = sub {
    my ($status, $name, @argv) = @_;
    my $before = $s->dump_all;
    is_deeply(close_out(@argv ? @argv : ($when, 1, 2)), [ $status, 0, 0 ], $name);
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
$redis->hset($facts, state => 'paused');
$waits->('lost', 'a paused sale');
$redis->hset($facts, state => 'open');

$s->refused(sub { expire($when) }, qr/SECKILL the sale is not settled/, 'nothing expires before');
$s->refused(sub { close_out(@{$_}) }, qr/SECKILL close_out takes/, 'bad arguments')
    for [], [$when], [ 'x', 1, 2 ], [ $when, 'x', 2 ], [ $when, 1, 'x' ];

is_deeply(close_out($when, 1, 2), [ 'closed', 2, $when ], 'closed');
is($redis->hget($facts, 'state'), 'settled', '... for good');
is($s->verdicts(1, 1, 9), '25', '... nobody buys, a buyer hears so');
is_deeply(close_out($when + 5, 1, 2), [ 'settled', 2, $when ], 'again tells the first time');

is(expire($when), 4, 'four keys and the facts expire');
cmp_ok($redis->pttl($_), '>', 0, "$_ does") for $facts, $stock, $buyers, $orders;
my $before = $s->dump_all;
expire($when);
is($s->dump_all, $before, 'again changes nothing');
$s->refused(sub { expire(@{$_}) }, qr/SECKILL expire takes/, 'bad arguments') for [], ['x'], [ $when, 1 ], ['0'];

$redis->hdel($facts, 'rev');
$s->refused(sub { close_out($when, 1, 2) }, qr/SECKILL facts/, 'damaged facts');

done_testing();
