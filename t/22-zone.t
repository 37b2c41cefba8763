# The shared zone: kept over a reload, never in the way when it is full, and
# started anew when a worker died inside its lock.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

use POSIX ();

log_level('info');
master_on();
workers(1);
run_tests();

# The pids of the workers.
sub main::workers_now {
    open my $fh, '<', Test::Nginx::Socket::server_root() . '/logs/nginx.pid' or die "no pid file: $!\n";
    chomp(my $pid = <$fh>);
    open my $children, '<', "/proc/$pid/task/$pid/children" or die "no master: $!\n";
    return split ' ', scalar(<$children>) // '';
}

# Kills a worker with gdb while it holds the zone's lock; needs a request soon.
sub main::kill_inside_lock {
    my ($pid) = @_;

    my $child = fork // die "fork: $!\n";
    if ($child == 0) {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec 'timeout', '30', 'gdb', '-q', '-nx', '-batch', '-p', $pid,
            '-ex', 'set breakpoint pending on',
            '-ex', 'break ngx_http_seckill_zone_unlock',
            '-ex', 'continue', '-ex', 'kill';
        exit 127;
    }
    return $child;
}

__DATA__

=== TEST 1: a reload keeps what is known
--- sale: 1001 stock=5
--- seckill
    seckill_limit rate=1r/m;
    seckill_refresh 60s;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- after eval
[sub {
    ::reload();
    ::redis('CONFIG', 'RESETSTAT');
    my ($answer) = ::crowd(['POST', '/seckill/1001', $::Alice]);
    Test::More::like($answer->{body}, qr/"code":40003,/, 'the limit is remembered');
    Test::More::unlike(::redis('INFO', 'commandstats'), qr/cmdstat_hmget/, 'and the facts');
}]



=== TEST 2: a zone full of users makes room and never answers 500
--- sale: 1001 stock=100
--- http_config
    seckill_zone small:128k;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_redis_timeout 2s;
    seckill_timeout 5s;
    seckill_auth_key_file $TEST_NGINX_KEY;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my %codes;
    for my $k (0 .. 19) {
        my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token($k * 100 + $_))] } 1 .. 100);
        $codes{ $_->{body} =~ /"code":(\d+)/ ? $1 : "status $_->{status}" }++ for @answers;
    }
    Test::More::is_deeply(\%codes, { 0 => 100, 40005 => 1900 }, 'everybody is answered');
}]



=== TEST 3: random ids are remembered, each asked for once, and bounded
--- sale: 1001 stock=5
--- http_config
    seckill_zone small:128k;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_redis_timeout 2s;
    seckill_timeout 5s;
    seckill_refresh 30s;
    seckill_auth_key_file $TEST_NGINX_KEY;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @ids = map { 5_000_000 + $_ } 1 .. 100;
    ::crowd(map { ['GET', "/seckill/$_"] } @ids);
    ::redis('CONFIG', 'RESETSTAT');
    my @answers = ::crowd(map { ['POST', "/seckill/$_", $::Alice] } @ids);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":40001,/ } @answers), 100, 'none of them is known');
    Test::More::unlike(::redis('INFO', 'commandstats'), qr/cmdstat_hmget/, 'and Redis was not asked again');
}]



=== TEST 4: a worker killed inside the lock leaves no torn list behind
--- sale: 1001 stock=50
--- seckill
    seckill_limit off;
--- request
POST /seckill/1001
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- skip_eval
2: system('command -v gdb > /dev/null 2>&1') != 0
--- no_error_log
signal 11
--- error_log
was left locked by a worker that died, starting it anew
exited on signal 9
shared memory zone "sale" was locked by
--- after eval
[sub {
    my $gdb = ::kill_inside_lock(::workers_now());
    for my $k (1 .. 20) {
        ::crowd(['POST', '/seckill/1001', ::bearer(::token(100 + $k))]);
        last if waitpid($gdb, POSIX::WNOHANG()) == $gdb;
        select undef, undef, undef, 0.5;
    }
    my @answers = ::crowd(map { ['POST', '/seckill/1001', ::bearer(::token(200 + $_))] } 1 .. 20);
    Test::More::is(scalar(grep { $_->{body} =~ /"code":0,/ } @answers), 20, 'the new workers go on');
    ($answers[0]) = ::crowd(['POST', '/seckill/1001', $::Alice]);
    Test::More::like($answers[0]{body}, qr/"code":40004,/, 'nothing that Redis knows is lost');
}]
--- timeout: 60
