# Conservation: what Redis forgets and sells once more exists once.  Whatever the
# operator does then, orders and the product's stock are the units there ever were,
# and the sale can be restored and settled.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use MysqlCut;
use Test::More;

my $c     = BooksTest->new;
my $redis = $c->redis;
my $dbh   = $c->dbh;

my @release = ('--grace', '0s', '--repair', 'release', '--yes');

sub row {
    my ($id) = @_;
    return join ' ', map { $_ // 'NULL' } $dbh->selectrow_array(
        "SELECT sold, returned, reserved FROM seckill_activities WHERE id = $id");
}

sub orders { return $c->column("SELECT COALESCE(SUM(quantity), 0) FROM seckill_orders WHERE activity_id = $_[0]") }
sub dead   { return $redis->xlen($c->key('dead', $_[0])) }
sub all    { return orders($_[0]) + $c->products_stock($_[0]) }

# Redis fails over to a server that knows nothing of what was sold
sub forget {
    my ($id, $limit, @users) = @_;

    $redis->hset($c->key('activity', $id), seq => 0);
    $redis->set($c->key('stock', $id), $limit);
    $redis->del($c->key('order_users', $id), $c->key('orders', $id),
        map { $c->key("result:$_", $id) } @users);
    $redis->xgroup('CREATE', $c->key('orders', $id), 'seckilld', 0, 'MKSTREAM');
    return;
}

sub over {
    my ($id) = @_;
    $dbh->do("UPDATE seckill_activities SET end_time = UTC_TIMESTAMP() - INTERVAL 5 SECOND WHERE id = $id");
    $redis->hset($c->key('activity', $id), end_ms => (time - 5) * 1000);
    return;
}

# ten units, six of them orders that Redis forgets; ten more are sold: four become orders
sub sold_once_more {
    my $id = $c->sale(products_stock => 10);
    $c->buy($id, 1 .. 6);
    $c->drain($id);
    forget($id, 10, 1 .. 6);
    $c->t->allow_log(qr/Redis lost data/);
    is($c->buy($id, 11 .. 20), '1' x 10, 'ten units are sold, six of them for the second time');
    $c->drain($id);
    is(orders($id), 10, '... ten are orders');
    is(dead($id), 6, '... six are dead letters');
    return $id;
}

# F-C1: the documented release
{
    my $id = sold_once_more();
    my ($exit, $one) = $c->reconcile($id, '--repair', 'release', '--yes');
    is(dead($id), 0, 'F-C1: the letters are released');
    is($c->products_stock($id), 0, '... without units, which do not exist');
    is(row($id), '10 0 10', '... nor in the row');
    is_deeply([ sort @{ $c->books_ledger($id) } ], [ map {"release user:$_ 0"} 11 .. 16 ], '... nor in the ledger');
    like($one->{findings}[0]{done}, qr/do not exist/, '... which it says');
    is($c->result($id, 11), '{"success":false,"reason":"released"}', '... the buyers hear it');
    is(all($id), 10, 'ten units in all');

    ($exit, my $out, my $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 0, 'then the sale is restored') or diag($out, $err);
    is(($c->reconcile($id))[0], 0, '... with its books in order');
    over($id);
    ($exit, $out, $err) = $c->ctl('settle', $id, '--yes');
    is($exit, 0, '... and settled') or diag($out, $err);
    is(all($id), 10, '... ten units in all');
}

# ... some of them exist: letters for another reason, of a sale that was not forgotten
{
    my $id = $c->sale(products_stock => 10);
    $c->buy($id, 1 .. 10);
    $c->bury($id, $_) for 1 .. 4;
    $c->drain($id);

    # two units more are sold in Redis than there are
    $redis->set($c->key('stock', $id), 2);
    $c->buy($id, 21, 22);
    $c->bury($id, $_) for 21, 22;
    my ($exit, $one) = $c->reconcile($id);
    is($one->{units}{missing}, -2, 'twelve units of ten');
    ($exit, my $out, my $err) = $c->ctl('reconcile', $id, @release);
    is($c->products_stock($id), 4, 'four of six letters give a unit back');
    is(row($id), '6 4 10', '... as the row says');
    is(dead($id), 0, '... all are closed');
    is(all($id), 10, '... ten units in all');
}

