# Two nodes before one Redis sell as one: a rush (C2), a limit that both keep (C11,
# C12), and clocks that differ (C13).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use NodesTest qw(burst code now_ms sale tally);
use SeckillTest;
use POSIX ();
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $key   = $t->file('auth.key', NodesTest::KEY);

# patience for a busy machine: what is tested here is not the deadlines
my $patient = 'seckill_redis_timeout 4s; seckill_redis_connect_timeout 2s; seckill_timeout 8s;';

sub node {
    my (%args) = @_;
    return $t->nginx(redis => $redis, key_file => $key, http => $patient, %args);
}

# --- 5000 distinct users at once over two nodes with four workers each (C2)

my @nodes = map { node(workers => 4) } 1, 2;
sale($t, $redis, 42, stock => 10);

my @answers = burst(500, map { [$nodes[$_ % 2]{port}, $_, '/seckill/42'] } 1 .. 5000);
is_deeply(tally(@answers), { 0 => 10, 40005 => 4990 }, '5000 users, ten units: ten buy, nobody hears an error');
is($redis->{client}->get('seckill:stock:{42}'), 0, '... the stock is 0');
is($redis->{client}->scard('seckill:order_users:{42}'), 10, '... with ten buyers');
is($redis->{client}->xlen('seckill:orders:{42}'), 10, '... and ten entries');

# one unit comes back: exactly one more
$redis->{client}->incrby('seckill:stock:{42}', 1);
$redis->{client}->hincrby('seckill:activity:{42}', 'rev', 1);
$redis->{client}->hincrby('seckill:control', 'rev', 1);
sleep 1.5;
@answers = burst(10, map { [$nodes[$_ % 2]{port}, 6000 + $_, '/seckill/42'] } 1 .. 10);
is_deeply(tally(@answers), { 0 => 1, 40005 => 9 }, 'one unit that came back is sold once');
is($redis->{client}->get('seckill:stock:{42}'), 0, '... and the stock is 0 again');
$t->stop($_) for @nodes;

# --- one a second, whichever node is asked (C11)

my $cluster = $patient . ' seckill_limit rate=1r/s scope=cluster;';
@nodes = map { node(workers => 2, http => $cluster) } 1, 2;
sale($t, $redis, 45, stock => 1000);
burst(2, map { [$nodes[$_]{port}, 9000 + $_, '/seckill/45'] } 0, 1);    # both know the facts
for my $round (1 .. soak(3, 30)) {
    @answers = burst(100, map { [$nodes[$_ % 2]{port}, 7500 + $round, '/seckill/45'] } 1 .. 100);
    my %codes = %{ tally(@answers) };
    my $late  = int(max_seconds(@answers));     # each whole second may let one more pass
    is($codes{0} // 0, 1, "round $round: of a hundred at one instant over two nodes one buys");
    cmp_ok($codes{40004} // 0, '<=', $late, '... and no other reaches the sale') or diag(explain(\%codes));
    is(($codes{0} // 0) + ($codes{40003} // 0) + ($codes{40004} // 0), 100, '... each of the others is limited');
}

sub max_seconds {
    my ($max) = sort { $b <=> $a } map { $_->{seconds} // 99 } @_;
    return $max;
}

# --- workers and Redis are killed: no limit key without an expiry (C12)

my ($kills, $limits, @forever) = (0, 0);
$redis->{client}->config_set('appendonly', 'yes');
$redis->{client}->config_rewrite;
$t->allow_log(qr/exited on signal 9|was left locked by a worker|was locked by/);
for my $n (1 .. soak(6, 100)) {
    my $child = fork // die "fork: $!\n";
    if (!$child) {
        burst(50, map { [$nodes[$_ % 2]{port}, 100_000 * $n + $_, '/seckill/45'] } 1 .. 1000);
        POSIX::_exit(0);
    }
    sleep 0.02 + rand 0.1;
    if ($n % 6 == 0) {
        $t->kill9($redis);
        $t->restart($redis);
        $redis->{client} = $t->redis_client($redis);
    } else {
        my @workers = $t->children($nodes[$n % 2]);
        kill 'KILL', $workers[rand @workers] if @workers;
    }
    $kills++;
    for my $key ($redis->{client}->keys('seckill:limit:*')) {
        $limits++;
        push @forever, $key if $redis->{client}->ttl($key) == -1;
    }
    waitpid $child, 0;
}
cmp_ok($limits, '>', 100, "$kills kills: $limits limit keys were looked at");
is_deeply(\@forever, [], '... and each expires');
is($redis->{client}->xlen('seckill:orders:{45}'), $redis->{client}->scard('seckill:order_users:{45}'), '... with books in order');
$t->stop($_) for @nodes;

# --- node 1 is 90 s ahead, node 2 is 90 s behind (C13)

my ($faketime) = glob '/usr/lib/*/faketime/libfaketime.so.1';

SKIP: {
    skip 'libfaketime is not installed', 4 if !defined $faketime;
    skip 'libfaketime does not go with the sanitizers', 4 if $t->sanitized;

    my $nginx = $ENV{TEST_NGINX_BINARY} // 'nginx';
    @nodes = map {
        my $wrapper = $t->file("nginx$_", <<"END", oct 700);
#!/bin/sh
exec env LD_PRELOAD=$faketime FAKETIME=$_ FAKETIME_DONT_FAKE_MONOTONIC=1 $nginx "\$@"
END
        local $ENV{TEST_NGINX_BINARY} = $wrapper;
        node();
    } '+90s', '-90s';

    # the literal case is minutes around T; seconds will do, as a node's error is 90 s
    my $base  = sale($t, $redis, 43, stock => 1000, start_ms => 2000, end_ms => 4500);
    my ($start, $end) = ($base + 2000, $base + 4500);
    my (%wrong, %seen);
    my $user = 0;
    while (now_ms($redis) < $end + 1500) {
        for my $n (0, 1) {
            my $before = now_ms($redis);
            my ($answer) = burst(1, [$nodes[$n]{port}, 100 + ++$user, '/seckill/43']);
            my $after = now_ms($redis);
            my %right;
            $right{40001} = 1 if $before < $start;
            $right{0}     = 1 if $after >= $start && $before < $end;
            $right{40002} = 1 if $after >= $end;
            my $code = code($answer);
            $seen{$n}{$code}++;
            $wrong{"node $n: $code at " . ($before - $start)}++ if !$right{$code};
        }
        sleep 0.02;
    }
    is_deeply(\%wrong, {}, 'each answer is that of the clock of Redis');
    is_deeply([map { [sort keys %{ $seen{$_} }] } 0, 1], [([0, 40001, 40002]) x 2],
              '... and both nodes said "not yet", sold, and said "over"') or diag(explain(\%seen));

    # the limit: one a second, whatever the clock says
    sale($t, $redis, 44, stock => 1000);
    my %limit;
    for my $n (0, 1) {
        for my $k (1 .. 4) {
            my ($answer) = burst(1, [$nodes[$n]{port}, 7000 + $n, '/seckill/44']);
            push @{ $limit{$n} }, code($answer);
            sleep 1.1 if $k == 3;
        }
    }
    is_deeply([@{ $limit{0} }[1, 2]], [40003, 40003], 'a user is limited on the fast node') or diag(explain(\%limit));
    is_deeply([map { $_->[0], $_->[3] } @limit{0, 1}], [0, 40004, 0, 40004], '... and a second later no more, on both');
    $t->stop($_) for @nodes;
}

done_testing();
