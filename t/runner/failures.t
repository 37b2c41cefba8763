# The runner must fail where a suite is wrong: each block below is run in a test
# file of its own, and what prove would see is compared.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;
use Time::HiRes qw(sleep time);

my $lib = abs_path(dirname(__FILE__) . '/../lib');
my $dir = tempdir('runner-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $files = 0;

# Runs a test file with these blocks; returns its exit code and its output.
sub run_file {
    my ($blocks, %how) = @_;

    my $path = "$dir/" . ++$files . '.t';
    open my $fh, '>', $path or die "$path: $!";
    print {$fh} "use Test::Nginx::Socket 'no_plan';\n", $how{code} // '',
        "no_shuffle(); run_tests();\n__DATA__\n\n$blocks";
    close $fh or die "$path: $!";

    local %ENV = %ENV;
    delete @ENV{ grep {/^TEST_NGINX_(?!BINARY)/} keys %ENV };
    my $output = `"$^X" "-I$lib" "$path" 2>&1`;

    return ($? >> 8, $output);
}

my $hi = "--- config\nlocation /t { return 200 \"hi\\n\"; }\n--- request\nGET /t\n";

sub fails {
    my ($title, $sections, $pattern, %how) = @_;

    my ($exit, $output) = run_file("=== TEST 1: it\n$sections", %how);
    ok($exit != 0, "$title: fails");
    like($output, qr/^not ok \d+ - TEST 1: it - .*$pattern/m, "$title: says why");
    return;
}

my ($exit, $output) = run_file("=== TEST 1: it\n$hi--- response_body\nhi\n");
is($exit, 0, 'a right block passes');
like($output, qr/^1\.\.2$/m, 'with two subtests');

fails('a wrong status', "$hi--- error_code: 404\n", 'status code');
fails('a wrong body', "$hi--- response_body\nho\n", 'response_body');
fails('a pattern that does not match', "$hi--- response_body_like: ho\n", 'response_body_like');
fails('a pattern that must not match', "$hi--- response_body_unlike: hi\n", 'response_body_unlike');
fails('a missing header', "$hi--- response_headers\nX-None: 1\n", 'header X-None');
fails('an unwanted header', "$hi--- response_headers\n!Content-Length\n", 'no header Content-Length');
fails('a header that does not match whole', "$hi--- response_headers_like\nContent-Type: text\n",
      'header Content-Type');
fails('a line that is not in the log', "$hi--- error_log\nno such line\n", 'has a line with');
fails('a line that must not be in the log', "$hi--- no_error_log\nhttp process\n", 'has no line with');
fails('a line that is not in the access log', "$hi--- access_log\nPOST\n", 'access.log has a line');
fails('other lines than expected', "$hi--- grep_error_log: http process request line\n"
      . "--- grep_error_log_out\n", 'grep_error_log_out');
fails('an nginx that starts but must not', "$hi--- must_die\n", 'refuses to start');
fails('an nginx that does not start', "--- config\nnonsense;\n--- request\nGET /t\n",
      'nginx did not start');
fails('a section nobody knows', "$hi--- respones_body\nhi\n", 'unknown sections: respones_body');
fails('one expectation for two requests', "--- config\nlocation /t { return 200; }\n"
      . "--- request eval\n[\"GET /t\", \"GET /t\"]\n--- error_code: 200\n", '"error_code" needs an array');
fails('two sections of which one would be passed over', "$hi--- response_body\nhi\n"
      . "--- response_body_like: hi\n", 'only the first of these would count');
fails('no request at all', "--- config\nlocation /t { return 200; }\n", 'neither request nor must_die');
fails('a crit line', "--- config\nlocation /t { proxy_pass http://unix:/nonexistent; }\n"
      . "--- request\nGET /t\n--- error_code: 502\n", 'nothing bad in the log');
fails('a client that waits too long', "--- config\nlocation /t { limit_rate 1; return 200 \"hello\\n\"; }\n"
      . "--- request\nGET /t\n--- timeout: 200ms\n", 'timed out');
fails('an end by a signal', $hi, 'nothing bad in the log', code => <<'END_CODE');
add_response_body_check(sub {
    open my $fh, '<', server_root() . '/logs/nginx.pid' or die $!;
    kill 'ABRT', <$fh> + 0;
});
END_CODE

($exit, $output) = run_file("=== TEST 1: it\n--- config\nlocation /t { proxy_pass http://unix:/nonexistent; }\n"
    . "--- request\nGET /t\n--- error_code: 502\n--- error_log\n[crit]\n");
is($exit, 0, 'a crit line that error_log names is expected');

($exit, $output) = run_file("=== TEST 1: it\n--- config\nlocation /t { add_header X-A \$http_x_a;"
    . " return 200; }\n--- request eval\n[\"GET /t\", \"GET /t\"]\n--- more_headers\nX-A: 1\n"
    . "--- response_headers eval\n[\"X-A: 1\", \"X-A: 1\"]\n--- error_log eval\n[qr/GET/, \"HTTP\"]\n");
is($exit, 0, 'headers for all requests pass');
like($output, qr/^1\.\.8$/m, 'two requests count twice: status, header, two lines');

($exit, $output) = run_file("=== TEST 1: it\n$hi=== TEST 2: later\n--- ONLY\n$hi");
unlike($output, qr/TEST 1/, 'ONLY runs alone');

($exit, $output) = run_file("=== TEST 1: it\n$hi--- error_code: 404\n--- todo: 1: not yet\n");
is($exit, 0, 'a todo block does not fail');

# --- a test that is killed leaves no nginx behind

{
    my $path = "$dir/killed.t";
    open my $fh, '>', $path or die "$path: $!";
    print {$fh} <<"END_FILE";
use Test::Nginx::Socket 'no_plan';
add_response_body_check(sub {
    system 'cp', server_root() . '/logs/nginx.pid', '$dir/nginx.pid.new';
    rename '$dir/nginx.pid.new', '$dir/nginx.pid';
    sleep 60;
});
run_tests();
__DATA__

=== TEST 1: it
$hi
END_FILE
    close $fh or die "$path: $!";

    for my $signal (qw(KILL TERM)) {
        unlink "$dir/nginx.pid";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            open STDOUT, '>', "$dir/killed.out";
            open STDERR, '>&', \*STDOUT;
            local $ENV{TEST_NGINX_SERVROOT} = "$dir/servroot";
            exec $^X, "-I$lib", $path;
        }
        wait_until(sub { -s "$dir/nginx.pid" });
        my $nginx = do { open my $in, '<', "$dir/nginx.pid" or die $!; <$in> + 0 };
        ok(kill(0, $nginx), "nginx runs before $signal");
        kill $signal, $pid;
        waitpid $pid, 0;
        ok(wait_until(sub { !alive($nginx) }), "nginx is gone after $signal of the test");
    }
}

# a zombie has ended, whoever may collect it
sub alive {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/stat" or return 0;
    return <$fh> !~ /\) [ZX] /;
}

sub wait_until {
    my ($code) = @_;

    my $deadline = time + 20;
    while (time < $deadline) {
        return 1 if $code->();
        sleep 0.02;
    }
    return 0;
}

done_testing();
