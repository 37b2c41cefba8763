# restock: MySQL first, Redis second, each restock once, and nodes that said sold
# out sell again.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../tools/chaos", $FindBin::Bin;

use BooksTest;
use Chaos::Proxy;
use JSON ();
use MysqlCut;
use Test::More;

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;

sub limits {
    my ($id) = @_;
    return [ $c->column('SELECT stock_limit FROM seckill_activities WHERE id = ?', $id),
        $c->facts($id)->{stock_limit}, $c->stock($id), $c->products_stock($id) ];
}

# in a running sale
{
    my $id = $c->sale;
    $c->buy($id, 1 .. 10);
    is($c->buy($id, 11), '3', 'sold out');
    my $rev = $c->facts($id)->{rev};
    my $control = $redis->hget('seckill:control', 'rev');

    my ($exit, $json, $err) = $c->ctl_json('restock', $id, 5);
    is($exit, 0, 'five more') or diag($err);
    is($json->{added}, 5, '... are added');
    is_deeply(limits($id), [ 15, 15, 5, 985 ], '... everywhere');
    is_deeply($c->books_ledger($id), ['restock restock-1 -5'], '... on record');
    cmp_ok($c->facts($id)->{rev}, '>', $rev, '... rev is raised');
    cmp_ok($redis->hget('seckill:control', 'rev'), '>', $control, '... that of the nodes too');
    is($c->buy($id, 11 .. 16), '111113', '... and all are sold');
    $c->drain($id);
    is($c->column("SELECT sold FROM seckill_activities WHERE id = $id"), 15, '... MySQL takes them all');
    is(($c->reconcile($id))[0], 0, '... the books are in order');

    is(($c->ctl('restock', $id, 2))[0], 0, 'and two more');
    is_deeply(limits($id), [ 17, 17, 2, 983 ], '... are added too');
    ($exit, $json) = $c->ctl_json('restock', $id, '--finish');
    is($json->{added}, 0, '--finish adds nothing when nothing is missing');
    is_deeply(limits($id), [ 17, 17, 2, 983 ], '... anywhere');

    is(($c->ctl('restock', $id, 3, '--ref', 'truck-7'))[0], 0, 'a restock with a name');
    is(($c->ctl('restock', $id, 3, '--ref', 'truck-7'))[0], 0, '... again is fine');
    is_deeply(limits($id), [ 20, 20, 5, 980 ], '... and adds nothing');

    my ($code, undef, $words) = $c->ctl('restock', $id, 981);
    is($code, 4, 'more than the product has is refused');
    like($words, qr/has 980 units, 981 are wanted/, '... with the numbers');
    is_deeply(limits($id), [ 20, 20, 5, 980 ], '... and changes nothing');
}

