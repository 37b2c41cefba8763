# reconcile: the equation in units, and every kind of wrongness, each made by hand.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c     = BooksTest->new;
my $redis = $c->redis;
my $dbh   = $c->dbh;

# a sale in the middle: every term of the equation at once
{
    my $id = $c->sale(stock_limit => 100, max_quantity => 5);
    is($c->buy($id, [ 1, 3 ], 2, 3), '111', 'three buy');
    $c->drain($id);
    is($c->buy($id, [ 4, 2 ], 5, 6, 7), '1111', 'four more');

    my ($exit, $one) = $c->reconcile($id);
    is_deeply(BooksTest::units($one), [ 100, 90, 5, 5, 0, 0, 0, 0 ], 'orders and unread');
    is($exit, 0, '... is fine');
    is_deeply(BooksTest::found($one), [], '... and nobody is on the wrong side');
    is($one->{in_flight}, 4, '... four are in flight');

    $redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'COUNT', 2, 'STREAMS',
        $c->key('orders', $id), '>');
    ($exit, $one) = $c->reconcile($id);
    is_deeply(BooksTest::units($one), [ 100, 90, 5, 2, 3, 0, 0, 0 ], 'pending');
    is($exit, 0, '... is fine');

    $c->bury($id, 6);
    ($exit, $one) = $c->reconcile($id);
    is_deeply(BooksTest::units($one), [ 100, 90, 5, 0, 4, 1, 0, 0 ], 'a dead letter');
    is($exit, 0, '... is in its place');
    is_deeply(BooksTest::found($one), ['dead_letter 6'], '... and named');

    ($exit, $one) = $c->reconcile($id, '--repair', 'release', '--yes');
    is($exit, 0, 'released');
    is($one->{repair}{released}, 1, '... one user');
    ($exit, $one) = $c->reconcile($id);
    is_deeply(BooksTest::units($one), [ 100, 90, 5, 0, 4, 0, 1, 0 ], 'a released unit');

    $c->drain($id);
    ($exit, $one) = $c->reconcile($id);
    is_deeply(BooksTest::units($one), [ 100, 90, 9, 0, 0, 0, 1, 0 ], 'all are written');
    is($exit, 0, '... and the books are in order');

    my ($status, $out) = $c->ctl('reconcile', $id);
    like($out, qr/^  missing +0$/m, 'the table says so too');
    ($status, my $json) = $c->ctl_json('reconcile', '--all');
    is($status, 0, '--all');
    is(scalar @{ $json->{activities} }, 1, '... has one activity');
}

