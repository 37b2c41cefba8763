# Redis under load: its script cache emptied (A16), demoted (A17), loading for long
# (A18), unable to save (A22).  Nobody hears "sold out" or "repeat" for it, and all
# goes on by itself.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use IO::Socket::INET;
use NodesTest qw(burst code log_lines median sale tally);
use POSIX ();
use SeckillTest;
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

use constant {
    WORKERS        => 2,
    LOAD_DELAY_US  => 10_000,       # for each key
    LOAD_SECONDS   => soak(4, 30),
    FLUSH_SECONDS  => soak(2, 20),
    AWAY_SECONDS   => soak(2, 20),
};

my $t     = SeckillTest->new;
my $redis = $t->redis(
    appendonly => 'no', 'enable-debug-command' => 'yes', 'enable-protected-configs' => 'yes',
    'key-load-delay' => LOAD_DELAY_US,
    'loading-process-events-interval-bytes' => 1024, 'stop-writes-on-bgsave-error' => 'yes');
my $slow  = $t->sanitized ? 5 : 1;
my $node  = $t->nginx(
    redis => $redis, key_file => $t->file('auth.key', NodesTest::KEY), workers => WORKERS,
    # patience for a busy machine: what is tested here is not the deadlines
    http => 'seckill_limit off; seckill_redis_timeout 2s; seckill_redis_connect_timeout 1s; seckill_timeout 4s;',
    location => "location /seckill/ { seckill on; }\nlocation = /status { seckill_status; }");
my $user  = 0;

sub buy {
    my ($n) = @_;
    return burst(20, map { [$node->{port}, ++$user, '/seckill/42'] } 1 .. $n);
}

# Answers to single posts for some seconds.
sub buy_for {
    my ($seconds) = @_;

    my ($end, @answers) = (time + $seconds);
    while (time < $end) {
        push @answers, buy(1);
        sleep 0.01;
    }
    return @answers;
}

sub stats { my ($info) = scalar $redis->{client}->info('commandstats'); return $info }

