package Test::Nginx::Socket;

# A small runner for test files in the format of Test::Nginx::Socket, used where
# the original of the OpenResty project is not installed.  It knows the part of
# that format which our suites use; a section it does not know fails the block
# instead of being passed over.
#
# It differs in one thing: at the end of a block nginx is stopped, and an
# [alert], [crit] or [emerg] line, a sanitizer's report or an end by a signal
# fails the block, unless one of its error_log sections names the line.
#
# Here are the functions of the test file and the run of a block; Server.pm owns
# nginx, Wire.pm the sockets, Check.pm the subtests.

use strict;
use warnings;

use Test::Base ();
use List::Util qw(shuffle);
use Test::More ();
use Time::HiRes qw(sleep);

use Test::Nginx::Check;
use Test::Nginx::Server;
use Test::Nginx::Wire;

our @ISA    = ('Test::Base');
our @EXPORT = qw(
    add_block_preprocessor add_cleanup_handler add_response_body_check
    add_test_cleanup_handler bail_out check_accum_error_log env_to_nginx html_dir is_str
    log_level master_off master_on master_process_enabled no_long_string
    no_root_location no_shuffle repeat_each run_tests server_port
    server_port_for_client server_root timeout worker_connections workers
);

my %known = map { $_ => 1 } qw(
    main_config http_config config post_main_config server_name user_files init
    request pipelined_requests raw_request raw_request_middle_delay more_headers
    response_body response_body_like response_body_unlike response_body_filters
    response_headers response_headers_like raw_response_headers_like
    raw_response_headers_unlike error_code error_code_like error_log no_error_log
    grep_error_log grep_error_log_out access_log no_access_log shutdown_error_log
    no_shutdown_error_log timeout wait abort shutdown ignore_response must_die
    suppress_stderr log_level skip_nginx skip_eval todo ONLY LAST SKIP
);

# the original looks at one of each
my @rivals = (
    [qw(error_code error_code_like)],
    [qw(response_headers response_headers_like)],
    [qw(response_body response_body_like response_body_unlike)],
    [qw(request pipelined_requests raw_request)],
);

