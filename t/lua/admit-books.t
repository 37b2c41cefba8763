# F-E1: once lua/admit.lua has written something it never throws.  Who can't be
# queued has bought nothing, who was queued before is booked, the rest hear "busy".

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my ($ACCEPTED, $REPEAT, $SOLD_OUT, $LIMITED, $BUSY) = qw(1 2 3 8 0);

my $s     = ScriptTest->new;
my $redis = $s->client;

my ($facts, $stock, $buyers, $orders) = ScriptTest::keys_of('admit', 1);
my $last = '18446744073709551615';

# What is there: units left, seq, state, the buyers, entries of theirs.
sub books {
    my @users = grep {defined} map { $_->{user} } $s->entries(1);
    return join ' ', $redis->get($stock), $redis->hget($facts, 'seq'), $redis->hget($facts, 'state'),
        join(',', sort { $a <=> $b } $redis->smembers($buyers)), join(',', @users);
}

# A sale of five units whose stream has an entry of this id.
sub sale_at {
    my ($id, %sale) = @_;

    $redis->flushdb;
    $s->sale(1, stock => 5, buyers_extra => 0, %sale);
    $redis->xadd($orders, $id, 'v', 1);
    return;
}

subtest 'no id is left' => sub {
    sale_at("$last-$last");
    my $before = $s->dump_all;

    my $reply = $s->buy(1, 1 .. 10);
    is($reply->{verdicts}, $BUSY x 10, 'all hear busy');
    like($reply->{trouble}, qr/^orders takes no purchase: .*last possible ID/, 'the log hears why');
    is("$reply->{seq} $reply->{left}", '0 5', 'no seq, no unit');
    is($s->dump_all, $before, 'and nothing was taken');
    is($s->verdicts(1, 1), $BUSY, 'again the same');
};

subtest 'some ids are left' => sub {
    sale_at("$last-18446744073709551612");

    my $reply = $s->buy(1, 1 .. 10);
    is($reply->{verdicts}, $ACCEPTED x 3 . $BUSY x 7, 'three buy, the rest hear busy');
    is("$reply->{seq} $reply->{left}", '3 2', 'as the reply says');
    is(books(), '2 3 open 1,2,3 1,2,3', 'entries, buyers, seq and units are those of three');
    is_deeply([map { $_->{seq} // () } $s->entries(1)], [1, 2, 3], 'with a number each');
    is($s->verdicts(1, 3, 4, 1), $REPEAT . $BUSY . $REPEAT, 'buyers hear that they bought');
    is($s->verdicts(1, 4, 2, [5, 2]), $BUSY . $REPEAT . $BUSY, 'after a busy too');
    is(books(), '2 3 open 1,2,3 1,2,3', 'nothing has moved');
};

subtest 'a limit is not charged for it' => sub {
    sale_at("$last-18446744073709551614");
    my @limits = map { ScriptTest::key("limit:$_", 1) } 1 .. 3;
    my $ask    = sub {
        return $s->call('admit', [ScriptTest::keys_of('admit', 1), @limits], 1, 3, 2, 2,
                        map({ ($_, 1, 'r', '') } 1 .. 3), 1, 0, 60_000, 0)->[5];
    };

    is($ask->(), "$ACCEPTED$BUSY$BUSY", 'one buys');
    is($ask->(), "$LIMITED$BUSY$BUSY", 'who heard busy may try again at once');
    is(books(), '4 1 open 1 1', 'one purchase');
};

# The same script with a command that fails when it is called as here: what no
# Redis does, but a script must not rely on.
sub broken {
    my ($command) = @_;

    my $text = ScriptTest::text('admit');
    my $hit  = $text =~ s/pcall\("\Q$command\E", /pcall("$command", "broken:", /g;
    ok($hit, "pcall of $command is there") or return '';
    return $text;
}

subtest 'a user that can not be taken out' => sub {
    sale_at("$last-18446744073709551614");
    my $reply = $s->buy_with(broken('SREM'), 1, 1 .. 5);
    is($reply->{verdicts}, $ACCEPTED . $BUSY x 4, 'the answer is the same');
    like($reply->{trouble}, qr/^paused: user 2 has no purchase and stays in order_users/, 'the log hears it');
    is(books(), '4 1 paused 1,2 1', 'and the sale is paused, with the books of who bought');
    is($reply->{rev}, $redis->hget($facts, 'rev'), 'rev is told');
};

for my $command ('HSET', 'DECRBY') {
    subtest "books that can not be closed: $command" => sub {
        sale_at('0-1');
        my $text = ScriptTest::text('admit');
        my ($from, $to) = $command eq 'HSET'
            ? ('pcall("HSET", facts, "seq", seq)', 'pcall("HSET", orders, "seq", seq)')
            : ('pcall("DECRBY", stock, taken)', 'pcall("DECRBY", orders, taken)');
        is($text =~ s/\Q$from/$to/, 1, 'the call is there');
        my $reply = $s->buy_with($text, 1, 1 .. 3);
        is($reply->{verdicts}, $ACCEPTED x 3, 'who is queued hears so');
        like($reply->{trouble}, qr/^paused: seq and stock can't be written/, 'the log hears it');
        is($redis->hget($facts, 'state'), 'paused', 'and the sale is paused');
        is($s->verdicts(1, 4, 1), '7' . $REPEAT, 'nobody buys then');
    };
}

done_testing();
