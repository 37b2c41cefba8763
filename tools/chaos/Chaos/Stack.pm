package Chaos::Stack;

# The servers that suffer: Redis with an AOF, MariaDB on a disk of its own,
# seckilld and nginx, each link over a path that can be pointed elsewhere.  Owns
# how they start, how a sale is made, how one waits for the queue to be empty,
# and the probe that says when a sale works again.

use strict;
use warnings;

use File::Path qw(make_path);
use IO::Socket::INET;
use JSON::PP ();
use Time::HiRes qw(sleep time);

use Chaos::Crowd;
use Chaos::Nginx;
use Chaos::Proxy;
use ClockShim;
use SeckillTest;

use constant {
    DISK_MB       => 320,
    DRAIN_SECONDS => 60,
    PROBE_SECONDS => 60,
    PROBE_ACTIVITY => 900_001,
    GOODS         => 1_000_000_000,     # products.stock before any sale
    PRICE         => 9.90,
};

my @living;     # for END

sub new {
    my ($class, %args) = @_;

    my $t    = SeckillTest->new;
    my $self = bless { owner => $$, t => $t, probes => 0, %args }, $class;
    push @living, $self;

    $self->{key_file} = $t->key_file;
    $self->{key}      = _slurp($self->{key_file});
    $self->_disk;
    $self->{clocks} = ClockShim->new;
    $self->{redis} = $t->redis($self->redis_conf);
    $self->{mysql} = $t->mariadb(
        'innodb-lock-wait-timeout' => 2, 'innodb-print-all-deadlocks' => undef, %{ $args{mariadb} // {} });
    for my $link (qw(nginx-redis nginx2-redis daemon-redis daemon-mysql)) {
        $self->point($link);
    }
    $self->_settle_in;
    for my $node (['front', 'nginx-redis', 2], ['front-2', 'nginx2-redis', 1]) {
        my ($name, $link, $workers) = @{$node};
        push @{ $self->{nodes} }, Chaos::Nginx->new(t => $t, name => $name, redis => $self->link($link),
                                                    key_file => $self->{key_file}, workers => $workers);
    }
    $_->start for $self->nodes;
    $self->daemon_start;
    $self->sale(PROBE_ACTIVITY, 1_000_000);

    return $self;
}

sub redis_conf {
    return (
        appendonly  => 'yes',
        appendfsync => 'always',
        'enable-debug-command' => 'local',
        'repl-diskless-sync-delay' => 0,
    );
}

sub t     { return $_[0]{t} }
sub nodes { return @{ $_[0]{nodes} // [] } }
sub nginx { return $_[0]{nodes}[0] }
sub mysql { return $_[0]{mysql} }
sub redis { return $_[0]{redis} }

# A client of Redis that does not care for what happened meanwhile.
sub client {
    my ($self) = @_;

    my $redis = $self->{redis};
    if (!$redis->{client} || !eval { $redis->{client}->ping }) {
        $redis->{client} = $self->{t}->redis_client($redis);
    }
    return $redis->{client};
}

# A DBI handle that works, or it dies.
sub dbh {
    my ($self) = @_;

    my $mysql = $self->{mysql};
    if (!$mysql->{dbh} || !eval { $mysql->{dbh}->do('SELECT 1'); 1 }) {
        $mysql->{dbh} = $self->{t}->dbh($mysql);
    }
    return $mysql->{dbh};
}

# MariaDB gets a small disk that can be full, where we may mount one.
sub _disk {
    my ($self) = @_;

    my $place = $self->{t}->dir . '/mysql';
    make_path($place);
    if (system("mount -t tmpfs -o size=@{[DISK_MB]}m seckill-chaos $place 2>/dev/null") == 0) {
        $self->{disk} = $place;
    }
    return;
}

sub _settle_in {
    my ($self) = @_;

    my $t = $self->{t};
    my $root_conf = $t->conf(redis => $self->{redis}, mysql => $self->{mysql});
    $self->_must($t->ctl($root_conf, 'schema', 'apply', '--dir', $t->root . '/sql'));
    $self->dbh->do(q{CREATE USER 'shop'@'localhost'});
    $self->dbh->do(q{GRANT ALL ON seckill.* TO 'shop'@'localhost'});

    $self->{conf} = $self->_conf('chaos');
    $self->{other_conf} = $self->_conf('other');
    return;
}

# Settings of a daemon of that name.
sub _conf {
    my ($self, $name) = @_;

    my %consumer = (name => $name, workers => 2, batch => 100, idle => '20ms', retain => '10m', claim_idle => '5s',
                    pay_timeout => '15m', %{ $self->{consumer} // {} });
    return $self->{t}->conf(
        'redis.address'  => 'unix:' . $self->link('daemon-redis'),
        'redis.timeout'  => '500ms',
        'mysql.socket'   => $self->link('daemon-mysql'),
        'mysql.user'     => 'shop',
        'mysql.database' => 'seckill',
        'mysql.timeout'  => '3s',
        consumer         => \%consumer,
    );
}

sub _must {
    my ($self, $exit, $out, $err) = @_;
    die "seckillctl: exit $exit: $out$err\n" if $exit != 0;
    return $out;
}

sub ctl {
    my ($self, @args) = @_;
    return $self->{t}->ctl($self->{conf}, @args);
}

# --- links

sub link { return $_[0]{t}->dir . "/$_[1].link" }

# Points a link at a socket; without one at its server.
sub point {
    my ($self, $link, $sock) = @_;

    $sock //= $link =~ /redis/ ? $self->{redis}{sock} : $self->{mysql}{sock};
    my $path = $self->link($link);
    unlink "$path.new";
    symlink $sock, "$path.new" or die "symlink: $!\n";
    rename "$path.new", $path or die "rename: $!\n";
    return;
}

# Puts a cutting proxy into a link and makes clients connect again.
sub cut {
    my ($self, $link, %how) = @_;

    my $server = $link =~ /redis/ ? $self->{redis} : $self->{mysql};
    my $proxy  = Chaos::Proxy->new(
        kind => $link =~ /redis/ ? 'redis' : 'mysql', target => $server->{sock},
        sock => $self->{t}->dir . "/$link.proxy", %how);
    $self->point($link, $proxy->{sock});
    $self->{proxy}{$link} = $proxy;
    $self->drop_clients($link);
    return $proxy;
}

sub mend {
    my ($self, $link) = @_;

    $self->point($link);
    (delete $self->{proxy}{$link})->stop;
    return;
}

# Connections of before would not feel a new path.
sub drop_clients {
    my ($self, $link) = @_;

    if ($link =~ /redis/) {
        $self->client->client_kill('TYPE', 'normal', 'SKIPME', 'yes');
        return;
    }
    for my $id (@{ $self->dbh->selectcol_arrayref(
        q{SELECT id FROM information_schema.processlist WHERE user = 'shop'}) }) {
        eval { $self->dbh->do("KILL $id") };
    }
    return;
}

# --- seckilld

sub daemon_start {
    my ($self, %env) = @_;

    my $conf = delete $env{conf} // $self->{conf};
    local @ENV{ keys %env } = values %env;
    $self->{daemon} = $self->{t}->seckilld($conf);
    push @{ $self->{daemons} }, $self->{daemon};
    return $self->{daemon};
}

# Lines of all daemons since the last call, by kind.
sub _daemon_lines {
    my ($self, $kind, $pattern) = @_;

    my @lines;
    for my $daemon (@{ $self->{daemons} }) {
        open my $fh, '<', $daemon->{log} or next;
        seek $fh, $daemon->{read}{$kind} // 0, 0;
        push @lines, grep { $_ =~ $pattern } <$fh>;
        $daemon->{read}{$kind} = tell $fh;
    }
    chomp @lines;
    return @lines;
}

# What no fault explains.
sub daemon_faults {
    my ($self) = @_;
    return map {"seckilld: $_"} $self->_daemon_lines(faults => qr/Sanitizer|runtime error:|level=fatal/);
}

# How many errors and warnings there were.
sub daemon_complaints {
    my ($self) = @_;
    return scalar $self->_daemon_lines(complaints => qr/level=(?:error|warn)/);
}

sub daemon_alive {
    my ($self) = @_;
    return $self->{t}->alive($self->{daemon});
}

# --- sales

# A sale of so many units, open now.
sub sale {
    my ($self, $id, $units) = @_;

    my $dbh = $self->dbh;
    $dbh->do('INSERT INTO products (id, name, stock, price) VALUES (?, ?, ?, ?)', undef,
             $id, "goods $id", GOODS, PRICE);
    $dbh->do('INSERT INTO seckill_activities (id, product_id, seckill_price, stock_limit, start_time,'
             . ' end_time, max_quantity) VALUES (?, ?, ?, ?, UTC_TIMESTAMP() - INTERVAL 10 MINUTE,'
             . ' UTC_TIMESTAMP() + INTERVAL 10 HOUR, 2)', undef, $id, $id, PRICE, $units);
    $self->_must($self->ctl('preheat', $id, '--late'));
    return;
}

# Waits until the daemon knows of a sale; one that the round before took away is
# restored first.
sub found {
    my ($self, $id) = @_;

    $self->_must($self->ctl('restore', $id, '--yes'))
        if ($self->client->hget($self->key(activity => $id), 'state') // '') ne 'open';

    $self->{t}->wait_for(sub {
        return scalar @{ $self->client->xinfo('CONSUMERS', $self->key(orders => $id), 'seckilld') };
    }, 10, "seckilld to find activity $id");
    return;
}

sub key { return "seckill:$_[1]:{$_[2]}" }

# Entries of a sale that are not read yet, and those not acknowledged.
sub backlog {
    my ($self, $id) = @_;

    my $client = $self->client;
    my $orders = $self->key(orders => $id);
    my ($group) = grep { $_->{name} eq 'seckilld' }
                  map { my %g = @{$_}; \%g } @{ $client->xinfo('GROUPS', $orders) };
    die "activity $id has no consumer group\n" if !$group;
    my $unread = $client->xrange($orders, "($group->{'last-delivered-id'}", '+');

    return ($unread, $group->{pending});
}

# Waits until nothing is unread or pending; false when it takes too long.
sub drained {
    my ($self, $id, $seconds) = @_;

    my $deadline = time + ($seconds // DRAIN_SECONDS);
    while (time < $deadline) {
        return 1 if !$self->client->exists($self->key(orders => $id));
        my ($unread, $pending) = eval { $self->backlog($id) };
        return 1 if $unread && !@{$unread} && !$pending;
        sleep 0.05;
    }
    return 0;
}

# One purchase by a new user of a sale that never ends.  Returns the seconds
# until it was accepted and until its order was told, or undef.
sub probe {
    my ($self) = @_;

    my $began = time;
    my $user  = 5_000_000 + ++$self->{probes};
    my ($accepted, $told);

    while (time - $began < PROBE_SECONDS) {
        if (!defined $accepted) {
            my ($code) = $self->http('POST', '/seckill/' . PROBE_ACTIVITY, $user);
            $accepted = time - $began if $code == 0 || $code == 40_004;
        }
        if (defined $accepted) {
            my ($code) = $self->http('GET', '/seckill/result/' . PROBE_ACTIVITY, $user);
            return ($accepted, time - $began) if $code == 1;
        }
        sleep 0.03;
    }
    return ($accepted, undef);
}

# One request of a user on a connection of its own; the code, -1 for no answer.
sub http {
    my ($self, $method, $path, $user) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->nginx->{port},
                                       Timeout => 2) or return -1;
    my $auth = Chaos::Crowd::token($self->{key}, $user);
    print {$socket} "$method $path HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer $auth\r\n"
        . "Content-Length: 0\r\nConnection: close\r\n\r\n";
    my $text = '';
    local $SIG{ALRM} = sub { die "timeout\n" };
    eval { alarm 3; local $/ = undef; $text = <$socket> // ''; 1 };
    alarm 0;
    my ($body) = $text =~ /\r\n\r\n(.*)/s;

    return Chaos::Crowd::read_body($body // '');
}

# Everything ends, by pid.
sub done {
    my ($self) = @_;

    return if $self->{ended}++;
    $_->stop for values %{ $self->{proxy} // {} };
    $_->done for $self->nodes;
    for my $proc (grep {$_} @{$self}{qw(redis mysql daemon replica)}) {
        kill 'CONT', $proc->{pid} if $self->{t}->alive($proc);
    }
    $self->{t}->stop($self->{daemon}) if $self->{daemon} && $self->daemon_alive;
    $self->{t}->kill9($self->{mysql}) if $self->{mysql};
    system "umount $self->{disk}" if $self->{disk};
    # all logs were read, round by round
    @{ $self->{t}{logs} } = ();
    return;
}

# before that of SeckillTest, which removes the folder
END {
    local ($?, $@, $!);
    $_->done for grep { $_->{owner} == $$ } @living;
}

sub _slurp {
    my ($path) = @_;
    open my $fh, '<', $path or return '';
    local $/ = undef;
    return scalar(<$fh>) // '';
}

1;
