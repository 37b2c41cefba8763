# docs/quickstart.md and docs/runbook.md, typed on private servers: the sale of
# the quick start with its own SQL and configuration, and the commands of the
# runbook that such a sale can take.  seckill-due.sh is tried on the way.

use strict;
use warnings;

use FindBin ();
use lib "$FindBin::Bin/../lib";

use SeckillTest;
use Test::More;

my $root = "$FindBin::Bin/../..";

sub slurp_path {
    my ($path) = @_;

    open my $in, '<', $path or die "$path: $!";
    local $/;

    return scalar <$in>;
}

sub slurp { my ($name) = @_; return slurp_path("$root/$name") }

my $guide = slurp('docs/quickstart.md');
my ($nginx) = $guide =~ /^```nginx\n(.*?)^```$/ms;
my ($sql) = $guide =~ /^```sql\n(.*?)^```$/ms;
ok($nginx && $sql, 'the guide has both blocks');

my $t = SeckillTest->new;
my $redis = $t->redis('maxmemory-policy' => 'noeviction', appendonly => 'yes');
my $mysql = $t->mariadb;

# the guide's user with the guide's rights, and the password in a file
for my $statement ($guide =~ /mariadb -e "((?:CREATE USER|GRANT) [^"]*)"/g) {
    $statement =~ s/'\.\.\.'/'a password'/;
    $mysql->{dbh}->do($statement);
}

my $password = $t->dir . '/mysql.password';
open my $secret, '>', $password or die "$password: $!";
print $secret "a password\n";
close $secret;
chmod 0640, $password;

my $conf = $t->conf(redis => $redis, mysql => $mysql, 'mysql.user' => 'seckill',
    'mysql.password_file' => $password);

sub ctl {
    my ($want, @args) = @_;
    my ($exit, $out, $err) = $t->ctl($conf, @args);

    is($exit, $want, "seckillctl @args") or diag("$out$err");

    return $out;
}

ctl(0, 'schema', 'apply', '--dir', "$root/sql");
ctl(0, 'schema', 'status', '--dir', "$root/sql");
$t->seckilld($conf);

# a minute is long for a test: the sale begins in seconds
$sql =~ s/INTERVAL 1 MINUTE/INTERVAL 10 SECOND/;
$mysql->{dbh}->do($_) for grep { /\S/ } split /;\n/, $sql;

my $key = $t->dir . '/jwt.key';
open my $file, '>', $key or die "$key: $!";
print $file 'the secret of the login service', "\n";
close $file;

# what tools/grafana/seckill-due.sh says of the activity
sub due {
    local $ENV{SECKILL_CONF} = $conf;
    local $ENV{SECKILLCTL} = ($ENV{SECKILL_BUILD} // "$root/build") . '/seckillctl';
    local $ENV{SECKILL_MYSQL} = "mariadb --no-defaults -uroot -S $mysql->{sock} seckill";

    return scalar qx($root/tools/grafana/seckill-due.sh);
}

like(due(), qr/^seckill_due_not_preheated\{activity="1"\} 1$/m, 'due, and not preheated');

ctl(0, 'preheat', '1', '--dry-run');
ctl(0, 'preheat', '1');
like(due(), qr/^seckill_due_not_preheated\{activity="1"\} 0$/m, 'due, and preheated');
like(ctl(0, 'status', '1'), qr/not_started/, 'not started');

# the guide's configuration, on a port and with a key of ours
$nginx =~ s{/etc/seckill/jwt\.key}{$key};
$nginx =~ s{seckill_redis\s.*?;}{seckill_redis unix:$redis->{sock};};
my $journal = $t->dir . '/seckill-accepted.journal';
$nginx =~ s{/var/log/nginx/seckill-accepted\.journal}{$journal};
my ($http, $location, $status) = $nginx =~ /\A(.*?)^server \{\n\s+listen[^\n]*\n(.*?)^\}\s*^server \{\n\s+listen[^\n]*\n(.*?)^\}\s*\z/ms
    or die 'the guide does not have two servers';
my $status_port = $t->port;
$http .= "server {\n    listen 127.0.0.1:$status_port;\n$status}\n";
my $server = $t->nginx(http => $http, location => $location);
my $base = "http://127.0.0.1:$server->{port}/api/seckill";

like(scalar qx(curl -s $base/1), qr/"state":"not_started"/, 'facts before the start');
$t->wait_for(sub { qx(curl -s $base/1) =~ /"state":"running"/ }, 40, 'the start');

my $token = ctl(0, 'token', '42', '--key-file', $key);
chomp $token;
my $auth = "-H 'Authorization: Bearer $token'";

my $page = "http://127.0.0.1:$status_port/status";
like(ctl(0, 'doctor', '1', '--status', $page), qr/^\d+ ok, \d+ warnings, 0 wrong$/m, 'nothing is wrong');
like(scalar qx(curl -s -X POST $auth $base/1), qr/"code":0,"message":"排队中"/, 'bought');
$t->wait_for(sub { qx(curl -s $auth $base/result/1) =~ /"code":1,/ }, 20, 'the order');

like(scalar qx(curl -s http://127.0.0.1:$status_port/status),
    qr/^seckill_requests_total\{activity="1",verdict="accepted"\} 1$/m, 'the status counts it');

SKIP: {
    skip 'promtool is not installed', 1 if system('command -v promtool >/dev/null') != 0;

    my $said = qx(curl -s http://127.0.0.1:$status_port/status | promtool check metrics 2>&1);
    is($? >> 8, 0, 'promtool likes the metrics') or diag($said);
}

# the runbook
ctl(0, 'queue', '1');
ctl(0, 'dead', 'list', '1');
ctl(0, 'order', 'show', '--user', '42', '--activity', '1');
ctl(0, 'restock', '1', '50', '--ref', 'evening');
ctl(0, 'verify', '1', '--url', $base, '--users', '200', '--requests', '400', '--concurrency', '20',
    '--first-user', '1000', '--key-file', $key);
ctl(4, 'preheat', '1');
ctl(4, 'settle', '1', '--yes');
ctl(0, 'close', '1');
$t->wait_for(sub { qx(curl -s $base/1) =~ /"state":"closed"/ }, 5, 'the switch');
like(scalar qx(curl -s -X POST $auth $base/1), qr/"code":50303/, 'closed');
ctl(0, 'open', '1');
$t->wait_for(sub { qx(curl -s $base/1) =~ /"state":"running"/ }, 5, 'open again');
ctl(0, 'reconcile', '1');
ctl(0, 'reconcile', '1', '--journal', $journal);
my ($request) = slurp_path($journal) =~ /^1 accepted seckill \S+ \d+ 1 1 \d+ 42 1 \d{32} (\S+) /m or fail('the journal has the purchase');
like(ctl(0, 'trace', $request, '--activity', '1'), qr/^  order +id \d+: activity 1, user 42,/m, 'its way');
like(ctl(0, 'doctor', '1', '--status', $page, '--users', '10000'), qr/ 0 wrong$/m, 'doctor while it runs');

done_testing();
