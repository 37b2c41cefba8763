# Clients that leave, break off or never end: while Redis does not answer (A5),
# within their body (A7), with a body without end (A10).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use IO::Socket::INET;
use NodesTest qw(burst code sale tally token);
use SeckillTest;
use Soak qw(soak);
use Socket qw(SOL_SOCKET SO_LINGER);
use Test::More;
use Time::HiRes qw(sleep time);

use constant LEAVERS => soak(200, 1000);
use constant BROKEN  => soak(100, 1000);
use constant ENDLESS => 500 * 1024 * 1024;

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $key   = $t->file('auth.key', NodesTest::KEY);
my $node  = $t->nginx(redis => $redis, key_file => $key, workers => 2, http => <<'END', location => <<'END2');
seckill_limit off; seckill_redis_timeout 20s; seckill_redis_connect_timeout 20s; seckill_timeout 30s; lingering_time 2s;
END
location /seckill/ { seckill on; }
location = /nginx { stub_status; access_log off; }
END2

sub connection {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) || die "connect: $!\n";
}

# Sends and leaves: with a reset, or the usual way.
sub leave {
    my ($socket, $reset) = @_;
    setsockopt $socket, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0) if $reset;
    close $socket;
    return;
}

# Connections that nginx holds, this question's own among them.
sub active {
    my $socket = connection();
    print {$socket} "GET /nginx HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    my $text = do { local $/ = undef; <$socket> };
    return $text =~ /Active connections: (\d+)/ ? $1 : die "no stub_status: $text\n";
}

sub descriptors { return scalar map { glob "/proc/$_/fd/*" } $t->children($node) }

sub rss_kib {
    my $kib = 0;
    for my $pid ($t->children($node)) {
        open my $fh, '<', "/proc/$pid/status" or die "status: $!\n";
        $kib += join('', <$fh>) =~ /VmRSS:\s*(\d+)/ ? $1 : 0;
    }
    return $kib;
}

sub post {
    my ($user, $more) = @_;
    return "POST /seckill/42 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " . token($user) . "\r\n$more";
}

$t->wait_for(sub { $t->children($node) == 2 }, 10, 'both workers');
my @workers = $t->children($node);
sale($t, $redis, 42, stock => 1_000_000);
burst(20, map { [$node->{port}, 5_000_000 + $_, '/seckill/42'] } 1 .. 200);    # Redis is warm
# a worker that has not been asked yet may still open its connections to Redis
my $base = descriptors() + 8;

# --- clients leave while Redis does not answer (A5)
{
    kill 'STOP', $redis->{pid};
    for my $user (1 .. LEAVERS) {
        my $socket = connection();
        syswrite $socket, post($user, "Content-Length: 0\r\n\r\n");
        sleep 0.05 if $user % 50 == 0;
        leave($socket, $user % 2);
    }
    $t->wait_for(sub { active() == 1 }, 5, 'the requests to be released');
    is(active(), 1, LEAVERS . ' clients have left: nothing is held while Redis is silent');
    kill 'CONT', $redis->{pid};

    my @answers = burst(50, map { [$node->{port}, $_, '/seckill/42'] } 1 .. LEAVERS);
    my %codes   = %{ tally(@answers) };
    is(($codes{0} // 0) + ($codes{40004} // 0), LEAVERS, 'each hears that it bought, now or then')
        or diag(explain(\%codes));
    cmp_ok($codes{40004} // 0, '>', 0, '... then, for some');
    my ($sold, $buyers) = ($redis->{client}->xlen('seckill:orders:{42}'), $redis->{client}->scard('seckill:order_users:{42}'));
    is($buyers, LEAVERS + 200, '... once');
    is($sold, $buyers, '... with one entry each');
    is($redis->{client}->get('seckill:stock:{42}'), 1_000_000 - $sold, '... and one unit');
}

# --- bodies that break off (A7)
{
    my $before = $redis->{client}->get('seckill:stock:{42}');
    my %broken = (
        'a chunk size that is none'     => ["Transfer-Encoding: chunked\r\n\r\nzz\r\n", 0],
        'three bytes of ten'            => ["Content-Length: 10\r\n\r\n{\"q", 0],
        'gone before it may send'       => ["Expect: 100-continue\r\nContent-Length: 2\r\n\r\n", 1],
    );
    for my $name (sort keys %broken) {
        my ($text, $reset) = @{ $broken{$name} };
        for my $n (1 .. BROKEN) {
            my $socket = connection();
            syswrite $socket, post(2_000_000 + $n, $text);
            sleep 0.001 if $reset;
            leave($socket, $reset);
        }
        $t->wait_for(sub { active() == 1 }, 5, 'the connections to end');
        is(active(), 1, BROKEN . " times $name: no connection is left");
    }
    is($redis->{client}->get('seckill:stock:{42}'), $before, '... and no unit is sold');
}

# --- a body without end (A10)
{
    my $rss    = rss_kib();
    my $socket = connection();
    my $chunk  = "10000\r\n" . 'x' x 65_536 . "\r\n";
    my ($sent, $answer, $began, $answered) = (0, '', time, undef);

    local $SIG{PIPE} = 'IGNORE';
    syswrite $socket, "POST /seckill/42 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    $socket->blocking(0);
    while ($sent < ENDLESS && time < $began + 60) {
        my $n = syswrite $socket, $chunk, length($chunk) - $sent % length $chunk, $sent % length $chunk;
        last if !defined $n && !$!{EAGAIN};
        $sent += $n // 0;
        sleep(defined $n ? 0.001 : 0.01);
        my $got = sysread $socket, $answer, 4096, length $answer;
        $answered //= time - $began if $got;
    }
    like($answer, qr/^HTTP\/1\.1 401 .*"code":40100,/s, 'an endless body without a token is answered');
    cmp_ok($answered // 99, '<', $t->sanitized ? 5 : 1, '... at once');
    cmp_ok(time - $began, '<', 4, '... and cut off after "lingering_time", the core\'s own limit');
    cmp_ok($sent, '<', ENDLESS, '... with ' . int($sent / 1024) . ' KiB thrown away');
    cmp_ok(rss_kib() - $rss, '<', 1024 * ($t->sanitized ? 8 : 1), '... nor kept');
    close $socket;
}

$t->wait_for(sub { descriptors() <= $base }, 5, 'descriptors to be closed');
cmp_ok(descriptors(), '<=', $base, 'no more descriptors than before, but for Redis');
is_deeply([sort $t->children($node)], [sort @workers], 'and the same workers');
my $log = $t->log_text($node);
unlike($log, qr/open socket|left in connection|header already sent|request count is zero|zero size buf/, 'the log is clean');
$t->stop($node);

done_testing();
