# HTTP/2: streams that are reset while they wait, on a connection that stays (A6),
# and headers that come twice (E9).

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use Http2Client;
use Time::HiRes ();

log_level('info');
master_on();

# the same location on a second server, whose clients speak HTTP/2 from the first byte
add_block_preprocessor(sub {
    my ($block) = @_;

    my $seckill = $block->seckill // '';
    $block->set_value('http_config', <<"END_CONF" . ($block->http_config // ''));
log_format ends '\$status';
server {
    listen unix:\$TEST_NGINX_DIR/h2.sock http2;
    access_log logs/ends.log ends;
    location /seckill/ { seckill on; }
}
END_CONF
    $block->set_value('config', "location /seckill/ { seckill on; }\nlocation = /status { seckill_status; }\n");
    $block->set_value('no_error_log', "request count is zero\n[alert]\n[crit]\n");
    return;
});

run_tests();

sub main::h2 { return Http2Client->new(::seckill_dir() . '/h2.sock') }

sub main::auth { return (authorization => 'Bearer ' . ::token($_[0])) }

sub main::result_text { return '{"success":true,"order_id":9,"order_no":"26112910203040500100100000011001"}' }

# answers by code
sub main::codes {
    my %count;
    for my $stream (@_) {
        my ($code) = $stream->{body} =~ /^\{"code":(\d+),/;
        $count{ $code // 'none' }++;
    }
    return join ' ', map {"$_:$count{$_}"} sort keys %count;
}

# what a hundred hear who post again, when that many have bought
sub main::again {
    my ($bought) = @_;
    return join ' ', $bought < 100 ? '0:' . (100 - $bought) : (), $bought ? "40004:$bought" : ();
}

sub main::hup {
    open my $fh, '<', Test::Nginx::Socket::server_root() . '/logs/nginx.pid' or die "no pid file: $!\n";
    chomp(my $pid = <$fh>);
    return kill 'HUP', $pid;
}

# requests that nginx has released, by status
sub main::ends {
    my ($status) = @_;

    open my $fh, '<', Test::Nginx::Socket::server_root() . '/logs/ends.log' or return 0;
    return scalar grep {/^$status$/} <$fh>;
}

sub main::soon {
    my ($code, $what) = @_;

    my $end = Time::HiRes::time() + 5;
    my $yes = $code->();
    while (!$yes && Time::HiRes::time() < $end) {
        Time::HiRes::sleep(0.02);
        $yes = $code->();
    }
    Test::More::ok($yes, $what);
    return;
}

sub main::waiters {
    my ($count) = @_;

    ::soon(sub {
        my ($status) = ::crowd(['GET', '/status']);
        return $status->{body} =~ /^seckill_waiters $count$/m;
    }, "$count wait");
    return;
}

# the first event of each of these streams is there
sub main::opened {
    my ($h2, @ids) = @_;
    Test::More::ok($h2->wait_for(sub { !grep { $h2->stream($_)->{body} !~ /id: queueing/ } @ids }, 5), 'streams are open');
    return;
}

__DATA__

=== TEST 1: a hundred purchases are reset while Redis stands still, a hundred more follow (A6)
--- sale: 1001 stock=1000
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $h2 = ::h2();
    Test::More::is(::codes($h2->answers(5, $h2->request('POST', '/seckill/1001', [::auth(1000)]))), '0:1', 'it sells');

    ::redis_stop();
    my @first = map { $h2->request('POST', '/seckill/1001', [::auth($_)]) } 1 .. 100;
    Time::HiRes::sleep(0.02);
    $h2->reset(@first);
    ::soon(sub { ::ends(499) == 100 }, 'all are released while Redis stands still');
    ::redis_cont();

    my @second = map { $h2->request('POST', '/seckill/1001', [::auth($_)]) } 101 .. 200;
    Test::More::is(::codes($h2->answers(10, @second)), '0:100', 'the second hundred have bought');
    Test::More::is(scalar(grep { defined $h2->stream($_)->{status} } @first), 0, 'nothing was sent on a stream that was reset');
    Test::More::ok(!$h2->going, 'the connection stays');

    my $ran = ::redis('SCARD', 'seckill:order_users:{1001}') - 101;    # of the first hundred
    my @again = $h2->answers(10, map { $h2->request('POST', '/seckill/1001', [::auth($_)]) } 1 .. 100);
    Test::More::is(::codes(@again), ::again($ran), "the $ran whose script ran hear so, the others buy");
    $h2->close;
}]
--- redis_check
GET seckill:stock:{1001} => 799
SCARD seckill:order_users:{1001} => 201
XLEN seckill:orders:{1001} => 201



=== TEST 2: streams that are reset before their body is there sell nothing
--- sale: 1001 stock=1000
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $h2  = ::h2();
    my @ids = map { $h2->request('POST', '/seckill/1001', [::auth($_), 'content-length' => 20], open => 1) } 1 .. 100;
    Time::HiRes::sleep(0.05);
    $h2->reset(@ids);
    ::soon(sub { ::ends('4..') == 100 }, 'all are released');
    my ($one) = $h2->answers(5, $h2->request('POST', '/seckill/1001', [::auth(1)], body => '{"quantity":1}'));
    Test::More::like($one->{body}, qr/"code":(0|40003),/, 'the connection stays');
    $h2->close;
}]
--- redis_check
SCARD seckill:order_users:{1001} =~ ^[01]$



