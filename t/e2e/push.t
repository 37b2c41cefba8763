# From the commit of an order to its buyer: how long until an open event stream
# and a long poll say so.  The commit is seen by a query that is asked again and
# again beside them, so the figures are good to a millisecond or so.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use NodesTest qw(burst code median);
use SeckillTest;
use Test::More;
use IO::Select;
use Time::HiRes qw(sleep time);

# literal: pushed in less than 100 ms after the commit; more on a machine that stalls
use constant PUSHED_MS => 100;
use constant ROUNDS    => 20;

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $mysql = $t->mariadb;
my $conf  = $t->conf(redis => $redis, mysql => $mysql);
my $key   = $t->file('auth.key', NodesTest::KEY);
my $slow  = $t->sanitized ? 10 : 1;

my ($exit, undef, $error) = $t->ctl($conf, 'schema', 'apply', '--dir', $t->root . '/sql');
is($exit, 0, 'the schema') or diag($error);
$mysql->{dbh}->do(q{INSERT INTO products (id, name, stock, price) VALUES (1, 'gaiwan', 1000, 99.00)});
$mysql->{dbh}->do(q{INSERT INTO seckill_activities (id, product_id, seckill_price, stock_limit, start_time, end_time)
    VALUES (1, 1, 9.90, 100, UTC_TIMESTAMP() - INTERVAL 1 SECOND, UTC_TIMESTAMP() + INTERVAL 1 HOUR)});
($exit, undef, $error) = $t->ctl($conf, 'preheat', '1', '--late');
is($exit, 0, 'the sale') or diag($error);

my $daemon = $t->seckilld($conf);
my $node   = $t->nginx(redis => $redis, key_file => $key, http => 'seckill_redis_timeout 2s; seckill_timeout 5s;');
my $row    = $mysql->{dbh}->prepare('SELECT 1 FROM seckill_orders WHERE activity_id = 1 AND user_id = ?');

# a buyer's socket that waits for the result
sub waits {
    my ($user, $path, $accept) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "cannot connect: $!\n";
    print {$socket} "GET $path HTTP/1.1\r\nHost: localhost\r\nAccept: $accept\r\nConnection: close\r\n"
        . 'Authorization: Bearer ' . NodesTest::token($user) . "\r\n\r\n";
    return $socket;
}

# Milliseconds from the commit to the result on the socket.
sub took {
    my ($user, $socket) = @_;

    my ($select, $text, $committed, $told) = (IO::Select->new($socket), '');
    my $end = time + 10;
    while (!($committed && $told) && time < $end) {
        $committed //= time if !$committed && $mysql->{dbh}->selectrow_array($row, undef, $user);
        if (!$told && $select->can_read($committed ? 0.01 : 0)) {
            sysread $socket, $text, 65_536, length $text;
            $told = time if $text =~ /\{"code":1,/;
        }
    }
    die "user $user: " . ($committed ? "not told: $text\n" : "no order\n") if !$told || !$committed;
    return 1000 * ($told > $committed ? $told - $committed : 0);
}

my $user = 0;
for my $way (['an event stream', '/seckill/result/1', 'text/event-stream'], ['a long poll', '/seckill/result/1?wait=30', '*/*']) {
    my ($name, $path, $accept) = @{$way};
    my @ms;

    for (1 .. ROUNDS) {
        $user++;
        # it waits before there is an order
        kill 'STOP', $daemon->{pid};
        is(code(burst(1, [$node->{port}, $user, '/seckill/1'])), '0', "user $user buys") or last;
        my $socket = waits($user, $path, $accept);
        $t->wait_for(sub { $redis->{client}->pubsub('NUMSUB', 'seckill:results:{1}')->[1] }, 10, 'a subscription');
        sleep 0.05;
        kill 'CONT', $daemon->{pid};
        push @ms, took($user, $socket);
    }
    my ($longest) = sort { $b <=> $a } @ms;
    cmp_ok(median(@ms), '<', PUSHED_MS * $slow, "$name is told less than 100 ms after the commit");
    note sprintf '%s: median %.1f ms, longest %.1f ms after the commit, %d rounds', $name, median(@ms), $longest, scalar @ms;
}

done_testing;
