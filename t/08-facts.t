# The public facts of a sale, for countdowns.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: a running sale, without a token, for a CDN to carry
--- sale: 1001 stock=10 product=55 price=1299.90 max_quantity=3
--- request
GET /seckill/1001
--- response_headers_like
Content-Type: application/json; charset=utf-8
Cache-Control: public, max-age=1
X-Request-ID: [0-9a-f]{32}
--- response_body_like chomp
^\{"code":0,"message":"[^"]+","data":\{"activity":"1001","product_id":"55","price":"1299.90","start_ms":\d{13},"end_ms":\d{13},"state":"running","sold_out":false,"max_quantity":3\},"server_time_ms":\d{13}\}$
--- no_error_log
[error]



=== TEST 2: before, after, closed and settled
--- sale
1001 start=+1h end=+2h
1002 start=-2h end=-1h
1003 state=closed
1004 state=settled
1005 state=paused
1006 state=closed start=-2h end=-1h
--- request eval
[map {"GET /seckill/$_"} 1001 .. 1006]
--- response_body_like eval
[qr/"state":"not_started"/, qr/"state":"ended"/, qr/"state":"closed"/, qr/"state":"ended"/, qr/"state":"closed"/,
 qr/"state":"ended"/]



=== TEST 3: the whole entry is closed
--- sale: 1001 stock=10
--- redis: HSET seckill:control state closed
--- request
GET /seckill/1001
--- response_body_like: "code":0,.*"state":"closed"



=== TEST 4: sold out, as Redis has it
--- sale
1001 stock=10
1002 stock=1
--- redis: SET seckill:stock:{1001} 0
--- seckill
    seckill_refresh 200ms;
--- request eval
["GET /seckill/1001", "GET /seckill/1002", "POST /seckill/1002", "GET /seckill/1002"]
--- more_headers eval: $::Alice
--- after eval
[undef, undef, sub { select undef, undef, undef, 0.5 }]
--- response_body_like eval
[qr/"sold_out":true/, qr/"sold_out":false/, qr/"code":0,/, qr/"sold_out":true/]



=== TEST 5: no such activity
--- request
GET /seckill/1001
--- response_headers
Cache-Control: no-store
--- response_body_like chomp
^\{"code":40001,"message":"活动未开始","data":null,



=== TEST 6: a token, good or bad, changes nothing
--- sale: 1001 stock=10
--- request eval
["GET /seckill/1001", "GET /seckill/1001"]
--- more_headers eval
[$::Alice, "Authorization: Bearer nonsense"]
--- response_body_like eval
[qr/"state":"running"/, qr/"state":"running"/]



=== TEST 7: times are those of Redis, and the server's is among them
--- sale: 1001 stock=10 start=-10s end=+1h
--- request
GET /seckill/1001
--- response_body_filters eval
sub {
    my ($start, $end, $now) = $_[0] =~ /"start_ms":(\d+),"end_ms":(\d+).*"server_time_ms":(\d+)/ or return "no times: $_[0]";
    my ($seconds, $micros) = split ' ', ::redis('TIME');
    my $real = $seconds * 1000 + $micros / 1000;
    return abs($real - $now) < 500 && abs($real - 10_000 - $start) < 8000 && $end - $start == 3_610_000
        ? "right" : "$start $end $now, Redis has $real";
}
--- response_body chomp
right



=== TEST 8: facts are read once per seckill_refresh
--- sale: 1001 stock=10
--- seckill
    seckill_refresh 10s;
--- pipelined_requests eval
[("GET /seckill/1001") x 20]
--- error_code eval
[(200) x 20]
--- redis_calls
HLEN => 2



=== TEST 9: a newer rev of control reaches the node within seckill_refresh
--- sale: 1001 stock=10
--- seckill
    seckill_refresh 300ms;
--- request eval
["GET /seckill/1001", "GET /seckill/1001", "GET /seckill/1002", "GET /seckill/1002"]
--- after eval
[sub {
    ::redis('HSET', 'seckill:activity:{1001}', 'price', '1.00', 'rev', 2);
    ::redis('HINCRBY', 'seckill:control', 'rev', 1);
    select undef, undef, undef, 0.6;
 },
 undef,
 sub {
    ::redis('COPY', "seckill:activity:{1001}", "seckill:activity:{1002}");
    ::redis('SET', "seckill:stock:{1002}", 5);
    ::redis('HINCRBY', 'seckill:control', 'rev', 1);
    select undef, undef, undef, 0.6;
 }]
--- response_body_like eval
[qr/"price":"9.90"/, qr/"price":"1.00"/, qr/"code":40001,/, qr/"activity":"1002".*"state":"running"/]



=== TEST 10: the switch reaches the node within seckill_refresh
--- sale: 1001 stock=10
--- seckill
    seckill_refresh 300ms;
    seckill_limit off;
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- after eval
[sub { ::redis('HSET', 'seckill:control', 'state', 'closed'); ::redis('HINCRBY', 'seckill:control', 'rev', 1); select undef, undef, undef, 0.6 },
 sub { ::redis('HSET', 'seckill:control', 'state', 'open'); ::redis('HINCRBY', 'seckill:control', 'rev', 1); select undef, undef, undef, 0.6 }]
--- error_code eval
[200, 503, 200]
--- response_body_like eval
[qr/"code":0,/, qr/"code":50303,/, qr/"code":40004,/]



=== TEST 11: in English
--- sale: 1001 stock=10
--- seckill
    seckill_messages en;
    seckill_rest_status on;
--- request
GET /seckill/1001
--- response_body_like chomp
^\{"code":0,"message":"ok","data":\{



=== TEST 12: many random ids are not so many records: Redis is asked once for each
--- seckill
    seckill_refresh 10s;
--- pipelined_requests eval
[map {"GET /seckill/$_"} (1 .. 100) x 3]
--- error_code eval
[(200) x 300]
--- response_body_like eval
[(qr/"code":40001,/) x 300]
--- redis_calls
HLEN => 101
