# The key of the queue tokens and the journals: MySQL keeps it, Redis has the
# working copy, and where they differ MySQL's wins (F-D6, DESIGN 12.1).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;

sub kept { return $c->column("SELECT value FROM seckill_settings WHERE prefix = 'seckill' AND name = 'token_key'") }
sub ever { return $c->column("SELECT COUNT(*) FROM seckill_settings WHERE prefix = 'seckill' AND value = ?", @_) }
sub live { return $redis->hget('seckill:control', 'token_key') }
sub apply { return $c->ctl('schema', 'apply', '--dir', $t->root . '/sql') }

# who upgrades: Redis has a key, MySQL gets it
{
    is(kept(), undef, 'a new shop has no key');
    $redis->hset('seckill:control', token_key => 'ab' x 32, rev => 3);
    my ($exit, $out, $err) = apply();
    is($exit, 0, 'schema apply') or diag($err);
    is(kept(), 'ab' x 32, '... copies the key of Redis');
    unlike($out . $err, qr/abab/, '... and says none of it');
    is(live(), 'ab' x 32, '... Redis keeps it');
    is($redis->hget('seckill:control', 'rev'), 3, '... and nothing was raised');
    is((apply())[0], 0, 'again');
    is($c->column('SELECT COUNT(*) FROM seckill_settings'), 2, '... adds nothing');
}

# Redis loses everything: the key is the same again
{
    my $id = $c->sale;
    is(live(), 'ab' x 32, 'preheat leaves the key');
    $redis->flushall;
    $c->dbh->do("UPDATE seckill_activities SET start_time = DATE_ADD(UTC_TIMESTAMP(), INTERVAL 1 HOUR) WHERE id = $id");
    my $other = $c->sale;
    is(live(), 'ab' x 32, 'F-D6: after FLUSHALL a preheat makes control with the key of MySQL');
}

# another key, from a tool of 0.1.0 that met an empty Redis
{
    $redis->hset('seckill:control', token_key => 'cd' x 32);
    my $rev = $redis->hget('seckill:control', 'rev');
    $t->allow_log(qr/another token key than MySQL/);
    $c->start;
    $t->wait_for(sub { live() eq 'ab' x 32 }, 5, 'the key of MySQL in Redis');
    is(live(), 'ab' x 32, 'where both differ MySQL wins, by the daemon');
    is(kept(), 'ab' x 32, '... which stays');
    is($redis->hget('seckill:control', 'rev'), $rev + 1, '... and nodes are told');
    is(ever('cd' x 32), 1, '... the other one stays known: it may have signed lines');
    my $log = $t->log_text($c->{daemon});
    like($log, qr/level=error msg="Redis had another token key than MySQL, and has MySQL's again"/, '... with an alarm');
    unlike($log, qr/abab|cdcd/, '... that holds no key');
    $c->halt;

    $redis->hset('seckill:control', token_key => 'ef' x 32);
    my ($exit, undef, $err) = apply();
    is($exit, 0, 'the tool does the same');
    is(live(), 'ab' x 32, '... MySQL wins');
    like($err, qr/Redis had another token key/, '... and it says so');
}

# control is there, its key is not; control is not there
{
    $redis->hdel('seckill:control', 'token_key');
    apply();
    is(live(), 'ab' x 32, 'a key that control lost is put back');
    $redis->del('seckill:control');
    apply();
    is($redis->exists('seckill:control'), 0, 'control itself is not made by the way');
}

# a daemon alone, on a new shop, and without the table
{
    $c->dbh->do('DELETE FROM seckill_settings');
    $redis->hset('seckill:control', token_key => '12' x 32, rev => 1);
    $c->start;
    $t->wait_for(sub { (kept() // '') eq '12' x 32 }, 5, 'the copy');
    is(kept(), '12' x 32, 'the daemon copies as well');
    $c->halt;

    $c->dbh->do('RENAME TABLE seckill_settings TO gone');
    $c->start;
    $t->wait_for(sub { $t->log_text($c->{daemon}) =~ /run seckillctl schema apply/ }, 5, 'a word about the table');
    pass('a database of 0.1.0: it says what to do, and goes on');
    my $id = $c->activity;
    my ($exit, undef, $err) = $c->ctl('preheat', $id);
    is($exit, 5, '... a preheat is not whole');
    like($err, qr/schema apply/, '... with the cure');
    $c->dbh->do('RENAME TABLE gone TO seckill_settings');
    $c->halt;
}

# the key of nodes that have a file
{
    my $file = $t->file('queue.key', "a key of a file, 29 bytes long\n", oct 600);
    my $conf = $t->conf(redis => $c->{redis}, mysql => $c->{mysql}, 'redis.queue_token_key_file' => $file);
    my ($exit, undef, $err) = $t->ctl($conf, 'schema', 'status', '--dir', $t->root . '/sql');
    is($exit, 0, 'queue_token_key_file is a setting') or diag($err);
    for (['short.key', 'short', qr/shorter than 16 bytes/], ['nul.key', "\0" x 32, qr/holds a NUL byte/]) {
        my ($name, $text, $why) = @{$_};
        $conf = $t->conf(redis => $c->{redis}, mysql => $c->{mysql},
            'redis.queue_token_key_file' => $t->file($name, $text, oct 600));
        ($exit, undef, $err) = $t->ctl($conf, 'schema', 'status', '--dir', $t->root . '/sql');
        is($exit, 2, "$name is refused");
        like($err, $why, '... by name');
    }
}

done_testing();
