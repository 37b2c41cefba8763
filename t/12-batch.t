# Many at once: batches, what waits, and that not one unit too many is sold.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: fifty buyers, one unit (C3)
--- sale: 1001 stock=1
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 50);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 1, 'one buys');
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40005,/ } @answers), 49, 'all others hear "sold out"');
}]
--- redis_check
GET seckill:stock:{1001} => 0
XLEN seckill:orders:{1001} => 1



=== TEST 2: fifty buyers, nothing to buy (C3)
--- sale: 1001 stock=1
--- redis: SET seckill:stock:{1001} 0
--- request
GET /seckill/1001
--- response_body_like: "sold_out":true
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 50);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40005,/ } @answers), 50, 'all hear "sold out"');
}]
--- redis_check
GET seckill:stock:{1001} => 0
XLEN seckill:orders:{1001} => 0



=== TEST 3: one user clicks two hundred times (C1)
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd((['POST', '/seckill/1001', $::Alice]) x 200);
    my $ticket = ::ticket(1001, 1001);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 1, 'one purchase');
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40004,/ } @answers), 199, 'the others are repeats');
    Test::More::is(scalar(grep { $_->{body} =~ /"queue_token":"\Q$ticket\E"/ } @answers), 200, 'all with one token');
}]
--- redis_check
GET seckill:stock:{1001} => 9
XLEN seckill:orders:{1001} => 1



=== TEST 4: five hundred buyers, ten units (C2)
--- sale: 1001 stock=10
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 500);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 10, 'ten buy');
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40005,/ } @answers), 490, 'all others hear "sold out"');
    my @sold = grep { $answers[$_]{body} =~ /"code":0,/ } 0 .. 499;
    my @wrong = grep { my $ticket = ::ticket(1001, $_ + 1); $answers[$_]{body} !~ /\Q$ticket\E/ } @sold;
    Test::More::is("@wrong", '', 'each has the token of its user');
    my @in_redis = sort { $a <=> $b } split ' ', ::redis('SMEMBERS', 'seckill:order_users:{1001}');
    Test::More::is("@in_redis", CORE::join(' ', map { $_ + 1 } @sold), 'and they are the buyers in Redis');
}]
--- redis_check
GET seckill:stock:{1001} => 0
XLEN seckill:orders:{1001} => 10
HGET seckill:activity:{1001} seq => 10



=== TEST 5: purchases of one moment share a call
--- sale: 1001 stock=1000
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 400);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 400, 'all buy');
    my ($calls) = ::redis('EVAL', q{return redis.call('INFO', 'commandstats')}, 0) =~ /cmdstat_evalsha:calls=(\d+)/;
    Test::More::cmp_ok($calls, '<=', 200, "in $calls calls");
    Test::More::cmp_ok($calls, '>=', 400 / 32, 'of 32 at most');
}]
--- redis_check
GET seckill:stock:{1001} => 600
XLEN seckill:orders:{1001} => 400



=== TEST 6: a batch of one is one call each
--- sale: 1001 stock=100
--- seckill
    seckill_batch 1;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 50);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 50, 'all buy');
}]
--- redis_calls
EVALSHA => 50



=== TEST 7: many verdicts in one batch go to whom they belong
--- sale
1001 stock=20 max_quantity=2 eligible=1,2,3,4,5,6,7,8,9,10
--- redis: SADD seckill:order_users:{1001} 2 4
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_)), $_ % 2 ? '{"quantity":2}' : '{}'] } 1 .. 20);
    my @codes = map { $_->{body} =~ /"code":(\d+)/ ? $1 : '?' } @answers;
    Test::More::is("@codes", CORE::join(' ', 0, 40004, 0, 40004, (0) x 6, (40007) x 10), 'each its own');
}]
--- redis_check
GET seckill:stock:{1001} => 7



=== TEST 8: several activities at once
--- sale
1 stock=5
2 stock=50
3 stock=500
--- request
GET /seckill/1
--- response_body_like: "running"
--- after eval
[sub {
    my @answers = ::crowd(map { ['POST', '/seckill/' . ($_ % 3 + 1), ::bearer(::token($_))] } 1 .. 300);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 155, 'as many as there are');
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40005,/ } @answers), 145, 'all others hear "sold out"');
}]
--- redis_check
GET seckill:stock:{1} => 0
GET seckill:stock:{2} => 0
GET seckill:stock:{3} => 400



=== TEST 9: more than may wait is refused at once, and took nothing
--- sale
1 stock=100
2 stock=100
3 stock=100
4 stock=100
--- seckill
    seckill_max_pending 1;
    seckill_redis_timeout 300ms;
    seckill_refresh 10s;
--- fake_redis
EVALSHA: stall 100
--- request eval
[map {"GET /seckill/$_"} 1 .. 4]
--- response_body_like eval
[(qr/"running"/) x 4]
--- after eval
[undef, undef, undef, sub {
    my @answers = ::crowd(map { ['POST', "/seckill/$_", $::Alice] } 1 .. 4);
    my @sold = grep { $_->{body} =~ /"code":0,/ } @answers;
    my @busy = grep { $_->{body} =~ /"code":50302,/ } @answers;
    Test::More::is(@sold + @busy, 4, 'all are answered');
    Test::More::cmp_ok(scalar @sold, '>=', 1, 'some buy');
    Test::More::cmp_ok(scalar @busy, '>=', 1, 'some are refused');
    Test::More::ok(!(grep { $_->{seconds} > 0.25 } @busy), 'at once');
    my @bought = grep { ::redis('SCARD', "seckill:order_users:{$_}") } 1 .. 4;
    Test::More::is(scalar @bought, scalar @sold, 'who was refused did not buy');
}]



=== TEST 10: clients that leave while they wait do not disturb the others (A5)
--- sale: 1001 stock=100
--- seckill
    seckill_redis_timeout 700ms;
--- fake_redis
EVALSHA 1: stall 400
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $port = Test::Nginx::Socket::server_port_for_client();
    my @sockets;
    for my $user (1 .. 20) {
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!;
        syswrite $socket, "POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\n" . ::bearer(::token($user)) . "\r\n\r\n";
        push @sockets, $socket;
    }
    select undef, undef, undef, 0.1;
    for my $socket (splice @sockets, 0, 10) {
        setsockopt $socket, Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'ii', 1, 0;
        close $socket;
    }
    close $_ for @sockets;
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 21 .. 40);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 20, 'who stays buys');
}]
--- no_error_log
[alert]
