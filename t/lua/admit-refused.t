# A20: when lua/admit.lua may not sell it says so and leaves Redis exactly as it was:
# scripts have no rollback, so nothing may be written before all is proved.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new(save => '900 1');
my $t     = $s->t;
my $redis = $s->client;

# what Redis 6.2, 7 and 8 say of a right that is missing
my $denied = qr/NOPERM|user executing the script can't|o permissions to/;

my ($facts, $stock, $buyers, $orders, $eligible) = ScriptTest::keys_of('admit', 1);

# a sale with a buyer, so that the buyers' key is there too
sub running {
    my (%sale) = @_;

    $redis->flushdb;
    $s->sale(1, %sale);
    $redis->sadd($eligible, 1 .. 20);
    $s->buy(1, 1);
    return;
}

sub ten { return $s->buy(1, 2 .. 11) }

# a key of this type, where another belongs
my %make = (
    string => sub { $redis->set($_[0], 'x') },
    list   => sub { $redis->rpush($_[0], 'x') },
    hash   => sub { $redis->hset($_[0], 'x', 'x') },
    set    => sub { $redis->sadd($_[0], 'x') },
    zset   => sub { $redis->zadd($_[0], 1, 'x') },
    stream => sub { $redis->xadd($_[0], '*', 'x', 'x') },
);

subtest 'keys of a wrong type' => sub {
    my %type = ($facts => 'hash', $stock => 'string', $buyers => 'set', $orders => 'stream',
                $eligible => 'set');

    for my $key (sort keys %type) {
        for my $wrong (grep { $_ ne $type{$key} } sort keys %make) {
            running(eligible => 1);
            $redis->del($key);
            $make{$wrong}->($key);
            $s->refused(\&ten, qr/WRONGTYPE/, "$key is a $wrong");
        }
    }

    running();
    $redis->del($orders);
    $redis->set($orders, 'x');
    $s->refused(\&ten, qr/WRONGTYPE/, 'the stream is a string');
    $redis->del($orders);
    $redis->xgroup('CREATE', $orders, 'seckilld', '0', 'MKSTREAM');
    is($s->verdicts(1, 2 .. 11), '1111111113', 'and sells when the key is right again');
};

subtest 'stock' => sub {
    for my $bad ('abc', '', '-1', '+5', ' 5', '5 ', "5\n", '5.0', '1e2', '0x5', 'nan', 'inf',
                 '007', '00', '1000000000000000', '99999999999999999999') {
        running();
        $redis->set($stock, $bad);
        $s->refused(\&ten, qr/SECKILL stock/, "stock \"$bad\"");
    }

    running();
    $redis->del($stock);
    $s->refused(\&ten, qr/SECKILL stock/, 'a missing stock is not "sold out"');
    is($redis->exists($stock), 0, 'and no key is made');

    running();
    $redis->set($stock, '999999999999999');
    is($s->verdicts(1, 2), '1', 'the largest stock sells');
    is($redis->get($stock), '999999999999998', 'exactly');
};

subtest 'facts' => sub {
    for my $field (qw(state start_ms end_ms max_quantity epoch rev seq)) {
        running();
        $redis->hdel($facts, $field);
        $s->refused(\&ten, qr/SECKILL facts/, "no $field");

        next if $field eq 'state';
        for my $bad ('', 'abc', '-1', '1.5', 'nan', 'inf', '1e3', '0x1', '01', '1' x 16) {
            $redis->hset($facts, $field, $bad);
            $s->refused(\&ten, qr/SECKILL facts/, "$field \"$bad\"");
        }
    }

    running();
    $redis->del($facts);
    $s->refused(\&ten, qr/SECKILL facts/, 'no facts at all');
    $redis->flushdb;
    $s->refused(\&ten, qr/SECKILL facts/, 'an empty Redis');
    is($redis->dbsize, 0, 'stays empty');
};

