# The settings file and the command line: what is wrong is said with its line.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use SeckillTest;
use Test::More;

my $t       = SeckillTest->new;
my $program = $t->build . '/seckilld';

# (exit, stdout, stderr) of seckilld -t on this text
sub check {
    my ($text) = @_;
    return $t->run($program, '-t', '-c', $t->file('test.conf', $text));
}

my $path = $t->dir . '/test.conf';

my @wrong = (
    ["[redis]\naddres = unix:/x\n", 2, 'unknown setting "addres" in section [redis]'],
    ["\n[radis]\naddress = unix:/x\n", 2, 'unknown section "radis"'],
    ["[redis]\n[radis]\n", 2, 'unknown section "radis"'],
    ["db = 1\n", 1, 'setting outside of any section: "db"'],
    ["[redis]\n\ndb = one\n", 3, 'invalid value "one" for "db"'],
    ["[redis]\ndb = -1\n", 2, 'invalid value "-1" for "db"'],
    ["[redis]\ndb = 99999999999999999999\n", 2, 'invalid value'],
    ["[redis]\ndb = 0\n; comment\ndb = 0\n", 4, 'setting "db" is duplicate'],
    ["[redis]\naddress = localhost\n", 2, 'host:port expected'],
    ["[redis]\naddress = localhost:70000\n", 2, 'port must be 1..65535'],
    ["[redis]\naddress = unix:\n", 2, 'path is empty'],
    ["[redis]\naddress = unix:/" . 'x' x 200 . "\n", 2, 'longer than 107 bytes'],
    ["[redis]\nprefix = a{b}\n", 2, 'letters, digits and'],
    ["[redis]\nprefix = " . 'p' x 33 . "\n", 2, 'is too long'],
    ["[redis]\ntimeout = 5\n", 2, 'a time like 50ms'],
    ["[redis]\ntimeout = 5h\n", 2, 'a time of 10ms to 60000ms expected'],
    ["[redis]\nuser = shop\n", 2, '"user" needs "password_file"'],
    ["[mysql]\nsocket = /x\nport = 3306\n", 3, 'both "socket" and "host" or "port"'],
    ["[mysql]\nport = 0\n", 2, 'port must be'],
    ["[mysql]\nssl = yes\n", 2, 'on or off expected'],
    ["[mysql]\nssl = on\nca = ca.pem\n", 3, 'an absolute path expected'],
    ["[mysql]\nsocket = /x\nssl = on\n", 3, '"ssl" is for "host", not for "socket"'],
    ["[mysql]\nca = /x\n", 2, '"ca", "cert" and "key" need "ssl = on"'],
    ["[mysql]\nssl = on\ncert = /x\n", 3, '"cert" and "key" need each other'],
    ["[mysql]\ndatabase =\n", 2, 'is empty'],
    ["[consumer]\nname = a b\n", 2, 'without blanks'],
    ["[consumer]\nbatch = 0\n", 2, 'a number in 1..10000 expected'],
    ["[consumer]\nbatch = 10001\n", 2, 'a number in 1..10000 expected'],
    ["[consumer]\nworkers = 0\n", 2, 'a number in 1..'],
    ["[consumer]\nidle = 1s\n", 2, 'a time of 1ms to 50ms expected'],
    ["[consumer]\nclaim_idle = 50ms\n", 2, 'a time of 100ms to 3600000ms expected'],
    ["[consumer]\nattempts = 0\n", 2, 'a number in 1..20 expected'],
    ["[consumer]\nretry = 0s\n", 2, 'a time of 1ms to'],
    ["[consumer]\non_dead = mail root\n", 2, 'an absolute path expected'],
    ["[consumer]\npay_timeout = 15\n", 2, 'a time like 50ms'],
    ["[consumer]\nclock_trust = 0s\n", 2, 'a time of 1000ms to 86400000ms expected'],
    ["[consumer]\nclock_trust_start = 2h\n", 2, 'a time of 0ms to 3600000ms expected'],
    ["[consumer]\ncancelled_units = redis\n", 2, 'none, product or activity expected'],
    ["[http]\nlisten = yes\n", 2, 'host:port expected'],
    ["[http]\nlisten = 10.0.0.1:9090\n", 2, 'a loopback address'],
    ["[log]\nfile = daemon.log\n", 2, 'an absolute path expected'],
    ["[log]\nlevel = loud\n", 2, 'debug, info, notice, warn or error'],
    ["[log]\nlevel\n", 2, 'not a section, a setting or a comment'],
    ["[log\n", 1, 'not a section'],
    ["[log]\nlevel = " . 'x' x 2000 . "\n", 2, 'line is too long'],
);

for my $case (@wrong) {
    my ($text, $line, $message) = @{$case};
    my ($exit, $out, $err) = check($text);
    my $name = (split /\n/, $text)[-1];

    is($exit, 1, "exit 1: \"" . substr($name, 0, 40) . '"');
    like($err, qr/^seckilld: \Q$path\E:$line: .*\Q$message\E/, "and says line $line");
}

