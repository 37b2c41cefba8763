# lua/replay.lua and lua/dead_retry.lua: purchases go back into the stream, once,
# whole, and never without units.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my @keys = ScriptTest::keys_of('preheat', 1);
my ($facts, $stock, $buyers, $orders) = @keys;
my $dead   = ScriptTest::key('dead', 1);
my $result = ScriptTest::key('result:7', 1);
my $no     = '26112915000012300000100000090007';
my $head   = '261129160000000000001';

sub replay { return scalar $s->call('replay', [@keys], 1, $head, 1795968000000, @_) }

# user, quantity, epoch, seq, order_no, accepted_ms, request_id, ext, take
sub known { my ($user, $take) = @_; return ($user, 1, 1, 9, $no, 1795950000000, 'r', 'x', $take) }
sub fresh { my ($user, $take, $n) = @_; return ($user, $n // 1, 0, 0, '', 0, 'replay', '', $take) }

subtest 'replay' => sub {
    $s->sale(1, stock => 5, max_quantity => 3);
    $s->buy(1, 1, 2);

    is(replay(known(1, 0)), '1', 'a buyer whose identity is known');
    is_deeply([ $s->entries(1) ]->[2], { id => ([ $s->entries(1) ]->[2]{id}), v => 1, user => 1,
        activity => 1, quantity => 1, epoch => 1, seq => 9, order_no => $no,
        accepted_ms => 1795950000000, request_id => 'r', ext => 'x' }, '... is queued as it was');
    is($redis->get($stock), 3, '... no unit moves');
    is($redis->hget($facts, 'seq'), 2, '... no seq is taken');

    is(replay(fresh(2, 0), fresh(8, 1, 2)), '11', 'two that get an identity');
    my @new = ($s->entries(1))[ 3, 4 ];
    is_deeply([ map { $_->{seq} } @new ], [ 3, 4 ], '... the next ones');
    is($new[1]{order_no}, "${head}00000040008", '... with a number made of them');
    is($new[1]{epoch}, 1, '... in the epoch of the sale');
    is($redis->hget($facts, 'seq'), 4, '... which counts them');
    is($redis->get($stock), 1, '... units of the second are taken');
    is($redis->sismember($buyers, 8), 1, '... who is a buyer now');

    is(replay(fresh(8, 1), fresh(77, 0), fresh(9, 1, 2), fresh(9, 1)), '2231',
        'bought again, no buyer, not enough units, enough');
    is($redis->get($stock), 0, '... the stock is 0');
    is($redis->sismember($buyers, 77), 0, '... and nobody became a buyer for nothing');
    is($redis->hget($facts, 'seq'), 5, '... or took a seq');

    my $sane = sub { replay(fresh(2, 0)) };
    for my $case (
        [ [], qr/SECKILL replay takes/ ], [ [ fresh(1, 0), 1 ], qr/SECKILL replay takes/ ],
        [ [ fresh('x', 0) ], qr/SECKILL user/ ], [ [ fresh(1, 0, 0) ], qr/SECKILL quantity/ ],
        [ [ fresh(1, 2) ], qr/SECKILL quantity/ ],
        [ [ 1, 1, 0, 9, $no, 1, '', '', 0 ], qr/SECKILL epoch/ ],
        [ [ 1, 1, 1, 9, '7', 1, '', '', 0 ], qr/SECKILL epoch/ ],
        [ [ 1, 1, 1, 9, $no, 'x', '', '', 0 ], qr/SECKILL epoch/ ],
        )
    {
        my ($argv, $words) = @{$case};
        $s->refused(sub { replay(@{$argv}) }, $words, 'bad arguments');
    }
    $s->refused(sub { $s->call('replay', [@keys], 1, 'head', 5, fresh(1, 0)) }, qr/SECKILL activity/, 'a bad head');
    $s->refused(sub { $s->call('replay', [ @keys[ 0 .. 2 ] ], 1, $head, 5, fresh(1, 0)) },
        qr/SECKILL replay takes/, 'three keys');

    $redis->config('SET', 'maxmemory', 1);
    $s->refused($sane, qr/OOM/, 'out of memory');
    $redis->config('SET', 'maxmemory', 0);
    $redis->hset($facts, state => 'settled');
    $s->refused($sane, qr/settled/, 'a settled sale');
    $redis->hset($facts, state => 'paused');
    is($sane->(), '1', 'a paused sale takes back what it sold');
    for my $key ([ $stock, qr/WRONGTYPE/ ], [ $buyers, qr/WRONGTYPE/ ], [ $orders, qr/WRONGTYPE/ ],
        [ $facts, qr/WRONGTYPE/ ])
    {
        $redis->rename($key->[0], 'away');
        $redis->geoadd($key->[0], 1, 1, 'x');
        $s->refused($sane, $key->[1], "$key->[0] of another type");
        $redis->del($key->[0]);
        $s->refused($sane, qr/SECKILL/, "no $key->[0]") if $key->[0] eq $stock || $key->[0] eq $facts;
        $redis->rename('away', $key->[0]);
    }
};

sub retry { return scalar $s->call('dead_retry', [ $facts, $orders, $dead, $result ], @_) }

subtest 'dead_retry' => sub {
    $redis->flushdb;
    $s->sale(1);
    $s->buy(1, 7);
    my ($entry) = $s->entries(1);
    my @purchase = map { $_ => $entry->{$_} } grep { $_ ne 'id' } sort keys %{$entry};
    my $letter = $redis->xadd($dead, '*', entry => $entry->{id}, reason => 'data_error',
        error => 'user 9', @purchase);
    $redis->set($result, '{"success":false,"reason":"data_error"}');

    $s->refused(sub { retry($letter, 8) }, qr/SECKILL the letter is of another user/, 'another user');
    $s->refused(sub { retry('x', 7) }, qr/SECKILL dead_retry takes/, 'no letter');
    $redis->config('SET', 'maxmemory', 1);
    $s->refused(sub { retry($letter, 7) }, qr/OOM/, 'out of memory: the letter stays');
    $redis->config('SET', 'maxmemory', 0);
    $redis->hset($facts, state => 'settled');
    $s->refused(sub { retry($letter, 7) }, qr/settled/, 'a settled sale');
    $redis->hset($facts, state => 'open');

    my $reply = retry($letter, 7);
    is($reply->[0], 'queued', 'queued');
    my @entries = $s->entries(1);
    is(scalar @entries, 2, '... the stream has one more');
    is_deeply({ %{ $entries[1] }, id => 0 }, { %{$entry}, id => 0 }, '... the same, and nothing of the letter');
    is($entries[1]{id}, $reply->[1], '... with the id that is told');
    is($redis->xlen($dead), 0, '... the letter is gone');
    is($redis->exists($result), 0, '... the failure too');

    my $before = $s->dump_all;
    is_deeply(retry($letter, 7), [ 'gone', '' ], 'again there is nothing');
    is($s->dump_all, $before, '... and nothing changes');

    $letter = $redis->xadd($dead, '*', @purchase);
    $redis->set($result, '{"success":true,"order_id":7,"order_no":"1"}');
    retry($letter, 7);
    is($redis->exists($result), 1, 'a success is never taken back');

    splice @purchase, 0, 2;
    $letter = $redis->xadd($dead, '*', @purchase);
    $s->refused(sub { retry($letter, 7) }, qr/SECKILL the letter has no/, 'half a purchase');
    $redis->del($facts);
    $s->refused(sub { retry($letter, 7) }, qr/SECKILL facts/, 'no facts');
};

done_testing();
