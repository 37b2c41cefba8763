# seckill_intercept_errors: the module's refusals go to error_page (F-K3).

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
no_root_location();
run_tests();

__DATA__

=== TEST 1: F-K3: off, which is the default: the module answers by itself
--- sale: 2 stock=10
--- config
    error_page 401 403 404 503 /busy.json;
    location = /busy.json { return 200 "a page"; }
    location /a/ { seckill on; }
    location /b/ { seckill on; seckill_intercept_errors off; }
--- request eval
["POST /a/2", "POST /b/2", "POST /a/x"]
--- error_code eval
[401, 401, 404]
--- response_body_like eval
[qr/"code":40100,/, qr/"code":40100,/, qr/"code":40400,/]



=== TEST 2: F-K3: on: the page, the status and the headers of the refusal
--- sale: 2 stock=10 state=closed
--- config
    error_page 401 404 405 503 /busy.json;
    location = /busy.json {
        default_type application/json;
        root $TEST_NGINX_SERVER_ROOT/html;
    }
    location /seckill/ { seckill on; seckill_intercept_errors on; }
--- user_files
>>> busy.json
{"page":1}
--- request eval
["POST /seckill/2", "GET /seckill/result/2", "GET /seckill/x", "PUT /seckill/2", "GET /seckill/2"]
--- more_headers eval
[$::Alice, ("X-None: 1") x 4]
--- error_code eval
[503, 401, 404, 405, 200]
--- response_headers eval
["Retry-After: 1\nContent-Type: application/json", "WWW-Authenticate: Bearer", "Cache-Control: no-store",
 "Allow: GET, HEAD, POST, OPTIONS", "Cache-Control: public, max-age=1"]
--- response_body_like eval
[(qr/^\{"page":1\}$/) x 4, qr/"state":"closed"/]



=== TEST 3: a status without a page is answered by the module; so is all that is 200
--- sale: 2 stock=10 start=+1h end=+2h
--- config
    error_page 503 /busy.json;
    location = /busy.json { return 200 "a page"; }
    location /seckill/ { seckill on; seckill_intercept_errors on; }
--- request eval
["POST /seckill/x", "POST /seckill/2", "OPTIONS /seckill/2"]
--- more_headers eval: $::Alice
--- error_code eval
[404, 200, 204]
--- response_body_like eval
[qr/"code":40400,/, qr/"code":40001,/, qr/^$/]



=== TEST 4: inherited from http and server, with a status of its own, named, and rest_status
--- sale: 2 stock=1
--- seckill
seckill_intercept_errors on;
seckill_rest_status on;
seckill_limit off;
--- config
    location /seckill/ {
        seckill on;
        error_page 410 =200 @gone;
        location /seckill/own/ { seckill_intercept_errors off; }
    }
    location @gone { return 200 "gone $request_method"; }
--- request eval
["POST /seckill/2", "POST /seckill/2\n{\"quantity\":1}", "POST /seckill/own/2"]
--- more_headers eval
[$::Alice, $::Bob, $::Bob]
--- error_code eval
[202, 200, 410]
--- response_body_like eval
[qr/"code":0,/, qr/^gone POST/, qr/"code":40005,/]
--- redis_check
GET seckill:stock:{2} => 0



=== TEST 5: when Redis was asked first, and behind a body; the log still knows the refusal
--- sale: 2 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis unix:$TEST_NGINX_DIR/nobody.sock;
    seckill_auth_key_file $TEST_NGINX_KEY;
    log_format refused '$seckill_verdict $seckill_code $status $seckill_request_id';
--- config
    access_log $TEST_NGINX_SERVER_ROOT/logs/refused.log refused;
    error_page 503 /busy.json;
    location = /busy.json { return 200 "a page"; }
    location /seckill/ { seckill on; seckill_intercept_errors on; }
--- pipelined_requests eval
["POST /seckill/2\n{\"quantity\":1}", "POST /seckill/2", "GET /seckill/result/2"]
--- more_headers eval
["$::Alice\nX-Request-ID: one", "$::Alice\nX-Request-ID: two", "$::Alice\nX-Request-ID: three"]
--- error_code eval
[503, 503, 503]
--- response_headers eval
[map { "X-Request-ID: $_\nRetry-After: 1" } qw(one two three)]
--- response_body_like eval
[(qr/^a page/) x 3]
--- after eval
[undef, undef, sub {
    open my $fh, '<', Test::Nginx::Socket::server_root() . '/logs/refused.log' or die "refused.log: $!";
    Test::More::is(CORE::join('', <$fh>), CORE::join('', map { "busy 50302 503 $_\n" } qw(one two three)), 'the log');
}]



=== TEST 6: an error page that comes back to a location that sells is told 40400
--- sale: 2 stock=10
--- config
    location /seckill/ {
        seckill on;
        seckill_intercept_errors on;
        error_page 401 = @again;
    }
    location @again { seckill on; }
--- request
POST /seckill/2
--- error_code: 404
--- response_body_like: "code":40400,
--- redis_check
GET seckill:stock:{2} => 10
