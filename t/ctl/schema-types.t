# F-H3: tables that another program made or changed.  schema, doctor and seckilld name each
# column, key and CHECK that is not as sql/ makes it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;

my $c   = CtlTest->new;
my $t   = $c->t;
my $dbh = $c->dbh;
my @sql = ('--dir', $t->root . '/sql');

# what each of the three says is wrong: schema status, doctor, schema apply
sub told {
    my ($exit, $json, $err) = $c->ctl_json('schema', 'status', @sql);
    my @wrong = sort @{ $json->{wrong} };
    is($exit, @wrong ? 1 : 0, 'schema status: the exit says so') or diag($err);

    (undef, $json) = $c->ctl_json('doctor');
    my @doctor = sort map { $_->{found} } grep { $_->{check} eq 'schema' && $_->{level} eq 'wrong' } @{ $json->{checks} };
    is_deeply(\@doctor, \@wrong, '... doctor says the same');

    ($exit, my $out, $err) = $c->ctl('schema', 'apply', @sql);
    is($exit, @wrong ? 5 : 0, '... and so does schema apply') or diag($out, $err);
    is_deeply([sort $out =~ /^wrong: (.*)$/mg], \@wrong, '... in words');
    return \@wrong;
}

is_deeply(told(), [], 'as sql/ makes them nothing is wrong');

