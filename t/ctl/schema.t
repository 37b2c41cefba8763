# schema apply and status: each file once, in order, whatever happened before.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;

my $c   = CtlTest->new(schema => 0);
my $sql = $c->t->root . '/sql';
my $dbh = $c->dbh;

{
    my ($exit, $json) = $c->ctl_json('schema', 'status', '--dir', $sql);
    is($exit, 1, 'an empty database is not up to date');
    is($json->{files}[0]{applied_at}, undef, '... its first file is not applied');
    is_deeply($dbh->selectcol_arrayref('SHOW TABLES'), [], '... and looking made no table');
}

my @files = sort map { s{.*/}{}r } glob "$sql/*.sql";

{
    my ($exit, $json, $err) = $c->ctl_json('schema', 'apply', '--dir', $sql);
    is($exit, 0, 'schema apply works') or diag($err);
    is($json->{applied}, scalar @files, '... and applies every file');
    is_deeply([ map { $_->{name} } @{ $json->{files} } ], \@files, '... in order');

    ($exit, $json) = $c->ctl_json('schema', 'apply', '--dir', $sql);
    is($exit, 0, 'again is fine');
    is($json->{applied}, 0, '... and applies nothing');

    ($exit) = $c->ctl('schema', 'status', '--dir', $sql);
    is($exit, 0, 'status is fine now');
    is($c->column('SELECT COUNT(*) FROM seckill_schema'), scalar @files,
        '... and each file is recorded once');
}

# the given interface: tables, columns, keys
my %keys = (
    products           => ['PRIMARY(id)'],
    seckill_activities => [
        'PRIMARY(id)', 'idx_product_id(product_id)', 'idx_start_time(start_time)',
        'idx_status(status)',
    ],
    seckill_orders => [
        'PRIMARY(id)', 'idx_activity_id(activity_id)', 'idx_unpaid(status,created_at)',
        'uk_order_no(order_no)', 'uk_purchase(activity_id,epoch,seq)', 'uk_user_activity(user_id,activity_id)',
    ],
    seckill_records => [
        'PRIMARY(id)', 'idx_activity_id(activity_id)', 'uk_user_activity(user_id,activity_id)',
    ],
    seckill_stock_base => ['PRIMARY(product_id)'],
    seckill_stock_log => [
        'PRIMARY(id)', 'idx_product_id(product_id)', 'uk_movement(activity_id,epoch,kind,ref)',
    ],
    seckill_terms     => [ 'PRIMARY(activity_id,epoch)' ],
);

