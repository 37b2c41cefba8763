# nginx' choice of a location and the module's choice of a route never disagree
# (F-K1): each form of location, each way that a path is rewritten.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

use File::Basename qw(dirname);

# what README.md says of limits per address, word for word
our ($LimitHttp, $LimitServer);
{
    open my $fh, '<', dirname(__FILE__) . '/../README.md' or die "README.md: $!";
    local $/ = undef;
    my ($section) = <$fh> =~ /^### A limit per address$(.*?)^#/ms or die 'README.md has no limit per address';
    my ($text) = $section =~ /^```nginx$(.*?)^```$/ms or die 'no example';
    ($LimitHttp, $LimitServer) = $text =~ /\A(.*?)(^location.*)\z/ms or die 'no location in the example';
    $LimitHttp =~ s/rate=\S+;/rate=1r\/m;/;
    $LimitServer =~ s/burst=\d+/burst=1/;
}

log_level('info');
no_root_location();
run_tests();

__DATA__

=== TEST 1: F-K1: behind the results' location nothing is bought, whatever stands between
--- sale: 2 stock=10
--- config
    location /api/seckill/ { seckill on; }
    location /api/seckill/result/ { seckill on; }
--- request eval
["POST /api/seckill/result/x/2", "POST /api/seckill/x/2", "POST /api/seckill/result/result/2",
 "POST /api/seckill/result/2/2", "POST /api/seckill/2/2", "GET /api/seckill/x/2", "GET /api/seckill/result/x/2",
 "POST /api/seckill/2"]
--- more_headers eval: $::Alice
--- error_code eval
[(404) x 7, 200]
--- response_body_like eval
[(qr/"code":40400,/) x 7, qr/"code":0,/]
--- redis_check
GET seckill:stock:{2} => 9



=== TEST 2: F-K1: README's limit per address holds, whatever way the purchase is written
--- sale: 2 stock=10
--- http_config eval
"$::LimitHttp
    seckill_zone sale:8m;
    seckill_redis \$TEST_NGINX_REDIS;
    seckill_auth_key_file \$TEST_NGINX_KEY;
    seckill_limit off;"
--- config eval
$::LimitServer
--- pipelined_requests eval
[("POST /api/seckill/2") x 2,
 map { "POST $_" } "/api/seckill/2", "/api/seckill/result/x/2", "/api/seckill/result/../2",
    "/api/seckill/result/2", "/api/seckill/result%2Fx%2F2", "/api/seckill/result//2", "/api/seckill//2",
    "/api//seckill/result/./../2", "/api/seckill/result/2/", "/api/seckill/result/2%2f2", "/api/seckill/result/%2e%2e/2"]
--- more_headers eval
[$::Alice, $::Bob, ($::Carol) x 11]
--- error_code eval
[200, 200, 429, 404, 429, 405, 404, 405, 429, 429, 404, 404, 429]
--- redis_check
GET seckill:stock:{2} => 8



=== TEST 3: a prefix with and without a slash, ^~, nested, and the root
--- sale: 2 stock=20
--- seckill
seckill_limit off;
--- config
    location /a { seckill on; }
    location /b/ { seckill on; }
    location ^~ /c/ { seckill on; }
    location /d/ {
        seckill on;
        location /d/e/ { add_header X-Nested 1; }
    }
    location / { seckill on; }
--- pipelined_requests eval
[map { ("POST $_", "GET $_") } qw(/a/2 /b/2 /c/2 /d/2 /d/e/2 /2 /a/result/2 /b/result/2 /c/result/2 /d/e/result/2
                                  /result/2 /a2 /a/x/2 /b/x/2 /c/x/2 /d/x/2 /d/e/x/2 /x/2 /b/2/ /a/result2)]
--- more_headers eval: $::Alice
--- error_code eval
[((200) x 12), ((405, 200) x 5), ((404) x 18)]
--- redis_check
GET seckill:stock:{2} => 19



=== TEST 4: exact, regex and named locations: the end of the path decides
--- sale: 2 stock=20
--- seckill
seckill_limit off;
--- config
    location = /a/2 { seckill on; }
    location = /a/result/2 { seckill on; }
    location ~ ^/r/[a-z/]+/\d+$ { seckill on; }
    location ~* ^/I/ { seckill on; }
    location /n/ { try_files /none @buy; }
    location @buy { seckill on; }
