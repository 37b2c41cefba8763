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

my @keys = ScriptTest::keys_of('admit', 1);
my ($facts, $stock, $buyers, $orders, $eligible) = @keys;
my $dead = ScriptTest::key('dead', 1);

sub pause   { return scalar $s->call('pause', [@keys], @_) }
sub clear   { return scalar $s->call('clear', [ @keys, $dead ], @_) }
sub restore { return scalar $s->call('restore', [ @keys[ 0 .. 3 ] ], @_) }
sub words   { return join ' ', @{ $_[0] }[ 0, 4 ] }

subtest 'pause' => sub {
    is_deeply(pause(1, 5, 0), [ 'missing', 0, 0, 0, 'facts', '', 0, 0, 0 ], 'no facts');
    $s->sale(1);
    $s->buy(1, 1, 2, 3);
    my $end = $redis->hget($facts, 'end_ms');
    is_deeply(pause(1, 3, 1), [ 'fine', 1, 1, 3, '', 'open', $end, 0, 0 ], 'seq is what was seen');
    is($redis->hget($facts, 'buyers_extra'), 0, '... and buyers_extra is written down, once');
    my $before = $s->dump_all;
    is_deeply([ @{ pause(1, 2, 1) }[ 0 .. 4 ] ], [ 'fine', 1, 1, 3, '' ], 'seq is more than was seen');
    is(words(pause(0, 99, 1)), 'fine ', 'another, later epoch');
    is($s->dump_all, $before, '... and nothing is written');

    is_deeply([ @{ pause(1, 4, 1) }[ 0 .. 5 ] ], [ 'paused', 1, 2, 3, 'seq', 'paused' ], 'seq fell behind');
    is($redis->hget($facts, 'state'), 'paused', '... the sale is paused');
    is($s->verdicts(1, 9), '7', '... and sells nothing');
    is(words(pause(1, 4, 1)), 'stopped seq', '... once');
    $redis->hset($facts, state => 'open');
    is_deeply([ @{ pause(2, 0, 1) }[ 0 .. 4 ] ], [ 'paused', 1, 3, 3, 'seq' ], 'so did the epoch');

    $redis->hset($facts, state => 'closed');
    is(words(pause(1, 4, 1)), 'stopped seq', 'a closed sale is not paused');
    is($redis->hget($facts, 'state'), 'closed', '... and stays so');
    $redis->hset($facts, state => 'settled', expire_ms => 77);
    is_deeply(pause(1, 4, 1), [ 'fine', 1, 3, 3, '', 'settled', $end, 77, 0 ], 'a settled sale is not judged');
    $redis->hset($facts, state => 'lost');
    is(words(pause(1, 4, 1)), 'stopped facts', 'a lost sale stays lost');
    $s->refused(sub { pause(@{$_}) }, qr/SECKILL pause takes/, 'bad arguments')
        for [], [1], [ 'x', 1, 0 ], [ 1, -1, 0 ], [ 1, 1 ], [ 1, 1, 2 ];
    $redis->hdel($facts, 'seq');
    $s->refused(sub { pause(1, 4, 1) }, qr/SECKILL facts/, 'damaged facts');
};

# F-D1: facts are whole, another key is not
subtest 'pause a sale that is not whole' => sub {
    my $again = sub {
        $redis->flushdb;
        $s->sale(1);
        $s->buy(1, 1, 2, 3);
        pause(1, 3, 1);
    };
    my %break = (
        'no stock' => [ 'stock', sub { $redis->del($stock) } ],
        'a stock that is no number' => [ 'stock', sub { $redis->set($stock, 'x') } ],
        'a stock of another type' => [ 'stock', sub { $redis->del($stock); $redis->sadd($stock, 1) } ],
        'no buyers' => [ 'order_users', sub { $redis->del($buyers) } ],
        'a buyer less' => [ 'order_users', sub { $redis->srem($buyers, 2) } ],
        'no stream' => [ 'orders', sub { $redis->del($orders) } ],
        'a stream at its last id' => [ 'orders', sub {
            $redis->xadd($orders, '18446744073709551615-18446744073709551615', user => 9) } ],
        'more than one' => [ 'stock,order_users,orders', sub { $redis->del($stock, $buyers, $orders) } ],
    );
    for my $name (sort keys %break) {
        $again->();
        $break{$name}[1]->();
        is(words(pause(1, 3, 1)), "paused $break{$name}[0]", $name);
        is($redis->hget($facts, 'state'), 'paused', '... pauses it');
        is(words(pause(1, 3, 1)), "stopped $break{$name}[0]", '... once');
    }

    $again->();
    $redis->sadd($buyers, 77);
    is_deeply([ @{ pause(1, 3, 1) }[ 0, 4, 8 ] ], [ 'fine', '', 1 ], 'a buyer more is told, and no loss');
    is($redis->hget($facts, 'state'), 'open', '... it goes on');

    # 0.1.0 wrote no buyers_extra
    $again->();
    $redis->hdel($facts, 'buyers_extra');
    $redis->srem($buyers, 2);
    is(words(pause(1, 3, 1)), 'fine ', 'without buyers_extra a missing buyer is not seen');
    is($redis->hget($facts, 'buyers_extra'), -1, '... but the next one would be');
    $redis->hdel($facts, 'buyers_extra');
    $redis->del($buyers);
    is(words(pause(1, 3, 1)), 'paused order_users', '... and the whole set is');
    is($redis->hget($facts, 'buyers_extra'), undef, '... nothing is written down then');
    $redis->flushdb;
    $s->sale(1);
    is(words(pause(1, 0, 0)), 'fine ', 'nobody bought: no set is no loss');
    $redis->hdel($facts, 'buyers_extra');
    is(words(pause(1, 0, 1)), 'paused order_users', '... unless MySQL has orders');
};

