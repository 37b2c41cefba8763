# F-H4: nginx, seckilld and seckillctl go the whole way of a sale with the rights in Redis
# that README grants them, and each is denied what could harm others.  Also for Redis 6.2,
# where README says what to write in place of the parentheses.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../ctl";

use BooksTest;
use Digest::SHA qw(sha256_hex);
use IO::Socket::INET;
use JSON ();
use ReadmeRights;
use Test::More;
use Time::HiRes qw(time);

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;
my $dbh   = $c->dbh;

my $server  = $redis->info;
my $version = $server->{redis_version};
my $old     = ReadmeRights::old($redis);
diag('on ' . ($server->{valkey_version} ? "Valkey $server->{valkey_version}" : "Redis $version"));

# --- the users, as README makes them

my %word = ReadmeRights::grant($t, $c->{redis});
my %as   = map { $_ => do { my $k = $t->redis_client($c->{redis}); $k->auth($_, "$_-word"); $k } } keys %word;
my $conf = sub {
    my ($user, @more) = @_;
    return $t->conf(redis => $c->{redis}, mysql => $c->{mysql}, 'redis.user' => $user, 'redis.password_file' => $word{$user}, @more);
};
my %daemon = ('consumer.retain' => '1s', 'consumer.claim_idle' => '300ms', 'consumer.attempts' => 1, 'consumer.settle_after' => '0s');

sub denied { return ReadmeRights::denied($redis) }

$c->{conf} = $conf->('seckillctl');
my $daemon_conf = $conf->('seckilld', %daemon);
my $daemon;

sub up { return $daemon = $t->seckilld($daemon_conf) }
sub down { is($t->stop($daemon), 0, 'the daemon stops well'); return }

sub ctl_is {
    my ($want, @args) = @_;
    my ($exit, $out, $err) = $c->ctl(@args);
    is($exit, $want, "seckillctl @args: exit $want") or diag($out, $err);
    return $out;
}

my $limit = 'seckill_limit rate=100r/s burst=100 scope=cluster;';
my $auth  = $t->key_file;
my $node  = $t->nginx(
    workers => 2,
    http    => "seckill_zone seckill:8m; seckill_redis unix:$c->{redis}{sock} user=nginx password_file=$word{nginx}; "
        . "seckill_auth_key_file $auth; seckill_refresh 200ms; $limit seckill_max_waiters 100;",
    location => "location /seckill/ { seckill on; }\nlocation /s/ { seckill on; seckill_auth redis; }");

# (code, text) of one request; a user is a number, or the text of another header
sub http {
    my ($method, $path, $user, %head) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "connect: $!\n";
    my (undef, $token) = $user =~ /^\d+$/ ? $c->ctl('token', $user, '--key-file', $auth) : (0, $user);
    chomp $token;
    print {$socket} "$method $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n"
        . "Authorization: Bearer $token\r\n" . join('', map {"$_: $head{$_}\r\n"} keys %head) . "\r\n";
    my $text = do { local $/ = undef; <$socket> } // '';
    return ($text =~ /"code":(\d+),/ ? $1 : $text, $text);
}

sub buy { my ($id, @users) = @_; return join ' ', map { (http('POST', "/seckill/$id", $_))[0] } @users }
sub eventually { my ($what, $true) = @_; return ok(eval { $t->wait_for($true, 20, $what) }, $what) || die "without it the rest means nothing\n" }

# --- a sale from its preheat to its settle

