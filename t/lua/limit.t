# lua/limit.lua: the limit of a sale or of all, whole or not at all, and kept by
# everything that does not lose the hash it stands in.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;
my @keys  = ScriptTest::keys_of('preheat', 1);
my ($facts, $stock, $buyers, $orders) = @keys;

sub limit { return scalar $s->call('limit', [ $_[0] ], @_[ 1 .. 3 ]) }
sub fields { return [ $redis->hmget($_[0], 'limit', 'limit_burst') ] }

is_deeply(limit($facts, 'activity', '1r/s', 0), [ 'missing', 0, '', '' ], 'no facts');
is($redis->exists($facts), 0, '... and none are made');

$s->sale(1);
my $rev = $redis->hget($facts, 'rev');
my %before = $redis->hgetall($facts);
is_deeply(limit($facts, 'activity', 'default', 0), [ 'unchanged', $rev, '', '' ], 'none is there');
is_deeply(limit($facts, 'activity', '2r/m', 3), [ 'set', $rev + 1, '', '' ], 'set');
is_deeply(fields($facts), [ '2r/m', 3 ], '... as it was given');
is_deeply(limit($facts, 'activity', '2r/m', 3), [ 'unchanged', $rev + 1, '2r/m', 3 ], 'twice');
is_deeply(limit($facts, 'activity', '2r/m', 0), [ 'set', $rev + 2, '2r/m', 3 ], 'another burst');
is_deeply(limit($facts, 'activity', 'off', 0), [ 'set', $rev + 3, '2r/m', 0 ], 'off');
is_deeply(limit($facts, 'activity', 'default', 0), [ 'set', $rev + 4, 'off', 0 ], 'taken back');
is_deeply({ $redis->hgetall($facts) }, { %before, rev => $rev + 4 }, '... and nothing else changed');

for my $state (qw(closed paused)) {
    $redis->hset($facts, state => $state);
    is(limit($facts, 'activity', '1r/s', 0)->[0], 'set', "set while it is $state");
    is($redis->hget($facts, 'state'), $state, '... which it stays');
    limit($facts, 'activity', 'default', 0);
}
$redis->hset($facts, state => 'settled', rev => 9);
{
    my $all = $s->dump_all;
    is_deeply(limit($facts, 'activity', '1r/s', 0), [ 'refused', 9, '', '' ], 'settled is over');
    is($s->dump_all, $all, '... nothing is written');
    $redis->hset($facts, state => 'open');
}

is_deeply(limit('control', 'control', '1r/s', 0), [ 'missing', 0, '', '' ], 'no control');
$redis->hset('control', rev => 5, token_key => 'k');
is_deeply(limit('control', 'control', '1000r/m', 1000), [ 'set', 5, '', '' ], 'that of all');
is_deeply({ $redis->hgetall('control') },
    { rev => 5, token_key => 'k', limit => '1000r/m', limit_burst => 1000 }, '... its rev is for the caller');
is_deeply(limit('control', 'control', 'default', 0), [ 'set', 5, '1000r/m', 1000 ], '... and taken back');
is($redis->hlen('control'), 2, '... as if it never was');

$s->refused(sub { limit($facts, 'activity', @{$_}) }, qr/SECKILL rate is not/, "no rate: $_->[0]")
    for map { [ $_, 0 ] } '', '0r/s', '1001r/s', '1001r/m', '01r/s', '1r/h', '1', '-1r/s', '1.5r/s', ' 1r/s',
        '1r/s ', 'none', 'r/s', '99999999999r/s';
$s->refused(sub { limit($facts, 'activity', '1r/s', $_) }, qr/SECKILL burst is not/, "no burst: \"$_\"")
    for '', 'x', -1, 1001, '01', '1.5', '99999999999';
$s->refused(sub { limit($facts, 'activity', $_, 1) }, qr/SECKILL burst is not/, "$_ has no burst") for qw(off default);
$s->refused(sub { $s->call('limit', [$facts], @{$_}) }, qr/SECKILL limit takes/, 'bad arguments')
    for [], [ 'activity', '1r/s' ], [ 'sale', '1r/s', 0 ], [ 'activity', '1r/s', 0, 0 ];
$s->refused(sub { $s->call('limit', [ $facts, $stock ], 'activity', '1r/s', 0) }, qr/SECKILL limit takes/, 'two keys');

for my $rate (qw(1r/s default)) {
    limit($facts, 'activity', '7r/s', 0);
    $redis->rename($facts, 'away');
    $redis->set($facts, 'x');
    $s->refused(sub { limit($facts, 'activity', $rate, 0) }, qr/WRONGTYPE/, "$rate: facts of another type");
    $redis->rename('away', $facts);
    for my $field (qw(state rev)) {
        my $value = $redis->hget($facts, $field);
        $redis->hdel($facts, $field);
        $s->refused(sub { limit($facts, 'activity', $rate, 0) }, qr/SECKILL state or rev/, "$rate: no $field");
        $redis->hset($facts, $field => $value);
    }
    $redis->replicaof('127.0.0.1', $s->t->port);
    $s->refused(sub { limit($facts, 'activity', $rate, 0) }, qr/READONLY/, "$rate: a replica");
    $redis->replicaof('NO', 'ONE');
}
$redis->config('SET', 'maxmemory', 1);
$s->refused(sub { limit($facts, 'activity', '1r/s', 0) }, qr/OOM/, 'out of memory');
$redis->config('SET', 'maxmemory', 0);

# what changes the facts otherwise
subtest 'kept' => sub {
    $redis->flushdb;
    my $now = $s->now_ms;
    my @sale = (0, 5, '9.90', 100, $now + 60_000, $now + 90_000, 1, 0, 1);
    is($s->call('preheat', [@keys], @sale)->[0], 'created', 'a sale');
    is_deeply(fields($facts), [ undef, undef ], '... begins without');
    limit($facts, 'activity', '2r/m', 3);
    is($s->call('preheat', [@keys], @sale)->[0], 'unchanged', 'a limit is no change for preheat');
    $sale[3] = 101;
    is($s->call('preheat', [@keys], @sale)->[0], 'updated', 'preheat again');
    is_deeply(fields($facts), [ '2r/m', 3 ], '... keeps it');
    is($s->call('restock', [ $facts, $stock ], 1, 111, 10)->[0], 'added', 'restock');
    is_deeply(fields($facts), [ '2r/m', 3 ], '... keeps it');

    $redis->hset($facts, state => 'paused');
    is($s->call('clear', [ @keys[ 0 .. 3 ], map { ScriptTest::key($_, 1) } qw(eligible dead) ], 'clear', 1, 1, 0, '')->[0], 'cleared', 'taken down for restore');
    my @facts = (5, '9.90', 111, $now, $now + 90_000, 1, 0, 2, 'open', 10, 0);
    $s->call('restore', [ @keys[ 0 .. 3 ] ], @facts, 111, 0, 8, 0);
    is_deeply(fields($facts), [ '2r/m', 3 ], 'restore keeps what Redis still has');

    $redis->del($facts, $stock);
    $s->call('restore', [ @keys[ 0 .. 3 ] ], @facts, 111, 0, 8, 0);
    is_deeply(fields($facts), [ undef, undef ], '... and makes none up when it is lost');
};

done_testing();
