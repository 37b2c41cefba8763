# A sale that is not whole sells nothing and tells nobody that nothing was bought;
# a settled one says "ended" for as long as its facts are there.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

sub main::code { return $_[0]{body} =~ /"code":(\d+)/ ? $1 : "status $_[0]{status}" }

# Posts as a user and returns the code of the answer.
sub main::buy { return ::code(::crowd(['POST', '/seckill/1001', ::bearer(::token($_[0]))])) }

sub main::poll { return ::code(::crowd(['GET', '/seckill/result/1001', ::bearer(::token($_[0]))])) }

sub main::buys  { return CORE::join ',', map { ::buy($_) } @_ }
sub main::polls { return CORE::join ',', map { ::poll($_) } @_ }

sub main::nap { return select undef, undef, undef, $_[0] }

sub main::key { return "seckill:$_[0]:{1001}" }

sub main::fact { return ::redis('HSET', ::key('activity'), @_) }

# What seckilld does with a purchase of this user.
sub main::order {
    my ($user, $id) = @_;
    return ::redis('SET', ::key("result:$user"), qq({"success":true,"order_id":$id,"order_no":"26112910203040500100100000010001"}));
}

__DATA__

=== TEST 1: F-D1 F-D3: each key of a sale, deleted: 50302 and never "no purchase found"
--- sale: 1001 stock=100
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::fact('buyers_extra', 0);
    Test::More::is(::buys(1 .. 5), '0,0,0,0,0', 'five buy');
    ::order($_, 10 + $_) for 1, 2;
    Test::More::is(::polls(1, 2, 3, 99), '1,1,0,40006', 'two have their order, one waits, one never bought');
    for my $key (qw(stock order_users orders)) {
        ::redis('RENAME', ::key($key), 'away');
        Test::More::is(::poll(99), '50302', "without $key: nobody is told that he never bought");
        ::nap(0.25);
        Test::More::is(::buys(98), '50302', "without $key: a purchase is not taken");
        Test::More::is(::polls(99), '50302', "without $key: still so");
        Test::More::is(::polls(1, 2), '1,1', "without $key: orders are known");
        Test::More::is(::buy(1), '40004', "without $key: to a purchase too, where this node knows it");
        Test::More::like(::poll(3), $key eq 'order_users' ? qr/^50302$/ : qr/^0$/, "without $key: who waits");
        ::redis('RENAME', 'away', ::key($key));
        ::nap(0.25);
        Test::More::is(::polls(1, 3, 99), '1,0,40006', "with $key again");
    }
    Test::More::is(::buys(6), '0', 'and the sale goes on');
    Test::More::is(::redis('SCARD', ::key('order_users')), 6, 'six bought');
    Test::More::is(::log_count(qr{activity 1001 is not whole in redis: (?:stock|order_users|orders)$}), 3, "one line for each loss");
}]



=== TEST 2: F-D1: fewer buyers than there must be; and registered users that are gone
--- sale: 1001 stock=100 eligible=1,2,3,4,5,99
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::fact('buyers_extra', 0, 'eligible_had', 1);
    Test::More::is(::buys(1 .. 4), '0,0,0,0', 'four buy');
    ::redis('SREM', ::key('order_users'), 4);
    Test::More::is(::polls(4, 99), '50302,50302', 'one buyer is lost: nobody hears that he never bought');
    ::redis('SADD', ::key('order_users'), 4);

    ::redis('RENAME', ::key('eligible'), 'away');
    ::nap(0.25);
    Test::More::is(::buys(5), '50302', 'who had registered is not told that he had not');
    Test::More::is(::poll(99), '50302', 'nor that he never bought');
    ::redis('RENAME', 'away', ::key('eligible'));
    ::nap(0.25);
    Test::More::is(::buys(5), '0', 'the shop has loaded them again');
}]



=== TEST 3: F-D3: paused after a loss, and all through a restore
--- sale: 1001 stock=100
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1 .. 5), '0,0,0,0,0', 'five buy');
    ::order(1, 11);
    Test::More::is(::polls(1), '1', 'the first has an order');
    ::fact('seq', 3);
    ::redis('INCRBY', ::key('stock'), 2);
    ::redis('SREM', ::key('order_users'), 4, 5);
    Test::More::is(::polls(5), '50302', 'Redis looks whole and knows less than this node');
    ::fact('state', 'paused', 'rev', 7);
    ::nap(0.25);
    Test::More::is(::polls(4, 5, 99), '50302,50302,50302', 'paused');
    Test::More::is(::polls(1, 3), '1,0', 'what Redis still knows is told');
    Test::More::is(::buy(99), '50303', 'nothing is sold');

    ::redis('DEL', ::key('stock'), ::key('order_users'), ::key('result:1'));
    ::nap(0.25);
    Test::More::is(::buys(99, 5), '50302,50302', 'cleared');
    Test::More::is(::polls(1, 3, 5, 99), '1,50302,50302,50302', 'cleared, results');
    ::redis('SADD', ::key('order_users'), 1, 3);
    Test::More::is(::polls(3, 5), '0,50302', 'half of the buyers are back');
    ::redis('SADD', ::key('order_users'), 2, 4, 5);
    ::redis('SET', ::key('stock'), 95);
    ::fact('state', 'open', 'epoch', 2, 'seq', 0, 'rev', 8, 'buyers_extra', 5);
    ::nap(0.25);
    Test::More::is(::polls(1, 5, 99), '0,0,40006', 'restored: the truth again');
    Test::More::is(::buys(99), '0', 'and it sells');
}]
--- no_error_log
[crit]



