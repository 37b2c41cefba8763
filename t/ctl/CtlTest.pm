package CtlTest;

# What the tests of seckillctl share: a Redis and a MariaDB with the schema, the
# rows of a sale, and a look at all of it.

use strict;
use warnings;

use JSON ();
use SeckillTest;
use Test::More ();

# A test on private servers, with the schema applied unless schema => 0.
sub new {
    my ($class, %args) = @_;

    my $t    = SeckillTest->new;
    my $self = bless { t => $t, next => 0 }, $class;

    $self->{redis} = $t->redis;
    $self->{mysql} = $t->mariadb(%{ $args{mariadb} // {} });
    $self->{conf}  = $t->conf(redis => $self->{redis}, mysql => $self->{mysql});

    if ($args{schema} // 1) {
        my ($exit, $out, $err) = $self->ctl('schema', 'apply', '--dir', $t->root . '/sql');
        Test::More::is($exit, 0, 'the schema is applied') or Test::More::diag($err);
    }

    return $self;
}

sub t     { return $_[0]{t} }
sub redis { return $_[0]{redis}{client} }
sub dbh   { return $_[0]{mysql}{dbh} }

# (exit, stdout, stderr) of a run
sub ctl {
    my ($self, @args) = @_;
    return $self->{t}->ctl($self->{conf}, @args);
}

# The same with --json and stdout decoded.
sub ctl_json {
    my ($self, @args) = @_;

    my ($exit, $out, $err) = $self->ctl(@args, '--json');

    return ($exit, eval { JSON->new->utf8->decode($out) }, $err);
}

# A new product and activity; returns the activity's id.  start and end are
# seconds from now, or SQL text; the rest are columns.
sub activity {
    my ($self, %args) = @_;

    my $id    = ++$self->{next};
    my $start = delete $args{start} // 3600;
    my $end   = delete $args{end} // 7200;
    my $stock = delete $args{products_stock} // 1000;
    my %row   = (stock_limit => 100, seckill_price => '9.90', product_id => $id, %args);

    for ($start, $end) {
        $_ = /^-?\d+$/ ? "DATE_ADD(UTC_TIMESTAMP(), INTERVAL $_ SECOND)" : "'$_'";
    }

    $self->dbh->do('INSERT INTO products (id, name, stock, price) VALUES (?, ?, ?, 19.90)',
        undef, $id, "product $id", $stock);
    my @names = sort keys %row;
    $self->dbh->do(
        'INSERT INTO seckill_activities (id, start_time, end_time, ' . join(', ', @names)
            . ") VALUES (?, $start, $end, " . join(', ', ('?') x @names) . ')',
        undef, $id, @row{@names});

    return $id;
}

sub column {
    my ($self, $sql, @args) = @_;
    return scalar $self->dbh->selectrow_array($sql, undef, @args);
}

sub products_stock {
    my ($self, $product) = @_;
    return $self->column('SELECT stock FROM products WHERE id = ?', $product);
}

# The ledger of an activity as "kind ref units" lines.
sub ledger {
    my ($self, $activity) = @_;

    my $rows = $self->dbh->selectcol_arrayref(
        'SELECT CONCAT_WS(" ", kind, ref, product_id, units) FROM seckill_stock_log '
            . 'WHERE activity_id = ? ORDER BY id', undef, $activity);

    return [ @{$rows} ];
}

# The terms of an activity's epochs as "epoch product price max_quantity kind" lines.
sub terms {
    my ($self, $activity) = @_;

    return $self->dbh->selectcol_arrayref(
        'SELECT CONCAT_WS(" ", epoch, product_id, price, max_quantity, kind) '
            . 'FROM seckill_terms WHERE activity_id = ? ORDER BY epoch', undef, $activity);
}

sub facts {
    my ($self, $activity) = @_;
    return { $self->redis->hgetall("seckill:activity:{$activity}") };
}

sub stock {
    my ($self, $activity) = @_;
    return $self->redis->get("seckill:stock:{$activity}");
}

# Everything both servers hold, as one text: equal texts mean "nothing changed".
sub everything {
    my ($self) = @_;

    my $text = '';

    for my $key (sort $self->redis->keys('*')) {
        my $type = $self->redis->type($key);
        my @value =
              $type eq 'string' ? $self->redis->get($key)
            : $type eq 'hash'   ? (map { ref $_ ? @{$_} : $_ } _pairs($self->redis->hgetall($key)))
            : $type eq 'set'    ? sort $self->redis->smembers($key)
            :                     $self->redis->xlen($key);
        $text .= "$key $type @value\n";
    }

    for my $table (qw(products seckill_activities seckill_orders seckill_records
                      seckill_stock_log seckill_terms))
    {
        for my $row (@{ $self->dbh->selectall_arrayref("SELECT * FROM $table ORDER BY 1, 2") }) {
            $text .= "$table " . join('|', map { $_ // 'NULL' } @{$row}) . "\n";
        }
    }

    return $text;
}

sub _pairs {
    my (%hash) = @_;
    return map {"$_=$hash{$_}"} sort keys %hash;
}

# An order row, as seckilld would write it.
sub order {
    my ($self, $activity, $user, %args) = @_;

    my $seq = ++$self->{seq};
    my %row = (
        order_no => sprintf('261129150000123%06d%07d%04d', $activity % 1e6, $seq, $user % 1e4),
        user_id => $user, product_id => $activity, activity_id => $activity,
        seckill_price => '9.90', epoch => 1, seq => $seq, %args);
    my @names = sort keys %row;

    $self->dbh->do('INSERT INTO seckill_orders (' . join(', ', @names) . ') VALUES ('
        . join(', ', ('?') x @names) . ')', undef, @row{@names});

    return $row{order_no};
}

1;
