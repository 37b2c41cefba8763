# lua/lost.lua, lua/control_keep.lua, lua/mend.lua and lua/held.lua: what a sale gets
# that Redis lost whole, the hash that all nodes read, buyers that are put back, and
# which purchases Redis still holds.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my @keys = ScriptTest::keys_of('admit', 1);
my ($facts, $stock, $buyers, $orders) = @keys;
my $control = 'seckill:control';

subtest 'lost' => sub {
    my @argv = (5, '9.90', 100, 1000, 2000, 2, 1, 3);
    my $lost = sub { scalar $s->call('lost', [$facts], @_) };
    my $now = $s->now_ms;
    is_deeply($lost->(@argv), [ 'lost', 'lost' ], 'a sale without facts');
    my %facts = $redis->hgetall($facts);
    cmp_ok(delete $facts{rev}, '>=', $now, '... gets some, with a rev of the clock');
    is_deeply(\%facts, { state => 'lost', product_id => 5, price => '9.90', stock_limit => 100, start_ms => 1000,
        end_ms => 2000, max_quantity => 2, eligible => 1, epoch => 3, seq => 0 }, '... that sell nothing');
    my $before = $s->dump_all;
    is_deeply($lost->(@argv), [ 'there', 'lost' ], 'again');
    $redis->hset($facts, state => 'open');
    is_deeply($lost->(@argv), [ 'there', 'open' ], 'a sale that is there');
    $redis->hset($facts, state => 'lost');
    is($s->dump_all, $before, '... is not touched');
    for my $i (0 .. 7) {
        my @bad = @argv;
        $bad[$i] = 'x';
        $s->refused(sub { $lost->(@bad) }, qr/SECKILL \w+ is bad/, "argument $i is bad");
    }
    $s->refused(sub { $lost->(1) }, qr/SECKILL lost takes/, 'too few');
    # a hash that somebody made with a limit alone is no sale
    $redis->del($facts);
    $redis->hset($facts, limit => '1r/s');
    is_deeply($lost->(@argv), [ 'lost', 'lost' ], 'facts without a state are none');
    is($redis->hget($facts, 'limit'), '1r/s', '... the limit stays');
};

subtest 'control_keep' => sub {
    $redis->flushdb;
    my $keep = sub { scalar $s->call('control_keep', [$control], @_) };
    my $key = 'ab' x 32;
    is_deeply($keep->('raise', '', 0), [ 'missing', 0 ], 'F-D2: raise never makes it');
    is($redis->exists($control), 0, '... it is not there');
    my $now = $s->now_ms;
    my $made = $keep->('make', $key, 0);
    is($made->[0], 'made', 'make does');
    cmp_ok($redis->hget($control, 'rev'), '>=', $now, '... with a rev of the clock');
    is($redis->hget($control, 'token_key'), $key, '... and the key');
    is_deeply($keep->('make', 'cd' x 32, 0), [ 'there', 0 ], 'again');
    is($redis->hget($control, 'token_key'), $key, '... changes nothing');
    is($keep->('raise', '', 0)->[1], $made->[1] + 1, 'raise: one more');
    is($keep->('raise', '', 4102444800000)->[1], 4102444800000, '... or to what is wanted at least');
    $redis->hdel($control, 'token_key');
    $keep->('make', $key, 0);
    is($redis->hget($control, 'token_key'), $key, 'a key that is missing is added');
    $redis->del($control);
    $redis->hset($control, state => 'closed');
    is($keep->('make', $key, 0)->[0], 'made', 'without a rev it is none');
    is($redis->hget($control, 'state'), 'closed', '... the switch stays');
    $s->refused(sub { $keep->(@{$_}) }, qr/SECKILL control_keep takes/, 'bad arguments')
        for [], ['raise'], [ 'x', '', 0 ], [ 'make', 'x', 0 ], [ 'make', 'x' x 64, 0 ], [ 'raise', '', 'x' ];
};

subtest 'mend' => sub {
    $redis->flushdb;
    my $mend = sub { scalar $s->call('mend', [ $facts, $buyers ], @_) };
    $s->refused(sub { $mend->(1) }, qr/SECKILL facts/, 'no facts');
    $s->sale(1);
    $s->buy(1, 1, 2, 3);
    $redis->hset($facts, buyers_extra => 0);
    is($mend->(2, 3), 0, 'those who are there');
    $redis->srem($buyers, 2);
    is($mend->(2), 1, 'one whom Redis forgot');
    is($redis->hget($facts, 'buyers_extra'), 0, '... was counted in seq');
    is($mend->(77, '18446744073709551615'), 2, 'two of an older life');
    is($redis->hget($facts, 'buyers_extra'), 2, '... are counted beside it');
    $redis->hdel($facts, 'buyers_extra');
    is($mend->(78), 1, 'facts of 0.1.0');
    is($redis->hget($facts, 'buyers_extra'), undef, '... have no such field');
    my $before = $s->dump_all;
    $s->refused(sub { $mend->(@{$_}) }, qr/SECKILL/, 'bad arguments') for [], ['x'], [ 1, '007' ], ['18446744073709551616'];
    is($s->dump_all, $before, '... and nothing is written');
};

subtest 'held' => sub {
    $redis->flushdb;
    my $held = sub { scalar $s->call('held', [$orders], 'seckilld', @_) };
    $s->sale(1);
    $s->buy(1, 1, 2, 3);
    my @e = $s->entries(1);
    my @args = map { ($_->{id}, @{$_}{qw(user epoch seq)}) } @e;
    is($held->(@args), '000', 'unread: nobody holds it');
    $redis->xreadgroup('GROUP', 'seckilld', 'n', 'COUNT', 2, 'STREAMS', $orders, '>');
    my $before = $s->dump_all;
    is($held->(@args), '110', 'pending ones are held');
    is($held->($e[0]{id}, 9, 1, 1), '0', 'the same id, another user');
    is($held->($e[0]{id}, 1, 2, 1), '0', '... another epoch');
    is($held->($e[0]{id}, 1, 1, 2), '0', '... another seq');
    is($held->('1-1', 1, 1, 1), '0', 'an id that is not there');
    is($s->dump_all, $before, 'nothing is written');
    $redis->xdel($orders, $e[0]{id});
    is($held->(@args), '010', 'pending, and deleted from the stream');
    $redis->xack($orders, 'seckilld', $e[1]{id});
    is($held->(@args), '000', 'acknowledged');
    $s->refused(sub { $held->(@{$_}) }, qr/SECKILL held takes/, 'bad arguments') for [], ['1-1'], [ '1-1', 1, 1 ];
    $redis->xgroup('DESTROY', $orders, 'seckilld');
    $s->refused(sub { $held->(@args) }, qr/NOGROUP/, 'without a group');
};

done_testing();
