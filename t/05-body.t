# The body of a purchase: quantity and ext, sizes and framings, and bodies that
# are never read because the answer was known before.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: bodies that are fine
--- sale: 1001 stock=10 max_quantity=3
--- pipelined_requests eval
[map {"POST /seckill/1001\n$_"} '', '{}', " {\n} ", '{"quantity":1}', '{"ext":""}',
     '{"other":{"a":[1,2,{"b":null}]},"quantity":1}', '{"ext":"' . 'x' x 256 . '"}',
     '{"ext":"' . '\u00e9' x 128 . '"}']
--- more_headers eval
[map { ::bearer(::token($_)) } 1 .. 8]
--- response_body_like eval
[(qr/"code":0,.*"quantity":1,/) x 8]
--- redis_check
GET seckill:stock:{1001} => 2



=== TEST 2: bodies that are not, and sell nothing
--- sale: 1001 stock=10 max_quantity=3
--- seckill
    seckill_limit off;
--- pipelined_requests eval
[map {"POST /seckill/1001\n$_"}
    '{"quantity":0}', '{"quantity":-1}', '{"quantity":1.0}', '{"quantity":1e0}', '{"quantity":"1"}',
    '{"quantity":null}', '{"quantity":true}', '{"quantity":[1]}', '{"quantity":{}}', '{"quantity":4}',
    '{"quantity":99999999999999999999}', '{"quantity":4294967297}', '{"quantity":01}', '{"quantity":+1}',
    '{"quantity":1,"quantity":1}', '[]', '1', '"x"', 'null', 'quantity=1', '{', '{"quantity":1', '{"quantity":1}x',
    '{"quantity":1}{}', '{"ext":1}', '{"ext":null}', '{"ext":["a"]}', '{"ext":"' . 'x' x 257 . '"}',
    '{"ext":"' . '\u00e9' x 129 . '"}', '{"ext":"a\u0000b"}', '{"ext":"a","ext":"b"}', "{\"ext\":\"\xff\xfe\"}",
    "\xef\xbb\xbf{}", '{/* */}', "{'quantity':1}", '{"a":' . '[' x 40 . ']' x 40 . '}', '{"quantity":1,}']
--- more_headers eval: $::Alice
--- error_code eval
[(400) x 37]
--- response_body_like eval
[(qr/^\{"code":40000,"message":"请求参数错误","data":null,/) x 37]
--- redis_check
GET seckill:stock:{1001} => 10
SCARD seckill:order_users:{1001} => 0
--- redis_calls
EVALSHA => 0



=== TEST 3: several units of one buyer
--- sale: 1001 stock=10 max_quantity=3
--- request eval
["POST /seckill/1001\n{\"quantity\":3}", "POST /seckill/1001\n{\"quantity\":2,\"ext\":\"a\"}"]
--- more_headers eval
[$::Alice, $::Bob]
--- response_body_like eval
[qr/"code":0,.*"quantity":3,/, qr/"code":0,.*"quantity":2,/]
--- redis_check
GET seckill:stock:{1001} => 5
XRANGE seckill:orders:{1001} - + =~ user 1001 activity 1001 quantity 3 .* user 1002 activity 1001 quantity 2 



=== TEST 4: more than is left is sold out, less is not
--- sale: 1001 stock=2 max_quantity=3
--- request eval
["POST /seckill/1001\n{\"quantity\":3}", "POST /seckill/1001\n{\"quantity\":2}", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Carol]
--- response_body_like eval
[qr/"code":40005,/, qr/"code":0,.*"quantity":2,/, qr/"code":40005,/]
--- redis_check
GET seckill:stock:{1001} => 0
SMEMBERS seckill:order_users:{1001} => 1002



=== TEST 5: ext travels with the purchase as it is
--- sale: 1001 stock=10
--- request eval
"POST /seckill/1001\n{\"ext\":\"sku=红色/42 \\\"x\\\" \\u00e9 \\n\"}"
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- redis_check
XRANGE seckill:orders:{1001} - + =~ (?s) ext sku=红色/42 "x" é \n$



=== TEST 6: a body in packets
--- sale: 1001 stock=10 max_quantity=3
--- request eval
[["POST /seckill/1001\n{\"qu", {value => "antity\":", delay_before => 0.1}, {value => "2}", delay_before => 0.1}]]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,.*"quantity":2,/]



=== TEST 7: a body in chunks
--- sale: 1001 stock=10 max_quantity=3
--- raw_request eval
["POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n$::Alice\r\n\r\n"
 . "5\r\n{\"qua\r\n", "9\r\nntity\":2}\r\n0\r\n\r\n"]
--- response_body_like: "code":0,.*"quantity":2,