=== TEST 4: a sale that Redis lost, as the tool marks it
--- sale: 1001 stock=100
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1 .. 3), '0,0,0', 'three buy');
    ::order($_, 10 + $_) for 1;
    Test::More::is(::polls(1, 99), '1,40006', 'one has an order');
    ::redis('DEL', map { ::key($_) } qw(activity stock order_users orders result:1));
    ::nap(0.25);
    Test::More::is(::buys(2, 99), '50302,50302', 'lost: nobody buys');
    Test::More::is(::polls(2, 99), '50302,50302', 'lost: nobody is told "not started"');
    Test::More::is(::polls(1) . ',' . ::buy(1), '1,40004', 'lost: an order that this node knows stays one');
    for my $facts ([ 'state', 'lost' ], [ 'state', 'lost', 'epoch', 1, 'rev', 9, 'seq', 0 ]) {
        ::fact(@{$facts});
        ::nap(0.25);
        Test::More::is(::buys(2, 99), '50302,50302', "marked (@{$facts}): nobody buys");
        Test::More::is(::polls(2, 99), '50302,50302', 'marked: nobody is told that he never bought');
        Test::More::is(::polls(1) . ',' . ::buy(1), '1,40004', 'marked: an order that this node knows stays one');
        Test::More::is(::code(::crowd(['GET', '/seckill/1001'])), '50302', 'marked: and its facts are no facts');
    }
}]



=== TEST 5: F-D5: a settled sale whose keys have expired, at a node that was not asked in between
--- sale: 1001 stock=5 start=-2h end=-1h
--- redis
HSET seckill:activity:{1001} state settled rev 5 seq 5
DEL seckill:stock:{1001} seckill:orders:{1001}
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "ended"
--- after eval
[sub {
    Test::More::is(::buys(1 .. 5), '40002,40002,40002,40002,40002', 'ended');
    Test::More::is(::polls(1 .. 3), '40002,40002,40002', 'and the result route says the same');
    ::nap(0.25);
    Test::More::is(::buys(1) . ',' . ::poll(1), '40002,40002', 'also later');
    ::redis('DEL', ::key('activity'));
    ::nap(0.25);
    Test::More::is(::buys(1) . ',' . ::poll(1), '40001,40001', 'until the facts have expired too');
}]
--- redis_calls
HSETNX => 0



=== TEST 6: F-D5: one that was, and a buyer whom it remembers
--- sale: 1001 stock=5 start=-2h end=+1h
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1, 2), '0,0', 'two buy');
    ::order(1, 11);
    Test::More::is(::polls(1, 2, 9), '1,0,40006', 'one has an order');
    ::fact('state', 'settled', 'rev', 5);
    ::nap(0.25);
    Test::More::is(::polls(1, 9) . ',' . ::buys(1, 9), '1,40006,40004,40002', 'settled, with all its keys');
    ::redis('DEL', map { ::key($_) } qw(stock order_users orders result:1));
    ::nap(0.25);
    Test::More::is(::polls(2, 9) . ',' . ::buys(2, 9), '40002,40002,40002,40002', 'they have expired');
    Test::More::is(::polls(1) . ',' . ::buy(1), '1,40004', 'who is remembered hears of the order');
    ::redis('DEL', ::key('activity'));
    ::nap(0.25);
    Test::More::is(::polls(1, 9) . ',' . ::buys(1, 9), '40001,40001,40001,40001', 'and with the facts all of it ends');
}]



=== TEST 7: an event stream of a sale that is over ends with its last event
--- sale: 1001 stock=5 start=-2h end=-1h
--- redis
HSET seckill:activity:{1001} state settled rev 5 seq 5
DEL seckill:stock:{1001} seckill:orders:{1001}
--- request
GET /seckill/result/1001
--- more_headers eval: "$::Alice\nAccept: text/event-stream"
--- response_headers
Content-Type: text/event-stream
--- response_body_like: ^retry: 1000\nid: final\nevent: result\ndata: \{"code":40002,



=== TEST 8: F-G3: a result of megabytes fails its own question only
--- sale: 1001 stock=5
--- seckill
    seckill_limit off;
    seckill_redis_connections 1;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1, 2), '0,0', 'two buy');
    ::redis('SET', ::key('result:1'), 'x' x (5 * 1024 * 1024));
    Test::More::is(::polls(1, 2, 1, 2), '50302,0,50302,0', 'only the first does not hear how it went');
}]
--- error_log
is damaged
--- no_error_log
lost:
