# doctor: the checklist before a sale, and each line of it made to speak once.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;
use Time::HiRes qw(sleep);

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
    'mysql.password_file' => $password, 'http.listen' => "127.0.0.1:$port");
$c->{conf} = $t->conf(%conf);
my ($redis_password) = glob $t->dir . '/redis-*.password';
chmod 0640, $password, $redis_password;

my $id = $c->activity;
is(($c->ctl('preheat', $id))[0], 0, 'a sale is preheated');
my $daemon = $t->seckilld($c->{conf});

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
            'append only file', 'appendfsync', 'role', 'control', 'flush', 'binlog', 'unique key',
            'rights', 'window', 'state', 'facts', 'stock', 'expiry', 'group', 'consumers';
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
broken('unique key', 'wrong', $sql->("ALTER TABLE $_->[0] DROP KEY $_->[1]"),
    $sql->("ALTER TABLE $_->[0] ADD UNIQUE KEY $_->[1] ($_->[2])"))
    for [ 'seckill_orders', 'uk_order_no', 'order_no' ],
        [ 'seckill_orders', 'uk_user_activity', 'user_id, activity_id' ],
        [ 'seckill_orders', 'uk_purchase', 'activity_id, epoch, seq' ],
        [ 'seckill_records', 'uk_user_activity', 'user_id, activity_id' ];

# clocks: sessions of this user are ten seconds ahead
broken('clock', 'wrong', $sql->("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 10'"),
    $sql->("SET GLOBAL init_connect = ''"));
broken('window', 'wrong',
    sub { $dbh->do("SET GLOBAL init_connect = 'SET timestamp = UNIX_TIMESTAMP() + 3700'") },
    $sql->("SET GLOBAL init_connect = ''"));

broken('window', 'warning',
    sub { $dbh->do("UPDATE seckill_activities SET start_time = UTC_TIMESTAMP() - INTERVAL 9 SECOND");
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
    $dbh->do('UPDATE seckill_activities SET start_time = FROM_UNIXTIME(?)', undef,
        $facts{start_ms} / 1000);
    $fact->(start_ms => $facts{start_ms})->();
}
broken('window', 'wrong', $fact->(start_ms => 1000, end_ms => 2000),
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

# the daemon: gone, then silent for long, then its group too
is((look($id))[0], 0, 'all is mended');
$t->stop($daemon);
broken('seckilld', 'wrong', sub { }, sub { });
sleep 5.5;
broken('consumers', 'wrong', sub { }, sub { });
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
