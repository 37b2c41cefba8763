package ConsumerTest;

# What the tests of seckilld share: a Redis and a MariaDB with the schema, sales
# in both, purchases through the real lua/admit.lua, and a look at what became
# of them.

use strict;
use warnings;

use Digest::SHA ();
use JSON ();
use SeckillTest;
use Test::More ();

# A test on private servers.  mariadb => {...} and redis => {...} are their
# options; conf => {...} settings of the daemon.
sub new {
    my ($class, %args) = @_;

    my $t    = SeckillTest->new;
    my $self = bless { t => $t, settings => $args{conf} // {} }, $class;

    $self->{redis} = $t->redis(%{ $args{redis} // {} });
    $self->{mysql} = $t->mariadb(%{ $args{mariadb} // {} });
    $self->{conf}  = $self->conf;
    $self->schema;

    return $self;
}

sub t     { return $_[0]{t} }
sub redis { return $_[0]{redis}{client} }
sub dbh   { return $_[0]{mysql}{dbh} }

# Another file with settings of its own.
sub conf {
    my ($self, %settings) = @_;

    return $self->{t}->conf(redis => $self->{redis}, mysql => $self->{mysql},
        %{ $self->{settings} }, %settings);
}

sub schema {
    my ($self) = @_;

    for my $file (sort glob $self->{t}->root . '/sql/*.sql') {
        my ($exit, $out, $err) = $self->{t}->run('mariadb', '--no-defaults', '-uroot',
            "-S$self->{mysql}{sock}", 'seckill', '-e', "source $file");
        die "$file: $err" if $exit != 0;
    }
    return;
}

# Starts the daemon; %env is for this run only.
sub start {
    my ($self, %env) = @_;

    local @ENV{ keys %env } = values %env;

    return $self->{daemon} = $self->{t}->seckilld($self->{conf});
}

# Stops it; true when it ended well.
sub stop {
    my ($self) = @_;
    return $self->{t}->stop($self->{daemon}) == 0;
}

sub key {
    my ($self, $name, $id) = @_;
    return "seckill:$name:{$id}";
}

# A sale in MySQL and Redis; group => 1 makes the consumer group too.
sub sale {
    my ($self, $id, %args) = @_;

    my $units = $args{units} // 100;
    my $price = $args{price} // '9.90';
    my $now   = time * 1000;
    my $begin = $args{start_ms} // $now - 60_000;

    $self->dbh->do('INSERT INTO products (id, name, stock, price) VALUES (?, ?, 0, ?)',
        undef, $id, "product $id", $price);
    $self->dbh->do(
        'INSERT INTO seckill_activities (id, product_id, seckill_price, stock_limit,'
            . ' start_time, end_time, max_quantity, epoch)'
            . ' VALUES (?, ?, ?, ?, FROM_UNIXTIME(?), FROM_UNIXTIME(?), 10, 1)',
        undef, $id, $id, $price, $args{stock_limit} // $units, int($begin / 1000),
        int($now / 1000) + 3600);

    $self->terms($id, 1);
    $self->preheat($id, units => $units, price => $price, start_ms => $begin, %args);
    return;
}

# The terms of an epoch, by the row as it is.
sub terms {
    my ($self, $id, $epoch) = @_;

    $self->dbh->do('INSERT INTO seckill_terms (activity_id, epoch, product_id, price, max_quantity,'
        . ' by_registration, start_time, end_time, kind) SELECT id, ?, product_id, seckill_price,'
        . " max_quantity, by_registration, start_time, end_time, 'preheat'"
        . ' FROM seckill_activities WHERE id = ?', undef, $epoch, $id);
    return;
}

# The Redis side of a sale alone.
sub preheat {
    my ($self, $id, %args) = @_;

    my $redis = $self->redis;

    $redis->sadd('seckill:activities', $id);
    $redis->hset($self->key(activity => $id),
        product_id => $id, price => $args{price} // '9.90', stock_limit => $args{units},
        start_ms => $args{start_ms} // time * 1000 - 60_000, end_ms => time * 1000 + 3_600_000,
        state => 'open', max_quantity => 10, eligible => 0, epoch => $args{epoch} // 1, rev => 1,
        seq => $args{seq} // 0);
    $redis->set($self->key(stock => $id), $args{units});
    # whoever was counted is a buyer
    $redis->sadd($self->key(order_users => $id), 1 .. $args{seq}) if $args{seq};

    # a sale has its stream from the start; without a group it was put up by hand
    $redis->xgroup('CREATE', $self->key(orders => $id), 'seckilld', 0, 'MKSTREAM');
    $redis->xgroup('DESTROY', $self->key(orders => $id), 'seckilld') if !$args{group};
    return;
}

# Buys through lua/admit.lua; a user is an id or [id, quantity, ext, request_id].
# Returns the verdicts, '1' for accepted.
sub buy {
    my ($self, $id, @users) = @_;

    my @args = map { ref $_ ? ($_->[0], $_->[1] // 1, $_->[3] // 'req', $_->[2] // '')
                            : ($_, 1, 'req', '') } @users;
    utf8::encode($_) for @args;

    my $verdicts = '';

    while (my @part = splice @args, 0, 4 * 256) {
        my $reply = $self->redis->eval($self->_admit, 5,
            (map { $self->key($_ => $id) } qw(activity stock order_users orders eligible)),
            $id, @part / 4, 0, 0, @part);
        $verdicts .= $reply->[5];
    }

    return $verdicts;
}

sub _admit {
    my ($self) = @_;

    return $self->{admit} //= do {
        open my $fh, '<:raw', $self->{t}->root . '/lua/admit.lua' or die "admit.lua: $!";
        local $/ = undef;
        <$fh>;
    };
}

# Adds an entry as it is; returns its id.
sub add {
    my ($self, $id, @fields) = @_;
    return $self->redis->xadd($self->key(orders => $id), '*', @fields);
}

# The fields of a good message, with changes; undef drops one.
sub message {
    my ($self, $id, $user, %change) = @_;

    my $seq = $change{seq} // 1;
    my @names = qw(v user activity quantity epoch seq order_no accepted_ms request_id ext);
    my %all = (
        v => 1, user => $user, activity => $id, quantity => 1, epoch => 1, seq => $seq,
        order_no => sprintf('261129120000000%06d%07d%04d', $id % 1e6, $seq % 1e7, $user =~ /^\d+\z/ ? $user % 1e4 : 0),
        accepted_ms => 1795953600000, request_id => 'req', ext => '', %change);

    return map { $_ => $all{$_} } grep { defined $all{$_} } @names;
}

# The orders of an activity, by id.
sub orders {
    my ($self, $id) = @_;
    return $self->dbh->selectall_arrayref(
        'SELECT * FROM seckill_orders WHERE activity_id = ? ORDER BY id', { Slice => {} }, $id);
}

sub count {
    my ($self, $table, $where) = @_;
    my ($n) = $self->dbh->selectrow_array("SELECT COUNT(*) FROM $table WHERE $where");
    return $n;
}

sub order_count {
    my ($self, $id) = @_;
    return $self->count(seckill_orders => "activity_id = $id");
}

sub sold {
    my ($self, $id) = @_;
    my ($n) = $self->dbh->selectrow_array('SELECT sold FROM seckill_activities WHERE id = ?',
        undef, $id);
    return $n;
}

# The status in seckill_records, or undef.
sub record {
    my ($self, $id, $user) = @_;
    my ($n) = $self->dbh->selectrow_array(
        'SELECT status FROM seckill_records WHERE activity_id = ? AND user_id = ?',
        undef, $id, $user);
    return $n;
}

# The result of a buyer, decoded, or undef.  order_id may be larger than a double.
sub result {
    my ($self, $id, $user) = @_;
    my $text = $self->redis->get("seckill:result:$user:{$id}");
    return defined $text ? JSON->new->allow_bignum->decode($text) : undef;
}

# Dead letters in order, each a hash with "fields", the original ones; "error" is
# the first one.
sub dead {
    my ($self, $id) = @_;

    my @letters;

    for my $entry (@{ $self->redis->xrange($self->key(dead => $id), '-', '+') }) {
        my ($letter_id, $fields) = @{$entry};
        my @fields = @{$fields};
        my %letter = splice @fields, 0, 14;
        push @letters, { %letter, error => $letter{first_error}, fields => \@fields };
    }

    return \@letters;
}

# How many are delivered and not acknowledged; undef without a group.
sub pending {
    my ($self, $id) = @_;
    my $reply = eval { $self->redis->xpending($self->key(orders => $id), 'seckilld') };
    return $reply ? $reply->[0] : undef;
}

# Nothing unread, nothing pending.
sub is_settled {
    my ($self, $id) = @_;

    my $key    = $self->key(orders => $id);
    my $groups = $self->redis->xinfo('GROUPS', $key);
    my %group  = map { my %g = @{$_}; ($g{name} => \%g) } @{$groups};
    my $mine   = $group{seckilld} or return 0;
    # behind the largest id there is nothing, and Redis refuses to look
    return $mine->{pending} == 0 if $mine->{'last-delivered-id'} eq join '-', ('18446744073709551615') x 2;
    my $unread = $self->redis->xrange($key, "($mine->{'last-delivered-id'}", '+', 'COUNT', 1);

    return $mine->{pending} == 0 && @{$unread} == 0;
}

# Waits until it is settled.
sub wait_settled {
    my ($self, $id, $seconds) = @_;
    return $self->{t}->wait_for(sub { $self->is_settled($id) }, $seconds // 20,
        "activity $id to be settled");
}

# Tests that each of these users has one order, a record and a result that names it.
sub all_bought {
    my ($self, $id, $users, $name) = @_;

    my $builder = Test::More->builder;
    my %order;
    push @{ $order{ $_->{user_id} } }, $_ for @{ $self->orders($id) };
    my @wrong;

    for my $user (@{$users}) {
        my @mine   = @{ $order{$user} // [] };
        my $result = $self->result($id, $user) // {};

        push @wrong, "user $user: " . @mine . ' orders, record '
            . ($self->record($id, $user) // 'none') . ', result ' . JSON->new->encode($result)
            unless @mine == 1 && $result->{success} && $result->{order_no} eq $mine[0]{order_no}
            && "$result->{order_id}" eq "$mine[0]{id}" && ($self->record($id, $user) // 0) == 1;
    }

    my $ok = $builder->ok(@wrong == 0, $name);
    Test::More::diag("$_") for @wrong[0 .. ($#wrong > 4 ? 4 : $#wrong)];

    return $ok;
}

1;
