# What depends on which generation of a sale: remembered orders on its epoch, the
# buyers' filter on its revision, limits and sessions on neither.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use Digest::SHA ();
use IO::Socket::INET;
use Time::HiRes ();

log_level('info');
run_tests();

sub main::code { return $_[0]{body} =~ /"code":(\d+)/ ? $1 : "status $_[0]{status}" }

# Posts as a user and returns the code of the answer.
sub main::buy { return ::code(::crowd(['POST', '/seckill/1001', ::bearer(::token($_[0]))])) }
sub main::buys { return CORE::join ',', map { ::buy($_) } @_ }

# The order_id of the answer, else its code.
sub main::order_of {
    my ($method, $user) = @_;
    my $path = $method eq 'GET' ? '/seckill/result/1001' : '/seckill/1001';
    my ($answer) = ::crowd([$method, $path, ::bearer(::token($user))]);
    return $answer->{body} =~ /"order_id":(\d+)/ ? "order $1" : ::code($answer);
}

sub main::nap { return select undef, undef, undef, $_[0] }

sub main::key { return "seckill:$_[0]:{1001}" }

sub main::text { return qq({"success":true,"order_id":$_[0],"order_no":"26112910203040500100100000010001"}) }

sub main::order { my ($user, $id) = @_; return ::redis('SET', ::key("result:$user"), ::text($id)) }

# What every act on a sale does last.
sub main::act {
    ::redis('HINCRBY', ::key('activity'), 'rev', 1);
    ::redis('HINCRBY', 'seckill:control', 'rev', 1);
    return;
}

sub main::calls {
    my ($name) = @_;
    my ($calls) = ::redis('INFO', 'commandstats') =~ /cmdstat_$name:calls=(\d+)/;
    return $calls // 0;
}

__DATA__

=== TEST 1: F-B3: an order that became another one while nobody looked
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1), '0', 'one buys');
    ::order(1, 11);
    Test::More::is(::order_of('GET', 1), 'order 11', 'and has an order');
    ::order(1, 12);
    ::nap(0.25);
    Test::More::is(::order_of('GET', 1), 'order 11', 'which this node remembers');

    # MySQL lost the commit, the purchase was replayed, and replay raised rev
    ::act();
    ::nap(0.25);
    Test::More::is(::order_of('GET', 1), 'order 12', 'the other one is told after the next revision');
    ::order(1, 13);
    ::act();
    ::nap(0.25);
    Test::More::is(::order_of('POST', 1), 'order 13', 'to a purchase too');

    # Redis knows nothing of it any more
    ::redis('DEL', ::key('result:1'));
    ::act();
    ::nap(0.25);
    Test::More::is(::order_of('POST', 1), 'order 13', 'an order is not taken back');
    Test::More::is(::order_of('GET', 1), 'order 13', 'nor by the result route');
    ::redis('SREM', ::key('order_users'), 1);
    ::redis('SET', ::key('stock'), 0);
    ::act();
    ::nap(0.25);
    Test::More::is(::order_of('GET', 1), 'order 13', 'also when Redis forgot the buyer');
}]



=== TEST 2: F-B3: of another epoch
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1), '0', 'one buys');
    ::order(1, 11);
    Test::More::is(::order_of('GET', 1), 'order 11', 'and has an order');
    ::redis('DEL', ::key('result:1'));
    ::redis('HSET', ::key('activity'), 'epoch', 2);
    ::act();
    ::nap(0.25);
    Test::More::is(::order_of('GET', 1), '0', 'restored without it: queueing, as Redis says');
}]



=== TEST 3: F-B3: a published result that differs replaces what is remembered
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_refresh 60s;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1 .. 3), '0,0,0', 'three buy');
    ::order(1, 11);
    ::order(2, 21);
    Test::More::is(::order_of('GET', $_), "order ${_}1", "order of $_") for 1, 2;

    # somebody else waits: so the node listens
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => Test::Nginx::Socket::server_port_for_client())
        or die "connect: $!\n";
    print {$socket} "GET /seckill/result/1001?wait=20 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        . ::bearer(::token(3)) . "\r\n\r\n";
    $socket->flush;
    for (1 .. 100) {
        last if ::redis('PUBSUB', 'NUMSUB', 'seckill:results:{1001}') =~ / 1$/;
        ::nap(0.05);
    }
    ::redis('PUBLISH', 'seckill:results:{1001}', '1 ' . ::text(12));
    ::redis('PUBLISH', 'seckill:results:{1001}', '2 {"success":false,"reason":"released"}');
    ::redis('SET', ::key('result:2'), '{"success":false,"reason":"released"}');
    ::redis('PUBLISH', 'seckill:results:{1001}', '9 ' . ::text(91));
    ::redis('PUBLISH', 'seckill:results:{1001}', '3 ' . ::text(31));
    local $/ = undef;
    Test::More::like(scalar <$socket>, qr/"order_id":31/, 'the one who waited');
    Test::More::is(::order_of('GET', 1), 'order 12', 'the other one is told');
    Test::More::is(::order_of('GET', 2), '2', 'and a failure');
    Test::More::is(::order_of('GET', 9), '40006', 'of whom nothing was known nothing is kept');
}]



