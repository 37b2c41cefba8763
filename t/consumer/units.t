# Units that were never reserved are never sold: the daemon believes the ledger, and
# stops one activity rather than write a buyer off.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep);

my $c = ConsumerTest->new;

sub ledger {
    my ($id, $kind, $ref, $units, $target) = @_;
    $c->dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, '
        . 'target, actor) VALUES (?, ?, 1, ?, ?, ?, ?, "test")', undef, $id, $id, $kind, $ref,
        $units, $target // '');
    return;
}

sub set {
    my ($id, $what) = @_;
    return $c->dbh->do("UPDATE seckill_activities SET $what WHERE id = $id");
}

sub row {
    my ($id) = @_;
    return join ' ', map { $_ // 'NULL' } $c->dbh->selectrow_array(
        "SELECT stock_limit, sold, returned, reserved FROM seckill_activities WHERE id = $id");
}

# a limit that a seckillctl of 0.1.0 raised: reserved is behind, the sale is not stopped
{
    $c->sale(1, units => 15);
    ledger(1, 'preheat', 'reserve', -10);
    set(1, 'reserved = 10');
    ledger(1, 'restock', 'restock-1', -5);
    $c->buy(1, 1 .. 12);
    my $log = $c->start;
    $c->wait_settled(1);
    is($c->order_count(1), 12, 'twelve of fifteen, while the row knows of ten');
    is_deeply($c->dead(1), [], '... nobody is written off');
    is(row(1), '15 12 0 15', '... the row has the units of the ledger now');
    $c->t->wait_log($log, qr/reserved units are taken over.*activity=1 reserved=15 was=10/);
    ok($c->stop, 'stops');
}

# ... and when nobody buys
{
    $c->sale(2, units => 10);
    ledger(2, 'preheat', 'reserve', -10);
    $c->sale(3, units => 10);
    $c->sale(4, units => 10, stock_limit => 8);
    ledger(4, 'preheat', 'reserve', -10);
    ledger(4, 'preheat', 'change-1', 2);
    set(4, 'reserved = 10');
    my $log = $c->start;
    $c->t->wait_for(sub { row(2) eq '10 0 0 10' && row(4) eq '8 0 0 8' }, 5, 'the rows');
    is(row(2), '10 0 0 10', 'a row that was never migrated is, by itself');
    is(row(3), '10 0 0 NULL', '... unless its ledger has nothing to say');
    is(row(4), '8 0 0 8', 'a limit that was lowered, too');
    $c->t->wait_log($log, qr/taken over.*activity=2 reserved=10 was=unknown/);
    ok($c->stop, 'stops');
}

