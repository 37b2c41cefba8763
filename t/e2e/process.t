# nginx' processes: reloads with and without the module's directives (A1), what the
# master keeps (A2), how old workers end (A3), and a test of the configuration (A14).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use NodesTest qw(burst code sale);
use SeckillTest;
use Soak qw(soak);
use Test::More;
use POSIX ();
use Time::HiRes qw(sleep time);

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $key   = $t->file('auth.key', NodesTest::KEY);
my $slow  = $t->sanitized ? 5 : 1;

use constant RELOADS       => soak(16, 200);
use constant PAUSE         => soak(0.1, 0.3);
use constant QUIET_RELOADS => soak(60, 500);
use constant QUIET_FIRST   => soak(20, 50);

sub reload {
    my ($node) = @_;

    my %old = map { $_ => 1 } $t->children($node);
    kill 'HUP', $node->{pid};
    $t->wait_for(sub { grep { !$old{$_} } $t->children($node) }, 20, 'new workers');
    return keys %old;
}

sub gone {
    my ($node, @old) = @_;

    my %now = map { $_ => 1 } $t->children($node);
    return !grep { $now{$_} } @old;
}

sub write_conf {
    my ($node, $text) = @_;

    open my $fh, '>', "$node->{dir}/nginx.conf" or die "nginx.conf: $!\n";
    print {$fh} $text;
    close $fh or die "nginx.conf: $!\n";
    return;
}

# --- directives that go and come back, under load (A1)

my $node = $t->nginx(redis => $redis, key_file => $key, workers => 2, http => 'seckill_limit off;');
sale($t, $redis, 42, stock => 1_000_000);

open my $conf, '<', "$node->{dir}/nginx.conf" or die "nginx.conf: $!\n";
my $with = do { local $/ = undef; <$conf> };
close $conf;
my $without = $with =~ s/^.*\bseckill_[^\n]*\n//mgr =~ s/seckill on;/return 404;/r;
unlike($without, qr/^\s*seckill/m, 'a configuration without the module\'s directives');

my ($master, $user, %seen) = ($node->{pid}, 0);
for my $n (1 .. RELOADS) {
    write_conf($node, $n % 2 ? $without : $with);
    kill 'HUP', $master;
    for (1 .. 4) {
        $seen{ $_->{status} ? code($_) : 'closed' }++
            for burst(20, map { [$node->{port}, ++$user, '/seckill/42'] } 1 .. 60);
    }
    sleep PAUSE;
}
my %known = map { $_ => 1 } 0, 'status 404', 'closed', 50301, 50302;
is_deeply([grep { !$known{$_} } keys %seen], [], 'every answer is a documented one') or diag(explain(\%seen));
cmp_ok($seen{0} // 0, '>', 0, '... among them purchases');
cmp_ok($seen{'status 404'} // 0, '>', 0, '... and those of the other configuration');
ok(kill(0, $master), '... and the master is the same');
$t->wait_for(sub { $t->children($node) == 2 }, 20, 'the last workers');
is($redis->{client}->scard('seckill:order_users:{42}'), $redis->{client}->xlen('seckill:orders:{42}'),
   '... and the books are in order');

# --- what the master holds after many (A2)

# descriptors, shared segments, resident KiB
sub held {
    my ($pid) = @_;

    opendir my $dir, "/proc/$pid/fd" or die "fd: $!\n";
    my $fds = grep {/^\d/} readdir $dir;
    open my $maps, '<', "/proc/$pid/maps" or die "maps: $!\n";
    my $shared = grep {m{^\S+ ..\ds|rw-s}} <$maps>;
    open my $status, '<', "/proc/$pid/status" or die "status: $!\n";
    my ($rss) = join('', <$status>) =~ /VmRSS:\s*(\d+)/;
    return ($fds, $shared, $rss);
}

my (@early, @late);
for my $n (1 .. QUIET_RELOADS) {
    my @old = reload($node);
    $t->wait_for(sub { gone($node, @old) }, 20, 'the old workers') if $n % 10 == 0;
    @early = held($master) if $n == QUIET_FIRST;
}
@late = held($master);
cmp_ok($early[1], '>', 0, 'the zone is a shared segment');
# fewer: the workers of before, which it still had to collect
cmp_ok($late[0], '<=', $early[0], '... the master has no more descriptors after more reloads');
is($late[1], $early[1], '... and as many shared segments');
cmp_ok($late[2] - $early[2], '<', 1024 * $slow, '... and less than 1 MiB more') or diag("KiB @early, @late");

# --- old workers: warm connections, then Redis that does not answer (A3)

my @old = reload($node);
my $began = time;
$t->wait_for(sub { gone($node, @old) }, 20, 'the old workers');
cmp_ok(time - $began, '<', 2 * $slow, 'workers with idle connections to Redis end at once');

kill 'STOP', $redis->{pid};
my $child = fork // die "fork: $!\n";
if (!$child) {
    my @answers = burst(100, map { [$node->{port}, 1_000_000 + $_, '/seckill/42'] } 1 .. 100);
    POSIX::_exit(scalar grep { code($_) !~ /^5030[12]\z/ } @answers);
}
sleep 0.1;
@old = reload($node);
waitpid $child, 0;
is($?, 0, 'a hundred requests that wait for Redis are all answered');
$began = time;
$t->wait_for(sub { gone($node, @old) }, 20, 'the old workers');
cmp_ok(time - $began, '<', 2 * $slow, '... and then their workers end');

# connects and back-off are pending now
sleep 0.5;
@old = reload($node);
$began = time;
$t->wait_for(sub { gone($node, @old) }, 20, 'the old workers');
cmp_ok(time - $began, '<', 2 * $slow, '... those that try to reach Redis, too');
kill 'CONT', $redis->{pid};
unlike($t->log_text($node), qr/open socket|left in connection/, '... and leave no socket');
$t->stop($node);

# --- names are refused, and nginx -t opens no socket to Redis (A14, A15)

my ($exit, $said) = $t->nginx_test(key_file => $key, http =>
    'seckill_zone seckill:8m; seckill_redis redis.invalid:6379;');
isnt($exit, 0, 'a host name needs a resolver');
like($said, qr/redis address "redis\.invalid:6379" is a host name/, '... and is quoted');

SKIP: {
    skip 'strace is not installed', 4 if system('command -v strace > /dev/null 2>&1') != 0;
    skip 'strace may not be used here', 4
        if system('strace -o /dev/null true > /dev/null 2>&1') != 0 || $t->sanitized;

    my $trace = $t->dir . '/trace';
    my $nginx = $ENV{TEST_NGINX_BINARY} // 'nginx';
    local $ENV{TEST_NGINX_BINARY} = $t->file('traced', <<"END", oct 700);
#!/bin/sh
exec strace -f -o $trace -e trace=socket,connect $nginx "\$@"
END
    for my $redis ('seckill_redis 192.0.2.1:6379;',
                   'seckill_redis redis.invalid:6379; resolver 192.0.2.53;')
    {
        ($exit, $said) = $t->nginx_test(key_file => $key, http => "seckill_zone seckill:8m; $redis");
        is($exit, 0, "nobody is at the address, and the test passes: $redis") or diag($said);
        open my $fh, '<', $trace or die "trace: $!\n";
        # the user database may ask a daemon for names over a unix socket
        my @calls = grep { (/connect\(/ || /SOCK_DGRAM/) && !/AF_UNIX/ } <$fh>;
        is_deeply(\@calls, [], '... without a connection');
    }
}

done_testing();