# kill -9 in between
for my $point (qw(before_commit after_commit after_restock)) {
    my $id = $c->sale;
    $c->buy($id, 1);
    $c->ctl_dies($point, 'restock', $id, 5);
    my ($exit, $one) = $c->reconcile($id);
    is($exit, $point eq 'after_commit' ? 1 : 0, "killed $point");
    like($one->{limit_note} // '', $point eq 'after_commit' ? qr/--finish/ : qr/\A\z/,
        '... reconcile says what to do');

    if ($point eq 'after_commit') {
        ($exit, undef, my $err) = $c->ctl('restock', $id, 5);
        is($exit, 4, '... the same again would be another one: refused');
        like($err, qr/--finish/, '... and says so');
        is(($c->ctl('preheat', $id))[0], 4, '... a preheat does not touch a running sale');
    }
    is(($c->ctl('restock', $id, '--finish'))[0], 0, '... --finish');
    my $units = $point eq 'before_commit' ? 0 : 5;
    is_deeply(limits($id), [ 10 + $units, 10 + $units, 9 + $units, 990 - $units ],
        '... it is added once, everywhere');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

# cut off before the start, then a preheat: which brings the new limit itself
{
    my $id = $c->activity(start => 3600, end => 7200, stock_limit => 10);
    $c->ctl('preheat', $id);
    $c->ctl_dies('after_commit', 'restock', $id, 5);
    is(($c->ctl('preheat', $id))[0], 0, 'a preheat before the start');
    is_deeply(limits($id), [ 15, 15, 15, 985 ], '... brings the units');
    is(($c->ctl('restock', $id, '--finish'))[0], 0, '... and --finish');
    is_deeply(limits($id), [ 15, 15, 15, 985 ], '... does not bring them twice');
}

# two shells at once
{
    my $id = $c->sale;
    my @runs = $c->at_once(([ 'restock', $id, 2 ]) x 3);
    my $done = grep { $_->[0] == 0 } @runs;
    cmp_ok($done, '>=', 1, 'of three shells at once some are done');
    is_deeply([ grep { $_->[0] != 0 && $_->[0] != 4 } @runs ], [], '... the others refused');
    is_deeply(limits($id), [ (10 + 2 * $done) x 3, 990 - 2 * $done ], '... each adds once');
}

# who may not
for my $case (
    [ 'settled', sub { $redis->hset($_[0], state => 'settled') } ],
    [ 'paused: restore', sub { $redis->hset($_[0], state => 'paused') } ],
    [ 'lost in Redis: restore', sub { $redis->hset($_[0], state => 'lost') } ],
    [ 'is missing in Redis', sub { $redis->del($_[0] =~ s/activity/stock/r) } ],
    [ 'Redis sells 16 units', sub { $redis->hset($_[0], stock_limit => 16) } ],
    [ 'is over', sub { $redis->hset($_[0], end_ms => 1000) } ],
    [ 'epoch 7', sub { $redis->hset($_[0], epoch => 7) } ],
    [ 'not in Redis', sub { $redis->del($_[0]) } ],
    )
{
    my ($words, $break) = @{$case};
    my $id = $c->sale;
    $break->($c->key('activity', $id));
    my $before = $c->everything;
    my ($exit, undef, $err) = $c->ctl('restock', $id, 5);
    is($exit, 4, "a sale that is \"$words\" is refused");
    like($err, qr/$words/, '... by name');
    is($c->everything, $before, '... and nothing changes');
}

# as many as Redis sells too many are the cure
{
    my $id = $c->sale;
    $redis->hset($c->key('activity', $id), stock_limit => 16);
    $redis->incrby($c->key('stock', $id), 6);
    is(($c->ctl('restock', $id, 6))[0], 0, 'a restock of the units that Redis sells beyond the ledger');
    is_deeply(limits($id), [ 16, 16, 16, 984 ], '... takes them, and adds none');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

# the shop lowered the limit, and the preheat was cut off before it gave back: those units
# are not a restock's to put on sale, for MySQL writes no orders for them
{
    my $id = $c->activity(start => 3600, end => 7200, stock_limit => 10);
    $c->ctl('preheat', $id);
    $c->dbh->do("UPDATE seckill_activities SET stock_limit = 4 WHERE id = $id");
    $c->ctl_dies('after_facts', 'preheat', $id);
    is_deeply(limits($id), [ 4, 4, 4, 990 ], 'Redis sells four of ten');
    unlike(($c->reconcile($id))[1]{limit_note} // '', qr/--finish/, '... reconcile calls it no restock');
    is(($c->ctl('restock', $id, '--finish'))[0], 0, '... and there is none to finish');
    is_deeply(limits($id), [ 4, 4, 4, 990 ], '... so Redis sells four');
    my ($exit, $out, $err) = $c->ctl('restock', $id, 3);
    is($exit, 0, '... a restock') or diag($err);
    is_deeply(limits($id), [ 7, 7, 7, 987 ], '... adds its three');
    is(($c->ctl('preheat', $id))[0], 0, '... and the preheat');
    is_deeply(limits($id), [ 7, 7, 7, 993 ], '... gives back the six');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

# seen by nodes that said sold out, within seckill_refresh
{
    my $id    = $c->sale;
    my $key   = $t->key_file;
    my $nginx = $t->nginx(redis => $c->{redis}, key_file => $key, workers => 2,
        location => 'seckill on; seckill_limit off; seckill_refresh 300ms;');
    my $buy = sub {
        my ($user) = @_;
        my (undef, $token) = $c->ctl('token', $user, '--key-file', $key);
        chomp $token;
        my (undef, $out) = $t->run('curl', '-s', '-m', 5, '-X', 'POST', '-H',
            "Authorization: Bearer $token", "http://127.0.0.1:$nginx->{port}/seckill/$id");
        return JSON->new->utf8->decode($out)->{code};
    };
    is($buy->($_), 0, "user $_ buys") for 1 .. 10;
    is($buy->(20 + $_), 40005, '... then it is sold out') for 1 .. 5;
    is(($c->ctl('restock', $id, 3))[0], 0, 'restocked');
    my $began = Time::HiRes::time();
    ok($t->wait_for(sub { $buy->(30) == 0 }, 5, 'nginx to sell again'), '... nginx sells again');
    cmp_ok(Time::HiRes::time() - $began, '<', 1.5, '... within the refresh and some');
    is($buy->(31), 0, '... the second');
    is($buy->(32), 0, '... the third');
    is($buy->(33), 40005, '... and no more');
}

# F-C7: a connection that breaks on the way.  The run tells what it did, and a second try
# of an operator who believes it adds nothing.
{
    my $proxy = MysqlCut->new($t->dir, $c->{mysql}{sock});
    my $direct = $c->{conf};
    $c->{conf} = $t->conf(redis => $c->{redis}, mysql => { %{ $c->{mysql} }, sock => $proxy->sock });

    my $id = $c->sale;
    $proxy->cut(before => 'RELEASE_LOCK');
    my ($exit, $out, $err) = $c->ctl('restock', $id, 5);
    ok($proxy->was_cut, 'the lock can not be given back');
    is($exit, 0, 'F-C7: that is no failure: all was done') or diag($out, $err);
    like($out, qr/5 units added/, '... and told');
    like($err, qr/all is done; only the lock/, '... with a word about the lock');
    is_deeply(limits($id), [ 15, 15, 15, 985 ], '... five units, everywhere');

    $proxy->cut(after => 'COMMIT');
    ($exit, $out, $err) = $c->ctl('restock', $id, 5);
    ok($proxy->was_cut, 'the answer of the COMMIT is lost');
    is($exit, 0, 'F-C7: the line in the ledger says that it happened') or diag($out, $err);
    like($out, qr/5 units added/, '... and that is told');
    is_deeply(limits($id), [ 20, 20, 20, 980 ], '... five units, everywhere');

    $proxy->cut(before => 'COMMIT');
    ($exit, $out, $err) = $c->ctl('restock', $id, 5);
    is($exit, 3, 'a COMMIT that never arrived');
    like($err, qr/nothing was changed: run it again/, '... is nothing done');
    is_deeply(limits($id), [ 20, 20, 20, 980 ], '... anywhere');
    is(($c->ctl('restock', $id, 5))[0], 0, '... so it is run again');
    is_deeply(limits($id), [ 25, 25, 25, 975 ], '... and adds five');

    # a release, too
    $c->buy($id, 1);
    $c->bury($id, 1);
    $proxy->cut(before => 'RELEASE_LOCK');
    ($exit, $out, $err) = $c->ctl('reconcile', $id, '--grace', '0s', '--repair', 'release', '--yes');
    is($exit, 0, 'a release whose lock can not be given back') or diag($out, $err);
    is($c->products_stock($id), 976, '... is done');

    $c->buy($id, 2);
    $c->bury($id, 2);
    $proxy->cut(after => 'COMMIT');
    ($exit, $out, $err) = $c->ctl('reconcile', $id, '--grace', '0s', '--repair', 'release', '--yes');
    is($exit, 5, 'a release whose COMMIT was not answered may be done');
    like($err, qr/did not say whether .*run the same again/, '... which it says');
    ($exit, $out, $err) = $c->ctl('reconcile', $id, '--grace', '0s', '--repair', 'release', '--yes');
    is($exit, 0, '... the second try') or diag($out, $err);
    is($c->products_stock($id), 977, '... adds nothing twice');

    # one that is done, when its books can't be read once more
    $c->buy($id, 3);
    $c->bury($id, 3);
    my $second = Chaos::Proxy->new(kind => 'mysql', sock => $t->dir . '/second.sock',
        target => $c->{mysql}{sock}, every => 100, from => 2, match => qr/READ ONLY/);
    my $conf = $t->conf(redis => $c->{redis}, mysql => { %{ $c->{mysql} }, sock => $second->{sock} });
    ($exit, $out, $err) = $t->ctl($conf, 'reconcile', $id, '--grace', '0s', '--repair', 'release', '--yes');
    is($second->cuts, 1, 'the connection breaks after the repair');
    $second->stop;
    is($exit, 5, '... that is not "unreachable", for it is done') or diag($out, $err);
    like($out, qr/1 released/, '... which it says');
    like($err, qr/the repair is done/, '... twice');
    is($c->products_stock($id), 978, '... and true');

    # and a preheat
    $id = $c->activity(stock_limit => 10);
    $proxy->cut(after => 'COMMIT');
    ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 5, 'a preheat whose COMMIT was not answered may have taken units');
    like($err, qr/did not say whether .*run the same again/, '... which it says');
    is($c->products_stock($id), 990, '... it has');
    is(($c->ctl('preheat', $id))[0], 0, '... the second try');
    is($c->products_stock($id), 990, '... takes none twice');

    $c->{conf} = $direct;
}

# the row names another product by now: the one that is sold gives the units
{
    my $id = $c->sale;
    my $other = $c->activity(products_stock => 50);
    $c->dbh->do("UPDATE seckill_activities SET product_id = $other WHERE id = $id");
    my ($exit, $out, $err) = $c->ctl('restock', $id, 5);
    is($exit, 0, 'a restock of a sale whose row was edited') or diag($out, $err);
    is($c->products_stock($id), 985, '... takes units of what is sold');
    is($c->products_stock($other), 50, '... not of what the row names');
}

done_testing();
