# What became of a purchase: by token of the user or by queue_token.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: bought, and not an order yet
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001", "GET /seckill/result/1001"]
--- more_headers eval
[$::Alice, $::Alice]
--- response_headers_like eval
["", "Content-Type: application/json; charset=utf-8\nCache-Control: no-store\nX-Request-ID: [0-9a-f]{32}"]
--- response_body_like eval
[qr/"code":0,/, qr/^\{"code":0,"message":"排队中","data":\{"state":"queueing","poll_after_ms":500\},"server_time_ms":\d{13}\}$/]



=== TEST 2: the order was made
--- sale: 1001 stock=10
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":true,\"order_id\":18446744073709551615,\"order_no\":\"26112910203040500100100000011001\"}"
--- request
GET /seckill/result/1001
--- more_headers eval: $::Alice
--- response_body_like chomp
^\{"code":1,"message":"抢购成功","data":\{"success":true,"order_id":18446744073709551615,"order_no":"26112910203040500100100000011001"\},"server_time_ms":\d{13}\}$



=== TEST 3: the order could not be made
--- sale: 1001 stock=10
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":false,\"reason\":\"over_limit\"}"
--- request
GET /seckill/result/1001
--- more_headers eval: $::Alice
--- response_body_like chomp
^\{"code":2,"message":"抢购失败","data":\{"success":false,"reason":"over_limit"\},"server_time_ms":\d{13}\}$



=== TEST 4: one buyer's failure is not another's (C7)
--- sale: 1001 stock=10
--- redis
SADD seckill:order_users:{1001} 1001 1002 1003
SET seckill:result:1002:{1001} "{\"success\":false,\"reason\":\"over_limit\"}"
--- request eval
[("GET /seckill/result/1001") x 3]
--- more_headers eval
[$::Alice, $::Bob, $::Carol]
--- response_body_like eval
[qr/"code":0,/, qr/"code":2,/, qr/"code":0,/]



=== TEST 5: who never bought has no record (C8)
--- sale: 1001 stock=10
--- redis: SADD seckill:order_users:{1001} 1002
--- request
GET /seckill/result/1001
--- more_headers eval: $::Alice
--- response_body_like chomp
^\{"code":40006,"message":"未参与该活动","data":null,



=== TEST 6: "no record" is said only while Redis knows the activity
--- request
GET /seckill/result/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":40001,



=== TEST 7: a lost result of a buyer is "queueing", never "no record" (C8)
--- sale: 1001 stock=10
--- redis: SADD seckill:order_users:{1001} 1001
--- request
GET /seckill/result/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,.*"state":"queueing"



=== TEST 8: results are served before, after and while it is closed
--- sale
1001 start=+1h end=+2h
1002 start=-2h end=-1h
1003 state=closed
1004 state=settled
--- redis
SADD seckill:order_users:{1002} 1001
SADD seckill:order_users:{1003} 1001
SADD seckill:order_users:{1004} 1001
HSET seckill:control state closed
--- request eval
[map {"GET /seckill/result/$_"} 1001 .. 1004]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":40006,/, qr/"code":0,/, qr/"code":0,/, qr/"code":0,/]



=== TEST 9: the queue_token needs no other token
--- sale: 1001 stock=10
--- redis: SADD seckill:order_users:{1001} 1001
--- request eval
my $ticket = ::ticket(1001, 1001);
["GET /seckill/result/1001?queue_token=$ticket", "GET /seckill/result/1001?a=b&queue_token=$ticket&c=d",
 "HEAD /seckill/result/1001?queue_token=$ticket"]
--- error_code eval
[200, 200, 200]
--- response_body_like eval
[qr/"code":0,.*"state":"queueing"/, qr/"code":0,.*"state":"queueing"/, qr/^$/]



=== TEST 10: a queue_token that was tampered with, at each character
--- sale: 1001 stock=10
--- redis: SADD seckill:order_users:{1001} 1001
--- pipelined_requests eval
my $ticket = ::ticket(1001, 1001);
[map { my $bad = $ticket; substr($bad, $_, 1) =~ tr/A-Za-z0-9_\-/B-ZAb-za1-90\-_/; "GET /seckill/result/1001?queue_token=$bad" } 0 .. 43]
--- error_code eval
[(401) x 44]
--- response_body_like eval
[(qr/"code":40100,/) x 44]



=== TEST 11: a queue_token that is cut, padded, empty or of another sale
--- sale
1001 stock=10
1002 stock=10
--- redis
SADD seckill:order_users:{1001} 1001
SADD seckill:order_users:{1002} 1001
--- pipelined_requests eval
my ($ticket, $other) = (::ticket(1001, 1001), ::ticket(1002, 1001));
[map {"GET /seckill/result/1001?queue_token=$_"}
    $other, "", "x", "$ticket=", "$ticket" . "A", "A$ticket", $ticket . $ticket, "%00" x 44, (map { substr $ticket, 0, $_ } 1 .. 43)]
--- error_code eval
[(401) x 51]
--- redis_calls
SISMEMBER => 0



=== TEST 12: a bad queue_token is not healed by a good token beside it
--- sale: 1001 stock=10
--- redis: SADD seckill:order_users:{1001} 1001
--- request
GET /seckill/result/1001?queue_token=nonsense
--- more_headers eval: $::Alice
--- error_code: 401



=== TEST 13: a queue_token does not buy
--- sale: 1001 stock=10
--- request eval
"POST /seckill/1001?queue_token=" . ::ticket(1001, 1001)
--- error_code: 401
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 14: the predecessor of a rotated key is accepted, its own predecessor is not
--- sale: 1001 stock=10
--- redis
HSET seckill:control token_key_prev ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff
SADD seckill:order_users:{1001} 1001
--- request eval
[map {"GET /seckill/result/1001?queue_token=" . ::ticket(1001, 1001, @{$_})} [], ["\xff" x 32], ["\xee" x 32]]
--- error_code eval
[200, 200, 401]



=== TEST 15: a key file of one's own in place of Redis' key
--- sale: 1001 stock=10
--- seckill eval
::write_key('queue.key', "a queue token key of thirty bytes\n");
"seckill_queue_token_key_file \$TEST_NGINX_DIR/queue.key;\n"
--- request eval
my $ticket = ::ticket(1001, 1001, 'a queue token key of thirty bytes');
["POST /seckill/1001", "GET /seckill/result/1001?queue_token=$ticket",
 "GET /seckill/result/1001?queue_token=" . ::ticket(1001, 1001)]
--- more_headers eval
[$::Alice, "X-None: 1", "X-None: 1"]
--- error_code eval
[200, 200, 401]
--- response_body_like eval
my $ticket = ::ticket(1001, 1001, 'a queue token key of thirty bytes');
[qr/"queue_token":"\Q$ticket\E"/, qr/"state":"queueing"/, qr/"code":40100,/]



=== TEST 16: a result that is damaged is no result, and an error in the log
--- sale: 1001 stock=10
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} nonsense
--- request eval
["GET /seckill/result/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[503, 503]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":50301,/]
--- error_log
is damaged



