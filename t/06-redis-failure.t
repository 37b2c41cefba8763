# Redis that refuses, is slow, cuts, lies or is gone.  "50302" is said only when
# surely nothing was taken, "50301" when it may have been, and never "sold out".

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: refused by name, nothing was taken; the connection stays (A19, A21, A22, A27, A28)
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- fake_redis
EVALSHA 1: error OOM command not allowed when used memory > 'maxmemory'.
EVALSHA 2: error MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.
EVALSHA 3: error BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
EVALSHA 4: error NOPERM this user has no permissions to run the 'evalsha' command
EVALSHA 5: error NOREPLICAS Not enough good replicas to write.
EVALSHA 6: error MOVED 3999 127.0.0.1:6381
EVALSHA 7: error CLUSTERDOWN Hash slot not served
EVALSHA 8: error TRYAGAIN Multiple keys request during rehashing of slot
EVALSHA 9: error ASK 3999 127.0.0.1:6381
EVALSHA 10: error SECKILL stock is missing or not a number
EVALSHA 11: error WRONGTYPE Operation against a key holding the wrong kind of value
EVALSHA 12: error ERR Error running script (call to f_1): @user_script:80: -OOM command not allowed
--- pipelined_requests eval
[("POST /seckill/1001") x 13]
--- more_headers eval: $::Alice
--- error_code eval
[(503) x 12, 200]
--- response_headers_like eval
[("Retry-After: [1-9]\\d*") x 12, ""]
--- response_body_like eval
[(qr/^\{"code":50302,"message":"系统繁忙，请稍后再试","data":null,/) x 12, qr/"code":0,/]
--- after eval
[(undef) x 12, sub {
    Test::More::is(::log_count(qr/redis "[^"]*" is a node of a cluster, which is not supported: MOVED 3999/), 1,
                   'what MOVED means is said, once');
    Test::More::is(::log_count(qr/node of a cluster/), 1, 'for all that a cluster may say');
}]
--- redis_check
GET seckill:stock:{1001} => 9
XLEN seckill:orders:{1001} => 1



=== TEST 2: a node that is not the master any more is left (A17)
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- fake_redis
EVALSHA 1: error READONLY You can't write against a read only replica.
EVALSHA 2: error MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
EVALSHA 3: error NOAUTH Authentication required.
--- request eval
[("POST /seckill/1001") x 4]
--- more_headers eval: $::Alice
--- after eval
[(sub { sleep 1 }) x 3]
--- error_code eval
[503, 503, 503, 200]
--- response_body_like eval
[(qr/"code":50302,/) x 3, qr/"code":0,/]
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 3: Redis loads its data: refused at once, and it comes back by itself (A18)
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_refresh 10s;
--- fake_redis
EVALSHA 1: error LOADING Redis is loading the dataset in memory
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- after eval
[undef, sub { sleep 3 }]
--- error_code eval
[503, 503, 200]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":50302,/, qr/"code":0,/]
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 4: an error nobody knows may have run
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- fake_redis
EVALSHA 1: error ERR something else
EVALSHA 2: error WHAT
--- request eval
[("POST /seckill/1001") x 3]
--- more_headers eval: $::Alice
--- error_code eval
[503, 503, 200]
--- response_body_like eval
[(qr/^\{"code":50301,"message":"系统繁忙，请查询结果","data":null,/) x 2, qr/"code":0,/]



=== TEST 5: the script ran and the answer was lost: the buyer still has the unit (A24)
--- sale: 1001 stock=1
--- seckill
    seckill_limit off;
--- fake_redis
EVALSHA 1: run close
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "GET /seckill/result/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice, $::Alice, $::Bob]
--- after eval
[sub { sleep 1 }]
--- error_code eval
[503, 200, 200, 200]
--- response_body_like eval
my $ticket = ::ticket(1001, 1001);
[qr/"code":50301,/, qr/"code":40004,.*"queue_token":"\Q$ticket\E"/, qr/"code":0,/, qr/"code":40005,/]
--- redis_check
GET seckill:stock:{1001} => 0
XLEN seckill:orders:{1001} => 1
SMEMBERS seckill:order_users:{1001} => 1001



=== TEST 6: cut before it ran: it may have, says the answer, and posting again buys
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- fake_redis
EVALSHA 1: close
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- after eval
[sub { sleep 1 }]
--- error_code eval
[503, 200]
--- response_body_like eval
[qr/"code":50301,/, qr/"code":0,/]
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 7: no answer in time
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_redis_timeout 300ms;
--- fake_redis
EVALSHA 1: run silent
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- after eval
[sub { sleep 1 }]
--- error_code eval
[503, 200]
--- response_body_like eval
[qr/"code":50301,/, qr/"code":40004,/]
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 8: a late answer is not given to the next buyer (A23)
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_redis_timeout 100ms;
--- fake_redis
EVALSHA 1: delay 300
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Alice]
--- after eval
[sub { sleep 1 }]
--- error_code eval
[503, 200, 200]
--- response_body_like eval
my ($alice, $bob) = (::ticket(1001, 1001), ::ticket(1001, 1002));
[qr/"code":50301,/, qr/"code":0,.*"\Q$bob\E"/, qr/"code":40004,.*"\Q$alice\E"/]
--- redis_check
GET seckill:stock:{1001} => 8



=== TEST 9: it runs after the answer was given up
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_redis_timeout 100ms;
--- fake_redis
EVALSHA 1: stall 300
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- after eval
[sub { sleep 1 }]
--- error_code eval
[503, 200]
--- response_body_like eval
[qr/"code":50301,/, qr/"code":40004,/]
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 10: an answer byte by byte
--- sale: 1001 stock=10
--- fake_redis
EVALSHA: bytes
FACTS: bytes
CONTROL: bytes
GET: bytes
TIME: bytes
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,



=== TEST 11: half an answer, and then nothing or the end
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_redis_timeout 100ms;
--- fake_redis
EVALSHA 1: half
EVALSHA 2: half close
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Alice, $::Bob]
--- after eval
[sub { sleep 1 }, sub { sleep 1 }]
--- error_code eval
[503, 503, 200, 200]
--- response_body_like eval
[qr/"code":50301,/, qr/"code":50301,/, qr/"code":40004,/, qr/"code":40004,/]



