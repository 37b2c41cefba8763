# The journal: every purchase that may have been taken, signed, whatever the client,
# the location or the log of requests does.

use SeckillNginx;
use SignedJournal;
use Test::Nginx::Socket 'no_plan';
use Time::HiRes ();

log_level('info');
master_on();
workers(2);

our $Signs = SignedJournal->new(pack 'H*', SeckillNginx::TOKEN_KEY);

sub journal { return -e seckill_dir() . "/$_[0]" ? $Signs->read_file(seckill_dir() . "/$_[0]") : () }

# waits for this many good lines of a kind
sub lines {
    my ($name, $kind, $count) = @_;
    seckill_test()->wait_for(sub { (grep { $_->{kind} eq $kind && $_->{good} } journal($name)) >= $count }, 5,
        "$count lines \"$kind\"");
    my @all = journal($name);
    Test::More::is(scalar(grep { !$_->{good} } @all), 0, "every line of $name is whole and signed");
    return grep { $_->{kind} eq $kind } @all;
}

run_tests();

__DATA__

=== TEST 1: F-A4: a line per accepted purchase and no other, before the answer
--- sale: 1001 stock=10 max_quantity=3 epoch=4
--- seckill: seckill_journal $TEST_NGINX_DIR/one.journal;
--- request eval
["POST /seckill/1001\n{\"quantity\":2,\"ext\":\"a b\\n\\u001b%\\u4e2d-\"}", "POST /seckill/1001", "POST /seckill/1001", "GET /seckill/1001"]
--- more_headers eval
["$::Alice\nX-Request-ID: id-1", $::Bob, $::Alice, $::Alice]
--- response_body_like eval
[qr/"code":0,/, qr/"code":0,/, qr/"code":40003,/, qr/"running"/]
--- after eval
[sub {
    my ($line, @more) = ::lines('one.journal', 'accepted', 1);
    Test::More::is(scalar @more, 0, 'one line');
    my ($time, $no) = ::redis('XRANGE', 'seckill:orders:{1001}', '-', '+') =~ /order_no (\d+) accepted_ms (\d+)/ ? ($2, $1) : ();
    Test::More::is(CORE::join(' ', @{$line}{qw(version prefix key_id time activity epoch seq user quantity order_no request_id)}),
        "1 seckill " . $::Signs->id . " $time 1001 4 1 1001 2 $no id-1", '... says what the stream says');
    Test::More::is($line->{ext}, "a b\n\e%\xe4\xb8\xad-", '... and the ext');
    Test::More::unlike($line->{text}, qr/[^\x20-\x7e]/, '... in plain bytes');
}, undef, undef, sub {
    Test::More::is(CORE::join(' ', map { $_->{user} } ::lines('one.journal', 'accepted', 2)), '1001 1002', 'no line for a refusal');
    my @open = ::lines('one.journal', 'open', 2);
    Test::More::is(scalar @open, 2, 'an open line of each worker');
    Test::More::is($open[0]{key_id}, $::Signs->id, '... with the key');
    open my $fh, '<:raw', ::seckill_dir() . '/one.journal'; local $/ = undef; my $text = <$fh>;
    Test::More::like($text, qr/\A\n[^\n]+\n(?:\n(?:[^\n]+\n)+)*\z/, 'every write begins and ends with a line end');
    Test::More::is((stat ::seckill_dir() . '/one.journal')[2] & 07777, 0640, 'others can\'t read it');
}]



=== TEST 2: a location with other settings, a rewritten URI and no access log: the same journal
--- sale: 1001 stock=10
--- seckill
seckill_journal $TEST_NGINX_DIR/two.journal;
access_log off;
--- config
location /seckill/ { seckill on; }
location ~ ^/other/ { seckill on; seckill_limit off; seckill_messages en; }
--- request eval
["POST /seckill/1001", "POST /other/x%20user=4711%20seq=9/1001"]
--- more_headers eval
[$::Alice, $::Bob]
--- error_code eval
[200, 200]
--- after eval
[undef, sub {
    Test::More::is(CORE::join(' ', map {"$_->{user}/$_->{seq}"} ::lines('two.journal', 'accepted', 2)), '1001/1 1002/2',
        'F-A1: nothing of the URI is in the journal');
}]



=== TEST 3: F-A4: the answer never comes: unknown, with all that is known
--- sale: 1001 stock=10 epoch=3
--- fake_redis
EVALSHA: run close
--- seckill
seckill_journal $TEST_NGINX_DIR/three.journal;
--- request eval
"POST /seckill/1001\n{\"quantity\":1,\"ext\":\"x\"}"
--- more_headers eval
"$::Alice\nX-Request-ID: lost-1"
--- error_code: 503
--- response_body_like: "code":50301,
--- after eval
[sub {
    my ($line) = ::lines('three.journal', 'unknown', 1);
    Test::More::is(CORE::join(' ', @{$line}{qw(activity epoch seq user quantity order_no request_id ext)}),
        '1001 3 0 1001 1 - lost-1 x', 'one line');
    Test::More::is(scalar(grep { $_->{kind} eq 'accepted' } ::journal('three.journal')), 0, '... and none that says more');
}]



=== TEST 4: the key that a worker looks for at its start: "not there" turns no buyer away
--- seckill
seckill_journal $TEST_NGINX_DIR/four.journal;
seckill_refresh 20s;
--- redis
DEL seckill:control
--- request eval
["GET /nothing", "POST /seckill/1001"]
--- more_headers eval
["X-None: 1", $::Alice]
--- error_code eval
[404, 200]
--- after eval
[sub {
    Time::HiRes::sleep(0.3);
    ::redis('HSET', 'seckill:control', 'token_key', SeckillNginx::TOKEN_KEY, 'rev', 9);
    ::redis('HSET', 'seckill:activity:{1001}', split / /, 'product_id 1 price 9.90 stock_limit 10 start_ms 1 end_ms 4000000000000 state open max_quantity 1 eligible 0 epoch 1 rev 1 seq 0');
    ::redis('SET', 'seckill:stock:{1001}', 10);
    ::redis('XGROUP', 'CREATE', 'seckill:orders:{1001}', 'seckilld', 0, 'MKSTREAM');
}, undef]
--- response_body_like eval
[qr/404/, qr/"code":0,/]