for my $table (sort keys %keys) {
    my $rows = $dbh->selectall_arrayref(
        'SELECT index_name, MIN(non_unique), GROUP_CONCAT(column_name ORDER BY seq_in_index) '
            . 'FROM information_schema.statistics WHERE table_schema = DATABASE() '
            . 'AND table_name = ? GROUP BY index_name ORDER BY index_name', undef, $table);
    is_deeply([ sort map {"$_->[0]($_->[2])"} @{$rows} ], [ sort @{ $keys{$table} } ],
        "$table has its keys");
    is(scalar(grep { $_->[0] =~ /^(?:uk_|PRIMARY)/ && $_->[1] } @{$rows}), 0,
        '... and those named unique are');

    my ($engine, $collation) = $dbh->selectrow_array(
        'SELECT engine, table_collation FROM information_schema.tables '
            . 'WHERE table_schema = DATABASE() AND table_name = ?', undef, $table);
    is($engine, 'InnoDB', "$table is InnoDB");
    like($collation, qr/^utf8mb4_/, '... and utf8mb4');

    is($c->column('SELECT data_type FROM information_schema.columns WHERE table_name = ? '
            . 'AND table_schema = DATABASE() AND column_name = ?', $table,
            { seckill_terms => 'activity_id', seckill_stock_base => 'product_id' }->{$table} // 'id'),
        'bigint', '... with wide ids');
}

my $nullable = $dbh->selectcol_arrayref(
    'SELECT DISTINCT column_name FROM information_schema.columns WHERE table_schema = DATABASE() '
        . 'AND is_nullable = "YES" ORDER BY column_name');
is_deeply($nullable, [qw(applied_at created_at reserved updated_at)],
    'only times, and what is not migrated yet, may be null');

# a run that died before it wrote down what it had done is run again
{
    $dbh->do('DELETE FROM seckill_schema WHERE version > 2');
    my ($exit, undef, $err) = $c->ctl('schema', 'apply', '--dir', $sql);
    is($exit, 0, 'columns and keys that are there already are fine') or diag($err);
    is($c->column('SELECT COUNT(*) FROM seckill_schema'), scalar @files, '... and recorded');
}

# a sale's promises, asked of the tables themselves
{
    my $first = $c->order(1, 7);
    for my $case (
        [ { user_id => 7, order_no => 'a' }, 'a second order of one user', 'uk_user_activity' ],
        [ { user_id => 8, order_no => $first }, 'a second order of one number', 'uk_order_no' ],
        [ { user_id => 9, order_no => 'b', seq => 1 }, 'a second order of one purchase',
            'uk_purchase' ],
        )
    {
        my ($row, $what, $key) = @{$case};
        ok(!eval { $c->order(1, $row->{user_id}, %{$row}); 1 }, "$what is refused");
        like($@, qr/Duplicate entry .*$key/, "... by $key");
    }
    ok(eval { $c->order(2, 7); 1 }, 'the same user may order in another activity');
}

# created_at is an instant: two sessions in two zones agree on it
{
    my $other = $c->t->dbh($c->{mysql});
    $other->do("SET time_zone = '+08:00'");
    $other->do("INSERT INTO products (id, name, price) VALUES (77, 'x', 1)");
    for my $session ($dbh, $other) {
        my ($age) = $session->selectrow_array(
            'SELECT UNIX_TIMESTAMP() - UNIX_TIMESTAMP(created_at) FROM products WHERE id = 77');
        ok($age >= 0 && $age < 60, "created_at is now, not hours off ($age s)");
    }
}

# files of our own: quotes, comments, an error in the middle, a file added later
my $dir = $c->t->dir . '/files';
mkdir $dir or die "mkdir: $!";

sub sql_file {
    my ($name, $text) = @_;
    return $c->t->file("files/$name", $text);
}

$c->t->fresh_database($c->{mysql});
sql_file('0001_a.sql', <<'SQL');
-- a comment; with a semicolon and a 'quote
CREATE TABLE IF NOT EXISTS a (t VARCHAR(99) NOT NULL DEFAULT ';--/*''\'');
/* another; 'one */ INSERT INTO a VALUES ('x;y'), ("a\";b"), ('-- no comment');;
SQL
sql_file('0002_b.sql', "CREATE TABLE IF NOT EXISTS b (n INT);\nINSERT INTO nowhere VALUES (1);\n");
sql_file('0003_c.sql', 'CREATE TABLE c (n INT)');
sql_file('readme.txt', 'not SQL');

{
    my ($exit, undef, $err) = $c->ctl('schema', 'apply', '--dir', $dir);
    is($exit, 5, 'a file that fails after others is "partly done"');
    like($err, qr/nowhere/, '... with the words of MySQL');
    like($err, qr/0002_b\.sql/, '... and the name of the file');
    is_deeply($dbh->selectcol_arrayref('SELECT t FROM a'), [ 'x;y', 'a";b', '-- no comment' ],
        '... quotes and comments are understood');
    is_deeply($dbh->selectcol_arrayref('SELECT version FROM seckill_schema'), [1],
        '... only the whole file is recorded');

    sql_file('0002_b.sql', "CREATE TABLE IF NOT EXISTS b (n INT);\nINSERT INTO b VALUES (1);\n");
    ($exit) = $c->ctl('schema', 'apply', '--dir', $dir);
    is($exit, 0, 'after it is mended the rest is applied');
    is_deeply($dbh->selectcol_arrayref('SELECT version FROM seckill_schema ORDER BY 1'),
        [ 1, 2, 3 ], '... and recorded');
    is($c->column('SELECT COUNT(*) FROM a'), 3, '... and the first not again');
}

# five at once: each file once, nobody fails
{
    $c->t->fresh_database($c->{mysql});
    my $ctl = $c->t->build . '/seckillctl';
    my ($exit) = $c->t->run('sh', '-c',
        "for i in 1 2 3 4 5; do $ctl -c $c->{conf} schema apply --dir $dir >/dev/null "
            . '|| exit 1 & pids="$pids $!"; done; for p in $pids; do wait $p || exit 1; done');
    is($exit, 0, 'five at once all end well');
    is($c->column('SELECT COUNT(*) FROM a'), 3, '... and each file ran once');
}

{
    sql_file('0003_d.sql', 'SELECT 1');
    my ($exit, undef, $err) = $c->ctl('schema', 'apply', '--dir', $dir);
    is($exit, 2, 'two files of one number are refused');
    like($err, qr/one number/, '... and it says why');

    ($exit, undef, $err) = $c->ctl('schema', 'apply', '--dir', "$dir/none");
    is($exit, 2, 'a missing directory is exit 2');
}

# installed elsewhere: the files beside the program are found
{
    my $prefix = $c->t->dir . '/prefix';
    $c->t->fresh_database($c->{mysql});
    system('mkdir', '-p', "$prefix/bin", "$prefix/share/seckill") == 0
        && system('cp', $c->t->build . '/seckillctl', "$prefix/bin/") == 0
        && system('cp', '-r', $c->t->root . '/sql', "$prefix/share/seckill/") == 0 or die 'no copy';
    my ($exit, undef, $err) = $c->t->run("$prefix/bin/seckillctl", '-c', $c->{conf}, 'schema', 'apply');
    is($exit, 0, 'the files of another prefix are found') or diag($err);
    is($c->column('SELECT COUNT(*) FROM seckill_orders'), 0, '... and applied');
}

done_testing();
