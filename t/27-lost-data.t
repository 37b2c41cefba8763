# A Redis that knows less of a sale than it told before has lost purchases: the
# next batch pauses the sale, before a lost number is given to somebody else.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

master_on();    # for the reload
log_level('info');
run_tests();

# Posts as a user and returns the code of the answer.
sub main::buy {
    my ($user, $id) = @_;
    my ($answer) = ::crowd(['POST', '/seckill/' . ($id // 1001), ::bearer(::token($user))]);
    return $answer->{body} =~ /"code":(\d+)/ ? $1 : "status $answer->{status}";
}

# What a replica looks like that missed the purchases behind that seq.
sub main::forget {
    my ($seq, @users) = @_;
    ::redis('HSET', 'seckill:activity:{1001}', 'seq', $seq);
    ::redis('INCRBY', 'seckill:stock:{1001}', CORE::scalar @users);
    ::redis('SREM', 'seckill:order_users:{1001}', @users);
    return;
}

sub main::state_of { return CORE::join ' ', ::redis('HMGET', 'seckill:activity:{1001}', 'state', 'seq') }

__DATA__

=== TEST 1: the sale stops with the first batch, and says so once
--- sale: 1001 stock=100
--- config
    location /seckill/ { seckill on; seckill_limit off; }
    location = /status { seckill_status; }
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(CORE::join(',', map { ::buy($_) } 1 .. 5), '0,0,0,0,0', 'five buy');
    ::forget(3, 4, 5);
    Test::More::is(CORE::join(',', map { ::buy($_) } 6, 7, 8), '50303,50303,50303', 'nobody after the loss');
    Test::More::is(::state_of(), 'paused 3', 'the sale is paused');
    Test::More::is(::redis('GET', 'seckill:stock:{1001}'), 97, 'nothing was taken');
    Test::More::is(::redis('SCARD', 'seckill:order_users:{1001}'), 3, 'nobody was added');
    Test::More::is(::log_count(qr/\[crit\].*lost data of activity 1001.*epoch 1 seq 5, and now epoch 1 seq 3/), 1, 'one alarm');
    my ($status) = ::crowd(['GET', '/status']);
    Test::More::like($status->{body}, qr/^seckill_data_loss_total 1$/m, 'and it is counted');
}]
--- error_log
lost data of activity 1001



=== TEST 2: also after a reload, and by an older epoch
--- sale: 1001 stock=100
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::redis('HSET', 'seckill:activity:{1001}', 'epoch', 4);
    Test::More::is(CORE::join(',', map { ::buy($_) } 1 .. 3), '0,0,0', 'three buy');
    ::reload();
    ::redis('HSET', 'seckill:activity:{1001}', 'epoch', 3);
    Test::More::is(::buy(4), '50303', 'nobody buys of an older epoch');
    Test::More::is(::state_of(), 'paused 3', 'the sale is paused');
}]
--- error_log
lost data of activity 1001



=== TEST 3: a restored sale has a new epoch and goes on
--- sale: 1001 stock=100
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::buy($_) for 1 .. 5;
    ::forget(3, 4, 5);
    Test::More::is(::buy(6), '50303', 'paused');
    ::redis('HSET', 'seckill:activity:{1001}', 'epoch', 2, 'seq', 0, 'rev', 9, 'state', 'open');
    ::redis('HINCRBY', 'seckill:control', 'rev', 1);
    select undef, undef, undef, 0.3;
    Test::More::is(CORE::join(',', map { ::buy($_) } 6, 7), '0,0', 'sold again');
    ::redis('HSET', 'seckill:activity:{1001}', 'seq', 1);
    Test::More::is(::buy(8), '50303', 'and watched again');
    Test::More::is(::log_count(qr/\[crit\].*lost data of activity 1001/), 2, 'a second alarm');
}]
--- error_log
lost data of activity 1001



=== TEST 4: an operator's word stays
--- sale: 1001 stock=100
--- seckill
    seckill_limit off;
    seckill_refresh 10s;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::buy($_) for 1 .. 5;
    ::forget(3, 4, 5);
    ::redis('HSET', 'seckill:activity:{1001}', 'state', 'closed');
    Test::More::is(::buy(6), '50303', 'closed');
    Test::More::is(::state_of(), 'closed 3', 'and closed it stays');
}]
--- error_log
lost data of activity 1001
