# What "nginx -t" refuses, with the user's words.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: no zone
--- http_config
    seckill_redis $TEST_NGINX_REDIS;
    seckill_auth_key_file $TEST_NGINX_KEY;
--- must_die
--- error_log
"seckill on" needs a "seckill_zone" in the http block



=== TEST 2: no redis
--- http_config
    seckill_zone sale:8m;
    seckill_auth_key_file $TEST_NGINX_KEY;
--- must_die
--- error_log
"seckill on" needs a "seckill_redis"



=== TEST 3: no key for signed tokens
--- http_config
    seckill_zone sale:8m;
    seckill_redis $TEST_NGINX_REDIS;
--- must_die
--- error_log
"seckill_auth jwt" needs a "seckill_auth_key_file"



=== TEST 4: "seckill" is on or off
--- config
    location /seckill/ { seckill maybe; }
--- must_die
--- error_log
invalid value "maybe" in "seckill" directive



=== TEST 5: "seckill" belongs to a location
--- config
    seckill on;
--- must_die
--- error_log
"seckill" directive is not allowed here



=== TEST 6: a zone without a size
--- seckill
    seckill_zone sale;
--- must_die
--- error_log
"sale"



=== TEST 7: a zone of no size
--- seckill
    seckill_zone sale:many;
--- must_die
--- error_log
"sale:many"



=== TEST 8: a zone without a name
--- seckill
    seckill_zone :8m;
--- must_die
--- error_log
":8m"



=== TEST 9: a zone that is too small
--- seckill
    seckill_zone sale:4k;
--- must_die
--- error_log
"sale:4k" is too small



=== TEST 10: a second zone
--- seckill
    seckill_zone sale:8m;
    seckill_zone more:8m;
--- must_die
--- error_log
"seckill_zone" directive is duplicate



=== TEST 11: a zone outside of http
--- config
    seckill_zone sale:8m;
    location /seckill/ { seckill on; }
--- must_die
--- error_log
"seckill_zone" directive is not allowed here



=== TEST 12: a redis address with a bad port
--- seckill
    seckill_redis 127.0.0.1:99999;
--- must_die
--- error_log
redis address "127.0.0.1:99999"



=== TEST 13: a redis address that is empty
--- seckill
    seckill_redis unix:;
--- must_die
--- error_log
redis address "unix:"



=== TEST 14: an unknown parameter of redis
--- seckill
    seckill_redis 127.0.0.1:6379 database=3;
--- must_die
--- error_log
invalid parameter "database=3"



=== TEST 15: a database that is no number
--- seckill
    seckill_redis 127.0.0.1:6379 db=-1;
--- must_die
--- error_log
invalid parameter "db=-1"



=== TEST 16: a user without a password file
--- seckill
    seckill_redis 127.0.0.1:6379 user=shop;
--- must_die
--- error_log
"user=shop" needs a "password_file="



=== TEST 17: a password file that is not there
--- seckill
    seckill_redis 127.0.0.1:6379 password_file=/nonexistent/password;
--- must_die
--- error_log
"/nonexistent/password"



=== TEST 18: a password file that is empty
--- seckill eval
::write_key('empty.password', "\n");
"seckill_redis 127.0.0.1:6379 password_file=\$TEST_NGINX_DIR/empty.password;\n"
--- must_die
--- error_log
empty.password": empty



=== TEST 19: a key file that is not there
--- seckill
    seckill_auth_key_file /nonexistent/key;
--- must_die
--- error_log
"/nonexistent/key"



=== TEST 20: a key that is too short
--- seckill eval
::write_key('short.key', "fifteen bytes..\n");
"seckill_auth_key_file \$TEST_NGINX_DIR/short.key;\n"
--- must_die
--- error_log
short.key": shorter than 16 bytes



=== TEST 21: a key of a queue token that is too short
--- seckill eval
::write_key('short.key', "fifteen bytes..\n");
"seckill_queue_token_key_file \$TEST_NGINX_DIR/short.key;\n"
--- must_die
--- error_log
short.key": shorter than 16 bytes



=== TEST 22: times that contradict each other
--- seckill
    seckill_redis_timeout 1s;
    seckill_timeout 800ms;
--- must_die
--- error_log
"seckill_redis_timeout" must be less than "seckill_timeout"



=== TEST 23: a timeout against the default of the other
--- seckill
    seckill_redis_timeout 800ms;
--- must_die
--- error_log
"seckill_redis_timeout" must be less than "seckill_timeout"



=== TEST 24: a time that is none
--- seckill
    seckill_redis_timeout soon;
