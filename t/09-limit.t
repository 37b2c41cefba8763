# The limit of one user on one activity, kept in shared memory.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: one a second by default, and when to come again
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice]
--- response_headers_like eval
["", "Retry-After: 1"]
--- response_body_like eval
[qr/"code":0,/, qr/^\{"code":40003,"message":"请求过于频繁","data":null,/]
--- redis_calls
EVALSHA => 1



=== TEST 2: after that second it passes again
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice]
--- after eval
[sub { select undef, undef, undef, 1.2 }]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/]



=== TEST 3: users and activities have limits of their own
--- sale
1001 stock=10
1002 stock=10
--- pipelined_requests eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1002", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Alice, $::Alice]
--- response_body_like eval
[qr/"code":0,/, qr/"code":0,/, qr/"code":0,/, qr/"code":40003,/]



=== TEST 4: a burst
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/s burst=3;
--- pipelined_requests eval
[("POST /seckill/1001") x 5]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, (qr/"code":40004,/) x 3, qr/"code":40003,/]



=== TEST 5: a slow rate says how long
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=2r/m;
--- pipelined_requests eval
[("POST /seckill/1001") x 2]
--- more_headers eval: $::Alice
--- response_headers_like eval
["", "Retry-After: (?:29|30)"]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40003,/]



=== TEST 6: off
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- pipelined_requests eval
[("POST /seckill/1001") x 50]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, (qr/"code":40004,/) x 49]



=== TEST 7: a header that names another address is not looked at (C17)
--- sale: 1001 stock=10
--- pipelined_requests eval
[("POST /seckill/1001") x 20]
--- more_headers eval
[map {"$::Alice\nX-Forwarded-For: 10.0.0.$_\nX-Real-IP: 10.0.0.$_"} 1 .. 20]
--- response_body_like eval
[qr/"code":0,/, (qr/"code":40003,/) x 19]



=== TEST 8: who is refused for another reason first is not counted
--- sale
1001 start=+1500ms
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice]
--- seckill
    seckill_limit rate=1r/m;
--- after eval
[sub { sleep 2 }]
--- response_body_like eval
[qr/"code":40001,/, qr/"code":0,/]



=== TEST 9: a wrong token costs its user nothing
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[::bearer(::token(1001, key => 'x' x 32)), $::Alice]
--- error_code eval
[401, 200]
--- response_body_like eval
[qr/"code":40100,/, qr/"code":0,/]



=== TEST 10: a hundred at the same instant, one passes
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/m;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd((['POST', '/seckill/1001', $::Alice]) x 100);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 1, 'one is served');
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40003,/ } @answers), 99, '99 are limited');
}]
--- redis_calls
EVALSHA => 1



=== TEST 11: limits are kept by all workers together
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/m;
--- main_config
    worker_rlimit_nofile 4096;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_ % 10 + 1))] } 1 .. 100);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 10, 'one of each user is served');
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40003,/ } @answers), 90, 'all others are limited');
}]
--- redis_check
GET seckill:stock:{1001} => 0



=== TEST 12: a small zone that many users fill serves on
--- sale: 1001 stock=10
--- seckill
    seckill_zone sale:64k;
--- pipelined_requests eval
["POST /seckill/1001", (map {"POST /seckill/1001"} 1 .. 900)]
--- more_headers eval
[map { ::bearer(::token($_)) } 1 .. 901]
--- timeout: 10s
--- response_body_like eval
[(qr/"code":0,/) x 10, (qr/"code":40005,/) x 891]
--- no_error_log
[alert]
