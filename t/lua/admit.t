# What lua/admit.lua says to whom, and what it leaves behind.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

# the digits of src/shared/sk_verdicts_x.h
my ($ACCEPTED, $REPEAT, $SOLD_OUT, $NOT_STARTED, $ENDED, $NOT_ELIGIBLE, $CLOSED, $BAD)
    = qw(1 2 3 4 5 6 7 9);

my $s     = ScriptTest->new;
my $redis = $s->client;

sub stock  { return $redis->get(ScriptTest::key('stock', $_[0])) }
sub buyers { return [sort $redis->smembers(ScriptTest::key('order_users', $_[0]))] }
sub fact   { return $redis->hget(ScriptTest::key('activity', $_[0]), $_[1]) }
sub users  { return map { $_ + 1000 } 1 .. $_[0] }

# TIME as the test sets it: everything else is the script as it is
sub at {
    my ($ms) = @_;

    $redis->del('time');
    $redis->rpush('time', int($ms / 1000), $ms % 1000 * 1000 + 999);
    return;
}

my $timed = ScriptTest::text('admit');
is($timed =~ s/call\("TIME"\)/call("LRANGE", "time", 0, -1)/g, 1, 'admit asks for the time once');

subtest 'one purchase' => sub {
    $s->sale(1, stock => 3, epoch => 4, rev => 9, seq => 20, max_quantity => 2);
    my $before = $s->now_ms;
    my $reply  = $s->buy(1, [7_000_042, 2, 'req-1', '{"sku":"红"}']);
    my $after  = $s->now_ms;

    is($reply->{verdicts}, $ACCEPTED, 'is accepted');
    is($reply->{epoch},    4,         'the reply has the epoch');
    is($reply->{rev},      9,         'the reply has the rev');
    is($reply->{seq},      21,        'the reply has the seq it got');
    is($reply->{left},     1,         'the reply has what is left');
    ok($before <= $reply->{now_ms} && $reply->{now_ms} <= $after, 'the reply has the time of Redis');
    is(stock(1), 1, 'its units are gone');
    is(fact(1, 'seq'), 21, 'the seq is kept');
    is(fact(1, 'rev'), 9,  'the rev is not touched');
    is_deeply(buyers(1), [7_000_042], 'the buyer is known');

    my ($entry, @more) = $s->entries(1);
    is(@more, 0, 'one entry');
    delete $entry->{id};
    my $order_no = delete $entry->{order_no};
    like($order_no, qr/^\d{15}00000100000210042$/, 'order_no');
    is_deeply($entry, {
        v => 1, user => 7_000_042, activity => 1, quantity => 2, epoch => 4, seq => 21,
        accepted_ms => $reply->{now_ms}, request_id => 'req-1', ext => '{"sku":"红"}',
    }, 'the entry is exact, and has no other field');
    is($s->buy(1, 7_000_042)->{seq}, 21, 'a repeat does not count');
};

subtest 'window' => sub {
    my ($start, $end) = (1_800_000_000_000, 1_800_000_060_000);
    $s->sale(1, start_ms => $start, end_ms => $end);

    at($start - 1);
    is($s->buy_with($timed, 1, 1)->{verdicts}, $NOT_STARTED, 'a millisecond before the start');
    at($start);
    is($s->buy_with($timed, 1, 1)->{verdicts}, $ACCEPTED, 'at the start');
    at($end - 1);
    is($s->buy_with($timed, 1, 2)->{verdicts}, $ACCEPTED, 'the last millisecond');
    at($end);
    is($s->buy_with($timed, 1, 3, 2)->{verdicts}, $ENDED . $REPEAT,
        'at the end, but a buyer hears that he bought');
    is(stock(1), 8, 'units taken only inside');
    is_deeply(buyers(1), [1, 2], 'buyers only inside');
    is(scalar(() = $s->entries(1)), 2, 'entries only inside');

    my $now = $s->now_ms;
    $s->sale(1, start_ms => $now + 300_000);
    is($s->verdicts(1, 1), $NOT_STARTED, 'by the clock of Redis: not started');
    $s->sale(1, start_ms => $now - 300_000, end_ms => $now - 1);
    is($s->verdicts(1, 1), $ENDED, 'by the clock of Redis: ended');
    $s->sale(1, start_ms => $s->now_ms + 500);
    is($s->verdicts(1, 1), $NOT_STARTED, 'before the moment');
    select undef, undef, undef, 0.55;
    is($s->verdicts(1, 1), $ACCEPTED, 'after it, and nobody did anything');
};