--- must_die
--- error_log
"seckill_redis_timeout" directive invalid value



=== TEST 25: a timeout of nothing
--- seckill
    seckill_redis_timeout 0;
--- must_die
--- error_log
must not be 0



=== TEST 26: connections beyond the bounds
--- seckill
    seckill_redis_connections 17;
--- must_die
--- error_log
value must be between 1 and 16



=== TEST 27: no connection
--- seckill
    seckill_redis_connections 0;
--- must_die
--- error_log
value must be between 1 and 16



=== TEST 28: a batch beyond the bounds
--- seckill
    seckill_batch 257;
--- must_die
--- error_log
value must be between 1 and 256



=== TEST 29: a batch of none
--- seckill
    seckill_batch 0;
--- must_die
--- error_log
value must be between 1 and 256



=== TEST 30: nobody may wait
--- seckill
    seckill_max_pending 0;
--- must_die
--- error_log
value must be between 1 and 1000000



=== TEST 31: an unknown kind of token
--- seckill
    seckill_auth cookie;
--- must_die
--- error_log
invalid value "cookie"



=== TEST 32: an unknown algorithm
--- seckill
    seckill_auth_alg RS256;
--- must_die
--- error_log
invalid value "RS256"



=== TEST 33: an algorithm of "none"
--- seckill
    seckill_auth_alg none;
--- must_die
--- error_log
invalid value "none"



=== TEST 34: a rate of another form
--- seckill
    seckill_limit rate=1;
--- must_die
--- error_log
"rate=1"



=== TEST 35: a rate of nothing
--- seckill
    seckill_limit rate=0r/s;
--- must_die
--- error_log
"rate=0r/s"



=== TEST 36: a burst that is no number
--- seckill
    seckill_limit rate=1r/s burst=x;
--- must_die
--- error_log
"burst=x"



=== TEST 37: a limit that is off, and then is not
--- seckill
    seckill_limit off burst=1;
--- must_die
--- error_log eval
qr/invalid parameter "(?:off|burst=1)"/



=== TEST 38: a limit of a word nobody knows
--- seckill
    seckill_limit speed=1r/s;
--- must_die
--- error_log
"speed=1r/s"



=== TEST 39: a rate given twice
--- seckill
    seckill_limit rate=1r/s rate=2r/s;
--- must_die
--- error_log
"rate=2r/s"



=== TEST 40: a language nobody speaks here
--- seckill
    seckill_messages fr;
--- must_die
--- error_log
invalid value "fr"



=== TEST 41: statuses are on or off
--- seckill
    seckill_rest_status yes;
--- must_die
--- error_log
invalid value "yes" in "seckill_rest_status"



=== TEST 42: a body size that is none
--- seckill
    seckill_body_max big;
--- must_die
--- error_log
"seckill_body_max" directive invalid value



=== TEST 43: a prefix with braces would move the slot
--- seckill
    seckill_prefix "{shop}";
--- must_die
--- error_log
invalid prefix "{shop}"



=== TEST 44: a prefix that is empty or too long
--- seckill eval
"seckill_prefix " . "a" x 33 . ";\n"
--- must_die
--- error_log eval
'invalid prefix "' . "a" x 33 . '"'



=== TEST 45: refresh of nothing
--- seckill
    seckill_refresh 0;
--- must_die
--- error_log
must not be 0



=== TEST 46: an argument too many
--- seckill
    seckill_batch 1 2;
--- must_die
--- error_log
invalid number of arguments in "seckill_batch" directive



=== TEST 47: twice is once too often
--- seckill
    seckill_prefix shop;
    seckill_prefix mall;
--- must_die
--- error_log
"seckill_prefix" directive is duplicate



=== TEST 48: so it is for the address
--- seckill
    seckill_redis 127.0.0.1:6379;
    seckill_redis 127.0.0.1:6380;
--- must_die
--- error_log
"seckill_redis" directive is duplicate



=== TEST 49: for the auth
--- seckill
    seckill_auth jwt;
    seckill_auth redis;
--- must_die
--- error_log
"seckill_auth" directive is duplicate



=== TEST 50: for the limit
--- seckill
    seckill_limit off;
    seckill_limit rate=1r/s;
--- must_die
--- error_log
"seckill_limit" directive is duplicate



=== TEST 51: a variable that no module knows
--- seckill
    seckill_auth $nobody_sets_this;
--- must_die
--- error_log
unknown "nobody_sets_this" variable



=== TEST 52: the claim must have a name
--- seckill
    seckill_auth_claim "";