# the table has the last word: what is committed meanwhile
{
    my $id = $c->sale(products_stock => 10);
    $c->buy($id, 1 .. 10);
    $c->bury($id, $_) for 1 .. 4;
    $c->drain($id);
    $dbh->do("UPDATE seckill_activities SET sold = 8 WHERE id = $id");
    my $before = $c->everything;
    my ($exit, undef, $err) = $c->ctl('reconcile', $id, @release);
    is($exit, 4, 'four units, of which MySQL has sold two');
    like($err, qr/only 2 are neither sold nor returned: nothing was changed/, '... are refused as a whole');
    is($c->everything, $before, '... and nothing was changed');
}

# F-C2: MySQL's limit is below what Redis sells, as 0.1.0 left it
{
    my $id = $c->sale(products_stock => 10);
    $dbh->do("UPDATE seckill_activities SET stock_limit = 4, reserved = 4 WHERE id = $id");
    $dbh->do("UPDATE products SET stock = 6 WHERE id = $id");
    $dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, actor) '
        . "VALUES ($id, $id, 1, 'preheat', 'change-1', 6, 'x')");
    $c->buy($id, 1 .. 10);
    $c->drain($id);
    is(orders($id), 4, 'Redis sells ten, MySQL has four');
    is(dead($id), 6, '... six are dead letters');
    my ($exit, $one) = $c->reconcile($id);
    is($exit, 1, 'F-C2: reconcile does not say that all is well');
    is($one->{units}{missing}, -6, '... six units are sold that do not exist');
    $c->ctl('reconcile', $id, @release);
    is($c->products_stock($id), 6, 'the release makes none up');
    is(all($id), 10, '... ten units in all');
}

# F-C5: a purchase whose number came twice, with units left
{
    my $id = $c->sale(stock_limit => 100, products_stock => 100);
    $c->buy($id, 1 .. 3);
    $c->drain($id);
    forget($id, 100, 1 .. 3);
    $c->buy($id, 11 .. 14);
    $c->drain($id);
    is(dead($id), 3, 'three numbers came twice');
    my ($exit, $out, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 0, 'the sale is restored') or diag($out, $err);
    is($c->stock($id), 93, '... with the units of the letters kept');

    ($exit, $out, $err) = $c->ctl('dead', 'retry', $id, '--all');
    is($exit, 0, 'F-C5: the letters are queued again') or diag($out, $err);
    my $extra = $c->facts($id)->{buyers_extra};
    is($extra, $redis->scard($c->key('order_users', $id)) - $c->facts($id)->{seq}, '... buyers_extra follows')
        if defined $extra;
    $c->drain($id);
    is(orders($id), 7, '... and are orders');
    is(dead($id), 0, '... no letter is left');
    is($c->stock($id), 93, '... of units that were kept for them');
    like($c->result($id, 11), qr/"success":true/, '... the buyer hears it');
    is_deeply($dbh->selectcol_arrayref("SELECT CONCAT(epoch, ' ', seq) FROM seckill_orders "
        . "WHERE activity_id = $id AND user_id IN (11, 12, 13) ORDER BY seq"), [ '2 1', '2 2', '2 3' ],
        '... with numbers of their own');
    is(($c->reconcile($id))[0], 0, '... and the books are in order');
    $c->buy($id, 21);
    $c->drain($id);
    is($c->column("SELECT seq FROM seckill_orders WHERE activity_id = $id AND user_id = 21"), 4,
        'the next buyer has the next number');
}

