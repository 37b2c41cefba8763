# A27: the daemon does all its work with the rights that README grants, and no more: no
# other right in Redis; SELECT, INSERT and UPDATE in MySQL.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(time);

my $c = ConsumerTest->new;
my $redis = $c->redis;

my $readme = do {
    open my $fh, '<', $c->t->root . '/README.md' or die $!;
    local $/ = undef;
    <$fh>;
};
my ($rights) = $readme =~ /ACL SETUSER seckilld reset on >\.\.\. (.*?)\n\n/s or die 'README grants nothing';
$redis->acl('SETUSER', 'seckilld', 'on', '>secret-word', split ' ', $rights);
$redis->acl('LOG', 'RESET');

$c->dbh->do("CREATE USER seckilld\@localhost IDENTIFIED BY 'other-word'");
$c->dbh->do('GRANT SELECT, INSERT, UPDATE ON seckill.* TO seckilld@localhost');

$c->{conf} = $c->conf(
    'redis.user' => 'seckilld', 'redis.password_file' => $c->t->file('r.password', "secret-word\n", oct 600),
    'mysql.user' => 'seckilld', 'mysql.password_file' => $c->t->file('m.password', "other-word\n", oct 600),
    'http.listen' => '127.0.0.1:' . $c->t->port, 'consumer.claim_idle' => '300ms', 'consumer.retain' => '0s',
    'consumer.pay_timeout' => '1s', 'consumer.cancelled_units' => 'activity', 'consumer.settle_after' => '1s');

# every duty once: group, orders, dead letter, claim, look-up, cancel, loss, settle
$c->sale($_, units => 100) for 1 .. 3;
$c->buy($_, 1 .. 10) for 1 .. 3;
$c->start;
$c->wait_settled($_) for 1 .. 3;
$c->all_bought(1, [1 .. 10], 'orders');
$c->add(1, $c->message(1, 99, v => 9));
$c->wait_settled(1);
is(scalar @{ $c->dead(1) }, 1, 'a dead letter');
$c->buy(2, 20);
$redis->xreadgroup('GROUP', 'seckilld', 'gone-1', 'COUNT', 9, 'STREAMS', $c->key(orders => 2), '>');
$c->wait_settled(2);
$redis->del('seckill:result:5:{2}');
$redis->sadd($c->key(lookup => 2), 5);
$c->t->wait_for(sub { $c->result(2, 5) }, 5, 'the answer');
pass('a lost result');
$c->t->wait_for(sub { ($redis->hget($c->key(activity => 2), 'released') // 0) >= 10 }, 10, 'the cancel');
pass('unpaid orders');
$redis->hset($c->key(activity => 3), seq => 1);
$c->t->wait_for(sub { $redis->hget($c->key(activity => 3), 'state') eq 'paused' }, 5, 'the pause');
pass('a loss');
$redis->hset($c->key(activity => 2), end_ms => int(time * 1000));
$c->t->wait_for(sub { $redis->ttl($c->key(activity => 2)) > 0 }, 10, 'the settle');
pass('a settle');
$redis->del($c->key(activity => 2));
$c->t->wait_for(sub { !$redis->sismember('seckill:activities', 2) }, 10, 'the registry');
pass('and its end');

is_deeply([map { my %l = @{$_}; "$l{reason} $l{object}" } @{ $redis->acl('LOG') }], [], 'nothing was denied');
my $log = $c->t->log_text($c->{daemon});
unlike($log, qr/NOPERM|denied/, 'the log knows of nothing either');
unlike($log, qr/secret-word|other-word/, 'nor does it know a password');

ok($c->stop, 'the daemon stops well');

# F7: the socket of Redis belongs to a group, as where it is installed
SKIP: {
    skip 'needs root', 4 if $> != 0;
    skip 'the files of the sanitizers may be closed to others', 4 if $c->t->sanitized;

    my ($sock, $gid) = ($c->{redis}{sock}, 54_321);
    my $place = $c->t->dir . '/place';
    mkdir $place or die $!;
    chmod 0755, $c->t->dir, $place, $sock =~ s{/[^/]+\z}{}r or die $!;
    chown 0, $gid, $sock or die $!;
    chmod 0770, $sock or die $!;
    system('cp', $c->t->build . '/seckilld', "$place/seckilld") == 0 or die 'cp';
    my $file = $c->t->conf(redis => $c->{redis}, mysql => $c->{mysql}, 'consumer.workers' => 1);
    chmod 0644, $file or die $!;

    # what it says in two seconds
    my $as = sub {
        my (@groups) = @_;
        my ($exit, undef, $err) = $c->t->run('timeout', 2, 'setpriv', '--reuid=65534', '--regid=65534', @groups,
            "$place/seckilld", '-c', $file);
        return $err;
    };
    my $said = $as->('--clear-groups');
    like($said, qr/server=redis .*error="connect: user nobody may not use \Q$sock\E: Permission denied"/,
        'without the group the log says who lacks what');
    my $lines = () = $said =~ /level=error/g;
    is($lines, 1, '... once');
    $said = $as->("--groups=$gid");
    like($said, qr/server is connected.*server=redis/, 'with the group it is let in');
    unlike($said, qr/server=redis .*denied/, '... without a complaint');
}

done_testing;
