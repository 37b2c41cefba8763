# Redis that answers, and what it holds or allows is not right: damaged keys, no
# memory, too few rights.  Nothing is taken, and it is never "sold out".

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: keys of a wrong type: nothing is taken (A20)
--- sale
1001 stock=10
1002 stock=10
1003 stock=10
1004 stock=10
1005 stock=10
--- seckill
    seckill_limit off;
--- redis
SET seckill:orders:{1001} text
SET seckill:order_users:{1002} text
DEL seckill:stock:{1003}
RPUSH seckill:stock:{1003} a
SET seckill:stock:{1004} abc
SET seckill:stock:{1005} -3
--- request eval
[map { ("POST /seckill/$_", "POST /seckill/$_") } 1001 .. 1005]
--- more_headers eval
[($::Alice, $::Bob) x 5]
--- error_code eval
[(503) x 10]
--- response_body_like eval
[(qr/"code":50302,/) x 10]
--- after eval
[(undef) x 9, sub {
    my $lines = ::log_count(qr/\[error\].*seckill purchases of activity \d+ refused by redis: /);
    Test::More::cmp_ok($lines, '>=', 1, 'an alarm');
    Test::More::cmp_ok($lines, '<=', 10, 'or one a second');
}]
--- redis_check
GET seckill:stock:{1001} => 10
GET seckill:stock:{1002} => 10
GET seckill:stock:{1004} => abc
SCARD seckill:order_users:{1001} => 0
SCARD seckill:order_users:{1003} => 0
XLEN seckill:orders:{1002} => 0
XLEN seckill:orders:{1003} => 0
XLEN seckill:orders:{1004} => 0
XLEN seckill:orders:{1005} => 0



=== TEST 2: no stock key is not "sold out" (C6)
--- sale: 1001 stock=10
--- redis: DEL seckill:stock:{1001}
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- error_log
seckill activity 1001 is not whole in redis: stock
--- redis_check
EXISTS seckill:stock:{1001} => 0
SCARD seckill:order_users:{1001} => 0
XLEN seckill:orders:{1001} => 0



=== TEST 3: facts that are damaged
--- sale
1001 stock=10
1002 stock=10
1003 stock=10
--- redis
HDEL seckill:activity:{1001} max_quantity
HSET seckill:activity:{1002} end_ms soon
DEL seckill:activity:{1003}
SET seckill:activity:{1003} text
--- request eval
["POST /seckill/1001", "POST /seckill/1002", "POST /seckill/1003"]
--- more_headers eval
[$::Alice, $::Alice, $::Alice]
--- error_code eval
[503, 503, 503]
--- response_body_like eval
[(qr/"code":50302,/) x 3]
--- redis_check
GET seckill:stock:{1001} => 10
GET seckill:stock:{1002} => 10
GET seckill:stock:{1003} => 10



=== TEST 4: Redis has no memory left (A19)
--- sale: 1001 stock=100
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my ($used) = ::redis('INFO', 'memory') =~ /^used_memory:(\d+)/m;
    ::redis('CONFIG', 'SET', 'maxmemory', $used - 100_000);
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 50);
    Test::More::is(scalar(grep { $_->{status} == 503 && $_->{body} =~ /"code":50302,/ } @answers), 50, 'nothing was taken');
    Test::More::is(CORE::join(' ', ::redis('GET', 'seckill:stock:{1001}'), ::redis('SCARD', 'seckill:order_users:{1001}'),
                              ::redis('XLEN', 'seckill:orders:{1001}')), '100 0 0', 'indeed');
    ::redis('CONFIG', 'SET', 'maxmemory', 0);
    @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 50);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 50, 'all buy when there is some again');
}]
--- redis_check
GET seckill:stock:{1001} => 50
CONFIG GET maxmemory => maxmemory 0



=== TEST 5: a user with the documented rights only (A27)
--- sale: 1001 stock=10
--- redis
ACL SETUSER shop reset on ">p@ss:w/o#r%d 1" ~seckill:* +hmget +hlen +hstrlen +type +getrange +get +sismember +exists +time +evalsha +script|load +select +scard +xlen +sadd +srem +xadd +decrby +hset +hsetnx +sscan
--- seckill eval
::write_key('shop.password', "p\@ss:w/o#r%d 1\n");
"seckill_redis \$TEST_NGINX_REDIS user=shop password_file=\$TEST_NGINX_DIR/shop.password;\nseckill_limit off;\n"
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "GET /seckill/result/1001", "GET /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice, $::Alice, "X-None: 1", $::Bob]
--- after eval
[undef, undef, undef, sub { ::redis('ACL', 'SETUSER', 'shop', '-evalsha') }]
--- error_code eval
[200, 200, 200, 200, 503]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/, qr/"code":0,/, qr/"start_ms"/, qr/"code":50302,/]
--- no_error_log
p@ss
--- redis_check
ACL DELUSER shop => 1



=== TEST 6: a wrong password is said once, and not what it was
--- sale: 1001 stock=10
--- redis
ACL SETUSER shop reset on >right ~seckill:* +@all
--- seckill eval
::write_key('wrong.password', "wrongest\n");
"seckill_redis \$TEST_NGINX_REDIS user=shop password_file=\$TEST_NGINX_DIR/wrong.password;\n"
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- error_code eval
[503, 503]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":50302,/]
--- no_error_log
wrongest
--- redis_check
ACL DELUSER shop => 1
GET seckill:stock:{1001} => 10



=== TEST 7: an activity that was there and is gone was lost, not unknown
--- sale: 1001 stock=10
--- seckill
    seckill_refresh 100ms;
--- request eval
["GET /seckill/1001", "POST /seckill/1001", "GET /seckill/1001"]
--- more_headers eval
["X-None: 1", $::Alice, "X-None: 1"]
--- after eval
[sub { ::redis('DEL', 'seckill:activity:{1001}'); select undef, undef, undef, 0.3 }]
--- error_code eval
[200, 503, 503]
--- response_body_like eval
[qr/"running"/, qr/"code":50302,/, qr/"code":50302,/]



=== TEST 8: F-E1: a stream at its last id takes nothing: busy, and nothing was taken, nor the limit
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/m;
--- redis
XADD seckill:orders:{1001} 18446744073709551615-18446744073709551615 v 1
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "GET /seckill/result/1001"]
--- more_headers eval
[($::Alice) x 3]
--- error_code eval
[503, 503, 200]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":50302,/, qr/"code":40006,/]
--- after eval
[undef, sub {
    Test::More::cmp_ok(::log_count(qr/\[error\].*seckill purchases of activity 1001: orders takes no purchase: /),
                       '>=', 1, 'the log names it');
}]
--- redis_check
GET seckill:stock:{1001} => 10
SCARD seckill:order_users:{1001} => 0
HGET seckill:activity:{1001} seq => 0
HGET seckill:activity:{1001} state => open



=== TEST 9: F-D1: lost buyers pause the sale, and the log says so
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- after eval
[sub {
    ::redis('HSET', 'seckill:activity:{1001}', 'buyers_extra', '0');
    ::redis('DEL', 'seckill:order_users:{1001}');
}, sub {
    Test::More::is(::log_count(qr/activity 1001: paused: order_users holds 0 buyers, 1 are missing/), 1, 'an alarm');
}]
--- error_code eval
[200, 503]
--- response_body_like eval
[qr/"code":0,/, qr/"code":5030[23],/]
--- redis_check
GET seckill:stock:{1001} => 9
HGET seckill:activity:{1001} state => paused