# ... before a restore: Redis has put those units on sale once more, so they come from what is left
{
    my $id = $c->sale(products_stock => 10);
    $c->buy($id, 1 .. 3);
    $c->drain($id);
    forget($id, 10, 1 .. 3);
    $c->buy($id, 11 .. 15);
    $c->drain($id);
    is($c->stock($id), 5, 'five are left in Redis, two of ten in MySQL');
    my ($exit, $out, $err) = $c->ctl('dead', 'retry', $id, '--all');
    is($exit, 0, 'three are queued again') or diag($out, $err);
    is($c->stock($id), 2, '... with units of those left');
    $c->drain($id);
    is(orders($id), 8, '... and are orders');
    is(($c->reconcile($id))[1]{units}{missing}, 0, '... the books are in order');

    $id = $c->sale(products_stock => 10);
    $c->buy($id, 1 .. 6);
    $c->drain($id);
    forget($id, 10, 1 .. 6);
    $c->buy($id, 11 .. 20);
    $c->drain($id);
    my $before = $c->everything;
    ($exit, $out) = $c->ctl('dead', 'retry', $id, '--all');
    is($exit, 4, 'nothing is left: nothing is queued');
    like($out, qr/no units are left/, '... and says why');
    is($c->everything, $before, '... and nothing was changed');
}

# a limit that the shop raised by hand: no such units, whatever is restored or given back
{
    my $id = $c->sale(products_stock => 10);
    $c->buy($id, 1 .. 3);
    $c->drain($id);
    $dbh->do("UPDATE seckill_activities SET stock_limit = 15 WHERE id = $id");
    $redis->del($c->key('stock', $id));
    my ($exit, $out, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 0, 'a restore while stock_limit says 15 and ten were reserved') or diag($out, $err);
    like($err, qr/is 15, of which 10 units were reserved/, '... which is told');
    is($c->stock($id), 7, '... puts seven on sale');
    is($c->facts($id)->{stock_limit}, 10, '... of ten');
    is(($c->ctl('restock', $id, 1))[0], 4, 'there is no unit for a restock');
    over($id);
    ($exit, $out, $err) = $c->ctl('settle', $id, '--yes');
    is($exit, 0, 'the settle') or diag($out, $err);
    is(all($id), 10, '... gives back what was taken');
}

# cancelled orders, by a daemon of 0.1.0 and by ours, in one sale
{
    my $id = $c->sale(products_stock => 10);
    $c->buy($id, 1 .. 6);
    $c->drain($id);
    my $cancel = sub {
        my ($user, $old) = @_;
        $dbh->do("UPDATE seckill_orders SET status = 3 WHERE activity_id = $id AND user_id = $user");
        $dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, target, '
            . "actor) VALUES ($id, $id, 1, 'cancel', 'order:$user', 1, 'product', 'x')");
        $dbh->do("UPDATE products SET stock = stock + 1 WHERE id = $id");
        return;
    };
    $cancel->(1);                               # sold stays 6: what 0.1.0 does
    $c->buy($id, 7);
    $c->bury($id, 7);
    my ($exit, $out, $err) = $c->ctl('reconcile', $id, @release);
    is(row($id), '5 2 10', 'the next movement of ours puts the cancel of 0.1.0 where it belongs')
        or diag($out, $err);
    is(($c->reconcile($id))[0], 0, '... and the books are in order');
    is($c->products_stock($id), 2, '... two units are with the product');
    over($id);
    is(($c->ctl('settle', $id, '--yes'))[0], 0, 'settled');
    is($c->products_stock($id), 5, '... five units are with the product, five with buyers');
}

# a settle whose COMMIT was not answered: it says so, and the second try adds nothing
{
    my $proxy = MysqlCut->new($c->t->dir, $c->{mysql}{sock});
    my $direct = $c->{conf};
    my $id = $c->sale(products_stock => 10);
    $c->buy($id, 1);
    $c->drain($id);
    over($id);
    $c->{conf} = $c->t->conf(redis => $c->{redis}, mysql => { %{ $c->{mysql} }, sock => $proxy->sock });
    $proxy->cut(after => 'COMMIT');
    my ($exit, $out, $err) = $c->ctl('settle', $id, '--yes');
    ok($proxy->was_cut, 'a settle, and the answer of its COMMIT is lost');
    is($exit, 5, '... is partly done');
    like($err, qr/Redis has closed the sale, what MySQL did is not known; run it again/, '... which it says');
    ($exit, $out, $err) = $c->ctl('settle', $id, '--yes');
    is($exit, 0, '... the second try finishes it') or diag($out, $err);
    is($c->products_stock($id), 9, '... and adds nothing twice');
    $c->{conf} = $direct;
}

done_testing();
