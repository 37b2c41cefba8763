# Who is believed: files with secrets, and what tokens must say.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
run_tests();

__DATA__

=== TEST 1: F-J1: a key of NUL bytes, as a power cut leaves them
--- seckill eval
::write_key('nul.key', "\0" x 32);
"seckill_auth_key_file \$TEST_NGINX_DIR/nul.key;\n"
--- must_die
--- error_log
nul.key": holds a NUL byte



=== TEST 2: F-J1: so the key of a queue token
--- seckill eval
::write_key('nul.key', "0123456789abcdef\0");
"seckill_queue_token_key_file \$TEST_NGINX_DIR/nul.key;\n"
--- must_die
--- error_log
nul.key": holds a NUL byte



=== TEST 3: F-J2: a key that an editor put a byte order mark before
--- seckill eval
::write_key('bom.key', "\xef\xbb\xbf0123456789abcdef\n");
"seckill_auth_key_file \$TEST_NGINX_DIR/bom.key;\n"
--- must_die
--- error_log
bom.key": begins with a byte order mark



=== TEST 4: a password of blanks
--- seckill eval
::write_key('blank.password', "  \n");
"seckill_redis 127.0.0.1:6379 password_file=\$TEST_NGINX_DIR/blank.password;\n"
--- must_die
--- error_log
blank.password": nothing but blanks



=== TEST 5: F-J2: CRLF ends a key as LF does, and a key that all may read is told
--- sale: 1001 stock=10
--- seckill eval
chmod 0644, ::write_key('crlf.key', "a key of another system, 33 bytes\r\n");
"seckill_auth_key_file \$TEST_NGINX_DIR/crlf.key;\n"
--- request
POST /seckill/1001
--- more_headers eval
::bearer(::token(1, key => 'a key of another system, 33 bytes'))
--- error_code: 200
--- error_log
crlf.key" may be read by everybody
