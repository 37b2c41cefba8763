# Buyers without an order, back into the queue: each once, with the identity that
# is known, and only with units that are there.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../tools/chaos", $FindBin::Bin;

use BooksTest;
use Chaos::Proxy;
use Test::More;

my $c     = BooksTest->new;
my $redis = $c->redis;
my $dbh   = $c->dbh;

my @replay = ('--repair', 'replay', '--grace', '0s');

# what the group acknowledged without anybody writing it
sub lose {
    my ($id, @users) = @_;
    my %lost = map { $_ => 1 } @users;
    $redis->xreadgroup('GROUP', 'seckilld', 't', 'COUNT', 999, 'STREAMS', $c->key('orders', $id), '>');
    $redis->xack($c->key('orders', $id), 'seckilld', map { $_->{id} } grep { $lost{ $_->{user} } }
        $c->entries($id));
    return;
}

sub order { return $dbh->selectrow_hashref('SELECT * FROM seckill_orders WHERE activity_id = ? AND user_id = ?', undef, @_) }
sub orders { return $c->column('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ?', @_) }

# the entry is still there: replayed as it was
{
    my $id = $c->sale(max_quantity => 3);
    $c->buy($id, [ 1, 2 ]);
    my ($entry) = $c->entries($id);
    lose($id, 1);
    is(($c->reconcile($id))[0], 1, 'a purchase is lost');
    my ($exit, $one, $err) = $c->reconcile($id, @replay);
    is($exit, 0, 'replayed') or diag($err, explain($one));
    is($one->{repair}{queued}, 1, '... one is queued');
    is_deeply($c->books_ledger($id), ['replay user:1 0'], '... on record');

    ($exit, $one) = $c->reconcile($id);
    is_deeply(BooksTest::units($one), [ 10, 8, 0, 2, 0, 0, 0, 0 ], '... it is unread, no unit moved');
    ($exit, $one) = $c->reconcile($id, @replay);
    is($one->{repair}{queued}, 0, 'once more queues nothing: it is in flight');
    is($redis->xlen($c->key('orders', $id)), 2, '... the stream has it twice, not more');

    $c->drain($id);
    my $order = order($id, 1);
    is($order->{order_no}, $entry->{order_no}, 'the order has the number that the buyer was told');
    is($order->{seq}, $entry->{seq}, '... and the identity');
    is($order->{quantity}, 2, '... and the units');
    is($order->{request_id}, 'req', '... and the request');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

# only a journal knows it; nothing knows it
{
    my $id = $c->sale;
    $c->buy($id, 1, 2, 3);
    my @entries = $c->entries($id);
    $redis->xdel($c->key('orders', $id), map { $_->{id} } @entries);
    my ($exit, $one) = $c->reconcile($id, @replay, '--user', 2, '--journal',
        $c->journal('j1.log', $entries[1]));
    is($exit, 1, 'one of three, the others stay lost');
    $c->drain($id);
    is(order($id, 2)->{order_no}, $entries[1]{order_no}, 'the journal knows the number');
    is(order($id, 2)->{request_id}, 'r-2', '... and the request');

    ($exit) = $c->reconcile($id, @replay);
    is($exit, 0, 'the rest without a journal');
    $c->drain($id);
    is(orders($id), 3, '... have orders');
    is_deeply([ sort { $a <=> $b } map { order($id, $_)->{seq} } 1, 3 ], [ 4, 5 ], '... with fresh seqs');
    like(order($id, 1)->{order_no}, qr/^\d{15}\d*$id\d{7}0001$/, '... and numbers of the usual form');
    is($c->facts($id)->{seq}, 5, '... that the sale counts');
    is($c->stock($id), 7, '... and no unit moved');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

# a number that somebody else has got meanwhile: after data loss seq begins anew
{
    my $id = $c->sale;
    $c->buy($id, 1);
    my ($entry) = $c->entries($id);
    $c->drain($id);
    $redis->xtrim($c->key('orders', $id), 'MAXLEN', 0);
    my $journal = $c->journal('j2.log', { %{$entry}, user => 9 });
    my ($exit) = $c->reconcile($id, @replay, '--journal', $journal);
    is($exit, 0, 'a vanished purchase whose identity is taken');
    $c->drain($id);
    is(order($id, 9)->{seq}, 2, '... gets a fresh one');
    is($c->stock($id), 8, '... and its unit from the stock');
    is($redis->sismember($c->key('order_users', $id), 9), 1, '... and is a buyer again');
    is(order($id, 1)->{seq}, 1, '... the other order stays');
}

# no units left, or bought again
{
    my $id = $c->sale(stock_limit => 3);
    $c->buy($id, 1, 2);
    my ($entry) = $c->entries($id);
    $c->drain($id);
    my @gone = map { { %{$entry}, user => 50 + $_, seq => 3,
        order_no => sprintf('2611291500001230000010000%03d00%02d', 90 + $_, 50 + $_) } } 1 .. 3;
    my $journal = $c->journal('j3.log', @gone);
    my ($exit, $one) = $c->reconcile($id, @replay, '--journal', $journal);
    is($exit, 1, 'more vanished than units are left');
    is($one->{repair}{queued}, 1, '... one is queued');
    is($one->{repair}{left}, 2, '... two are not');
    like($one->{findings}[1]{done}, qr/no units are left/, '... and it says why');
    is($c->stock($id), 0, '... the stock is 0, not below');
    $c->drain($id);
    is(orders($id), 3, '... and there are as many orders as units');
}

# two shells at once, and a crash behind the first of two
{
    my $id = $c->sale;
    $c->buy($id, 1, 2);
    lose($id, 1, 2);
    my @runs = $c->at_once(map { [ 'reconcile', $id, @replay ] } 1 .. 3);
    is_deeply([ grep { $_->[0] != 0 && $_->[0] != 4 } @runs ], [], 'three shells: fine or refused');
    is($redis->xlen($c->key('orders', $id)), 4, '... each purchase is queued once');
    $c->drain($id);
    is(orders($id), 2, '... and has one order');

    $id = $c->sale;
    $c->buy($id, 1, 2);
    lose($id, 1, 2);
    $c->ctl_dies('after_replay', 'reconcile', $id, @replay);
    my ($exit, $one) = $c->reconcile($id, @replay);
    is($exit, 0, 'run again after a crash');
    is($one->{repair}{queued}, 1, '... the other one is queued');
    $c->drain($id);
    is(orders($id), 2, '... two orders');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

# the answer of the script is lost: nobody may say that nothing was done, and the second
# try tells the nodes of who is in flight
{
    my $id = $c->sale;
    $c->buy($id, 1);
    lose($id, 1);
    my $proxy = Chaos::Proxy->new(kind => 'redis', sock => $c->t->dir . '/replay.sock',
        target => $c->{redis}{sock}, every => 100, match => qr/\$21\r\n\d{21}\r\n/);
    my $conf = $c->t->conf(redis => { %{ $c->{redis} }, sock => $proxy->{sock} }, mysql => $c->{mysql});
    my ($exit, $out, $err) = $c->t->ctl($conf, 'reconcile', $id, @replay);
    is($proxy->cuts, 1, 'the answer of a replay is lost');
    $proxy->stop;
    is($exit, 5, '... it may be queued') or diag($out, $err);
    like($out, qr/user 1, .* -> not known: run it again/, '... which it says');
    is($redis->xlen($c->key('orders', $id)), 2, '... it is');
    my $rev = $c->facts($id)->{rev};
    is(($c->reconcile($id, @replay))[0], 0, '... the second try');
    is($redis->xlen($c->key('orders', $id)), 2, '... queues nothing');
    cmp_ok($c->facts($id)->{rev}, '>', $rev, '... and tells the nodes');
    $c->drain($id);
    is(orders($id), 1, '... one order');
}

# what MySQL is sure of is mended
{
    my $id = $c->sale;
    $c->buy($id, 1 .. 5);
    $c->drain($id);
    my @told = map { $c->result($id, $_) } 0 .. 5;
    $redis->srem($c->key('order_users', $id), 1);
    $redis->del($c->key('result:2', $id));
    $redis->set($c->key('result:3', $id), '{"success":false,"reason":"over_limit"}');
    $redis->set($c->key('result:4', $id), $told[5]);

    my $heard = $c->t->redis_client($c->{redis});
    my %heard;
    $heard->subscribe($c->key('results', $id), sub { my ($u, $r) = split / /, $_[0], 2; $heard{$u} = $r });

    my ($exit, $one) = $c->reconcile($id, @replay);
    is($exit, 0, 'membership and results are mended') or diag(explain($one));
    is($one->{repair}{mended}, 4, '... all four');
    is($redis->sismember($c->key('order_users', $id), 1), 1, '... the buyer is one again');
    is($c->result($id, $_), $told[$_], "... $_ has the result") for 2, 3, 4;
    $heard->wait_for_messages(0.2);
    is($heard{2}, $told[2], '... and who waits is told');
    is($c->buy($id, 1), '2', '... nobody buys twice');
    is($redis->xlen($c->key('orders', $id)), 5, '... nothing is queued');
}

# a settled sale takes nothing back
{
    my $id = $c->sale;
    $c->buy($id, 1);
    lose($id, 1);
    $redis->hset($c->key('activity', $id), state => 'settled');
    my $before = $redis->xlen($c->key('orders', $id));
    my ($exit, undef, $err) = $c->reconcile($id, @replay);
    is($exit, 4, 'a settled sale refuses');
    like($err, qr/settled/, '... by name');
    is($redis->xlen($c->key('orders', $id)), $before, '... and queues nothing');
}

done_testing();