my $id = $c->activity(start => 3600, end => 7200, stock_limit => 8, max_quantity => 2, products_stock => 100);
ctl_is(0, 'preheat', $id);
is((http('POST', "/seckill/$id", 1))[0], 40001, 'nobody buys before the start');
$dbh->do('UPDATE seckill_activities SET max_quantity = 3 WHERE id = ?', undef, $id);
ctl_is(0, 'preheat', $id);
$dbh->do('UPDATE seckill_activities SET start_time = UTC_TIMESTAMP() - INTERVAL 60 SECOND WHERE id = ?', undef, $id);
ctl_is(0, 'preheat', $id, '--late');
up();
ctl_is(0, 'limit', $id, '50r/s', 'burst=50');
ctl_is(0, 'limit', '--all', '60r/s', 'burst=50');
ctl_is(0, 'limit', $_, 'default') for $id, '--all';
ctl_is(0, $_, $id), ctl_is(0, $_, '--all') for qw(close open);
eventually('the sale runs', sub { (http('GET', "/seckill/$id", 1))[1] =~ /"running"/ });
is(buy($id, 1 .. 4), '0 0 0 0', 'four buy, with a limit that all nodes share');
is(buy($id, 1), 40004, '... once each');
eventually('their results', sub { (http('GET', "/seckill/result/$id?wait=5", 4))[0] == 1 });
like((http('GET', "/seckill/result/$id", 3, Accept => 'text/event-stream'))[1], qr/event: result/, 'a stream of events');
$redis->set('seckill:session:' . sha256_hex('a-session-of-user-5'), 5);
is((http('POST', "/s/$id", 'a-session-of-user-5'))[0], 0, 'one buys with a session');
$t->wait_for(sub { !$redis->scard("seckill:lookup:{$id}") && $redis->exists("seckill:result:5:{$id}") }, 20, 'its result');
$redis->del("seckill:result:2:{$id}");
eventually('a lost result is found again', sub { (http('GET', "/seckill/result/$id", 2))[0] == 1 && $redis->exists("seckill:result:2:{$id}") });
is(buy($id, 6 .. 9), '0 0 0 40005', 'sold out');
eventually('known buyers hear so', sub { buy($id, 1) == 40004 && buy($id, 99) == 40005 });
ctl_is(0, 'restock', $id, 2);
eventually('two more', sub { buy($id, 10) eq '0' });
ctl_is(0, $_, $id) for qw(status queue reconcile);
ctl_is(0, 'status');
ctl_is(0, 'order', 'show', '--user', 1, '--activity', $id);
ctl_is(0, 'trace', $dbh->selectrow_array('SELECT order_no FROM seckill_orders WHERE activity_id = ? AND user_id = 1', undef, $id));
ctl_is(0, 'trace', $dbh->selectrow_array('SELECT request_id FROM seckill_orders WHERE activity_id = ? AND user_id = 1', undef, $id), '--activity', $id);
my ($doctor_exit, $doctor) = $c->ctl_json('doctor', $id, '--nginx-user', 'nginx', '--seckilld-user', 'seckilld');
my %level;
for my $check (@{ $doctor->{checks} }) { push @{ $level{ $check->{check} } }, $check->{level} }
is_deeply($level{eviction}, ['ok'], 'doctor knows the policy without CONFIG');
is_deeply($level{appendfsync}, ['warning'], '... and says that it does not know appendfsync');
is_deeply($level{"$_ rights"}, [$old ? 'warning' : 'ok'], "... and the rights of $_") for qw(nginx seckilld);
is_deeply(denied(), [], 'nothing was denied to anybody');

# --- dead letters, lost purchases, a lost sale

my $two = $c->activity(start => -60, end => 3600, stock_limit => 50, max_quantity => 1, by_registration => 1, products_stock => 100);
$redis->sadd("seckill:eligible:{$two}", 1 .. 30);
ctl_is(0, 'preheat', $two, '--late');
$dbh->do("ALTER TABLE seckill_orders ADD CONSTRAINT ck_two CHECK (activity_id <> $two OR user_id > 3)");
is(buy($two, 1 .. 6, 31), '0 0 0 0 0 0 40007', 'six of the registered ones buy');
eventually('three dead letters', sub { $redis->xlen("seckill:dead:{$two}") == 3 });
ctl_is(0, 'dead', 'list', $two);
my ($one, $other, $third) = map { $_->[0] } @{ $redis->xrange("seckill:dead:{$two}", '-', '+') };
ctl_is(0, 'dead', 'show', $two, $one);
$dbh->do('ALTER TABLE seckill_orders DROP CONSTRAINT ck_two');
ctl_is(0, 'dead', 'retry', $two, $one);
eventually('one retried', sub { $dbh->selectrow_array('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ?', undef, $two) == 4 });
ctl_is(0, 'dead', 'drop', $two, $other, '--keep-units', '--yes');
ctl_is(0, 'reconcile', $two, '--grace', '0s', '--repair', 'release', '--yes');

