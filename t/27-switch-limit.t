# What an operator sets while nginx runs: the limit of purchases in Redis, in
# place of seckill_limit; and the switch of one node, seckill_switch.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
master_on();
no_shuffle();
run_tests();

# Sets or drops fields as lua/limit.lua does, and tells the nodes.
sub main::limit {
    my ($key, $rate, $burst) = @_;

    defined $rate ? ::redis('HSET', $key, limit => $rate, limit_burst => $burst // 0)
                  : ::redis('HDEL', $key, 'limit', 'limit_burst');
    ::redis('HINCRBY', $key, 'rev', 1) if $key ne 'seckill:control';
    ::redis('HINCRBY', 'seckill:control', 'rev', 1);
    return;
}

# How many of two purchases at one moment pass, by n new users each.
sub main::pass_both {
    my ($n) = @_;

    my @users = map { ++$::Next } 1 .. $n;
    my @codes = map { $_->{body} =~ /"code":(\d+),/ ? $1 : 'none' }
        ::crowd(map { my $who = ::bearer(::token($_)); (['POST', '/seckill/1001', $who]) x 2 } @users);
    return 2 * $n - grep { $_ eq '40003' } @codes;
}

BEGIN { $::Next = 5000 }

__DATA__

=== TEST 1: the limit of the sale, where nginx has none; and no more calls than without
--- sale: 1001 stock=10
--- redis: HSET seckill:activity:{1001} limit 2r/m limit_burst 0
--- seckill
    seckill_limit off;
--- pipelined_requests eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- response_headers_like eval
["", "Retry-After: (?:29|30)"]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40003,/]
--- redis_calls
HLEN => 2
EVALSHA => 1



=== TEST 2: that of all
--- sale: 1001 stock=10
--- redis: HSET seckill:control limit 2r/m limit_burst 1
--- seckill
    seckill_limit off;
--- pipelined_requests eval
[("POST /seckill/1001") x 3]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/, qr/"code":40003,/]



=== TEST 3: the sale's own beats that of all, which beats nginx'
--- sale
1001 stock=10
1002 stock=10
1003 stock=10
--- redis
HSET seckill:control limit 1r/m limit_burst 1
HSET seckill:activity:{1001} limit off limit_burst 0
HSET seckill:activity:{1002} limit 1r/m limit_burst 0
--- seckill
    seckill_limit rate=1r/m burst=2;
--- pipelined_requests eval
[("POST /seckill/1001") x 4, ("POST /seckill/1002") x 2, ("POST /seckill/1003") x 3]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, (qr/"code":40004,/) x 3, qr/"code":0,/, qr/"code":40003,/, qr/"code":0,/, qr/"code":40004,/, qr/"code":40003,/]



=== TEST 4: off, and nobody is limited
--- sale: 1001 stock=10
--- redis: HSET seckill:control limit off limit_burst 0
--- seckill
    seckill_limit rate=1r/m;
--- pipelined_requests eval
[("POST /seckill/1001") x 20]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, (qr/"code":40004,/) x 19]



=== TEST 5: polls have a limit of their own
--- sale: 1001 stock=10
--- redis
HSET seckill:control limit 1r/m limit_burst 0
SADD seckill:order_users:{1001} 1001
--- pipelined_requests eval
[("GET /seckill/result/1001") x 10]
--- more_headers eval: $::Alice
--- response_body_like eval
[(qr/"code":0,/) x 10]



=== TEST 6: all nodes share it, where nginx says scope=cluster
--- sale: 1001 stock=10
--- redis
HSET seckill:activity:{1001} limit 1r/m limit_burst 2
EVAL "local t = redis.call('TIME') redis.call('SET', KEYS[1], string.format('%d', t[1] * 1000 + 150000))" 1 seckill:limit:1002:{1001}
EVAL "local t = redis.call('TIME') redis.call('SET', KEYS[1], string.format('%d', t[1] * 1000 + 50000))" 1 seckill:limit:1003:{1001}
--- seckill
    seckill_limit rate=1r/s scope=cluster;
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Carol]
--- response_headers_like eval
["", "Retry-After: 60", ""]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40003,/, qr/"code":0,/]
--- redis_check
PTTL seckill:limit:1001:{1001} =~ ^(?:60000|5\d{4})$



=== TEST 7: off with scope=cluster: the script keeps none
--- sale: 1001 stock=10
--- redis: HSET seckill:activity:{1001} limit off limit_burst 0
--- seckill
    seckill_limit rate=1r/m scope=cluster;
--- pipelined_requests eval
[("POST /seckill/1001") x 3]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, (qr/"code":40004,/) x 2]
--- redis_check
EXISTS seckill:limit:1001:{1001} => 0



=== TEST 8: what was charged by a slower rate is forgotten when the rate is raised
--- sale: 1001 stock=10
--- redis
HSET seckill:activity:{1001} limit 10r/s limit_burst 0
EVAL "local t = redis.call('TIME') redis.call('SET', KEYS[1], string.format('%d', t[1] * 1000 + 50000))" 1 seckill:limit:1001:{1001}
--- seckill
    seckill_limit rate=1r/m scope=cluster;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,



=== TEST 9: changed while it runs, in force within seckill_refresh, both ways
--- sale: 1001 stock=100000
--- seckill
    seckill_limit off;
    seckill_refresh 300ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- timeout: 20s
