# F-C3: reconcile sees what is wrong in MySQL's own numbers: sold, returned, reserved,
# seq_seen, products.stock, and an order that is not what was bought or promised.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c   = BooksTest->new;
my $dbh = $c->dbh;
my $id  = $c->sale(stock_limit => 20, max_quantity => 3);

$c->buy($id, 1 .. 5, [6, 2], [7, 3]);
$c->drain($id);

# The names of the sums that are wrong.
sub sums { return [ map { $_->{name} } @{ $_[0]{sums} // [] } ] }

my ($exit, $one) = $c->reconcile($id);
is($exit, 0, 'the books are in order');
is_deeply(sums($one), [], '... and so is every sum');

# what is done, what takes it back, the sums that are wrong, the findings
my @wrongs = (
    [ 'sold too small', 'UPDATE seckill_activities SET sold = sold - 3 WHERE id = ID',
      'UPDATE seckill_activities SET sold = sold + 3 WHERE id = ID', ['sold'], [] ],
    [ 'returned too large', 'UPDATE seckill_activities SET returned = returned + 3 WHERE id = ID',
      'UPDATE seckill_activities SET returned = returned - 3 WHERE id = ID', ['returned'], [] ],
    [ 'reserved too large', 'UPDATE seckill_activities SET reserved = reserved + 3 WHERE id = ID',
      'UPDATE seckill_activities SET reserved = reserved - 3 WHERE id = ID', ['reserved'], [] ],
    [ 'seq_seen 0', 'UPDATE seckill_activities SET seq_seen = 0 WHERE id = ID',
      'UPDATE seckill_activities SET seq_seen = 7 WHERE id = ID', ['seq_seen'], [] ],
    [ 'products.stock + 5 without a line in the ledger', 'UPDATE products SET stock = stock + 5 WHERE id = PRODUCT',
      'UPDATE products SET stock = stock - 5 WHERE id = PRODUCT', ['products_stock'], [] ],
    [ 'two buyers have each other\'s quantity',
      'UPDATE seckill_orders SET quantity = IF(user_id = 6, 3, 2) WHERE user_id IN (6, 7)',
      'UPDATE seckill_orders SET quantity = IF(user_id = 6, 2, 3) WHERE user_id IN (6, 7)', [],
      [ 'contradiction 6', 'contradiction 7' ] ],
    [ 'another price than promised', 'UPDATE seckill_orders SET seckill_price = 0.01 WHERE user_id = 3',
      'UPDATE seckill_orders SET seckill_price = (SELECT seckill_price FROM seckill_activities WHERE id = ID)'
          . ' WHERE user_id = 3', [], ['contradiction 3'] ],
    [ 'another product than promised', 'UPDATE seckill_orders SET product_id = product_id + 1 WHERE user_id = 3',
      'UPDATE seckill_orders SET product_id = product_id - 1 WHERE user_id = 3', [], ['contradiction 3'] ],
);

my $product = $c->column("SELECT product_id FROM seckill_activities WHERE id = $id");

for my $wrong (@wrongs) {
    my ($what, $do, $undo, $sums, $found) = @{$wrong};
    s/\bID\b/$id/g, s/\bPRODUCT\b/$product/g for $do, $undo;

    $dbh->do($do);
    ($exit, $one) = $c->reconcile($id);
    is($exit, 1, "$what: is wrong");
    is_deeply(sums($one), $sums, '... the sum is named');
    is_deeply(BooksTest::found($one), $found, '... and so are the buyers');

    $dbh->do($undo);
    ($exit, $one) = $c->reconcile($id);
    is($exit, 0, '... taken back');
}

# a shop that sells the product beside the sale
{
    $dbh->do("UPDATE products SET stock = stock - 1 WHERE id = $product");
    my $status;
    ($exit, $one) = $c->reconcile($id, '--shop-stock');
    is($exit, 0, '--shop-stock: another stock is not wrong');
    is_deeply(sums($one), ['products_stock'], '... but told');

    ($status, my $out) = $c->ctl('reconcile', $id);
    is($status, 1, 'without it, it is wrong');
    like($out, qr/products\.stock was changed by somebody else than the ledger: it is \d+, \d+ was expected/,
        '... in words');

    ($status) = $c->ctl('restock', $id, 2);
    is($status, 0, 'two more units');
    ($exit, $one) = $c->reconcile($id);
    is_deeply(sums($one), [], 'a restock takes the stock as it is');
    is($exit, 0, '... and the books are in order');
}

done_testing;