=== TEST 8: a body larger than seckill_body_max (A9)
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001\n{\"a\":\"" . "x" x 1018 . "\"}", "POST /seckill/1001\n{\"a\":\"" . "x" x 1016 . "\"}"]
--- more_headers eval
[$::Alice, $::Bob]
--- error_code eval
[413, 200]
--- response_body_like eval
[qr/^\{"code":41300,"message":"请求体过大","data":null,/, qr/"code":0,/]
--- redis_check
SMEMBERS seckill:order_users:{1001} => 1002



=== TEST 9: a larger body in chunks is refused without reading it all
--- sale: 1001 stock=10
--- raw_request eval
["POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n$::Alice\r\n\r\n"
 . "10000\r\n" . "x" x 2000]
--- timeout: 10s
--- error_code: 413
--- response_headers
Connection: close
--- response_body_like: "code":41300,
--- redis_check
SCARD seckill:order_users:{1001} => 0



=== TEST 10: seckill_body_max of its own, and a body that nginx would put in a file (A9)
--- sale: 1001 stock=10
--- config
    location /seckill/ {
        seckill on;
        seckill_body_max 70k;
        client_body_buffer_size 1k;
        client_body_in_file_only off;
    }
--- request eval
["POST /seckill/1001\n{" . (("\"b\":\"" . "x" x 8000 . "\",") x 8) . "\"quantity\":1}"]
--- more_headers eval
[$::Alice]
--- response_body_like eval
[qr/"code":0,/]
--- no_error_log
temporary file



=== TEST 11: the same in chunks (A9)
--- sale: 1001 stock=10
--- config
    location /seckill/ {
        seckill on;
        seckill_body_max 70k;
        client_body_buffer_size 1k;
    }
--- raw_request eval
"POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n$::Alice\r\n\r\n"
 . do { my $body = "{" . (("\"b\":\"" . "x" x 8000 . "\",") x 8) . "\"quantity\":1}"; sprintf "%x\r\n%s\r\n0\r\n\r\n", length $body, $body }
--- response_body_like: "code":0,
--- no_error_log
temporary file



=== TEST 12: an early answer leaves no body in the connection (A8)
--- sale
1001 stock=10
1002 start=+1h end=+2h
1003 stock=10
1004 state=closed
1005 start=-2h end=-1h
1006 eligible=7
--- redis: SET seckill:stock:{1003} 0
--- pipelined_requests eval
[map { ($_, "GET /seckill/result/1001") }
    "POST /seckill/1001\nGET /x", "POST /seckill/0\nGET /x", "PUT /seckill/1001\nGET /x", "POST /seckill/1002\nGET /x",
    "POST /seckill/1003\n{    }", "POST /seckill/1004\nGET /x", "POST /seckill/999\nGET /x",
    "POST /seckill/1005\n{    }", "POST /seckill/1006\n{    }", "POST /seckill/1006\nGET /x", "POST /seckill/1001\nGET /x", "POST /seckill/result/1001\nGET /x"]
--- more_headers eval
[map { ($_, $::Alice) } "X-None: 1", ($::Alice) x 11]
--- error_code eval
[401, 200, 404, 200, 405, 200, 200, 200, 200, 200, 503, 200, 200, 200, 200, 200, 200, 200, 200, 200, 400, 200, 405, 200]
--- response_body_like eval
[map { ($_, qr/"code":40006,/) } map {qr/"code":$_,/}
     40100, 40400, 40500, 40001, 40005, 50303, 40001, 40002, 40007, 40003, 40000, 40500]
--- redis_check
SCARD seckill:order_users:{1001} => 0



=== TEST 13: nor does it when Redis has lost its data (A8)
--- redis: DEL seckill:control
--- pipelined_requests eval
["POST /seckill/1001\nGET /x", "GET /seckill/result/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[503, 503]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":50302,/]



=== TEST 14: a large body that nobody wants ends the connection (A8, A10)
--- sale: 1001 stock=10
--- raw_request eval
["POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20000000\r\n\r\n" . "x" x 2000]
--- timeout: 10s
--- error_code: 413
--- response_headers
Connection: close
--- response_body_like: "code":41300,



=== TEST 15: an endless body is answered before its end (A10)
--- sale: 1001 stock=10
--- raw_request eval
["POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
 map {"400\r\n" . "x" x 1024 . "\r\n"} 1 .. 20]
--- timeout: 10s
--- error_code: 401
--- response_headers
Connection: close
--- response_body_like: "code":40100,



=== TEST 16: a chunk size that is none (A7)
--- sale: 1001 stock=10
--- raw_request eval
"POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n$::Alice\r\n\r\nzz\r\n"
--- error_code: 400
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 17: a bad chunk behind a good one (A7)
--- sale: 1001 stock=10
--- raw_request eval
["POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n$::Alice\r\n\r\n"
 . "2\r\n{}\r\n", "zz\r\n"]
--- error_code: 400
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 18: a client that leaves within its body bought nothing (A7)
--- sale: 1001 stock=10
--- raw_request eval
["POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n$::Alice\r\n\r\n", "{\"q"]
--- shutdown: 1
--- timeout: 1s
--- abort
--- ignore_response
--- access_log eval
qr{"POST /seckill/1001 HTTP/1.1" 4(?:00|99) }
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 19: nor did one that waits to be asked for it and leaves (A7)
--- sale: 1001 stock=10
--- raw_request eval
"POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n$::Alice\r\n\r\n"
--- shutdown: 1
--- timeout: 1s
--- abort
--- ignore_response
--- access_log eval
qr{"POST /seckill/1001 HTTP/1.1" 4(?:00|99) }
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 20: Expect: 100-continue, and then the body
--- sale: 1001 stock=10
--- raw_request eval
["POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
 . "$::Alice\r\n\r\n", "{}"]
--- raw_request_middle_delay: 0.1
--- ignore_response
--- access_log eval
qr{"POST /seckill/1001 HTTP/1.1" 200 }
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 21: a thousand refusals on one connection (A11)
--- sale
1001 stock=10
1002 stock=1
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    keepalive_requests 2000;
--- pipelined_requests eval
["POST /seckill/1002", map { ("POST /seckill/1001\n{}", "POST /seckill/1002", "POST /seckill/1002\n{\"a\":1}") } 1 .. 333]
--- more_headers eval
[::bearer(::token(1)), map { ("X-None: 1", ::bearer(::token(1)), ::bearer(::token($_ + 1))) } 1 .. 333]
--- error_code eval
[200, (401, 200, 200) x 333]
--- response_body_like eval
[qr/"code":0,/, (qr/"code":40100,/, qr/"code":4000[34],/, qr/"code":40005,/) x 333]
--- timeout: 10s