--- pipelined_requests eval
[map { ("POST $_", "GET $_") } qw(/a/2 /r/x/y/2 /i/2 /n/2 /n/x/2 /a/result/2 /r/x/result/2 /i/result/2 /n/result/2
                                  /r/result/x/2 /i/result/2/2 /n/result/x/2 /n/result/result/2 /n/2/ /n/results2)]
--- more_headers eval: $::Alice
--- error_code eval
[((200) x 10), ((405, 200) x 4), ((404) x 12)]
--- redis_check
GET seckill:stock:{2} => 19



=== TEST 5: "if" and limit_except are parts of the location around them
--- sale: 2 stock=20
--- seckill
seckill_limit off;
--- config
    location = /a/2 {
        seckill on;
        if ($arg_v) { set $dummy 1; }
    }
    location /b/ {
        seckill on;
        if ($arg_v) { set $dummy 1; }
        limit_except GET { allow all; }
    }
    location ~ ^/r/ {
        seckill on;
        if ($arg_v) { set $dummy 1; }
    }
    location /s/result/ {
        seckill on;
        if ($arg_v) { set $dummy 1; }
    }
--- pipelined_requests eval
[map { "POST $_" } qw(/a/2 /a/2?v=1 /b/2 /b/2?v=1 /r/2?v=1 /r/x/2?v=1 /b/result/2?v=1 /s/result/2?v=1 /b/x/2
                      /b/x/2?v=1 /s/result/x/2?v=1)]
--- more_headers eval: $::Alice
--- error_code eval
[(200) x 6, 405, 405, 404, 404, 404]
--- redis_check
GET seckill:stock:{2} => 19



=== TEST 6: a location that ends in "result" serves results only, with any name before it
--- sale: 2 stock=20
--- seckill
seckill_limit off;
--- config
    location /a/result { seckill on; }
    location /result/ { seckill on; }
    location /xresult/ { seckill on; }
    location /b/result/ {
        rewrite ^ /x/2 break;
        seckill on;
    }
    location /c/result/ {
        rewrite ^ /x/result/2 break;
        seckill on;
    }
--- pipelined_requests eval
[map { ("POST $_", "GET $_") } qw(/xresult/2 /a/result/2 /result/2 /c/result/9 /a/result/result/2 /result/result/2 /b/result/2)]
--- more_headers eval: $::Alice
--- error_code eval
[200, 200, ((405, 200) x 3), ((404) x 6)]
--- response_body_like eval
[qr/"code":0,/, qr/"start_ms"/, (qr/40500/, qr/"state":"queueing"/) x 3, (qr/40400/) x 6]
--- redis_check
GET seckill:stock:{2} => 19



=== TEST 7: a rewritten path is the client's own request (F-K2)
--- sale: 2 stock=20
--- seckill
seckill_limit off;
--- config
    location /seckill/ { seckill on; }
    location /last/ { rewrite ^/last/(.*)$ /seckill/$1 last; }
    location /if/ {
        if ($request_method = POST) { rewrite ^/if/(.*)$ /seckill/$1 last; }
        return 418;
    }
    location /try/ { try_files /none /seckill/2; }
    location /break/ {
        rewrite ^/break/(.*)$ /elsewhere/$1 break;
        seckill on;
    }
    location /same/ {
        rewrite ^/same/x/(.*)$ /same/$1 break;
        seckill on;
    }
    location /hidden/ {
        internal;
        seckill on;
    }
    location /in/ { rewrite ^/in/(.*)$ /hidden/$1 last; }
--- pipelined_requests eval
[map { "POST $_" } qw(/last/2 /if/2 /try/x /break/2 /same/x/2 /in/2 /break/result/2 /last/result/2
                      /last/x/2 /last/result/x/2 /break/result/x/2 /same/y/2 /hidden/2 /in/x/2)]
--- more_headers eval: $::Alice
--- error_code eval
[(200) x 6, 405, 405, (404) x 6]
--- redis_check
GET seckill:stock:{2} => 19



=== TEST 8: merge_slashes off, dots, escapes, a query
--- sale: 2 stock=20
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    seckill_limit off;
    merge_slashes off;
--- config
    location /seckill/ { seckill on; }
    location /seckill/result/ { seckill on; }
    location /a { seckill on; }
    location ~ ^/r/ { seckill on; }
