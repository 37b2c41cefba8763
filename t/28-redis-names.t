# Redis by a host name: looked up while nginx runs, by nginx' own resolver, never
# while it starts, and again for each new connection (A14, A15, A17).

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use Time::HiRes ();

use FakeDns;

log_level('info');
master_on();    # for the reload

my $dns = FakeDns->new(dir => ::seckill_dir());
my $port = $ENV{TEST_NGINX_REDIS_PORT};
$ENV{TEST_NGINX_DNS} = '127.0.0.1:' . $dns->port;

# another Redis on the same port of another address
my $second = ::seckill_test()->redis(bind => '127.0.0.2', port => $port, unixsocketperm => '700');

sub main::dns { return $dns }
sub main::second { return $second->{client} }

# The code that a buyer hears.
sub main::code {
    my ($user) = @_;
    my ($answer) = ::crowd(['POST', '/seckill/1001', ::bearer(::token($user))]);
    return $answer->{body} =~ /"code":(\d+),/ ? $1 : "status $answer->{status}";
}

# Asks until somebody buys; returns the seconds that took and the codes till then.
sub main::until_sold {
    my ($first, $seconds) = @_;

    my ($begin, %codes) = (Time::HiRes::time());
    for my $user ($first .. $first + 999) {
        my $code = ::code($user);
        $codes{$code}++;
        last if $code eq '0' || Time::HiRes::time() > $begin + $seconds;
        Time::HiRes::sleep(0.05);
    }
    return (Time::HiRes::time() - $begin, \%codes);
}

# Copies the sale to the second Redis.
sub main::copy_sale {
    my $from = ::seckill_test()->redis_client({ sock => $ENV{TEST_NGINX_REDIS} =~ s/^unix://r });
    ::second()->flushall;
    for my $key ($from->keys('seckill:*')) {
        ::second()->restore($key, 0, $from->dump($key));
    }
    return;
}

run_tests();

__DATA__

=== TEST 1: a name; nobody asks for it before a request does (A14)
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis redis.test:$TEST_NGINX_REDIS_PORT;
--- init
    ::dns()->forget;
    ::dns()->table("redis.test 5 127.0.0.1\n");
--- request eval
["GET /nowhere", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[$::Alice, $::Alice, $::Bob]
--- after eval
[sub { Test::More::is(CORE::join(' ', ::dns()->questions), '', 'no question so far') }, undef, sub {
    my @questions = ::dns()->questions;
    Test::More::cmp_ok(scalar @questions, '<=', 2, "one look-up for all connections: @questions");
    Test::More::is((grep { $_ eq 'redis.test A' } @questions), 1, 'of an address');
}]
--- error_code eval
[404, 200, 200]
--- response_body_like eval
["", qr/"code":0,/, qr/"code":0,/]
--- redis_check
GET seckill:stock:{1001} => 8



=== TEST 2: a name that does not exist yet: busy at once, and up by itself (A14)
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis later.test:$TEST_NGINX_REDIS_PORT;
    seckill_limit off;
--- init
    ::dns()->table('');
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- after eval
[sub {
    Time::HiRes::sleep(1);
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($_))] } 1 .. 20);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":50302,/ } @answers), 20, 'surely not taken, say all');
    my ($longest) = sort { $b <=> $a } map { $_->{seconds} // 99 } @answers;
    Test::More::cmp_ok($longest, '<', 1, 'at once, and not after seckill_timeout');
    Test::More::is(::log_count(qr/seckill redis "later\.test:\d+" lost: Host not found/), 1, 'it is said once');
    ::dns()->table("later.test 5 127.0.0.1\n");
    my ($seconds) = ::until_sold(100, 8);
    Test::More::cmp_ok($seconds, '<', 4, 'it comes up by itself');
    Test::More::is(::log_count(qr/seckill redis "later\.test:\d+" lost/), 1, 'no line for each try');
}]
--- error_log
seckill redis "later.test:



=== TEST 3: a name server that says nothing
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis mute.test:$TEST_NGINX_REDIS_PORT;
    seckill_limit off;
    seckill_redis_connect_timeout 300ms;
    seckill_redis_timeout 1s;
    seckill_timeout 2s;
--- init
    ::dns()->table("mute.test silent\n");
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- after eval
[sub {
    Test::More::is(::log_count(qr/"mute\.test:\d+" lost: host name not resolved in time/), 1, 'it is said once');
    ::dns()->table("mute.test delay 150 127.0.0.1\n");
    my ($seconds) = ::until_sold(100, 20);
    Test::More::cmp_ok($seconds, '<', 10, 'a slow one will do');
}]



=== TEST 4: the name moves to another address while the first node hangs (A15)
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis moves.test:$TEST_NGINX_REDIS_PORT;
    seckill_limit off;
    seckill_redis_connect_timeout 500ms;
    seckill_redis_timeout 700ms;
    seckill_timeout 2s;