sub calls {
    my ($command) = @_;
    return (stats()->{"cmdstat_$command"} // '') =~ /\bcalls=(\d+)/ ? $1 : 0;
}

sub status {
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "connect: $!\n";
    print {$socket} "GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    local $/ = undef;
    return scalar <$socket>;
}

# a list, whatever shape the client gives it
sub flat { return map { ref $_ eq 'HASH' ? %{$_} : ref $_ ? @{$_} : $_ } @_ }

sub sells_again {
    my ($what) = @_;
    my $began = time;
    $t->wait_for(sub { code(buy(1)) eq '0' }, 10, 'a purchase');
    cmp_ok(time - $began, '<', 2.5 * $slow, "$what: it sells again by itself");
    return;
}

sub in_order {
    my ($what) = @_;
    my $sold = $redis->{client}->xlen('seckill:orders:{42}');
    is($redis->{client}->scard('seckill:order_users:{42}'), $sold, "$what: as many buyers as entries");
    is($redis->{client}->get('seckill:stock:{42}'), 1_000_000 - $sold, '... and units');
    return;
}

sale($t, $redis, 42, stock => 1_000_000);
is(code(buy(1)), 0, 'a purchase');

# --- the script cache is emptied, again and again (A16)
{
    $redis->{client}->config_resetstat;
    my $child = fork // die "fork: $!\n";
    if (!$child) {
        my $other = $t->redis_client($redis);
        my $end = time + FLUSH_SECONDS;
        while (time < $end) {
            $other->script_flush;
            sleep 0.1;
        }
        POSIX::_exit(0);
    }
    my ($end, @answers) = (time + FLUSH_SECONDS);
    push @answers, buy(200) while time < $end;
    waitpid $child, 0;
    is_deeply([keys %{ tally(@answers) }], [0], 'the script cache is emptied ten times a second: nobody notices')
        or diag(explain(tally(@answers)));
    my ($loads, $evalshas, $flushes) = map { calls($_) } 'script|load', 'evalsha', 'script|flush';
    cmp_ok($flushes, '>', FLUSH_SECONDS * 5, "... $flushes times");
    cmp_ok($loads, '<=', $flushes * WORKERS * 4, "... loaded once per connection and flush: $loads");
    is(calls('eval'), 0, '... never sent whole with a call');
    $redis->{client}->config_resetstat;
    my @last = buy(500);
    is(scalar(grep { code($_) eq '0' } @last), 500, 'afterwards');
    cmp_ok(calls('script|load'), '<=', WORKERS * 4, '... with no load more than each connection needs');
    in_order('then');
}

# --- a node that was demoted (A17)
{
    $redis->{client}->replicaof('127.0.0.1', 1);
    my @answers = buy_for(AWAY_SECONDS);
    is_deeply([grep { !/^5030[12]\z/ } keys %{ tally(@answers) }], [], 'a replica: unavailable, and nothing else');
    cmp_ok(tally(@answers)->{50302} // 0, '>=', @answers * 0.9, '... nothing was taken');
    like(status(), qr/seckill_redis_failed_total\{kind="READONLY"\} [1-9]/, '... by its name in the status');
    $redis->{client}->replicaof('no', 'one');
    sells_again('a master');
    in_order('then');
}

# --- background saving fails (A22)
{
    my $place = $t->dir . '/gone';
    mkdir $place or die "mkdir: $!\n";
    $redis->{client}->config_set('dir', $place);
    $redis->{client}->config_set('save', '3600 1');
    rmdir $place or die "rmdir: $!\n";
    eval { $redis->{client}->bgsave };
    $t->wait_for(sub { $redis->{client}->info('persistence')->{rdb_last_bgsave_status} eq 'err' }, 10, 'a failed save');
    my @answers = buy_for(1);
    is_deeply([keys %{ tally(@answers) }], [50302], 'Redis refuses writes: nothing was taken, says the answer');
    like(status(), qr/seckill_redis_failed_total\{kind="MISCONF"\} [1-9]/, '... by its name in the status');
    my ($name, $value) = flat($redis->{client}->config_get('stop-writes-on-bgsave-error'));
    is("$name $value", 'stop-writes-on-bgsave-error yes', '... and nobody changes its settings');
    mkdir $place or die "mkdir: $!\n";
    $redis->{client}->config_set('dir', $place);
    $redis->{client}->bgsave;
    $t->wait_for(sub { $redis->{client}->info('persistence')->{rdb_last_bgsave_status} eq 'ok' }, 10, 'a good save');
    sells_again('it saves again');
    in_order('then');
}

# --- a data set that takes long to load (A18)
{
    $redis->{client}->debug('POPULATE', LOAD_SECONDS * 1_000_000 / LOAD_DELAY_US);
    $redis->{client}->config_set('dir', $redis->{dir});
    $redis->{client}->save;
    my $ready = $redis->{ready};
    $t->kill9($redis);
    $redis->{ready} = sub { 1 };
    my $lines = log_lines($t, $node);
    $t->restart($redis);
    $redis->{ready} = $ready;
    buy_for(0.5);       # the connection that was lost
    my @answers = buy_for(LOAD_SECONDS - 1.5);
    is_deeply([keys %{ tally(@answers) }], [50302], 'Redis is loading: nothing was taken, says the answer');
    cmp_ok(median(map { $_->{seconds} // 99 } @answers), '<', 0.050 * $slow, '... within 50 ms');
    cmp_ok(log_lines($t, $node) - $lines, '<=', WORKERS * (LOAD_SECONDS + 6), '... at most a line per worker and second');
    $t->wait_for(sub { eval { $t->redis_client($redis)->ping } }, 60, 'the end of it');
    sells_again('loaded');
    $redis->{client} = $t->redis_client($redis);
    my $probes = 0;
    $probes += /rejected_calls=(\d+)/ ? $1 : 0 for values %{ stats() };
    cmp_ok($probes, '>', 0, "... probed $probes times");
    cmp_ok($probes, '<=', WORKERS * 4 * (LOAD_SECONDS + 4), '... about once per connection and second');
    in_order('then');
}

$t->stop($node);
done_testing();
