# Signed tokens: what is refused, and what is not.

use SeckillNginx;
use Test::Nginx::Socket 'no_plan';

log_level('info');
master_on();    # for the reload
run_tests();

__DATA__

=== TEST 1: a token without a signature is refused, however it is spelled (E1)
--- sale: 1001 stock=10
--- pipelined_requests eval
[("POST /seckill/1001") x 24]
--- more_headers eval
[map {
    my ($head, $claims, $mac) = split /\./, ::token(1001, alg => $_);
    map { ::bearer($_) } "$head.$claims.", "$head.$claims", "$head.$claims.$mac", "$head.$claims.AAAA"
} "none", "None", "nOnE", "NONE", undef, ""]
--- error_code eval
[(401) x 24]
--- redis_calls
EVALSHA => 0
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 2: the configuration chooses the algorithm, not the token (E2)
--- sale: 1001 stock=10
--- pipelined_requests eval
[("POST /seckill/1001") x 7]
--- more_headers eval
[map { ::bearer(::token(1001, alg => $_)) } qw(HS384 HS512 RS256 ES256 hs256 HS256x HS1)]
--- error_code eval
[(401) x 7]
--- redis_calls
EVALSHA => 0



=== TEST 3: HS384 and HS512, where they are configured
--- sale: 1001 stock=10
--- config
    location /a/ { seckill on; seckill_auth_alg HS384; }
    location /b/ { seckill on; seckill_auth_alg HS512; }
--- request eval
["POST /a/1001", "POST /a/1001", "POST /b/1001", "POST /b/1001"]
--- more_headers eval
[::bearer(::token(1, alg => 'HS384')), ::bearer(::token(2)),
 ::bearer(::token(3, alg => 'HS512')), ::bearer(::token(4, alg => 'HS384'))]
--- error_code eval
[200, 401, 200, 401]
--- redis_check
SMEMBERS seckill:order_users:{1001} =~ ^(1 3|3 1)$



=== TEST 4: a signature of another key is refused (E2)
--- sale: 1001 stock=10
--- request
POST /seckill/1001
--- more_headers eval
::bearer(::token(1001, key => 'another key of thirty-two bytes!'))
--- error_code: 401
--- error_log
seckill token refused



=== TEST 5: claims that are missing or of a wrong kind (E3)
--- sale: 1001 stock=10
--- pipelined_requests eval
[("POST /seckill/1001") x 29]
--- more_headers eval
[map { ::bearer($_) }
    ::token(1001, sub => undef), ::token(1001, exp => undef),
    (map { ::token(1001, payload => "{\"exp\":4000000000,\"sub\":$_}") }
        'null', '1001', '[]', '["1001"]', '{}', '""', '"0"', '"01"', '"-1"', '"+1"', '" 1"', '"1 "',
        '"1e3"', '"abc"', '"18446744073709551616"', 'true', '"1\u0000"', '"' . '9' x 5000 . '"'),
    (map { ::token(1001, payload => $_) } '[]', '1', '"x"', '{}', 'null', '', '{"sub":"1001","exp":',
        '{"sub":"1001","exp":4000000000}}', '{"sub":"1001","sub":"1002","exp":4000000000}')]
--- error_code eval
[(401) x 29]
--- redis_calls
EVALSHA => 0
--- redis_check
GET seckill:stock:{1001} => 10



=== TEST 6: expiry and its kin must be whole numbers
--- sale: 1001 stock=10
--- pipelined_requests eval
[("POST /seckill/1001") x 8]
--- more_headers eval
[map { ::bearer(::token(1001, payload => "{\"sub\":\"1001\",$_}")) }
    '"exp":"4000000000"', '"exp":null', '"exp":[]', '"exp":99999999999999999999', '"exp":-1', '"exp":0',
    '"exp":4000000000,"nbf":"0"', '"exp":4000000000,"iat":null']
--- error_code eval
[(401) x 8]



=== TEST 7: a header that is not "Bearer" and one token (E4)
--- sale: 1001 stock=10
--- pipelined_requests eval
[("POST /seckill/1001") x 15]
--- more_headers eval
my $token = ::token(1001);
[map { "Authorization: $_" } 'X', 'Bearer', 'Bearer ', 'Bearer  x', 'Bearer a.b', 'Bearer a.b.c.d', 'Bearer ...',
     'Bearer ..', "Bearer\t$token", "Bearer  $token", "Bearer $token x", "Bearer$token", "Bearer $token,$token",
     "Bearer .$token", "Bearer $token."]
