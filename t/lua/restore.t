# lua/pause.lua, lua/clear.lua, lua/restore.lua and lua/books.lua: a sale that lost
# data stops, goes, and comes back whole.

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

sub pause   { return scalar $s->call('pause', [$facts], @_) }
sub clear   { return scalar $s->call('clear', [@keys], @_) }
sub restore { return scalar $s->call('restore', [@keys], @_) }

subtest 'pause' => sub {
    is_deeply(pause(1, 5), [ 'missing', 0, 0, 0 ], 'no facts');
    $s->sale(1);
    $s->buy(1, 1, 2, 3);
    my $before = $s->dump_all;
    is_deeply(pause(1, 3), [ 'fine', 1, 1, 3 ], 'seq is what was seen');
    is_deeply(pause(1, 2), [ 'fine', 1, 1, 3 ], 'seq is more than was seen');
    is_deeply(pause(0, 99), [ 'fine', 1, 1, 3 ], 'another, later epoch');
    is($s->dump_all, $before, '... and nothing is written');

    is_deeply(pause(1, 4), [ 'paused', 1, 2, 3 ], 'seq fell behind');
    is($redis->hget($facts, 'state'), 'paused', '... the sale is paused');
    is($s->verdicts(1, 9), '7', '... and sells nothing');
    is_deeply(pause(1, 4), [ 'stopped', 1, 2, 3 ], '... once');
    $redis->hset($facts, state => 'open');
    is_deeply(pause(2, 0), [ 'paused', 1, 3, 3 ], 'so did the epoch');

    for my $state (qw(closed settled)) {
        $redis->hset($facts, state => $state);
        is(pause(1, 4)->[0], 'stopped', "a $state sale is not paused");
        is($redis->hget($facts, 'state'), $state, '... and stays so');
    }
    $s->refused(sub { pause(@{$_}) }, qr/SECKILL pause takes/, 'bad arguments') for [], [1], [ 'x', 1 ], [ 1, -1 ];
    $redis->hdel($facts, 'seq');
    $s->refused(sub { pause(1, 4) }, qr/SECKILL facts/, 'damaged facts');
};

subtest 'clear' => sub {
    $redis->flushdb;
    $s->sale(1, rev => 7);
    $s->buy(1, 1, 2);
    $redis->set('other', 1);

    my $untouched = sub {
        my ($status, $name, @argv) = @_;
        my $before = $s->dump_all;
        is(clear(@argv)->[0], $status, $name);
        is($s->dump_all, $before, '... nothing is touched');
    };
    $untouched->('healthy', 'open, and nothing is missing', 1, 2);
    $untouched->('busy', 'unread purchases', 1, 3);
    $redis->hset($facts, state => 'paused');
    $untouched->('busy', 'a paused sale with unread purchases', 1, 2);
    $redis->xreadgroup('GROUP', 'seckilld', 'n', 'COUNT', 9, 'STREAMS', $orders, '>');
    $untouched->('busy', 'pending purchases', 1, 2);
    $redis->xack($orders, 'seckilld', map { $_->{id} } $s->entries(1));
    $redis->hset($facts, state => 'settled');
    $untouched->('settled', 'a settled sale', 1, 2);
    $redis->hset($facts, state => 'paused');
    $redis->xgroup('DESTROY', $orders, 'seckilld');
    $untouched->('busy', 'a stream without a group is unread', 1, 2);
    $redis->xgroup('CREATE', $orders, 'seckilld', '$');

    is_deeply(clear(1, 2), [ 'cleared', 7, 'paused' ], 'paused and drained');
    is_deeply([ sort $redis->keys('*') ], [ 'other', $facts, $orders ],
              '... stream and facts stay, the rest goes');
    is($redis->hget($facts, 'state'), 'paused', '... and nothing is sold');
    is_deeply(clear(1, 2), [ 'cleared', 7, 'paused' ], 'again is fine');

    $s->refused(sub { clear(@{$_}) }, qr/SECKILL clear takes/, 'bad arguments') for [], [1], [ 1, 'x' ];
    $redis->set($buyers, 'x');
    $s->refused(sub { clear(1, 2) }, qr/WRONGTYPE/, 'buyers of another type');
};

