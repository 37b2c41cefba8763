# Addresses that a client makes up (C17), under the limits of the sample configuration.

use SeckillNginx;
use Soak ();
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

# How many answers of a crowd have which code, or which status when it is not ours.
sub main::codes {
    my %codes;
    $codes{ $_->{body} =~ /"code":(\d+)/ ? $1 : "status $_->{status}" }++ for @_;
    return CORE::join ' ', map {"$_:$codes{$_}"} sort keys %codes;
}

__DATA__

=== TEST 1: a hundred addresses made up: one address to the limit, one user to ours (C17)
--- sale: 1001 stock=10
--- http_config
    limit_req_zone $binary_remote_addr zone=address:1m rate=1r/m;
    limit_req_status 429;
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_redis_timeout 2s;
    seckill_timeout 5s;
    seckill_auth_key_file $TEST_NGINX_KEY;
    seckill_limit rate=1r/m;
    set_real_ip_from 10.0.0.0/8;
    real_ip_header X-Forwarded-For;
--- config
    location /seckill/ {
        limit_req zone=address burst=19 nodelay;
        seckill on;
    }
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', "$::Alice\r\nX-Forwarded-For: 203.0.113.$_\r\nX-Real-IP: 203.0.113.$_"] } 1 .. 100);
    Test::More::is(::codes(@answers), '0:1 40003:18 status 429:81', 'counted as one user at one address');
}]
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 2: behind a proxy that is trusted, a client cannot speak for its victim (C17)
--- sale: 1001 stock=10
--- http_config
    limit_req_zone $binary_remote_addr zone=address:1m rate=1r/m;
    limit_req_status 429;
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_redis_timeout 2s;
    seckill_timeout 5s;
    seckill_auth_key_file $TEST_NGINX_KEY;
    set_real_ip_from 127.0.0.1;
    real_ip_header X-Forwarded-For;
--- config
    location /seckill/ {
        limit_req zone=address burst=4 nodelay;
        seckill on;
    }
--- request
GET /seckill/1001
--- more_headers
X-Forwarded-For: 203.0.113.99
--- response_body_like: "running"
--- after eval
[sub {
    # the proxy adds the address that it sees behind what the client claims
    my @attack = map { ['POST', '/seckill/1001', "$::Bob\r\nX-Forwarded-For: 203.0.113.7, 203.0.113.66"] } 1 .. 200;
    my @answers = map { ::crowd(@attack) } 1 .. Soak::soak(1, 5);
    Test::More::is(::codes(@answers), '0:1 40003:4 status 429:' . Soak::soak(195, 995), 'the one who claims is limited');
    @answers = ::crowd(['POST', '/seckill/1001', "$::Alice\r\nX-Forwarded-For: 203.0.113.7"]);
    Test::More::is(::codes(@answers), '0:1', 'the victim is not');
}]
--- redis_check
GET seckill:stock:{1001} => 8