# each wrongness on a sale of its own: [ name, what is done to it, findings, missing ]
my @wrongs = (
    [ 'the group acknowledged what nobody wrote', sub {
        my ($id) = @_;
        $c->buy($id, 8);
        $redis->xreadgroup('GROUP', 'seckilld', 't', 'COUNT', 9, 'STREAMS', $c->key('orders', $id), '>');
        $redis->xack($c->key('orders', $id), 'seckilld', ($c->entries($id))[-1]{id});
    }, ['lost 8'], 1 ],
    [ 'an entry was deleted', sub {
        my ($id) = @_;
        $c->buy($id, 8);
        $redis->xdel($c->key('orders', $id), ($c->entries($id))[-1]{id});
    }, ['lost 8'], 1 ],
    [ 'MySQL lost a commit', sub {
        my ($id) = @_;
        $dbh->do("DELETE FROM seckill_orders WHERE activity_id = $id AND user_id = 2");
        $dbh->do("DELETE FROM seckill_records WHERE activity_id = $id AND user_id = 2");
    }, ['lost 2'], 1 ],
    [ 'half a commit: the record alone', sub {
        my ($id) = @_;
        $dbh->do("DELETE FROM seckill_orders WHERE activity_id = $id AND user_id = 2");
    }, [ 'lost 2', 'contradiction 2' ], 1 ],
    [ 'order_users lost a buyer with an order', sub {
        my ($id) = @_;
        $redis->srem($c->key('order_users', $id), 2);
    }, ['not_member 2'], 0 ],
    [ 'order_users lost a buyer on the way', sub {
        my ($id) = @_;
        $c->buy($id, 8);
        $redis->srem($c->key('order_users', $id), 8);
    }, ['not_member 8'], 0 ],
    [ 'a result is gone', sub {
        my ($id) = @_;
        $redis->del($c->key('result:2', $id));
    }, ['no_result 2'], 0 ],
    [ 'a buyer with an order was told failed', sub {
        my ($id) = @_;
        $redis->set($c->key('result:2', $id), '{"success":false,"reason":"over_limit"}');
    }, ['contradiction 2'], 0 ],
    [ 'a buyer was told the order of another', sub {
        my ($id) = @_;
        $redis->set($c->key('result:2', $id), $c->result($id, 1));
    }, ['contradiction 2'], 0 ],
    [ 'a result that is none', sub {
        my ($id) = @_;
        $redis->set($c->key('result:2', $id), 'OK');
    }, ['contradiction 2'], 0 ],
    [ 'failed in MySQL, told success', sub {
        my ($id) = @_;
        $dbh->do("INSERT INTO seckill_records (user_id, activity_id, status) VALUES (9, $id, 2)");
        $redis->sadd($c->key('order_users', $id), 9);
        $redis->set($c->key('result:9', $id), $c->result($id, 1));
    }, ['contradiction 9'], 0 ],
    [ 'an order and a tombstone', sub {
        my ($id) = @_;
        $dbh->do("UPDATE seckill_records SET status = 2 WHERE activity_id = $id AND user_id = 2");
    }, ['contradiction 2'], 0 ],
    [ 'a tombstone whose letter is gone', sub {
        my ($id) = @_;
        $c->buy($id, 8);
        $redis->xdel($c->key('dead', $id), $c->bury($id, 8));
    }, ['unbooked 8'], 1 ],
    [ 'a letter without a tombstone', sub {
        my ($id) = @_;
        $c->buy($id, 8);
        $c->bury($id, 8, tombstone => 0);
    }, [ 'dead_letter 8', 'contradiction 8' ], 0 ],
    [ 'stock went up by itself', sub {
        my ($id) = @_;
        $redis->incrby($c->key('stock', $id), 2);
    }, [], -2 ],
    [ 'stock went down by itself', sub {
        my ($id) = @_;
        $redis->decrby($c->key('stock', $id), 3);
    }, [], 3 ],
    [ 'somebody wrote an order by hand', sub {
        my ($id) = @_;
        $c->order($id, 9, epoch => 0);
    }, [ 'not_member 9', 'no_result 9' ], -1 ],
    [ 'a second purchase that nobody booked', sub {
        my ($id) = @_;
        $c->unseen_loss($id, 2);
        $c->buy($id, 2);
        $redis->xreadgroup('GROUP', 'seckilld', 't', 'COUNT', 9, 'STREAMS', $c->key('orders', $id), '>');
        $redis->xack($c->key('orders', $id), 'seckilld', ($c->entries($id))[-1]{id});
    }, ['second 2'], 1 ],
    [ 'stock_limit was edited', sub {
        my ($id) = @_;
        $dbh->do("UPDATE seckill_activities SET stock_limit = 12 WHERE id = $id");
    }, [], 0 ],
);

for my $case (@wrongs) {
    my ($name, $break, $found, $missing) = @{$case};
    my $id = $c->sale;

    is($c->buy($id, 1, 2, 3), '111', 'three buy');
    $c->drain($id);
    my ($exit, $one) = $c->reconcile($id);
    is($exit, 0, 'a sale in order') or diag(explain($one));

    $break->($id);
    ($exit, $one) = $c->reconcile($id);
    is($exit, 1, $name) or diag(explain($one));
    is_deeply(BooksTest::found($one), $found, '... names who is on the wrong side');
    is($one->{units}{missing}, $missing, '... and the units');

    my $before = $c->everything;
    $c->reconcile($id);
    is($c->everything, $before, '... and changes nothing by itself');
}

