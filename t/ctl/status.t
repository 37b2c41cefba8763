# status: what both servers hold, and never 0 for what is not known.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;

my $c     = CtlTest->new;
my $redis = $c->redis;

{
    my ($exit, $json) = $c->ctl_json('status');
    is($exit, 0, 'no activity at all is fine');
    is_deeply($json, { activities => [], control => undef }, '... and an empty list');
    is(($c->ctl('status', 1))[0], 1, 'an activity that is nowhere is exit 1');
}

my $id = $c->activity(max_quantity => 3);

{
    my ($exit, $json) = $c->ctl_json('status', $id);
    my $one = $json->{activities}[0];
    is($exit, 0, 'an activity of MySQL alone is known');
    is($one->{phase}, 'not_preheated', '... as not preheated');
    is($one->{facts}, undef, '... without facts');
    is($one->{stock}, undef, '... its stock is unknown, not 0');
    is($one->{unread}, undef, '... and so is its backlog');
}

is(($c->ctl('preheat', $id))[0], 0, 'preheated');

{
    my ($exit, $json) = $c->ctl_json('status', $id);
    my $one = $json->{activities}[0];
    is($exit, 0, 'status works');
    is($one->{activity}, "$id", 'the id is a string');
    is($one->{phase}, 'not_started', 'before its start');
    is_deeply([ @{ $one->{facts} }{qw(product_id price stock_limit max_quantity epoch rev seq state)} ],
        [ "$id", '9.90', 100, 3, 1, 1, 0, 'open' ], 'the facts');
    is_deeply([ @{$one}{qw(stock buyers stream unread pending dead orders units_ordered mysql_sold)} ],
        [ 100, 0, 0, 0, 0, 0, 0, 0, 0 ], 'the numbers');
    cmp_ok(abs($one->{redis_time_ms} / 1000 - time), '<', 60, "Redis' clock");
}

# three purchases, two read, one of them acknowledged, one dead letter
my $stream = "seckill:orders:{$id}";
$redis->xadd($stream, '*', user => $_) for 1 .. 3;
$redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'COUNT', 2, 'STREAMS', $stream, '>');
my ($first) = @{ ($redis->xrange($stream, '-', '+', 'COUNT', 1))[0] };
$redis->xack($stream, 'seckilld', $first);
$redis->xadd("seckill:dead:{$id}", '*', user => 9);
$redis->sadd("seckill:order_users:{$id}", 1 .. 3);
$redis->decrby("seckill:stock:{$id}", 3);
$c->order($id, 1, quantity => 2);
$c->order($id, 2, status => 3);
$c->dbh->do("UPDATE seckill_activities SET sold = 3, status = 1 WHERE id = $id");

{
    my ($exit, $json) = $c->ctl_json('status', $id);
    my $one = $json->{activities}[0];
    is_deeply([ @{$one}{qw(stock buyers stream unread pending dead orders units_ordered
                           mysql_sold mysql_status)} ],
        [ 97, 3, 3, 1, 1, 1, 2, 3, 3, 1 ], 'a sale in the middle');

    ($exit, my $out) = $c->ctl('status', $id);
    like($out, qr/^  $_->[0] +$_->[1]$/m, "the table says $_->[0] $_->[1]")
        for [ stock => 97 ], [ buyers => 3 ], [ unread => 1 ], [ pending => 1 ], [ dead => 1 ],
        [ orders => 2 ];
    like($out, qr/^  start +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, here /m, '... and names the zones');
}

# Redis cannot count what is left after a delete in between (B12)
$redis->xdel($stream, ($redis->xrange($stream, '-', '+'))[2][0]);
$redis->xadd($stream, '*', user => $_) for 4 .. 6;
$redis->xdel($stream, ($redis->xrange($stream, '-', '+'))[3][0]);

{
    my %group = @{ ($redis->xinfo('GROUPS', $stream))[0] };
    is($group{lag}, undef, 'Redis says null for the lag');
    my ($exit, $json) = $c->ctl_json('status', $id);
    is($json->{activities}[0]{unread}, undef, 'unread is unknown then, not 0');
    my (undef, $out) = $c->ctl('status', $id);
    like($out, qr/^  unread +unknown$/m, '... in the table too');

    $redis->xgroup('DESTROY', $stream, 'seckilld');
    ($exit, $json) = $c->ctl_json('status', $id);
    is_deeply([ @{ $json->{activities}[0] }{qw(unread pending)} ], [ undef, undef ],
        'without the group nothing is known of the backlog');

    $redis->del("seckill:stock:{$id}");
    ($exit, $json) = $c->ctl_json('status', $id);
    is($json->{activities}[0]{stock}, undef, 'a stock that is gone is unknown, not 0');
}

# phases
{
    my $now = time * 1000;
    for my $case (
        [ 'running', 'open', $now - 9000, $now + 90000 ],
        [ 'ended', 'open', $now - 9000, $now - 1000 ],
        [ 'closed', 'closed', $now - 9000, $now + 90000 ],
        [ 'paused', 'paused', $now - 9000, $now + 90000 ],
        [ 'settled', 'settled', $now - 9000, $now - 1000 ],
        )
    {
        my ($phase, $state, $start, $end) = @{$case};
        $redis->hset("seckill:activity:{$id}", state => $state, start_ms => $start,
            end_ms => $end);
        my ($exit, $json) = $c->ctl_json('status', $id);
        is($json->{activities}[0]{phase}, $phase, "a sale can be $phase");
    }
}

# all of them, in the order of their numbers
{
    $redis->sadd('seckill:activities', 10, 9, '18446744073709551615', 'odd');
    my ($exit, $json, $err) = $c->ctl_json('status');
    is($exit, 0, 'status of all works');
    is_deeply([ map { $_->{activity} } @{ $json->{activities} } ],
        [ $id, 9, 10, '18446744073709551615' ], '... sorted as numbers, no digit lost');
    like($err, qr/"seckill:activities" holds "odd"/, '... and what is no id is told');
}

# a key of the wrong type is an error by name, not a 0
{
    $redis->del("seckill:order_users:{$id}");
    $redis->set("seckill:order_users:{$id}", 'x');
    my ($exit, $json, $err) = $c->ctl_json('status', $id);
    is($exit, 4, 'a damaged key is not fine');
    like($err, qr/WRONGTYPE/, '... and said');
}

done_testing();
