# Directives: inheritance, and what "nginx -t" refuses with the user's words.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: settings of http, server and location reach nested locations (A13)
--- sale: 1001 stock=10
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
    seckill_messages en;
--- config
    seckill_limit off;
    seckill_rest_status on;

    location /seckill/ {
        seckill on;

        location /seckill/inner/ {
            seckill_messages zh;

            location /seckill/inner/most/ {
                seckill_rest_status off;
            }
        }
    }
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "POST /seckill/inner/1001", "POST /seckill/inner/most/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[202, 409, 409, 200]
--- response_body_like eval
[qr/"message":"queueing"/, qr/"message":"already taken part"/, qr/"message":"您已参与过该活动"/, qr/"message":"您已参与过该活动"/]



=== TEST 2: inside "if" (A13)
--- sale: 1001 stock=10
--- config
    location /seckill/ {
        seckill on;
        seckill_limit off;

        if ($arg_v) {
            set $dummy 1;
        }
    }
    location /other/ {
        if ($arg_v) {
            seckill on;
        }
        return 418;
    }
--- request eval
["POST /seckill/1001?v=1", "POST /seckill/1001", "POST /other/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[200, 200, 418]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40004,/, qr/^$/]



=== TEST 3: keys of an inner level replace those of the outer
--- sale: 1001 stock=10
--- seckill eval
::write_key('inner.key', 'an inner key of some thirty bytes');
""
--- config
    location /seckill/ {
        seckill on;
        location /seckill/in/ { seckill_auth_key_file $TEST_NGINX_DIR/inner.key; }
    }
--- request eval
["POST /seckill/1001", "POST /seckill/in/1001", "POST /seckill/in/1001"]
--- more_headers eval
[$::Alice, $::Bob, ::bearer(::token(3, key => 'an inner key of some thirty bytes'))]
--- error_code eval
[200, 401, 200]



=== TEST 4: two entries with two databases, side by side
--- sale: 1001 stock=10
--- config
    location /a/ { seckill on; }
    location /b/ { seckill on; seckill_redis $TEST_NGINX_REDIS db=5; }
    location /c/ { seckill on; seckill_prefix other; }
--- request eval
["POST /a/1001", "POST /b/1001", "POST /c/1001"]
--- more_headers eval: $::Alice
--- error_code eval
[200, 503, 503]
--- response_body_like eval
[qr/"code":0,/, qr/"code":50302,/, qr/"code":50302,/]



=== TEST 5: no zone
--- http_config
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
--- must_die
--- error_log
"seckill on" needs a "seckill_zone" in the http block



=== TEST 6: no redis
--- http_config
    seckill_zone sale:8m;
    seckill_auth_key_file $TEST_NGINX_KEY;
--- must_die
--- error_log
"seckill on" needs a "seckill_redis"



=== TEST 7: no key for signed tokens
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
--- must_die
--- error_log
"seckill_auth jwt" needs a "seckill_auth_key_file"



=== TEST 8: where it is off, nothing is missing
--- http_config
    seckill_limit rate=5r/s;
--- config
    location /seckill/ { seckill off; return 200 "fine\n"; }
--- request
GET /seckill/1001
--- response_body
fine



=== TEST 9: "seckill" is on or off
--- config
    location /seckill/ { seckill maybe; }
--- must_die
--- error_log
invalid value "maybe" in "seckill" directive



=== TEST 10: "seckill" belongs to a location
--- config
    seckill on;
--- must_die
--- error_log
"seckill" directive is not allowed here



=== TEST 11: a zone without a size
--- seckill
    seckill_zone sale;
--- must_die
--- error_log
"sale"



=== TEST 12: a zone of no size
--- seckill
    seckill_zone sale:many;
--- must_die
--- error_log
"sale:many"



=== TEST 13: a zone without a name
--- seckill
    seckill_zone :8m;
--- must_die
--- error_log
":8m"



=== TEST 14: a zone that is too small
--- seckill
    seckill_zone sale:4k;
--- must_die
--- error_log
"sale:4k" is too small



=== TEST 15: a second zone
--- seckill
    seckill_zone sale:8m;
    seckill_zone more:8m;
--- must_die
--- error_log
"seckill_zone" directive is duplicate



=== TEST 16: a zone outside of http
--- config
    seckill_zone sale:8m;
    location /seckill/ { seckill on; }
--- must_die
--- error_log
"seckill_zone" directive is not allowed here



=== TEST 17: a redis address with a bad port
--- seckill
    seckill_redis 127.0.0.1:99999;
--- must_die
--- error_log
redis address "127.0.0.1:99999"



=== TEST 18: a redis address that is empty
--- seckill
    seckill_redis unix:;
--- must_die
--- error_log
redis address "unix:"



=== TEST 19: an unknown parameter of redis
--- seckill
    seckill_redis 127.0.0.1:6379 database=3;
--- must_die
--- error_log
invalid parameter "database=3"



=== TEST 20: a database that is no number
--- seckill
    seckill_redis 127.0.0.1:6379 db=-1;
--- must_die
--- error_log
invalid parameter "db=-1"



=== TEST 21: a user without a password file
--- seckill
    seckill_redis 127.0.0.1:6379 user=shop;
--- must_die
--- error_log
"user=shop" needs a "password_file="



=== TEST 22: a password file that is not there
--- seckill
    seckill_redis 127.0.0.1:6379 password_file=/nonexistent/password;
--- must_die
--- error_log
"/nonexistent/password"



=== TEST 23: a password file that is empty
--- seckill eval
::write_key('empty.password', "\n");
"seckill_redis 127.0.0.1:6379 password_file=\$TEST_NGINX_DIR/empty.password;\n"
--- must_die
--- error_log
is empty



=== TEST 24: a key file that is not there
--- seckill
    seckill_auth_key_file /nonexistent/key;
--- must_die
--- error_log
"/nonexistent/key"



=== TEST 25: a key that is too short
--- seckill eval
::write_key('short.key', "fifteen bytes..\n");
"seckill_auth_key_file \$TEST_NGINX_DIR/short.key;\n"
--- must_die
--- error_log
short.key" is shorter than 16 bytes



=== TEST 26: a key of a queue token that is too short
--- seckill eval
::write_key('short.key', "fifteen bytes..\n");
"seckill_queue_token_key_file \$TEST_NGINX_DIR/short.key;\n"
--- must_die
--- error_log
short.key" is shorter than 16 bytes



=== TEST 27: times that contradict each other
--- seckill
    seckill_redis_timeout 1s;
    seckill_timeout 800ms;
--- must_die
--- error_log
"seckill_redis_timeout" must be less than "seckill_timeout"



=== TEST 28: a timeout against the default of the other
--- seckill
    seckill_redis_timeout 800ms;
--- must_die
--- error_log
"seckill_redis_timeout" must be less than "seckill_timeout"



=== TEST 29: a time that is none
--- seckill
    seckill_redis_timeout soon;
--- must_die
--- error_log
"seckill_redis_timeout" directive invalid value



=== TEST 30: a timeout of nothing
--- seckill
    seckill_redis_timeout 0;
--- must_die
--- error_log
must not be 0



=== TEST 31: connections beyond the bounds
--- seckill
    seckill_redis_connections 17;
--- must_die
--- error_log
value must be between 1 and 16



=== TEST 32: no connection
--- seckill
    seckill_redis_connections 0;
--- must_die
--- error_log
value must be between 1 and 16



=== TEST 33: a batch beyond the bounds
--- seckill
    seckill_batch 257;
--- must_die
--- error_log
value must be between 1 and 256



=== TEST 34: a batch of none
--- seckill
    seckill_batch 0;
--- must_die
--- error_log
value must be between 1 and 256



=== TEST 35: nobody may wait
--- seckill
    seckill_max_pending 0;
--- must_die
--- error_log
value must be between 1 and 1000000



=== TEST 36: an unknown kind of token
--- seckill
    seckill_auth cookie;
--- must_die
--- error_log
invalid value "cookie"



=== TEST 37: an unknown algorithm
--- seckill
    seckill_auth_alg RS256;
--- must_die
--- error_log
invalid value "RS256"



=== TEST 38: an algorithm of "none"
--- seckill
    seckill_auth_alg none;
--- must_die
--- error_log
invalid value "none"



=== TEST 39: a rate of another form
--- seckill
    seckill_limit rate=1;
--- must_die
--- error_log
"rate=1"



=== TEST 40: a rate of nothing
--- seckill
    seckill_limit rate=0r/s;
--- must_die
--- error_log
"rate=0r/s"



=== TEST 41: a burst that is no number
--- seckill
    seckill_limit rate=1r/s burst=x;
--- must_die
--- error_log
"burst=x"



=== TEST 42: a limit that is off, and then is not
--- seckill
    seckill_limit off burst=1;
--- must_die
--- error_log eval
qr/invalid parameter "(?:off|burst=1)"/



=== TEST 43: a limit of a word nobody knows
--- seckill
    seckill_limit speed=1r/s;
--- must_die
--- error_log
"speed=1r/s"



=== TEST 44: a rate given twice
--- seckill
    seckill_limit rate=1r/s rate=2r/s;
--- must_die
--- error_log
"rate=2r/s"



=== TEST 45: a language nobody speaks here
--- seckill
    seckill_messages fr;
--- must_die
--- error_log
invalid value "fr"



=== TEST 46: statuses are on or off
--- seckill
    seckill_rest_status yes;
--- must_die
--- error_log
invalid value "yes" in "seckill_rest_status"



=== TEST 47: a body size that is none
--- seckill
    seckill_body_max big;
--- must_die
--- error_log
"seckill_body_max" directive invalid value



=== TEST 48: a prefix with braces would move the slot
--- seckill
    seckill_prefix "{shop}";
--- must_die
--- error_log
invalid prefix "{shop}"



=== TEST 49: a prefix that is empty or too long
--- seckill eval
"seckill_prefix " . "a" x 33 . ";\n"
--- must_die
--- error_log eval
'invalid prefix "' . "a" x 33 . '"'



=== TEST 50: refresh of nothing
--- seckill
    seckill_refresh 0;
--- must_die
--- error_log
must not be 0



=== TEST 51: an argument too many
--- seckill
    seckill_batch 1 2;
--- must_die
--- error_log
invalid number of arguments in "seckill_batch" directive



=== TEST 52: twice is once too often
--- seckill
    seckill_prefix shop;
    seckill_prefix mall;
--- must_die
--- error_log
"seckill_prefix" directive is duplicate



=== TEST 53: so it is for the address
--- seckill
    seckill_redis 127.0.0.1:6379;
    seckill_redis 127.0.0.1:6380;
--- must_die
--- error_log
"seckill_redis" directive is duplicate



=== TEST 54: for the auth
--- seckill
    seckill_auth jwt;
    seckill_auth redis;
--- must_die
--- error_log
"seckill_auth" directive is duplicate



=== TEST 55: for the limit
--- seckill
    seckill_limit off;
    seckill_limit rate=1r/s;
--- must_die
--- error_log
"seckill_limit" directive is duplicate



=== TEST 56: a limit with a burst but another file of keys is fine
--- sale: 1001 stock=10
--- seckill
    seckill_limit rate=10r/s burst=5;
    seckill_batch 256;
    seckill_max_pending 1;
    seckill_redis_connections 1;
    seckill_redis_timeout 1s;
    seckill_redis_connect_timeout 50ms;
    seckill_timeout 2s;
    seckill_negative 1s;
    seckill_refresh 100ms;
    seckill_body_max 100;
    seckill_auth_leeway 10s;
    seckill_auth_claim sub;
    seckill_auth_alg HS256;
--- request eval
["POST /seckill/1001\n{\"quantity\":1}", "GET /seckill/result/1001", "GET /seckill/1001"]
--- more_headers eval: $::Alice
--- response_body_like eval
[qr/"code":0,/, qr/"code":0,/, qr/"code":0,/]



=== TEST 57: a variable that no module knows
--- seckill
    seckill_auth $nobody_sets_this;
--- must_die
--- error_log
unknown "nobody_sets_this" variable



=== TEST 58: the claim must have a name
--- seckill
    seckill_auth_claim "";
--- must_die
--- error_log
seckill_auth_claim