=== TEST 17: keys of a wrong type
--- sale
1001 stock=10
1002 stock=10
--- redis
RPUSH seckill:result:1001:{1001} a
SADD seckill:order_users:{1001} 1001
SET seckill:order_users:{1002} text
--- request eval
["GET /seckill/result/1001", "GET /seckill/result/1002"]
--- more_headers eval: $::Alice
--- error_code eval
[503, 503]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":50302,/]



=== TEST 18: statuses of their own, in English
--- sale
1001 stock=10
1002 stock=10
1003 stock=10
1004 stock=10
--- redis
SADD seckill:order_users:{1001} 1001
SADD seckill:order_users:{1002} 1001
SADD seckill:order_users:{1003} 1001
SET seckill:result:1001:{1002} "{\"success\":true,\"order_id\":7,\"order_no\":\"26112910203040500100200000011001\"}"
SET seckill:result:1001:{1003} "{\"success\":false,\"reason\":\"over_limit\"}"
--- seckill
    seckill_rest_status on;
    seckill_messages en;
--- request eval
[map {"GET /seckill/result/$_"} 1001 .. 1004]
--- more_headers eval: $::Alice
--- error_code eval
[202, 200, 200, 404]
--- response_body_like eval
[qr/^\{"code":0,"message":"queueing",/, qr/^\{"code":1,"message":"order placed",/, qr/^\{"code":2,"message":"order failed",/,
 qr/^\{"code":40006,"message":"no purchase found",/]



=== TEST 19: polling is limited more loosely than buying
--- sale: 1001 stock=10
--- redis: SADD seckill:order_users:{1001} 1001
--- pipelined_requests eval
[("GET /seckill/result/1001") x 15]
--- more_headers eval: $::Alice
--- response_body_like eval
[(qr/"code":0,/) x 15]



=== TEST 20: but it is limited
--- sale: 1001 stock=10
--- redis: SADD seckill:order_users:{1001} 1001
--- request
GET /seckill/result/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my @answers = ::crowd((['GET', '/seckill/result/1001', $::Alice]) x 60);
    my $served  = grep { $_->{body} =~ /"code":0,/ } @answers;
    my $limited = grep { $_->{body} =~ /"code":40003,/ } @answers;
    Test::More::is($served + $limited, 60, 'every poll is answered');
    Test::More::cmp_ok($served, '>=', 15, 'a burst of polls is served');
    Test::More::cmp_ok($limited, '>=', 10, 'more of them are limited');
}]
