# What a reviewer with bad intentions found: each of these broke the module once.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use IO::Select ();
use IO::Socket::INET ();
use Socket ();
use Time::HiRes ();

our $Other;

BEGIN {
    # a second Redis, of another shop
    $Other = SeckillNginx::seckill_test()->redis;
    $ENV{TEST_NGINX_OTHER_REDIS} = "unix:$Other->{sock}";
}

log_level('info');
master_on();
run_tests();

sub main::connection {
    return IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => Test::Nginx::Socket::server_port_for_client()) || die "connect: $!\n";
}

# Closes with a TCP reset.
sub main::reset_connection {
    my ($socket) = @_;
    setsockopt $socket, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack('ii', 1, 0);
    close $socket;
    return;
}

# Reads until the end or until the time is over; undef when it did not end.
sub main::until_end {
    my ($socket, $seconds) = @_;

    my ($text, $until) = ('', Time::HiRes::time() + $seconds);
    while ((my $left = $until - Time::HiRes::time()) > 0) {
        next if !IO::Select->new($socket)->can_read($left);
        return $text if !sysread $socket, $text, 65_536, length $text;
    }
    return;
}

sub main::master_and_worker {
    open my $fh, '<', Test::Nginx::Socket::server_root() . '/logs/nginx.pid' or die "no pid file: $!\n";
    chomp(my $pid = <$fh>);
    return ($pid, SeckillNginx::_workers($pid));
}

__DATA__

=== TEST 1: the client has gone before its purchase is refused (A7)
The answer cannot be sent, so the core ends the request; the code that reads the
body must not touch it afterwards.
--- sale: 1001 stock=5
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my (undef, $worker) = ::master_and_worker();
    my $purchase = "POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\n$::Alice\r\nContent-Length: 5\r\n\r\nwrong";
    for (1 .. 5) {
        kill 'STOP', $worker;
        my @sockets = map { my $s = ::connection(); syswrite $s, $purchase; $s } 1 .. 20;
        ::reset_connection($_) for @sockets;
        kill 'CONT', $worker;
        ::crowd(['GET', '/seckill/1001']);
    }
    Test::More::is((::master_and_worker())[1], $worker, 'the worker lives');
}]
--- no_error_log
exited on signal
exited with code 1



=== TEST 2: a slow body does not use up the time for Redis
--- sale: 1001 stock=5
--- redis eval
'SET seckill:session:' . Digest::SHA::sha256_hex('opaque') . ' 1001'
--- seckill
    seckill_auth redis;
    seckill_redis_timeout 200ms;
    seckill_redis_connect_timeout 1s;
    seckill_timeout 400ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $socket = ::connection();
    syswrite $socket, "POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    . "Authorization: Bearer opaque\r\nContent-Length: 14\r\n\r\n{\"quantity\"";
    Time::HiRes::sleep(0.8);
    syswrite $socket, ':1}';
    Test::More::like(::until_end($socket, 5), qr/"code":0,/, 'sold');
}]



=== TEST 3: no wait begins in a worker that ends (A3, A4)
The request that asked before the reload hears from Redis only after it.
--- sale: 1001 stock=5
--- seckill
    seckill_redis_timeout 3s;
    seckill_redis_connect_timeout 3s;
    seckill_timeout 5s;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    Time::HiRes::sleep(1.2);                # the facts grow old
    my ($master, $worker) = ::master_and_worker();
    ::redis_stop();
    my $socket = ::connection();
    syswrite $socket, "GET /seckill/result/1001 HTTP/1.1\r\nHost: localhost\r\n$::Alice\r\nAccept: text/event-stream\r\n\r\n";
    Time::HiRes::sleep(0.3);
    kill 'HUP', $master;
    Time::HiRes::sleep(0.7);
    ::redis_cont();
    my $text = ::until_end($socket, 4);
    Test::More::like($text, qr/"code":0,/, 'the client is told to come again');
    my $gone = eval { ::seckill_test()->wait_for(sub { !kill 0, $worker }, 3, 'the old worker'); 1 };
    Test::More::ok($gone, 'the old worker ends');
}]



