# Long poll and server-sent events: told when it happens, never missed, and ended
# explicitly by everything that makes messages unreliable.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use Time::HiRes ();

log_level('info');
master_on();
run_tests();

sub main::result_text { return '{"success":true,"order_id":9,"order_no":"26112910203040500100100000011001"}' }

# Does something a little later, in another process.
sub main::later {
    my ($seconds, @command) = @_;

    my $child = fork // die "fork: $!\n";
    if ($child == 0) {
        Time::HiRes::sleep($seconds);
        open STDOUT, '>', '/dev/null';
        exec 'redis-cli', '-s', $ENV{TEST_NGINX_REDIS} =~ s/^unix://r, @command;
    }
    return;
}

# A connection that waits for the result of a user.
sub main::waiter {
    my ($who, $query, $header) = @_;

    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => Test::Nginx::Socket::server_port_for_client()) or die;
    my $more = length $header ? "\r\n$header" : '';
    print {$s} "GET /seckill/result/1001$query HTTP/1.1\r\nHost: localhost\r\n$who$more\r\n\r\n";
    return $s;
}

# Asks as Alice and returns the text of the answer and the time it took.
sub main::ask {
    my ($path, $header) = @_;
    my ($answer) = ::crowd(['GET', $path, defined $header ? "$::Alice\r\n$header" : $::Alice]);
    return ($answer->{body}, $answer->{seconds} // 99);
}

__DATA__

=== TEST 1: a long poll is answered when the result is published
--- sale: 1001 stock=5
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    ::later(0.7, 'PUBLISH', 'seckill:results:{1001}', '1001 ' . ::result_text());
    my ($body, $seconds) = ::ask('/seckill/result/1001?wait=10');
    Test::More::like($body, qr/"code":1,.*"order_id":9,/, 'with the result');
    Test::More::cmp_ok($seconds, '>', 0.4, 'not before');
    Test::More::cmp_ok($seconds, '<', 4, 'and not after the time it may wait');
}]



=== TEST 2: another user's result wakes nobody
--- sale: 1001 stock=5
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    ::later(0.3, 'PUBLISH', 'seckill:results:{1001}', '1002 ' . ::result_text());
    my ($body, $seconds) = ::ask('/seckill/result/1001?wait=1');
    Test::More::like($body, qr/"code":0,.*"state":"queueing"/, 'still queueing');
    Test::More::cmp_ok($seconds, '>=', 0.9, 'after the whole time');
}]



=== TEST 3: a result that is there is told at once
--- sale: 1001 stock=5
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":false,\"reason\":\"over_limit\"}"
--- request
GET /seckill/result/1001?wait=20
--- more_headers eval: $::Alice
--- response_body_like: "code":2,.*"reason":"over_limit"
--- redis_check
PUBSUB CHANNELS => 



=== TEST 4: who never bought does not wait
--- sale: 1001 stock=5
--- request
GET /seckill/result/1001?wait=20
--- more_headers eval: $::Alice
--- response_body_like: "code":40006,



=== TEST 5: times that are none
--- sale: 1001 stock=5
--- request eval
["GET /seckill/result/1001?wait=x", "GET /seckill/result/1001?wait=-1", "GET /seckill/result/1001?wait=", "GET /seckill/result/1001?wait=0"]
--- more_headers eval
[($::Alice) x 4]
--- error_code eval
[400, 400, 400, 200]



=== TEST 6: events: queueing, then the result, then the end
--- sale: 1001 stock=5
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    ::later(0.5, 'PUBLISH', 'seckill:results:{1001}', '1001 ' . ::result_text());
    my ($body, $seconds) = ::ask('/seckill/result/1001', 'Accept: text/event-stream');
    Test::More::like($body, qr/retry: 1000\nid: queueing\nevent: result\ndata: \{"code":0,[^\n]*\}\n\n/, 'queueing first');
    Test::More::like($body, qr/id: final\nevent: result\ndata: \{"code":1,[^\n]*"order_id":9,[^\n]*\}\n\n/, 'then the order');
    Test::More::cmp_ok($seconds, '<', 4, 'and the stream ends');
}]



=== TEST 7: events by queue_token, which is all that an EventSource can send
--- sale: 1001 stock=5
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":true,\"order_id\":9,\"order_no\":\"26112910203040500100100000011001\"}"
--- request eval
["GET /seckill/result/1001?queue_token=" . ::ticket(1001, 1001), "GET /seckill/result/1001?queue_token=" . ::ticket(1001, 1001)]
--- more_headers eval
["Accept: text/event-stream", "Accept: text/event-stream\nLast-Event-ID: final"]
--- error_code eval
[200, 204]
--- response_headers_like eval
["Content-Type: text/event-stream\nCache-Control: no-store", ""]
--- response_body_like eval
[qr/id: final\nevent: result\ndata: \{"code":1,/, qr/^$/]



=== TEST 8: events need to know who asks, too
--- sale: 1001 stock=5
--- request
GET /seckill/result/1001
--- more_headers
Accept: text/event-stream
--- error_code: 401
--- response_headers
WWW-Authenticate: Bearer



=== TEST 9: no more waiters than allowed: a plain answer with a time to poll
--- sale: 1001 stock=5
--- seckill
    seckill_max_waiters 0;
--- request eval
["POST /seckill/1001", "GET /seckill/result/1001?wait=20", "GET /seckill/result/1001"]
--- more_headers eval
[$::Alice, $::Alice, "$::Alice\nAccept: text/event-stream"]
--- response_headers_like eval
["", "", "Content-Type: application/json; charset=utf-8"]
--- response_body_like eval
[qr/"code":0,/, qr/"poll_after_ms":500/, qr/"poll_after_ms":500/]



=== TEST 10: the subscription is lost: an explicit end within a second
--- sale: 1001 stock=5
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    ::later(0.5, 'CLIENT', 'KILL', 'TYPE', 'pubsub');
    my ($body, $seconds) = ::ask('/seckill/result/1001?wait=20');
    Test::More::like($body, qr/"code":0,.*"poll_after_ms"/, 'ask again');
    Test::More::cmp_ok($seconds, '<', 3, 'at once');
    ::later(0.5, 'CLIENT', 'KILL', 'TYPE', 'pubsub');
    ($body, $seconds) = ::ask('/seckill/result/1001', 'Accept: text/event-stream');
    Test::More::unlike($body, qr/final/, 'the stream ends without a result');
    Test::More::cmp_ok($seconds, '<', 3, 'at once');
}]



