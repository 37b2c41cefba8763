# Redis by TLS: who is trusted, and who is not; and what is said of it.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use IO::Socket::INET;
use Time::HiRes ();

use FakeDns;
use TestCerts;

log_level('info');
master_on();    # for the reload

my $test  = ::seckill_test();
my $certs = TestCerts->new(dir => ::seckill_dir());
my $dns   = FakeDns->new(dir => ::seckill_dir(), table => "redis.test 127.0.0.1\nwrong.test 127.0.0.1\n");

my @server = $certs->pair('server', 'DNS:redis.test,IP:127.0.0.1');
my @name   = $certs->pair('name', 'DNS:redis.test');
my @ended  = $certs->pair('ended', 'IP:127.0.0.1', days => -1);
my @client = $certs->pair('client', 'DNS:nginx.test');
my @locked = $certs->pair('locked', 'DNS:nginx.test', password => 'secret');

$ENV{TEST_NGINX_DNS}      = '127.0.0.1:' . $dns->port;
$ENV{TEST_NGINX_TLS_PORT} = $test->port;
$ENV{TEST_NGINX_CA}       = $certs->ca;
$ENV{TEST_NGINX_OTHER_CA} = $certs->other_ca;
($ENV{TEST_NGINX_CERT}, $ENV{TEST_NGINX_CERT_KEY}) = @client;
$ENV{TEST_NGINX_LOCKED_KEY} = $locked[1];

# The real Redis listens with this certificate from now on.
sub main::serve {
    my ($cert, $key, $clients) = @_;

    my $answer = ::redis('CONFIG', 'SET', 'tls-cert-file', $cert, 'tls-key-file', $key, 'tls-ca-cert-file', $certs->ca,
                         'tls-auth-clients', $clients // 'no', 'tls-port', $ENV{TEST_NGINX_TLS_PORT});
    die "CONFIG SET: $answer\n" if $answer ne 'OK';
    return;
}

sub main::server { return @server }
sub main::name   { return @name }
sub main::ended  { return @ended }

# Buys for each user at once and returns how often each code was heard.
sub main::codes {
    my ($path, @users) = @_;

    my %codes;
    $codes{ $_->{body} =~ /"code":(\d+),/ ? $1 : "status $_->{status}" }++
        for ::crowd(map { ['POST', $path, ::bearer(::token($_))] } @users);
    return \%codes;
}

# A TLS server that never answers; returns what it says of its connections.
sub main::mute_server {
    my $log = ::seckill_dir() . '/s_server.log';
    my $port = $test->port;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN, '-|', 'sleep', 60;
        open STDOUT, '>', $log;
        open STDERR, '>&', \*STDOUT;
        exec 'openssl', 's_server', '-accept', "127.0.0.1:$port", '-cert', $server[0], '-key', $server[1];
    }
    $test->wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }, 10, 's_server');
    $ENV{TEST_NGINX_MUTE_PORT} = $port;
    $::mute = [$pid, $log];
    return;
}

::mute_server();
run_tests();
kill 'KILL', $::mute->[0];
waitpid $::mute->[0], 0;

__DATA__

=== TEST 1: a server by its address, signed by our authority
--- sale: 1001 stock=300
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA;
    seckill_limit off;
    seckill_batch 256;
--- init
    ::serve(::server());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my %codes;
    for my $k (1 .. 3) {
        my $codes = ::codes('/seckill/1001', map { $k * 1000 + 500 + $_ } 1 .. 150);
        $codes{$_} += $codes->{$_} for keys %{$codes};
    }
    Test::More::is_deeply(\%codes, { 0 => 299, 40005 => 151 }, 'crowds are served as without TLS');
    my @plain = ::redis('CLIENT', 'LIST', 'TYPE', 'NORMAL') =~ /laddr=127\.0\.0\.1:(?!$ENV{TEST_NGINX_TLS_PORT} )\d+/g;
    Test::More::is("@plain", '', 'and no connection is without it');
}]
--- no_error_log
seckill redis
--- redis_check
GET seckill:stock:{1001} => 0
XLEN seckill:orders:{1001} => 300



