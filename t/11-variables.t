# Variables: what the funnel said, for access logs.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: an accepted purchase, in full
--- sale: 1001 stock=10 max_quantity=3 epoch=4
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    log_format seckill 'v=$seckill_verdict c=$seckill_code a=$seckill_activity u=$seckill_user q=$seckill_quantity '
                       'n=$seckill_order_no s=$seckill_seq e=$seckill_epoch t=$seckill_redis_time '
                       'i=$seckill_request_id ok=$seckill_accepted.';
    access_log $TEST_NGINX_SERVER_ROOT/logs/access.log seckill;
--- request eval
"POST /seckill/1001\n{\"quantity\":2}"
--- more_headers eval
"$::Alice\nX-Request-ID: id-1"
--- response_body_like: "code":0,
--- access_log eval
qr/^v=accepted c=0 a=1001 u=1001 q=2 n=\d{15}00100100000011001 s=1 e=4 t=\d{13} i=id-1 ok=1\.$/



=== TEST 2: the order_no of the log is the one in the stream
--- sale: 1001 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    log_format seckill '$seckill_order_no $seckill_redis_time';
    access_log $TEST_NGINX_DIR/accepted.log seckill if=$seckill_accepted;
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001", "GET /seckill/1001", "GET /seckill/result/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Alice, $::Alice, $::Alice]
--- response_body_like eval
[qr/"code":0,/, qr/"code":0,/, qr/"code":40003,/, qr/"running"/, qr/"queueing"/]
--- after eval
[undef, undef, undef, undef, sub {
    open my $fh, '<', ::seckill_dir() . '/accepted.log' or die $!;
    CORE::chomp(my @log = <$fh>);
    my $stream = ::redis('XRANGE', 'seckill:orders:{1001}', '-', '+');
    my @orders = $stream =~ /order_no (\d+) accepted_ms (\d+)/g;
    Test::More::is("@log", "@orders", 'the log has the accepted purchases, and no other');
}]



=== TEST 3: refusals have a verdict and a code, and no more than is known
--- sale
1001 stock=10
1002 start=+1h end=+2h
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    log_format seckill 'v=$seckill_verdict c=$seckill_code a=$seckill_activity u=$seckill_user q=$seckill_quantity '
                       'n=$seckill_order_no s=$seckill_seq ok=$seckill_accepted.';
    access_log $TEST_NGINX_SERVER_ROOT/logs/access.log seckill;
--- request eval
["POST /seckill/1001", "POST /seckill/1002", "POST /seckill/999", "POST /seckill/01", "PUT /seckill/1001",
 "GET /seckill/1001", "GET /seckill/result/1001"]
--- more_headers eval
["X-None: 1", $::Alice, $::Alice, $::Alice, $::Alice, $::Alice, $::Alice]
--- error_code eval
[401, 200, 200, 404, 405, 200, 200]
--- access_log eval
[qr/^v=(?:unauthorized c=40100 a=1001 u=- |not_started c=40001 a=1002 u=- |unknown_activity c=40001 a=999 u=- |not_found c=40400 a=- u=- |method c=40500 a=1001 u=- |facts c=0 a=1001 u=- |no_record c=40006 a=1001 u=1001 )q=- n=- s=- ok=-\.$/]



=== TEST 4: a repeat, a limit and a success
--- sale: 1001 stock=10
--- redis
SADD seckill:order_users:{1001} 1001 1002
SET seckill:result:1001:{1001} "{\"success\":true,\"order_id\":7,\"order_no\":\"26112910203040500100100000011001\"}"
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    log_format seckill 'v=$seckill_verdict c=$seckill_code u=$seckill_user n=$seckill_order_no s=$seckill_seq ok=$seckill_accepted.';
    access_log $TEST_NGINX_SERVER_ROOT/logs/access.log seckill;
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "GET /seckill/result/1001", "GET /seckill/result/1001"]
--- more_headers eval
[$::Alice, $::Alice, $::Alice, $::Bob]
--- error_code eval
[200, 200, 200, 200]
--- access_log eval
[qr/^v=(?:repeat c=40004 u=1001 n=26112910203040500100100000011001|limited c=40003 u=1001 n=-|success c=1 u=1001 n=26112910203040500100100000011001|queueing c=0 u=1002 n=-) s=- ok=-\.$/]



=== TEST 5: requests of other locations have none of it
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    log_format seckill 'v=$seckill_verdict c=$seckill_code a=$seckill_activity u=$seckill_user ok=$seckill_accepted.';
    access_log $TEST_NGINX_SERVER_ROOT/logs/access.log seckill;
--- config
    location /other { return 200 "[$seckill_verdict$seckill_accepted]\n"; }
--- request
GET /other
--- response_body
[]
--- access_log
v=- c=- a=- u=- ok=-.



=== TEST 6: a lost answer is "unknown", and not accepted
--- sale: 1001 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_FAKE;
    seckill_auth_key_file $TEST_NGINX_KEY;
    log_format seckill 'v=$seckill_verdict c=$seckill_code u=$seckill_user ok=$seckill_accepted.';
    access_log $TEST_NGINX_SERVER_ROOT/logs/access.log seckill;
--- fake_redis
EVALSHA: run close
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- access_log
v=unknown c=50301 u=1001 ok=-.



=== TEST 7: as headers
--- sale: 1001 stock=10
--- config
    location /seckill/ {
        seckill on;
        add_header X-Verdict $seckill_verdict always;
        add_header X-Seq $seckill_seq always;
    }
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, "X-None: 1"]
--- error_code eval
[200, 401]
--- response_headers eval
["X-Verdict: accepted\nX-Seq: 1", "X-Verdict: unauthorized\n!X-Seq"]