--- error_code eval
[(401) x 15]
--- redis_calls
EVALSHA => 0



=== TEST 8: no header at all
--- sale: 1001 stock=10
--- request
POST /seckill/1001
--- error_code: 401
--- response_headers
WWW-Authenticate: Bearer



=== TEST 9: a good token, cut at each position (E4)
--- sale: 1001 stock=10
--- pipelined_requests eval
my $length = length ::token(1001);
[("POST /seckill/1001") x $length]
--- more_headers eval
my $token = ::token(1001);
[map { ::bearer(substr $token, 0, $_) } 0 .. length($token) - 1]
--- error_code eval
my $length = length ::token(1001);
[(401) x $length]
--- redis_calls
EVALSHA => 0



=== TEST 10: a good token, each byte changed (E4)
--- sale: 1001 stock=10
--- pipelined_requests eval
my $length = length ::token(1001);
[("POST /seckill/1001") x $length]
--- more_headers eval
my $token = ::token(1001);
[map { my $bad = $token; substr($bad, $_, 1) =~ tr/A-Za-z0-9_.\-/B-ZAb-za1-90\-A_/; ::bearer($bad) }
     0 .. length($token) - 1]
--- error_code eval
my $length = length ::token(1001);
[(401) x $length]
--- redis_calls
EVALSHA => 0



=== TEST 11: the scheme's case does not matter, the scheme does (E5)
--- sale: 1001 stock=10
--- request eval
[("POST /seckill/1001") x 5]
--- more_headers eval
[map { "Authorization: $_->[0] " . ::token($_->[1]) } ["bearer", 1], ["BEARER", 2], ["bEaReR", 3], ["Basic", 4],
     ["BearerX", 5]]
--- error_code eval
[200, 200, 200, 401, 401]
--- redis_check
SCARD seckill:order_users:{1001} => 3



=== TEST 12: without leeway the clock is exact (E6)
--- sale: 1001 stock=10
--- request eval
[("POST /seckill/1001") x 5]
--- more_headers eval
my $now = time;
[map { ::bearer(::token(1001, %{$_})) } {exp => $now - 1}, {exp => $now}, {nbf => $now + 300}, {iat => $now + 300},
     {exp => $now + 600, nbf => $now, iat => $now - 5}]
--- error_code eval
[401, 401, 401, 401, 200]



=== TEST 13: one leeway for all three claims (E6)
--- sale: 1001 stock=100
--- seckill
    seckill_auth_leeway 1000s;
    seckill_limit off;
--- request eval
[("POST /seckill/1001") x 6]
--- more_headers eval
my $now = time;
[map { ::bearer(::token(1001, %{$_})) } {exp => $now - 500}, {nbf => $now + 500}, {iat => $now + 500},
     {exp => $now - 1001}, {nbf => $now + 1300}, {iat => $now + 1300}]
--- error_code eval
[200, 200, 200, 401, 401, 401]



=== TEST 14: no directive switches the expiry off (E7)
--- sale: 1001 stock=10
--- config
    location /a/ { seckill on; seckill_auth_claim uid; }
    location /b/ { seckill on; seckill_auth_leeway 5s; seckill_auth_claim uid; }
    location /c/ { seckill on; seckill_auth_alg HS512; seckill_auth_claim uid; seckill_auth_leeway 5s; }
    location /d/ { seckill on; seckill_auth jwt; seckill_auth_key_file $TEST_NGINX_KEY; }
--- request eval
["POST /a/1001", "POST /b/1001", "POST /c/1001", "POST /d/1001"]
--- more_headers eval
my %old = (uid => "1001", exp => time - 100);
[::bearer(::token(1001, %old)), ::bearer(::token(1001, %old)), ::bearer(::token(1001, %old, alg => 'HS512')),
 ::bearer(::token(1001, %old))]
--- error_code eval
[401, 401, 401, 401]



=== TEST 15: the user id in another claim
--- sale: 1001 stock=10
--- seckill
    seckill_auth_claim uid;
