# doctor: the checklist before a sale, and each line of it made to speak once.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $c     = CtlTest->new;
my $t     = $c->t;
my $redis = $c->redis;
my $dbh   = $c->dbh;
my $port  = $t->port;

# everything as it should be
$redis->config_set('appendonly', 'yes');
$redis->config_set('requirepass', 'sesame');
$redis->auth('sesame');
$c->{redis}{password} = 'sesame';
$dbh->do('SET GLOBAL innodb_flush_log_at_trx_commit = 1');
$dbh->do("CREATE USER shop\@localhost IDENTIFIED BY 'geheim7'");
$dbh->do('GRANT ALL ON seckill.* TO shop@localhost');
my $password = $t->file('mysql.password', "geheim7\n");
my %conf = (
    redis => $c->{redis}, mysql => $c->{mysql}, 'mysql.user' => 'shop',
    'mysql.password_file' => $password, 'http.listen' => "127.0.0.1:$port",
    'consumer.settle_after' => '1h');   # a sale that is over for a moment stays
$c->{conf} = $t->conf(%conf);
my ($redis_password) = glob $t->dir . '/redis-*.password';
chmod 0640, $password, $redis_password;

my $id = $c->activity;
is(($c->ctl('preheat', $id))[0], 0, 'a sale is preheated');
my $daemon = $t->seckilld($c->{conf});

sub ask {
    my ($url) = @_;
    return ($t->run('curl', '-s', '-o', '/dev/null', $url))[0] == 0;
}

