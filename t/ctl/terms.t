# Terms: what was promised when a sale was put up is what its buyers get (F-B1).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c = BooksTest->new;
my $sql = $c->t->root . '/sql';

# from version 0.1.0: epochs without terms get those of the row as it is
{
    my $id = $c->activity(epoch => 3, max_quantity => 2, seckill_price => '8.00');
    $c->order($id, 1, epoch => 1);
    $c->dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, '
        . "actor) VALUES ($id, $id, 2, 'restore', 'redis', 0, 'test')");
    my $new = $c->activity;

    my ($exit, $out, $err) = $c->ctl('schema', 'apply', '--dir', $sql);
    is($exit, 0, 'F-B1: schema apply after a tool of version 0.1.0 made epochs');
    like($err, qr/3 epochs had no terms/, '... says how many it found');
    is_deeply($c->terms($id), [ map {"$_ $id 8.00 2 migration"} 1 .. 3 ],
        '... of the row, of its orders and of the ledger');
    is_deeply($c->terms($new), [], '... and none for what was never put up');

    $c->dbh->do("UPDATE seckill_activities SET seckill_price = 99, epoch = 4 WHERE id = $id");
    ($exit, $out, $err) = $c->ctl('schema', 'apply', '--dir', $sql);
    like($err, qr/1 epochs had no terms/, 'again: one more');
    is_deeply($c->terms($id), [ (map {"$_ $id 8.00 2 migration"} 1 .. 3), "4 $id 99.00 2 migration" ],
        '... and those that were written stay as they are');

    my $before = $c->everything;
    $c->dbh->do('DELETE FROM seckill_schema WHERE version >= 5');
    ($exit, $out, $err) = $c->ctl('schema', 'apply', '--dir', $sql);
    is($exit, 0, 'the file itself can be run again') or diag($err);
    is($c->everything, $before, '... and changes nothing');
}

done_testing();