=== TEST 12: what is not the Redis protocol
--- sale: 1001 stock=10
--- fake_redis
EVALSHA 1: garbage
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- after eval
[sub { sleep 1 }]
--- error_code eval
[503, 200]
--- response_body_like eval
[qr/"code":50301,/, qr/"code":0,/]



=== TEST 13: an answer that comes twice is not the next one's
--- sale: 1001 stock=10
--- fake_redis
EVALSHA 1: twice
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- after eval
[sub { sleep 1 }]
--- response_body_like eval
my ($alice, $bob) = (::ticket(1001, 1001), ::ticket(1001, 1002));
[qr/"code":0,.*"\Q$alice\E"/, qr/"code":0,.*"\Q$bob\E"/]



=== TEST 14: answers of another shape than the script's
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- fake_redis
EVALSHA 1: reply +OK
EVALSHA 2: reply nil
EVALSHA 3: reply [1 2 3]
EVALSHA 4: reply [1 2 3 4 5 ""]
EVALSHA 5: reply [1 2 3 4 5 "11"]
EVALSHA 6: reply [1 2 3 4 5 "x"]
EVALSHA 7: reply ["1" 2 3 4 5 "1"]
EVALSHA 8: reply [1 2 3 4 5 1]
EVALSHA 9: reply []
--- request eval
[("POST /seckill/1001") x 10]
--- more_headers eval: $::Alice
--- error_code eval
[(503) x 9, 200]
--- response_body_like eval
[(qr/"code":50301,/) x 9, qr/"code":0,/]



=== TEST 15: the script cache was emptied: nobody notices (A16)
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Carol]
--- after eval
[sub { ::redis('SCRIPT', 'FLUSH') }, sub { ::redis('SCRIPT', 'FLUSH') }]
--- response_body_like eval
[(qr/"code":0,/) x 3]
--- redis_check
GET seckill:stock:{1001} => 7
--- redis_calls
EVAL => 0
--- no_error_log
[error]