=== TEST 4: the same activity in two Redis: a result belongs to its own
--- sale: 1001 stock=5
--- config
    location /seckill/ { seckill on; }
    location /other/ { seckill on; seckill_redis $TEST_NGINX_OTHER_REDIS; }
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my $other = $main::Other->{client};
    $other->hset('seckill:control', 'rev', 1);
    $other->hset('seckill:control', 'token_key', '0' x 64);
    $other->hset('seckill:activity:{1001}', 'state', 'open');
    $other->sadd('seckill:order_users:{1001}', 1001);

    my %socket;
    for my $shop (qw(seckill other)) {
        $socket{$shop} = ::connection();
        syswrite $socket{$shop}, "GET /$shop/result/1001?wait=2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n$::Alice\r\n\r\n";
        Time::HiRes::sleep(0.3);
    }
    my $result = '{"success":true,"order_id":%d,"order_no":"26112910203040500100100000011001"}';
    $other->publish('seckill:results:{1001}', '1001 ' . sprintf $result, 77);
    Test::More::like(::until_end($socket{other}, 5), qr/"order_id":77,/, 'the other shop tells its result');
    Test::More::like(::until_end($socket{seckill}, 5), qr/"code":0,/, 'and this one nothing');
}]



=== TEST 5: no key for queue tokens: one line a second, not one a request
--- sale: 1001 stock=5
--- redis
HDEL seckill:control token_key
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 100);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":50302,/ } @answers), 100, 'all are told that nothing was taken');
    Test::More::cmp_ok(::log_count(qr/no key for queue tokens/), '<', 20, 'in few lines');
}]



=== TEST 6: made-up ids do not become a crowd of reads
--- sale: 1001 stock=5
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my ($id, $begin, $refused) = (5000, Time::HiRes::time(), 0);
    for (1 .. 5) {
        my $socket = ::connection();
        my $child = fork // die "fork: $!\n";
        if ($child == 0) {
            print {$socket} map { "GET /seckill/$_ HTTP/1.1\r\nHost: localhost\r\n"
                                  . ($_ % 900 == 899 ? "Connection: close\r\n" : '') . "\r\n" } $id + 1000 .. $id + 1899;
            $socket->flush;
            require POSIX;
            POSIX::_exit(0);
        }
        $id += 900;
        my $text = ::until_end($socket, 20) // '';
        waitpid $child, 0;
        $refused += () = $text =~ /"code":50302,/g;
    }
    my $most = 1000 * (2 + int(Time::HiRes::time() - $begin)) + 10;
    my ($reads) = ::redis('INFO', 'commandstats') =~ /cmdstat_hmget:calls=(\d+)/;
    Test::More::cmp_ok($reads // 0, '<=', $most, 'a thousand a second are asked for');
    my ($answer) = ::crowd(['GET', '/seckill/1001']);
    Test::More::like($answer->{body}, qr/"running"/, 'an activity that is known goes on');
}]



=== TEST 7: a client that left before its request was read does not wait (A5)
--- sale: 1001 stock=5
--- config
    location /seckill/ { seckill on; }
    location = /status { seckill_status; }
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my (undef, $worker) = ::master_and_worker();
    kill 'STOP', $worker;
    my @sockets = map {
        my $s = ::connection();
        syswrite $s, "GET /seckill/result/1001?wait=50 HTTP/1.1\r\nHost: localhost\r\n$::Alice\r\n\r\n";
        $s;
    } 1 .. 8;
    close $_ for @sockets[0 .. 3];
    ::reset_connection($_) for @sockets[4 .. 7];
    kill 'CONT', $worker;
    Time::HiRes::sleep(1);
    my ($status) = ::crowd(['GET', '/status']);
    Test::More::like($status->{body}, qr/^seckill_waiters 0$/m, 'nobody waits');
}]
