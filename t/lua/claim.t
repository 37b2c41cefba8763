# lua/claim.lua: what a consumer left behind is taken over, and of entries that
# are gone from the stream a letter stays, in the same step.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my $orders = ScriptTest::key('orders', 1);
my $dead   = ScriptTest::key('dead', 1);

# entries that a consumer was given; returns their ids
sub given {
    my (@users) = @_;

    $redis->flushdb;
    $s->sale(1, stock => 5000);
    $s->buy(1, @users);
    $redis->xreadgroup('GROUP', 'seckilld', 'gone-1', 'COUNT', 5000, 'STREAMS', $orders, '>');

    return map { $_->{id} } $s->entries(1);
}

sub claim {
    my ($cursor, $count, $idle) = @_;
    return $s->call('claim', [$orders, $dead], 'seckilld', 'n-1', $idle // 0, $cursor, $count, 'why');
}

sub mine { return scalar @{ [$redis->xpending($orders, 'seckilld', '-', '+', 5000, 'n-1')] } }

subtest 'in pages' => sub {
    my @id = given(1 .. 30);

    my $reply = claim('0-0', 20);
    is($reply->[1], 20, 'twenty are taken over');
    isnt($reply->[0], '0-0', 'there is more');
    is(claim($reply->[0], 20)->[1], 10, 'then the others');
    is(mine(), 30, 'all are mine');
    is($redis->exists($dead), 0, 'no letter');
    is(claim('0-0', 20, 60_000)->[1], 0, 'who works on them keeps them');
};

subtest 'deleted' => sub {
    my @id = given(1 .. 5);

    $redis->xdel($orders, @id[1, 3]);
    my $reply = claim('0-0', 20);
    is($reply->[1], 3, 'three are there');
    is_deeply($reply->[2], [@id[1, 3]], 'two are not');
    my @letters = map { { @{ $_->[1] } } } $redis->xrange($dead, '-', '+');
    is_deeply([map { "$_->{entry} $_->{reason} $_->{first_error}" } @letters],
        [map {"$_ deleted why"} @id[1, 3]], 'and have a letter each');
    cmp_ok(abs($letters[0]{dead_ms} - time * 1000), '<', 5000, 'by the clock of Redis');
    is_deeply(claim('0-0', 20)->[2], [], 'once');
    is(scalar(() = $redis->xrange($dead, '-', '+')), 2, 'and no more');
};

subtest 'F-E1: a letter that can not be written leaves its entry pending' => sub {
    my @id   = given(1 .. 5);
    my $last = '18446744073709551615';

    $redis->xdel($orders, @id[1, 3]);
    $redis->xadd($dead, "$last-18446744073709551614", 'x', 'x');
    my $reply = claim('0-0', 20);
    is($reply->[1], 3, 'what is there is taken over');
    is_deeply($reply->[2], [$id[1]], 'one letter has room');
    like($reply->[3], qr/last possible ID/, 'and what went wrong is told');
    is(($redis->xpending($orders, 'seckilld'))[0], 4, 'the other one stays pending');

    $redis->del($dead);
    is_deeply(claim('0-0', 20)->[2], [$id[3]], 'and has its letter when there is room');
    is(($redis->xpending($orders, 'seckilld'))[0], 3, 'then it is acknowledged');
};

subtest 'ids beyond 2^53, pages of one' => sub {
    given(1);
    my @id = map {"18446744073709551615-1844674407370955161$_"} 2 .. 4;
    $redis->xadd($orders, $_, 'v', 1) for @id;
    $redis->xreadgroup('GROUP', 'seckilld', 'gone-1', 'COUNT', 5000, 'STREAMS', $orders, '>');
    $redis->xdel($orders, $id[1]);

    my ($cursor, $claimed, @letters) = ('0-0', 0);
    for (1 .. 5) {
        my $reply = claim($cursor, 1);
        ($cursor, $claimed) = ($reply->[0], $claimed + $reply->[1]);
        push @letters, @{ $reply->[2] };
        last if $cursor eq '0-0';
    }
    is("$cursor $claimed @letters", "0-0 3 $id[1]", 'all are met');
};

subtest 'refused' => sub {
    my @id = given(1, 2);
    $redis->xdel($orders, $id[0]);

    $redis->lpush($dead, 'x');
    my $before = $s->dump_all;
    eval { claim('0-0', 20) };
    like($@, qr/WRONGTYPE/, 'letters of another type');
    is($s->dump_all, $before, 'nothing is taken over');
    $redis->del($dead);

    $redis->xgroup('DESTROY', $orders, 'seckilld');
    eval { claim('0-0', 20) };
    like($@, qr/^\[\w+\] NOGROUP /, 'without the group Redis says so');
};

done_testing;
