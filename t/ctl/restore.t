# restore: Redis lost data (C5).  What MySQL knows is there again, exactly; what
# nobody knows is listed by user; nothing is sold in between.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use MysqlCut;
use IO::Socket::INET;
use JSON ();
use Test::More;

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;
my $dbh   = $c->dbh;
my $key   = $t->key_file;

sub http {
    my ($port, $method, $path, $user) = @_;

    my (undef, $token) = $c->ctl('token', $user, '--key-file', $key);
    chomp $token;
    my (undef, $out) = $t->run('curl', '-s', '-m', 5, '-w', ' %{http_code}', '-X', $method,
        '-H', "Authorization: Bearer $token", "http://127.0.0.1:$port$path");
    my ($body, $status) = $out =~ /\A(.*) (\d+)\z/s;

    return (eval { JSON->new->utf8->decode($body) } // {}, $status);
}

# C5, through nginx
{
    my $id = $c->sale;
    my $nginx = $t->nginx(redis => $c->{redis}, key_file => $key, workers => 2,
        location => 'seckill on; seckill_limit off; seckill_refresh 200ms;');
    my $port = $nginx->{port};

    $c->start;
    for my $user (1 .. 6) {
        my ($json) = http($port, 'POST', "/seckill/$id", $user);
        is($json->{code}, 0, "user $user buys");
    }
    $c->drain($id);
    $c->halt;

    # two more whom MySQL never sees; a node wrote it down
    my ($seven) = http($port, 'POST', "/seckill/$id", 7);
    http($port, 'POST', "/seckill/$id", 8);
    my @all = $c->entries($id);
    is(scalar @all, 8, 'eight are accepted, six are written');
    my $journal = $c->journal('node.log', @all);
    my $token = $redis->hget('seckill:control', 'token_key');

    $redis->flushall;
    $c->start;

    my ($json, $status) = http($port, 'POST', "/seckill/$id", 21);
    is($status, 503, 'until the restore a purchase is 503');
    like($json->{code}, qr/^5030[12]$/, '... unavailable');
    ok($t->wait_for(sub { (http($port, 'GET', "/seckill/result/$id", 1))[1] == 503 }, 5, 'a poll'),
        '... a poll too, within seckill_refresh');

    is(($c->ctl('preheat', $id, '--late'))[0], 4, 'a preheat is refused: it would sell again');
    my ($exit, undef, $err) = $c->ctl('restore', $id);
    is($exit, 4, 'a restore wants a word');
    like($err, qr/--yes/, '... and says which');

    ($exit, $json, $err) = $c->ctl_json('restore', $id, '--yes', '--journal', $journal);
    is($exit, 0, 'restored') or diag($err);
    is($json->{stock}, 4, '... four units are left');
    is($json->{buyers}, 6, '... six have bought');
    is($json->{epoch}, 2, '... in a new epoch');
    is_deeply([ map {"$_->{user} $_->{seq} $_->{epoch}"} @{ $json->{lost} } ], [ '7 7 1', '8 8 1' ],
        '... and who was lost is listed');

    is($c->stock($id), 4, 'Redis has four');
    is_deeply([ sort $redis->smembers($c->key('order_users', $id)) ], [ 1 .. 6 ], '... six buyers');
    is($redis->sismember('seckill:activities', $id), 1, '... the activity is registered');
    is($c->column("SELECT epoch FROM seckill_activities WHERE id = $id"), 2, '... MySQL agrees');
    my %facts = %{ $c->facts($id) };
    is_deeply([ @facts{qw(price stock_limit state max_quantity epoch seq)} ],
        [ '9.90', 10, 'open', 1, 2, 0 ], '... the facts are whole');

    $t->wait_for(sub { (http($port, 'POST', "/seckill/$id", 21))[0]{code} == 0 }, 10, 'nginx to sell again');
    for my $user (1 .. 6) {
        ($json) = http($port, 'POST', "/seckill/$id", $user);
        is($json->{code}, 40004, "user $user has taken part");
        ($json) = http($port, 'GET', "/seckill/result/$id", $user);
        is($json->{code}, 1, '... and has the order');
        is($json->{data}{order_no}, $c->column('SELECT order_no FROM seckill_orders WHERE '
            . 'activity_id = ? AND user_id = ?', $id, $user), '... with its number');
    }

    # the lost ones, with the same journals
    ($exit, my $one) = $c->reconcile($id, '--repair', 'replay', '--journal', $journal);
    is($exit, 0, 'the lost are queued again') or diag(explain($one));
    $c->drain($id);
    is($c->column('SELECT order_no FROM seckill_orders WHERE activity_id = ? AND user_id = 7', $id),
        $all[6]{order_no}, '... and get the order they were promised');
    is($c->stock($id), 1, '... one unit is left');
    ($exit, $one) = $c->reconcile($id);
    is($exit, 0, '... the books are in order') or diag(explain($one));
    $c->halt;

    is($redis->hget('seckill:control', 'token_key'), $token, 'F-D6: the token key is the same, MySQL kept it');
    cmp_ok($redis->hget('seckill:control', 'rev'), '>', 1e12, 'rev is above any that a node remembers');
    $t->stop($nginx);
}

# only part of Redis is gone
{
    my $id = $c->sale;
    $c->buy($id, 1, 2);
    $c->drain($id);
    my $token = $redis->hget('seckill:control', 'token_key');
    my $rev   = $redis->hget('seckill:control', 'rev');

    my ($exit, undef, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 4, 'an open sale with nothing missing is refused');
    like($err, qr/nothing to restore/, '... and it says so');

    $redis->hset($c->key('activity', $id), state => 'paused');
    $c->buy($id, 3);    # closed
    $redis->xadd($c->key('orders', $id), '*', user => 4);
    ($exit, undef, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 4, 'while something is unread it is refused');
    like($err, qr/unread or pending/, '... and it says why');
    is($c->facts($id)->{state}, 'paused', '... nothing is touched');

    $c->drain($id);    # a dead letter without a whole purchase
    ($exit) = $c->ctl('restore', $id, '--yes');
    is($exit, 0, 'paused and drained: restored');
    is($c->facts($id)->{state}, 'open', '... and open');
    is($c->stock($id), 8, '... with what is left');
    is($redis->hget('seckill:control', 'token_key'), $token, '... the token key is kept');
    cmp_ok($redis->hget('seckill:control', 'rev'), '>', $rev, '... rev is raised');
    is($c->buy($id, 1, 5), '21', '... it sells');
    $c->drain($id);
    is($c->column("SELECT epoch FROM seckill_orders WHERE activity_id = $id AND user_id = 5"), 2,
        '... in the new epoch');

    $redis->hset($c->key('activity', $id), state => 'closed');
    ($exit) = $c->ctl('restore', $id, '--yes');
    is($exit, 0, 'a closed sale is restored');
    is($c->facts($id)->{state}, 'closed', '... and stays closed');
}

# what was failed, released, returned, restocked and dead is where it was
{
    my $id = $c->sale(stock_limit => 20, max_quantity => 3);
    $c->buy($id, 1, [ 2, 3 ], [ 3, 2 ], [ 4, 2 ], 5);
    $c->bury($id, 3);
    $c->bury($id, 4);
    $c->bury($id, 5);
    is(($c->ctl('reconcile', $id, '--repair', 'release', '--yes', '--user', 3, '--grace', '0s'))[0], 0, 'two to the product');
    is(($c->ctl('reconcile', $id, '--repair', 'release', '--yes', '--user', 4, '--to', 'redis',
        '--grace', '0s'))[0], 0, 'two back on sale');
    is(($c->ctl('restock', $id, 5))[0], 0, 'five more');
    $c->drain($id);
    my ($exit, $before) = $c->reconcile($id);
    is_deeply(BooksTest::units($before), [ 25, 18, 4, 0, 0, 1, 2, 0 ], 'before') or diag(explain($before));
    my $stock = $c->stock($id);

    $redis->hset($c->key('activity', $id), state => 'paused');
    is(($c->ctl('restore', $id, '--yes'))[0], 0, 'restored');
    is($c->stock($id), $stock, '... the same units are left');
    ($exit, my $after) = $c->reconcile($id);
    is_deeply(BooksTest::units($after), BooksTest::units($before), '... the same books')
        or diag(explain($after));
    is($c->buy($id, 3, 4, 5), '222', '... who failed has taken part');
    is(($c->ctl('restock', $id, '--finish'))[0], 0, '... no restock is left to finish');
    is($c->stock($id), $stock, '... none was added');
    is(($c->ctl('reconcile', $id, '--repair', 'release', '--yes', '--grace', '0s'))[0], 0, '... the letter is released');
    is(($c->reconcile($id))[0], 0, '... the books are in order');

    # all of Redis, dead letters too
    $redis->flushall;
    is(($c->ctl('restore', $id, '--yes'))[0], 0, 'restored from nothing');
    ($exit, $after) = $c->reconcile($id);
    is_deeply(BooksTest::units($after), [ 25, 18, 4, 0, 0, 0, 3, 0 ], '... the books are in order')
        or diag(explain($after));
    is($exit, 0, '... and nobody is on the wrong side');
}

# kill -9 at every step: nothing is sold until it is whole
for my $point (qw(after_clear before_commit after_commit after_page after_restore)) {
    my $id = $c->sale;
    $c->buy($id, 1 .. 4);
    $c->drain($id);
    $redis->flushall;
    $c->ctl_dies($point, 'restore', $id, '--yes');
    if ($point ne 'after_restore') {
        ok(!eval { $c->buy($id, 9); 1 }, '... nothing is sold') ;
        is(($c->ctl('restore', $id, '--yes'))[0], 0, '... and run again it is whole');
    }
    is($c->stock($id), 6, '... six units');
    is_deeply([ sort $redis->smembers($c->key('order_users', $id)) ], [ 1 .. 4 ], '... four buyers');
    my ($exit, $one) = $c->reconcile($id);
    is($exit, 0, '... the books are in order') or diag(explain($one));
}

# many buyers, in pages
{
    my $id = $c->sale(stock_limit => 5000, products_stock => 5000);
    $c->buy($id, 200 * $_ + 1 .. 200 * $_ + 200) for 0 .. 11;
    $c->drain($id);
    $redis->flushall;
    my ($exit, $json) = $c->ctl_json('restore', $id, '--yes');
    is($exit, 0, '2,400 buyers');
    is($json->{buyers}, 2400, '... are there');
    is($redis->scard($c->key('order_users', $id)), 2400, '... every one');
    is(scalar(grep { defined } $redis->mget(map { $c->key("result:$_", $id) } 1 .. 2400)), 2400,
        '... with a result');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

is(($c->ctl('restore', 999, '--yes'))[0], 1, 'an activity that is nowhere is exit 1');
is(($c->ctl('restore', $c->activity, '--yes'))[0], 4, 'one that was never preheated is refused');

# a connection that breaks is no refusal
{
    my $proxy = MysqlCut->new($c->t->dir, $c->{mysql}{sock});
    my $conf = $c->t->conf(redis => $c->{redis}, mysql => { %{ $c->{mysql} }, sock => $proxy->sock });
    my $id = $c->sale;
    $c->redis->del($c->key('stock', $id));
    my $before = $c->everything;
    $proxy->cut(after => 'INSERT INTO seckill_terms');
    my ($exit, $out, $err) = $c->t->ctl($conf, 'restore', $id, '--yes');
    ok($proxy->was_cut, 'MySQL goes away while a restore copies the terms');
    is($exit, 3, '... unreachable') or diag($out, $err);
    is($c->everything, $before, '... and nothing was changed');
}

done_testing();