=== TEST 3: long polls that are reset are forgotten, the others are told
--- sale: 1001 stock=1000
--- redis
EVAL "for i = 1, 60 do redis.call('SADD', KEYS[1], i) end" 1 seckill:order_users:{1001}
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $h2  = ::h2();
    my @ids = map { $h2->request('GET', '/seckill/result/1001?wait=30', [::auth($_)]) } 1 .. 60;
    ::waiters(60);
    $h2->reset(@ids[0 .. 49]);
    ::waiters(10);
    ::redis('EVAL', "for i = 1, 60 do redis.call('PUBLISH', KEYS[1], i .. ' ' .. ARGV[1]) end", 1, 'seckill:results:{1001}', ::result_text());
    Test::More::is(::codes($h2->answers(5, @ids[50 .. 59])), '1:10', 'ten are told');
    ::waiters(0);
    Test::More::is(::codes($h2->answers(5, $h2->request('GET', '/seckill/result/1001', [::auth(1)]))), '0:1', 'the connection stays');
    $h2->close;
}]
--- redis_check
PUBSUB CHANNELS =>



=== TEST 4: event streams that are reset are forgotten, the others end with the result
--- sale: 1001 stock=1000
--- redis
EVAL "for i = 1, 60 do redis.call('SADD', KEYS[1], i) end" 1 seckill:order_users:{1001}
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $h2  = ::h2();
    my @ids = map { $h2->request('GET', '/seckill/result/1001', [::auth($_), accept => 'text/event-stream']) } 1 .. 60;
    ::opened($h2, @ids);
    $h2->reset(@ids[0 .. 49]);
    ::waiters(10);
    ::redis('EVAL', "for i = 1, 60 do redis.call('PUBLISH', KEYS[1], i .. ' ' .. ARGV[1]) end", 1, 'seckill:results:{1001}', ::result_text());
    my @told = $h2->answers(5, @ids[50 .. 59]);
    Test::More::is(scalar(grep { $_->{ended} && $_->{body} =~ /id: final\nevent: result\ndata: \{"code":1,/ } @told), 10, 'ten are told, and their streams end');
    Test::More::is(scalar(grep { $h2->stream($_)->{body} =~ /final/ } @ids[0 .. 49]), 0, 'nothing more comes on a stream that was reset');
    ::waiters(0);
    Test::More::is(::codes($h2->answers(5, $h2->request('GET', '/seckill/result/1001', [::auth(1)]))), '0:1', 'the connection stays');
    $h2->close;
}]
--- redis_check
PUBSUB CHANNELS =>