# a row that is wrong, and one behind it
{
    $c->sale(10, units => 10);
    ledger(10, 'preheat', 'reserve', -10);
    set(10, 'sold = 7, returned = 4');
    $c->sale(11, units => 10);
    ledger(11, 'preheat', 'reserve', -10);
    $c->t->allow_log(qr/keeper can't do its duty for an activity.*duty=units/);
    my $log = $c->start;
    $c->t->wait_log($log, qr/duty=units activity=10 .*sold 7 and returned 4 units, but its ledger reserved 10/);
    $c->t->wait_for(sub { row(11) eq '10 0 0 10' }, 5, 'the row behind it');
    is(row(11), '10 0 0 10', 'a row that does not add up keeps no other waiting');
    is(row(10), '10 7 4 NULL', '... and is not judged');
    ok($c->stop, 'stops');
    set(10, 'returned = 3');
}

# F-C1: the limit was raised by hand, and Redis sells what it forgot: no such units
{
    $c->sale(5, units => 6, stock_limit => 10);
    ledger(5, 'preheat', 'reserve', -4);
    set(5, 'reserved = 4');
    $c->sale(6, units => 10);
    $c->buy(5, 1 .. 6);
    $c->t->allow_log(qr/activity is blocked/);
    my $log = $c->start;
    $c->t->wait_log($log, qr/level=error msg="activity is blocked.*activity=5.*reserved 4/);
    $c->buy(6, 1 .. 3);
    $c->wait_settled(6);
    is($c->order_count(6), 3, 'other activities go on');
    is_deeply($c->dead(5), [], 'F-C1: no dead letter: it is no buyer\'s fault');
    is($c->order_count(5), 0, '... and no order without a unit');
    ok($c->pending(5) + 0 >= 1, '... their purchases wait');

    ledger(5, 'restock', 'restock-1', -2);
    $c->wait_settled(5);
    is(row(5), '10 6 0 6', 'once the units are there, so are the orders');
    $c->t->wait_log($log, qr/activity goes on.*activity=5/);
    ok($c->stop, 'stops');
}

# the table's own word: a CHECK of ours stops the activity, one of the shop's is a purchase's fault
{
    $c->sale(7, units => 10);
    $c->dbh->do('ALTER TABLE seckill_activities DROP CONSTRAINT ck_units');
    $c->dbh->do('ALTER TABLE seckill_activities ADD CONSTRAINT ck_units CHECK (product_id <> 7 OR sold < 3)');
    $c->buy(7, 1 .. 5);
    my $log = $c->start;
    $c->t->wait_log($log, qr/activity is blocked.*activity=7.*ck_units/);
    is_deeply($c->dead(7), [], 'a CHECK error makes no dead letter');
    $c->dbh->do('ALTER TABLE seckill_activities DROP CONSTRAINT ck_units');
    $c->wait_settled(7);
    is($c->order_count(7), 5, '... and all is written once it is mended');
    ok($c->stop, 'stops');

    $c->t->run('mariadb', '--no-defaults', '-uroot', "-S$c->{mysql}{sock}", '--force', 'seckill',
        '-e', 'source ' . $c->t->root . '/sql/0006_reserved.sql');
}

# F-C6: a batch of an older epoch, after a restore: as far as the row proves units, never further
{
    $c->sale(8, units => 10);
    ledger(8, 'preheat', 'reserve', -10);
    set(8, 'reserved = 10');
    $c->buy(8, 1 .. 4);
    {
        local $ENV{SECKILLD_FAILPOINT} = 'after_begin:1:3000';
        $c->start;
        sleep 1;
    }
    set(8, 'epoch = 2, sold = 7');              # restored meanwhile, seven were sold on
    $c->wait_settled(8);
    is($c->order_count(8), 3, 'F-C6: three units were left for four late buyers');
    is(row(8), '10 10 0 10', '... and no more are sold');
    is_deeply([ map { $_->{reason} } @{ $c->dead(8) } ], ['over_limit'], '... the fourth is told');
    ok($c->stop, 'stops');
}

# a cancel to the product is returned and not sold; one to nowhere stays sold
{
    $c->{conf} = $c->conf('consumer.pay_timeout' => '1s', 'consumer.cancelled_units' => 'product');
    $c->sale(9, units => 10);
    $c->dbh->do("INSERT INTO products (id, name, stock, price) VALUES (99, 'other', 0, 1)");
    ledger(9, 'preheat', 'reserve', -10);
    set(9, 'reserved = 10');
    $c->buy(9, map { [ $_, 2 ] } 1 .. 3);
    $c->start;
    $c->wait_settled(9);
    set(9, 'product_id = 99');                  # the row was edited: the units come from 9
    $c->t->wait_for(sub { row(9) eq '10 0 6 10' }, 8, 'the cancel');
    is(row(9), '10 0 6 10', 'what goes to the product is returned, and sold no more');
    is_deeply($c->dbh->selectcol_arrayref('SELECT stock FROM products WHERE id IN (9, 99) ORDER BY id'),
        [ 6, 0 ], '... to the product that the units came from');
    ok($c->stop, 'stops');
}

done_testing();
