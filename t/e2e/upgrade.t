# From 0.1.0 to here: a running sale is upgraded part by part, with the programs of 0.1.0 as
# its commit makes them.  Tables, nodes, daemon and tool, old beside new at each step; at the
# end nothing is lost, and the books add up.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../ctl";

use BooksTest;
use IO::Socket::INET;
use NodesTest qw(token);
use OldVersion;
use POSIX ();
use ReadmeRights;
use Test::More;
use Time::HiRes qw(sleep time);

use constant { UNITS => 700, RATE => 60 };          # of the crowd, a second

my $c   = BooksTest->new(schema => 0);
my $t   = $c->t;
my $new = $t->build;
my ($old, $why) = OldVersion::built($t);

if (!$old) {
    die "$why\n" if ($ENV{SECKILL_UPGRADE} // '') eq 'require' && !$t->sanitized;
    plan skip_all => $why;
}

my $redis = $c->redis;
my $dbh   = $c->dbh;
my $began = time;
# the rights in Redis come first: 0.1.0 gets along with those of this version
my %word = ReadmeRights::grant($t, $c->{redis});

sub conf {
    my ($user, %more) = @_;
    return $t->conf(redis => $c->{redis}, mysql => $c->{mysql}, 'redis.user' => $user, 'redis.password_file' => $word{$user},
        'consumer.clock_trust_start' => undef, %more);
}

$c->{conf} = conf('seckillctl');
my $auth  = $t->file('auth.key', NodesTest::KEY);

# --- which programs

sub with { my ($which, $do) = @_; local $t->{build} = $which eq 'old' ? "$old/build" : $new; return $do->() }

sub ctl_is {
    my ($which, $want, @args) = @_;
    my ($exit, $out, $err) = with($which, sub { $c->ctl(@args) });
    is($exit, $want, "the $which tool: @args") or diag($out, $err);
    return $out . $err;
}

my %node;                                           # name => process

sub node_conf {
    my ($journal) = @_;
    return (workers => 1, key_file => $auth, journal => $journal // '', http => 'seckill_limit off; seckill_refresh 200ms; '
        . "seckill_zone seckill:8m; seckill_redis unix:$c->{redis}{sock} user=nginx password_file=$word{nginx};");
}

sub node {
    my ($which, $name, $journal) = @_;
    my $before = delete $node{$name};
    ports();
    sleep 0.2;                                      # the crowd knows
    is($t->stop($before), 0, "node $name stops well") if $before;
    $node{$name} = with($which, sub { $t->nginx(node_conf($journal)) });
    ports();
    return;
}

sub ports {
    my $file = $t->dir . '/ports';
    open my $fh, '>', "$file.new" or die "$file: $!";
    print {$fh} join ' ', map { $_->{port} } values %node;
    close $fh or die "$file: $!";
    rename "$file.new", $file or die "$file: $!";
    return;
}

my %daemon;

sub daemon {
    my ($which, $name) = @_;
    return $daemon{$name} = with($which, sub {
        $t->seckilld(conf('seckilld', 'consumer.name' => $name, 'consumer.claim_idle' => '1s', 'consumer.settle_after' => '0s',
            'consumer.attempts' => 1, 'consumer.retain' => '1h',
            ($which eq 'new' ? ('consumer.clock_trust' => '2s', 'consumer.clock_trust_start' => '100ms') : ()))) });
}

sub daemon_stops { my ($name) = @_; return is($t->stop(delete $daemon{$name}), 0, "daemon $name stops well") }

# --- a crowd: one buyer after the other at whichever node there is, until it is told for sure

my %said;                                           # user => code, as last told
sub crowd {
    my ($id) = @_;

    my $pid = fork // die "fork: $!";
    return $pid if $pid;

    open my $heard, '>>', $t->dir . '/heard' or POSIX::_exit(1);
    my ($user, $first) = (0, time);
    while (!-e $t->dir . '/enough') {
        my $code = 'none';
        $user++;
        for (1 .. 100) {
            my @ports = split ' ', do { local (@ARGV, $/) = $t->dir . '/ports'; <> } // '';
            $code = post($ports[ rand @ports ], $id, $user) if @ports;
            last if $code =~ /\A(?:0|40004|40005)\z/;
            sleep 0.05;
        }
        syswrite $heard, "$user $code\n";
        sleep 0.001 while time < $first + $user / RATE;
    }
    POSIX::_exit(0);
}

sub post {
    my ($port, $id, $user) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 2) or return 'none';
    print {$socket} "POST /seckill/$id HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n"
        . 'Authorization: Bearer ' . token($user) . "\r\n\r\n";
    my $text = do { local $/ = undef; <$socket> } // '';
    return $text =~ /\r\n\r\n\{"code":(\d+),/ ? $1 : 'none';
}

sub order_count {
    my ($id) = @_;
    return scalar $dbh->selectrow_array('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ?', undef, $id);
}

# the sale goes on: so many more orders than there were
my $main;
sub goes_on {
    my ($when) = @_;
    my $orders = order_count($main);
    return ok(eval { $t->wait_for(sub { order_count($main) >= $orders + 20 }, 20, $when) }, "orders go on: $when");
}

# --- 0.1.0 alone

ctl_is('old', 0, 'schema', 'apply', '--dir', "$old/sql");
$main = $c->activity(start => -60, end => 3600, stock_limit => UNITS, products_stock => 2000);
my $ended = $c->activity(start => -60, end => 3600, stock_limit => 5, products_stock => 50);
my $soon  = $c->activity(start => 3600, end => 7200, stock_limit => 9, products_stock => 50);
ctl_is('old', 0, 'preheat', $_, '--late') for $main, $ended;
ctl_is('old', 0, 'preheat', $soon);
$dbh->do("ALTER TABLE seckill_orders ADD CONSTRAINT ck_test CHECK (activity_id <> $ended OR user_id <> 3)");
node('old', $_) for qw(a b);
daemon('old', 'one');
is(join(' ', map { post($node{a}{port}, $ended, $_) } 1 .. 3), '0 0 0', 'three buy in a sale that will end');
my $crowd = crowd($main);
goes_on('0.1.0 alone');
$t->wait_for(sub { $redis->xlen("seckill:dead:{$ended}") == 1 }, 20, 'the dead letter of 0.1.0');

# --- what of its settings means something else now, is said before anything is started

{
    my ($exit, $said) = $t->nginx_test(node_conf());
    is($exit, 0, 'nginx -t with the configuration of 0.1.0');
    like($said, qr/\[warn\].*seckill_journal/, '... says that there is no journal');
    my $conf = $t->conf(redis => $c->{redis}, 'mysql.host' => 'localhost');
    ($exit, undef, $said) = $t->run("$new/seckilld", '-t', '-c', $conf);
    is($exit, 0, 'seckilld -t with settings of 0.1.0');
    like($said, qr/host = localhost.*TCP/, '... says that localhost is TCP');
    like($said, qr/pay_timeout/, '... and that unpaid orders are not cancelled by themselves');
}

# --- tables first, while all of 0.1.0 runs

ctl_is('new', 0, 'schema', 'apply', '--dir', $t->root . '/sql');
goes_on('old daemon and nodes on the new tables');
ctl_is('new', 0, 'schema', 'apply', '--dir', $t->root . '/sql');
ctl_is('new', 0, 'schema', 'status', '--dir', $t->root . '/sql');
ctl_is('old', 0, 'restock', $main, 10);
ctl_is('old', 0, 'status', $main);

# --- a new node beside an old one, with the old daemon

node('new', 'a');
goes_on('a new node beside an old one, the old daemon');

# --- a new daemon beside the old one, then alone, with old nodes

daemon('new', 'two');
goes_on('two daemons, old and new');
daemon_stops('one');
goes_on('the new daemon, a node of each kind');

# --- the new tool, and the old one beside it

ctl_is('new', 0, $_, $main) for qw(status queue reconcile);
ctl_is('new', 0, 'restock', $main, 10);
ctl_is('old', 0, 'restock', $main, 10);
ctl_is('old', 0, 'limit', $main, '500r/s');
ctl_is('new', 0, 'limit', $main, 'default');
ctl_is('old', 0, 'close', $main);
ctl_is('new', 0, 'open', $main);
goes_on('after both tools');

# a preheat by the tool of 0.1.0 knows no terms: its orders wait until they are there
$dbh->do('UPDATE seckill_activities SET start_time = UTC_TIMESTAMP() - INTERVAL 1 MINUTE WHERE id = ?', undef, $soon);
my $late = $c->activity(start => -60, end => 3600, stock_limit => 9, products_stock => 50);
ctl_is('old', 0, 'preheat', $late, '--late');
is(post($node{b}{port}, $late, 1), 0, 'one buys in a sale that the old tool put up on the new tables');
ctl_is('new', 0, 'schema', 'apply', '--dir', $t->root . '/sql');
ok(eval { $t->wait_for(sub { order_count($late) == 1 }, 20, 'the order') }, '... and has an order, once schema apply was run again');

# a dead letter of the old daemon, by the new tool
$dbh->do('ALTER TABLE seckill_orders DROP CONSTRAINT ck_test');
ctl_is('new', 0, 'dead', 'retry', $ended, '--all');
ok(eval { $t->wait_for(sub { order_count($ended) == 3 }, 20, 'the retried one') }, '... becomes an order');

# --- the last old node, and a journal

node('new', 'b', "$t->{dir}/b.journal");
node('new', 'a', "$t->{dir}/a.journal");
goes_on('all is new');
ctl_is('old', 0, 'status', $main);

# --- the end

ok(eval { $t->wait_for(sub { $redis->get("seckill:stock:{$main}") <= 0 }, 40, 'sold out') }, 'all units are sold');
sleep 0.5;
$t->file('enough', '');
waitpid $crowd, 0;
{
    open my $fh, '<', $t->dir . '/heard' or die "heard: $!";
    %said = map { chomp; split / / } <$fh>;
}
my %codes;
$codes{$_}++ for values %said;
my %has = map { $_ => 1 } @{ $dbh->selectcol_arrayref('SELECT user_id FROM seckill_orders WHERE activity_id = ?', undef, $main) };
$t->wait_for(sub {
    %has = map { $_ => 1 } @{ $dbh->selectcol_arrayref('SELECT user_id FROM seckill_orders WHERE activity_id = ?', undef, $main) };
    keys %has == UNITS + 30 }, 20, 'the last orders');
is(scalar keys %has, UNITS + 30, 'as many orders as units, those of three restocks too');
is_deeply([sort { $a <=> $b } grep { $said{$_} =~ /\A(?:0|40004)\z/ } keys %said], [sort { $a <=> $b } keys %has],
    'whoever was told of a purchase has an order, and nobody else') or diag(explain(\%codes));
is_deeply([grep { !/\A(?:0|40004|40005)\z/ } keys %codes], [], '... and everybody was told for sure') or diag(explain(\%codes));
ctl_is('new', 0, 'reconcile', $_, '--grace', '0s') for $main, $ended, $late;
ctl_is('new', 0, 'reconcile', $main, '--grace', '0s', '--journal', "$t->{dir}/a.journal", "$t->{dir}/b.journal");
ctl_is('old', 0, 'reconcile', $main, '--grace', '0s');

# the end of the sales has come: for the row, for what was promised, and for Redis
my $past = 'UTC_TIMESTAMP() - INTERVAL 5 SECOND';
for my $id ($main, $ended, $late) {
    $dbh->do("UPDATE seckill_activities SET end_time = $past WHERE id = ?", undef, $id);
    $dbh->do("UPDATE seckill_terms SET end_time = $past WHERE activity_id = ?", undef, $id);
    $redis->hset("seckill:activity:{$id}", end_ms => 1000 * $c->column("SELECT UNIX_TIMESTAMP($past)"));
}
for my $id ($main, $ended, $late) {
    ok(eval { $t->wait_for(sub { ($redis->hget("seckill:activity:{$id}", 'state') // '') eq 'settled' }, 30, 'settled') },
        "sale $id is settled by the new daemon");
    ctl_is('new', 0, 'reconcile', $id, '--grace', '0s');
}
is($c->products_stock($main), 2000 - UNITS - 30, 'what was sold is gone from the stock');
is($c->products_stock($ended), 50 - 3, '... and what was not is back');
is($c->products_stock($late), 50 - 1, '... of the sale that the old tool put up, too');
is_deeply($dbh->selectcol_arrayref('SELECT id FROM seckill_activities WHERE reserved IS NULL AND epoch > 0 AND id <> ?', undef, $soon), [],
    'every row knows what it took from the stock');
daemon_stops('two');
unlike($t->log_text($_), qr/\[(?:alert|emerg|crit)\]/, 'no alarm in the log of a node') for values %node;
is_deeply(ReadmeRights::denied($redis), [], 'nothing was denied to anybody, old or new');
diag(sprintf '%.0f s', time - $began);

done_testing;
