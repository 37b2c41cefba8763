# When a buyer is told to ask again: 3 x 500 ms from the purchase on, then every 2 s,
# later under load; and a result that the node knows costs no Redis any more.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use Time::HiRes ();

log_level('info');
run_tests();

sub main::pause { my ($seconds) = @_; return sub { Time::HiRes::sleep($seconds) } }

# Purchases that Redis does not answer; they end when the sockets close.
sub main::stalled {
    my (@users) = @_;

    return map {
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
            PeerPort => Test::Nginx::Socket::server_port_for_client()) or die "cannot connect: $!\n";
        print {$socket} "POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\n" . ::bearer(::token($_)) . "\r\n\r\n";
        $socket;
    } @users;
}

# When Alice is told to ask again.
sub main::poll_after {
    my ($answer) = ::crowd(['GET', '/seckill/result/1001', $::Alice]);
    return $answer->{body} =~ /"poll_after_ms":(\d+)/ ? $1 : $answer->{body};
}

# The purchases arrive, or go, in their own time.
sub main::told {
    my ($ms, $why) = @_;

    my ($end, $told) = (Time::HiRes::time() + 4);
    do { $told = ::poll_after() } while ($told ne $ms && Time::HiRes::time() < $end);
    Test::More::is($told, $ms, $why);
    return;
}

__DATA__

=== TEST 1: half a second after the purchase and twice more, then two seconds
--- sale: 1001 stock=5
--- request eval
["POST /seckill/1001", ("GET /seckill/result/1001") x 4]
--- more_headers eval: $::Alice
--- after eval
[::pause(0.5), ::pause(0.4), ::pause(0.6), ::pause(2)]
--- response_body_like eval
[qr/"poll_after_ms":500[,}]/, qr/"poll_after_ms":500\}/, qr/"poll_after_ms":500\}/,
 qr/"poll_after_ms":2000\}/, qr/"poll_after_ms":2000\}/]



=== TEST 2: asking faster does not make the first steps longer, nor another buyer's time
--- sale: 1001 stock=5
--- redis: SADD seckill:order_users:{1001} 1001 1002
--- request eval
[("GET /seckill/result/1001") x 9]
--- more_headers eval
[($::Alice) x 8, $::Bob]
--- after eval
[(undef) x 6, ::pause(0.8)]
--- response_body_like eval
[(qr/"poll_after_ms":500\}/) x 7, qr/"poll_after_ms":2000\}/, qr/"poll_after_ms":500\}/]



=== TEST 3: who posts again is told the same
--- sale: 1001 stock=5
--- seckill
    seckill_limit off;
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- after eval
[undef, ::pause(0.8)]
--- response_body_like eval
[qr/"code":0,.*"poll_after_ms":500\}/, qr/"code":40004,.*"poll_after_ms":500\}/, qr/"code":40004,.*"poll_after_ms":2000\}/]



=== TEST 4: a long poll that ends without a result counts its own time
--- sale: 1001 stock=5
--- request eval
["POST /seckill/1001", "GET /seckill/result/1001?wait=1"]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"poll_after_ms":500\}/, qr/"code":0,.*"poll_after_ms":2000\}/]



=== TEST 5: the more purchases wait, the later; and no later when they are gone
--- sale: 1001 stock=50
--- redis: SADD seckill:order_users:{1001} 1001
--- seckill
    seckill_limit off;
    seckill_max_pending 10;
    seckill_redis_timeout 8s;
    seckill_timeout 9s;
--- fake_redis
EVALSHA /seckill:stock:/: silent
--- request
GET /seckill/result/1001
--- more_headers eval: $::Alice
--- response_body_like: "poll_after_ms":500\}
--- after eval
[sub {
    Time::HiRes::sleep(0.8);
    my @sockets = ::stalled(2001 .. 2005);
    ::told(6000, 'half of seckill_max_pending: three times as long');
    push @sockets, ::stalled(2006 .. 2010);
    ::told(10_000, 'all of it: 2 s have become 10 s');
    my ($busy) = ::crowd(['POST', '/seckill/1001', ::bearer(::token(2011))]);
    Test::More::like($busy->{body}, qr/"code":50302,/, 'the next purchase is refused');
    Test::More::is(::poll_after(), 10_000, 'and it gets no longer');
    close $_ for @sockets;
    ::told(2800, 'nobody waits any more: what is left is the one call that Redis owes');
}]



=== TEST 6: a result that the node knows is told from memory
--- sale: 1001 stock=5
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":true,\"order_id\":9,\"order_no\":\"26112910203040500100100000011001\"}"
--- request eval
[("GET /seckill/result/1001") x 5, "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- response_body_like eval
[(qr/"code":1,.*"order_id":9,/) x 5, qr/"code":40004,.*"order_id":9,/]
--- redis_calls
SISMEMBER => 1
EVALSHA => 0
