# A body that is waited for: what was looked at before it is looked at again, and
# it has seckill_body_timeout to come whole (F-B2), over HTTP/1 and HTTP/2.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';
use Digest::SHA ();
use Http2Client;
use IO::Select;
use IO::Socket::INET;
use POSIX ();
use Time::HiRes ();

$SIG{PIPE} = 'IGNORE';    # connections that a test looks at until they end

log_level('info');
master_on();

# the same location on a second server, whose clients speak HTTP/2 from the first byte
add_block_preprocessor(sub {
    my ($block) = @_;

    my $location = 'location /seckill/ { seckill on; }';
    $block->set_value('http_config', <<"END_CONF" . ($block->http_config // ''));
server {
    listen unix:\$TEST_NGINX_DIR/h2-body.sock http2;
    $location
}
END_CONF
    $block->set_value('config', "$location\nlocation = /status { seckill_status; }\n");
    $block->set_value('no_error_log', "[alert]\n[crit]\n[emerg]\n");
    return;
});

run_tests();

sub main::nap { return select undef, undef, undef, $_[0] }

sub main::fact { return ::redis('HSET', 'seckill:activity:{1001}', @_) }

sub main::act {
    ::redis('HINCRBY', 'seckill:activity:{1001}', 'rev', 1);
    ::redis('HINCRBY', 'seckill:control', 'rev', 1);
    return;
}

# A purchase whose body of 15 bytes has come by half.  Answers: code() and text().
sub main::half {
    my ($proto, $header) = @_;
    return Half1->new($header) if $proto eq 'h1';
    return Half2->new($header);
}

# Each of these over both protocols: (what happens in between, what is heard, name)
sub main::both {
    my ($between, $code, $name, @headers) = @_;

    for my $proto (qw(h1 h2)) {
        my $half = ::half($proto, shift @headers);
        $between->();
        $half->rest;
        Test::More::is($half->code, $code, "$proto: $name");
    }
    return;
}

package Half1;

sub new {
    my ($class, $header) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => Test::Nginx::Socket::server_port_for_client())
        or die "connect: $!\n";
    syswrite $socket, "POST /seckill/1001 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n$header\r\n\r\n{\"quant";
    return bless { socket => $socket, in => '' }, $class;
}

sub more { my ($self, $bytes) = @_; return syswrite $self->{socket}, $bytes }
sub rest { return $_[0]->more('ity":1 }') }

# All that comes until the server closes, or the answer is there.
sub text {
    my ($self, $seconds) = @_;

    my $end = Time::HiRes::time() + ($seconds // 10);
    while ($self->{in} !~ /\r\n\r\n\{.*\}\z/s && Time::HiRes::time() < $end) {
        next if !IO::Select->new($self->{socket})->can_read(0.1);
        last if !sysread $self->{socket}, $self->{in}, 65_536, length $self->{in};
    }
    return $self->{in};
}

sub code { my ($self, $seconds) = @_; return $self->text($seconds) =~ /\r\n\r\n\{"code":(\d+),/ ? $1 : 'none' }

# Seconds until the server closes.
sub closed {
    my ($self) = @_;
    my $began = Time::HiRes::time();
    while (Time::HiRes::time() < $began + 10) {
        next if !IO::Select->new($self->{socket})->can_read(0.1);
        sysread $self->{socket}, $self->{in}, 65_536, length $self->{in} or last;
    }
    return Time::HiRes::time() - $began;
}

package Half2;

sub new {
    my ($class, $header) = @_;
    my ($name, $value) = split /: /, $header, 2;
    my $h2 = Http2Client->new(SeckillNginx::seckill_dir() . '/h2-body.sock');
    my $id = $h2->request('POST', '/seckill/1001', [ CORE::lc $name, $value, 'content-length', 15 ], open => 1);
    $h2->data($id, '{"quant');
    return bless { h2 => $h2, id => $id }, $class;
}

sub more { my ($self, $bytes) = @_; return $self->{h2}->data($self->{id}, $bytes) }
sub rest { my ($self) = @_; return $self->{h2}->data($self->{id}, 'ity":1 }', 1) }

sub code {
    my ($self, $seconds) = @_;
    my ($stream) = $self->{h2}->answers($seconds // 10, $self->{id});
    return $stream->{body} =~ /^\{"code":(\d+),/ ? $1 : 'none';
}

package main;

__DATA__

=== TEST 1: a body that takes its time is a body
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    ::both(sub { ::nap(1.2) }, '0', 'half of it, and later the rest', map { ::bearer(::token($_)) } 1, 2);
    ::both(sub { ::nap(0.05) }, '40004', 'once more', map { ::bearer(::token($_)) } 1, 2);
}]
--- redis_check
GET seckill:stock:{1001} => 8



=== TEST 2: F-B2: one that does not come whole in time: 40800 and an answer, not a closed door
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_body_timeout 700ms;
    seckill_messages en;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $h1 = ::half('h1', ::bearer(::token(1)));
    my $began = Time::HiRes::time();
    for (1 .. 3) { ::nap(0.2); $h1->more('i') }
    my $text = $h1->text;
    my $took = Time::HiRes::time() - $began;
    Test::More::like($text, qr{^HTTP/1\.1 408 }, 'h1: 408');
    Test::More::like($text, qr/\r\nConnection: close\r\n/, 'h1: the connection ends');
    Test::More::like($text, qr/\r\nContent-Type: application\/json; charset=utf-8\r\n/, 'h1: in JSON');
    Test::More::like($text, qr/\r\n\r\n\{"code":40800,"message":"request timed out","data":null,"server_time_ms":\d+\}\z/, 'h1: 40800');
    Test::More::cmp_ok($took, '>=', 0.6, 'h1: not before its time, each byte of it counts for nothing');
    Test::More::cmp_ok($took, '<', 4, 'h1: nor long after');
    Test::More::cmp_ok($h1->closed, '<', 5, 'h1: and it is closed');

    my $h2 = ::half('h2', ::bearer(::token(2)));
    Test::More::is($h2->code, '40800', 'h2: 40800');
    my $stream = $h2->{h2}->stream($h2->{id});
    Test::More::is($stream->{status}, 408, 'h2: 408');
    $h2->{h2}->wait_for(sub { defined $stream->{reset} }, 5);
    Test::More::is($stream->{reset}, 0, 'h2: the stream ends without an error');
    my $next = $h2->{h2}->request('POST', '/seckill/1001', [ authorization => 'Bearer ' . ::token(3) ], body => '{}');
    my ($answer) = $h2->{h2}->answers(5, $next);
    Test::More::like($answer->{body}, qr/^\{"code":0,/, 'h2: and the connection serves the next');

    my ($status) = ::crowd(['GET', '/status']);
    Test::More::like($status->{body}, qr/^seckill_requests_total\{[^}]*verdict="timeout"[^}]*\} 2$/m, 'counted');
}]
--- redis_check
GET seckill:stock:{1001} => 9
--- error_log
seckill body has not come whole in time



