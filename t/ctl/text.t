# F-A5: text from outside never commands the operator's terminal: what buyers, Redis
# and MySQL say is shown, not sent.  JSON stays JSON.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Encode ();
use JSON ();
use Test::More;

my $c     = BooksTest->new;
my $redis = $c->redis;
my $dbh   = $c->dbh;

# ESC and OSC, CR LF, C1 as UTF-8, bidi, a line end of Unicode, zero width, a backslash
my $evil = "a\e[31m\e]0;t\a\r\nlevel=error\x{9b}2J\x{202e}txt\x{2066}\x{2028}\x{200b}\x{feff}\\ \x{4e2d}";
my $bytes = Encode::encode('UTF-8', $evil);

# what must not reach a terminal, in any form
sub quiet {
    my ($name, $text) = @_;

    my $decoded = eval { Encode::decode('UTF-8', my $copy = $text, 1) };
    ok(defined $decoded, "$name: valid UTF-8");
    unlike($decoded // '', qr/[\x00-\x09\x0b-\x1f\x7f-\x9f\x{200b}-\x{200f}\x{2028}-\x{202e}\x{2060}-\x{206f}\x{feff}]/,
        '... nothing that is obeyed');
    return;
}

my $id = $c->sale(stock_limit => 20);
$c->buy($id, 1 .. 3);
$c->drain($id);
$dbh->do('SET NAMES utf8mb4');
$dbh->do("UPDATE seckill_orders SET ext = ? WHERE activity_id = ? AND user_id = 1", undef, $bytes, $id);
$dbh->do("UPDATE seckill_orders SET request_id = 'trace-me' WHERE activity_id = ? AND user_id = 1", undef, $id);
$redis->set($c->key('result:1', $id), $bytes);
$redis->xadd($c->key('dead', $id), '*', entry => '5-5', reason => "bad\xff\xc3\x28$bytes", error => $bytes, user => 9,
    "na\e[2Jme" => $bytes);

my ($exit, $out, $err) = $c->ctl('order', 'show', '--user', 1, '--activity', $id);
is($exit, 0, 'order show') or diag($err);
quiet('order show', $out);
like($out, qr/^ext +a\\x1b\[31m\\x1b\]0;t\\x07\\x0d\\x0alevel=error\\xc2\\x9b2J\\xe2\\x80\\xaetxt/m, '... the ext is shown');
like($out, qr/\\\\ \xe4\xb8\xad$/m, '... what is plain stays, a backslash is doubled');

($exit, $out) = $c->ctl('dead', 'list', $id);
quiet('dead list', $out);
like($out, qr/bad\\xff\\xc3\(a\\x1b/, '... bytes that are no UTF-8 too');
my ($letter) = $out =~ /^(\S+)/;
($exit, $out) = $c->ctl('dead', 'show', $id, $letter);
quiet('dead show', $out);
like($out, qr/^na\\x1b\[2Jme: a\\x1b\[31m/m, '... names of fields as well');

($exit, $out) = $c->ctl('trace', 'trace-me', '--activity', $id);
quiet('trace', $out);
like($out, qr/result +a\\x1b\[31m/, '... the result');

$redis->hset($c->key('activity', $id), state => "x\e[2J\r\n", price => "9.90\e[2J");
for my $verb ([ 'status', $id ], [ 'status' ], [ 'reconcile', $id ], [ 'queue', $id ], [ 'doctor', $id ]) {
    (undef, $out, $err) = $c->ctl(@{$verb});
    quiet("@{$verb}", $out . $err);
}
(undef, $out) = $c->ctl('status', $id);
like($out, qr/activity $id: x\\x1b\[2J\\x0d\\x0a/, 'the state is shown');

# errors of the servers hold what they were told
$redis->hset($c->key('activity', $id), state => 'open', price => '9.90');
(undef, $out, $err) = $c->ctl('dead', 'show', $id, "5-5\e[2J");
quiet('an error', $out . $err);
(undef, $out, $err) = $c->ctl('order', 'show', "\e[2J");
quiet('misuse', $out . $err);

# JSON: the same text, in escapes
($exit, $out) = $c->ctl('order', 'show', '--user', 1, '--activity', $id, '--json');
quiet('JSON', $out);
is(JSON->new->utf8->decode($out)->{order}{ext}, $evil, '... is the text itself');
($exit, $out) = $c->ctl('dead', 'list', $id, '--json');
quiet('JSON of bytes that are no UTF-8', $out);
ok(eval { JSON->new->utf8->decode($out); 1 }, '... is JSON');

done_testing();