=== TEST 2: a server by its name
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis redis.test:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA;
--- init
    ::serve(::name());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- no_error_log
seckill redis



=== TEST 3: an authority that we do not know: busy, and it is said once
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_OTHER_CA;
    seckill_limit off;
--- init
    ::serve(::server());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- after eval
[sub {
    Time::HiRes::sleep(1);
    Test::More::is_deeply(::codes('/seckill/1001', 1 .. 20), { 50302 => 20 }, 'surely not taken');
    Test::More::is(::log_count(qr/redis "127\.0\.0\.1:\d+" lost: certificate refused: /), 1, 'the reason, once');
    Test::More::is(::log_count(qr/\[(?:error|crit|alert)\]/), 1, 'and nothing else');
    my $heard = ::redis('INFO', 'commandstats') =~ /cmdstat_(?:script|auth|evalsha)/ ? 'something' : 'nothing';
    Test::More::is($heard, 'nothing', 'the stranger was told nothing');
}]
--- error_log eval
qr/certificate refused: (?:unable to (?:verify the first|get local issuer) certificate|self-signed certificate in certificate chain)/



=== TEST 4: no authority is given: those of the system do not know ours
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on;
--- init
    ::serve(::server());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- error_log eval
qr/certificate refused: (?:unable to (?:verify the first|get local issuer) certificate|self-signed certificate in certificate chain)/



=== TEST 5: the name of another
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis wrong.test:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA;
--- init
    ::serve(::server());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- error_log
certificate refused: hostname mismatch



=== TEST 6: ... which we may expect it to have
--- sale: 1001 stock=10
--- seckill
    resolver $TEST_NGINX_DNS;
    seckill_redis wrong.test:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA tls_name=redis.test;
--- init
    ::serve(::server());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- no_error_log
seckill redis



=== TEST 7: an address that the certificate does not have
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA;
--- init
    ::serve(::name());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- error_log
certificate refused: IP address mismatch



=== TEST 8: a certificate that has ended, then a new one: up by itself
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA;
    seckill_limit off;
--- init
    ::serve(::ended());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- after eval
[sub {
    ::serve(::server());
    my $user = 100;
    ::seckill_test()->wait_for(sub { ::codes('/seckill/1001', ++$user)->{0} }, 10, 'the new certificate');
    Test::More::is(::log_count(qr/seckill redis "127\.0\.0\.1:\d+" lost/), 1, 'its loss is said once');
}]
--- error_log
certificate refused: certificate has expired



=== TEST 9: nobody is asked who he is, when told so
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_verify=off;
--- init
    ::serve(::ended());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- no_error_log
seckill redis



=== TEST 10: Redis wants to know who we are
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA tls_cert=$TEST_NGINX_CERT tls_key=$TEST_NGINX_CERT_KEY;
--- init
    ::serve(::server(), 'yes');
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- no_error_log
seckill redis



=== TEST 11: ... and we do not say it
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA;
    seckill_limit off;
