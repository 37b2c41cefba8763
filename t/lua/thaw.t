# lua/thaw.lua: entries whose time of delivery is in the future become idle, when
# they are as they were seen. F-F2.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ClockShim;
use ScriptTest;
use Test::More;

my $clocks = ClockShim->new('redis-server' => 'redis-server');
my $s      = ScriptTest->new;
my $redis  = $s->client;
my $orders = ScriptTest::key('orders', 1);

# entries that a consumer was given two hours in the future; returns their ids
sub given {
    my (@users) = @_;

    $redis->flushdb;
    $s->sale(1, stock => 5000);
    $s->buy(1, @users);
    $clocks->step('redis-server', 7200);
    $redis->xreadgroup('GROUP', 'seckilld', 'gone-1', 'COUNT', 5000, 'STREAMS', $orders, '>');
    $clocks->step('redis-server', 0);

    return map { $_->{id} } $s->entries(1);
}

sub thaw { return scalar $s->call('thaw', [$orders], 'seckilld', 60_000, @_ / 3, @_) }

# "consumer deliveries idle" of an entry; idle is "none" or "long"
sub pending {
    my ($row) = $redis->xpending($orders, 'seckilld', $_[0], $_[0], 1);
    return $row ? "$row->[1] $row->[3] " . ($row->[2] >= 60_000 ? 'long' : 'none') : 'nobody';
}

{
    my @id = given(1 .. 3);
    is(pending($id[0]), 'gone-1 1 none', 'Redis says that it is not idle');
    is_deeply(thaw(map { ($_, 'gone-1', 1) } @id[0, 1]), [2, []], 'two become idle');
    is(pending($id[0]), 'gone-1 1 long', '... of the same consumer, not delivered once more');
    is(pending($id[2]), 'gone-1 1 none', '... the third one does not');
    my $reply = $redis->xautoclaim($orders, 'seckilld', 'n-1', 60_000, '0-0', 'JUSTID');
    is_deeply($reply->[1], [@id[0, 1]], '... and can be taken over');
    is_deeply(thaw($id[0], 'gone-1', 1), [0, []], 'again changes nothing');
}

# what has moved since it was seen
{
    my @id = given(1 .. 4);
    $redis->xclaim($orders, 'seckilld', 'other', 0, $id[0], 'JUSTID', 'TIME', (time + 7200) * 1000);
    $redis->xclaim($orders, 'seckilld', 'gone-1', 0, $id[1], 'RETRYCOUNT', 2, 'JUSTID', 'TIME',
        (time + 7200) * 1000);
    select undef, undef, undef, 0.01;
    $redis->xack($orders, 'seckilld', $id[2]);
    is_deeply(thaw($id[0], 'other', 1), [0, []], 'held by another one, a moment ago: not in the future');
    is_deeply(thaw($id[0], 'gone-1', 1), [0, []], 'another consumer');
    is_deeply(thaw($id[1], 'gone-1', 1), [0, []], 'another count');
    is_deeply(thaw($id[2], 'gone-1', 1), [0, []], 'acknowledged');
    is(pending($id[2]), 'nobody', '... and stays so');
    is(pending($id[3]), 'gone-1 1 none', 'nothing else is touched');
}

# gone from the stream: it stays pending, for its letter
{
    my @id = given(1 .. 2);
    $redis->xdel($orders, $id[0]);
    is_deeply(thaw(map { ($_, 'gone-1', 1) } @id), [1, [ $id[0] ]], 'one is gone, and named');
    is(pending($id[0]), 'gone-1 1 none', '... and still pending');
}

# refused
{
    my @id = given(1);
    my $before = $s->dump_all;
    for my $argv ([], ['seckilld', 1, 1], ['seckilld', 1, 1, $id[0], 'x'], ['seckilld', 1, 'x']) {
        eval { $s->call('thaw', [$orders], @{$argv}) };
        like($@, qr/SECKILL thaw takes/, 'refused: ' . @{$argv} . ' arguments');
    }
    is($s->dump_all, $before, '... and nothing is changed');
    eval { $s->call('thaw', [$orders], 'nobody', 1, 1, $id[0], 'x', 1) };
    like($@, qr/NOGROUP/, 'without the group Redis says so');
}

done_testing;