--- pipelined_requests eval
[map { "POST $_" } "/seckill/2?a=/result/x/3", "/seckill/./2", "/seckill/result/../2", "/a/2",
    "/seckill//2", "/seckill//result/2", "/seckill/result//2", "/seckill///2", "/a//2", "/seckill/%2F2",
    "/seckill/result%2F%2F2", "/seckill/2//", "/r/result//2", "/seckill/result/2?a=/2"]
--- more_headers eval: $::Alice
--- error_code eval
[(200) x 4, (404) x 9, 405]
--- redis_check
GET seckill:stock:{2} => 19



=== TEST 9: what fits no rule is told once per location, with its path escaped
--- sale: 2 stock=10
--- config
    location /a/ { seckill on; }
    location /b/result/ { seckill on; }
    location ~ ^/r/ { seckill on; }
--- pipelined_requests eval
["GET /a/x%0Ay/2", ("GET /a/x/2") x 3, "GET /b/result/x/2", "GET /r/result/x/2", "GET /a/noid"]
--- error_code eval
[(404) x 7]
--- after eval
[(undef) x 6, sub {
    Test::More::is(::log_count(qr/seckill does not serve/), 3, 'one line per location');
    Test::More::is(::log_count($_), 1, "$_") for
        qr{\[error\].*serve "/a/x%0Ay/2" in location "/a/": only "\{id\}" or "result/\{id\}" may follow the location's name},
        qr{serve "/b/result/x/2" in location "/b/result/": only "\{id\}", for results, may follow the location's name},
        qr{serve "/r/result/x/2" in location "\^/r/": the URI must end in "/\{id\}" or "/result/\{id\}"};
}]



=== TEST 10: a prefix that is an id itself is named by "nginx -t", with the cure
--- sale: 2 stock=10
--- config
    location /seckill/2 { seckill on; }
--- request
POST /seckill/2
--- more_headers eval: $::Alice
--- error_code: 404
--- error_log
location "/seckill/2" serves "/seckill/2/{id}" and not itself, write "location = /seckill/2" for that
--- redis_check
GET seckill:stock:{2} => 10



=== TEST 11: F-K2: a mirror and an include buy nothing, and are told once
--- sale: 2 stock=10
--- config
    location /seckill/ { seckill on; }
    location /copied/ {
        mirror /seckill/2;
        root $TEST_NGINX_SERVER_ROOT/html;
    }
    location /page/ {
        ssi on;
        ssi_types *;
        root $TEST_NGINX_SERVER_ROOT/html;
    }
--- user_files
>>> copied/2
a file
>>> page/2
before <!--# include virtual="/seckill/2" --> after
--- request eval
[("POST /copied/2") x 2, "GET /page/2"]
--- more_headers eval: $::Alice
--- error_code eval
[405, 405, 200]
--- response_body_like eval
[qr/405/, qr/405/, qr/before \{"code":40400,.*\} after/]
--- after eval
[undef, undef, sub {
    Test::More::is(::log_count(qr{\[error\].*seckill does not serve what a subrequest sends to location "/seckill/"}), 1,
        'one line');
}]
--- redis_check
GET seckill:stock:{2} => 10



=== TEST 12: a location that has a mirror, or asks with auth_request, sells once
--- sale: 2 stock=10
--- config
    location /seckill/ {
        mirror /copy;
        auth_request /copy;
        seckill on;
    }
    location = /copy { return 204; }
--- request
POST /seckill/2
{"quantity":1}
--- more_headers eval: $::Alice
--- response_body_like: "code":0,
--- redis_check
GET seckill:stock:{2} => 9



=== TEST 13: F-K2: auth_request of a location that sells lets nobody in
--- sale: 2 stock=10
--- config
    location /seckill/ { seckill on; }
    location /private/ {
        auth_request /seckill/2;
        root $TEST_NGINX_SERVER_ROOT/html;
    }
--- user_files
>>> private/2
a file
--- request
GET /private/2
--- error_code: 500
--- error_log
auth request unexpected status: 404
seckill does not serve what a subrequest sends



=== TEST 14: F-K2: post_action buys nothing behind another request
--- sale: 2 stock=10
--- config
    location @buy { seckill on; }
    location /seckill/ { seckill on; }
    location /named/ {
        post_action @buy;
        return 204;
    }
    location /path/ {
        post_action /seckill/2;
        return 204;
    }
--- request eval
["POST /named/2", "POST /path/2", "GET /none/1"]
--- more_headers eval: $::Alice
--- error_code eval
[204, 204, 404]
--- after eval
[undef, undef, sub {
    Test::More::is(::log_count(qr{seckill does not serve what post_action sends to location "$_"}), 1, $_)
        for qw(@buy /seckill/);
}]
--- redis_check
GET seckill:stock:{2} => 10



=== TEST 15: F-K2: error_page buys nothing, and keeps the status that it has
--- sale: 2 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    server {
        listen unix:$TEST_NGINX_DIR/down.sock;
        return 502;
    }
--- config
    location @buy { seckill on; }
    location /seckill/ { seckill on; }
    location /a/ {
        error_page 418 @buy;
        return 418;
    }
    location /b/ {
        error_page 418 = @buy;
        return 418;
    }
    location /c/ {
        error_page 418 =200 @buy;
        return 418;
    }
    location /d/ {
        recursive_error_pages on;
        error_page 418 =200 @buy;
        return 418;
    }
    location /e/ {
        error_page 418 /seckill/2;
        return 418;
    }
    location /f/ {
        error_page 404 = @buy;
        root $TEST_NGINX_SERVER_ROOT/html;
    }
    location /g/ {
        error_page 502 503 504 = @buy;
        proxy_intercept_errors on;
        proxy_pass http://unix:$TEST_NGINX_DIR/down.sock;
    }
--- request eval
[map { "POST /$_/2" } "a" .. "g"]
--- more_headers eval: $::Alice
--- error_code eval
[418, 404, 200, 200, 418, 404, 404]
--- response_body_like eval
[(qr/"code":40400,/) x 7]
--- redis_check
GET seckill:stock:{2} => 10



=== TEST 16: F-K2: an error page that leaves no trace in the request
--- sale: 2 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    seckill_limit off;
    server {
        listen unix:$TEST_NGINX_DIR/pages.sock;
        recursive_error_pages on;
        error_page 418 = @buy;
        if ($arg_server) { return 418; }
        location @buy { seckill on; }
    }
--- config
    recursive_error_pages on;
    location @buy { seckill on; }
    location /seckill/ { seckill on; }
    location @again { rewrite ^ /seckill/2 last; }
    location @then { try_files /none @buy; }
    location /a/ {
        error_page 418 = @buy;
        return 418;
    }
    location /b/ {
        if ($request_method = POST) {
            error_page 418 = @buy;
            return 418;
        }
    }
    location /c/ {
        error_page 418 = @again;
        return 418;
    }
    location /d/ {
        error_page 418 = @then;
        return 418;
    }
    location /e/ {
        set $page @buy;
        error_page 418 = $page;
        return 418;
    }
    location /server/ { proxy_pass http://unix:$TEST_NGINX_DIR/pages.sock:/; }
    location /own/ { rewrite ^/own/(.*)$ /seckill/$1 last; }
    location /try/ { try_files /none @then; }
    location /buy/ { seckill on; }
--- request eval
[(map { "POST /$_/2" } "a" .. "e"), "POST /server/2?server=1", map { "POST /$_/2" } qw(own try buy)]
--- more_headers eval: $::Alice
--- error_code eval
[(404) x 6, (200) x 3]
--- response_body_like eval
[(qr/"code":40400,/) x 6, qr/"code":0,/, (qr/"code":40004,/) x 2]
--- redis_check
GET seckill:stock:{2} => 9



=== TEST 17: F-K2: X-Accel-Redirect buys nothing
--- sale: 2 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    seckill_limit off;
    server {
        listen unix:$TEST_NGINX_DIR/accel.sock;
        location /a/ {
            add_header X-Accel-Redirect @buy;
            return 200;
        }
        location /b/ {
            add_header X-Accel-Redirect /seckill/2;
            return 200;
        }
        location /c/ {
            add_header X-Accel-Redirect @again;
            return 200;
        }
        location /d/ { seckill on; }
    }
--- config
    location @buy { seckill on; }
    location @again { rewrite ^ /seckill/2 last; }
    location /seckill/ { seckill on; }
    location / { proxy_pass http://unix:$TEST_NGINX_DIR/accel.sock; }
--- request eval
[map { "POST /$_/2" } "a" .. "d"]
--- more_headers eval: $::Alice
--- error_code eval
[404, 404, 404, 200]
--- response_body_like eval
[(qr/"code":40400,/) x 3, qr/"code":0,/]
--- redis_check
GET seckill:stock:{2} => 9
