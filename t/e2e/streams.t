# Many who wait for their results by long poll and event stream: reloads (A4), clients
# that go (A5) and a Redis that dies end every wait explicitly, and within a second.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use NodesTest qw(sale);
use SeckillTest;
use Test::More;
use IO::Poll ();
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(sleep time);

# of each kind; literal
use constant EACH => 500;

use constant RESULT => '{"success":true,"order_id":9,"order_no":"26112910203040500100100000011001"}';

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $key   = $t->file('auth.key', NodesTest::KEY);
my $slow  = $t->sanitized ? 5 : 1;
my $node  = $t->nginx(redis => $redis, key_file => $key, workers => 2, http => <<'END_CONF',
    seckill_limit off;
    seckill_redis_timeout 4s;
    seckill_redis_connect_timeout 4s;
    seckill_timeout 8s;
END_CONF
    location => "location /seckill/ { seckill on; }\nlocation = /status { seckill_status; }");

sub ask {
    my ($path, @headers) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "cannot connect: $!\n";
    syswrite $socket, join "\r\n", "GET $path HTTP/1.1", 'Host: localhost', 'Connection: close', @headers, '', '';
    return $socket;
}

sub waiters {
    my $socket = ask('/status');
    local $/ = undef;
    my ($count) = <$socket> =~ /^seckill_waiters (\d+)$/m;
    return $count // -1;
}

# everybody comes, half of them for events; a few at a time, as many as nginx can ask Redis for
sub come {
    my @crowd;
    for my $user (1 .. 2 * EACH) {
        my $stream = $user > EACH;
        push @crowd, {
            stream => $stream, text => '', ended => undef,
            socket => ask('/seckill/result/1' . ($stream ? '' : '?wait=60'), 'Authorization: Bearer ' . NodesTest::token($user),
                          'Accept: ' . ($stream ? 'text/event-stream' : '*/*')),
        };
    }
    $t->wait_for(sub { waiters() == 2 * EACH }, 30, 'everybody to wait');
    return @crowd;
}

# Reads until all have ended; when they did stays in {ended}.
sub hear {
    my ($seconds, @crowd) = @_;

    my $until = time + $seconds;
    my %by = map { fileno($_->{socket}) => $_ } @crowd;
    while (%by && time < $until) {
        my @poll = map { ($_ => IO::Poll::POLLIN()) } keys %by;
        IO::Poll::_poll(100, @poll);
        while (my ($fd, $events) = splice @poll, 0, 2) {
            next if !$events || sysread $by{$fd}{socket}, $by{$fd}{text}, 65_536, length $by{$fd}{text};
            $by{$fd}{ended} = time;
            delete $by{$fd};
        }
    }
    return;
}

# An end in order: a whole answer "queueing", or a stream with its last chunk, which
# has told when to come again.
sub explicit {
    my ($one) = @_;

    return $one->{text} =~ /^retry: 1000\r?$/m && $one->{text} =~ /\r\n0\r\n\r\n\z/ && $one->{text} !~ /id: final/ if $one->{stream};
    my ($length, $body) = $one->{text} =~ /^Content-Length: (\d+)\r\n.*?\r\n\r\n(.*)\z/ms;
    return defined $body && length $body == $length && $body =~ /^\{"code":0,.*"poll_after_ms":/;
}

sub ended_well {
    my ($began, $what, @crowd) = @_;

    is(scalar(grep { $_->{ended} && explicit($_) } @crowd), scalar @crowd, "$what: every wait ends explicitly");
    my @after = sort { $a <=> $b } map { ($_->{ended} // 1e12) - $began } @crowd;
    # literal: within a second; the rest is for a machine that others use
    cmp_ok($after[-1], '<', 3 * $slow, '... at once');
    note sprintf '%s: median %.3f s, last %.3f s', $what, $after[0.5 * $#after], $after[-1];
    return;
}

# The old workers' pids, and when the new ones were there.
sub reload {
    my %old = map { $_ => 1 } $t->children($node);
    kill 'HUP', $node->{pid};
    $t->wait_for(sub { grep { !$old{$_} } $t->children($node) }, 20, 'new workers');
    return (time, keys %old);
}

sale($t, $redis, 1, stock => 2 * EACH);
$redis->{client}->sadd('seckill:order_users:{1}', 1 .. 2 * EACH);

# --- two reloads, then the results (A4)

my @gone;
for my $n (1, 2) {
    my @crowd = come();
    my ($began, @old) = reload();
    push @gone, @old;
    hear(10, @crowd);
    ended_well($began, "reload $n", @crowd);
}

my @crowd = come();
my $script = q{for i = 1, ARGV[1] do
    redis.call('SET', 'seckill:result:' .. string.format('%d', i) .. ':{1}', ARGV[2])
    redis.call('PUBLISH', KEYS[1], string.format('%d ', i) .. ARGV[2]) end};
$redis->{client}->eval($script, 1, 'seckill:results:{1}', 2 * EACH, RESULT);
hear(10, @crowd);
is(scalar(grep { $_->{ended} && $_->{text} =~ /\{"code":1,.*"order_id":9,/ } @crowd), 2 * EACH, 'the new workers tell all of them the result');
my %gone = map { $_ => 1 } @gone;
$t->wait_for(sub { !grep { $gone{$_} } $t->children($node) }, 10, 'the old workers');
is(scalar($t->children($node)), 2, '... and no old worker is left');

# --- clients that go, by FIN and by RST (A5)

$redis->{client}->eval(q{for i = 1, ARGV[1] do redis.call('DEL', 'seckill:result:' .. string.format('%d', i) .. ':{1}') end},
                       1, 'seckill:results:{1}', 2 * EACH);
# nodes know the orders: a restart forgets them
$t->stop($node);
$t->restart($node);
@crowd = come();
for my $i (0 .. $#crowd) {
    setsockopt $crowd[$i]{socket}, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0 if $i % 2;
    close $crowd[$i]{socket};
}
my $began = time;
$t->wait_for(sub { waiters() == 0 }, 10, 'nobody to wait');
cmp_ok(time - $began, '<', 2 * $slow, 'a thousand clients that go are forgotten at once');
$t->wait_for(sub { ($redis->{client}->pubsub('CHANNELS') // [])->@* == 0 }, 5, 'no subscription');
pass('... and so is the subscription');

# --- Redis dies

@crowd = come();
$began = time;
$t->kill9($redis);
hear(10, @crowd);
ended_well($began, 'Redis is lost', @crowd);
is(waiters(), 0, '... and nobody waits for what can not come');
unlike($t->log_text($node), qr/\[(?:alert|crit|emerg)\]|request count is zero/, 'nothing bad in the log');

done_testing;
