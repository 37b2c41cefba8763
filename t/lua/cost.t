# What the scripts cost and touch: O(batch) whatever the size of the sale, only
# the keys they are given, all of one slot.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $failure = '{"success":false,"reason":"over_limit"}';

# how many results seckilld puts into one call
sub settle_call {
    my $header = "$FindBin::Bin/../../src/consumer/skd_settle.h";

    open my $fh, '<', $header or die "$header: $!";
    my ($n) = map { /^#define SKD_SETTLE_CALL\s+(\d+)/ } <$fh>;

    return $n // die "$header tells no SKD_SETTLE_CALL";
}

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

# Microseconds of processor time that Redis takes for the code: unlike SLOWLOG's
# figures they do not grow when somebody else holds the processor.
sub cost {
    my ($s, $code) = @_;

    my $used = sub {
        my $sum = 0;
        for my $file (glob "/proc/$s->{proc}{pid}/task/*/schedstat") {
            open my $fh, '<', $file or die "$file: $!";
            $sum += (split ' ', <$fh>)[0] / 1000;
        }
        return $sum;
    };
    my $before = $used->();
    $code->();
    return $used->() - $before;
}

# The least that each of the calls costs in a few rounds, when it is 5 ms or more.
sub slow {
    my ($s, %calls) = @_;

    my %least;
    for my $round (1 .. 4) {
        for my $name (keys %calls) {
            my $cost = cost($s, $calls{$name});
            $least{$name} = $cost if $cost < ($least{$name} // $cost + 1);
        }
    }
    return { map { $_ => int $least{$_} } grep { $least{$_} >= 5000 } keys %least };
}

subtest 'a million buyers' => sub {
    my $s     = ScriptTest->new;
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

    my (%calls, %said);
    for my $n (1, 32, 256) {
        $calls{"$n new"}   = sub { $said{"$n new"} = $s->verdicts(1, map { $new++ } 1 .. $n) };
        $calls{"$n known"} = sub { $said{"$n known"} = $s->verdicts(1, map { 500_001 + $_ } 1 .. $n) };
    }
    is_deeply(slow($s, %calls), {}, 'no batch takes 5 ms');
    is_deeply(\%said, { map { ("$_ new" => '1' x $_, "$_ known" => '2' x $_) } 1, 32, 256 },
        'and all are answered');

    my $orders = ScriptTest::key('orders', 1);
    $redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'STREAMS', $orders, '>');
    my @entries = ($s->entries(1))[0 .. settle_call() - 1];
    my ($told, @results) = (0, map { ($_->{id}, $_->{user}, $failure) } @entries);
    is_deeply(slow($s,
        settle => sub {
            $told += $s->call('settle', [map { ScriptTest::key($_, 1) } 'orders', map {"result:$_->{user}"} @entries],
                              'seckilld', ScriptTest::key('results', 1), @results);
        },
        preheat => sub {
            $s->call('preheat', [ScriptTest::keys_of('preheat', 1)], 0, 5, '9.90', 10, 1, 2, 1, 0, 1);
        },
    ), {}, 'nor do the results of one call or a preheat');
    is($told, settle_call(), 'which tells all of them');
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
    my $version = ScriptTest->new->client->info('server')->{redis_version};
    plan skip_all => "Redis $version has no cluster-port" if $version =~ /^[1-6]\./;

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