subtest 'who bought hears repeat, whatever else is true' => sub {
    my $facts = $s->sale(1, stock => 1);
    my $key   = ScriptTest::key('activity', 1);

    is($s->verdicts(1, 1), $ACCEPTED, 'buys the only unit');
    is($s->verdicts(1, 2, 1), $SOLD_OUT . $REPEAT, 'sold out');
    is($s->verdicts(1, [2, 5], [1, 5]), $BAD . $REPEAT, 'with a quantity that is not allowed');
    for my $case (['closed', $CLOSED], ['paused', $CLOSED], ['settled', $ENDED], ['?', $CLOSED]) {
        $redis->hset($key, state => $case->[0]);
        is($s->verdicts(1, 2, 1), $case->[1] . $REPEAT, "state $case->[0]");
    }
    $redis->hset($key, state => 'open', end_ms => $facts->{start_ms} + 1);
    is($s->verdicts(1, 2, 1), $ENDED . $REPEAT, 'ended');
    $redis->hset($key, start_ms => $facts->{end_ms} - 2, end_ms => $facts->{end_ms});
    is($s->verdicts(1, 2, 1), $NOT_STARTED . $REPEAT, 'moved to later');
    $redis->hset($key, %{$facts}, eligible => 1);
    $redis->sadd(ScriptTest::key('eligible', 1), 2);
    is($s->verdicts(1, 3, 1), $NOT_ELIGIBLE . $REPEAT, 'not registered any more');
    is_deeply(buyers(1), [1], 'one buyer in the end');
    is(stock(1), 0, 'stock 0 in the end');
};

subtest 'the last units' => sub {
    $s->sale(1, stock => 1);
    is($s->verdicts(1, users(50)), $ACCEPTED . $SOLD_OUT x 49, 'stock 1, 50 users in one batch');
    is(stock(1), 0, 'stock is 0');

    $s->sale(1, stock => 1);
    is(join('', map { $s->verdicts(1, $_) } users(50)), $ACCEPTED . $SOLD_OUT x 49,
        'stock 1, 50 users in 50 batches');
    is(scalar(() = $s->entries(1)), 1, 'one entry');

    $s->sale(1, stock => 0);
    my $reply = $s->buy(1, users(50));
    is($reply->{verdicts}, $SOLD_OUT x 50, 'stock 0, 50 users');
    is($reply->{seq}, 0, 'no seq given');
    is_deeply(buyers(1), [], 'no buyer');
    is(stock(1), 0, 'stock still 0');

    $s->sale(1, stock => 3, max_quantity => 5);
    $reply = $s->buy(1, [1, 2], [2, 2], [3, 1], [4, 1]);
    is($reply->{verdicts}, $ACCEPTED . $SOLD_OUT . $ACCEPTED . $SOLD_OUT,
        'too few for one, enough for the next');
    is($reply->{left}, 0, 'nothing left');
    is_deeply(buyers(1), [1, 3], 'the refused are no buyers');
    is_deeply([map { $_->{quantity} } $s->entries(1)], [2, 1], 'quantities');

    $s->sale(1, stock => 3, max_quantity => 5);
    $reply = $s->buy(1, [1, 4]);
    is("$reply->{verdicts} $reply->{left}", "$SOLD_OUT 3", 'sold out for one is not stock 0');
    is($s->verdicts(1, [1, 3]), $ACCEPTED, 'and the same user may take less');
};

