# Many purchases before anybody reads them (B3), a start with many pending ones
# under the watchdog (F3), and no rest afterwards (B4).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use IO::Select;
use IO::Socket::UNIX;
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

use constant ACTIVITIES => soak(5, 20);
use constant EACH       => soak(400, 10_000);
use constant PENDING    => soak(5000, 300_000);
use constant THROUGH    => soak(5000, 1_000_000);
use constant PATIENCE   => soak(60, 900);

my $c = ConsumerTest->new(conf => { 'consumer.retain' => '2s' });

sub memory { return scalar $c->redis->info('memory')->{used_memory} }
sub length_of { return $c->redis->xlen($c->key(orders => $_[0])) }

sub buy {
    my ($id, $first, $last) = @_;
    for (my $user = $first; $user <= $last; $user += 2560) {
        my $end = $user + 2559 < $last ? $user + 2559 : $last;
        $c->buy($id, $user .. $end);
    }
    return;
}

# nobody reads: nothing of it is cut off (B3)
{
    $c->sale($_, units => EACH) for 1 .. ACTIVITIES;
    buy($_, 1, EACH) for 1 .. ACTIVITIES;
    my $waiting = 0;
    $waiting += length_of($_) for 1 .. ACTIVITIES;
    is($waiting, ACTIVITIES * EACH, 'all that was sold waits, with nobody to read it');
    $c->start;
    $c->wait_settled($_, PATIENCE) for 1 .. ACTIVITIES;
    is($c->count(seckill_orders => 'activity_id <= ' . ACTIVITIES), ACTIVITIES * EACH, 'and becomes an order each');
    ok($c->stop, 'the daemon stops well');
}

# delivered to a daemon that died: the next one starts under the watchdog (F3)
{
    my $id      = 100;
    my $slow    = $c->t->sanitized ? 3 : 1;
    my $path    = $c->t->dir . '/notify.sock';
    my $manager = IO::Socket::UNIX->new(Local => $path, Type => SOCK_DGRAM) or die $!;

    $c->sale($id, units => PENDING, group => 1);
    buy($id, 1, PENDING);
    $c->redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'COUNT', 10_000, 'STREAMS', $c->key(orders => $id), '>')
        for 1 .. PENDING / 10_000 + 1;
    is($c->pending($id), PENDING, PENDING . ' purchases are pending');

    my $began = time;
    $c->start(NOTIFY_SOCKET => $path, WATCHDOG_USEC => 2_000_000 * $slow);
    my ($ready, $longest, $last) = (undef, 0, $began);
    while (!$c->is_settled($id) && time < $began + PATIENCE) {
        while (IO::Select->new($manager)->can_read(0.2)) {
            $manager->recv(my $text, 256);
            $ready //= time - $began if $text =~ /READY=1/;
            $longest = time - $last if time - $last > $longest;
            $last = time;
        }
    }
    cmp_ok($ready // 99, '<', 2 * $slow, 'the next daemon is ready at once');
    cmp_ok($longest, '<', 2 * $slow, '... and feeds the watchdog through all of them');
    is($c->order_count($id), PENDING, '... which become orders');
    ok($c->stop, 'the daemon stops well');
}

# through and gone (B4)
{
    my $id = 101;
    $c->sale($id, units => THROUGH);
    $c->start;
    my $before = memory();
    buy($id, 1, THROUGH);
    $c->wait_settled($id, PATIENCE);
    is($c->sold($id), THROUGH, THROUGH . ' orders');
    $c->t->wait_for(sub { length_of($id) == 0 }, 60, 'the stream to be trimmed');
    is(length_of($id), 0, '... leave nothing in the stream');
    is($c->pending($id), 0, '... or pending');

    # what stays is documented: a result and a member of the buyers for each
    $c->redis->del(map { "seckill:result:$_:{$id}" } $_ .. $_ + 999) for map { $_ * 1000 + 1 } 0 .. THROUGH / 1000 - 1;
    $c->redis->del($c->key(order_users => $id));
    # the table of all keys, once grown, stays: 16 bytes for each
    cmp_ok(memory() - $before, '<', 4 * 1024 * 1024 + 16 * THROUGH, '... but the results and the buyers');
    ok($c->stop, 'the daemon stops well');
}

done_testing;
