# What the scripts cost and touch: O(batch) whatever the size of the sale, only
# the keys they are given, all of one slot.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $failure = '{"success":false,"reason":"over_limit"}';

# purchases of one sale, its results, and a preheat of another: all three scripts
sub whole_sale {
    my ($s) = @_;

    my $verdicts = $s->verdicts(7, 1, 2, 2);
    $s->{client}->xreadgroup('GROUP', 'seckilld', 'n-1', 'STREAMS', ScriptTest::key('orders', 7), '>');
    my ($first) = $s->entries(7);
    my $acked    = $s->call('settle', [map { ScriptTest::key($_, 7) } 'orders', 'result:1'], 'seckilld',
                            ScriptTest::key('results', 7), $first->{id}, 1, $failure);
    my $now  = $s->now_ms;
    my $made = $s->call('preheat', [ScriptTest::keys_of('preheat', 8)], 0, 5, '9.90', 10,
                        $now + 100_000, $now + 200_000, 1, 0, 1);

    return "$verdicts $acked $made->[0]";
}

subtest 'a million buyers' => sub {
    my $s     = ScriptTest->new('slowlog-log-slower-than' => 5000);
    my $redis = $s->client;

    $s->sale(1, stock => 1_000_000, eligible => 1);
    my $load = 'local t = {} for i = 1, 5000 do t[i] = ARGV[1] * 5000 + i end '
        . 'return redis.call("SADD", KEYS[1], unpack(t)) + redis.call("SADD", KEYS[2], unpack(t))';
    my ($buyers, $eligible) = map { ScriptTest::key($_, 1) } qw(order_users eligible);
    for my $part (100 .. 299) {
        $redis->eval($load, 2, $buyers, $eligible, $part, sub { });
    }
    $redis->wait_all_responses;
    is($redis->scard($buyers), 1_000_000, 'are there');

    my $new = 2_000_000;
    $redis->sadd($eligible, $new .. $new + 20_000);

    # another process may hold the processor for 5 ms, but not in every round
    my @slow;
    for my $round (1 .. 12) {
        $redis->slowlog('RESET');
        for my $n (1, 32, 256) {
            my $accepted = $s->verdicts(1, map { $new++ } 1 .. $n);
            my $repeats  = $s->verdicts(1, map { 500_001 + $_ } 1 .. $n);
            is("$accepted $repeats", '1' x $n . ' ' . '2' x $n, "round $round, a batch of $n") if $round == 1;
        }
        @slow = map { "$_->[2] us" } $redis->slowlog('GET');
        last if !@slow;
    }
    is_deeply(\@slow, [], 'no batch takes 5 ms');

    for (1 .. 4) {
        $s->buy(1, map { $new++ } 1 .. 256);
    }
    my $orders = ScriptTest::key('orders', 1);
    $redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'STREAMS', $orders, '>');
    my @entries = ($s->entries(1))[0 .. 999];
    for my $round (1 .. 12) {
        $redis->slowlog('RESET');
        $s->call('settle', [map { ScriptTest::key($_, 1) } 'orders', map {"result:$_->{user}"} @entries],
                 'seckilld', ScriptTest::key('results', 1), map { ($_->{id}, $_->{user}, $failure) } @entries);
        $s->call('preheat', [ScriptTest::keys_of('preheat', 1)], 0, 5, '9.90', 10, 1, 2, 1, 0, 1);
        @slow = map { "$_->[2] us" } grep { $_->[3][0] =~ /^eval/i } $redis->slowlog('GET');
        last if !@slow;
    }
    is_deeply(\@slow, [], 'nor do a thousand results or a preheat');
};

subtest 'only the keys that are given' => sub {
    my $s     = ScriptTest->new;
    my $redis = $s->client;

    my @given = map { ScriptTest::keys_of('admit', $_) } 7, 8;
    $s->sale(7, stock => 2);
    $redis->acl('SETUSER', 'shop', 'reset', 'on', '>pw', '+@all', 'allchannels',
                map {"~$_"} @given, ScriptTest::key('result:1', 7));

    local $s->{client} = $s->connect_as('shop', 'pw');
    is(whole_sale($s), '112 1 created', 'the scripts work for a user who may touch no other key');
    ok(!eval { $s->{client}->get(ScriptTest::key('result:2', 7)); 1 }, 'and that user may not');
};

subtest 'a cluster of one' => sub {
    my $s = ScriptTest->new('cluster-enabled' => 'yes', 'cluster-port' => SeckillTest->port);
    my $redis = $s->client;

    $redis->cluster('ADDSLOTSRANGE', 0, 16383);
    $s->t->wait_for(sub { join('', $redis->cluster('INFO')) =~ /cluster_state:ok/ }, 10, 'the cluster');

    for my $id (7, '18446744073709551615') {
        my @all = map { ScriptTest::key($_, $id) }
            qw(activity stock order_users orders eligible result:1 result:9 dead lookup results);
        my %slots = map { $redis->cluster('KEYSLOT', $_) => 1 } @all;
        is(scalar(keys %slots), 1, "the keys of activity $id share a slot");
    }

    $s->sale(7, stock => 2);
    is(whole_sale($s), '112 1 created', 'the scripts run in a cluster');
    my $mixed = eval { $s->call('admit', [(ScriptTest::keys_of('admit', 7))[0 .. 3],
                                          ScriptTest::key('eligible', 8)], 7, 1, 1, '', ''); 1 };
    ok(!$mixed && $@ =~ /CROSSSLOT/, 'which would not take keys of two activities');
};

done_testing();
