# The whole way, nginx to MySQL and back: who waits through reloads (A4), whose
# purchase fails alone (C7), whose result is gone (C8).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../consumer";

use ConsumerTest;
use IO::Select;
use IO::Socket::INET;
use NodesTest qw(burst code tally token);
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

use constant WAITERS => soak(100, 500);     # of each kind
use constant OUTAGE_SECONDS => soak(2, 60);

my $c    = ConsumerTest->new(conf => { 'consumer.attempts' => 1, 'consumer.retry' => '50ms' });
my $t    = $c->t;
my $slow = $t->sanitized ? 5 : 1;
my $node = $t->nginx(redis => $c->{redis}, key_file => $t->file('auth.key', NodesTest::KEY), workers => 2,
    http => 'seckill_limit off; seckill_redis_timeout 4s; seckill_redis_connect_timeout 2s; seckill_timeout 8s; '
          . 'seckill_max_waiters 4000;');
$c->redis->hset('seckill:control', 'token_key', 'ab' x 32);
$c->redis->hset('seckill:control', 'rev', 1);

sub buy {
    my ($id, @users) = @_;
    return tally(burst(100, map { [$node->{port}, $_, "/seckill/$id"] } @users));
}

sub poll {
    my ($id, $user) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "connect: $!\n";
    print {$socket} "GET /seckill/result/$id HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                  . 'Authorization: Bearer ' . token($user) . "\r\n\r\n";
    my $text = do { local $/ = undef; <$socket> } // '';
    return $text =~ /\r\n\r\n(\{"code":(\d+),.*)/s ? ($2, $1) : ('none', $text);
}

# --- A4: five hundred of each kind wait while workers come and go

sub waiter {
    my ($one) = @_;

    $one->{socket} = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "connect: $!\n";
    $one->{in}     = '';
    my $path = '/seckill/result/1' . ($one->{sse} ? '' : '?wait=50');
    print { $one->{socket} } "GET $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        . ($one->{sse} ? "Accept: text/event-stream\r\n" : '') . 'Authorization: Bearer ' . token($one->{user}) . "\r\n\r\n";
    $one->{socket}->blocking(0);
    return;
}

# Reads from all until each has ended or the time is over; returns how many have not.
sub until_all_end {
    my ($seconds, @waiters) = @_;

    my $set = IO::Select->new(map { $_->{socket} } @waiters);
    my %by  = map { $_->{socket} => $_ } @waiters;
    my $end = time + $seconds;
    while ($set->count && time < $end) {
        for my $socket ($set->can_read(0.1)) {
            my $n = sysread $socket, $by{$socket}{in}, 65_536, length $by{$socket}{in};
            next if $n || !defined $n && $!{EAGAIN};
            $set->remove($socket);
        }
    }
    return $set->count;
}

sub end_of {
    my ($one) = @_;
    my $text = $one->{in};
    return 'queueing' if $one->{sse}  && $text =~ /retry: 1000\nid: queueing\n/ && $text !~ /id: final/;
    return 'queueing' if !$one->{sse} && $text =~ /\r\n\r\n\{"code":0,/;
    return 'order'    if $one->{sse}  && $text =~ /id: final\nevent: result\ndata: \{"code":1,/;
    return 'order'    if !$one->{sse} && $text =~ /\r\n\r\n\{"code":1,/;
    return "other: $text";
}

sub ends {
    my %count;
    $count{ end_of($_) }++ for @_;
    return \%count;
}

{
    $c->sale(1, units => 2 * WAITERS);
    is_deeply(buy(1, 1 .. 2 * WAITERS), { 0 => 2 * WAITERS }, 'all have bought, and nobody makes orders');

    my @waiters = map { { user => $_, sse => $_ % 2 } } 1 .. 2 * WAITERS;
    waiter($_) for @waiters;
    sleep 1;
    for my $round (1, 2) {
        my $began = time;
        kill 'HUP', $node->{pid};
        is(until_all_end(10, @waiters), 0, "reload $round: everybody is told, nobody is dropped");
        cmp_ok(time - $began, '<', 1.5 * $slow, '... within a second');
        is_deeply(ends(@waiters), { queueing => 2 * WAITERS }, '... that it is queueing still');
        waiter($_) for @waiters;
        sleep 0.5;
    }

    $c->start;
    is(until_all_end(20, @waiters), 0, 'orders are made: everybody hears');
    is_deeply(ends(@waiters), { order => 2 * WAITERS }, '... of an order');
    $t->wait_for(sub { $t->children($node) == 2 }, 10, 'the last workers');
    is(scalar($t->children($node)), 2, '... and no old worker is left');
}

# --- C7: one fails for good
{
    $c->dbh->do("ALTER TABLE seckill_orders ADD CONSTRAINT no_3 CHECK (user_id <> 3 OR activity_id <> 2)");
    ok($c->stop, 'nobody makes orders');
    $c->sale(2, units => 10);
    is_deeply(buy(2, 1 .. 5), { 0 => 5 }, 'five buy');
    is(join(' ', map { (poll(2, $_))[0] } 1 .. 5), '0 0 0 0 0', '... and wait');
    $c->start;
    $t->wait_for(sub { (poll(2, 3))[0] eq '2' }, 10, 'the failure');
    $t->wait_for(sub { !grep { (poll(2, $_))[0] ne '1' } 1, 2, 4, 5 }, 10, 'the orders');
    is(join(' ', map { (poll(2, $_))[0] } 1 .. 5), '1 1 2 1 1', 'one failed, the others did not');
}

# --- C8: results that are gone
{
    $c->sale(3, units => 10);
    is_deeply(buy(3, 1 .. 4), { 0 => 4 }, 'four buy');
    $c->wait_settled(3);
    my $number = $c->result(3, 2)->{order_no};
    $c->redis->del('seckill:result:2:{3}');
    my ($code) = poll(3, 2);
    like($code, qr/^[01]\z/, 'a result that is gone: no failure, no stranger');
    my $body;
    $t->wait_for(sub { ($code, $body) = poll(3, 2); $code eq '1' }, 5, 'the order');
    like($body, qr/"order_no":"\Q$number\E"/, '... and then the order it was');
    is((poll(3, 99))[0], '40006', 'who never bought has no purchase');

    $c->stop;
    is_deeply(buy(3, 5), { 0 => 1 }, 'one more, while no daemon is there');
    sleep OUTAGE_SECONDS;
    is((poll(3, 5))[0], '0', '... is in the queue');
    $c->start;
    $t->wait_for(sub { (poll(3, 5))[0] eq '1' }, 10, 'the order');
    is((poll(3, 5))[0], '1', '... and has an order');
}

ok($c->stop, 'the daemon stops well');
$t->stop($node);

done_testing();
