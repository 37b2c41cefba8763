# lua/restock.lua and lua/release.lua: units are added up to a total, so that a
# repeat adds nothing.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my ($facts, $stock, $buyers, $orders) = ScriptTest::keys_of('preheat', 1);
my $dead    = ScriptTest::key('dead', 1);
my $channel = ScriptTest::key('results', 1);
my $failure = '{"success":false,"reason":"released"}';
my $success = '{"success":true,"order_id":7,"order_no":"26112915000012300000100000010001"}';

sub result  { return ScriptTest::key("result:$_[0]", 1) }
sub fact    { return $redis->hget($facts, $_[0]) }
sub restock { return scalar $s->call('restock', [ $facts, $stock ], @_) }

# release(epoch, total, [user, letter] ...)
sub release {
    my ($epoch, $total, @users) = @_;
    return $s->call('release', [ $facts, $stock, $buyers, $dead, map { result($_->[0]) } @users ],
        $epoch, $total, $channel, $failure, map { @{$_} } @users);
}

# what every script refuses in the same way, with nothing written
sub refuses_trouble {
    my ($call) = @_;

    $redis->config('SET', 'maxmemory', 1);
    $s->refused($call, qr/OOM/, 'out of memory');
    $redis->config('SET', 'maxmemory', 0);

    $redis->replicaof('127.0.0.1', $s->t->port);
    $s->refused($call, qr/READONLY/, 'a replica');
    $redis->replicaof('NO', 'ONE');

    $redis->rename($stock, 'away');
    $s->refused($call, qr/SECKILL stock/, 'no stock');
    $redis->set($stock, 'abc');
    $s->refused($call, qr/SECKILL stock/, 'a stock that is no number');
    $redis->rename('away', $stock);

    $redis->rename($facts, 'away');
    $s->refused($call, qr/SECKILL facts/, 'no facts');
    $redis->set($facts, 'x');
    $s->refused($call, qr/WRONGTYPE/, 'facts of another type');
    $redis->rename('away', $facts);

    my $rev = fact('rev');
    $redis->hset($facts, rev => 'x');
    $s->refused($call, qr/SECKILL facts/, 'damaged facts');
    $redis->hset($facts, rev => $rev, epoch => 2);
    $s->refused($call, qr/SECKILL the epoch/, 'another epoch');
    $redis->hset($facts, epoch => 1, state => 'settled');
    $s->refused($call, qr/SECKILL the sale is settled/, 'a settled sale');
    $redis->hset($facts, state => 'open');
    return;
}

subtest 'restock' => sub {
    $s->sale(1, stock => 10);
    $s->buy(1, 1, 2);
    refuses_trouble(sub { restock(1, 15, 5) });

    is_deeply(restock(1, 15, 5), [ 'added', 2, 13, 5 ], 'the difference is added');
    is(fact('stock_limit'), 15, '... to the limit');
    is(fact('restocked'), 5, '... and remembered');
    is($redis->get($stock), 13, '... and to the stock');

    my $before = $s->dump_all;
    is_deeply(restock(1, 15, 5), [ 'unchanged', 2, 13, 0 ], 'again adds nothing');
    is($s->dump_all, $before, '... and writes nothing');
    is_deeply(restock(1, 18, 8), [ 'added', 3, 16, 3 ], 'a larger total adds the rest');

    $s->refused(sub { restock(1, 17, 7) }, qr/SECKILL the sale has more/, 'a smaller limit');
    $s->refused(sub { restock(@{$_}) }, qr/SECKILL restock takes/, "arguments (@{$_})")
        for [], [ 1, 20 ], [ 1, 20, 5, 5 ], [ 'x', 20, 5 ], [ 1, '-1', 5 ], [ 1, '020', 5 ],
        [ 1, '9' x 16, 5 ];
    $s->refused(sub { $s->call('restock', [$facts], 1, 20, 5) }, qr/SECKILL restock takes/, 'one key');

    $redis->hset($facts, state => 'paused');
    is(restock(1, 19, 9)->[0], 'added', 'a paused sale gets units too');
};

subtest 'release: units' => sub {
    $redis->flushdb;
    $s->sale(1, stock => 10);
    $s->buy(1, 1 .. 4);
    refuses_trouble(sub { release(1, 2, [ 3, '' ]) });

    is_deeply(release(1, 2), [ 2, 2, 8, 0, 0 ], 'units without users');
    is($redis->get($stock), 8, '... are in the stock');
    is(fact('released'), 2, '... and remembered');
    my $before = $s->dump_all;
    is_deeply(release(1, 2), [ 0, 2, 8, 0, 0 ], 'again adds nothing');
    is($s->dump_all, $before, '... and writes nothing');
    is_deeply(release(1, 3), [ 1, 3, 9, 0, 0 ], 'a larger total adds the rest');
    $s->refused(sub { release(1, 2) }, qr/SECKILL more units went back/, 'a smaller total');

    $redis->hset($facts, state => 'settled');
    is(release(1, 3, [ 3, '' ])->[3], 1, 'a settled sale tells users, without units');
    $redis->hset($facts, state => 'open', released => 'x');
    $s->refused(sub { release(1, 9) }, qr/SECKILL facts/, 'a damaged total');
};

