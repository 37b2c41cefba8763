# What a buyer hears: every verdict of a purchase, as body, headers and status.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: an accepted purchase is queueing, and Redis holds all of it
--- sale: 1001 stock=10
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_headers_like
Content-Type: application/json; charset=utf-8
Cache-Control: no-store
X-Request-ID: [0-9a-f]{32}
Content-Length: \d+
Connection: close
--- response_body_like eval
qr/^\{"code":0,"message":"排队中","data":\{"queue_token":"[\w-]{44}","state":"queueing","activity":"1001","quantity":1,"poll_after_ms":500\},"server_time_ms":\d{13}\}$/
--- redis_check
GET seckill:stock:{1001} => 9
SMEMBERS seckill:order_users:{1001} => 1001
XLEN seckill:orders:{1001} => 1
HGET seckill:activity:{1001} seq => 1
XRANGE seckill:orders:{1001} - + =~ ^\d+-\d+ v 1 user 1001 activity 1001 quantity 1 epoch 1 seq 1 order_no \d{15}001001\d{7}1001 accepted_ms \d{13} request_id [0-9a-f]{32} ext ?$
--- no_error_log
[error]
[warn]



=== TEST 2: the queue_token is signed by the key all nodes share
--- sale: 1001 stock=10
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like eval
my $ticket = ::ticket(1001, 1001);
qr/"queue_token":"\Q$ticket\E"/



=== TEST 3: a sane X-Request-ID is echoed and travels with the purchase
--- sale: 1001 stock=10
--- request
POST /seckill/1001
--- more_headers eval
"$::Alice\nX-Request-ID: order-7.of_Alice"
--- response_headers
X-Request-ID: order-7.of_Alice
--- redis_check
XRANGE seckill:orders:{1001} - + =~ request_id order-7\.of_Alice



=== TEST 4: another X-Request-ID is replaced
--- sale: 1001 stock=10
--- pipelined_requests eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
["$::Alice\nX-Request-ID: two words", "$::Bob\nX-Request-ID: " . "a" x 65, "$::Carol\nX-Request-ID:"]
--- response_headers_like eval
["X-Request-ID: [0-9a-f]{32}", "X-Request-ID: [0-9a-f]{32}", "X-Request-ID: [0-9a-f]{32}"]
--- response_body_like eval
[qr/"code":0/, qr/"code":0/, qr/"code":0/]



=== TEST 5: one unit, two buyers, the second is told it is sold out
--- sale: 1001 stock=1
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- response_body_like eval
[qr/"code":0,/, qr/^\{"code":40005,"message":"商品已抢完","data":null,"server_time_ms":\d{13}\}$/]
--- redis_check
GET seckill:stock:{1001} => 0
XLEN seckill:orders:{1001} => 1
SMEMBERS seckill:order_users:{1001} => 1001



=== TEST 6: nothing to sell from the beginning
--- sale: 1001 stock=10
--- redis: SET seckill:stock:{1001} 0
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":40005,
--- redis_check
XLEN seckill:orders:{1001} => 0
SCARD seckill:order_users:{1001} => 0



=== TEST 7: who posts again hears so, with the same token
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice]
--- response_body_like eval
my $ticket = ::ticket(1001, 1001);
[qr/"code":0,.*"queue_token":"\Q$ticket\E"/,
 qr/^\{"code":40004,"message":"您已参与过该活动","data":\{"queue_token":"\Q$ticket\E","state":"queueing","poll_after_ms":500\},"server_time_ms":\d{13}\}$/]
--- redis_check
GET seckill:stock:{1001} => 9
XLEN seckill:orders:{1001} => 1



=== TEST 8: a buyer who posts again after the sell-out is not told "sold out"
--- sale: 1001 stock=1
--- seckill
    seckill_limit off;
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Alice]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40005,/, qr/"code":40004,/]



