# Which paths and methods are served, under any prefix.  Forms of locations: 35-paths.t.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
no_root_location();
run_tests();

__DATA__

=== TEST 1: any prefix, also none
--- sale: 1001 stock=10
--- config
    location /api/v1/seckill/ { seckill on; }
    location /shop { seckill on; }
    location / { seckill on; }
--- request eval
["POST /api/v1/seckill/1001", "POST /shop/1001", "POST /1001", "GET /result/1001", "GET /shop/result/1001",
 "GET /1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Carol, $::Alice, $::Bob, "X-None: 1"]
--- response_body_like eval
[qr/"code":0,/, qr/"code":0,/, qr/"code":0,/, qr/"state":"queueing"/, qr/"state":"queueing"/, qr/"start_ms"/]
--- redis_check
GET seckill:stock:{1001} => 7



=== TEST 2: ids that are not canonical decimals are not found, without a Redis call (C15)
--- sale: 42 stock=10
--- pipelined_requests eval
[map { my $id = $_; map { "$_$id" } "POST /seckill/", "GET /seckill/", "GET /seckill/result/" }
     "042", "+42", "-42", "42abc", "0x2A", "4.2e1", "0", "18446744073709551616", "9" x 40, "42%2F",
     "%EF%BC%94%EF%BC%92", "", "42%20", "4%0A2", "42.0", "42;a=b", "%2B42", "result"]
--- more_headers eval: $::Alice
--- error_code eval
[(404) x 54]
--- response_body_like eval
[(qr/^\{"code":40400,"message":"地址不存在","data":null,"server_time_ms":\d{13}\}$/) x 54]
--- redis_calls
EVALSHA => 0
HMGET => 0
GET => 0
--- redis_check
GET seckill:stock:{42} => 10



=== TEST 3: an escaped id is the id, on every address (C15)
--- sale: 42 stock=10
--- request eval
["POST /seckill/%34%32", "GET /seckill/%34%32", "GET /seckill/result/%34%32"]
--- more_headers eval
[$::Alice, "X-None: 1", $::Alice]
--- response_body_like eval
[qr/"code":0,.*"activity":"42"/, qr/"activity":"42"/, qr/"code":0,/]



=== TEST 4: a NUL in the path is refused by nginx
--- sale: 42 stock=10
--- request eval
["POST /seckill/42%00", "GET /seckill/result/42%00"]
--- more_headers eval: $::Alice
--- error_code eval
[400, 400]
--- redis_check
GET seckill:stock:{42} => 10



=== TEST 5: arguments do not matter to the path
--- sale: 1001 stock=10
--- request
POST /seckill/1001?activity=7&quantity=5
--- more_headers eval: $::Alice
--- response_body_like: "activity":"1001","quantity":1,
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 6: OPTIONS needs no token and says what is allowed (A12)
--- sale: 1001 stock=10
--- request eval
["OPTIONS /seckill/1001", "OPTIONS /seckill/result/1001"]
--- error_code eval
[204, 204]
--- response_headers eval
["Allow: GET, HEAD, POST, OPTIONS\n!Content-Length\n!WWW-Authenticate",
 "Allow: GET, HEAD, OPTIONS\n!Content-Length"]
--- response_body eval
["", ""]
--- redis_calls
EVALSHA => 0



=== TEST 7: other methods are refused, and sell nothing (A12)
--- sale: 1001 stock=10
--- pipelined_requests eval
[map { ("$_ /seckill/1001", "$_ /seckill/result/1001") } qw(PUT DELETE PATCH PROPFIND BREW)]
--- more_headers eval: $::Alice
--- error_code eval
[(405) x 10]
--- response_headers eval
[("Allow: GET, HEAD, POST, OPTIONS", "Allow: GET, HEAD, OPTIONS") x 5]
--- response_body_like eval
[(qr/^\{"code":40500,"message":"请求方法不支持","data":null,/) x 10]
--- redis_check
GET seckill:stock:{1001} => 10
--- redis_calls
EVALSHA => 0



=== TEST 8: a result is not posted (A12)
--- sale: 1001 stock=10
--- request
POST /seckill/result/1001
--- more_headers eval: $::Alice
--- error_code: 405
--- response_headers
Allow: GET, HEAD, OPTIONS
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 9: HEAD is GET without its body (A12)
--- sale: 1001 stock=10
--- request eval
["HEAD /seckill/1001", "HEAD /seckill/result/1001"]
--- more_headers eval
["X-None: 1", $::Alice]
--- response_headers_like eval
["Content-Type: application/json; charset=utf-8\nContent-Length: [1-9]\\d+\nCache-Control: public, max-age=1",
 "Content-Type: application/json; charset=utf-8\nContent-Length: [1-9]\\d+\nCache-Control: no-store"]
--- response_body eval
["", ""]
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 10: HEAD of a result needs a token too
--- sale: 1001 stock=10
--- request
HEAD /seckill/result/1001
--- error_code: 401
--- response_headers
WWW-Authenticate: Bearer
--- response_body



=== TEST 11: every 401 carries the challenge (A12)
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001", "GET /seckill/result/1001", "GET /seckill/result/1001?queue_token=nonsense"]
--- error_code eval
[401, 401, 401]
--- response_headers eval
[("WWW-Authenticate: Bearer\nCache-Control: no-store") x 3]
--- response_body_like eval
[(qr/^\{"code":40100,"message":"请先登录","data":null,/) x 3]



=== TEST 12: where it is off, nginx serves as usual
--- sale: 1001 stock=10
--- config
    location /seckill/ {
        seckill on;

        location /seckill/static/ {
            seckill off;
            root $TEST_NGINX_SERVER_ROOT/html;
        }
    }
--- user_files
>>> seckill/static/1001
a file
--- request
GET /seckill/static/1001
--- response_body
a file



=== TEST 13: refusals keep the connection
--- sale: 1001 stock=1
--- pipelined_requests eval
["POST /seckill/1001", map { ("POST /seckill/1001", "GET /none/x", "PUT /seckill/1001", "POST /seckill/0") } 1 .. 50]
--- more_headers eval
["$::Alice", map { ($::Bob, "X-None: 1", "X-None: 1", "X-None: 1") } 1 .. 50]
--- error_code eval
[200, map { (200, 404, 405, 404) } 1 .. 50]
--- redis_check
GET seckill:stock:{1001} => 0