=== TEST 3: F-B2: client_body_timeout is answered too
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    client_body_timeout 400ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    for my $proto (qw(h1 h2)) {
        Test::More::is(::half($proto, ::bearer(::token(1)))->code(4), '40800', "$proto: an answer");
    }
}]



=== TEST 4: F-B2: the entry was closed meanwhile
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @all = map { ::half($_, ::bearer(::token(1))) } qw(h1 h2);
    ::redis('HSET', 'seckill:control', 'state', 'closed');
    ::act();
    ::nap(0.3);
    for (@all) { $_->rest; Test::More::is($_->code, '50303', 'all are closed') }
    ::redis('HSET', 'seckill:control', 'state', 'open');
    ::act();
    ::nap(0.3);
    my @half = map { ::half($_, ::bearer(::token(3))) } qw(h1 h2);
    ::fact('state', 'closed');
    ::act();
    ::nap(0.3);
    for (@half) { $_->rest; Test::More::is($_->code, '50303', 'the sale is closed') }
}]
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 5: F-B2: the token expired meanwhile
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @half = map { ::half($_, ::bearer(::token(1, exp => int(Time::HiRes::time()) + 2))) } qw(h1 h2);
    ::nap(3.1);
    for (@half) { $_->rest; Test::More::is($_->code, '40100', 'expired') }
}]
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 6: F-B2: the session was revoked meanwhile
--- sale: 1001 stock=10
--- seckill
    seckill_auth redis;
    seckill_limit off;
    seckill_refresh 200ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @header = map { ::session($_, "secret-$_") } 1, 2;
    my @half = (::half('h1', $header[0]), ::half('h2', $header[1]));
    ::nap(0.1);
    ::redis('DEL', map { 'seckill:session:' . Digest::SHA::sha256_hex("secret-$_") } 1, 2);
    ::nap(0.4);
    for (@half) { $_->rest; Test::More::is($_->code, '40100', 'revoked') }

    ::session(1, 'secret-1');
    ::nap(0.3);
    my $half = ::half('h1', $header[0]);
    ::nap(0.1);
    ::session(9, 'secret-1');
    ::nap(0.4);
    $half->rest;
    Test::More::is($half->code, '40100', 'another user has it now');
}]
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 7: F-B2: the sale ended meanwhile
--- sale: 1001 stock=10 end=+2s
--- seckill
    seckill_limit off;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my ($bought) = ::crowd(['POST', '/seckill/1001', ::bearer(::token(1))]);
    Test::More::like($bought->{body}, qr/"code":0,/, 'one buys in time');
    my @half = map { [ ::half($_, ::bearer(::token(2))), ::half($_, ::bearer(::token(1))) ] } qw(h1 h2);
    ::nap(2.5);
    for (@half) {
        $_->rest for @{$_};
        Test::More::is($_->[0]->code, '40002', 'ended');
        Test::More::is($_->[1]->code, '40004', 'a buyer hears that he bought');
    }
}]
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 8: F-B2: it was lost meanwhile, and the limit is given back
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=1r/m;
    seckill_refresh 100ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @half = (::half('h1', ::bearer(::token(1))), ::half('h2', ::bearer(::token(2))));
    ::redis('RENAME', 'seckill:stock:{1001}', 'away');
    ::nap(0.3);
    for (@half) { $_->rest; Test::More::is($_->code, '50302', 'not whole') }
    ::redis('RENAME', 'away', 'seckill:stock:{1001}');
    ::nap(0.3);
    ::both(sub { }, '0', 'the second try is the first', map { ::bearer(::token($_)) } 1, 2);
}]
--- redis_check
GET seckill:stock:{1001} => 8