# every column of sql/ has its row
{
    open my $fh, '<', $t->root . '/src/backend/skb_schema_x.h' or die $!;
    my $rows = do { local $/ = undef; <$fh> };
    my @rows = sort map {"$_"} map { "$_->[0].$_->[1]" } map { [split /,\s*/] } $rows =~ /^SKB_COLUMN\((\w+,\s*\w+)/mg;
    my $columns = $dbh->selectcol_arrayref("SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns "
        . "WHERE table_schema = DATABASE() AND table_name <> 'seckill_schema'");
    is_deeply(\@rows, [sort @{$columns}], 'the table of columns is that of sql/');

    # ... and is not wider than sql/: one step narrower is seen, column by column
    my %narrow = (bigint => 'int', int => 'smallint', varchar => 'varchar(1)', decimal => 'decimal(9,2)');
    my @blind;
    my $all = $dbh->selectall_arrayref("SELECT table_name, column_name, data_type, column_type, is_nullable, collation_name FROM "
        . "information_schema.columns WHERE table_schema = DATABASE() AND table_name <> 'seckill_schema'");
    for my $column (@{$all}) {
        my ($table, $name, $type, $whole, $null, $collation) = @{$column};
        next if !$narrow{$type} || "$table.$name" eq 'products.name';
        my $as = $narrow{$type} . ($whole =~ /unsigned/ ? ' unsigned' : '') . ($collation ? " collate $collation" : '')
            . ($null eq 'YES' ? '' : ' not null') . ($name eq 'id' ? ' auto_increment' : '');
        my $back = $dbh->selectrow_arrayref("SHOW CREATE TABLE $table")->[1] =~ /^\s*(`$name` .*?),?$/m ? $1 : die "$table.$name";
        $dbh->do("ALTER TABLE $table MODIFY `$name` $as");
        my (undef, $json) = $c->ctl_json('schema', 'status', @sql);
        push @blind, "$table.$name" if !grep {/^\Q$table.$name\E is /} @{ $json->{wrong} };
        $dbh->do("ALTER TABLE $table MODIFY $back");
    }
    is_deeply(\@blind, [], 'one step narrower is seen, whichever column it is');
}

sub wrong {
    my ($change, $back, @expect) = @_;
    $dbh->do($_) for ref $change ? @{$change} : $change;
    is_deeply(told(), [sort @expect], $change);
    $dbh->do($_) for ref $back ? @{$back} : $back;
    return;
}

wrong('ALTER TABLE seckill_orders MODIFY user_id INT NOT NULL', 'ALTER TABLE seckill_orders MODIFY user_id BIGINT UNSIGNED NOT NULL',
    'seckill_orders.user_id is int(11), not bigint unsigned');
wrong('ALTER TABLE seckill_orders MODIFY id BIGINT UNSIGNED NOT NULL',
    'ALTER TABLE seckill_orders MODIFY id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT', 'seckill_orders.id is not AUTO_INCREMENT');
wrong('ALTER TABLE seckill_records MODIFY user_id BIGINT UNSIGNED NULL', 'ALTER TABLE seckill_records MODIFY user_id BIGINT UNSIGNED NOT NULL',
    'seckill_records.user_id may be NULL');
wrong('ALTER TABLE seckill_activities MODIFY sold INT NOT NULL DEFAULT 0', 'ALTER TABLE seckill_activities MODIFY sold INT UNSIGNED NOT NULL DEFAULT 0',
    'seckill_activities.sold is int(11), not int unsigned');
wrong('ALTER TABLE seckill_orders MODIFY order_no VARCHAR(32) NOT NULL',
    'ALTER TABLE seckill_orders MODIFY order_no VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL',
    'seckill_orders.order_no is varchar(32), not varchar(32) with a _bin collation');
wrong('ALTER TABLE seckill_orders MODIFY created_at TIMESTAMP NULL', 'ALTER TABLE seckill_orders MODIFY created_at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP',
    'seckill_orders.created_at is not set to CURRENT_TIMESTAMP');
wrong('ALTER TABLE seckill_orders ADD COLUMN shop INT NOT NULL', 'ALTER TABLE seckill_orders DROP COLUMN shop',
    'seckill_orders.shop is no column of ours and needs a default');
wrong(['ALTER TABLE seckill_orders DROP KEY uk_order_no', 'ALTER TABLE seckill_orders ADD UNIQUE KEY uk_order_no (order_no(5))'],
    ['ALTER TABLE seckill_orders DROP KEY uk_order_no', 'ALTER TABLE seckill_orders ADD UNIQUE KEY uk_order_no (order_no)'],
    'seckill_orders has no unique key uk_order_no (order_no)');
wrong('ALTER TABLE seckill_records ENGINE = MyISAM', 'ALTER TABLE seckill_records ENGINE = InnoDB',
    'seckill_records has no transactions, its engine is MyISAM');
wrong('ALTER TABLE seckill_activities DROP CONSTRAINT ck_units',
    'ALTER TABLE seckill_activities ADD CONSTRAINT ck_units CHECK (sold + returned <= GREATEST(reserved, stock_limit))',
    'seckill_activities has no CHECK ck_units');

# wider than ours, and what else the shop needs, is fine
$dbh->do($_) for 'ALTER TABLE seckill_orders MODIFY quantity BIGINT UNSIGNED NOT NULL DEFAULT 1, MODIFY ext TEXT NOT NULL DEFAULT "", '
    . 'ADD COLUMN shop INT NULL, ADD COLUMN till INT NOT NULL DEFAULT 0, MODIFY created_at DATETIME DEFAULT CURRENT_TIMESTAMP';
is_deeply(told(), [], 'wider columns, and those of the shop, are fine');

# the daemon tells it at its start, and when it is mended
{
    $dbh->do('ALTER TABLE seckill_records MODIFY user_id INT UNSIGNED NOT NULL');
    $dbh->do('DROP TABLE seckill_terms');
    my $daemon = $t->seckilld($t->conf(redis => $c->{redis}, mysql => $c->{mysql}));
    $t->wait_log($daemon, qr/level=error msg="a table is not as it should be" wrong="seckill_records\.user_id is int\(10\) unsigned, not bigint unsigned"/);
    pass('seckilld names a narrow user_id at its start');
    like($t->log_text($daemon), qr/wrong="seckill_terms is missing"/, '... and a table that is not there, in one line');
    unlike($t->log_text($daemon), qr/wrong="seckill_terms\./, '... without its columns');
    ok($t->stop($daemon) == 0, '... and goes on');
}

# tables that the shop had before, from an article
{
    $t->fresh_database($c->{mysql});
    $dbh->do('CREATE TABLE seckill_orders (id INT AUTO_INCREMENT PRIMARY KEY, order_no VARCHAR(32) NOT NULL, user_id INT NOT NULL, '
        . 'product_id INT NOT NULL, activity_id INT NOT NULL, seckill_price DECIMAL(10,2) NOT NULL, status TINYINT DEFAULT 1, '
        . 'UNIQUE KEY (order_no), UNIQUE KEY (user_id, activity_id)) ENGINE = InnoDB');
    my ($exit, $json) = $c->ctl_json('schema', 'status', @sql);
    is($exit, 1, 'a table from an article: exit 1');
    my $told = join "\n", @{ $json->{wrong} };
    like($told, qr/^seckill_orders\.\Q$_\E /m, "... $_ is named") for qw(id user_id activity_id order_no status quantity seq epoch);
    like($told, qr/has no unique key uk_purchase/, '... and so is the key');
}

done_testing();
