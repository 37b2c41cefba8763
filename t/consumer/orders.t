# Purchases become orders: exact in every column, told to the buyer, and the
# first start of the daemon finds what was sold before it.

use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;

# a server set up by somebody else: lax mode, latin1, another zone, small ids nowhere
my $c = ConsumerTest->new(mariadb => {
    'sql-mode' => '', 'character-set-server' => 'latin1', 'default-time-zone' => '+08:00' });

# B1: sold before the daemon ever ran, and before there was a group
$c->sale(1, units => 100);
is($c->buy(1, 1 .. 100), '1' x 100, '100 units are sold');

my $heard = $c->t->redis_client($c->{redis});
my %told;
$heard->subscribe('seckill:results:{1}', sub {
    my ($user, $result) = split / /, $_[0], 2;
    $told{$user} = JSON->new->decode($result);
});

$c->start;
$c->wait_settled(1);

is($c->order_count(1), 100, 'the first start makes 100 orders of them');
$c->all_bought(1, [1 .. 100], 'every buyer has one order, a record and a result');
is($c->sold(1), 100, 'units sold are counted');
is($c->redis->xpending($c->key(orders => 1), 'seckilld')->[0], 0, 'all are acknowledged');

$heard->wait_for_messages(0.2) while keys %told < 100 && $heard->wait_for_messages(1);
is(scalar keys %told, 100, 'every result was published');
is($told{7}{order_no}, $c->result(1, 7)->{order_no}, 'as it was written');

my ($status) = $c->dbh->selectrow_array('SELECT status FROM seckill_activities WHERE id = 1');
is($status, 1, 'the activity is running');

{
    my $order = $c->orders(1)->[0];
    my @entry = @{ $c->redis->xrange($c->key(orders => 1), '-', '+', 'COUNT', 1)->[0][1] };
    my %field = @entry;

    is($order->{order_no}, $field{order_no}, 'order_no is that of the entry');
    is($order->{seq}, 1, 'seq');
    is($order->{epoch}, 1, 'epoch');
    is($order->{product_id}, 1, 'product');
    is($order->{status}, 1, 'status is created');
    is($order->{request_id}, 'req', 'request id');
    is($order->{quantity}, 1, 'quantity');
}

# D10: prices go through as text
my @prices = qw(607013.31 0.29 17.08 2.32 99999999.99 0.00);

for my $i (0 .. $#prices) {
    $c->sale(10 + $i, price => $prices[$i]);
    $c->buy(10 + $i, 5);
}
for my $i (0 .. $#prices) {
    $c->t->wait_for(sub { $c->order_count(10 + $i) == 1 }, 10, "an order of activity 1$i");
    is($c->orders(10 + $i)->[0]{seckill_price}, $prices[$i], "price $prices[$i] is exact");
}

# C16, D11: ids, quantities, and what the buyer sent
my @large = qw(9007199254740992 9007199254740993 18446744073709551615);
my $ext   = qq{\x{1F600} "red", o'clock \\ 红色};

$c->sale(2, units => 100);
is($c->buy(2, $large[0], $large[1], [$large[2], 3, $ext, 'r-2.x_Y']), '111', 'large ids buy');
$c->wait_settled(2);

is_deeply([map { $_->{user_id} } @{ $c->orders(2) }], \@large, 'large user ids are exact');
is($c->orders(2)->[2]{ext}, $ext, 'ext with four-byte characters and quotes is intact');
is($c->orders(2)->[2]{quantity}, 3, 'quantity is kept');
is($c->orders(2)->[2]{request_id}, 'r-2.x_Y', 'request id is kept');
is($c->sold(2), 5, 'units are counted, not orders');
$c->all_bought(2, \@large, 'large ids have their results');

# D11: the same on a connection made later
$c->dbh->do('KILL ' . $_->[0]) for grep { $_->[0] != $c->dbh->{mysql_thread_id} }
    @{ $c->dbh->selectall_arrayref('SHOW PROCESSLIST') };
$c->buy(2, [77, 1, $ext]);
$c->t->wait_for(sub { $c->order_count(2) == 4 }, 10, 'an order on a new connection');
is($c->orders(2)->[3]{ext}, $ext, 'and after a reconnect');

{
    # D12: one instant, whatever zone a session has
    my ($age) = $c->dbh->selectrow_array(
        'SELECT TIMESTAMPDIFF(SECOND, created_at, NOW()) FROM seckill_orders WHERE user_id = 77');
    cmp_ok(abs $age, '<', 5, 'created_at is the real instant, seen from UTC');
    $c->dbh->do("SET time_zone = '-11:00'");
    ($age) = $c->dbh->selectrow_array(
        'SELECT TIMESTAMPDIFF(SECOND, created_at, NOW()) FROM seckill_orders WHERE user_id = 77');
    cmp_ok(abs $age, '<', 5, 'and from another zone');
}

# a sale that begins while nobody buys
$c->sale(3, start_ms => (time + 2) * 1000);
my $running = sub {
    my ($s) = $c->dbh->selectrow_array('SELECT status FROM seckill_activities WHERE id = 3');
    return $s;
};
is($running->(), 0, 'not started');
sleep 1;
is($running->(), 0, 'still not');
$c->t->wait_for(sub { $running->() == 1 }, 5, 'status 1');
is($running->(), 1, 'status is 1 once it has started');

ok($c->stop, 'the daemon stops well');
unlike($c->t->log_text($c->{daemon}), qr/dead letter/, 'no dead letters');

done_testing;
