# lua/settle.lua: results are written, published and acknowledged together, and
# a success never becomes a failure.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my $orders  = ScriptTest::key('orders', 1);
my $channel = ScriptTest::key('results', 1);
my $failure = '{"success":false,"reason":"over_limit"}';

sub success { return qq({"success":true,"order_id":$_[0],"order_no":"26112915000012300000100000010001"}) }
sub result  { return ScriptTest::key("result:$_[0]", 1) }

# users who bought, their entries read by the daemon; returns user => entry id
sub sold {
    my (@users) = @_;

    $redis->flushdb;
    $s->sale(1, stock => 5000);
    $s->buy(1, splice @users, 0, 256) while @users;
    $redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'COUNT', 5000, 'STREAMS', $orders, '>');

    return map { $_->{user} => $_->{id} } $s->entries(1);
}

# each entry is [id, user, result]
sub settle {
    my (@entries) = @_;
    return $s->call('settle', [$orders, map { result($_->[1]) } @entries],
                    'seckilld', $channel, map { @{$_} } @entries);
}

sub pending { return ($redis->xpending($orders, 'seckilld'))[0] }

# what a subscriber hears while the code runs
sub heard {
    my ($code) = @_;

    my $ear = $s->connect_as;
    my @all;
    $ear->subscribe($channel, sub { push @all, $_[0] });
    my $value = $code->();
    $redis->publish($channel, 'end');
    my $tries = 0;
    $ear->wait_for_messages(1) until (@all && $all[-1] eq 'end') || ++$tries > 10;
    pop @all;

    return ($value, @all);
}

subtest 'a batch' => sub {
    my %id = sold(1, 2, '18446744073709551615');
    my @batch = ([$id{1}, 1, success(7)], [$id{2}, 2, $failure],
                 [$id{'18446744073709551615'}, '18446744073709551615', success('18446744073709551615')]);

    is(pending(), 3, 'three are pending');
    my ($acked, @heard) = heard(sub { settle(@batch) });
    is($acked, 3, 'three are acknowledged');
    is(pending(), 0, 'none is pending');
    is($redis->get(result(1)), success(7), 'success');
    is($redis->get(result(2)), $failure, 'failure');
    is($redis->get(result('18446744073709551615')), success('18446744073709551615'), 'exact numbers');
    is($redis->pttl(result(1)), -1, 'results stay');
    is_deeply(\@heard, [map {"$_->[1] $_->[2]"} @batch], 'each is published once, in order');

    my $before = $s->dump_all;
    ($acked, @heard) = heard(sub { settle(@batch) });
    is($acked, 0, 'settled again: nothing left to acknowledge');
    is($s->dump_all, $before, 'and no key changes');
    is(scalar @heard, 3, 'whoever missed it hears it');
};

subtest 'only what is named is acknowledged' => sub {
    my %id = sold(1 .. 5);

    is(settle([$id{2}, 2, success(2)], [$id{4}, 4, success(4)]), 2, 'two of five');
    is_deeply([map { $_->[0] } $redis->xpending($orders, 'seckilld', '-', '+', 10)], [@id{1, 3, 5}],
        'three are pending');
    is($redis->xlen($orders), 5, 'entries stay in the stream');
    is($redis->exists(result(3)), 0, 'no result for the others');
    is(settle([$id{1}, 1, success(1)], [$id{2}, 2, success(2)]), 1, 'a new one and an old one');
};

subtest 'a success stays a success' => sub {
    my %id = sold(1, 2, 3);

    settle([$id{1}, 1, success(7)]);
    my ($acked, @heard) = heard(sub { settle([$id{1}, 1, $failure], [$id{2}, 2, $failure]) });
    is($acked, 1, 'both entries are done with');
    is($redis->get(result(1)), success(7), 'the success stays');
    is($redis->get(result(2)), $failure, 'the other is a failure');
    is_deeply(\@heard, ['1 ' . success(7), "2 $failure"], 'and the failure is not even published');

    $redis->set(result(3), '{ "success" : true }');
    settle([$id{3}, 3, $failure]);
    is($redis->get(result(3)), '{ "success" : true }', 'however it is spelled');

    settle([$id{2}, 2, success(8)]);
    is($redis->get(result(2)), success(8), 'a failure may become a success: dead retry');
    settle([$id{2}, 2, success(9)]);
    is($redis->get(result(2)), success(9), 'a success may be told better');

    for my $pair ([success(5), $failure], [$failure, success(5)]) {
        $redis->del(result(3));
        settle([$id{3}, 3, $pair->[0]], [$id{3}, 3, $pair->[1]]);
        is($redis->get(result(3)), success(5), 'twice in one batch: the success stays');
    }

    for my $junk ('', 'x', '{}', '[]', 'null', '7', '{"success":"true"}', '{"success":1}') {
        $redis->set(result(3), $junk);
        settle([$id{3}, 3, $failure]);
        is($redis->get(result(3)), $failure, "\"$junk\" is no success");
    }

    $redis->set(result(3), $failure);
    $redis->expire(result(3), 1000);
    settle([$id{3}, 3, success(3)]);
    cmp_ok($redis->ttl(result(3)), '>', 0, 'an expiry that is there stays');
};

