# The order_no that lua/admit.lua makes, against what Perl says of the calendar.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use POSIX qw(strftime);
use ScriptTest;
use Test::More;
use Time::Local qw(timegm);

my $s     = ScriptTest->new;
my $redis = $s->client;

# the script as it is, but for the clock
my $timed = ScriptTest::text('admit');
$timed =~ s/call\("TIME"\)/call("LRANGE", "time", 0, -1)/ or BAIL_OUT('admit has no clock');

# every edge of the calendar that a sale can meet in a century
my @moments;
for my $year (2000 .. 2099) {
    my @days = ([0, 1], [0, 31], [1, 28], [2, 1], [6, 4], [11, 31]);
    push @days, [1, 29] if $year % 4 == 0 && ($year % 100 || $year % 400 == 0);
    for my $day (@days) {
        push @moments, timegm(0, 0, 0, $day->[1], $day->[0], $year) * 1000,
            timegm(59, 59, 23, $day->[1], $day->[0], $year) * 1000 + 999;
    }
}

# and days between, each with another time of day; the step visits every month
for (my $ms = 946_684_800_000; $ms < 4_102_444_800_000; $ms += 7_333_333_337) {
    push @moments, $ms;
}

my ($activity, $user, $seq, @wrong) = (987_654_321, 40_000_000_000, 9_999_500);

$s->sale($activity, stock => scalar @moments, seq => $seq, start_ms => 0,
         end_ms => 99_999_999_999_999);

for my $ms (@moments) {
    $redis->del('time');
    $redis->rpush('time', int($ms / 1000), $ms % 1000 * 1000 + 500);

    $user += 7919;
    $seq++;
    my $reply = $s->buy_with($timed, $activity, $user);
    my ($got) = @{ $redis->xrevrange(ScriptTest::key('orders', $activity), '+', '-', 'COUNT', 1) };
    my %entry = @{ $got->[1] };

    my $expected = strftime('%y%m%d%H%M%S', gmtime int($ms / 1000)) . sprintf '%03d%06d%07d%04d',
        $ms % 1000, $activity % 1_000_000, $seq % 10_000_000, $user % 10_000;

    push @wrong, "$ms: $entry{order_no} at $entry{accepted_ms}, not $expected"
        if $entry{order_no} ne $expected || $entry{accepted_ms} ne $ms || $reply->{now_ms} ne $ms;
}

cmp_ok(scalar @moments, '>', 1500, 'many moments');
is_deeply(\@wrong, [], 'order_no and accepted_ms are right at every moment');

# by hand, so that the test does not rest on its own arithmetic alone
for my $case (
    [951_782_399_999,   1,             2, '00022823595999900000100000010002', '28 February 2000'],
    [951_782_400_000,   1_000_000,     3, '00022900000000000000000000010003', '29 February 2000'],
    [1_798_761_599_001, 7_654_321, 12345, '26123123595900165432100000012345', 'last second of 2026'],
    [1_798_761_600_000, 123,   9_990_000, '27010100000000000012300000010000', 'first of 2027'],
) {
    my ($ms, $id, $who, $expected, $name) = @{$case};

    $s->sale($id, start_ms => 0, end_ms => 99_999_999_999_999);
    $redis->del('time');
    $redis->rpush('time', int($ms / 1000), $ms % 1000 * 1000);
    $s->buy_with($timed, $id, $who);

    my ($entry) = $s->entries($id);
    is($entry->{order_no}, $expected, $name);
}

done_testing();
