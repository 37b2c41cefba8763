# Redis away under load (A25): its process gone, and every packet to it dropped.
# Redis has a network of its own behind a pair of virtual cards; taking its address
# away drops what is sent to it.  That needs root.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use NodesTest qw(burst code log_lines median sale tally);
use POSIX ();
use SeckillTest;
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

use constant AWAY_SECONDS => soak(2, 60);
use constant RATE         => soak(1000, 5000);
use constant WORKERS      => 2;

# a network of our own, then this file once more in it
if (!$ENV{SECKILL_OWN_NETWORK}) {
    plan skip_all => 'needs root' if $> != 0;
    $ENV{PATH} .= ':/usr/sbin:/sbin';
    plan skip_all => 'no network of our own here'
        if system('unshare --net sh -c "ip link set lo up && ip link add name sk0 type veth peer name sk1" 2> /dev/null') != 0;
    $ENV{SECKILL_OWN_NETWORK} = 1;
    exec 'unshare', '--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', $^X, "-I$FindBin::Bin/../lib", $0;
}

my $t     = SeckillTest->new;

# the other network lives as long as this process
my $holder = fork // die "fork: $!\n";
if (!$holder) {
    { no warnings 'exec'; exec 'setpriv', '--pdeathsig', 'KILL', '--', 'unshare', '--net', 'sleep', 'infinity'; }
    POSIX::_exit(127);
}
my $there = "nsenter --net=/proc/$holder/ns/net";
my $here  = readlink '/proc/self/ns/net';
$t->wait_for(sub { (readlink("/proc/$holder/ns/net") // $here) ne $here }, 10, 'the other network');

sub net {
    for my $command (@_) {
        system($command) == 0 or die "\"$command\" failed\n";
    }
    return;
}

net("ip link add name sk0 type veth peer name sk1 netns $holder", 'ip addr add 192.0.2.1/24 dev sk0', 'ip link set sk0 up',
    "$there ip link set lo up", "$there ip addr add 192.0.2.2/24 dev sk1", "$there ip link set sk1 up");
my ($mac) = `$there ip link show dev sk1` =~ m{link/ether (\S+)};
net("ip neigh replace 192.0.2.2 lladdr $mac nud permanent dev sk0");

my $bin = $t->dir . '/bin';
mkdir $bin or die "mkdir: $!\n";
chomp(my $server = `sh -c "command -v redis-server"`);
$t->file('bin/redis-server', "#!/bin/sh\nexec $there $server \"\$@\"\n", oct 700);
$ENV{PATH} = "$bin:$ENV{PATH}";
my $redis = $t->redis(bind => '0.0.0.0', 'protected-mode' => 'no');
my $slow  = $t->sanitized ? 5 : 1;
my $node  = $t->nginx(key_file => $t->file('auth.key', NodesTest::KEY), workers => WORKERS,
    http => "seckill_limit off; seckill_zone seckill:8m; seckill_redis 192.0.2.2:$redis->{port};");
my $user  = 0;

sub cpu_seconds {
    my $ticks = 0;
    for my $pid ($t->children($node)) {
        open my $fh, '<', "/proc/$pid/stat" or die "stat: $!\n";
        my @field = split ' ', scalar(<$fh>) =~ s/.*\) //r;
        $ticks += $field[11] + $field[12];
    }
    return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# A crowd in another process, RATE a second.
sub crowd {
    my ($seconds) = @_;

    my $child = fork // die "fork: $!\n";
    return $child if $child;

    my ($n, $began, $sent) = (50_000_000 + $user * 1000, time, 0);
    while (time < $began + $seconds) {
        burst(50, map { [$node->{port}, ++$n, '/seckill/42'] } 1 .. RATE / 10);
        $sent += RATE / 10;
        my $early = $began + $sent / RATE - time;
        sleep $early if $early > 0;
    }
    POSIX::_exit($sent >= RATE * $seconds * 0.5 ? 0 : 1);
}

sub away {
    my ($how, $leave, $come_back) = @_;

    my $child = crowd(AWAY_SECONDS + 4);
    sleep 0.5;
    my $lines = log_lines($t, $node);
    $leave->();
    sleep 1.5;                                  # timeouts, until the breaker is open
    my ($cpu, $end, @answers) = (cpu_seconds(), time + AWAY_SECONDS);
    while (time < $end) {
        push @answers, burst(1, [$node->{port}, ++$user, '/seckill/42']);
        sleep 0.01;
    }
    $cpu = cpu_seconds() - $cpu;
    my %codes = %{ tally(@answers) };
    is_deeply([grep { !/^5030[12]\z/ } keys %codes], [], "$how, " . RATE . ' requests a second: nobody hears anything else')
        or diag(explain(\%codes));
    cmp_ok($codes{50302} // 0, '>=', @answers * 0.95, '... than that nothing was taken') or diag(explain(\%codes));
    cmp_ok(median(map { $_->{seconds} // 99 } @answers), '<', 0.020 * $slow, '... within 20 ms');
    cmp_ok(log_lines($t, $node) - $lines, '<=', WORKERS * (AWAY_SECONDS + 4), '... at most one line per worker and second');
    cmp_ok($cpu, '<', AWAY_SECONDS * WORKERS * 0.6 * $slow, sprintf '... with %.1f s of processor time in %d s', $cpu, AWAY_SECONDS);

    $come_back->();
    my $back = time;
    $t->wait_for(sub { code(burst(1, [$node->{port}, ++$user, '/seckill/42'])) eq '0' }, 10, 'a purchase');
    cmp_ok(time - $back, '<', 2 * $slow, '... and two seconds after Redis all is well');
    waitpid $child, 0;
    is($?, 0, '... the crowd was as large as it should be');
    return;
}

sale($t, $redis, 42, stock => 10_000_000);
is(code(burst(1, [$node->{port}, ++$user, '/seckill/42'])), 0, 'Redis is there: sold');

away('nothing listens', sub { $t->stop($redis) }, sub {
    $t->restart($redis);
    $redis->{client} = $t->redis_client($redis);
    # what restore does: a new epoch
    sale($t, $redis, 42, stock => 10_000_000, epoch => 2);
});

away('packets are dropped', sub { net("$there ip addr del 192.0.2.2/24 dev sk1") },
     sub { net("$there ip addr add 192.0.2.2/24 dev sk1") });
is($redis->{client}->xlen('seckill:orders:{42}'), $redis->{client}->scard('seckill:order_users:{42}'), 'the books are in order');
$t->stop($node);
kill 'KILL', $holder;
waitpid $holder, 0;

done_testing();
