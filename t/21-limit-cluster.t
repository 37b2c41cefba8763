# A limit that all nodes share, kept by the script that sells; and a dry run.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use Time::HiRes ();

log_level('info');
no_shuffle();
run_tests();

__DATA__

=== TEST 1: the first request is charged in Redis, value and expiry in one step (C12)
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/s scope=cluster;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my $ttl = ::redis('PTTL', 'seckill:limit:1001:{1001}');
    Test::More::cmp_ok($ttl, '>', 0, 'the key expires');
    Test::More::cmp_ok($ttl, '<=', 1000, 'with the interval');
}]



=== TEST 2: what another node charged counts here
--- sale: 1001 stock=10
--- redis: EVAL "local t = redis.call('TIME') redis.call('SET', KEYS[1], string.format('%d', t[1] * 1000 + 30000))" 1 seckill:limit:1001:{1001}
--- seckill
    seckill_limit rate=1r/m scope=cluster;
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- response_headers_like eval
["Retry-After: 60", ""]
--- response_body_like eval
[qr/"code":40003,/, qr/"code":0,/]
--- redis_check
SISMEMBER seckill:order_users:{1001} 1001 => 0



=== TEST 3: a hundred requests of one user at one instant (C11)
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/s scope=cluster;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd((['POST', '/seckill/1001', $::Alice]) x 100);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 1, 'one passes');
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40003,/ } @answers), 99, 'the others are limited');
}]



=== TEST 4: a limit key that is no number of ours is as good as none
--- sale: 1001 stock=10
--- redis
RPUSH seckill:limit:1001:{1001} x
SET seckill:limit:1002:{1001} abc
--- seckill
    seckill_limit rate=1r/s scope=cluster;
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- response_body_like eval
[qr/"code":0,/, qr/"code":0,/]



=== TEST 5: the burst passes, and one more does not
--- sale: 1001 stock=10
--- redis
EVAL "local t = redis.call('TIME') redis.call('SET', KEYS[1], string.format('%d', t[1] * 1000 + 150000))" 1 seckill:limit:1001:{1001}
EVAL "local t = redis.call('TIME') redis.call('SET', KEYS[1], string.format('%d', t[1] * 1000 + 210000))" 1 seckill:limit:1002:{1001}
--- seckill
    seckill_limit rate=1r/m burst=3 scope=cluster;
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40003,/]



=== TEST 6: a dry run says so and lets pass
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/s dry_run;
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/]
--- after eval
[undef, sub { Test::More::is(::log_count(qr/seckill would limit user 1001, dry run/), 1, 'one line') }]



=== TEST 7: a dry run is for one node
--- seckill
    seckill_limit rate=1r/s scope=cluster dry_run;
--- must_die
--- error_log
"dry_run" is for "scope=node" only



=== TEST 8: a forged address changes nothing for the user's limit (C17)
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
["$::Alice\nX-Forwarded-For: 10.0.0.1", "$::Alice\nX-Forwarded-For: 10.0.0.2", "$::Bob\nX-Forwarded-For: 10.0.0.1"]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40003,/, qr/"code":0,/]



=== TEST 9: more than this rate ever charges was charged by a slower one, no longer in force
--- sale: 1001 stock=10
--- redis
EVAL "local t = redis.call('TIME') redis.call('SET', KEYS[1], string.format('%d', t[1] * 1000 + 90000))" 1 seckill:limit:1001:{1001}
--- seckill
    seckill_limit rate=1r/m scope=cluster;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- redis_check
PTTL seckill:limit:1001:{1001} =~ ^(?:60000|5\d{4})$