--- must_die
--- error_log
seckill_auth_claim



=== TEST 53: a switch is on or off
--- seckill
    seckill_switch closed;
--- must_die
--- error_log
invalid value "closed" in "seckill_switch" directive



=== TEST 54: and is set once
--- seckill
    seckill_switch on;
    seckill_switch off;
--- must_die
--- error_log
"seckill_switch" directive is duplicate



=== TEST 55: a redis host name without a resolver
--- seckill
    seckill_redis redis.invalid:6379;
--- must_die
--- error_log
redis address "redis.invalid:6379" is a host name and needs a "resolver" directive, with a name server that knows it



=== TEST 56: a resolver of another server is not enough
--- http_config
    seckill_zone sale:8m;
    seckill_auth_key_file $TEST_NGINX_KEY;
    server { listen unix:$TEST_NGINX_DIR/other.sock; resolver 127.0.0.1:5300; }
    seckill_redis redis.invalid:6379;
--- must_die
--- error_log
redis address "redis.invalid:6379" is a host name and needs a "resolver" directive



=== TEST 57: a redis address with a path behind it
--- seckill
    seckill_redis redis.invalid:6379/1;
--- must_die
--- error_log
invalid host in redis address "redis.invalid:6379/1"



=== TEST 58: parameters of TLS without TLS
--- seckill
    seckill_redis 127.0.0.1:6379 tls_ca=/nonexistent/ca.crt;
--- must_die
--- error_log
redis address "127.0.0.1:6379" has "tls_..." parameters and no "tls=on"



=== TEST 59: TLS over a unix socket
--- seckill
    seckill_redis unix:/run/redis.sock tls=on;
--- must_die
--- error_log
"tls=on" is not for a unix socket: "unix:/run/redis.sock"



=== TEST 60: an authority that is not there
--- seckill
    seckill_redis 127.0.0.1:6379 tls=on tls_ca=/nonexistent/ca.crt;
--- must_die
--- error_log
cannot load "tls_ca=/nonexistent/ca.crt" of "seckill_redis"



=== TEST 61: an authority that is no certificate
--- seckill
    seckill_redis 127.0.0.1:6379 tls=on tls_ca=$TEST_NGINX_KEY;
--- must_die
--- error_log
auth.key" of "seckill_redis"



=== TEST 62: a certificate without its key
--- seckill
    seckill_redis 127.0.0.1:6379 tls=on tls_cert=/nonexistent/nginx.crt;
--- must_die
--- error_log
"tls_cert=" and "tls_key=" of redis address "127.0.0.1:6379" need each other



=== TEST 63: an authority, and nobody is compared with it
--- seckill
    seckill_redis 127.0.0.1:6379 tls=on tls_verify=off tls_ca=/etc/ssl/ca.crt;
--- must_die
--- error_log
"tls_ca=/etc/ssl/ca.crt" is of no use with "tls_verify=off"



=== TEST 64: neither on nor off
--- seckill
    seckill_redis 127.0.0.1:6379 tls=yes;
--- must_die
--- error_log
invalid parameter "tls=yes"



=== TEST 65: the same parameter of TLS two times
--- seckill
    seckill_redis 127.0.0.1:6379 tls=on tls_name=a tls_name=b;
--- must_die
--- error_log
invalid parameter "tls_name=b"



=== TEST 66: a certificate that is not there
--- seckill
    seckill_redis 127.0.0.1:6379 tls=on tls_cert=/nonexistent/nginx.crt tls_key=/nonexistent/nginx.key;
--- must_die
--- error_log
cannot load certificate "/nonexistent/nginx.crt"



=== TEST 67: two journals
--- seckill
    seckill_journal $TEST_NGINX_DIR/one.journal;
    seckill_journal off;
--- must_die
--- error_log
"seckill_journal" directive is duplicate



=== TEST 68: a journal of a location
--- config
    location /seckill/ { seckill on; seckill_journal $TEST_NGINX_DIR/one.journal; }
--- must_die
--- error_log
"seckill_journal" directive is not allowed here



=== TEST 69: "seckill_intercept_errors" is on or off
--- config
    location /seckill/ { seckill on; seckill_intercept_errors always; }
--- must_die
--- error_log
invalid value "always" in "seckill_intercept_errors" directive



=== TEST 70: "seckill_intercept_errors" twice
--- config
    location /seckill/ { seckill on; seckill_intercept_errors on; seckill_intercept_errors off; }
--- must_die
--- error_log
"seckill_intercept_errors" directive is duplicate