subtest 'restore' => sub {
    $redis->flushdb;
    my @facts = (5, '9.90', 100, 1000, 4102444800000, 2, 0, 3, 'open', 10, 4);

    $s->refused(sub { restore(@facts, 60, 2, 8) }, qr/SECKILL order_users does not hold/, 'buyers are missing');
    $redis->sadd($buyers, 1, 2);
    my $now = $s->now_ms;
    my ($rev, $now_ms) = @{ restore(@facts, 60, 2, 8) };
    cmp_ok($rev, '>=', $now, 'rev is taken from the clock');
    my %facts = $redis->hgetall($facts);
    is_deeply(\%facts, { product_id => 5, price => '9.90', stock_limit => 100, start_ms => 1000,
        end_ms => 4102444800000, max_quantity => 2, eligible => 0, epoch => 3, state => 'open',
        restocked => 10, released => 4, seq => 0, rev => $rev }, 'the facts are whole');
    is($redis->get($stock), 60, '... the stock');
    is_deeply([ map { my %g = @{$_}; $g{'last-delivered-id'} } $redis->xinfo('GROUPS', $orders) ],
        ['0-0'], '... stream and group');
    is($s->verdicts(1, 1, 3), '21', '... it sells');

    $s->refused(sub { restore(@facts, 60, 2, 8) }, qr/SECKILL the sale is there/, 'a sale that is there');
    $redis->del($facts, $stock);
    is((restore(@facts, 60, 3, 4102444800000))->[0], 4102444800000, 'a rev that is later than the clock');
    is($redis->xlen($orders), 1, 'a stream that is there stays');

    $redis->del($facts, $stock);
    for my $i (0, 2 .. 7, 9 .. 13) {
        my @argv = (@facts, 60, 3, 8);
        $argv[$i] = 'x';
        $s->refused(sub { restore(@argv) }, qr/SECKILL/, "argument $i is bad");
    }
    $s->refused(sub { restore(@facts[ 0 .. 7 ], 'paused', 10, 4, 60, 3, 8) }, qr/SECKILL eligible or state/, 'a paused sale');
    $s->refused(sub { restore(@facts, 101, 3, 8) }, qr/SECKILL more units/, 'more left than the limit');
    $s->refused(sub { restore(@facts) }, qr/SECKILL restore takes/, 'too few arguments');
    $redis->config('SET', 'maxmemory', 1);
    $s->refused(sub { restore(@facts, 60, 3, 8) }, qr/OOM/, 'out of memory');
    $redis->config('SET', 'maxmemory', 0);
    $redis->del($orders);
    $redis->set($orders, 'x');
    $s->refused(sub { restore(@facts, 60, 3, 8) }, qr/WRONGTYPE/, 'a stream of another type');
};

subtest 'books' => sub {
    $redis->flushdb;
    my $books = sub { scalar $s->call('books', [ $facts, $stock, $orders ]) };
    is_deeply([ @{ $books->() }[ 1 .. 5 ] ], [ [], '', '', '', '' ], 'nothing is there');
    $s->sale(1);
    $s->buy(1, 1, 2, 3);
    my @entries = $s->entries(1);
    my (undef, $all, @rest) = @{ $books->() };
    my %all = @{$all};
    is($all{seq}, 3, 'the facts');
    is_deeply(\@rest, [ 7, $entries[2]{id}, '0-0', 0 ], '... stock, last entry, nothing delivered');
    $redis->xreadgroup('GROUP', 'seckilld', 'n', 'COUNT', 2, 'STREAMS', $orders, '>');
    is_deeply([ @{ $books->() }[ 2 .. 5 ] ], [ 7, $entries[2]{id}, $entries[1]{id}, 2 ], 'two are delivered');
    my $before = $s->dump_all;
    $books->();
    is($s->dump_all, $before, 'nothing is written');
};

done_testing();