subtest 'registered users' => sub {
    $redis->flushdb;
    $s->sale(1, eligible => 1);
    is(words(pause(1, 0, 0)), 'fine ', 'not loaded yet');
    $redis->sadd($eligible, 1 .. 3);
    is(words(pause(1, 0, 0)), 'fine ', 'loaded');
    is($redis->hget($facts, 'eligible_had'), 1, '... which is written down');
    $redis->del($eligible);
    is(words(pause(1, 0, 0)), 'waiting eligible', 'gone');
    is($redis->hget($facts, 'state'), 'open', '... for the shop to load them, nothing else');
    is(clear('look', 1, 0, 0, '')->[0], 'eligible', '... a restore says so too');
    $redis->sadd($eligible, 1 .. 3);
    is(words(pause(1, 0, 0)), 'fine ', '... and it goes on');
};

subtest 'clear' => sub {
    $redis->flushdb;
    $s->sale(1, rev => 7);
    $s->buy(1, 1, 2);
    $redis->set('other', 1);

    my $untouched = sub {
        my ($status, $name, @argv) = @_;
        for my $how (qw(look clear)) {
            my $before = $s->dump_all;
            is(clear($how, @argv, 1, '')->[0], $status, "$name: $how");
            is($s->dump_all, $before, '... nothing is touched');
        }
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

    # what was looked at must still be what is there
    my $before = $s->dump_all;
    my $mark = clear('look', 1, 2, 1, '')->[3];
    is($s->dump_all, $before, 'a look writes nothing');
    my $letter = $redis->xadd($dead, '*', user => 1);
    $before = $s->dump_all;
    is(clear('clear', 1, 2, 1, $mark)->[0], 'moved', 'a dead letter more since the look');
    is($s->dump_all, $before, '... nothing is touched');
    $redis->del($dead);

    is_deeply([ @{ clear('clear', 1, 2, 1, $mark) }[ 0 .. 2 ] ], [ 'cleared', 7, 'paused' ], 'paused and drained');
    is_deeply([ sort $redis->keys('*') ], [ 'other', $facts, $orders ],
              '... stream and facts stay, the rest goes');
    is($redis->hget($facts, 'state'), 'paused', '... and nothing is sold');
    is_deeply([ @{ clear('clear', 1, 2, 1, '') }[ 0 .. 2 ] ], [ 'cleared', 7, 'paused' ], 'again is fine');

    # F-D3: a closed sale says "paused" as well while it is rebuilt, and is closed again after it
    $redis->hset($facts, state => 'closed');
    is(clear('clear', 1, 2, 1, '')->[2], 'closed', 'a closed sale');
    is($redis->hget($facts, 'state'), 'paused', '... is paused meanwhile');
    is(clear('clear', 1, 2, 1, '')->[2], 'closed', '... and known as closed to a second run');
    $redis->hdel($facts, 'was');

    $s->refused(sub { clear(@{$_}) }, qr/SECKILL clear takes/, 'bad arguments')
        for [], [ 'look', 1, 2, 1 ], [ 'x', 1, 2, 1, '' ], [ 'look', 1, 'x', 1, '' ], [ 'look', 1, 2, 3, '' ];
    $redis->set($buyers, 'x');
    $s->refused(sub { clear('look', 1, 2, 1, '') }, qr/WRONGTYPE/, 'buyers of another type');
};

# F-D1: open and not whole is no healthy sale
subtest 'clear a sale that is not whole' => sub {
    my %break = (
        'no stock' => sub { $redis->del($stock) },
        'no buyers' => sub { $redis->del($buyers) },
        'a buyer less' => sub { $redis->srem($buyers, 2) },
        'no stream' => sub { $redis->del($orders) },
        'a stream at its last id' => sub {
            my $id = $redis->xadd($orders, '18446744073709551615-18446744073709551615', user => 9);
            $redis->xreadgroup('GROUP', 'seckilld', 'n', 'COUNT', 9, 'STREAMS', $orders, '>');
            $redis->xack($orders, 'seckilld', $id);
        },
    );
    for my $name (sort keys %break) {
        $redis->flushdb;
        $s->sale(1);
        $s->buy(1, 1, 2);
        pause(1, 2, 1);
        $redis->xreadgroup('GROUP', 'seckilld', 'n', 'COUNT', 9, 'STREAMS', $orders, '>');
        $redis->xack($orders, 'seckilld', map { $_->{id} } $s->entries(1));
        $break{$name}->();
        is(clear('look', 1, 2, 1, '')->[0], 'ready', "$name: may be rebuilt");
        is(clear('clear', 1, 2, 1, '')->[0], 'cleared', '... and is');
        is($redis->exists($orders), $name =~ /stream/ ? 0 : 1, '... only a stream that is worn out goes');
    }
};

subtest 'restore' => sub {
    $redis->flushdb;
    my @facts = (5, '9.90', 100, 1000, 4102444800000, 2, 0, 3, 'open', 10, 4);

    $s->refused(sub { restore(@facts, 60, 2, 8, 0) }, qr/SECKILL order_users does not hold/, 'buyers are missing');
    $redis->sadd($buyers, 1, 2);
    my $now = $s->now_ms;
    my ($rev, $now_ms) = @{ restore(@facts, 60, 2, 8, 0) };
    cmp_ok($rev, '>=', $now, 'rev is taken from the clock');
    my %facts = $redis->hgetall($facts);
    is_deeply(\%facts, { product_id => 5, price => '9.90', stock_limit => 100, start_ms => 1000,
        end_ms => 4102444800000, max_quantity => 2, eligible => 0, epoch => 3, state => 'open',
        restocked => 10, released => 4, seq => 0, rev => $rev, buyers_extra => 2 }, 'the facts are whole');
    is($redis->get($stock), 60, '... the stock');
    is_deeply([ map { my %g = @{$_}; $g{'last-delivered-id'} } $redis->xinfo('GROUPS', $orders) ],
        ['0-0'], '... stream and group');
    is($s->verdicts(1, 1, 3), '21', '... it sells');

    $s->refused(sub { restore(@facts, 60, 2, 8, 0) }, qr/SECKILL the sale is there/, 'a sale that is there');
    $redis->del($facts, $stock);
    is((restore(@facts, 60, 3, 4102444800000, 0))->[0], 4102444800000, 'a rev that is later than the clock');
    is($redis->xlen($orders), 1, 'a stream that is there stays');

    $redis->del($facts, $stock);
    for my $i (0, 2 .. 7, 9 .. 14) {
        my @argv = (@facts, 60, 3, 8, 0);
        $argv[$i] = 'x';
        $s->refused(sub { restore(@argv) }, qr/SECKILL/, "argument $i is bad");
    }
    $s->refused(sub { restore(@facts[ 0 .. 7 ], 'paused', 10, 4, 60, 3, 8, 0) }, qr/SECKILL eligible or state/, 'a paused sale');
    $s->refused(sub { restore(@facts, 101, 3, 8, 0) }, qr/SECKILL more units/, 'more left than the limit');
    $s->refused(sub { restore(@facts) }, qr/SECKILL restore takes/, 'too few arguments');
    # ids of a stream that is made anew never go back
    $redis->del($facts, $stock, $orders);
    restore(@facts, 60, 3, 8, 4102444800000);
    is($redis->xadd($orders, '*', a => 1), '4102444800001-1', 'a new stream goes on behind the old one');
    $redis->del($facts, $stock, $orders);
    restore(@facts, 60, 3, 8, 0);
    cmp_ok((split /-/, $redis->xadd($orders, '*', a => 1))[0], '>=', $now, '... and behind the clock');
    $redis->del($facts, $stock);
    $redis->hset($facts, state => 'lost', seq => 0);
    restore(@facts[ 0 .. 5 ], 1, @facts[ 7 .. 10 ], 60, 3, 8, 0);
    is($redis->hget($facts, 'state'), 'open', 'lost facts are replaced');
    is($redis->hget($facts, 'eligible_had'), 1, '... and registered users are needed');
    is(words(pause(3, 0, 1)), 'waiting eligible', '... whom the shop must load');
    $redis->del($facts, $stock);

    $redis->config('SET', 'maxmemory', 1);
    $s->refused(sub { restore(@facts, 60, 3, 8, 0) }, qr/OOM/, 'out of memory');
    $redis->config('SET', 'maxmemory', 0);
    $redis->del($orders);
    $redis->set($orders, 'x');
    $s->refused(sub { restore(@facts, 60, 3, 8, 0) }, qr/WRONGTYPE/, 'a stream of another type');
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
