# What comes from Redis is looked at before it is kept: lengths, types, ranges.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use Digest::SHA ();
use Time::HiRes ();

master_on();    # for the reload
log_level('info');
run_tests();

sub main::code { return $_[0]{body} =~ /"code":(\d+)/ ? $1 : "status $_[0]{status}" }

# Posts as a user and returns the code of the answer.
sub main::buy {
    my ($user, $id) = @_;
    return ::code(::crowd(['POST', '/seckill/' . ($id // 1001), ::bearer(::token($user))]));
}

sub main::poll {
    my ($user, $id) = @_;
    return ::code(::crowd(['GET', '/seckill/result/' . ($id // 1001), ::bearer(::token($user))]));
}

sub main::nap { return select undef, undef, undef, $_[0] }

sub main::monster { return 'x' x (5 * 1024 * 1024) }

__DATA__

=== TEST 1: F-G3: the monstrous price of one sale stops that sale alone
--- sale
1001 stock=10
1002 stock=10
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
    seckill_redis_connections 1;
--- request
GET /seckill/1002
--- response_body_like: "running"
--- after eval
[sub {
    Test::More::is(::buy(1, 1002), '0', 'a buyer of the other sale');
    ::redis('HSET', 'seckill:activity:{1001}', 'price', ::monster());
    my (@one, @other);
    for my $user (1 .. 10) {
        push @one, ::buy($user, 1001);
        push @other, ::poll(1, 1002);
        ::nap(0.03);
    }
    Test::More::is(CORE::join(',', @one), CORE::join(',', ('50302') x 10), 'nothing is sold');
    Test::More::is(CORE::join(',', @other), CORE::join(',', ('0') x 10), 'and every poll of the other is answered');
    Test::More::ok(::log_count(qr/facts of activity 1001 are damaged/) < 10, 'one line a look, and not one a request');

    ::redis('HSET', 'seckill:activity:{1001}', 'price', '9.90');
    ::nap(0.3);
    Test::More::is(::buy(1, 1001), '0', 'and sold again when it is mended');
}]
--- error_log
facts of activity 1001 are damaged
--- no_error_log
lost:



=== TEST 2: F-G3: other fields, and other types
--- sale
1001 stock=10
1002 stock=10
--- seckill
    seckill_limit off;
    seckill_refresh 50ms;
    seckill_redis_connections 1;
--- request
GET /seckill/1002
--- response_body_like: "running"
--- after eval
[sub {
    for my $field (qw(product_id start_ms end_ms state max_quantity epoch rev seq)) {
        my $was = ::redis('HGET', 'seckill:activity:{1001}', $field);
        for my $bad (::monster(), '-1', '9007199254740993') {
            next if $field eq 'product_id' && $bad =~ /^9/;
            ::redis('HSET', 'seckill:activity:{1001}', $field, $bad);
            ::nap(0.12);
            my $heard = ::buy(1, 1001);
            my $name = length $bad > 20 ? 'a monster' : $bad;
            Test::More::like($heard, $field eq 'state' && length $bad < 20 ? qr/^50303$/ : qr/^50302$/, "$field is $name");
        }
        ::redis('HSET', 'seckill:activity:{1001}', $field, $was);
    }
    ::redis('RENAME', 'seckill:activity:{1001}', 'away');
    ::redis('SET', 'seckill:activity:{1001}', ::monster());
    ::nap(0.12);
    Test::More::is(::buy(1, 1001), '50302', 'facts that are no hash');
    ::redis('RENAME', 'away', 'seckill:activity:{1001}');
    ::redis('SET', 'seckill:stock:{1001}', ::monster());
    ::nap(0.12);
    Test::More::is(::buy(1, 1001), '50302', 'a monstrous stock');
    ::redis('SET', 'seckill:stock:{1001}', 10);
    ::nap(0.12);
    Test::More::is(::buy(1, 1001), '0', 'all as it was');
    Test::More::is(::buy(1, 1002), '0', 'and the other never knew');
}]
--- error_log
facts of activity 1001 are damaged
--- no_error_log
lost:



=== TEST 3: F-G3: control too
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_refresh 50ms;
    seckill_redis_connections 1;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $user = 0;
    for my $field (qw(limit token_key_prev state)) {
        ::redis('HSET', 'seckill:control', $field, ::monster());
        ::nap(0.12);
        Test::More::is(::buy(++$user), '0', "$field is a monster, and that is all");
        ::redis('HDEL', 'seckill:control', $field);
    }
    my $rev = ::redis('HGET', 'seckill:control', 'rev');
    for my $bad (::monster(), '-5', '9223372036854775807') {
        ::redis('HSET', 'seckill:control', 'rev', $bad);
        ::nap(0.12);
        Test::More::is(::buy(5), '50302', 'rev is ' . (length $bad > 20 ? 'a monster' : $bad));
    }
    ::redis('HSET', 'seckill:control', 'rev', $rev);
    ::nap(0.12);
    Test::More::is(::buy(5), '0', 'and all goes on');
}]
--- error_log
seckill control in redis is damaged
--- no_error_log
lost:



=== TEST 4: F-G2: numbers that can't be never reach what is remembered
--- sale: 1001 stock=100
--- seckill
    seckill_limit off;
    seckill_refresh 10s;
--- fake_redis
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $user = 0;
    my $now = int(Time::HiRes::time() * 1000);
    Test::More::is(::buy(++$user), '0', 'one buys');
    for my $six ("$now 1 1 9223372036854775807", "$now 1 1 9007199254740992", "$now -1 1 1", "$now 1 1 -5",
                 "$now 9223372036854775807 1 1", "$now 1 -1 2", "$now 1 9223372036854775807 2", "-1 1 1 2",
                 '9223372036854775807 1 1 2', "$now 1 1 0")
    {
        my ($time, $epoch, $rev, $seq) = split ' ', $six;
        ::fake()->clear("EVALSHA: reply [$time $epoch $rev $seq 5 \"" . ($seq eq '0' ? 1 : 3) . "\"]");
        Test::More::is(::buy(++$user), '50301', "time $time epoch $epoch rev $rev seq $seq: nobody knows");
        ::fake()->clear('');
        Test::More::is(::buy(++$user), '0', 'and the next one buys');
    }
    ::reload();
    Test::More::is(::buy(++$user), '0', 'also after a reload');
    Test::More::is(::redis('HGET', 'seckill:activity:{1001}', 'state'), 'open', 'the sale was never paused');
}]
--- error_log
gave an answer that does not fit its question
--- no_error_log
lost data



=== TEST 5: F-G1: what a reply announces is neither reserved nor waited for
--- sale: 1001 stock=100
--- seckill
    seckill_limit off;
    seckill_refresh 10s;
    seckill_redis_timeout 2s;
    seckill_timeout 3s;
--- fake_redis
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $user = 0;
    Test::More::is(::buy(++$user), '0', 'one buys');
    my @bad = (['*2147483647~', 'a reply of 2147483647 elements'],
               ['*134217728~', 'a reply of 134217728 elements'],
               ['*2~:1~*262143~', 'a reply of 262145 elements'],
               ['*1~*1~*1~*1~*1~*1~*1~*1~', 'nested'],
               ['$2000000000~abc', 'a string of 2000000000 bytes'],
               ['+' . 'x' x 70000, 'a line of more than 65536 bytes']);
    for my $bad (@bad) {
        ::fake()->clear("EVALSHA: send $bad->[0]");
        my $begin = Time::HiRes::time();
        Test::More::is(::buy(++$user), '50301', "$bad->[1]: nobody knows");
        Test::More::cmp_ok(Time::HiRes::time() - $begin, '<', 1, 'and it is said at once');
        ::fake()->clear('');
        ::nap(0.3);
        Test::More::is(::buy(++$user), '0', 'the next one buys');
        # hiredis 0.14 stops at a depth of its own
        my $words = $bad->[1] eq 'nested' ? qr/lost: / : qr/lost: refused: \Q$bad->[1]\E/;
        Test::More::is(::log_count($words), 1, 'the log names it, once') if $bad->[1] ne 'nested';
    }

    ::fake()->clear("SCRIPT LOAD: send *2147483647~\nEVALSHA 1: close");
    Test::More::is(::buy(++$user), '50301', 'a connection is lost');
    ::nap(0.3);
    my $begin = Time::HiRes::time();
    Test::More::is(::buy(++$user), '50302', 'and the handshake announces as much');
    Test::More::cmp_ok(Time::HiRes::time() - $begin, '<', 3, 'which holds up nobody');
    ::fake()->clear('');
    ::nap(2.5);
    Test::More::is(::buy(++$user), '0', 'then one buys');
}]
--- error_log
lost: refused: 



=== TEST 6: F-G3: a session of megabytes is nobody's
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
    seckill_limit off;
    seckill_redis_connections 1;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @header = map { ::session($_, "secret-$_") } 1, 2;
    ::redis('SET', 'seckill:session:' . Digest::SHA::sha256_hex('secret-1'), '1' x (5 * 1024 * 1024));
    my @heard = map { ::code(::crowd(['POST', '/seckill/1001', $_])) } @header;
    Test::More::is(CORE::join(',', @heard), '40100,0', 'and the next one is served');
}]
--- no_error_log
lost:
