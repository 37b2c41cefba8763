# lua/dead.lua: letter, result and acknowledgement come together, once.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my $orders  = ScriptTest::key('orders', 1);
my $dead    = ScriptTest::key('dead', 1);
my $channel = ScriptTest::key('results', 1);
my $failure = '{"success":false,"reason":"data_error"}';
my $success = '{"success":true,"order_id":7,"order_no":"26112915000012300000100000010001"}';

sub result { return ScriptTest::key("result:$_[0]", 1) }

# users who bought, their entries read by the daemon; returns user => entry id
sub sold {
    my (@users) = @_;

    $redis->flushdb;
    $s->sale(1, stock => 5000);
    $s->buy(1, @users);
    $redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'COUNT', 5000, 'STREAMS', $orders, '>');

    return map { $_->{user} => $_->{id} } $s->entries(1);
}

# the arguments of one entry: id, user, result, own fields
sub entry {
    my ($id, $user, $result, @fields) = @_;
    return ($id, $user, $result, 'data_error', 5, 'first', 'last', 1500, scalar @fields, @fields);
}

sub bury {
    my (@entries) = @_;
    return $s->call('dead', [$orders, $dead, map { $_->[1] eq '' ? $dead : result($_->[1]) } @entries],
        'seckilld', $channel, map { entry(@{$_}) } @entries);
}

sub pending { return ($redis->xpending($orders, 'seckilld'))[0] }
sub letters { return map { { @{ $_->[1] } } } $redis->xrange($dead, '-', '+') }

subtest 'letters' => sub {
    my %id = sold(1, 2, 3);

    is(bury([$id{1}, 1, $failure, user => 1, ext => "\0\xff"], [$id{2}, '', '', junk => 'x']), '11',
        'two are buried');
    my ($one, $two) = letters();
    my $age = $one->{dead_ms} - $one->{first_ms};
    is($age, 1500, 'the first attempt was as long ago as said');
    cmp_ok(abs($one->{dead_ms} - time * 1000), '<', 5000, 'by the clock of Redis');
    delete @{$one}{qw(first_ms dead_ms)};
    is_deeply($one, { entry => $id{1}, reason => 'data_error', attempts => 5, first_error => 'first',
        last_error => 'last', user => 1, ext => "\0\xff" }, 'with all they had');
    is($two->{junk}, 'x', 'also without a user');
    is($redis->get(result(1)), $failure, 'the buyer is told');
    is($redis->exists(result(2)), 0, 'nobody else is');
    is(pending(), 1, 'both are acknowledged, the third waits');

    my $before = $s->dump_all;
    is(bury([$id{1}, 1, $failure, user => 1], [$id{2}, '', '']), '00', 'again: nothing is buried');
    is($s->dump_all, $before, 'and no key changes');
    is(bury([$id{1}, 1, $failure], [$id{3}, 3, $failure]), '01', 'of old and new, the new one is');
    is(scalar(letters()), 3, 'three letters');
};

subtest 'a group that was lost delivers all of it again' => sub {
    my %id = sold(1 .. 300);
    my @users = 1 .. 250;

    is(bury(map { [$id{$_}, $_, $failure, user => $_] } @users), '1' x 250, 'buried');
    $redis->xgroup('DESTROY', $orders, 'seckilld');
    $redis->xgroup('CREATE', $orders, 'seckilld', 0);
    $redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'COUNT', 5000, 'STREAMS', $orders, '>');
    $redis->del(result(7));
    my @again = map { [$id{$_}, $_, $failure, user => $_] } 3, 300, 7, 249;
    is(bury(@again), '2122', 'of letters and a new one, the new one is');
    is(scalar(letters()), 251, 'and nobody has two');
    is($redis->get(result(7)), $failure, 'a lost result is told again');
    is(pending(), 296, 'and all four are acknowledged');
    is(bury(@again), '0000', 'then they are not pending');
};

subtest 'results' => sub {
    my %id = sold(1, 2, 3);

    $redis->set(result(1), $success);
    $redis->set(result(2), $failure, 'EX', 1000);
    bury([$id{1}, 1, $failure], [$id{2}, 2, $failure], [$id{3}, 3, $success]);
    is($redis->get(result(1)), $success, 'a success stays');
    cmp_ok($redis->ttl(result(2)), '>', 900, 'an expiry stays');
    is($redis->get(result(3)), $success, 'a buyer with another order hears of that one');
};