subtest 'quantity' => sub {
    $s->sale(1, stock => 100, max_quantity => 3);
    is($s->verdicts(1, [1, 3], [2, 4], [3, '99999999999999999999999']), $ACCEPTED . $BAD x 2,
        'up to max_quantity');
    is(stock(1), 97, 'units taken');
    for my $bad ('0', '01', '-1', '+1', '1.0', '1e1', '0x1', ' 1', "1\n", '', 'x') {
        $s->refused(sub { $s->buy(1, 9, [10, $bad]) }, qr/SECKILL quantity/,
            "quantity \"$bad\" refuses the whole batch");
    }
};

subtest 'registration' => sub {
    $s->sale(1, eligible => 1);
    is($s->verdicts(1, 1), $NOT_ELIGIBLE, 'nobody is registered');
    $redis->sadd(ScriptTest::key('eligible', 1), 1, 3);
    is($s->verdicts(1, 1, 2, 3), $ACCEPTED . $NOT_ELIGIBLE . $ACCEPTED, 'registered users only');
    is_deeply(buyers(1), [1, 3], 'the others are no buyers');
    $redis->set(ScriptTest::key('stock', 1), 0);
    is($s->verdicts(1, 4), $NOT_ELIGIBLE, 'tested before the stock');
    $redis->hset(ScriptTest::key('activity', 1), eligible => 0);
    is($s->verdicts(1, 4), $SOLD_OUT, 'no test without the fact');
};

subtest 'ids beyond 2^53' => sub {
    my $max   = '18446744073709551615';
    my @users = ('9007199254740992', '9007199254740993', '18446744073709551614', $max);

    $s->sale($max);
    is($s->verdicts($max, @users, @users), $ACCEPTED x 4 . $REPEAT x 4, 'four different buyers');
    is_deeply(buyers($max), [sort @users], 'exact in the set');
    my @entries = $s->entries($max);
    is_deeply([map { $_->{user} } @entries], \@users, 'exact in the stream');
    is_deeply([map { $_->{activity} } @entries], [($max) x 4], 'and so is the activity');
    is_deeply([map { substr $_->{order_no}, 15 } @entries],
        [map { sprintf '551615%07d%04d', @{$_} } [1, 992], [2, 993], [3, 1614], [4, 1615]],
        'the tail of the order_no');

    $s->sale(1);
    for my $bad ('0', '01', '+1', '-1', '1.0', '1e3', '0x1', ' 1', "1\n", '', 'abc',
                 '18446744073709551616', '99999999999999999999', '1' x 21) {
        $s->refused(sub { $s->buy(1, 5, $bad) }, qr/SECKILL user/, "user \"$bad\" refuses the batch");
        $s->refused(sub { $s->call('admit', [ScriptTest::keys_of('admit', 1)], $bad, 1, 0, 0, 5, 1, '', '') },
            qr/SECKILL activity/, "activity \"$bad\" is refused");
    }
};

subtest 'what the caller remembers' => sub {
    my @keys  = ScriptTest::keys_of('admit', 1);
    my $facts = $keys[0];
    my $ask = sub {
        my ($user, @mark) = @_;
        my ($state, $rev, $seq) = $redis->hmget($facts, qw(state rev seq));
        my $reply = $s->call('admit', \@keys, 1, 1, scalar @mark, 0, $user, 1, 'r', '', @mark);
        return join ' ', "$reply->[5] rev $reply->[2] seq $reply->[3]", $redis->hget($facts, 'state');
    };

    $s->sale(1, epoch => 3, rev => 7);
    $s->buy(1, 1 .. 4);
    is($ask->(5, 3, 4), "$ACCEPTED rev 7 seq 5 open", 'as much as Redis knows: sold');
    is($ask->(6, 3, 2), "$ACCEPTED rev 7 seq 6 open", 'less: sold');
    is($ask->(7, 2, 900), "$ACCEPTED rev 7 seq 7 open", 'of an older epoch: sold');

    is($ask->(8, 3, 8), "$CLOSED rev 8 seq 7 paused", 'more than Redis knows: paused, nobody buys');
    is(stock(1), 3, '... nothing was taken');
    is(scalar($s->entries(1)), 7, '... nor written');
    is($ask->(9, 3, 8), "$CLOSED rev 8 seq 7 paused", '... and so it stays, the revision too');
    is($ask->(1, 3, 8), "$REPEAT rev 8 seq 7 paused", 'a buyer hears so');

    for my $state (qw(closed settled)) {
        $redis->hset($facts, 'state', $state);
        like($ask->(9, 4, 0), qr/ rev 8 seq 7 $state\z/, "$state stays $state");
    }
    $redis->hset($facts, 'state', 'open');
    is($ask->(9, 4, 0), "$CLOSED rev 9 seq 7 paused", 'a newer epoch than Redis knows');
};

