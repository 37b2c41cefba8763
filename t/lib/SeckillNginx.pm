package SeckillNginx;

# What the suites t/*.t need besides Test::Nginx::Socket, and only through its
# public functions, so that they run under the original and under our runner:
#
#   use SeckillNginx;
#   use Test::Nginx::Socket 'no_plan';
#
# It starts one private Redis per test file, empties it before each block, and
# gives each block these sections:
#
#   --- sale        one activity a line: ID stock=10 start=-10s end=+1h
#                   max_quantity=1 product=1 price=9.90 state=open epoch=1
#                   eligible=7,8 (by registration).  Times count from now.
#   --- redis       commands run before the requests, one a line
#   --- seckill     directives for the http block, besides the usual zone, address,
#                   key and patient timeouts; one of the same name replaces the usual
#   --- fake_redis  rules of FakeRedis; the module then talks to that one
#   --- after eval  array of code, run after the response of the same number
#   --- redis_check COMMAND => expected, or COMMAND =~ pattern, one a line, tested
#                   when the block is over; words of an answer are joined by blanks
#   --- fake_check  COMMAND => how often the fake one heard it
#   --- redis_calls COMMAND => how often Redis ran it since the block began; EVALSHA
#                   leaves out the reads of facts and control, which are HLEN
#
# Without --- config a block has "location /seckill/ { seckill on; }".  In
# configurations: $TEST_NGINX_REDIS, $TEST_NGINX_REDIS_PORT, $TEST_NGINX_FAKE,
# $TEST_NGINX_FAKE_PORT, $TEST_NGINX_KEY and $TEST_NGINX_DIR.

use strict;
use warnings;

use Cwd qw(abs_path);
use Digest::SHA ();
use Exporter qw(import);
use File::Basename qw(dirname);
use JSON::PP ();
use IO::Select;
use IO::Socket::INET;
use MIME::Base64 qw(encode_base64url);
use Test::More ();
use Time::HiRes qw(sleep time);

use FakeRedis;
use SeckillTest;

our @EXPORT = qw(bearer crowd fake log_count redis redis_stop redis_cont reload seckill_dir seckill_test session
                 ticket token write_key);

use constant AUTH_KEY  => 'a key of thirty-two bytes, or so';
use constant TOKEN_KEY => '00112233445566778899aabbccddeeff0123456789abcdeffedcba9876543210';

# seconds for a reload to replace the worker
use constant RELOAD_SECONDS => 20;

# seconds for all the answers to a crowd
use constant CROWD_SECONDS => 20;

my $root = dirname(dirname(dirname(abs_path(__FILE__))));
my ($test, $redis, $fake);