=== TEST 9: F-B2: the worker ends meanwhile
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_body_timeout 30s;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my @half = (::half('h1', ::bearer(::token(1))), ::half('h2', ::bearer(::token(2))));
    my $late = ::half('h1', ::bearer(::token(3)));
    ::nap(0.2);
    my $began = Time::HiRes::time();
    ::reload();
    Test::More::cmp_ok(Time::HiRes::time() - $began, '<', 10, 'a reload does not wait for bodies');
    $late->rest;
    Test::More::is($_->code, '50302', 'nothing was taken') for @half, $late;
}]
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 10: a client that goes away amid its body
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    seckill_body_timeout 600ms;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    for (1 .. 20) {
        my $half = ::half($_ % 2 ? 'h1' : 'h2', ::bearer(::token($_)));
        ::nap(0.02);
        undef $half;
    }
    ::nap(1.5);
    my ($bought) = ::crowd(['POST', '/seckill/1001', ::bearer(::token(1)), '{}']);
    Test::More::like($bought->{body}, qr/"code":0,/, 'the next one buys');
}]
--- redis_check
GET seckill:stock:{1001} => 9



=== TEST 11: a client that asks often and does not read hears all the answers later
--- sale: 1001 stock=10
--- seckill
    seckill_limit off;
    keepalive_requests 1000000;
--- request
GET /seckill/1001
--- response_body_like: "running"
--- after eval
[sub {
    my $n = 40_000;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => Test::Nginx::Socket::server_port_for_client())
        or die "connect: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        for (1 .. $n) { print {$socket} "GET /seckill/0 HTTP/1.1\r\nHost: localhost\r\n\r\n" }
        $socket->flush;
        POSIX::_exit(0);
    }
    ::nap(1);
    my ($in, $answers, $end) = ('', 0, Time::HiRes::time() + 20);
    while ($answers < $n && Time::HiRes::time() < $end) {
        next if !IO::Select->new($socket)->can_read(0.5);
        sysread $socket, $in, 1 << 16, length $in or last;
        $answers += () = $in =~ /"server_time_ms":\d+\}/g;
        $in =~ s/\A.*"server_time_ms":\d+\}//s;
    }
    Test::More::is($answers, $n, 'none is missing');
    kill 'KILL', $pid;
    waitpid $pid, 0;
}]
