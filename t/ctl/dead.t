# dead: letters are listed and shown as they are, and closed in one way only.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use MysqlCut;
use Test::More;

my $c     = BooksTest->new;
my $redis = $c->redis;

sub dead_sale {
    my ($n) = @_;
    my $id = $c->sale;
    $c->buy($id, 1 .. $n);
    my @letters = map { $c->bury($id, $_) } 1 .. $n;
    return ($id, @letters);
}

sub record {
    return $c->column('SELECT status FROM seckill_records WHERE activity_id = ? AND user_id = ?', @_);
}

# list and show
{
    my ($id, @letters) = dead_sale(2);
    $redis->xadd($c->key('dead', $id), '*', entry => '5-5', reason => 'malformed',
        error => "user is bad\n", user => "\e[31mx");

    my ($exit, $json) = $c->ctl_json('dead', 'list', $id);
    is($exit, 0, 'list');
    is(scalar @{ $json->{letters} }, 3, '... three');
    is_deeply([ @{ $json->{letters}[1] }{qw(id user units epoch seq reason)} ],
        [ $letters[1], 2, 1, 1, 2, 'data_error' ], '... each with its purchase');
    is($json->{letters}[2]{user}, undef, '... or without a user');

    ($exit, $json) = $c->ctl_json('dead', 'show', $id, $letters[0]);
    is($exit, 0, 'show');
    my %fields = map { $_->{name} => $_->{value} } @{ $json->{fields} };
    is($fields{error}, 'test', '... with the error');
    is($fields{request_id}, 'req', '... and the purchase');

    my ($id3) = map { $_->{id} } ($c->entries($id, 'dead'))[-1];
    ($exit, my $out) = $c->ctl('dead', 'show', $id, $id3);
    like($out, qr/^user: \\x1b\[31mx$/m, 'a terminal is not commanded');
    is(($c->ctl('dead', 'show', $id, '1-1'))[0], 1, 'one that is not there is exit 1');
    is(($c->ctl('dead', 'list', 999))[0], 0, 'an activity without letters');
}

# retry
{
    my ($id, $letter) = dead_sale(1);
    my ($exit, $out, $err) = $c->ctl('dead', 'retry', $id, $letter);
    is($exit, 0, 'retry') or diag($out, $err);
    like($out, qr/queued/, '... queues it');
    is(record($id, 1), undef, '... the tombstone is gone');
    is($c->result($id, 1), undef, '... the failure too');
    is($redis->xlen($c->key('dead', $id)), 0, '... and the letter');
    is_deeply($c->books_ledger($id), ["retry $letter 0"], '... on record');
    is(($c->reconcile($id))[0], 0, '... it is in flight');

    ($exit, $out) = $c->ctl('dead', 'retry', $id, $letter);
    is($exit, 0, 'again is fine');
    like($out, qr/not there/, '... there is nothing to retry');
    is($redis->xlen($c->key('orders', $id)), 2, '... it was queued once');

    $c->drain($id);
    is($c->column("SELECT seq FROM seckill_orders WHERE activity_id = $id"), 1, 'the order is that purchase');
    like($c->result($id, 1), qr/"success":true/, '... and the buyer hears it');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

# kill -9 between MySQL and Redis
{
    my ($id, $letter) = dead_sale(1);
    $c->ctl_dies('after_commit', 'dead', 'retry', $id, $letter);
    is(record($id, 1), undef, 'the tombstone is gone, the letter is there');
    is(($c->ctl('dead', 'retry', $id, $letter))[0], 0, '... retry again');
    is($redis->xlen($c->key('orders', $id)), 2, '... queues it once');
    is_deeply($c->books_ledger($id), ["retry $letter 0"], '... one line of the ledger');
}

# refused once the units were released, even while the letter is still there
{
    my ($id, $letter) = dead_sale(1);
    $c->ctl_dies('after_commit', 'reconcile', $id, '--repair', 'release', '--yes', '--grace', '0s');
    is($redis->xlen($c->key('dead', $id)), 1, 'released in MySQL, the letter is there');
    my ($exit, $out) = $c->ctl('dead', 'retry', $id, $letter);
    is($exit, 4, '... retry is refused');
    like($out, qr/units were given back/, '... and says why');
    is(record($id, 1), 2, '... the tombstone stays');
    is($redis->xlen($c->key('orders', $id)), 1, '... nothing is queued');
    ($exit, $out) = $c->ctl('dead', 'drop', $id, $letter, '--yes');
    is($exit, 0, '... but it may be dropped');
    is($redis->xlen($c->key('dead', $id)), 0, '... and is gone');
}

# the user has an order; the sale is settled; the letter is no purchase
{
    my ($id, $letter) = dead_sale(1);
    $c->order($id, 1, seq => 77);
    my ($exit, $out) = $c->ctl('dead', 'retry', $id, $letter);
    is($exit, 4, 'a user with an order is not retried');
    like($out, qr/has an order/, '... and it says why');

    my $junk = $redis->xadd($c->key('dead', $id), '*', entry => '5-5', reason => 'malformed', user => 3);
    ($exit, $out) = $c->ctl('dead', 'retry', $id, $junk);
    is($exit, 4, 'half a purchase is not retried');

    ($id, $letter) = dead_sale(1);
    $c->dbh->do("UPDATE seckill_activities SET status = 2 WHERE id = $id");
    ($exit, $out) = $c->ctl('dead', 'retry', $id, $letter);
    is($exit, 4, 'nor after the settle');
    is(record($id, 1), 2, '... the tombstone stays');
}

# drop
{
    my ($id, @letters) = dead_sale(3);
    my ($exit, $out, $err) = $c->ctl('dead', 'drop', $id, $letters[0]);
    is($exit, 4, 'drop wants a word');
    like($err, qr/--yes/, '... and says which');
    ($exit, $out) = $c->ctl('dead', 'drop', $id, $letters[0], '--yes');
    is($exit, 4, 'units that were not given back are not dropped');
    like($out, qr/--keep-units/, '... but for a word');
    is($redis->xlen($c->key('dead', $id)), 3, '... all are there');

    $c->ctl_dies('after_commit', 'dead', 'drop', $id, $letters[0], '--keep-units', '--yes');
    my (undef, $one) = $c->reconcile($id);
    is($one->{units}{missing}, 0, 'killed in the middle: no unit counts twice');
    ($exit, $out) = $c->ctl('dead', 'drop', $id, @letters, '--keep-units', '--yes');
    is($exit, 0, 'with it they are');
    is($redis->xlen($c->key('dead', $id)), 0, '... all are gone');
    is_deeply($c->books_ledger($id), [ map {"drop seq:1:$_ 1"} 1 .. 3 ], '... on record');
    ($exit, $one) = $c->reconcile($id);
    is($exit, 0, '... and in the books') or diag(explain($one));
    is($one->{units}{released}, 3, '... as units that nobody sells');
    is($c->stock($id), 7, '... Redis does not get them');
}

# on a terminal the word is typed: the activity's id
{
    my ($id, $letter) = dead_sale(1);
    my $run = $c->t->build . "/seckillctl -c $c->{conf} dead drop $id $letter --keep-units";
    my ($exit, $out) = $c->t->run('sh', '-c', "echo yes | script -qec '$run' /dev/null");
    is($exit, 4, 'another word on a terminal is refused');
    like($out, qr/type $id to go on/, '... it asks for the id');
    is($redis->xlen($c->key('dead', $id)), 1, '... the letter stays');
    ($exit) = $c->t->run('sh', '-c', "echo $id | script -qec '$run' /dev/null");
    is($exit, 0, 'the id is the word');
    is($redis->xlen($c->key('dead', $id)), 0, '... the letter is gone');
}

# all at once, some refused
{
    my ($id, @letters) = dead_sale(3);
    $c->order($id, 2, seq => 77);
    my ($exit, $json) = $c->ctl_json('dead', 'retry', $id, '--all');
    is($exit, 4, 'one of three is refused');
    is_deeply([ map { $_->{refused} ? 'no' : $_->{done} } @{ $json->{letters} } ],
        [ 'queued', 'no', 'queued' ], '... the others are queued');
}

# queue sees it all
{
    my $id = $c->sale;
    my ($exit, $json) = $c->ctl_json('queue', $id);
    is($exit, 0, 'an empty queue');
    is_deeply([ @{$json}{qw(stream unread pending dead oldest_ms)} ], [ 0, 0, 0, 0, undef ], '... is empty');
    $c->buy($id, 1 .. 5);
    $redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'COUNT', 2, 'STREAMS', $c->key('orders', $id), '>');
    $redis->xdel($c->key('orders', $id), ($c->entries($id))[3]{id});
    ($exit, $json) = $c->ctl_json('queue', $id);
    is_deeply([ @{$json}{qw(stream unread pending)} ], [ 4, 2, 2 ], 'counted, also when Redis has no lag');
    ok(defined $json->{oldest_ms} && $json->{oldest_ms} < 60_000, '... the oldest has an age');
    is_deeply([ map {"$_->{name} $_->{pending}"} @{ $json->{consumers} } ], ['test-1 2'], '... the consumers');
    is(($c->ctl('queue', 999))[0], 1, 'no stream is exit 1');
}

# a connection that breaks on the way: nothing that was done is called nothing, and what was
# not come to is not called done
my $proxy = MysqlCut->new($c->t->dir, $c->{mysql}{sock});
my $cut = $c->t->conf(redis => $c->{redis}, mysql => { %{ $c->{mysql} }, sock => $proxy->sock });

for my $case ([ 'retry', 'INSERT INTO seckill_stock_log' ], [ 'drop', 'INSERT INTO seckill_stock_log' ],
              [ 'retry', 'COMMIT' ], [ 'drop', 'COMMIT' ])
{
    my ($how, $at) = @{$case};
    my @more = $how eq 'drop' ? ('--keep-units', '--yes') : ();
    my $id = $c->sale;
    $c->buy($id, 1, 2);
    my ($one, $two) = map { $c->bury($id, $_) } 1, 2;

    $proxy->cut(after => $at);
    my ($exit, $out, $err) = $c->t->ctl($cut, 'dead', $how, $id, '--all', @more);
    ok($proxy->was_cut, "$how, cut after $at");
    is($exit, $at eq 'COMMIT' ? 5 : 3, '... exit code') or diag($out, $err);
    like($out, qr/$one  not @{[ $at eq 'COMMIT' ? 'known' : 'done' ]}/, '... says what is known');
    like($out, qr/$two  not done: run it again/, '... and what was not come to');
    is(($c->ctl('dead', $how, $id, '--all', @more))[0], 0, '... the second try');
    is($redis->xlen($c->key('dead', $id)), 0, '... closes both');
    $c->drain($id);
    is(($c->reconcile($id))[0], 0, '... the books are in order');

    next if $at ne 'COMMIT';

    # the first is done, then the connection breaks
    $id = $c->sale;
    $c->buy($id, 1, 2);
    ($one, $two) = map { $c->bury($id, $_) } 1, 2;
    $proxy->cut(before => $how eq 'drop' ? "seq:1:2'" : 'WHERE user_id = 2 ');
    ($exit, $out) = $c->t->ctl($cut, 'dead', $how, $id, '--all', @more);
    is($exit, 5, "$how, one done: partly");
    like($out, qr/$one  (?:queued|dropped)\n$two  not done/, '... and which');
}

done_testing();