subtest 'thousands in one call' => sub {
    my %id = sold(1 .. 4500);

    is(settle(map { [$id{$_}, $_, $_ % 2 ? success($_) : $failure] } 1 .. 4500), 4500, 'all acknowledged');
    is(pending(), 0, 'none is pending');
    is($redis->get(result(4499)), success(4499), 'a result');
    is($redis->get(result(4500)), $failure, 'the last one');
};

subtest 'the stream or the group is gone' => sub {
    my %id = sold(1);

    $redis->xgroup('DESTROY', $orders, 'seckilld');
    is(settle([$id{1}, 1, success(1)]), 0, 'no group: nothing to acknowledge');
    is($redis->get(result(1)), success(1), 'the result is told');

    $redis->del($orders);
    is(settle([$id{1}, 1, success(1)]), 0, 'no stream: the same');
    is($redis->exists($orders), 0, 'and none is made');
};

subtest 'refused, and nothing is written' => sub {
    my %id   = sold(1, 2);
    my @good = ([$id{1}, 1, success(1)]);

    for my $bad ('', 'x', '1', '1-', '-1', '1-1-1', '*', '0x1-1', "$id{2}\n", ' 1-1',
                 '18446744073709551616-0', '1-18446744073709551616', '1-' . '1' x 30) {
        $s->refused(sub { settle(@good, [$bad, 2, $failure]) }, qr/SECKILL entry/, "entry id \"$bad\"");
    }
    for my $bad ('', '0', '01', '-1', 'x', '18446744073709551616', "1\n") {
        $s->refused(sub { settle(@good, [$id{2}, $bad, $failure]) }, qr/SECKILL user/, "user \"$bad\"");
    }
    for my $bad ('', 'x', '{}', '[]', '7', 'null', '{"success":1}', '{"success":"true"}', '{"success":true',
                 '[' x 2000, "{\"success\":true}x") {
        $s->refused(sub { settle(@good, [$id{2}, 2, $bad]) }, qr/SECKILL result/,
            'result "' . substr($bad, 0, 20) . '"');
    }

    my @argv = ('seckilld', $channel, $id{1}, 1, success(1));
    for my $n (0 .. 4) {
        $s->refused(sub { $s->call('settle', [$orders, result(1)], @argv[0 .. $n - 1]) },
            qr/SECKILL settle takes/, "$n arguments");
    }
    $s->refused(sub { $s->call('settle', [$orders, result(1)], @argv, 'x') }, qr/SECKILL settle takes/,
        'one too many');
    $s->refused(sub { $s->call('settle', [$orders, result(1), result(2)], @argv) },
        qr/SECKILL settle takes/, 'more keys than entries');
    $s->refused(sub { $s->call('settle', [], @argv) }, qr/SECKILL settle takes/, 'no keys');
    $s->refused(sub { $s->call('settle', [$orders], 'seckilld', $channel) }, qr/SECKILL settle takes/,
        'no entries');

    $redis->del(result(2));
    $redis->sadd(result(2), 'x');
    $s->refused(sub { settle(@good, [$id{2}, 2, $failure]) }, qr/WRONGTYPE/, 'a result key of another type');
    $redis->del(result(2));

    $redis->config('SET', 'maxmemory', 1);
    $s->refused(sub { settle(@good) }, qr/OOM/, 'out of memory: not even acknowledged');
    $redis->config('SET', 'maxmemory', 0);

    $redis->replicaof('127.0.0.1', $s->t->port);
    $s->refused(sub { settle(@good) }, qr/READONLY/, 'a replica');
    $redis->replicaof('NO', 'ONE');

    $redis->rename($orders, 'away');
    $redis->set($orders, 'x');
    $s->refused(sub { settle(@good) }, qr/WRONGTYPE/, 'the stream is a string');
    $redis->rename('away', $orders);

    is(pending(), 2, 'both are still pending');
    is(settle(@good), 1, 'and the good one settles');
};

done_testing();