# (exit, { check => the worst level }, the lines)
sub look {
    my (@args) = @_;
    my ($exit, $json, $err) = $c->ctl_json('doctor', @args);
    my (%level, %rank);
    @rank{qw(ok warning wrong)} = 0 .. 2;
    for my $line (@{ $json->{checks} }) {
        my $was = $level{ $line->{check} } // 'ok';
        $level{ $line->{check} } = $rank{ $line->{level} } > $rank{$was} ? $line->{level} : $was;
        fail("$line->{check} is $line->{level} and says what to do, or not")
            if ($line->{level} eq 'ok') == (length($line->{do} // '') > 0);
    }
    return ($exit, \%level, $json, $err);
}

$t->wait_for(sub { ($c->ctl('doctor', $id))[0] == 0 }, 15, 'seckilld to be up');
{
    my $before = $c->everything;
    my ($exit, $out, $err) = $c->ctl('doctor', $id);
    is($exit, 0, 'all is well') or diag($out, $err);
    like($out, qr/^  ok +$_\b/m, "... $_ is looked at")
        for 'Redis password', 'MySQL password', 'seckilld', 'clock', 'eviction',
            'append only file', 'appendfsync', 'role', 'control', 'flush', 'binlog', 'schema', 'defaults',
            'rights', 'connections', 'seckilld files', 'seckilld clock', 'seckilld rights', 'rate',
            'window', 'state', 'facts', 'terms', 'stock', 'expiry', 'group', 'consumers';
    like($out, qr/^  warning +status page\b/m, '... nodes are, if they are told');
    like($out, qr/^  (?:ok|warning) +open files\b/m, '... and the files of this host');
    like($out, qr/^\d+ ok, \d+ warnings, 0 wrong$/m, '... with the sum');
    unlike($out . $err, qr/sesame|geheim7/, '... and without a password');
    is($c->everything, $before, '... nothing was changed');
    is(($c->ctl('doctor'))[0], 0, '... nor is anything wrong with all sales');
}

# One thing broken, found under its name at this level, mended, fine again.
sub broken {
    my ($check, $level, $break, $mend, @args) = @_;
    $break->();
    my ($exit, $found, $json, $err) = look(@args ? @args : $id);
    is($found->{$check}, $level, "$check: $level") or diag(explain($json), $err);
    is($exit, $level eq 'wrong' ? 1 : 0, '... and the exit says so') or diag(explain($json));
    $mend->();
    return;
}

my $key = sub { "seckill:$_[0]:{$id}" };
my $sql = sub { my ($do) = @_; return sub { $dbh->do($do) } };
my $set = sub { my @set = @_; return sub { $redis->config_set(@set) } };
my $fact = sub { my @fact = @_; return sub { $redis->hset($key->('activity'), @fact) } };
my %facts = %{ $c->facts($id) };

# B10
broken('eviction', 'wrong', $set->('maxmemory-policy', 'allkeys-lru'),
    $set->('maxmemory-policy', 'noeviction'));
broken('append only file', 'wrong', $set->('appendonly', 'no'), $set->('appendonly', 'yes'));
broken('appendfsync', 'wrong', $set->('appendfsync', 'no'), $set->('appendfsync', 'everysec'));
broken('control', 'warning', sub { $redis->hset('seckill:control', state => 'closed') },
    sub { $redis->hdel('seckill:control', 'state') });
broken('control', 'wrong', sub { $redis->expire('seckill:control', 999) },
    sub { $redis->persist('seckill:control') });
broken('control', 'wrong', sub { $redis->rename('seckill:control', 'kept') },
    sub { $redis->rename('kept', 'seckill:control') });

broken('flush', 'wrong', $sql->('SET GLOBAL innodb_flush_log_at_trx_commit = 2'),
    $sql->('SET GLOBAL innodb_flush_log_at_trx_commit = 1'));
broken('writable', 'wrong', $sql->('SET GLOBAL read_only = 1'), $sql->('SET GLOBAL read_only = 0'));
broken('schema', 'wrong', $sql->("ALTER TABLE $_->[0] DROP KEY $_->[1]"),
    $sql->("ALTER TABLE $_->[0] ADD UNIQUE KEY $_->[1] ($_->[2])"))
    for [ 'seckill_orders', 'uk_order_no', 'order_no' ],
        [ 'seckill_orders', 'uk_user_activity', 'user_id, activity_id' ],
        [ 'seckill_orders', 'uk_purchase', 'activity_id, epoch, seq' ],
        [ 'seckill_records', 'uk_user_activity', 'user_id, activity_id' ];

# F-C1: the CHECK against units that were never reserved
broken('units', 'wrong', $sql->('ALTER TABLE seckill_activities DROP CONSTRAINT ck_units'),
    $sql->('ALTER TABLE seckill_activities ADD CONSTRAINT ck_units '
        . 'CHECK (sold + returned <= GREATEST(reserved, stock_limit))'));

# clocks: sessions of this user are ten seconds ahead
broken('clock', 'wrong', $sql->("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 10'"),
    $sql->("SET GLOBAL init_connect = ''"));
broken('window', 'wrong',
    sub { $dbh->do("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 3700'") },
    $sql->("SET GLOBAL init_connect = ''"));

broken('window', 'warning',
    sub { $dbh->do("UPDATE seckill_activities SET start_time = UTC_TIMESTAMP() - INTERVAL 9 SECOND");
          $dbh->do('UPDATE seckill_terms SET start_time = (SELECT start_time FROM seckill_activities)');
          $fact->(start_ms => 1000 * $c->column(
            'SELECT UNIX_TIMESTAMP(CONVERT_TZ(start_time, "+00:00", @@session.time_zone)) '
          . 'FROM seckill_activities'))->() },
    sub { });
{
    my ($exit, $found) = look($id);
    is($found->{facts}, 'ok', 'times are compared as UTC');
    $dbh->do('UPDATE seckill_activities SET start_time = FROM_UNIXTIME(?)', undef,
        $facts{start_ms} / 1000);
    $dbh->do('SET time_zone = "+00:00"');
    $dbh->do("UPDATE $_ SET start_time = FROM_UNIXTIME(?)", undef, $facts{start_ms} / 1000)
        for qw(seckill_activities seckill_terms);
    $fact->(start_ms => $facts{start_ms})->();
}
broken('window', 'wrong', $fact->(start_ms => int(1000 * time) - 2000, end_ms => int(1000 * time) - 1000),
    $fact->(map { $_ => $facts{$_} } qw(start_ms end_ms)));
broken('state', 'warning', sub { $c->ctl('close', $id) }, sub { $c->ctl('open', $id) });
broken('state', 'wrong', $fact->(state => 'paused'), $fact->(state => 'open'));
broken('facts', 'wrong', $fact->(price => '0.99'), $fact->(price => '9.90'));
broken('stock', 'wrong', sub { $redis->set($key->('stock'), 101) },
    sub { $redis->set($key->('stock'), 100) });
broken('expiry', 'wrong', sub { $redis->expire($key->('stock'), 999) },
    sub { $redis->persist($key->('stock')) });
broken('expiry', 'wrong', sub { $redis->expire($key->('orders'), 999) },
    sub { $redis->persist($key->('orders')) });
broken('registered', 'wrong',
    sub { $dbh->do('UPDATE seckill_activities SET by_registration = 1'); $fact->(eligible => 1)->() },
    sub { $dbh->do('UPDATE seckill_activities SET by_registration = 0'); $fact->(eligible => 0)->() });
broken('Redis password', 'wrong', sub { chmod 0644, $redis_password },
    sub { chmod 0640, $redis_password });
broken('MySQL password', 'wrong', sub { chmod 0646, $password }, sub { chmod 0640, $password });
broken('facts', 'wrong', sub { }, sub { }, 999);

# rights: no INSERT into orders
$dbh->do('CREATE USER reader@localhost');
$dbh->do('GRANT SELECT, UPDATE ON seckill.* TO reader@localhost');
{
    my $whole = $c->{conf};
    broken('rights', 'wrong', sub { $c->{conf} = $t->conf(%conf, 'mysql.user' => 'reader',
            'mysql.password_file' => undef) }, sub { $c->{conf} = $whole });
    broken('MySQL password', 'warning', sub { $c->{conf} = $t->conf(%conf, 'mysql.user' => 'root',
            'mysql.password_file' => undef) }, sub { $c->{conf} = $whole });
}

{
    my ($exit, $out) = $t->run('sh', '-c', 'ulimit -n 256; exec "$@"', 'sh',
        $t->build . '/seckillctl', '-c', $c->{conf}, 'doctor', $id);
    is($exit, 1, 'few open files: exit 1');
    like($out, qr/^  wrong +open files +ulimit -n is 256\b/m, '... and why');
}

# nodes: a page that is private, one that is public, one that is not there
my $key_file = $t->key_file('jwt.key');
my %node = (redis => { sock => $c->{redis}{sock} . ' password_file=' . $redis_password }, key_file => $key_file,
    journal => $t->dir . '/node.journal');
my $page = 'location /seckill/ { seckill on; } location = /status { seckill_status%s; %s }';
{
    my $node = $t->nginx(%node, location => sprintf $page, '', '');
    my $url  = "http://127.0.0.1:$node->{port}/status";
    my ($exit, $found, $json) = look($id, '--status', $url, '--users', 1000, '--users', 4000);
    is($exit, 0, 'a node is looked at') or diag(explain($json));
    is($found->{$_}, 'ok', "... its $_") for 'zone', 'nginx limits', 'clock', 'journal';
    my @room = map { $_->{found} } grep { $_->{check} eq 'zone' } @{ $json->{checks} };
    like($room[0], qr/^8192 KiB, \d+ KiB of them free; 4000 users want 625 KiB$/, '... with figures');
    like($room[1], qr/^6 KiB at least, .* 100 buyers .* 8192 KiB$/, '... and for the sale');

    broken('zone', 'warning', sub { }, sub { }, $id, '--status', $url, '--users', 100_000);
    broken('zone', 'warning', sub { $dbh->do('UPDATE seckill_activities SET stock_limit = 200000');
            $fact->(stock_limit => 200_000)->(); $redis->set($key->('stock'), 200_000) },
        sub { $dbh->do('UPDATE seckill_activities SET stock_limit = 100');
            $fact->(stock_limit => 100)->(); $redis->set($key->('stock'), 100) },
        $id, '--status', $url);
    broken('nginx limits', 'warning', sub { }, sub { }, $id, '--status', $url, '--users', 100_000)
        if ask("http://127.0.0.1:$node->{port}/seckill/$id");
    my $json_node = $t->nginx(%node, location => sprintf $page, ' json', '');
    (undef, $found) = look($id, '--status', "http://127.0.0.1:$json_node->{port}/status");
    is($found->{$_}, 'ok', "$_ of JSON") for 'zone', 'nginx limits', 'journal';
    my $without = $t->nginx(%node, journal => 'off', location => sprintf $page, '', '');
    broken('journal', 'wrong', sub { }, sub { }, $id, '--status', "http://127.0.0.1:$without->{port}/status");
    $t->stop($without);
    $t->stop($node);
    broken('status page', 'wrong', sub { }, sub { }, $id, '--status', $url);
    broken('status page', 'wrong', sub { }, sub { }, $id, '--status',
        "http://127.0.0.1:$json_node->{port}/elsewhere");
    broken('zone', 'warning', sub { }, sub { }, $id, '--status',
        "http://127.0.0.1:$port/healthz");
}
{
    my $few = $t->nginx(%node, main => 'worker_rlimit_nofile 256;', location => sprintf $page, '', '');
    broken('nginx limits', 'wrong', sub { }, sub { }, $id, '--status', "http://127.0.0.1:$few->{port}/status");
    $t->allow_log(qr/exceed open file resource limit/);
}
SKIP: {
    my ($outside) = grep { !/^127\./ } (qx(hostname -I) // '') =~ /([\d.]+)/g;
    skip 'this host has no address but loopback', 4 if !$outside;
    my $listen = sub { my ($port) = @_; return "listen 0.0.0.0:$port;" };
    for my $case ([ 'allow 127.0.0.1; deny all;', 'ok' ], [ '', 'warning' ]) {
        my $any  = $t->port;
        my $node = $t->nginx(%node, location => 'location / { return 204; }', http =>
            "server { listen 0.0.0.0:$any; " . sprintf($page, '', $case->[0]) . ' }');
        my ($exit, $found, $json) = look($id, '--status', "http://127.0.0.1:$any/status");
        is($found->{'status page'}, $case->[1], "a status page with \"$case->[0]\": $case->[1]")
            or diag(explain($json));
        is($exit, 0, '... which is no more than a warning');
        $t->stop($node);
    }
}

# connections: of both servers
broken('connections', 'wrong', sub {
        my ($used) = $redis->info->{connected_clients};
        $redis->config_set('maxclients', $used + 1) }, $set->('maxclients', 10000));
broken('connections', 'warning', sub {
        my (undef, $used) = $dbh->selectrow_array("SHOW GLOBAL STATUS LIKE 'Threads_connected'");
        $c->{more} = [ map { $t->dbh($c->{mysql}) } $used .. 10 ];
        $dbh->do('SET GLOBAL max_connections = 14') },
    sub { delete $c->{more}; $dbh->do('SET GLOBAL max_connections = 100') });

# rights in Redis: what README grants is enough, less is not, and who may not ask says so
{
    my $readme = do { local (@ARGV, $/) = $t->root . '/README.md'; <> };
    for my $user (qw(nginx seckilld seckillctl)) {
        my ($rights) = $readme =~ /ACL SETUSER $user reset on >\.\.\. (.*?)\n\n/s or die "README grants nothing to $user";
        $redis->acl('SETUSER', $user, 'on', '>word', split ' ', $rights);
    }
    my @both = ($id, '--nginx-user', 'nginx', '--seckilld-user', 'seckilld');
    my ($exit, $found, $json) = look(@both);
    is($found->{$_}, 'ok', "$_ as README grants them") or diag(explain($json)) for 'nginx rights', 'seckilld rights';
    broken('nginx rights', 'wrong', sub { $redis->acl('SETUSER', 'nginx', '-decrby') },
        sub { $redis->acl('SETUSER', 'nginx', '+decrby') }, @both);
    broken('nginx rights', 'wrong', sub { $redis->acl('SETUSER', 'nginx', 'resetchannels') },
        sub { $redis->acl('SETUSER', 'nginx', '&seckill:results:*') }, @both);
    broken('seckilld rights', 'wrong', sub { $redis->acl('SETUSER', 'seckilld', 'resetkeys', '~other:*') },
        sub { $redis->acl('SETUSER', 'seckilld', '~seckill:*') }, @both);
    broken('seckilld rights', 'wrong', sub { $redis->acl('SETUSER', 'seckilld', '-info') },
        sub { $redis->acl('SETUSER', 'seckilld', '+info') }, @both);
    (undef, undef, $json) = look($id, '--nginx-user', 'nobody');
    like((grep { $_->{check} eq 'nginx rights' } @{ $json->{checks} })[0]{found}, qr/nobody.*not found/, 'no such user');

    my $whole = $c->{conf};
    my $word  = $t->file('word', "word\n", oct 640);
    $c->{conf} = $t->conf(%conf, 'redis.user' => 'seckillctl', 'redis.password_file' => $word);
    ($exit, $found, $json) = look(@both);
    is($exit, 0, "the tool's own user is enough for doctor") or diag(explain($json));
    is($found->{$_}, 'ok', "... and tells $_")
        for 'eviction', 'connections', 'group', 'consumers', 'nginx rights', 'seckilld rights';
    is($found->{appendfsync}, 'warning', '... but for what only CONFIG GET tells, and Redis\' passwords with it');
    $c->{conf} = $t->conf(%conf, 'redis.user' => 'seckilld', 'redis.password_file' => $word);
    ($exit, $found, $json) = look($id);
    is($exit, 0, 'a user with less sees less') or diag(explain($json));
    is($found->{$_}, 'warning', "... $_ is not told") for 'group', 'seckilld rights';
    $c->{conf} = $whole;
}

# the rate: too slow for the stock; then by seckilld's own figures
broken('rate', 'warning', sub { $dbh->do('UPDATE seckill_activities SET stock_limit = 4000000000');
        $fact->(stock_limit => 4_000_000_000)->(); $redis->set($key->('stock'), 4_000_000_000) },
    sub { $dbh->do('UPDATE seckill_activities SET stock_limit = 100');
        $fact->(stock_limit => 100)->(); $redis->set($key->('stock'), 100) });
is($c->column('SELECT COUNT(*) FROM seckill_orders') + $c->column('SELECT COUNT(*) FROM seckill_records'), 0,
    '... and nothing of the measuring stays');

# ... once it runs, seckilld's own figures tell
$dbh->do("UPDATE $_ SET start_time = FROM_UNIXTIME(1000000000)") for qw(seckill_activities seckill_terms);
$fact->(start_ms => 1_000_000_000_000)->();
broken('rate', 'warning', sub { }, sub { });
my $admit = do { local (@ARGV, $/) = $t->root . '/lua/admit.lua'; <> };
$redis->eval($admit, 5, (map { $key->($_) } qw(activity stock order_users orders eligible)),
    $id, 100, 0, 0, map { ($_, 1, "r$_", '') } 1 .. 100);
$t->wait_for(sub { $c->column('SELECT COUNT(*) FROM seckill_orders') == 100 }, 10, 'orders');
{
    my ($exit, $found, $json) = look($id);
    my ($rate) = grep { $_->{check} eq 'rate' } @{ $json->{checks} };
    is($rate->{level}, 'ok', 'the rate of a running sale');
    like($rate->{found}, qr{^\d+ orders/s by seckilld's own figures: 100 take \d+\.\d s$}, '... is told');
}

# the daemon: gone, then silent for long, then its group too
sub idle {
    return sort { $a <=> $b } map { my %consumer = @{$_}; $consumer{idle} }
        @{ $redis->xinfo('CONSUMERS', $key->('orders'), 'seckilld') };
}
$t->wait_for(sub { (idle())[-1] > 5200 }, 20, 'a worker with nothing to do');
is((look($id))[0], 0, 'all is mended, and who has nothing to do is not dead');
$t->stop($daemon);
broken('seckilld', 'wrong', sub { }, sub { });
$t->wait_for(sub { (idle())[0] > 5200 }, 20, 'all of them to be silent for long');
broken('consumers', 'wrong', sub { $c->{conf} = $t->conf(%conf, 'consumer.claim_idle' => '100ms') }, sub { });
broken('group', 'wrong', sub { $redis->xgroup('DESTROY', $key->('orders'), 'seckilld') }, sub { });

# a server that does not answer: the other one is looked at
$t->kill9($c->{redis});
{
    my ($exit, $found, $json) = look($id);
    is($exit, 3, 'no Redis: exit 3');
    is($found->{flush}, 'ok', '... MySQL is looked at all the same');
    like($json->{error}{message}, qr/^Redis: /, '... and the error is told');
}

done_testing();