subtest 'arguments' => sub {
    my @keys = ScriptTest::keys_of('admit', 1);
    my @one  = (2, 1, 'r', '');

    running();
    my @head = (1, 1, 0, 0);
    for my $argv ([], [1], [1, 1], [1, 1, 0], [@head], [@head, 2], [@head, 2, 1, 'r'], [@head, @one, 3],
                  [@head, @one, @one], [1, 0, 0, 0], [1, 2, 0, 0, @one], [1, -1, 0, 0], [1, 1.5, 0, 0, @one],
                  [1, 'x', 0, 0, @one], [1, '', 0, 0, @one], [1, 1, 2, 0, @one], [1, 1, 2, 0, @one, 1],
                  [1, 1, 0, 2, @one, 1, 1], [1, 1, 1, 0, @one, 1], [1, 1, 4, 0, @one, 1, 1, 1, 1],
                  [1, 1, '', 0, @one], [1, 1, 0, 'x', @one], [@head, @one, 1, 1]) {
        $s->refused(sub { $s->call('admit', \@keys, @{$argv}) }, qr/SECKILL admit takes/,
            "arguments @{$argv}");
    }
    for my $mark (['x', 1], [1, '01'], ['', 1], [1, -1]) {
        $s->refused(sub { $s->call('admit', \@keys, 1, 1, 2, 0, @one, @{$mark}) },
            qr/SECKILL what the caller remembers/, "remembering @{$mark}");
    }
    for my $n (0 .. 4) {
        $s->refused(sub { $s->call('admit', [@keys[0 .. $n - 1]], @head, @one) },
            qr/SECKILL admit takes/, "$n keys");
    }
    is($s->call('admit', \@keys, @head, @one)->[5], '1', 'the right ones are not refused');
};

subtest 'out of memory' => sub {
    running();
    $redis->config('SET', 'maxmemory', 1);
    $s->refused(sub { $s->buy(1, $_) }, qr/OOM/, "user $_ is told there is no memory") for 2 .. 51;
    $s->refused(\&ten, qr/OOM/, 'and so is a batch');
    $redis->config('SET', 'maxmemory', 0);
    is($s->verdicts(1, 2 .. 51), '1' x 9 . '3' x 41, 'with memory it sells');

    $redis->config('SET', 'maxmemory', 1);
    is($s->verdicts(1, 90, 2), '32', '"sold out" and "repeat" need no memory then');
    $redis->config('SET', 'maxmemory', 0);
};

subtest 'saving fails' => sub {
    running();
    my $file = $t->dir . '/redis/dump.rdb';
    unlink $file;
    mkdir $file or die "mkdir $file: $!";
    $redis->bgsave;
    $t->wait_for(sub { $redis->info('persistence')->{rdb_last_bgsave_status} eq 'err' }, 10,
        'a failed save');
    $s->refused(\&ten, qr/MISCONF/, 'nothing is sold that can not be saved');
    rmdir $file or die "rmdir $file: $!";
    $redis->bgsave;
    $t->wait_for(sub { $redis->info('persistence')->{rdb_last_bgsave_status} eq 'ok' }, 10,
        'a good save');
    is($s->verdicts(1, 2), '1', 'sells again after a good save');
};

subtest 'a replica has no word of its own' => sub {
    my $port = $t->port;

    for my $left (10, 0) {
        running();
        $redis->set($stock, $left);
        $redis->replicaof('127.0.0.1', $port);
        $s->refused(\&ten, qr/READONLY/, "purchases, stock $left");
        $s->refused(sub { $s->buy(1, 1) }, qr/READONLY/, "a repeat, stock $left");
        $redis->replicaof('NO', 'ONE');
        is($s->verdicts(1, 2), $left ? '1' : '3', 'a master again');
    }

    running(end_ms => $s->now_ms + 500);
    $redis->replicaof('127.0.0.1', $port);
    select undef, undef, undef, 0.55;
    $s->refused(\&ten, qr/READONLY/, 'not even "ended"');
    $redis->replicaof('NO', 'ONE');

    running();
    $redis->set($stock, 0);
    $redis->config('SET', 'min-replicas-to-write', 1);
    $s->refused(\&ten, qr/NOREPLICAS/, 'nor has a master that lost its replicas');
    $redis->config('SET', 'min-replicas-to-write', 0);
};