=== TEST 11: a worker that ends does not keep its waiters (A4)
--- sale: 1001 stock=5
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my $child = fork // die "fork: $!\n";
    if ($child == 0) {
        Time::HiRes::sleep(0.7);
        open my $fh, '<', Test::Nginx::Socket::server_root() . '/logs/nginx.pid' or POSIX::_exit(1);
        chomp(my $pid = <$fh>);
        kill 'HUP', $pid;
        require POSIX;
        POSIX::_exit(0);
    }
    my ($body, $seconds) = ::ask('/seckill/result/1001?wait=20');
    waitpid $child, 0;
    Test::More::like($body, qr/"code":0,/, 'the client is told to come again');
    Test::More::cmp_ok($seconds, '<', 5, 'at once');
    ::later(0.7, 'PUBLISH', 'seckill:results:{1001}', '1001 ' . ::result_text());
    ($body) = ::ask('/seckill/result/1001?wait=10');
    Test::More::like($body, qr/"code":1,/, 'the new worker tells it');
}]



=== TEST 12: two hundred wait for one result each
--- sale: 1001 stock=200
--- redis
EVAL "for i = 1, 200 do redis.call('SADD', KEYS[1], i) end" 1 seckill:order_users:{1001}
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::later(1.5, 'EVAL', "for i = 1, 200 do redis.call('PUBLISH', KEYS[1], i .. ' ' .. ARGV[1]) end", 1,
            'seckill:results:{1001}', ::result_text());
    my @answers = ::crowd(map { ['GET', '/seckill/result/1001?wait=15', ::bearer(::token($_))] } 1 .. 200);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":1,/ } @answers), 200, 'all are told');
    Test::More::is(::redis('PUBSUB', 'CHANNELS'), '', 'and nobody listens any more');
}]



=== TEST 13: clients that leave are forgotten (A5)
--- sale: 1001 stock=5
--- redis
EVAL "for i = 1, 20 do redis.call('SADD', KEYS[1], i) end" 1 seckill:order_users:{1001}
--- config
    location /seckill/ { seckill on; }
    location = /status { seckill_status; }
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my @sockets = map {
        my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => Test::Nginx::Socket::server_port_for_client()) or die;
        my $who = ::bearer(::token($_));
        print {$s} "GET /seckill/result/1001?wait=50 HTTP/1.1\r\nHost: localhost\r\n$who\r\n\r\n";
        $s;
    } 1 .. 20;
    select undef, undef, undef, 0.7;
    my ($status) = ::crowd(['GET', '/status']);
    Test::More::like($status->{body}, qr/^seckill_waiters 20$/m, 'twenty wait');
    close $_ for @sockets;
    select undef, undef, undef, 0.7;
    ($status) = ::crowd(['GET', '/status']);
    Test::More::like($status->{body}, qr/^seckill_waiters 0$/m, 'none is left');
    Test::More::is(::redis('PUBSUB', 'CHANNELS'), '', 'nor the subscription');
}]



=== TEST 14: a user has eight places in a worker, and the ninth is answered plainly
--- sale: 1001 stock=5
--- config
    location /seckill/ { seckill on; }
    location = /status { seckill_status; }
--- redis
SADD seckill:order_users:{1001} 1001 1002
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @sockets = map { ::waiter($::Alice, $_ % 2 ? '?wait=20' : '', $_ % 2 ? '' : 'Accept: text/event-stream') } 1 .. 8;
    select undef, undef, undef, 0.7;
    my ($body, $seconds) = ::ask('/seckill/result/1001?wait=20');
    Test::More::like($body, qr/^\{"code":0,.*"state":"queueing","poll_after_ms":\d+/, 'the ninth: not yet, and when to poll');
    Test::More::cmp_ok($seconds, '<', 5, '... at once');
    ($body, $seconds) = ::ask('/seckill/result/1001', 'Accept: text/event-stream');
    Test::More::like($body, qr/^\{"code":0,.*"poll_after_ms":\d+/, 'so is a stream');
    push @sockets, ::waiter($::Bob, '?wait=20', '');
    select undef, undef, undef, 0.5;
    my ($status) = ::crowd(['GET', '/status']);
    Test::More::like($status->{body}, qr/^seckill_waiters 9$/m, 'another user has his own places');
    close shift @sockets;
    select undef, undef, undef, 0.5;
    push @sockets, ::waiter($::Alice, '?wait=20', '');
    select undef, undef, undef, 0.5;
    ($status) = ::crowd(['GET', '/status']);
    Test::More::like($status->{body}, qr/^seckill_waiters 9$/m, 'a place that was left is free again');
    ::redis('PUBLISH', 'seckill:results:{1001}', '1001 ' . ::result_text());
    select undef, undef, undef, 0.7;
    ($status) = ::crowd(['GET', '/status']);
    Test::More::like($status->{body}, qr/^seckill_waiters 1$/m, 'all eight are told');
}]