--- after eval
[sub {
    my $own = 'seckill:activity:{1001}';
    Test::More::is(::pass_both(20), 40, 'no limit');
    ::limit($own, '1r/m');
    Time::HiRes::sleep(0.4);
    Test::More::is(::pass_both(20), 20, 'one a minute');
    my ($answer) = ::crowd(['POST', '/seckill/1001', ::bearer(::token($::Next))]);
    Test::More::like($answer->{body}, qr/"code":40003,/, 'a user who is limited for a minute');
    ::limit($own, '10r/s');
    Time::HiRes::sleep(0.5);
    ($answer) = ::crowd(['POST', '/seckill/1001', ::bearer(::token($::Next))]);
    Test::More::like($answer->{body}, qr/"code":40004,/, '... is not, by the new rate');
    ::limit($own);
    ::limit('seckill:control', '1r/m');
    Time::HiRes::sleep(0.4);
    Test::More::is(::pass_both(20), 20, 'that of all, when the own one was taken back');
    ::reload();
    Test::More::is(::pass_both(20), 20, '... over a reload');
    ::limit('seckill:control');
    Time::HiRes::sleep(0.4);
    Test::More::is(::pass_both(20), 40, 'as configured again');
}]



=== TEST 10: Redis refused: what was charged by the limit of the sale is given back
--- sale: 1001 stock=10
--- redis: HSET seckill:activity:{1001} limit 1r/m limit_burst 0
--- seckill
    seckill_limit rate=1000r/s;
--- fake_redis
EVALSHA 1: error SECKILL facts of the activity are missing or damaged
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[503, 200, 200]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":0,/, qr/"code":40003,/]



=== TEST 11: a dry run stays one
--- sale: 1001 stock=10
--- redis: HSET seckill:activity:{1001} limit 1r/m limit_burst 0
--- seckill
    seckill_limit rate=1000r/s dry_run;
--- pipelined_requests eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/]
--- after eval
[undef, sub { Test::More::is(::log_count(qr/seckill would limit user 1001, dry run/), 1, 'one line') }]



=== TEST 12: a limit that is none: the next one in line, and a word in the log
--- sale: 1001 stock=10
--- redis
HSET seckill:activity:{1001} limit often limit_burst 0
HSET seckill:control limit 1r/m
--- seckill
    seckill_limit rate=1r/m burst=1;
--- pipelined_requests eval
[("POST /seckill/1001") x 3]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/, qr/"code":40003,/]
--- after eval
[undef, undef, sub {
    Test::More::cmp_ok(::log_count(qr/seckill limit of activity 1001 is damaged, the next/), '>', 0, 'that of the sale');
    Test::More::cmp_ok(::log_count(qr/seckill limit of all activities is damaged, that of nginx/), '>', 0, 'that of all');
}]



=== TEST 13: the status shows what is set in Redis
--- sale
1001 stock=10
1002 stock=10
1003 stock=10 state=closed
--- redis
HSET seckill:control limit 3r/m limit_burst 0
HSET seckill:activity:{1002} limit off limit_burst 0
--- config
    location /seckill/ { seckill on; }
    location = /status { seckill_status; }
    location = /status.json { seckill_status json; }
--- request eval
["GET /seckill/1001", "GET /seckill/1002", "GET /seckill/1003", "GET /status", "GET /status.json"]
--- response_body_like eval
[qr/running/, qr/running/, qr/closed/,
 qr/^seckill_closed\{activity="1001"\} 0\nseckill_closed\{activity="1002"\} 0\nseckill_closed\{activity="1003"\} 1\n(?s:.*)^seckill_limit_interval_seconds\{activity="1001"\} 20\.000\nseckill_limit_interval_seconds\{activity="1002"\} 0\.000\n/m,
 qr/"1002":\{"stock":10,"start_ms":\d+,"end_ms":\d+,"closed":false,"limit":\{"interval_ms":0,"burst":0\},(?s:.*)"1003":\{[^{]*"closed":true,"limit":\{"interval_ms":20000,/]



=== TEST 14: nothing is set, nothing is shown; all closed is closed
--- sale: 1001 stock=10
--- redis: HSET seckill:control state closed
--- config
    location /seckill/ { seckill on; }
    location = /status { seckill_status; }
--- request eval
["GET /seckill/1001", "GET /status"]
--- response_body_like eval
[qr/closed/, qr/^seckill_closed\{activity="1001"\} 1\n(?!(?s:.*)^seckill_limit_interval_seconds\{)/m]



=== TEST 15: the switch of a node: purchases are refused, results and facts are served
--- sale: 1001 stock=10
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":false,\"reason\":\"over_limit\"}"
--- seckill
    seckill_switch off;
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "GET /seckill/result/1001", "GET /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Alice, "X-None: 1"]
--- error_code eval
[503, 503, 200, 200]
--- response_headers_like eval
["Retry-After: 1\nCache-Control: no-store", "Retry-After: 1", "", ""]
--- response_body_like eval
[qr/^\{"code":50303,"message":"活动太火爆，请稍后再试","data":null,/, qr/"code":50303,/, qr/"code":2,/, qr/"state":"closed"/]
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 16: it says so without Redis
--- sale: 1001 stock=10
--- seckill
    seckill_switch off;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50303,
--- redis_calls
HMGET => 0
EVALSHA => 0



=== TEST 17: an inner level opens what an outer one closes, and the other way round
--- sale: 1001 stock=10
--- config
    seckill_switch off;
    location /seckill/ {
        seckill on;
        location /seckill/open/ {
            seckill_switch on;
            location /seckill/open/shut/ { seckill_switch off; }
        }
    }
--- request eval
["POST /seckill/1001", "POST /seckill/open/1001", "POST /seckill/open/shut/1001", "GET /seckill/open/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[503, 200, 503, 200]
--- response_body_like eval
[qr/"code":50303,/, qr/"code":0,/, qr/"code":50303,/, qr/"state":"running"/]



=== TEST 18: on, the entry is as Redis says
--- sale: 1001 stock=10 state=closed
--- seckill
    seckill_switch on;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50303,