=== TEST 16: a script that is never there is no endless loop (A16)
--- sale: 1001 stock=10
--- fake_redis
EVALSHA: error NOSCRIPT No matching script. Please use EVAL.
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- fake_check
EVALSHA => 2



=== TEST 17: nothing listens there (A25)
--- seckill
    seckill_redis unix:$TEST_NGINX_DIR/nothing.sock;
--- request eval
["POST /seckill/1001", "GET /seckill/1001", "GET /seckill/result/1001"]
--- more_headers eval
[$::Alice, "X-None: 1", $::Alice]
--- error_code eval
[503, 503, 503]
--- response_headers_like eval
[("Retry-After: [1-9]\\d*") x 3]
--- response_body_like eval
[(qr/"code":50302,/) x 3]
--- after eval
[undef, undef, sub { Test::More::is(::log_count(qr/seckill redis "[^"]*" lost/), 1, 'one line for the whole outage') }]



=== TEST 18: every connection is closed at once (A26)
--- sale: 1001 stock=10
--- fake_redis
CONNECT: close
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 19: connections that nobody serves
--- sale: 1001 stock=10
--- seckill
    seckill_redis_connect_timeout 100ms;
    seckill_redis_timeout 150ms;
--- fake_redis
CONNECT: silent
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 20: too many clients there already
--- sale: 1001 stock=10
--- fake_redis
CONNECT: error ERR max number of clients reached
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 21: Redis stands still, and goes on
--- sale: 1001 stock=10
--- seckill
    seckill_redis_timeout 100ms;
    seckill_limit off;
    seckill_refresh 10s;
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Bob, $::Bob]
--- after eval
[sub { ::redis_stop() }, sub { ::redis_cont(); sleep 3 }]
--- error_code eval
[200, 503, 200]
--- response_body_like eval
[qr/"code":0,/, qr/"code":50301,/, qr/"code":40004,/]
--- redis_check
GET seckill:stock:{1001} => 8



=== TEST 22: facts that do not come: nothing was taken
--- sale: 1001 stock=10
--- seckill
    seckill_redis_timeout 100ms;
--- fake_redis
FACTS: silent
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- fake_check
EVALSHA => 0



=== TEST 23: the result does not come: a known buyer is told to ask again
--- sale: 1001 stock=10
--- seckill
    seckill_redis_timeout 100ms;
--- redis: SADD seckill:order_users:{1001} 1001
--- fake_redis
SISMEMBER: silent
--- request eval
["GET /seckill/result/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- after eval
[sub { sleep 1 }]
--- error_code eval
[503, 503]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":50301,/]



=== TEST 24: 50302 gives the limit back, 50301 does not
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/m;
--- fake_redis
EVALSHA 1: error OOM command not allowed
EVALSHA 2: error ERR something else
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[503, 503, 200]
--- response_body_like eval
[qr/"code":50302,/, qr/"code":50301,/, qr/"code":40003,/]



=== TEST 25: over TCP as well
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_REDIS_PORT;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 26: who is not sent in time was not taken, who was sent may have been
--- sale
1001 stock=10
--- seckill
    seckill_redis_timeout 400ms;
    seckill_limit off;
    seckill_refresh 10s;
--- fake_redis
EVALSHA 2: stall 700
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my $slow = fork;
    if (!$slow) { ::crowd(['POST', '/seckill/1001', $::Bob]); require POSIX; POSIX::_exit(0) }
    select undef, undef, undef, 0.05;
    my @answers = ::crowd(map { ['POST', '/seckill/1001', $_] } $::Carol, $::Dave);
    waitpid $slow, 0;
    Test::More::is($_->{status}, 503, 'waiting purchases are refused') for @answers;
    Test::More::like($_->{body}, qr/"code":50302,/, 'they were not taken') for @answers;
    Test::More::ok($_->{seconds} < 1, 'within the deadline') for @answers;
}]
--- wait: 1
--- redis_check
GET seckill:stock:{1001} => 8
SISMEMBER seckill:order_users:{1001} 1003 => 0