=== TEST 4: limits and sessions do not depend on rev
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
    seckill_limit rate=1r/m;
    seckill_refresh 300ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $header = ::session(1, 'a-secret-of-user-1');
    my $post = sub { return ::code(::crowd(['POST', '/seckill/1001', $header])) };
    Test::More::is($post->(), '0', 'bought');
    for (1 .. 3) {
        ::act();
        ::nap(0.4);
        Test::More::is($post->(), '40003', 'limited, whatever happens to the sale');
    }
    ::redis('DEL', 'seckill:session:' . Digest::SHA::sha256_hex('a-secret-of-user-1'));
    ::act();
    Test::More::is($post->(), '40003', 'and the session is good for seckill_refresh');
    ::nap(0.4);
    Test::More::is($post->(), '40100', 'and no longer');
}]



=== TEST 5: F-B4: a buyer who is put back is no stranger to the filter
--- sale: 1001 stock=3
--- seckill
    seckill_limit off;
    seckill_refresh 200ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1 .. 3), '0,0,0', 'sold out');
    # one who was never there is no loss
    ::redis('HSET', ::key('activity'), 'buyers_extra', -1);
    ::redis('SREM', ::key('order_users'), 3);
    for (1 .. 40) {
        ::buy(99);
        ::nap(0.05);
        my $asked = ::calls('evalsha') - ::calls('hlen');
        ::buy(99);
        last if ::calls('evalsha') - ::calls('hlen') == $asked;
    }
    Test::More::is(::buys(3), '40005', 'the filter does not have him');
    ::redis('SADD', ::key('order_users'), 3);
    Test::More::is(::buys(3), '40005', 'nor now');
    ::act();
    ::nap(0.5);
    Test::More::is(::buys(3), '40004', 'after the act he is a buyer');
    ::nap(0.3);
    Test::More::is(::buys(99, 3, 1), '40005,40004,40004', 'with a filter of its own');
}]



=== TEST 6: F-B4: the same after the end
--- sale: 1001 stock=3 start=-2h end=-1h
--- redis: SADD seckill:order_users:{1001} 1 2
--- seckill
    seckill_limit off;
    seckill_refresh 200ms;
--- request
GET /seckill/1001
--- response_body_like: "ended"
--- after eval
[sub {
    ::buy(99);
    ::nap(0.1);
    Test::More::is(::buys(99, 1, 3), '40002,40004,40002', 'ended');
    ::redis('SADD', ::key('order_users'), 3);
    ::act();
    ::nap(0.5);
    Test::More::is(::buys(3), '40004', 'a buyer who was put back');
    ::nap(0.3);
    Test::More::is(::buys(99, 3, 1), '40002,40004,40004', 'with a filter of its own');
}]



=== TEST 7: F-B4: a filter is loaded once per seckill_refresh, however often rev is raised
--- sale: 1001 stock=3
--- seckill
    seckill_limit off;
    seckill_refresh 400ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buys(1 .. 3), '0,0,0', 'sold out');
    my $began = Time::HiRes::time();
    my $before = ::calls('sscan');
    while (Time::HiRes::time() < $began + 2) {
        ::act();
        ::buy(99);
    }
    my $scans = ::calls('sscan') - $before;
    my $most = int((Time::HiRes::time() - $began) / 0.4) + 1;
    Test::More::cmp_ok($scans, '>=', 1, 'it is loaded');
    Test::More::cmp_ok($scans, '<=', $most, "at most $most times in two seconds");
    Test::More::is(::buys(1, 2, 3, 99), '40004,40004,40004,40005', 'and tells buyers from strangers');
}]



=== TEST 8: a queue_token is good while the facts of its sale are there
--- sale: 1001 stock=3
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $ask = sub { return ::code(::crowd(['GET', '/seckill/result/1001?queue_token=' . ::ticket(1001, 1)])) };
    Test::More::is(::buys(1), '0', 'one buys');
    Test::More::is($ask->(), '0', 'his token tells of it');
    ::order(1, 11);
    Test::More::is($ask->(), '1', 'and of the order');
    ::redis('HSET', ::key('activity'), 'epoch', 2);
    ::redis('HINCRBY', 'seckill:control', 'rev', 3);
    ::nap(0.25);
    Test::More::is($ask->(), '1', 'whatever becomes of the generation');
    ::redis('HSET', ::key('activity'), 'state', 'settled', 'rev', 9);
    ::nap(0.25);
    Test::More::is($ask->(), '1', 'settled');
    ::redis('DEL', map { ::key($_) } qw(stock order_users orders result:1));
    ::nap(0.25);
    Test::More::is($ask->(), '1', 'its keys have expired, this node remembers');
    ::redis('DEL', ::key('activity'));
    ::nap(0.25);
    Test::More::is($ask->(), '40100', 'the facts have too: the token is no more');
}]