=== TEST 5: a connection that goes takes all its streams with it
--- sale: 1001 stock=1000
--- redis
EVAL "for i = 1, 60 do redis.call('SADD', KEYS[1], i) end" 1 seckill:order_users:{1001}
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $h2 = ::h2();
    $h2->request('GET', '/seckill/result/1001?wait=30', [::auth($_)]) for 1 .. 30;
    my @ids = map { $h2->request('GET', '/seckill/result/1001', [::auth($_), accept => 'text/event-stream']) } 31 .. 60;
    ::opened($h2, @ids);
    ::waiters(60);
    $h2->close;
    ::waiters(0);
}]
--- redis_check
PUBSUB CHANNELS =>



=== TEST 6: a reload ends every stream in order, and within a second (A4)
--- sale: 1001 stock=1000
--- redis
EVAL "for i = 1, 60 do redis.call('SADD', KEYS[1], i) end" 1 seckill:order_users:{1001}
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $h2   = ::h2();
    my @held = map { $h2->request('GET', '/seckill/result/1001?wait=30', [::auth($_)]) } 1 .. 30;
    my @open = map { $h2->request('GET', '/seckill/result/1001', [::auth($_), accept => 'text/event-stream']) } 31 .. 60;
    ::opened($h2, @open);
    ::waiters(60);
    my $began = Time::HiRes::time();
    ::hup();
    my @told = $h2->answers(10, @held);
    Test::More::is(::codes(@told), '0:30', 'long polls are told to come again');
    my @ended = $h2->answers(10, @open);
    Test::More::is(scalar(grep { $_->{ended} && $_->{body} !~ /final/ } @ended), 30, 'event streams end without a result');
    my ($last) = sort { $b <=> $a } map { $_->{ended} // 1e12 } @told, @ended;
    Test::More::cmp_ok($last - $began, '<', 3, 'at once, with the time of the reload itself');
    Test::More::ok($h2->wait_for(sub { $h2->going }, 5), 'the connection is closed');
    $h2->close;
}]



=== TEST 7: one Authorization header, no more (E9)
--- sale: 1001 stock=1000
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $h2 = ::h2();
    my ($alice, $bob) = map { (::auth($_))[1] } 1001, 1002;
    my %headers = (
        'two users'         => [authorization => $alice, authorization => $bob],
        'reversed'          => [authorization => $bob,   authorization => $alice],
        'the same twice'    => [authorization => $alice, authorization => $alice],
        'good and bad'      => [authorization => $alice, authorization => 'Bearer x'],
        'bad and good'      => [authorization => 'Bearer x', authorization => $alice],
        'a list'            => [authorization => "$alice, $bob"],
        'in a cookie'       => [cookie => 'Authorization=' . $alice =~ s/Bearer //r],
    );
    for my $case (sort keys %headers) {
        my ($answer) = $h2->answers(5, $h2->request('POST', '/seckill/1001', $headers{$case}));
        # 400 is nginx's own word for a header that may come once
        Test::More::like("$answer->{status} " . ::codes($answer), qr/^(401 40100:1|400 none:1)$/, $case);
    }
    my ($query) = $h2->answers(5, $h2->request('POST', '/seckill/1001?Authorization=' . $alice =~ s/ /%20/r, []));
    Test::More::is("$query->{status} " . ::codes($query), '401 40100:1', 'in the query');
    my ($one) = $h2->answers(5, $h2->request('POST', '/seckill/1001', [authorization => $alice]));
    Test::More::is("$one->{status} " . ::codes($one), '200 0:1', 'one');
    $h2->close;
}]
--- redis_check
SMEMBERS seckill:order_users:{1001} => 1001
