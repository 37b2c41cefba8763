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

sub replay { return scalar $s->call('replay', [@keys], 1, $head, 1795968000000, 0, @_) }

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

    $s->refused(sub { $s->call('replay', [@keys], 1, $head, 5, 2, fresh(1, 0)) }, qr/SECKILL activity/, 'a bad raise');

    # F-B4: the last call of all
    my $rev = $redis->hget($facts, 'rev');
    is($s->call('replay', [@keys], 1, $head, 5, 1), '', 'no purchase');
    is($redis->hget($facts, 'rev'), $rev + 1, '... raises rev');

    my $sane = sub { replay(fresh(2, 0)) };
    for my $case (
        [ [ fresh(1, 0), 1 ], qr/SECKILL replay takes/ ],
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
    $s->refused(sub { $s->call('replay', [@keys], 1, 'head', 5, 0, fresh(1, 0)) }, qr/SECKILL activity/, 'a bad head');
    $s->refused(sub { $s->call('replay', [ @keys[ 0 .. 2 ] ], 1, $head, 5, 0, fresh(1, 0)) },
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

subtest 'buyers_extra stays SCARD - seq' => sub {
    $redis->flushdb;
    $s->sale(1, stock => 9, max_quantity => 3);
    $s->buy(1, 1, 2);
    my $extra = sub { return $redis->scard($buyers) - $redis->hget($facts, 'seq') };

    $redis->hdel($facts, 'buyers_extra');
    replay(fresh(3, 1));
    is($redis->hget($facts, 'buyers_extra'), undef, 'a sale of 0.1.0 has none, and gets none');

    $redis->hset($facts, buyers_extra => $extra->());
    for my $case ([ 'known, taken', known(1, 0) ], [ 'known, forgotten', known(4, 1) ], [ 'fresh, taken', fresh(2, 0) ],
        [ 'fresh, forgotten', fresh(5, 1) ], [ 'several', fresh(6, 1), known(7, 1), fresh(1, 0), fresh(99, 0) ])
    {
        my ($name, @purchases) = @{$case};
        replay(@purchases);
        is($redis->hget($facts, 'buyers_extra'), $extra->(), $name);
    }
    $redis->hset($facts, buyers_extra => 'x');
    $s->refused(sub { replay(fresh(2, 0)) }, qr/SECKILL buyers_extra/, 'a damaged one is refused');
};

subtest 'F-E1: a stream that takes nothing leaves nothing half' => sub {
    $redis->flushdb;
    $s->sale(1, stock => 9);
    $s->buy(1, 1);
    $redis->hset($facts, buyers_extra => 0);
    $redis->xadd($orders, '18446744073709551615-18446744073709551614', 'v', 1);
    my $before = join ' ', $redis->get($stock), $redis->scard($buyers), map { $redis->hget($facts, $_) } qw(seq buyers_extra);
    is(replay(fresh(2, 1), fresh(3, 1), known(1, 0)), '144', 'one id is left: one queued, the others not');
    is($redis->get($stock), 7, '... one unit is taken');
    is($redis->sismember($buyers, 2), 1, '... by the one');
    is($redis->sismember($buyers, 3), 0, '... the other is no buyer');
    is($redis->hget($facts, 'seq'), 2, '... one seq is taken');
    is($redis->hget($facts, 'buyers_extra'), $redis->scard($buyers) - 2, '... and the buyers are counted');
    $before = join ' ', $redis->get($stock), $redis->scard($buyers), map { $redis->hget($facts, $_) } qw(seq buyers_extra);
    is(replay(fresh(3, 1), fresh(4, 1)), '44', 'no id is left: nothing');
    is(join(' ', $redis->get($stock), $redis->scard($buyers), map { $redis->hget($facts, $_) } qw(seq buyers_extra)), $before,
        '... nothing has changed');
};

# retry(letter, user, fresh, take)
sub retry {
    my ($letter, $user, @flags) = @_;
    return scalar $s->call('dead_retry', [ $facts, $stock, $buyers, $orders, $dead, $result ],
        $letter, $user, $flags[0] // 0, $flags[1] // 0);
}

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

# a letter of user 7 with this purchase; returns its id
sub letter {
    my ($entry, %change) = @_;
    my %purchase = (%{$entry}, %change);
    delete $purchase{id};
    return $redis->xadd($dead, '*', reason => 'seq_conflict', %purchase);
}

subtest 'F-C5: dead_retry with a number of its own' => sub {
    $redis->flushdb;
    $s->sale(1);
    $s->buy(1, 5, 7, 8);
    $redis->hset($facts, epoch => 4, buyers_extra => 0);
    my $entry = ($s->entries(1))[1];
    my $letter = letter($entry);

    is(retry($letter, 7, 1, 0)->[0], 'queued', 'queued');
    my $new = ($s->entries(1))[-1];
    is_deeply([ @{$new}{qw(epoch seq)} ], [ 4, 4 ], '... with the epoch of the sale and its next seq');
    is($redis->hget($facts, 'seq'), 4, '... which the sale has given');
    is($new->{order_no}, substr($entry->{order_no}, 0, 21) . '0000004' . substr($entry->{order_no}, 28),
        '... and an order number of that seq');
    is_deeply([ @{$new}{qw(user quantity accepted_ms request_id ext)} ],
        [ @{$entry}{qw(user quantity accepted_ms request_id ext)} ], '... and all the rest as it was');
    is($redis->get($stock), 7, 'its unit was taken when it was accepted: none is taken again');
    is($redis->hget($facts, 'buyers_extra'), -1, 'one number more than buyers');
    is($redis->scard($buyers) - 4, -1, '... as it is');

    # one who is not in order_users takes the empty place, or a new one
    $letter = letter($entry);
    $redis->srem($buyers, 7);
    retry($letter, 7, 1, 0);
    is($redis->hget($facts, 'buyers_extra'), -2, 'a buyer whom Redis forgot takes the empty place');
    is($redis->scard($buyers), 3, '... and is there again');
    $redis->hset($facts, seq => 5, buyers_extra => -2);
    $letter = letter($entry, user => 77, order_no => substr($entry->{order_no}, 0, 28) . '0077');
    is(scalar $s->call('dead_retry', [ $facts, $stock, $buyers, $orders, $dead, $result ], $letter, 77, 0, 0)->[0],
        'queued', 'one who never was there, with its own number');
    is($redis->hget($facts, 'buyers_extra'), -1, '... is one buyer more than numbers');

    $redis->hdel($facts, 'buyers_extra');
    $letter = letter($entry);
    retry($letter, 7, 1, 0);
    is($redis->hexists($facts, 'buyers_extra'), 0, 'a sale of 0.1.0 is not judged');

    # ids are never numbers
    my $big = '18446744073709551615';
    $letter = letter($entry, user => $big, order_no => '2' x 28 . '1615');
    $s->call('dead_retry', [ $facts, $stock, $buyers, $orders, $dead, $result ], $letter, $big, 1, 0);
    $new = ($s->entries(1))[-1];
    is($new->{user}, $big, 'a user id of 20 digits');
    like($new->{order_no}, qr/^2{21}\d{7}1615$/, '... keeps its digits');
    is($redis->sismember($buyers, $big), 1, '... in order_users too');
};

subtest 'dead_retry: units that nobody keeps for it are taken from those left' => sub {
    $redis->flushdb;
    $s->sale(1, max_quantity => 5);
    $s->buy(1, [ 7, 3 ]);
    my $entry = ($s->entries(1))[0];

    is(retry(letter($entry), 7, 0, 1)->[0], 'queued', 'queued');
    is($redis->get($stock), 4, '... and three of seven are taken');
    retry(letter($entry), 7, 0, 1);
    my $letter = letter($entry);
    my $before = $s->dump_all;
    is_deeply(retry($letter, 7, 0, 1), [ 'none', '' ], 'one unit is not three');
    is($s->dump_all, $before, '... and nothing changes');

    $s->refused(sub { retry($letter, 7, 2, 0) }, qr/SECKILL dead_retry takes/, 'a flag that is none');
    $letter = letter($entry, order_no => '7');
    $s->refused(sub { retry($letter, 7, 1, 0) }, qr/SECKILL the letter's order_no/, 'an order_no that is none');
    $letter = letter($entry, quantity => 'x');
    $s->refused(sub { retry($letter, 7, 0, 1) }, qr/SECKILL the letter's quantity/, 'a quantity that is none');
    $letter = letter($entry);
    $redis->hset($facts, buyers_extra => 'x');
    $s->refused(sub { retry($letter, 7, 1, 0) }, qr/SECKILL facts/, 'damaged facts');
    $redis->hset($facts, buyers_extra => 0);
    $redis->rename($buyers, 'away');
    $redis->set($buyers, 1);
    $s->refused(sub { retry($letter, 7, 1, 0) }, qr/WRONGTYPE/, 'buyers of another type');
    $redis->rename('away', $buyers);

    # F-E1: the stream is at its last id
    $redis->xadd($orders, '18446744073709551615-18446744073709551615', v => 1);
    $s->refused(sub { retry($letter, 7, 1, 0) }, qr/ID|exhausted/i, 'no id is left: nothing is taken');

    # Redis 6 does not tell scripts of rights
    if ($redis->info('server')->{redis_version} !~ /^6\./) {
        $redis->acl('SETUSER', 'half', 'on', '>half', '~*', '&*', '+@all', '-hset');
        my $own = $s->{client};
        $s->{client} = $s->connect_as('half', 'half');
        $s->refused(sub { retry($letter, 7, 1, 0) }, qr/NOPERM dead_retry/, 'half of the rights');
        $s->{client} = $own;
    }
};

done_testing();