BEGIN {
    my $library = dirname(dirname(dirname(abs_path(__FILE__))));
    my $build = $ENV{SECKILL_BUILD} // 'build';
    $build = "$library/$build" if $build !~ m{^/};

    $SeckillNginx::Module = "$build/ngx_http_seckill_module.so";
    if ($build =~ m{/asan/?\z} || -e "$build/.sanitize") {
        my $cc = $ENV{CC} // 'gcc';
        my @runtime = map { abs_path(`$cc -print-file-name=$_` =~ s/\s+\z//r) } qw(libasan.so libubsan.so);
        $ENV{TEST_NGINX_LD_PRELOAD} = "@runtime $build/nginx_reachable.so";
        $ENV{ASAN_OPTIONS}  = 'fast_unwind_on_malloc=0:detect_leaks=1';
        $ENV{UBSAN_OPTIONS} = 'print_stacktrace=1:halt_on_error=1';
        $ENV{LSAN_OPTIONS}  = "suppressions=$library/t/lib/lsan.supp:print_suppressions=0";
    }
}

use Test::Nginx::Socket ();

# Starts what a test file needs, once.
sub _start {
    $test  = SeckillTest->new;
    $redis = $test->redis;
    $fake  = FakeRedis->new(dir => $test->dir, real => $redis->{sock});

    $ENV{TEST_NGINX_DIR}        = $test->dir;
    $ENV{TEST_NGINX_REDIS}      = "unix:$redis->{sock}";
    $ENV{TEST_NGINX_REDIS_PORT} = $redis->{port};
    $ENV{TEST_NGINX_FAKE}       = 'unix:' . $fake->sock;
    $ENV{TEST_NGINX_FAKE_PORT}  = $fake->port;
    $ENV{TEST_NGINX_KEY}        = write_key('auth.key', AUTH_KEY);

    # headers of five buyers, for --- more_headers
    no warnings 'once';    ## no critic (NoWarnings)
    ($::Alice, $::Bob, $::Carol, $::Dave, $::Erin) = map { bearer(token($_)) } 1001 .. 1005;

    Test::Nginx::Socket::add_block_preprocessor(\&_prepare);
    Test::Nginx::Socket::add_response_body_check(\&_after);
    Test::Nginx::Socket::add_test_cleanup_handler(\&_check);

    # more than any block has at once; the default of 64 is fewer than some
    Test::Nginx::Socket::worker_connections(1024);

    return;
}

# The SeckillTest of this file, for servers of a test's own.
sub seckill_test { return $test }

# The private folder that $TEST_NGINX_DIR names.
sub seckill_dir { return $test->dir }

# The FakeRedis between the module and Redis, for blocks with --- fake_redis.
sub fake { return $fake }

# Writes a file of the private folder and returns its path.
sub write_key {
    my ($name, $text) = @_;
    return $test->file($name, $text);
}

# A signed token of this user for an hour.  %claims replace or add; undef drops
# one.  Besides: alg (HS256), key, header => {..} more header fields, payload
# => text in place of the claims.
sub token {
    my ($user, %claims) = @_;

    my $alg    = exists $claims{alg} ? delete $claims{alg} : 'HS256';
    my $key    = delete $claims{key} // AUTH_KEY;
    my $extra  = delete $claims{header} // {};
    my $text   = delete $claims{payload};
    my $json   = JSON::PP->new->canonical->allow_nonref->utf8;
    my %header = (typ => 'JWT', defined $alg ? (alg => $alg) : (), %{$extra});
    my %claim  = (sub => "$user", iat => int time, exp => int(time) + 3600, %claims);

    delete @claim{ grep { !defined $claim{$_} } keys %claim };
    my $signed = encode_base64url($json->encode(\%header)) . '.'
               . encode_base64url($text // $json->encode(\%claim));

    return "$signed." . encode_base64url(_hmac($alg // '', $signed, $key));
}

sub _hmac {
    my ($alg, $text, $key) = @_;

    return Digest::SHA::hmac_sha384($text, $key) if $alg eq 'HS384';
    return Digest::SHA::hmac_sha512($text, $key) if $alg eq 'HS512';
    return Digest::SHA::hmac_sha256($text, $key);
}

# The header line that carries a token.
sub bearer { return "Authorization: Bearer $_[0]" }

# Opens a session in Redis for "seckill_auth redis" and returns the header line.
sub session {
    my ($user, $secret) = @_;
    redis('SET', 'seckill:session:' . Digest::SHA::sha256_hex($secret), $user);
    return bearer($secret);
}

# The queue_token of a purchase, by the key in seckill:control or another.
sub ticket {
    my ($activity, $user, $key) = @_;

    my $text = pack 'C Q> Q>', 1, $activity, $user;
    my $mac  = Digest::SHA::hmac_sha256($text, $key // pack 'H*', TOKEN_KEY);

    return encode_base64url($text . substr $mac, 0, 16);
}

# Runs a command on the real Redis and returns its answer as text.
sub redis {
    my ($command, @args) = @_;

    my $method = lc $command;
    my $value  = eval { scalar $redis->{client}->$method(@args) };
    return 'ERR ' . $@ =~ s/ at .*//sr if $@;

    return _flat($value);
}

sub _flat {
    my ($value) = @_;

    return '(nil)' if !defined $value;
    return $value if !ref $value;
    return join "\n", map { "$_:$value->{$_}" } sort keys %{$value} if ref $value eq 'HASH';    # INFO
    return join ' ', map { _flat($_) } @{$value};
}

# The real Redis takes no more processor time: it accepts and does not answer.
sub redis_stop { kill 'STOP', $redis->{pid}; return }
sub redis_cont { kill 'CONT', $redis->{pid}; return }

# How many lines of the error log match so far in this block.
sub log_count {
    my ($pattern) = @_;

    open my $fh, '<', Test::Nginx::Socket::server_root() . '/logs/error.log' or die "no error log: $!\n";
    my $count = grep { $_ =~ $pattern } <$fh>;
    return $count;
}

# Makes nginx read its configuration again and waits for the new worker.  The
# test file needs master_on().
sub reload {
    my $pids = Test::Nginx::Socket::server_root() . '/logs/nginx.pid';
    open my $fh, '<', $pids or die "no pid file: $!\n";
    chomp(my $pid = <$fh>);

    my %old = map { $_ => 1 } _workers($pid);
    kill 'HUP', $pid;
    $test->wait_for(sub {
        my @now = _workers($pid);
        return @now && !grep { $old{$_} } @now;
    }, RELOAD_SECONDS, 'the reload');

    return;
}

sub _workers {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/task/$pid/children" or return;
    return split ' ', scalar(<$fh>) // '';
}

# Sends requests at once, each on a connection of its own, and waits for all the
# answers.  A request is [method, path, header lines, body]; returns one
# { status, body, seconds } for each, status 0 when there was no answer.
sub crowd {
    my (@requests) = @_;

    my $port = Test::Nginx::Socket::server_port_for_client();
    my ($read, $write) = (IO::Select->new, IO::Select->new);
    my (@answers, %index);

    for my $i (0 .. $#requests) {
        my ($method, $path, $header, $body) = @{ $requests[$i] };
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port)
            or die "cannot connect: $!\n";
        $index{$socket} = $i;
        $answers[$i] = { out => _request($method, $path, $header, $body), in => '' };
        $socket->blocking(0);
        $write->add($socket);
        $read->add($socket);
    }

    my $begin = time;
    while ($read->count && time < $begin + CROWD_SECONDS) {
        my ($can_read, $can_write) = IO::Select->select($read, $write, undef, 0.1);
        for my $socket (@{ $can_write // [] }) {
            my $answer = $answers[ $index{$socket} ];
            my $n = syswrite $socket, $answer->{out};
            substr $answer->{out}, 0, $n // 0, '';
            $write->remove($socket) if $answer->{out} eq '' || !defined $n && !$!{EAGAIN};
        }
        for my $socket (@{ $can_read // [] }) {
            my $answer = $answers[ $index{$socket} ];
            my $n = sysread $socket, $answer->{in}, 65_536, length $answer->{in};
            next if $n || !defined $n && $!{EAGAIN};
            $answer->{seconds} = time - $begin;
            $read->remove($socket);
            $write->remove($socket);
            close $socket;
        }
    }

    return map { _answer($_) } @answers;
}

sub _request {
    my ($method, $path, $header, $body) = @_;

    my $text = "$method $path HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    $text .= "$header\r\n" if defined $header;
    $text .= 'Content-Length: ' . length($body) . "\r\n" if defined $body;

    return "$text\r\n" . ($body // '');
}

sub _answer {
    my ($answer) = @_;

    my ($head, $body) = split /\r\n\r\n/, $answer->{in}, 2;
    my ($status) = ($head // '') =~ m{^HTTP/1\.1 (\d+)};

    return { status => $status // 0, body => $body // '', seconds => $answer->{seconds} };
}

# --- the sections

sub _prepare {
    my ($block) = @_;

    # a new process: what the last block left stalled must not run in this one
    my $fakes = $block->fake_redis;
    $fake->stop;
    $fake->clear($fakes);
    $fake->start;
    redis_cont();
    $redis->{client}->flushall;
    $redis->{client}->script('flush');
    $redis->{client}->hset('seckill:control', 'token_key', TOKEN_KEY);
    _sale($_) for _lines(scalar $block->sale);
    $redis->{client}->hincrby('seckill:control', 'rev', 1);
    for my $line (_lines(scalar $block->redis)) {
        my $answer = redis(_words($line));
        die "redis: \"$line\": $answer\n" if $answer =~ /^ERR /;
    }

    if (!defined $block->http_config) {
        $block->set_value('http_config', _http_config(scalar $block->seckill, defined $fakes));
    }
    # a journal is for tests that want one; without a word nginx warns
    if (($block->http_config // '') !~ /^\s*seckill_journal\s/m) {
        $block->set_value('http_config', "seckill_journal off;\n" . ($block->http_config // ''));
    }
    if (!defined $block->config) {
        $block->set_value('config', "location /seckill/ {\n    seckill on;\n}\n");
    }
    if (!$ENV{TEST_NGINX_LOAD_MODULES}) {
        my $main = $block->main_config // '';
        $block->set_value('main_config', "load_module $SeckillNginx::Module;\n$main");
    }

    my %own;
    for my $name (qw(sale redis seckill fake_redis after redis_check fake_check redis_calls)) {
        $own{$name} = $block->$name;
        delete $block->{$name};
    }
    $block->set_value('seckill_own', \%own);    # its name may change later

    $redis->{client}->config('resetstat');
    return;
}

sub _http_config {
    my ($given, $faked) = @_;

    $given //= '';
    my %usual = (
        seckill_zone          => 'sale:8m',
        seckill_redis         => $faked ? '$TEST_NGINX_FAKE' : '$TEST_NGINX_REDIS',
        seckill_auth_key_file => '$TEST_NGINX_KEY',
    );
    # patience for a busy machine, where a block does not test the times
    if ($given !~ /^\s*seckill_(?:redis_|redis_connect_)?timeout\s/m) {
        @usual{qw(seckill_redis_timeout seckill_redis_connect_timeout seckill_timeout)} = qw(2s 2s 5s);
    }
    my @usual = map {"$_ $usual{$_};\n"} grep { $given !~ /^\s*$_\s/m } sort keys %usual;

    return join '', @usual, $given;
}

# Loads an activity the way seckillctl does, but also one that has started.
sub _sale {
    my ($line) = @_;

    my ($id, @pairs) = split ' ', $line;
    my %sale = (stock => 10, start => '-10s', end => '+1h', max_quantity => 1,
                product => 1, price => '9.90', epoch => 1, map { split /=/, $_, 2 } @pairs);

    my $now = $redis->{client}->time;
    my $now_ms = $now->[0] * 1000 + int($now->[1] / 1000);
    my @keys = map {"seckill:$_:{$id}"} qw(activity stock order_users orders);

    $redis->{client}->sadd('seckill:activities', $id);
    my $answer = $redis->{client}->eval(
        _script('preheat'), scalar @keys, @keys, 1, $sale{product}, $sale{price}, $sale{stock},
        $now_ms + _ms($sale{start}), $now_ms + _ms($sale{end}), $sale{max_quantity},
        defined $sale{eligible} ? 1 : 0, $sale{epoch});
    die "preheat of $id: @{$answer}\n" if $answer->[0] ne 'created';

    $redis->{client}->sadd("seckill:eligible:{$id}", split /,/, $sale{eligible})
        if length($sale{eligible} // '');
    $redis->{client}->hset($keys[0], 'state', $sale{state}) if defined $sale{state};

    return;
}

my %script;

sub _script {
    my ($name) = @_;

    return $script{$name} //= do {
        open my $fh, '<:raw', "$root/lua/$name.lua" or die "lua/$name.lua: $!\n";
        local $/ = undef;
        scalar <$fh>;
    };
}

# "-10s", "+1h", "300ms" as milliseconds
sub _ms {
    my ($text) = @_;

    my %unit_ms = (ms => 1, s => 1000, m => 60_000, h => 3_600_000, d => 86_400_000);
    my ($sign, $count, $unit) = $text =~ /^([+-]?)(\d+)(ms|[smhd])$/
        or die "\"$text\" is not a time\n";

    return ($sign eq '-' ? -1 : 1) * $count * $unit_ms{$unit};
}

sub _after {
    my ($block, $body, $index) = @_;

    my $code = ($block->seckill_own->{after} // [])->[$index];
    $code->($body) if $code;
    return;
}

sub _check {
    my ($block) = @_;

    my $own = $block->seckill_own;
    redis_cont();

    # before our own commands add to the counts
    for my $line (_lines($own->{redis_calls})) {
        my ($name, $expected) = $line =~ /^(\S+)\s*=>\s*(\d+)$/ or die "redis_calls: \"$line\"\n";
        my $count = _calls($name);
        $count -= _calls('HLEN') if $name eq 'EVALSHA';
        Test::More::is($count, $expected, $block->name . " - Redis ran $name");
    }
    for my $line (_lines($own->{redis_check})) {
        my ($command, $how, $expected) = $line =~ /^(.*?)\s*(=>|=~)\s*(.*)$/
            or die "redis_check: \"$line\"\n";
        my $got = redis(_words($command));
        $how eq '=>' ? Test::More::is($got, $expected, $block->name . " - $command")
                     : Test::More::like($got, qr/$expected/, $block->name . " - $command");
    }
    for my $line (_lines($own->{fake_check})) {
        my ($command, $expected) = $line =~ /^(.*?)\s*=>\s*(\d+)$/ or die "fake_check: \"$line\"\n";
        Test::More::is(scalar $fake->commands($command), $expected,
                       $block->name . " - fake Redis heard $command");
    }

    return;
}

# How often Redis ran a command.  lua/facts.lua and lua/control.lua run HLEN, once.
sub _calls {
    my ($name) = @_;

    my $stat = $redis->{client}->info('commandstats')->{ 'cmdstat_' . lc $name } // 'calls=0';
    my ($count) = $stat =~ /calls=(\d+)/;
    return $count;
}

sub _lines {
    my ($text) = @_;
    return map {s/^\s+|\s+$//gr} grep {/\S/} split /\n/, $text // '';
}

# words of a command line; "in quotes" may hold blanks
sub _words {
    my ($line) = @_;

    my @words;
    while ($line =~ /\G\s*(?:"((?:[^"\\]|\\.)*)"|(\S+))/g) {
        push @words, defined $1 ? $1 =~ s/\\(.)/$1/gr : $2;
    }

    return @words;
}

_start();

1;
