# The data format itself, on a plain nginx: passes under the original too.

use Test::Nginx::Socket 'no_plan';

no_shuffle();
run_tests();

__DATA__

=== TEST 1: status, headers and body of one request
--- config
    location /t { add_header X-Word "a b"; return 200 "hi\n"; }
--- request
GET /t
--- response_headers
Content-Length: 3
X-Word: a b
! X-Other
--- raw_response_headers_like: \r\nX-Word: a b\r\n
--- raw_response_headers_unlike: X-Other
--- response_body
hi
--- no_error_log
[error]



=== TEST 2: an array has one request each, and one expectation each
--- config
    location /t { return 200 "$request_method $http_x_word\n"; }
--- request eval
["GET /t", "POST /t\nabc", "GET /none"]
--- more_headers eval
["X-Word: one", "X-Word: two\nX-Other: 1", ""]
--- error_code eval
[200, 200, 404]
--- response_body_like eval
[qr/^GET one$/, qr/^POST two$/, qr/404 Not Found/]



=== TEST 3: a body gets its length, without the blanks around it
--- config
    location /t { return 200 "$content_length\n"; }
--- request
POST /t

  abc

--- response_body
3



=== TEST 4: a body in packets, the length is that of all
--- config
    location /t {
        proxy_pass http://127.0.0.1:$TEST_NGINX_SERVER_PORT/echo;
    }
    location /echo { return 200 "$content_length\n"; }
--- request eval
[["POST /t\nab", {value => "cde", delay_before => 0.05}]]
--- response_body eval
["5\n"]



=== TEST 5: pipelined requests share a connection
--- config
    location /t { return 200 "$connection_requests $arg_n\n"; }
--- pipelined_requests eval
["GET /t?n=a", "POST /t?n=b\nbody", "GET /t?n=c"]
--- response_body eval
["1 a\n", "2 b\n", "3 c\n"]



=== TEST 6: a raw request goes as it is
--- config
    location /t { return 200 "$http_host\n"; }
--- raw_request eval
["GET /t HTTP/1.1\r\nHo", "st: raw\r\nConnection: close\r\n\r\n"]
--- response_body
raw



=== TEST 7: chunks come back as one body
--- config
    location /t {
        sub_filter_types text/plain;
        sub_filter one two;
        alias $TEST_NGINX_SERVER_ROOT/html/t.txt;
    }
--- user_files
>>> t.txt
one and one
>>> other.txt
unused
--- request
GET /t
--- response_headers
Transfer-Encoding: chunked
--- response_body
two and one



=== TEST 8: a bad configuration is refused
--- config
    location /t { returns 200 "hi\n"; }
--- must_die
--- error_log
unknown directive "returns"
--- no_error_log
[alert]



=== TEST 9: both logs are checked, for the lines of each request
--- config
    location /t { return 200 "hi\n"; }
    location /none { root $TEST_NGINX_SERVER_ROOT/html; }
--- request eval
["GET /none/a", "GET /none/b"]
--- error_code eval
[404, 404]
--- error_log eval
["No such file", qr{html/none/[ab]"}]
--- access_log eval
[qr{GET /none/[ab] HTTP/1.1" 404}]
--- no_error_log
[crit]



=== TEST 10: lines of the log as text
--- config
    location /t { return 404; error_page 404 /none; }
    location /none { internal; root $TEST_NGINX_SERVER_ROOT/html; }
--- request
GET /t
--- error_code: 404
--- grep_error_log eval: qr/open\(\) ".*?html\/\K\w+/
--- grep_error_log_out
none



=== TEST 11: the body passes filters first
--- config
    location /t { return 200 "hi\n"; }
--- request eval
["GET /t", "GET /t"]
--- response_body_filters eval
[[sub { uc $_[0] }], [sub { uc $_[0] }, sub { "<$_[0]>" }]]
--- response_body eval
["HI\n", "<HI\n>"]



=== TEST 12: a client that leaves early, and nothing is expected
--- config
    location /t { limit_rate 1; return 200 "a longer answer than a second can carry\n"; }
--- request
GET /t
--- timeout: 200ms
--- abort
--- ignore_response
--- no_error_log
[error]
--- shutdown_error_log
exit



=== TEST 13: HEAD has headers only
--- config
    location /t { return 200 "hi\n"; }
--- request
HEAD /t
--- response_headers
Content-Length: 3
--- response_body



=== TEST 14: codes, headers and bodies by pattern
--- config
    location /t { return 418 "hi\n"; }
--- request
GET /t
--- response_headers_like
Content-Type: text/\w+
--- response_body_unlike: ho
--- error_code_like: ^4\d\d$



=== TEST 15: what does not apply is skipped
--- config
    location /t { return 200; }
--- request
GET /t
--- error_code: 500
--- skip_nginx: 1: >= 1.0.0



=== TEST 16: a main section and a block of its own
--- main_config
    env WORD;
--- http_config
    map $arg_a $doubled { default "$arg_a$arg_a"; }
--- post_main_config
    # nothing
--- config
    location /t { return 200 "$doubled\n"; }
--- request
GET /t?a=xy
--- response_body
xyxy
--- log_level: info
--- no_error_log
[debug]