{
    my ($exit, $out, $err) = check(<<'END_CONF');
# everything, with comments of both kinds
[redis]
address = 127.0.0.1:6380 ; beside a value
db = 3
prefix = shop:sale
timeout = 500ms

[mysql]
host = db.example
port = 3307
user = seckill
database = shop
timeout = 5s

[consumer]
name = node-a
workers = 2
batch = 500
idle = 20ms
retain = 1h
claim_idle = 2m
attempts = 7
retry = 1s
on_dead = /usr/local/bin/alarm
settle_after = 0s
pay_timeout = 30m
clock_trust = 15m
clock_trust_start = 30s
cancelled_units = activity

[http]
listen = 127.0.0.1:9090

[log]
level = debug
file = /var/log/seckill/seckilld.log
END_CONF
    is($exit, 0, 'all settings together are fine') or diag($err);
    like($err, qr/is fine/, 'which is said');
    is($out, '', 'stdout stays empty');
    unlike($err, qr/pay_timeout/, 'and nothing of a pay_timeout that is given');

    # F-F3
    ($exit, $out, $err) = check("[consumer]\nname = a\n");
    is($exit, 0, 'no pay_timeout is fine');
    like($err, qr/note: \[consumer\] "pay_timeout" is not set: unpaid orders are never cancelled/,
        'F-F3: and -t says what that means');
    ($exit, $out, $err) = check("[consumer]\npay_timeout = 0s\n");
    unlike($err, qr/pay_timeout/, 'unless it is meant');

    ($exit) = check("\xef\xbb\xbf[log]\r\nlevel = info\r\n");
    is($exit, 0, 'a file of another system is fine');
    ($exit) = check('');
    is($exit, 0, 'an empty file means the defaults');
    ($exit, $out, $err) = $t->run($program, '-t', '-c', $t->root . '/tools/demo/seckilld.conf');
    is($exit, 0, 'the sample is fine') or diag($err);
}

{
    my ($exit, $out, $err) = check("[mysql]\npassword_file = /nowhere/at/all\n");
    is($exit, 1, 'a password file that is not there is found by -t');
    like($err, qr{password file "/nowhere/at/all": No such file}, 'and named');

    my $open = $t->file('open.password', "secret-word\n", oct(644));
    ($exit, $out, $err) = check("[mysql]\npassword_file = $open\n");
    is($exit, 0, 'one that everybody may read is no error');
    like($err, qr/warning: password file "\Q$open\E" may be read by everybody/, 'but a warning');
    unlike($err, qr/secret-word/, 'that does not show it');

    ($exit, $out, $err) = check("[mysql]\nssl = on\nca = /nowhere/at/all\n");
    is($exit, 1, 'so is an authority that is not there');
    like($err, qr{ca "/nowhere/at/all": No such file}, '... by its name');
    my $key = $t->file('open.key', "key\n", oct(644));
    ($exit, $out, $err) = check("[mysql]\nssl = on\ncert = $open\nkey = $key\npassword_file = $open\n");
    is($exit, 0, 'two warnings are no error');
    like($err, qr/"\Q$open\E" may be read by everybody; \[mysql\] key "\Q$key\E" may be read by everybody/, '... and both are told');

    # F-H2: the one setting of [mysql] that 0.1.0 took in another way
    ($exit, $out, $err) = check("[mysql]\nhost = localhost\n");
    is($exit, 0, 'localhost is fine');
    like($err, qr/"host = localhost" is TCP to port 3306 since 1\.0: say 127\.0\.0\.1, or "socket"/, '... and -t says what it means now');
    ($exit, $out, $err) = check("[mysql]\nhost = localhost\nssl = on\n");
    unlike($err, qr/warning/, '... unless TLS makes it plain');

    my $empty = $t->file('empty.password', "\n");
    ($exit, $out, $err) = check("[redis]\npassword_file = $empty\n");
    is($exit, 1, 'an empty one is an error');

    # F-J1, F-J2: the same files are refused as nginx refuses, with name and reason
    for (["\0" x 32, 'holds a NUL byte'], ["a long enough word\0\n", 'holds a NUL byte'],
        ["\xef\xbb\xbfa long enough word\n", 'begins with a byte order mark'], [' ' x 20, 'nothing but blanks'],
        ["\r\n", 'empty'])
    {
        my ($text, $why) = @{$_};
        my $file = $t->file('bad.secret', $text, oct 600);
        for my $setting ("[redis]\npassword_file", "[redis]\nqueue_token_key_file", "[mysql]\npassword_file") {
            ($exit, $out, $err) = check("$setting = $file\n");
            is($exit, 1, "refused by -t: $why");
            like($err, qr/file "\Q$file\E": \Q$why\E/, '... by name');
        }
    }
    ($exit, $out, $err) = check("[redis]\nqueue_token_key_file = " . $t->file('k', 'fifteen bytes..', oct 600) . "\n");
    is($exit, 1, 'a short key is refused');
    like($err, qr/shorter than 16 bytes/, '... and why');
    ($exit, $out, $err) = check("[redis]\nqueue_token_key_file = " . $t->file('k', "sixteen bytes...\r\n", oct 644) . "\n");
    is($exit, 0, 'a key that everybody may read is no error');
    like($err, qr/warning: key file ".*" may be read by everybody/, '... but a warning');
}

{
    my ($exit, $out, $err) = $t->run($program, '--help');
    is($exit, 0, '--help is fine');
    like($out, qr/Usage: seckilld.*Exit codes:/s, 'and tells the exit codes');

    ($exit, $out) = $t->run($program, '--version');
    is($exit, 0, '--version is fine');
    like($out, qr/^seckilld \d+\.\d+\.\d+ /, 'and tells it');

    ($exit, $out, $err) = $t->run($program, '--nonsense');
    is($exit, 2, 'an unknown option is misuse');
    ($exit, $out, $err) = $t->run($program, 'start');
    is($exit, 2, 'so is an argument');
    ($exit, $out, $err) = $t->run($program, '-t', '-c', $t->dir . '/none.conf');
    is($exit, 1, 'no file, no start');
    like($err, qr/none\.conf: cannot open: No such file/, 'which is said');

    local $ENV{SECKILLD_FAILPOINT} = 'after_lunch';
    ($exit, $out, $err) = $t->run($program, '-c', $t->file('ok.conf', ''));
    is($exit, 2, 'an unknown failpoint is misuse');
}

done_testing;