--- request eval
["POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
[::bearer(::token(1, uid => "77")), ::bearer(::token(1))]
--- error_code eval
[200, 401]
--- redis_check
SMEMBERS seckill:order_users:{1001} => 77



=== TEST 16: large tokens up to 8 KiB (E8)
--- sale: 1001 stock=10
--- seckill
    large_client_header_buffers 4 32k;
--- request eval
[("POST /seckill/1001") x 6]
--- more_headers eval
[map { my ($user, $size) = @{$_}; ::bearer(::token($user, pad => 'x' x ($size * 3 / 4))) }
     [1, 1000], [2, 1800], [3, 4000], [4, 7800], [5, 15000], [6, 30000]]
--- error_code eval
[200, 200, 200, 200, 401, 401]
--- redis_check
SCARD seckill:order_users:{1001} => 4



=== TEST 17: a header that the core finds too large (E8)
--- sale: 1001 stock=10
--- request
POST /seckill/1001
--- more_headers eval
::bearer(::token(1, pad => 'x' x 15000))
--- error_code: 400



=== TEST 18: two Authorization headers are no choice (E9)
--- sale: 1001 stock=10
--- request eval
[("POST /seckill/1001") x 4]
--- more_headers eval
["$::Alice\n$::Bob", "$::Bob\n$::Alice", "$::Alice\n$::Alice", "$::Alice, Bearer " . ::token(1002)]
--- error_code_like eval
[qr/^40[01]$/, qr/^40[01]$/, qr/^40[01]$/, qr/^40[01]$/]
--- redis_check
SCARD seckill:order_users:{1001} => 0



=== TEST 19: a token in a cookie, the query or another header is not seen (E9)
--- sale: 1001 stock=10
--- request eval
my $token = ::token(1001);
["POST /seckill/1001?token=$token&access_token=$token", "POST /seckill/1001", "POST /seckill/1001"]
--- more_headers eval
my $token = ::token(1001);
["X-None: 1", "Cookie: token=$token; Authorization=Bearer $token", "Proxy-Authorization: Bearer $token"]
--- error_code eval
[401, 401, 401]



=== TEST 20: unknown fields in the head do no harm, "crit" does
--- sale: 1001 stock=10
--- request eval
[("POST /seckill/1001") x 3]
--- more_headers eval
[::bearer(::token(1, header => {kid => 'a', x5u => 'http://127.0.0.1/'})), ::bearer(::token(2, header => {crit => ['exp']})),
 ::bearer(::token(3, header => {jwk => {kty => 'oct', k => 'AAAA'}}))]
--- error_code eval
[200, 401, 200]



=== TEST 21: any of several keys may have signed
--- sale: 1001 stock=10
--- seckill eval
::write_key('second.key', "a second key, of some thirty bytes\n");
"seckill_auth_key_file \$TEST_NGINX_KEY;\nseckill_auth_key_file \$TEST_NGINX_DIR/second.key;\n"
--- request eval
[("POST /seckill/1001") x 3]
--- more_headers eval
[::bearer(::token(1)), ::bearer(::token(2, key => 'a second key, of some thirty bytes')),
 ::bearer(::token(3, key => 'a third key, of some thirty bytes.'))]
--- error_code eval
[200, 200, 401]



=== TEST 22: keys rotate without a lost request (E11)
--- sale: 1001 stock=10
--- seckill eval
::write_key('one.key', 'the first key is thirty bytes too');
::write_key('two.key', 'the second key is of thirty bytes');
::write_key('keys.conf', 'seckill_auth_key_file ' . ::seckill_dir() . '/one.key;');
"seckill_limit off;\n"
--- config
    location /seckill/ {
        seckill on;
        include $TEST_NGINX_DIR/keys.conf;
    }
--- request eval
[("POST /seckill/1001") x 6]
--- more_headers eval
my $old = ::bearer(::token(1001, key => 'the first key is thirty bytes too'));
my $new = ::bearer(::token(1002, key => 'the second key is of thirty bytes'));
[$old, $new, $old, $new, $old, $new]
--- after eval
my $dir = ::seckill_dir();
[undef,
 sub { ::write_key('keys.conf', "seckill_auth_key_file $dir/one.key;\nseckill_auth_key_file $dir/two.key;\n"); ::reload() },
 undef,
 sub { ::write_key('keys.conf', "seckill_auth_key_file $dir/two.key;\n"); ::reload() }]
--- error_code eval
[200, 401, 200, 200, 401, 200]
--- response_body_like eval
[qr/"code":0,/, qr/"code":40100,/, qr/"code":40004,/, qr/"code":0,/, qr/"code":40100,/, qr/"code":40004,/]



=== TEST 23: no token is ever in a log
--- sale: 1001 stock=10
--- request eval
["POST /seckill/1001", "POST /seckill/1001", "GET /seckill/result/1001"]
--- more_headers eval
[::bearer(::token(1001, nonce => 'seen')), ::bearer(::token(1001, key => 'x' x 32)), $::Alice]
--- error_code eval
[200, 401, 200]
--- no_error_log
eyJ
