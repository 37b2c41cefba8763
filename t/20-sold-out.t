# Once Redis has said that nothing is left, or the end has passed, strangers are
# refused from memory and buyers still hear that they have bought.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

# Posts as a user and returns the code of the answer.
sub main::buy {
    my ($user, $path) = @_;
    my ($answer) = ::crowd(['POST', $path // '/seckill/1001', ::bearer(::token($user))]);
    return $answer->{body} =~ /"code":(\d+)/ ? $1 : "status $answer->{status}";
}

# How often Redis ran the script since the last call of this.
sub main::scripts {
    my ($calls) = ::redis('INFO', 'commandstats') =~ /cmdstat_evalsha:calls=(\d+)/;
    ::redis('CONFIG', 'RESETSTAT');
    return $calls // 0;
}

__DATA__

=== TEST 1: strangers without a call, a buyer with the same token
--- sale: 1001 stock=2
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "sold_out":false
--- after eval
[sub {
    Test::More::is(CORE::join(',', map { ::buy($_) } 1 .. 4), '0,0,40005,40005', 'two buy, two are too late');
    select undef, undef, undef, 0.2;
    ::scripts();
    Test::More::is(CORE::join(',', map { ::buy($_) } 5 .. 24), CORE::join(',', (40005) x 20), 'all the others are too late');
    Test::More::is(::scripts(), 0, 'and Redis has not heard of them');
    my ($answer) = ::crowd(['POST', '/seckill/1001', ::bearer(::token(2))]);
    my $ticket = ::ticket(1001, 2);
    Test::More::like($answer->{body}, qr/"code":40004,.*"queue_token":"\Q$ticket\E"/, 'a buyer is told so');
    Test::More::is(::scripts(), 1, 'by Redis');
}]
--- redis_check
GET seckill:stock:{1001} => 0
SCARD seckill:order_users:{1001} => 2



=== TEST 2: what Redis knows is read once, whatever is asked meanwhile
--- sale: 1001 stock=1
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::buy(1);
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 100 .. 199);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40005,/ } @answers), 100, 'all hear "sold out"');
}]
--- redis_calls
SSCAN => 1



=== TEST 3: units that come back are sold within seckill_refresh (C2)
--- sale: 1001 stock=1
--- seckill
    seckill_limit off;
    seckill_refresh 200ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::buy(1); ::buy(2);
    select undef, undef, undef, 0.1;
    Test::More::is(::buy(3), 40005, 'sold out, from memory');
    ::redis('INCRBY', 'seckill:stock:{1001}', 2);
    ::redis('HINCRBY', 'seckill:activity:{1001}', 'rev', 1);
    ::redis('HINCRBY', 'seckill:control', 'rev', 1);
    select undef, undef, undef, 0.4;
    Test::More::is(CORE::join(',', map { ::buy($_) } 1, 4, 5, 6), '40004,0,0,40005', 'two more, and no third');
}]



=== TEST 4: after the end, a stranger and a buyer
--- sale: 1001 stock=10 start=-1h end=-1s
--- redis
SADD seckill:order_users:{1001} 7
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "ended"
--- after eval
[sub {
    Test::More::is(CORE::join(',', map { ::buy($_) } 1, 7), '40002,40004', 'Redis tells who bought');
    select undef, undef, undef, 0.2;
    ::scripts();
    Test::More::is(CORE::join(',', map { ::buy($_) } 2 .. 9), '40002,40002,40002,40002,40002,40004,40002,40002',
                   'so does the filter');
    Test::More::is(::scripts(), 1, 'which asks Redis for the buyer only');
}]



=== TEST 5: a filter that does not fit is done without
--- sale: 1001 stock=0
--- redis
EVAL "for i = 1, 9000 do redis.call('SADD', KEYS[1], string.format('%d', i)) end" 1 seckill:order_users:{1001}
--- http_config
    seckill_zone small:128k;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_redis_timeout 2s;
    seckill_timeout 5s;
    seckill_auth_key_file $TEST_NGINX_KEY;
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "sold_out":true
--- after eval
[sub {
    Test::More::is(CORE::join(',', map { ::buy($_) } 1, 9001, 9000), '40004,40005,40004', 'Redis is asked');
    select undef, undef, undef, 0.3;
    ::scripts();
    Test::More::is(CORE::join(',', map { ::buy($_) } 2, 9002, 8999), '40004,40005,40004', 'and asked again');
    Test::More::is(::scripts(), 3, 'each time');
}]



=== TEST 6: ten thousand buyers, none of them is a stranger
--- sale: 1001 stock=0
--- redis
EVAL "for i = 1, 10000 do redis.call('SADD', KEYS[1], string.format('18446744073709%06d', i * 7)) end" 1 seckill:order_users:{1001}
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "sold_out":true
--- after eval
[sub {
    ::buy(1);
    select undef, undef, undef, 0.5;
    my @users = map { sprintf '18446744073709%06d', $_ * 7 } map { $_ * 97 } 1 .. 100;
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } @users);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40004,/ } @answers), 100, 'every buyer hears so');
    ::scripts();
    @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 100);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40005,/ } @answers), 100, 'every stranger is too late');
    Test::More::cmp_ok(::scripts(), '<=', 2, 'nearly all of them from memory');
}]



=== TEST 7: a buyer whose order this node has seen is answered from memory
--- sale: 1001 stock=5
--- redis
SADD seckill:order_users:{1001} 1001
SET seckill:result:1001:{1001} "{\"success\":true,\"order_id\":9,\"order_no\":\"26112910203040500100100000011001\"}"
--- request eval
["GET /seckill/result/1001", "POST /seckill/1001", "GET /seckill/result/1001", "POST /seckill/1001"]
--- more_headers eval
[($::Alice) x 4]
--- response_body_like eval
[qr/"code":1,.*"order_no":"26112910203040500100100000011001"/, qr/"code":40004,.*"state":"success","order_id":9,"order_no":"26112910203040500100100000011001"/,
 qr/"code":1,.*"order_id":9,"order_no":"26112910203040500100100000011001"/, qr/"code":40004,/]
--- redis_calls
EVALSHA => 0