subtest 'release: users' => sub {
    $redis->flushdb;
    $s->sale(1, stock => 10);
    $s->buy(1, 1, 2);
    my @letters = map { $redis->xadd($dead, '*', user => $_) } 1, 2, 3;
    $redis->set(result(1), '{"success":false,"reason":"over_limit"}', 'EX', 1000);
    $redis->set(result(2), $success);

    my $ear = $s->connect_as;
    my @heard;
    $ear->subscribe($channel, sub { push @heard, $_[0] });

    is_deeply(release(1, 0, [ 1, $letters[0] ], [ 2, '' ], [ 3, $letters[2] ]),
        [ 0, 1, 8, 2, 2 ], 'three users');
    is($redis->get(result(1)), $failure, 'a failure is told anew');
    cmp_ok($redis->ttl(result(1)), '>', 900, '... and keeps its expiry');
    is($redis->get(result(2)), $success, 'a success stays');
    is($redis->get(result(3)), $failure, 'who heard nothing hears it');
    is($redis->sismember($buyers, 3), 1, '... and has taken part');
    is_deeply([ map { $_->[0] } $redis->xrange($dead, '-', '+') ], [ $letters[1] ],
        'named letters are gone, others stay');
    is($redis->get($stock), 8, 'no unit moved');
    $ear->wait_for_messages(0.2);
    is_deeply(\@heard, [ "1 $failure", "3 $failure" ], 'what changed is published');

    my $before = $s->dump_all;
    is_deeply(release(1, 0, [ 1, $letters[0] ], [ 3, $letters[2] ]), [ 0, 1, 8, 0, 0 ], 'again');
    is($s->dump_all, $before, '... changes nothing');

    for my $bad ('0', 'x', '01', '18446744073709551616') {
        $s->refused(sub { release(1, 0, [ 5, '' ], [ $bad, '' ]) }, qr/SECKILL user/, "user \"$bad\"");
    }
    $s->refused(sub { release(1, 0, [ 5, 'x' ]) }, qr/SECKILL letter/, 'a letter that is none');
    $s->refused(sub { $s->call('release', [ $facts, $stock, $buyers, $dead ], 1, 0, $channel, $success) },
        qr/SECKILL result/, 'a success is no release');
    $s->refused(sub { $s->call('release', [ $facts, $stock, $buyers, $dead, result(1) ], 1, 0, $channel, $failure) },
        qr/SECKILL release takes/, 'a key too many');
    $redis->rename($buyers, 'away');
    $redis->set($buyers, 'x');
    $s->refused(sub { release(1, 1, [ 5, '' ]) }, qr/WRONGTYPE/, 'buyers of another type: no unit is added');
    $redis->del($buyers);
    $redis->set('there', 1);
    $redis->rename('there', $dead);
    $s->refused(sub { release(1, 1, [ 5, '' ]) }, qr/WRONGTYPE/, 'letters of another type');
};

subtest 'release: buyers_extra' => sub {
    $redis->flushdb;
    $s->sale(1, stock => 10);
    $s->buy(1, 1 .. 4);
    $redis->hset($facts, buyers_extra => 0);
    release(1, 0, [ 1, '' ], [ 2, '' ]);
    is(fact('buyers_extra'), 0, 'buyers who are there');

    $redis->srem($buyers, 3);
    release(1, 0, [ 3, '' ]);
    is(fact('buyers_extra'), 0, 'one whom Redis forgot was counted');
    is($redis->scard($buyers), 4, '... and takes the empty place');

    release(1, 0, [ 3, '' ], [ 91, '' ], [ '18446744073709551615', '' ]);
    is(fact('buyers_extra'), 2, 'two who never were there');
    is($redis->scard($buyers) - fact('seq'), 2, '... are as many more than numbers');
    is($redis->sismember($buyers, '18446744073709551615'), 1, '... one with 20 digits');

    $redis->hdel($facts, 'buyers_extra');
    release(1, 0, [ 92, '' ]);
    is(fact('buyers_extra'), undef, 'a sale of 0.1.0 is not judged');
    $redis->hset($facts, buyers_extra => '1x');
    $s->refused(sub { release(1, 0, [ 93, '' ]) }, qr/SECKILL facts/, 'damaged facts');
    $redis->hset($facts, buyers_extra => '-1');
    release(1, 0, [ 93, '' ]);
    is(fact('buyers_extra'), 4, 'below zero, and what was lost is there again');
};

subtest 'half of the rights are none' => sub {
    plan skip_all => 'Redis 6 does not tell scripts of rights' if $redis->info('server')->{redis_version} =~ /^6\./;

    $redis->flushdb;
    $s->sale(1, stock => 10);
    $redis->acl('SETUSER', 'half', 'on', '>half', '~*', '&*', '+@all', '-incrby', '-sadd');
    my $own = $s->{client};
    $s->{client} = $s->connect_as('half', 'half');
    $s->refused(sub { restock(1, 15, 5) }, qr/NOPERM restock/, 'restock');
    $s->refused(sub { release(1, 2, [ 3, '' ]) }, qr/NOPERM release/, 'release');
    $s->{client} = $own;
};

done_testing();