subtest 'many fields' => sub {
    my %id = sold(1);

    bury([$id{1}, 1, $failure, map { ("f$_", $_) } 1 .. 2048]);
    my ($letter) = letters();
    is($letter->{f2048}, 2048, 'a letter with 4096 names and values is whole');
};

subtest 'refused before the first write' => sub {
    my %id = sold(1, 2);
    my $before = $s->dump_all;
    my $keys = [$orders, $dead, result(1)];
    my @head = ('seckilld', $channel);
    my @good = entry($id{1}, 1, $failure, user => 1);

    my %bad = (
        'an id'     => [entry('x', 1, $failure)],
        'a user'    => [entry($id{1}, '01', $failure)],
        'a large user' => [entry($id{1}, '18446744073709551616', $failure)],
        'a result'  => [entry($id{1}, 1, '{"success":maybe}')],
        'odd fields' => [entry($id{1}, 1, $failure, 'x')],
        'too few'   => [@good[0 .. 9]],
        'too many'  => [@good, 'x'],
        'no number' => [@good[0 .. 3], 'many', @good[5 .. $#good]],
    );
    for my $name (sort keys %bad) {
        my $reply = eval { $s->call('dead', $keys, @head, @{ $bad{$name} }) };
        like($@, qr/SECKILL/, "$name is refused");
    }
    eval { $s->call('dead', [@{$keys}, result(2)], @head, @good, entry('x', 2, $failure)) };
    like($@, qr/SECKILL/, 'a bad second one too');
    is($s->dump_all, $before, 'nothing is written');

    for my $key ($dead, result(1)) {
        $redis->lpush($key, 'x');
        my $there = $s->dump_all;
        eval { $s->call('dead', $keys, @head, @good) };
        like($@, qr/WRONGTYPE/, "$key of another type");
        is($s->dump_all, $there, 'nothing is written');
        $redis->del($key);
    }

    $redis->config('SET', 'maxmemory', 1);
    eval { $s->call('dead', $keys, @head, @good) };
    like($@, qr/OOM/, 'no memory');
    $redis->config('SET', 'maxmemory', 0);
    is($s->dump_all, $before, 'nothing is written');
};

subtest 'F-E2: ids are never numbers' => sub {
    for my $forged ('2111421720516-0', '9007199254740993-0', '18446744073709551615-5',
                    '18446744073709551615-18446744073709551615') {
        my %id = sold(1, 2);

        $redis->xadd($orders, $forged, 'junk', 'x');
        $redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'STREAMS', $orders, '>');
        is(bury([$id{1}, 1, $failure, user => 1], [$forged, '', '', junk => 'x']), '11', "$forged is buried");
        is_deeply([map { $_->{entry} } letters()], [$id{1}, $forged], '... as it is spelled');
        is(pending(), 1, '... and not pending any more');

        $redis->xgroup('DESTROY', $orders, 'seckilld');
        $redis->xgroup('CREATE', $orders, 'seckilld', 0);
        $redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'COUNT', 5000, 'STREAMS', $orders, '>');
        is(bury([$forged, '', '', junk => 'x']), '2', '... its letter is found again');
    }
};

subtest 'F-E1: letters that can not be written' => sub {
    my $last = '18446744073709551615';
    my %id   = sold(1, 2, 3);

    $redis->xadd($dead, "$last-18446744073709551614", 'x', 'x');
    eval { bury(map { [$id{$_}, $_, $failure, user => $_] } 1 .. 3) };
    like($@, qr/SECKILL not all could be buried: .*last possible ID/, 'one could be, and the error says why not all');
    is($redis->get(result(1)), $failure, 'who is buried is told');
    is($redis->exists(result(2)) + $redis->exists(result(3)), 0, 'nobody else');
    is(pending(), 2, 'and stays pending');

    $redis->del($dead);
    is(bury(map { [$id{$_}, $_, $failure, user => $_] } 1 .. 3), '011', 'the others follow when there is room');
    is(pending(), 0, 'then none is pending');
};

done_testing;