# a consumer that is gone: others take over what it had
down();
is(buy($two, 7, 8), '0 0', 'two more');
$redis->xreadgroup('GROUP', 'seckilld', 'gone-1', 'COUNT', 9, 'STREAMS', "seckill:orders:{$two}", '>');
up();
eventually('taken over', sub { $dbh->selectrow_array('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ?', undef, $two) == 6 });
is_deeply(denied(), [], 'nothing was denied up to here');

# Redis loses all but its users
down();
$redis->flushall;
up();
$c->ctl('restore', $_, '--yes') for $id, $two;
$redis->sadd("seckill:eligible:{$two}", 1 .. 30);
ctl_is(0, 'restore', $_, '--yes') for grep { !$redis->exists("seckill:stock:{$_}") || ($redis->hget("seckill:activity:{$_}", 'state') // '') ne 'open' } $id, $two;
eventually("the sale $two goes on", sub { buy($two, 20) eq '0' });
$c->ctl('open', $id);
ctl_is(0, 'reconcile', $id);

# seq behind what MySQL has seen: paused by the daemon
eventually('its order', sub { $dbh->selectrow_array('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ? AND user_id = 20', undef, $two) });
$redis->hset("seckill:activity:{$two}", seq => 0);
eventually('a loss is paused', sub { $redis->hget("seckill:activity:{$two}", 'state') eq 'paused' });
ctl_is(0, 'restore', $two, '--yes');

# --- unpaid orders, settles, the end of the keys

down();
$daemon_conf = $conf->('seckilld', %daemon, 'consumer.pay_timeout' => '1s', 'consumer.cancelled_units' => 'activity');
up();
$dbh->do('UPDATE seckill_orders SET status = 2 WHERE activity_id = ? AND user_id > 1', undef, $_) for $id, $two;
eventually('an unpaid order is cancelled', sub { ($dbh->selectrow_array('SELECT COUNT(*) FROM seckill_orders WHERE status = 3'))[0] >= 1 });
down();
my $past = 'UTC_TIMESTAMP() - INTERVAL 10 SECOND';
$dbh->do("UPDATE seckill_activities SET end_time = $past WHERE id = ?", undef, $_) for $id, $two;
$redis->hset("seckill:activity:{$_}", end_ms => int(time * 1000) - 10_000) for $id, $two;
$daemon_conf = $conf->('seckilld', %daemon);
up();
eventually("sale $_ is settled", sub { $redis->hget("seckill:activity:{$_}", 'state') eq 'settled' }) for $id;
$c->ctl('settle', $two, '--yes');
$c->ctl('settle', $two);
eventually('the second too', sub { ($redis->hget("seckill:activity:{$two}", 'state') // '') eq 'settled' });
down();
is_deeply(denied(), [], 'nothing was denied to the end');
unlike($t->log_text($node) . $t->log_text($daemon), qr/NOPERM/, '... nor do the logs know of it');

# --- and what each must not do

$redis->set('other:key', 1);
$redis->xadd('seckill:orders:{7}', '*', v => 1);
sub no_way {
    my ($user, @command) = @_;
    my ($name, @args) = @command;
    my $said = eval { $as{$user}->$name(@args); 'it may' } // $@;
    return like($said, qr/NOPERM/, "$user may not @command");
}
for my $user (sort keys %as) {
    no_way($user, @{$_}) for [qw(flushall)], [qw(keys *)], [qw(scan 0)], [qw(config_get requirepass)], [qw(get other:key)], [qw(acl LIST)],
        [qw(randomkey)], [qw(eval), 'return 1', 0], [qw(publish other 1)], [qw(bgsave)], [qw(rename seckill:orders:{7} seckill:x)];
}
no_way('nginx', @{$_}) for [qw(del seckill:orders:{7})], [qw(unlink seckill:orders:{7})], [qw(pexpire seckill:orders:{7} 1)],
    [qw(xdel seckill:orders:{7} 1-1)], [qw(info)];
is($as{nginx}->set('seckill:limit:1:{7}', 1, 'PX', 1000), 'OK', 'nginx may write a limit');
SKIP: {
    skip 'Redis 6.2 can\'t tell the keys of SET from those of others', 3 if $old;
    no_way('nginx', qw(set seckill:orders:{7} x));
    no_way('nginx', qw(srem seckill:activities 7));
    is($redis->xlen('seckill:orders:{7}'), 1, '... and the stream is whole');
}

done_testing;
