# Directives: where they may stand, what is inherited, and what they do together.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: settings of http, server and location reach nested locations (A13)
--- sale: 1001 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    seckill_messages en;
--- config
    seckill_limit off;
    seckill_rest_status on;

    location /seckill/ {
        seckill on;

        location /seckill/inner/ {
            seckill_messages zh;

            location /seckill/inner/most/ {
                seckill_rest_status off;
            }
        }
    }
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/inner/1001", "POST /seckill/inner/most/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[202, 409, 409, 200]
--- response_body_like eval
[qr/"message":"queueing"/, qr/"message":"already taken part"/, qr/"message":"您已参与过该活动"/, qr/"message":"您已参与过该活动"/]



=== TEST 2: inside "if" (A13)
--- sale: 1001 stock=10
--- config
    location /seckill/ {
        seckill on;
        seckill_limit off;

        if ($arg_v) {
            set $dummy 1;
        }
    }
    location /other/ {
        if ($arg_v) {
            seckill on;
        }
        return 418;
    }
--- request eval
["POST /seckill/1001?v=1", "POST /seckill/1001", "POST /other/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[200, 200, 418]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/, qr/^$/]



=== TEST 3: keys of an inner level replace those of the outer
--- sale: 1001 stock=10
--- seckill eval
::write_key('inner.key', 'an inner key of some thirty bytes');
""
--- config
    location /seckill/ {
        seckill on;
        location /seckill/in/ { seckill_auth_key_file $TEST_NGINX_DIR/inner.key; }
    }
--- request eval
["POST /seckill/1001", "POST /seckill/in/1001", "POST /seckill/in/1001"]
--- more_headers eval
[$::Alice, $::Bob, ::bearer(::token(3, key => 'an inner key of some thirty bytes'))]
--- error_code eval
[200, 401, 200]



=== TEST 4: two entries with two databases, side by side
--- sale: 1001 stock=10
--- config
    location /a/ { seckill on; }
    location /b/ { seckill on; seckill_redis $TEST_NGINX_REDIS db=5; }
    location /c/ { seckill on; seckill_prefix other; }
--- request eval
["POST /a/1001", "POST /b/1001", "POST /c/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[200, 503, 503]
--- response_body_like eval
[qr/"code":0,/, qr/"code":50302,/, qr/"code":50302,/]



=== TEST 5: where it is off, nothing is missing
--- http_config
    seckill_limit rate=5r/s;
--- config
    location /seckill/ { seckill off; return 200 "fine\n"; }
--- request
GET /seckill/1001
--- response_body
fine



=== TEST 6: a limit with a burst but another file of keys is fine
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=10r/s burst=5;
    seckill_batch 256;
    seckill_max_pending 1;
    seckill_redis_connections 1;
    seckill_redis_timeout 1s;
    seckill_redis_connect_timeout 50ms;
    seckill_timeout 2s;
    seckill_negative 1s;
    seckill_refresh 100ms;
    seckill_body_max 100;
    seckill_auth_leeway 10s;
    seckill_auth_claim sub;
    seckill_auth_alg HS256;
--- request eval
["POST /seckill/1001\n{\"quantity\":1}", "GET /seckill/result/1001", "GET /seckill/1001"]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, qr/"code":0,/, qr/"code":0,/]



=== TEST 7: a time of each level (A13)
--- sale: 1001 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_FAKE;
    seckill_auth_key_file $TEST_NGINX_KEY;
    seckill_limit off;
    seckill_redis_timeout 3s;
    seckill_timeout 4s;
--- config
    seckill_redis_timeout 1500ms;

    location /seckill/ {
        seckill on;

        location /seckill/inner/ { seckill_redis_timeout 200ms; }
        location /seckill/same/ { seckill_messages en; }
    }
--- fake_redis
EVALSHA: silent
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @seconds = map {
        my ($answer) = ::crowd(['POST', "/seckill/${_}1001", $::Alice]);
        Test::More::like($answer->{body}, qr/"code":50301,/, "$_: no answer");
        $answer->{seconds} // 99;
    } 'inner/', '', 'same/';
    Test::More::cmp_ok($seconds[0], '<', 1.4, 'the innermost time counts');
    Test::More::cmp_ok($_, '>=', 1.4, 'that of the server, where there is none') for @seconds[1, 2];
    Test::More::cmp_ok($_, '<', 2.9, 'and not that of http') for @seconds[1, 2];
}]