my %set = (
    connections => 64,
    log_level   => $ENV{TEST_NGINX_LOG_LEVEL} // 'debug',
    master      => ($ENV{TEST_NGINX_MASTER_PROCESS} // 'off') eq 'on',
    repeat      => 1,
    root        => 1,
    shuffle     => !$ENV{TEST_NGINX_NO_SHUFFLE},
    timeout     => Test::Nginx::Wire::seconds($ENV{TEST_NGINX_TIMEOUT}) // 3,
    workers     => 1,
    env         => [],
);

my (@preprocessors, @body_checks, @block_cleanups, @cleanups);
my ($server, $version, $last_config, %random_port);

my $bad_line = qr{\[(?:alert|crit|emerg)\]
                  |(?:Address|Leak|Memory|Thread|UndefinedBehavior)Sanitizer
                  |runtime\ error:}x;

# seconds that a nginx which must die may take
use constant DIE_SECONDS => 3;

# of a sanitizer's report that are shown
use constant REPORT_LINES => 60;

# --- what a test file may call before run_tests(); each as in the original

sub no_shuffle()             { $set{shuffle} = 0; return }
sub no_long_string()         { return }
sub no_root_location()       { $set{root} = 0; return }
sub check_accum_error_log()  { $set{accumulate} = 1; return }
sub master_on()              { $set{master} = 1; return }
sub master_off()             { $set{master} = 0; return }
sub master_process_enabled() { return $set{master} }
sub repeat_each(@)           { $set{repeat}      = $_[0] if @_; return $set{repeat} }
sub worker_connections(@)    { $set{connections} = $_[0] if @_; return $set{connections} }
sub workers(@)               { $set{workers}     = $_[0] if @_; return $set{workers} }
sub log_level(@)             { $set{log_level}   = $_[0] if @_; return $set{log_level} }
sub timeout(@)               { $set{timeout}     = $_[0] if @_; return $set{timeout} }
sub env_to_nginx(@)          { push @{ $set{env} }, map { /\s/ ? "'$_'" : $_ } @_; return }
sub server_root()            { return _server()->root }
sub html_dir()               { return _server()->html }
sub server_port(@)           { return _server()->port }
sub server_port_for_client(@) { return $ENV{TEST_NGINX_CLIENT_PORT} // _server()->port }

sub add_block_preprocessor($)   { push @preprocessors,  $_[0]; return }
sub add_response_body_check($)  { push @body_checks,    $_[0]; return }
sub add_test_cleanup_handler($) { push @block_cleanups, $_[0]; return }
sub add_cleanup_handler($)      { push @cleanups,       $_[0]; return }

sub is_str(@) { goto &Test::Nginx::Check::is_str }

# Ends the whole test run, after cleaning up.
sub bail_out(@) {
    my ($why) = @_;

    _clean_up();
    Test::More::BAIL_OUT($why);
}

# Runs every block of the test file.
sub run_tests() {
    # run END, which stops nginx; a handler of the test file stays in charge
    for my $name (qw(INT TERM HUP)) {
        $SIG{$name} //= sub { exit 128 + 15 };
    }

    my @blocks = Test::Base::blocks();
    @blocks = shuffle(@blocks) if $set{shuffle};

    for my $block (@blocks) {
        my ($todo) = ($block->todo // '') =~ /:\s*(.*?)\s*$/s;
        Test::More->builder->todo_start($todo) if defined $todo;
        my $ok = eval { _run_block($block); 1 };
        Test::More::fail($block->name . " - $@") if !$ok;
        Test::More->builder->todo_end if defined $todo;
        _server()->stop;
        $_->($block) for @block_cleanups;
    }

    _clean_up();
    return;
}

sub _server { return $server //= Test::Nginx::Server->new }

sub _run_block {
    my ($block) = @_;

    my $name = $block->name;
    $_->($block) for @preprocessors;

    my ($skip, $reason) = _skip($block);
    if ($skip) {
        SKIP: { Test::More::skip("$name - $reason", $skip) }
        return;
    }

    # a preprocessor deletes the sections of the test file's own, once read
    my @unknown = grep { !$known{$_} && exists $block->{$_} } @{ $block->_section_order };
    die "unknown sections: @unknown\n" if @unknown;
    for my $rivals (@rivals) {
        my @given = grep { defined $block->$_ } @{$rivals};
        die "only the first of these would count: @given\n" if @given > 1;
    }

    my @exchanges = Test::Nginx::Wire::exchanges($block);
    my $count = 0;
    $count += @{ $_->{methods} } for @exchanges;
    my $check = Test::Nginx::Check->new(
        block => $block, name => $name, count => $count, server => _server(),
        body_checks => \@body_checks);

    _set_up($block);
    if (defined $block->must_die) {
        _must_die($block, $check);
    } elsif (!_start($block)) {
        die "nginx did not start:\n" . _server()->log('stderr');
    } else {
        # a log that tells why a request failed is read all the same
        my $ok = eval { _run_requests($block, $check, $_, @exchanges) for 0 .. $set{repeat} - 1; 1 };
        my $error = $@;
        _server()->mark if !$set{accumulate};
        _server()->stop;
        $check->shutdown_logs if $ok;
        Test::More::fail("$name - $error") if !$ok;
    }
    _faults($block, $check);

    return;
}

# once more on another port when somebody took ours
sub _start {
    my ($block) = @_;

    return 1 if _server()->start;
    return 0 if !_server()->move;

    _set_up($block);
    return _server()->start;
}

sub _set_up {
    my ($block) = @_;

    my $server = _server();
    my $config = $block->config // $last_config
        // bail_out($block->name . ' - has no config, and no block before it had one');
    $last_config = $config;

    $server->fresh;
    _user_files($block->user_files);

    my $init = $block->init;
    if (defined $init) {
        eval "package main; $init; 1" or die "init: $@";    ## no critic (StringyEval)
    }

    $server->configure(
        (map { $_ => _expand(scalar $block->$_ // '') } qw(main_config http_config post_main_config)),
        config        => _expand($config),
        server_name   => $block->server_name // 'localhost',
        log_level     => $block->log_level   // $set{log_level},
        workers       => $set{workers},
        connections   => $set{connections},
        master        => $set{master} || $set{workers} > 1,
        root_location => $set{root},
        env           => $set{env},
    );

    return;
}

sub _user_files {
    my ($files) = @_;

    return if !defined $files;

    if (!ref $files) {
        my ($head, @parts) = split /^>>>[ \t]+/m, $files;
        die "user_files begin with \">>> name\"\n" if $head =~ /\S/;
        $files = [map { [split /[ \t]*\n/, $_, 2] } @parts];
    }

    for my $file (@{$files}) {
        my ($name, $text) = @{$file};
        $name =~ s/\s+\d+(?:\.\d+)?\z//;
        my $path = _server()->html . "/$name";
        File::Path::make_path($path =~ s{/[^/]*\z}{}r);
        Test::Nginx::Server::write_file($path, $text // '');
    }

    return;
}

# $TEST_NGINX_NAME in a configuration: ours, or of the environment
sub _expand {
    my ($text) = @_;

    my $server = _server();
    my %own = (
        SERVER_ROOT => $server->root,
        HTML_DIR    => $server->html,
        PORT        => $server->port,
        SERVER_PORT => $server->port,
        CLIENT_PORT => server_port_for_client(),
    );

    $text =~ s{\$(?:TEST_NGINX_(\w+)|\{TEST_NGINX_(\w+)\})}{
        my $key = $1 // $2;
        $key =~ /^RAND_PORT_\d+$/ ? $random_port{$key} //= Test::Nginx::Server::free_port()
            : $own{$key} // $ENV{"TEST_NGINX_$key"}
            // bail_out("TEST_NGINX_$key is not in the environment")
    }ge;

    return $text;
}

# how many subtests are skipped, and why
sub _skip {
    my ($block) = @_;

    my $eval = $block->skip_eval;
    if (defined $eval) {
        my ($count, $code) = $eval =~ /^\s*(\d+)\s*:\s*(.*)/s or die "skip_eval: COUNT: CODE\n";
        my $true = eval "package main; $code";              ## no critic (StringyEval)
        die "skip_eval: $@" if $@;
        return ($count, $code) if $true;
    }

    my $range = $block->skip_nginx;
    if (defined $range) {
        my ($count, $operator, $limit) = $range =~ /^\s*(\d+)\s*:\s*([<>]=?)\s*([\d.]+)/
            or die "skip_nginx: COUNT: OPERATOR VERSION\n";
        my $order = _version() <=> _number($limit);
        my $true = $operator eq '<' ? $order < 0 : $operator eq '<=' ? $order <= 0
                 : $operator eq '>' ? $order > 0 : $order >= 0;
        return ($count, "nginx $operator $limit") if $true;
    }

    return (0, '');
}

sub _version {
    return $version if defined $version;

    my $binary = $ENV{TEST_NGINX_BINARY} // 'nginx';
    my ($text) = `$binary -v 2>&1` =~ m{/(\d+\.\d+\.\d+)} or die "$binary tells no version\n";

    return $version = _number($text);
}

sub _number {
    my ($major, $minor, $patch) = split /\./, $_[0];
    return $major * 1_000_000 + ($minor // 0) * 1000 + ($patch // 0);
}

sub _must_die {
    my ($block, $check) = @_;

    my $ended = !_server()->start || _server()->wait_exit(DIE_SECONDS);
    Test::More::ok($ended, $block->name . ' - nginx refuses to start');
    _server()->stop;
    $check->logs(0);

    my ($status) = ($block->must_die // '') =~ /(\d+)/;
    Test::More::is(_server()->status >> 8, $status, $block->name . ' - exit code') if defined $status;

    return;
}

sub _run_requests {
    my ($block, $check, $repeat, @exchanges) = @_;

    die "neither request nor must_die\n" if !@exchanges;

    my $ignore = defined $block->ignore_response;
    my $wait   = Test::Nginx::Wire::seconds(scalar $block->wait);
    my %how = (
        timeout  => Test::Nginx::Wire::seconds(scalar $block->timeout) // $set{timeout},
        abort    => defined $block->abort,
        shutdown => defined $block->shutdown ? ($block->shutdown =~ /(\d)/ ? $1 : 1) : undef,
    );
    my $index = 0;

    for my $exchange (@exchanges) {
        my ($bytes, $error) = Test::Nginx::Wire::talk(server_port_for_client(), $exchange, %how);
        Test::More::fail($block->name . " - $error (request $index)")
            if defined $error && !($ignore && defined $block->abort);

        for my $method (@{ $exchange->{methods} }) {
            if (!$ignore) {
                my ($response, $rest) = Test::Nginx::Wire::response($bytes, $method);
                die "request $index: $rest: \"" . substr($bytes, 0, 200) . "\"\n" if !$response;
                $check->response($response, $index, $repeat);
                $bytes = $rest;
            }
            sleep $wait if $wait;
            $check->logs($repeat);
            _server()->mark if !$set{accumulate};
            $index++;
        }
        Test::More::fail($block->name . ' - ' . length($bytes) . ' bytes behind the last response')
            if !$ignore && length $bytes;
    }

    return;
}

# what no block may leave behind
sub _faults {
    my ($block, $check) = @_;

    my @expected = $check->expected_lines;
    my @faults;

    for my $line (split /\n/, _server()->log('error') . "\n" . _server()->log('stderr')) {
        next if $line !~ $bad_line;
        push @faults, $line if !grep { $line =~ $_ } @expected;
    }
    my $status = _server()->status // 0;
    push @faults, sprintf 'nginx ended with wait status 0x%04x', $status
        if $status != 0 && !defined $block->must_die;
    return if !@faults;

    Test::More::fail($block->name . ' - nothing bad in the log');
    Test::More::diag($_) for @faults;
    Test::More::diag($_) for _reports();

    return;
}

# The reports of sanitizers; nginx makes stderr its error log.
sub _reports {
    my @reports;

    for my $name (qw(error stderr)) {
        my @lines = split /\n/, _server()->log($name);
        my ($first) = grep { $lines[$_] =~ /^==\d+==ERROR|runtime error:/ } 0 .. $#lines;
        next if !defined $first;
        my $last = $first + REPORT_LINES;
        push @reports, @lines[$first .. ($last < $#lines ? $last : $#lines)];
    }

    return @reports;
}

sub _clean_up {
    $_->() for splice @cleanups;
    $server->release if $server;
    return;
}

END {
    my $exit = $?;
    _clean_up();
    $? = $exit;
}

1;
