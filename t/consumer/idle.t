# B7: a queue that is empty for long is no error: three consumers, now and then a
# purchase, then silence.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

use constant EVERY_SECONDS  => soak(0.5, 20);
use constant SOLD_SECONDS   => soak(3, 600);
use constant SILENT_SECONDS => soak(3, 600);

my $c = ConsumerTest->new(conf => { 'redis.timeout' => '500ms', 'mysql.timeout' => '2s' });
my @daemons = map { $c->t->seckilld($c->conf('consumer.name' => "host-$_")) } 1 .. 3;
$c->t->wait_log($_, qr/seckilld is up/) for @daemons;
$c->sale(1, units => 100);
$c->buy(1, 1);
$c->wait_settled(1);
sleep 2;    # connections are made when they are needed first

sub connections {
    my ($info) = scalar $c->redis->info('stats');
    return $info->{total_connections_received};
}

my $before = connections();
my ($user, $end) = (1, time + SOLD_SECONDS);
while (time < $end) {
    is($c->buy(1, ++$user), '1', "user $user buys");
    $c->wait_settled(1, 5);
    sleep EVERY_SECONDS;
}
sleep SILENT_SECONDS;
$c->buy(1, ++$user);
$c->wait_settled(1, 5);

$c->all_bought(1, [1 .. $user], 'each has an order');
is($c->order_count(1), $user, 'one');
is(connections(), $before, 'nobody connected to Redis again');
for my $daemon (@daemons) {
    unlike($c->t->log_text($daemon), qr/level=(?:warn|error)/, 'idle is no error');
    is($c->t->stop($daemon), 0, 'it stops well');
}

done_testing;
