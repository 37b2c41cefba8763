# The misbehaving Redis misbehaves as told: with a real one behind it, and alone.

use strict;
use warnings;

use File::Basename qw(dirname);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Test::More;
use Time::HiRes qw(time);

use lib dirname(__FILE__) . '/../lib';
use FakeRedis;
use SeckillTest;

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $fake  = FakeRedis->new(dir => $t->dir, real => $redis->{sock});

sub client {
    my ($to) = @_;

    my $socket = IO::Socket::UNIX->new(Peer => ($to // $fake)->sock) or die "connect: $!";
    $socket->autoflush(1);
    return $socket;
}

# Sends a command and returns what comes within the time, or until the end.
sub ask {
    my ($socket, $line, $seconds) = @_;

    my @words = split ' ', $line;
    local $SIG{PIPE} = 'IGNORE';
    print {$socket} '*' . @words . "\r\n" . join '', map { '$' . length($_) . "\r\n$_\r\n" } @words;

    return hear($socket, $seconds);
}

sub hear {
    my ($socket, $seconds) = @_;

    my $text = '';
    my $end  = time + ($seconds // 0.2);
    while ((my $left = $end - time) > 0) {
        next if !IO::Select->new($socket)->can_read($left);
        my $n = sysread $socket, $text, 65_536, length $text;
        return "$text<closed>" if !$n;
        $end = time + 0.03 if !defined $seconds;    # what belongs together
    }
    return $text;
}

# --- through to the real one

my $c = client();
is(ask($c, 'SET a 1'), "+OK\r\n", 'a command reaches Redis');
is(ask($c, 'GET a'), "\$1\r\n1\r\n", 'and its answer comes back');
is(ask($c, 'GET none'), "\$-1\r\n", 'nil');
is(ask($c, 'LRANGE none 0 -1'), "*0\r\n", 'an empty array');
is(ask($c, 'EVAL return{1,{2,"x"},false} 0'), "*3\r\n:1\r\n*2\r\n:2\r\n\$1\r\nx\r\n\$-1\r\n", 'nested arrays');
is(ask($c, 'NONSENSE'), "-ERR unknown command 'NONSENSE', with args beginning with: \r\n", 'an error');

print {$c} "PING\r\nPING\r\n*1\r\n\$4\r\nPING\r\n";
is(hear($c), "+PONG\r\n" x 3, 'pipelined commands, inline ones too');

my $big = 'x' x 200_000;
is(length ask($c, "SET big $big"), 5, 'a large command');
is(length ask($c, 'GET big', 1), 200_011, 'a large answer');

my $tcp = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $fake->port) or die $!;
is(ask($tcp, 'GET a'), "\$1\r\n1\r\n", 'over TCP');

is_deeply([$fake->commands('GET')], ['GET a', 'GET none', 'GET big', 'GET a'], 'it remembers what it heard');
is(scalar $fake->commands('CONNECT'), 2, 'and who came');

# --- each action

sub rule {
    my ($rules) = @_;

    $fake->clear($rules);
    return client();
}

$c = rule('GET: error LOADING Redis is loading');
is(ask($c, 'GET a'), "-LOADING Redis is loading\r\n", 'error');
is(ask($c, 'get a'), "-LOADING Redis is loading\r\n", 'whatever the case');
is(ask($c, 'SET b 1'), "+OK\r\n", 'other commands pass');

$c = rule("GET 2: error TWO\nGET 3-4: error THREE\nGET 6+: error SIX");
is(join('', map { ask($c, 'GET a') } 1 .. 7),
   "\$1\r\n1\r\n-TWO\r\n-THREE\r\n-THREE\r\n\$1\r\n1\r\n-SIX\r\n-SIX\r\n", 'counts');
is(ask(client(), 'GET a'), "-SIX\r\n", 'counts are common to all connections');

$c = rule("GET /^GET b/: error B\nGET: error OTHER");
is(ask($c, 'GET a') . ask($c, 'GET b'), "-OTHER\r\n-B\r\n", 'patterns, and the first rule that fits');

$c = rule('SCRIPT LOAD: error NO');
is(ask($c, 'SCRIPT LOAD x') . ask($c, 'SCRIPT EXISTS x'), "-NO\r\n*1\r\n:0\r\n", 'a command of two words');

$c = rule('GET: reply [1 "a b" nil [+OK :7] -ERR]');
is(ask($c, 'GET a'), "*5\r\n:1\r\n\$3\r\na b\r\n\$-1\r\n*2\r\n+OK\r\n:7\r\n-ERR\r\n", 'reply');

$c = rule('SET: close');
is(ask($c, 'SET a 2'), '<closed>', 'close');
is(ask(client(), 'GET a'), "\$1\r\n1\r\n", 'before it ran');

$c = rule('SET: run close');
is(ask($c, 'SET a 3'), '<closed>', 'run close');
is(ask(client(), 'GET a'), "\$1\r\n3\r\n", 'after it ran');

$c = rule('SET: silent');
is(ask($c, 'SET a 4') . ask($c, 'PING'), '', 'silent');
is(ask(client(), 'GET a'), "\$1\r\n3\r\n", 'without running it');

$c = rule('SET: run silent');
is(ask($c, 'SET a 5'), '', 'run silent');
is(ask(client(), 'GET a'), "\$1\r\n5\r\n", 'after it ran');

$c = rule('SET: delay 150');
is(ask($c, 'SET a 6', 0.1), '', 'delay: nothing yet');
is(ask(client(), 'GET a'), "\$1\r\n6\r\n", 'but it ran');
is(hear($c, 0.3), "+OK\r\n", 'the answer comes later');

$c = rule('SET: stall 150');
is(ask($c, 'SET a 7', 0.05), '', 'stall: nothing yet');
is(ask(client(), 'GET a'), "\$1\r\n6\r\n", 'and it has not run');
is(hear($c, 0.3), "+OK\r\n", 'until later');

$c = rule('GET: bytes 5');
is(ask($c, 'GET a', 0.2), "\$1\r\n7\r\n", 'bytes');

$c = rule("GET 1: half\nGET 2: half close");
is(ask($c, 'GET a'), "\$1\r", 'half');
is(ask(client(), 'GET a'), "\$1\r<closed>", 'half close');

$c = rule('GET: twice');
is(ask($c, 'GET a'), "\$1\r\n7\r\n" x 2, 'twice');

$c = rule('GET: garbage');
unlike(ask($c, 'GET a'), qr/^[-+:\$*]/, 'garbage is not the Redis protocol');

$c = rule("CONNECT 1: close\nCONNECT 2: error ERR max number of clients reached");
is(ask($c, 'PING'), '<closed>', 'a connection is closed at once');
is(hear(client()), "-ERR max number of clients reached\r\n", 'or greeted');

$c = rule('');
is(ask($c, 'PING'), "+PONG\r\n", 'no rules');
$fake->rules('PING 2: error LATER');
is(ask($c, 'PING'), "-LATER\r\n", 'new rules at once, counts go on');

for my $bad ('GET', 'GET: shout', 'GET 1-: close', 'GET: delay', 'GET: error') {
    ok(!eval { $fake->clear($bad); 1 }, "\"$bad\" is no rule");
}

$fake->clear('');
$fake->stop;
is(ask($c, 'PING'), '<closed>', 'stop ends the connections');
$fake->start;
is(ask(client(), 'PING'), "+PONG\r\n", 'start serves again');

# --- alone

my $alone = FakeRedis->new(dir => $t->dir, name => 'alone', rules => 'EVALSHA 2: reply [1 2 "3"]');
$c = client($alone);
is(ask($c, 'AUTH user secret') . ask($c, 'SELECT 3') . ask($c, 'PING'), "+OK\r\n+OK\r\n+PONG\r\n", 'a handshake');
is(ask($c, 'SCRIPT LOAD x'), "\$40\r\n11f6ad8ec52a2984abaafd7c3b516503785c2072\r\n", 'a script');
like(ask($c, 'EVALSHA x 0'), qr/^-NOSCRIPT /, 'that it does not run');
is(ask($c, 'EVALSHA x 0'), "*3\r\n:1\r\n:2\r\n\$1\r\n3\r\n", 'unless it is told what to answer');
like(ask($c, 'TIME'), qr/^\*2\r\n\$10\r\n\d{10}\r\n\$\d\r\n\d+\r\n|^\*2\r\n\$10\r\n\d{10}\r\n\$\d+\r\n\d+\r\n$/, 'TIME');
is(ask($c, 'GET a'), "\$-1\r\n", 'nil for the rest');

my $pid = $alone->pid;
undef $alone;
ok(!kill(0, $pid), 'it ends with its object');

done_testing();