--- init
    ::serve(::server(), 'yes');
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- after eval
[sub {
    Time::HiRes::sleep(1);
    Test::More::is_deeply(::codes('/seckill/1001', 1 .. 20), { 50302 => 20 }, 'surely not taken');
    Test::More::is(::log_count(qr/\[(?:error|crit|alert)\]/), 1, 'it is said once');
}]
--- error_log eval
qr/seckill redis "127\.0\.0\.1:\d+" lost: SSL_\w+\(\) failed \(.*(?:certificate required|reset by peer|Broken pipe)/



=== TEST 12: a Redis that does not speak TLS
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_REDIS_PORT tls=on tls_ca=$TEST_NGINX_CA;
    seckill_redis_connect_timeout 500ms;
    seckill_redis_timeout 2s;
    seckill_timeout 4s;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- after eval
[sub { Test::More::is(::log_count(qr/\[(?:error|crit|alert)\]/), 1, 'it is said once') }]
--- error_log eval
qr/seckill redis "127\.0\.0\.1:\d+" lost: .*(?:TLS|SSL)/



=== TEST 13: nobody answers the handshake
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_FAKE_PORT tls=on tls_ca=$TEST_NGINX_CA;
    seckill_redis_connect_timeout 300ms;
    seckill_redis_timeout 2s;
    seckill_timeout 4s;
--- fake_redis
CONNECT: silent
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- error_log
lost: TLS handshake timed out



=== TEST 14: the second handshake of a worker is a short one
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_MUTE_PORT tls=on tls_ca=$TEST_NGINX_CA;
    seckill_redis_connections 1;
    seckill_redis_connect_timeout 500ms;
    seckill_redis_timeout 2s;
    seckill_timeout 4s;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- after eval
[sub {
    ::seckill_test()->wait_for(sub {
        open my $fh, '<', $::mute->[1] or return;
        my $said = CORE::join '', <$fh>;
        return $said =~ /^Reused session-id/m;
    }, 10, 'a session that is used again');
}]
--- error_log
lost: no answer to the handshake



=== TEST 15: a result that is waited for, and a reload
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA;
    seckill_limit off;
--- init
    ::serve(::server());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    my $child = fork // die "fork: $!\n";
    if (!$child) {
        Time::HiRes::sleep(0.7);
        open STDOUT, '>', '/dev/null';
        exec 'redis-cli', '-s', $ENV{TEST_NGINX_REDIS} =~ s/^unix://r, 'PUBLISH', 'seckill:results:{1001}',
            '1001 {"success":true,"order_id":9,"order_no":"26112910203040500100100000011001"}';
    }
    my ($answer) = ::crowd(['GET', '/seckill/result/1001?wait=10', $::Alice]);
    waitpid $child, 0;
    Test::More::like($answer->{body}, qr/"code":1,.*"order_id":9,/, 'the result came by TLS');
    ::reload();
    Test::More::is_deeply(::codes('/seckill/1001', 1 .. 20), { 0 => 9, 40005 => 11 }, 'the new worker sells');
}]
--- no_error_log
seckill redis



=== TEST 16: a key with a password is refused, and nobody is asked for it
--- seckill
    seckill_redis 127.0.0.1:6379 tls=on tls_cert=$TEST_NGINX_CERT tls_key=$TEST_NGINX_LOCKED_KEY;
--- must_die
--- error_log
cannot load certificate key



=== TEST 17: Redis hangs in the middle, and its connections are cut
--- sale: 1001 stock=300
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT tls=on tls_ca=$TEST_NGINX_CA;
    seckill_limit off;
    seckill_redis_connect_timeout 2s;
    seckill_redis_timeout 1s;
    seckill_timeout 3s;
--- init
    ::serve(::server());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    ::redis_stop();
    my $codes = ::codes('/seckill/1001', 100 .. 140);
    delete $codes->{$_} for 50301, 50302;
    Test::More::is_deeply($codes, {}, 'busy, or not known');
    ::redis_cont();
    my $user = 1000;
    ::seckill_test()->wait_for(sub { ::codes('/seckill/1001', ++$user)->{0} }, 10, 'its return');
    ::redis('CLIENT', 'KILL', 'TYPE', 'NORMAL', 'SKIPME', 'yes');
    ::seckill_test()->wait_for(sub { ::codes('/seckill/1001', ++$user)->{0} }, 10, 'new connections');
}]



=== TEST 18: without TLS to a port that has it
--- sale: 1001 stock=10
--- seckill
    seckill_redis 127.0.0.1:$TEST_NGINX_TLS_PORT;
--- init
    ::serve(::server());
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- error_code: 503
--- response_body_like: "code":50302,
--- error_log eval
qr/lost: (?:connection closed|connection failed|not the Redis protocol)/