subtest 'a batch' => sub {
    $s->sale(1, stock => 10);
    is($s->verdicts(1, 1, 1, 2, 1, 2), "$ACCEPTED$REPEAT$ACCEPTED$REPEAT$REPEAT",
        'one user several times in one batch buys once');
    is(stock(1), 8, 'and pays once');

    $s->sale(1, stock => 10);
    is(join('', map { $s->verdicts(1, 1001) } 1 .. 200), $ACCEPTED . $REPEAT x 199,
        '200 clicks of one user');
    is(stock(1), 9, 'take one unit');

    $s->sale(1, stock => 200, seq => 9_999_998, epoch => 2);
    my $reply = $s->buy(1, users(256));
    is($reply->{verdicts}, $ACCEPTED x 200 . $SOLD_OUT x 56, '256 purchases');
    is($reply->{seq}, 10_000_198, 'seq is the last one given');
    my @entries = $s->entries(1);
    is_deeply([map { $_->{seq} } @entries], [9_999_999 .. 10_000_198], 'seq without a gap');
    is_deeply([map { $_->{user} } @entries], [users(200)], 'in the order of the batch');
    is_deeply([map { substr $_->{order_no}, 21, 7 } @entries[0 .. 2]], [qw(9999999 0000000 0000001)],
        'the order_no has seq mod 10^7');
    is(scalar(keys %{ { map { $_->{order_no} => 1 } @entries } }), 200, 'every order_no differs');

    my $mixed = $s->buy(1, 1001, 5001);
    is("$mixed->{verdicts} $mixed->{seq}", "$REPEAT$SOLD_OUT 10000198", 'seq stands still without sales');
};

subtest 'thousands at once over several connections' => sub {
    $s->sale(1, stock => 10);

    my @readers;
    for my $node (0 .. 3) {
        pipe my $reader, my $writer or die "pipe: $!";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            local $s->{client} = $s->connect_as;
            my $digits = join '', map {
                my $first = $_;
                $s->verdicts(1, map { $node + 4 * ($first + $_) } 1 .. 32)
            } map { 32 * $_ } 0 .. 39;
            print {$writer} $digits;
            close $writer;
            require POSIX;
            POSIX::_exit(0);
        }
        close $writer;
        push @readers, [$pid, $reader];
    }
    my $all = '';
    for my $child (@readers) {
        my ($pid, $reader) = @{$child};
        $all .= join '', <$reader>;
        waitpid $pid, 0;
    }

    is(length $all, 5120, 'everybody got an answer');
    is($all =~ tr/1//, 10, 'exactly 10 bought');
    is($all =~ tr/3//, 5110, 'all others: sold out');
    is(stock(1), 0, 'stock is exactly 0');
    is(scalar @{ buyers(1) }, 10, '10 buyers');
    is(scalar(() = $s->entries(1)), 10, '10 entries');

    $redis->incr(ScriptTest::key('stock', 1));
    is($s->verdicts(1, map { 90_000 + $_ } 1 .. 10), $ACCEPTED . $SOLD_OUT x 9,
        'a unit given back is sold once');
};

done_testing();