# journals: what a node accepted and nobody knows
{
    my $id = $c->sale;
    $c->buy($id, 1 .. 6);
    my @entries = $c->entries($id);
    $c->drain($id);

    my %gone = (%{ $entries[2] }, user => 77, seq => 90,
        order_no => '26112915000012300000100000900077');
    my $journal = $c->journal('node1.log', @entries[ 0 .. 2 ], \%gone);
    my $other = $c->journal('node2.log', @entries[ 3 .. 5 ],
        { %gone, user => 78, seq => 91, activity => 999 },
        { %gone, user => 79, seq => 92, accepted_ms => 4e12 });
    open my $fh, '>>', $other or die $!;
    print {$fh} "2026-11-29T15:00:00+00:00 activity=$id user=80 se";
    close $fh;

    my ($exit, $one, $err) = $c->reconcile($id, '--journal', $journal, $other);
    is($exit, 5, 'a purchase that vanished, and half a line');
    is_deeply(BooksTest::found($one), ['vanished 77'], '... is named, and nobody else');
    is($one->{units}{missing}, 0, '... while Redis misses no unit');
    is($one->{findings}[0]{seq}, 90, '... with its identity');
    like($err, qr/node2\.log:13 is no whole line with a true signature/, 'half a line is told');

    ($exit) = $c->reconcile($id, '--journal', '/nowhere');
    is($exit, 2, 'a journal that is not there is exit 2');
}

# a replica was promoted that missed the last purchases (B11)
{
    my $id = $c->sale;
    $c->buy($id, 1 .. 6);
    $c->drain($id);
    my @dump = map { [ $_, $redis->dump($_) ] } map { $c->key($_, $id) } qw(activity stock order_users orders);
    $c->buy($id, 7 .. 10);
    $c->drain($id);
    $redis->restore($_->[0], 0, $_->[1], 'REPLACE') for @dump;

    my ($exit, $one) = $c->reconcile($id);
    is($exit, 1, 'Redis went back in time');
    ok($one->{behind}, '... it is behind MySQL');
    is_deeply(BooksTest::units($one), [ 10, 4, 10, 0, 0, 0, 0, -4 ], '... with four units too many');
    is_deeply(BooksTest::found($one), [ map {"not_member $_"} 7 .. 10 ], '... and four buyers too few');
    my $before = $c->everything;
    is(($c->reconcile($id, '--repair', 'release', '--yes'))[0], 4, '... nothing is repaired');
    is($c->everything, $before, '... or changed');

    is(($c->ctl('restore', $id, '--yes'))[0], 0, '... but restored');
    ($exit, $one) = $c->reconcile($id);
    is($exit, 0, '... and in order') or diag(explain($one));
    is($c->stock($id), 0, '... with nothing left to sell');
}

# Redis lost the sale: said, not guessed
{
    my $id = $c->sale;
    $c->buy($id, 1);
    my @entries = $c->entries($id);
    $c->drain($id);
    $redis->flushall;
    my ($exit, $one) = $c->reconcile($id, '--journal',
        $c->journal('lost.log', @entries, { %{ $entries[0] }, user => 5, seq => 2 }));
    is($exit, 1, 'without facts the answer is no');
    is($one->{units}, undef, '... and the units are not known');
    is_deeply(BooksTest::found($one), ['vanished 5'], '... but journals speak');
    my $before = $c->everything;
    ($exit) = $c->reconcile($id, '--repair', 'release', '--yes');
    is($exit, 4, '... and nothing is repaired');
    is($c->everything, $before, '... or changed');
}

is(($c->ctl('reconcile', 999))[0], 1, 'an activity that is nowhere is exit 1');

done_testing();
