# Redis away under load (A25), and no more connections to it than allowed (A26).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use FakeRedis;
use NodesTest qw(burst code log_lines median sale tally);
use SeckillTest;
use Soak qw(soak);
use Test::More;
use POSIX ();
use Time::HiRes qw(sleep time);

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $key   = $t->file('auth.key', NodesTest::KEY);
my $slow  = $t->sanitized ? 5 : 1;

# back-off is at its longest after 3 s
use constant AWAY_SECONDS => soak(4, 60);

use constant WORKERS     => soak(2, 4);
use constant CONNECTIONS => soak(3, 8);

my $user = 0;

# Answers to single posts, one after another, for some seconds.
sub ask_for {
    my ($port, $seconds) = @_;

    my ($until, @answers) = (time + $seconds);
    while (time < $until) {
        push @answers, burst(1, [$port, ++$user, '/seckill/42']);
        sleep 0.005;
    }
    return @answers;
}

# What a node says and logs while Redis is away, and how soon it comes back.
sub away {
    my ($node, $how, $leave, $come_back) = @_;

    my $lines = log_lines($t, $node);
    $leave->();
    ask_for($node->{port}, 1.5);                # timeouts, until the breaker is open
    my @answers = ask_for($node->{port}, AWAY_SECONDS);
    push @answers, burst(100, map { [$node->{port}, ++$user, '/seckill/42'] } 1 .. 1000);
    my %codes = %{ tally(@answers) };

    cmp_ok($codes{50302} // 0, '>=', @answers * 0.95, "$how: nothing was taken, they hear") or diag(explain(\%codes));
    is_deeply([grep { !/^5030[12]\z/ } keys %codes], [], "... and nobody hears anything else");
    my @one_by_one = map { $_->{seconds} // 99 } @answers[0 .. $#answers - 1000];
    cmp_ok(median(@one_by_one), '<', 0.020 * $slow, '... within 20 ms');

    cmp_ok(log_lines($t, $node) - $lines, '<=', WORKERS * (AWAY_SECONDS + 4), '... at most one line per worker and second');

    $come_back->();
    my $back = time;
    $t->wait_for(sub { code(burst(1, [$node->{port}, ++$user, '/seckill/42'])) eq '0' }, 10, 'a purchase');
    cmp_ok(time - $back, '<', 2 * $slow, '... and two seconds after Redis all is well');
    return;
}

my $node = $t->nginx(redis => $redis, key_file => $key, workers => WORKERS,
                     http => 'seckill_limit off;');
sale($t, $redis, 42, stock => 1_000_000);
my ($first) = burst(1, [$node->{port}, ++$user, '/seckill/42']);
is(code($first), 0, 'Redis is there: sold');

away($node, 'nothing listens', sub { $t->stop($redis) }, sub {
    $t->restart($redis);
    $redis->{client} = $t->redis_client($redis);
    # what restore does: a new epoch, or the node would see that purchases are missing
    sale($t, $redis, 42, stock => 1_000_000, epoch => 2);
});
away($node, 'nobody answers', sub { kill 'STOP', $redis->{pid} }, sub { kill 'CONT', $redis->{pid} });
$t->stop($node);

# --- connections (A26)

sub clients {
    my @lines = grep { !/cmd=client/ } split /\n/, $redis->{client}->client('list');
    return scalar @lines;
}

my $before = clients();
$node = $t->nginx(redis => $redis, key_file => $key, workers => WORKERS, http =>
    'seckill_limit off; seckill_redis_connections ' . CONNECTIONS . '; seckill_max_pending 200;');
my ($most, $child) = (0, fork // die "fork: $!\n");
if (!$child) {
    for my $round (1 .. soak(4, 5)) {
        burst(soak(600, 3500), map { [$node->{port}, $round * 100_000 + $_, '/seckill/42'] } 1 .. soak(3000, 20_000));
    }
    POSIX::_exit(0);
}
while (waitpid($child, POSIX::WNOHANG()) == 0) {
    my $now = clients() - $before;
    $most = $now if $now > $most;
    sleep 0.01;
}
cmp_ok($most, '>', 0, "connections during the rush: $most");
cmp_ok($most, '<=', WORKERS * CONNECTIONS, '... never more than allowed');
$t->stop($node);

# who closes at once is not asked in a loop, and no socket stays half closed
my $fake = FakeRedis->new(dir => $t->dir, rules => 'CONNECT: close');
$node = $t->nginx(key_file => $key, workers => WORKERS, http => 'seckill_zone seckill:8m; seckill_redis 127.0.0.1:'
    . $fake->port . '; seckill_redis_connections ' . CONNECTIONS . ';');
my @answers = ask_for($node->{port}, soak(3, 60));
is_deeply([keys %{ tally(@answers) }], [50302], 'connections that are closed at once: nothing was taken');

# the state CLOSE_WAIT is 08 in the kernel's table
my $end = sprintf ':%04X 08', $fake->port;
my $half = sub {
    open my $fh, '<', '/proc/net/tcp' or die "no /proc/net/tcp: $!\n";
    return scalar grep {/\Q$end\E /} <$fh>;
};
cmp_ok($half->(), '<=', WORKERS * CONNECTIONS, '... no heap of half-closed sockets');
cmp_ok(scalar $fake->commands('CONNECT'), '<=', WORKERS * CONNECTIONS * soak(12, 60), '... and tried again with growing pauses');
$t->stop($node);
$fake->stop;

done_testing();
