# Opaque tokens that Redis knows, and users that another module found.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: a session in Redis gives the user
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
--- redis
SET seckill:session:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b 77
--- request
POST /seckill/1001
--- more_headers
Authorization: Bearer secret
--- response_body_like: "code":0,
--- redis_check
SMEMBERS seckill:order_users:{1001} => 77



=== TEST 2: an unknown session, and one that is no user id
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
--- redis
SET seckill:session:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b 077
--- request eval
[("POST /seckill/1001") x 4]
--- more_headers eval
["Authorization: Bearer secret", "Authorization: Bearer other", $::Alice, "X-None: 1"]
--- error_code eval
[401, 401, 401, 401]
--- response_headers eval
[("WWW-Authenticate: Bearer") x 4]
--- redis_check
SCARD seckill:order_users:{1001} => 0



=== TEST 3: a session key of the wrong type is nobody's word
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
--- redis
SADD seckill:session:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b 77
--- request
POST /seckill/1001
--- more_headers
Authorization: Bearer secret
--- error_code: 503
--- response_body_like: "code":50302,
--- redis_check
SCARD seckill:order_users:{1001} => 0



=== TEST 4: what can be refused without the session is refused first
--- sale
1001 start=+1h end=+2h
--- seckill
    seckill_auth redis;
--- request
POST /seckill/1001
--- more_headers
Authorization: Bearer secret
--- response_body_like: "code":40001,
--- fake_redis
--- fake_check
GETRANGE seckill:session: => 0



=== TEST 5: an oversized session token is refused without asking
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
--- request
POST /seckill/1001
--- more_headers eval
"Authorization: Bearer " . "a" x 5000
--- error_code: 401
--- fake_redis
--- fake_check
GETRANGE seckill:session: => 0



=== TEST 6: results by session
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
--- redis
SET seckill:session:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b 77
SADD seckill:order_users:{1001} 77
--- request
GET /seckill/result/1001
--- more_headers
Authorization: Bearer secret
--- response_body_like: "code":0,.*"state":"queueing"



=== TEST 7: a session lookup that Redis does not answer
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
    seckill_redis_timeout 400ms;
--- fake_redis
GETRANGE: silent
--- request
POST /seckill/1001
--- more_headers
Authorization: Bearer secret
--- error_code: 503
--- response_body_like: "code":50302,
--- error_log
lost
--- redis_check
SCARD seckill:order_users:{1001} => 0



=== TEST 8: a variable is trusted
--- sale: 1001 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    map $http_x_user $buyer { default $http_x_user; }
--- config
    location /seckill/ { seckill on; seckill_auth $buyer; }
--- request eval
["POST /seckill/1001", "GET /seckill/result/1001"]
--- more_headers
X-User: 4711
--- response_body_like eval
[qr/"code":0,/, qr/"state":"queueing"/]
--- redis_check
SMEMBERS seckill:order_users:{1001} => 4711



=== TEST 9: a variable that is empty or no id is nobody
--- sale: 1001 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
--- config
    location /seckill/ { seckill on; seckill_auth $http_x_user; }
--- pipelined_requests eval
[("POST /seckill/1001") x 8]
--- more_headers eval
["X-None: 1", "X-User:", "X-User: 0", "X-User: 01", "X-User: -1", "X-User: 7 8", "X-User: abc",
 "X-User: 18446744073709551616"]
--- error_code eval
[(401) x 8]
--- redis_check
SCARD seckill:order_users:{1001} => 0



=== TEST 10: auth_request finds the user
--- sale: 1001 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    server {
        listen unix:$TEST_NGINX_DIR/who.sock;
        location / {
            if ($http_cookie != "sid=abc") { return 401; }
            add_header X-User 815;
            return 200;
        }
    }
--- config
    location /seckill/ {
        auth_request /who;
        auth_request_set $who $upstream_http_x_user;
        seckill on;
        seckill_auth $who;
    }
    location = /who {
        internal;
        proxy_pass http://unix:$TEST_NGINX_DIR/who.sock;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
    }
--- request eval
["POST /seckill/1001\n{\"quantity\":1}", "POST /seckill/1001\n{\"quantity\":1}"]
--- more_headers eval
["Cookie: sid=abc", "Cookie: sid=x"]
--- error_code eval
[200, 401]
--- redis_check
SMEMBERS seckill:order_users:{1001} => 815



=== TEST 11: where a variable is trusted, a token is not looked at
--- sale: 1001 stock=10
--- config
    location /seckill/ { seckill on; seckill_auth $http_x_user; }
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 401