--- init
    ::dns()->table("moves.test 2 127.0.0.1\n");
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    ::copy_sale();
    ::dns()->table("moves.test 2 127.0.0.2\n");
    ::redis_stop();
    my ($seconds, $codes) = ::until_sold(100, 20);
    Test::More::cmp_ok($seconds, '<', 10, 'sold by the second node after ' . int($seconds * 1000) . ' ms');
    delete $codes->{$_} for 0, 50301, 50302;
    Test::More::is_deeply($codes, {}, 'busy till then, and nothing else');
    Test::More::is(::second()->get('seckill:stock:{1001}'), 8, 'the second node has sold it');
    ::redis_cont();
}]



=== TEST 5: seven addresses that lead nowhere, most of them IPv6, and one that does (A15)
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis many.test:$TEST_NGINX_REDIS_PORT;
    seckill_limit off;
    seckill_redis_connections 8;
--- init
    ::dns()->table("many.test 5 ::1 2001:db8::1 2001:db8::2 2001:db8::3 2001:db8::4 2001:db8::5 127.0.0.3 127.0.0.1\n");
--- pipelined_requests eval
[("POST /seckill/1001") x 8]
--- more_headers eval: $::Alice
--- error_code eval
[(200) x 8]
--- response_body_like eval
[qr/"code":0,/, (qr/"code":40004,/) x 7]
--- no_error_log
seckill redis "many.test



=== TEST 6: the master becomes a replica, then the name goes to the new one (A17)
--- sale: 1001 stock=30
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis master.test:$TEST_NGINX_REDIS_PORT;
    seckill_limit off;
    seckill_redis_connections 4;
--- init
    ::dns()->table("master.test 1 127.0.0.1\n");
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    ::second()->flushall;
    ::redis("CONFIG", "SET", "repl-diskless-sync-delay", 0);
    ::second()->replicaof('127.0.0.1', $ENV{TEST_NGINX_REDIS_PORT});
    ::seckill_test()->wait_for(sub { (::second()->get('seckill:stock:{1001}') // '') eq '29' }, 20, 'the copy');
    ::second()->replicaof('no', 'one');
    ::redis('REPLICAOF', '127.0.0.2', $ENV{TEST_NGINX_REDIS_PORT});
    my %codes;
    for my $user (100 .. 130) {
        $codes{ ::code($user) }++;
        Time::HiRes::sleep(0.05);
    }
    Test::More::is_deeply(\%codes, { 50302 => 31 }, 'the old one refuses, and it is never "sold out"');
    Test::More::is(::log_count(qr/"master\.test:\d+" lost: READONLY/), 1, 'it is said once');
    Test::More::is(::log_count(qr/"master\.test:\d+" is back/), 0, 'an answered handshake is not its return');
    ::dns()->table("master.test 1 127.0.0.2\n");
    my ($seconds) = ::until_sold(200, 20);
    Test::More::cmp_ok($seconds, '<', 8, 'the new one sells after ' . int($seconds * 1000) . ' ms');
    ::seckill_test()->wait_for(sub { ::log_count(qr/"master\.test:\d+" is back/) }, 10, 'its return in the log');
    my @to = ::redis('CLIENT', 'LIST', 'TYPE', 'NORMAL') =~ /laddr=127\.0\.0\.1:\d+/g;
    Test::More::is("@to", '', 'no connection stays with the old one');
    ::redis('REPLICAOF', 'NO', 'ONE');
}]



=== TEST 7: reload in the middle of a look-up; the old worker ends at once
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis mute.test:$TEST_NGINX_REDIS_PORT;
    seckill_limit off;
    seckill_redis_connect_timeout 20s;
    seckill_redis_timeout 300ms;
    seckill_timeout 1s;
--- init
    ::dns()->table("mute.test silent\n");
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- after eval
[sub {
    my $begin = Time::HiRes::time();
    ::reload();
    Test::More::cmp_ok(Time::HiRes::time() - $begin, '<', 8, 'a reload takes no twenty seconds');
    ::dns()->table("mute.test 127.0.0.1\n");
    my ($seconds) = ::until_sold(100, 20);
    Test::More::cmp_ok($seconds, '<', 10, 'the new worker sells');
}]



=== TEST 8: one server answers for a name, with a resolver of its own
--- sale: 1001 stock=10
--- seckill
    seckill_redis own.test:$TEST_NGINX_REDIS_PORT;
--- config
    resolver $TEST_NGINX_DNS ipv6=off;
    location /seckill/ { seckill on; }
--- init
    ::dns()->forget;
    ::dns()->table("own.test 127.0.0.1\n");
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- after eval
[sub { Test::More::is(CORE::join(' ', ::dns()->questions), 'own.test A', 'without IPv6, as it was told') }]
--- response_body_like: "code":0,
