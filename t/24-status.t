# The status endpoint: what was counted, as Prometheus text and as JSON.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: requests by activity and verdict
--- sale: 1001 stock=1
--- config
    location /seckill/ { seckill on; }
    location = /status { seckill_status; }
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001", "GET /seckill/4242", "GET /status"]
--- more_headers eval
[$::Alice, $::Bob, "X-None: 1", "X-None: 1", "X-None: 1"]
--- error_code eval
[200, 200, 401, 200, 200]
--- response_headers_like eval
["", "", "", "", "Content-Type: text/plain; version=0.0.4; charset=utf-8"]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40005,/, qr/"code":40100,/, qr/"code":40001,/,
 qr/seckill_requests_total\{activity="1001",verdict="accepted"\} 1\n(?s:.*)seckill_requests_total\{activity="1001",verdict="sold_out"\} 1\n(?s:.*)seckill_requests_total\{activity="1001",verdict="unauthorized"\} 1\n(?s:.*)seckill_requests_total\{activity="other",verdict="unknown_activity"\} 1\n(?s:.*)seckill_stock_units\{activity="1001"\} 0\n(?s:.*)seckill_batches_total 2\n(?s:.*)seckill_worker_connections 1024\n(?s:.*)seckill_worker_open_files \d\d+\n/]



=== TEST 2: the same in JSON
--- sale: 1001 stock=3
--- config
    location /seckill/ { seckill on; }
    location = /status { seckill_status json; }
--- request eval
["POST /seckill/1001", "GET /status"]
--- more_headers eval
[$::Alice, "X-None: 1"]
--- response_body_like eval
[qr/"code":0,/, qr/^\{"version":"[^"]+","activities":\{"1001":\{"stock":\d+,"start_ms":\d+,"end_ms":\d+,"closed":false,"verdicts":\{"accepted":1\}\},.*"worker_connections":1024,"worker_open_files":\d\d+,"zone":/]



=== TEST 3: Redis' refusals by kind (A20, A22)
--- sale: 1001 stock=3
--- redis: SET seckill:stock:{1001} abc
--- config
    location /seckill/ { seckill on; }
    location = /status { seckill_status; }
--- request eval
["POST /seckill/1001", "GET /status"]
--- more_headers eval
[$::Alice, "X-None: 1"]
--- error_code eval
[503, 200]
--- response_body_like eval
[qr/"code":50302,/, qr/seckill_redis_failed_total\{kind="SECKILL"\} 1\n/]



=== TEST 4: other methods, other words
--- config
    location = /status { seckill_status; }
--- request
POST /status
--- error_code: 405



=== TEST 5: a format that is none
--- config
    location = /status { seckill_status xml; }
--- must_die
--- error_log
invalid value "xml"



=== TEST 6: given twice
--- config
    location = /status { seckill_status; seckill_status json; }
--- must_die
--- error_log
"seckill_status" directive is duplicate
