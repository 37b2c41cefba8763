# Orders that nobody paid in time are cancelled, once, whoever does it; a payment
# that comes late loses, and knows.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $c = ConsumerTest->new(conf => {
    'consumer.pay_timeout' => '2s', 'consumer.settle_after' => '500ms' });
my $redis = $c->redis;

sub statuses {
    my ($id) = @_;
    return join ' ', map {"$_->[0]x$_->[1]"} @{ $c->dbh->selectall_arrayref(
        'SELECT status, COUNT(*) FROM seckill_orders WHERE activity_id = ? GROUP BY status'
            . ' ORDER BY status', undef, $id) };
}
sub ledger {
    my ($id) = @_;
    return join ' ', map { $_ // '' } $c->dbh->selectrow_array(
        'SELECT COUNT(*), SUM(units), MIN(target), MAX(target) FROM seckill_stock_log'
            . " WHERE activity_id = ? AND kind = 'cancel'", undef, $id);
}
sub stock { return ($c->dbh->selectrow_array('SELECT stock FROM products WHERE id = ?', undef, $_[0]))[0] }

# what docs/payments.md tells the payment service to run
sub pay {
    my ($id, $user) = @_;
    return $c->dbh->do('UPDATE seckill_orders SET status = 2 WHERE activity_id = ? AND user_id = ?'
        . ' AND status = 1', undef, $id, $user) + 0;
}

# the default: units go nowhere
{
    $c->start;
    $c->sale(1, units => 100);
    $c->buy(1, map { [$_, 2] } 1 .. 20);
    $c->wait_settled(1);
    is(pay(1, $_), 1, "user $_ pays") for 1 .. 5;
    sleep 0.5;
    is(statuses(1), '1x15 2x5', 'before the timeout nothing happens');
    $c->t->wait_for(sub { statuses(1) eq '2x5 3x15' }, 8, 'the cancel');
    is(ledger(1), '15 30  ', 'on record with their units, which go nowhere');
    is($c->sold(1), 40, 'sold as it was');
    is($redis->get($c->key(stock => 1)), 60, 'Redis has no unit more');
    is(stock(1), 0, 'nor the product');
    is(pay(1, 6), 0, 'a payment that comes late finds no unpaid order');
    is($c->result(1, 6)->{success}, JSON::true(), 'the result stays: there was an order');
    ok($c->stop, 'stops');
}

# to the product
{
    $c->{conf} = $c->conf('consumer.cancelled_units' => 'product');
    $c->start;
    $c->sale(2, units => 100);
    $c->buy(2, map { [$_, 2] } 1 .. 10);
    $c->wait_settled(2);
    $c->t->wait_for(sub { statuses(2) eq '3x10' }, 8, 'the cancel');
    is(ledger(2), '10 20 product product', 'on record');
    is(stock(2), 20, 'the product has the units');
    is($c->sold(2), 0, '... and the sale counts them as sold no more');
    is($redis->get($c->key(stock => 2)), 80, 'the sale does not');
    ok($c->stop, 'stops');
}

# to the sale: sold once more, to somebody else
{
    $c->{conf} = $c->conf('consumer.cancelled_units' => 'activity');
    $c->start;
    $c->sale(3, units => 10);
    $c->buy(3, 1 .. 10);
    $c->wait_settled(3);
    is($c->buy(3, 50), '3', 'sold out');
    is(pay(3, 1), 1, 'one pays');
    $c->t->wait_for(sub { statuses(3) eq '2x1 3x9' }, 8, 'the cancel');
    $c->t->wait_for(sub { $redis->get($c->key(stock => 3)) == 9 }, 3, 'the units');
    is($redis->hget($c->key(activity => 3), 'released'), 9, 'counted as released');
    is(ledger(3), '9 9 redis redis', 'on record');
    is($c->sold(3), 1, 'one unit is sold');
    is($c->buy(3, 2, 61 .. 70), '2' . '1' x 9 . '3', 'nine more may buy, a cancelled buyer may not');
    $c->wait_settled(3);
    pay(3, $_) for 61 .. 69;
    is($c->sold(3), 10, 'ten units again');
    is_deeply($c->dead(3), [], 'MySQL agrees');
    sleep 1.2;
    is($redis->get($c->key(stock => 3)), 0, 'nothing is given twice');

    # lost on the way: made up for
    $redis->hset($c->key(activity => 3), released => 5);
    $c->stop;
    $c->start;
    $c->t->wait_for(sub { $redis->hget($c->key(activity => 3), 'released') >= 9 }, 5, 'the total');
    is($redis->get($c->key(stock => 3)), 4, 'a step that was lost is made up for at the start');
    ok($c->stop, 'stops');
}

# two daemons, and payments at the same time: each order ends once
{
    $c->{conf} = $c->conf('consumer.cancelled_units' => 'product', 'consumer.pay_timeout' => '1s');
    my $other = $c->t->seckilld($c->conf('consumer.cancelled_units' => 'product',
        'consumer.pay_timeout' => '1s', 'consumer.name' => 'other'));
    $c->start;
    $c->sale(4, units => 3000);
    $c->buy(4, 1 .. 3000);
    $c->wait_settled(4);
    my $paid = 0;
    my $user = 0;
    my $end = time + 20;
    while (statuses(4) =~ /1x/ && time < $end) {
        $paid += pay(4, ++$user) for 1 .. 20;
    }
    my $cancelled = 3000 - $paid;
    is(statuses(4), join(' ', ($paid ? "2x$paid" : ()), "3x$cancelled"),
        "$paid paid and $cancelled cancelled make 3000");
    is(ledger(4), "$cancelled $cancelled product product", 'each cancelled once');
    is(stock(4), $cancelled, 'and given back once');
    $c->t->stop($other);
    ok($c->stop, 'stops');
}

# never: F-F3, unless it is asked for
{
    $c->{conf} = $c->conf('consumer.pay_timeout' => undef);
    $c->start;
    $c->sale(5, units => 10);
    $c->buy(5, 1);
    $c->wait_settled(5);
    $c->dbh->do('UPDATE seckill_orders SET created_at = NOW() - INTERVAL 1 YEAR,'
        . " order_no = CONCAT('20', SUBSTRING(order_no, 3)) WHERE activity_id = 5");
    sleep 2;
    is(statuses(5), '1x1', 'without a pay_timeout nothing is cancelled');
}

ok($c->stop, 'the daemon stops well');

done_testing;