subtest 'a Redis user with half of the rights' => sub {
    my @needed = qw(hmget get scard xlen exists sismember time sadd srem xadd decrby hset hsetnx);
    my @rights = ('on', '>pw', '~seckill:*:{1}', '-@all', '+evalsha', '+eval', map {"+$_"} @needed);

    running();
    $redis->acl('SETUSER', 'shop', 'reset', @rights);
    my $shop = $s->connect_as('shop', 'pw');
    local $s->{client} = $shop;

    is($s->verdicts(1, 1, 2), '21', 'these commands are enough');
    for my $missing (@needed) {
        next if $missing =~ /^(?:exists|hsetnx)$/;
        $redis->acl('SETUSER', 'shop', "-$missing");
        $s->refused(\&ten, qr/$denied/, "without $missing nothing is sold", $redis);
        $redis->acl('SETUSER', 'shop', "+$missing");
    }
    is($s->verdicts(1, 3), '1', 'sells again');

    $redis->acl('SETUSER', 'shop', '-hsetnx');
    $s->refused(sub { $s->buy(1, 1) }, qr/$denied/, 'without hsetnx there is no word without a sale', $redis);
    $redis->acl('SETUSER', 'shop', '+hsetnx', '-exists');
    $redis->xtrim($orders, 'MAXLEN', 0);
    $s->refused(\&ten, qr/$denied/, 'without exists an empty stream is not believed', $redis);
    $redis->acl('SETUSER', 'shop', '+exists', 'resetkeys', '~seckill:[aeo]*:{1}');
    $s->refused(\&ten, qr/$denied/, 'nor a key of another name', $redis);
};

subtest 'F-E1: with limit keys nobody is charged without the rights' => sub {
    my @needed = qw(hmget get scard xlen exists sismember time sadd srem xadd decrby hset hsetnx mget set);
    my @limits = map { ScriptTest::key("limit:$_", 1) } 2, 3;
    my @ask    = ([ScriptTest::keys_of('admit', 1), @limits], 1, 2, 0, 2, map({ ($_, 1, 'r', '') } 2, 3), 1000, 0);

    running();
    $redis->acl('SETUSER', 'shop', 'reset', 'on', '>pw', '~seckill:*:{1}', '-@all', '+evalsha', '+eval',
                map {"+$_"} @needed);
    local $s->{client} = $s->connect_as('shop', 'pw');
    for my $missing (grep { !/exists|hsetnx/ } @needed) {
        $redis->acl('SETUSER', 'shop', "-$missing");
        $s->refused(sub { $s->call('admit', @ask) }, qr/$denied/, "without $missing", $redis);
        $redis->acl('SETUSER', 'shop', "+$missing");
    }
    is($s->call('admit', @ask)->[5], '11', 'with all of them two buy');
    is($s->call('admit', @ask)->[5], '88', 'and are limited then');
};

subtest 'not whole' => sub {
    running();
    $redis->del($orders);
    $s->refused(\&ten, qr/SECKILL orders is missing/, 'F-D1: a stream that is lost is not made anew');

    running();
    $redis->xtrim($orders, 'MAXLEN', 0);
    is($s->verdicts(1, 2), '1', 'an empty one is no loss');

    running(eligible => 1, eligible_had => 1);
    $redis->del($eligible);
    $s->refused(\&ten, qr/SECKILL eligible is missing/, 'F-D1: registered users that are lost are not strangers');
    $redis->hdel($facts, 'eligible_had');
    is($s->verdicts(1, 2), '6', 'nobody has registered yet');

    for my $bad ('', 'x', '1.5', '01', '--1', '- 1', '1' x 16) {
        running();
        $redis->hset($facts, buyers_extra => $bad);
        $s->refused(\&ten, qr/SECKILL facts of the activity are damaged/, "buyers_extra \"$bad\"");
    }
};

subtest 'buyers are lost' => sub {
    running(seq => 10, buyers_extra => -10);
    is($s->buy(1, 2)->{trouble}, undef, 'numbers without a buyer are no loss');

    running(buyers_extra => 0);
    $s->buy(1, 2);
    $redis->srem($buyers, 1);
    my $rev   = $redis->hget($facts, 'rev');
    my $reply = $s->buy(1, 2, 3);
    is($reply->{verdicts}, '27', 'F-D1: one is missing: nothing is sold');
    like($reply->{trouble}, qr/^paused: order_users holds 1 buyers, 1 are missing/, 'the log hears why');
    is($redis->hget($facts, 'state'), 'paused', 'the sale is paused');
    is("$reply->{rev} " . $redis->hget($facts, 'rev'), join(' ', ($rev + 1) x 2), 'rev is raised');
    is($s->buy(1, 3)->{trouble}, undef, 'and the log hears it once');

    $redis->flushdb;
    $s->sale(1, buyers_extra => 1);
    $redis->sadd($buyers, 77);
    is($s->verdicts(1, 2), '1', 'a buyer more than numbers, as the facts say');
};

done_testing();
