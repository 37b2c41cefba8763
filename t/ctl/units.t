# Units: what was taken from a product is sold, returned or still there, whatever
# program of whatever version writes.  reserved, its CHECK, and who takes it over.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c = BooksTest->new;
my $sql = $c->t->root . '/sql';

sub row {
    my ($id) = @_;
    return join ' ', map { $_ // 'NULL' } $c->dbh->selectrow_array(
        "SELECT stock_limit, sold, returned, reserved FROM seckill_activities WHERE id = $id");
}

sub apply {
    return $c->ctl('schema', 'apply', '--dir', $sql);
}

# what version 0.1.0 left behind
sub old {
    my ($id, %row) = @_;
    my $set = join ', ', map {"$_ = $row{$_}"} sort keys %row;
    $c->dbh->do("UPDATE seckill_activities SET reserved = NULL, $set WHERE id = $id");
    return;
}

# the tool keeps the column by itself
{
    my $id = $c->sale(stock_limit => 10);
    is(row($id), '10 0 0 10', 'preheat writes what it reserved');
    is(($c->ctl('restock', $id, 5))[0], 0, 'restock');
    is(row($id), '15 0 0 15', '... too');
}

# F-C1: the table refuses what does not exist, whoever writes
{
    my $id = $c->sale(stock_limit => 10);
    ok(!eval { $c->dbh->do("UPDATE seckill_activities SET returned = 11 WHERE id = $id"); 1 },
        'F-C1: more returned than reserved');
    like($@, qr/ck_units/, '... is refused by the table');
    my ($exit, $out) = $c->ctl('doctor');
    like($out, qr/^\s+ok\s+units\s+CHECK ck_units refuses/m, '... and doctor has tried it');
    is(row($id), '10 0 0 10', '... which changes nothing');

    $c->dbh->do('SET GLOBAL check_constraint_checks = 0');
    ($exit, $out) = $c->ctl('doctor');
    like($out, qr/^\s+ok\s+units/m, 'a server whose default is off: our sessions set it on');
    $c->dbh->do('SET GLOBAL check_constraint_checks = 1');

    $c->dbh->do('ALTER TABLE seckill_activities DROP CONSTRAINT ck_units');
    ($exit, $out) = $c->ctl('doctor');
    like($out, qr/^\s+wrong\s+units\s+.*not in force/m, 'without it doctor says so');
    is(row($id), '10 0 0 10', '... and what it tried is undone');
    ($exit, $out, my $err) = apply();
    is($exit, 5, '... and so does schema apply');
    like($err, qr/8\.0\.16/, '... with what is needed');

    $c->dbh->do('DELETE FROM seckill_schema WHERE version = 6');
    ($exit, $out, $err) = apply();
    is($exit, 0, 'the file is run again from its start') or diag($err);
    $c->dbh->do('DELETE FROM seckill_schema WHERE version = 6');
    is((apply())[0], 0, '... and again, with all of it there');
    ($exit, $out) = $c->ctl('doctor');
    like($out, qr/^\s+ok\s+units/m, 'the CHECK is back');
}

# from 0.1.0: the ledger tells, and a row that does not add up is named
{
    my $good = $c->sale(stock_limit => 10);
    my $cancelled = $c->sale(stock_limit => 10);
    my $bad = $c->sale(stock_limit => 10);
    my $late = $c->sale(stock_limit => 10);
    old($good, sold => 4);

    # two of its orders were cancelled to the product, which 0.1.0 went on to count as sold
    old($cancelled, sold => 6);
    $c->dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, '
        . "target, actor) VALUES ($cancelled, $cancelled, 1, 'cancel', 'order:$_', 1, 'product', 'x')")
        for 1, 2;

    old($bad, sold => 7, returned => 4);
    old($late, sold => 1);

    my ($exit, undef, $err) = apply();
    is($exit, 5, 'one row of many does not add up');
    like($err, qr/activity $bad has sold 7 and returned 4 units, but its ledger reserved 10/,
        '... it is named');
    is(row($bad), '10 7 4 NULL', '... and not judged');
    is(row($good), '10 4 0 10', 'the others are done');
    is(row($late), '10 1 0 10', '... also behind it');
    is(row($cancelled), '10 4 2 10', 'units cancelled to the product are returned, not sold');
    like($err, qr/activity $good: reserved is 10 by its ledger, was not known/, '... and told');

    my $before = $c->everything;
    ($exit, undef, $err) = apply();
    is($exit, 5, 'again: still 5');
    unlike($err, qr/reserved is/, '... and nothing to tell of the others');
    is($c->everything, $before, '... nor to change');

    $c->dbh->do("UPDATE seckill_activities SET returned = 3 WHERE id = $bad");
    is((apply())[0], 0, 'once it adds up, all are done');
    is(row($bad), '10 7 3 10', '... this one too');
}

# a seckillctl of 0.1.0 goes on beside us: it raises and lowers limits, and never writes reserved
{
    my $id = $c->sale(stock_limit => 10);
    $c->dbh->do("UPDATE products SET stock = stock - 5 WHERE id = $id");
    $c->dbh->do("UPDATE seckill_activities SET stock_limit = 15 WHERE id = $id");
    $c->dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, '
        . "actor) VALUES ($id, $id, 1, 'restock', 'restock-1', -5, 'x')");
    is(row($id), '15 0 0 10', 'a restock of 0.1.0');
    ok(eval { $c->dbh->do("UPDATE seckill_activities SET sold = 15 WHERE id = $id"); 1 },
        '... whose units a daemon of 0.1.0 can sell') or diag($@);
    ok(!eval { $c->dbh->do("UPDATE seckill_activities SET sold = 16 WHERE id = $id"); 1 },
        '... and not one more');

    my ($exit, undef, $err) = apply();
    is($exit, 0, 'schema apply');
    like($err, qr/activity $id: reserved is 15 by its ledger, was 10/, '... takes it over');
    is(row($id), '15 15 0 15', '... into the row');
}

# give-backs go to the product that the units came from
{
    my $id = $c->sale(stock_limit => 10);
    my $other = $c->activity(products_stock => 7);
    $c->dbh->do("UPDATE seckill_activities SET product_id = $other WHERE id = $id");
    $c->buy($id, 1);
    $c->bury($id, 1);
    my ($exit, $out, $err) = $c->ctl('reconcile', $id, '--grace', '0s', '--repair', 'release', '--yes');
    is($c->products_stock($id), 991, 'a release goes to the product of the ledger') or diag($err);
    is($c->products_stock($other), 7, '... not to the one that the row names today');
    is(row($id), '10 0 1 10', '... and is counted as returned');
}

done_testing();