=== TEST 9: a buyer who posts again after the end is not told "ended"
--- sale: 1001 stock=10 start=-10s end=-1s
--- redis: SADD seckill:order_users:{1001} 1001
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- response_body_like eval
[qr/"code":40004,/, qr/^\{"code":40002,"message":"活动已结束","data":null,/]
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 10: "taken part" with the order, once it is made
--- sale: 1001 stock=10
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":true,\"order_id\":7,\"order_no\":\"26112910203040500100100000011001\"}"
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like chomp
^\{"code":40004,.*"data":\{"queue_token":"[\w-]{44}","state":"success","order_id":7,"order_no":"26112910203040500100100000011001"\},



=== TEST 11: "taken part" when the order could not be made
--- sale: 1001 stock=10
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":false,\"reason\":\"over_limit\"}"
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like chomp
^\{"code":40004,.*"data":\{"queue_token":"[\w-]{44}","state":"failed"\},



=== TEST 12: before the start, without asking Redis to sell
--- sale: 1001 stock=10 start=+1h end=+2h
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like chomp
^\{"code":40001,"message":"活动未开始","data":null,
--- redis_calls
EVALSHA => 0



=== TEST 13: no such activity sounds like one that has not started
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like chomp
^\{"code":40001,"message":"活动未开始","data":null,
--- redis_calls
EVALSHA => 0



=== TEST 14: an unknown activity is remembered as such
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Carol]
--- response_body_like eval
[qr/"code":40001,/, qr/"code":40001,/, qr/"code":40001,/]
--- redis_calls
HLEN => 2
EVALSHA => 0



=== TEST 15: only who has registered may buy
--- sale: 1001 stock=10 eligible=1001,1003
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Bob, $::Alice]
--- response_body_like eval
[qr/^\{"code":40007,"message":"未预约该活动","data":null,/, qr/"code":0,/]
--- redis_check
SMEMBERS seckill:order_users:{1001} => 1001



=== TEST 16: an activity that the operator closed
--- sale: 1001 stock=10 state=closed
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_headers_like
Retry-After: [1-9]\d*
--- response_body_like chomp
^\{"code":50303,"message":"活动太火爆，请稍后再试","data":null,
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 17: the whole entry is closed
--- sale: 1001 stock=10
--- redis: HSET seckill:control state closed
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50303,
--- redis_calls
EVALSHA => 0



=== TEST 18: a sale that was settled is over
--- sale: 1001 stock=10 state=settled
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":40002,
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 19: a sale that lost its data is paused
--- sale: 1001 stock=10 state=paused
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50303,



=== TEST 20: a Redis that lost its data says no "no"
--- sale: 1001 stock=10
--- redis: DEL seckill:control
--- request eval
["POST /seckill/1001", "GET /seckill/result/1001"]
--- more_headers eval
[$::Alice, $::Alice]
--- error_code eval
[503, 503]
--- response_headers_like eval
["Retry-After: [1-9]\\d*", "Retry-After: [1-9]\\d*"]
--- response_body_like eval
[qr/^\{"code":50302,"message":"系统繁忙，请稍后再试","data":null,/, qr/"code":50302,/]
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 21: all that is refused, in English, with statuses of their own
--- sale
1001 stock=10
1002 start=+1h end=+2h
1003 start=-2h end=-1h
1004 stock=10
1005 eligible=7
1006 state=closed
1007
--- redis
SET seckill:stock:{1004} 0
SADD seckill:order_users:{1007} 1001
--- seckill
    seckill_messages en;
    seckill_rest_status on;
--- request eval
[map { "POST /seckill/$_" } 1001, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1001, 999]
--- more_headers eval
[($::Alice) x 8, "X-None: 1", $::Alice]
--- error_code eval
[202, 429, 403, 403, 410, 403, 503, 409, 401, 403]
--- response_body_like eval
[
    qr/^\{"code":0,"message":"queueing",/,
    qr/^\{"code":40003,"message":"too many requests",/,
    qr/^\{"code":40001,"message":"not started",/,
    qr/^\{"code":40002,"message":"ended",/,
    qr/^\{"code":40005,"message":"sold out",/,
    qr/^\{"code":40007,"message":"not registered",/,
    qr/^\{"code":50303,"message":"closed for now",/,
    qr/^\{"code":40004,"message":"already taken part",/,
    qr/^\{"code":40100,"message":"login required",/,
    qr/^\{"code":40001,"message":"not started",/,
]



=== TEST 22: ids beyond 2^53 stay exact
--- sale
18446744073709551615 stock=10
--- request eval
[("POST /seckill/18446744073709551615") x 3]
--- more_headers eval
[map { ::bearer(::token($_)) } qw(9007199254740992 9007199254740993 18446744073709551615)]
--- response_body_like eval
[map { my $ticket = ::ticket(~0, $_); qr/"code":0,.*"\Q$ticket\E".*"activity":"18446744073709551615"/ }
     9007199254740992, 9007199254740993, 18446744073709551615]
--- redis_check
SCARD seckill:order_users:{18446744073709551615} => 3
SISMEMBER seckill:order_users:{18446744073709551615} 9007199254740992 => 1
SISMEMBER seckill:order_users:{18446744073709551615} 9007199254740993 => 1
SISMEMBER seckill:order_users:{18446744073709551615} 18446744073709551615 => 1
XRANGE seckill:orders:{18446744073709551615} - + =~ user 9007199254740993 activity 18446744073709551615 



=== TEST 23: a sale opens by itself, at Redis' time
--- sale: 1001 stock=10 start=+1500ms
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- after eval
[sub { sleep 2 }]
--- response_body_like eval
[qr/"code":40001,/, qr/"code":0,/]



=== TEST 24: a sale ends by itself, at Redis' time
--- sale: 1001 stock=10 end=+1500ms
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- after eval
[sub { sleep 2 }]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40002,/]
--- redis_check
XLEN seckill:orders:{1001} => 1



=== TEST 25: keys of another prefix and another database
--- seckill
    seckill_prefix shop;
    seckill_redis $TEST_NGINX_REDIS db=3;
    seckill_limit off;
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice]
--- sale: 1001 stock=10
--- redis
RENAME seckill:activity:{1001} shop:activity:{1001}
RENAME seckill:stock:{1001} shop:stock:{1001}
RENAME seckill:orders:{1001} shop:orders:{1001}
RENAME seckill:control shop:control
MOVE shop:activity:{1001} 3
MOVE shop:stock:{1001} 3
MOVE shop:orders:{1001} 3
MOVE shop:control 3
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/]
--- redis_check
SELECT 3 => OK
GET shop:stock:{1001} => 9
SMEMBERS shop:order_users:{1001} => 1001
SELECT 0 => OK
DBSIZE => 1



=== TEST 26: two sales of one user do not touch each other
--- sale
1001 stock=1
1002 stock=1
--- request eval
["POST /seckill/1001", "POST /seckill/1002"]
--- more_headers eval
[$::Alice, $::Alice]
--- response_body_like eval
[qr/"code":0,/, qr/"code":0,/]
