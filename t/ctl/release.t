# Giving units back: once, whatever dies or runs twice (C10), MySQL first, fenced
# against late commits, and never from thin air.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c     = BooksTest->new;
my $redis = $c->redis;
my $dbh   = $c->dbh;

my @release = ('--repair', 'release', '--yes', '--grace', '0s');

# a sale of 10 with user 8 dead; products.stock is 990
sub dead_sale {
    my (%args) = @_;
    my $units = delete $args{units} // 1;
    my $id = $c->sale(%args);
    $c->buy($id, 1, [ 8, $units ]);
    my $letter = $c->bury($id, 8);
    $c->drain($id);
    return ($id, $letter);
}

sub returned { return $c->column('SELECT returned FROM seckill_activities WHERE id = ?', $_[0]) }

sub record {
    return $c->column('SELECT status FROM seckill_records WHERE activity_id = ? AND user_id = ?', @_);
}

# to the product
{
    my ($id, $letter) = dead_sale();

    my ($exit, undef, $err) = $c->ctl('reconcile', $id, '--repair', 'release');
    is($exit, 4, 'without a word nothing is released');
    like($err, qr/--yes/, '... and it says which word');
    is_deeply($c->books_ledger($id), [], '... and nothing is booked');

    ($exit, my $out, $err) = $c->ctl('reconcile', $id, @release);
    is($exit, 0, 'a dead letter is released') or diag($out, $err);
    is_deeply($c->books_ledger($id), ['release user:8 1 product'], '... in one line of the ledger');
    is($c->products_stock($id), 991, '... one unit went to the product');
    is(returned($id), 1, '... and cannot be sold by the activity again');
    is($c->stock($id), 8, '... Redis keeps its stock');
    is($redis->xlen($c->key('dead', $id)), 0, '... the letter is gone');
    is($c->result($id, 8), '{"success":false,"reason":"released"}', '... the buyer is told');
    is($redis->sismember($c->key('order_users', $id), 8), 1, '... and stays a buyer');
    is(record($id, 8), 2, '... with the tombstone');

    my $before = $c->everything;
    ($exit, $out) = $c->ctl('reconcile', $id, @release, '--user', 8);
    is($exit, 0, 'once more is fine');
    like($out, qr/user 8: already done/, '... and says "already done"');
    is($c->everything, $before, '... and changes nothing');

    # a late replay of the same purchase meets the tombstone
    $redis->xadd($c->key('orders', $id), '*', map { $_->[0] => $_->[1] } [ v => 1 ], [ user => 8 ],
        [ activity => $id ], [ quantity => 1 ], [ epoch => 1 ], [ seq => 2 ],
        [ order_no => '26112915000012300000100000020008' ], [ accepted_ms => 1795953600000 ],
        [ request_id => '' ], [ ext => '' ]);
    $c->drain($id);
    is($c->column("SELECT COUNT(*) FROM seckill_orders WHERE activity_id = $id AND user_id = 8"),
        0, 'a late replay gets no order');
    ($exit, my $one) = $c->reconcile($id);
    is_deeply(BooksTest::found($one), ['closed_letter 8'], '... its letter holds no units');
    is($one->{units}{missing}, 0, '... and none are missing');
    ($exit) = $c->ctl('reconcile', $id, @release);
    is($exit, 0, '... it is cleared away');
    is_deeply($c->books_ledger($id), ['release user:8 1 product'], '... without a second line');
    is($c->products_stock($id), 991, '... or unit');
}

# back on sale
{
    my ($id) = dead_sale(max_quantity => 3, units => 2);
    my $rev = $c->facts($id)->{rev};
    my $control = $redis->hget('seckill:control', 'rev');
    my ($exit, $out, $err) = $c->ctl('reconcile', $id, @release, '--to', 'redis');
    is($exit, 0, 'released to the sale') or diag($out, $err);
    is_deeply($c->books_ledger($id), ['release user:8 2 redis'], '... booked');
    is($c->stock($id), 9, '... both units are on sale again');
    is($c->products_stock($id), 990, '... the product has none of them');
    is($c->facts($id)->{released}, 2, '... the facts know');
    cmp_ok($c->facts($id)->{rev}, '>', $rev, '... rev is raised');
    cmp_ok($redis->hget('seckill:control', 'rev'), '>', $control, '... that of the nodes too');
    is($c->buy($id, 8), '2', '... the released buyer has taken part');

    ($exit) = $c->ctl('reconcile', $id, @release, '--to', 'redis');
    is($c->stock($id), 9, 'once more adds nothing');

    is($c->buy($id, 21 .. 29), '1' x 9, 'others buy all that is left');
    $c->drain($id);
    is($c->column("SELECT SUM(quantity) FROM seckill_orders WHERE activity_id = $id"), 10,
        '... and all of it becomes orders');
    ($exit, my $one) = $c->reconcile($id);
    is($exit, 0, '... with the books in order') or diag(explain($one));
}

# C10: from two shells at once
for my $to (qw(product redis)) {
    my ($id) = dead_sale();
    my @runs = $c->at_once(map { [ 'reconcile', $id, @release, '--to', $to ] } 1 .. 3);
    my @codes = sort map { $_->[0] } @runs;
    is_deeply([ grep { $_ != 0 && $_ != 4 } @codes ], [], "three shells to $to: fine or refused")
        or diag(map { $_->[1] } @runs);
    is_deeply($c->books_ledger($id), ["release user:8 1 $to"], '... one line of the ledger');
    is($c->stock($id), $to eq 'redis' ? 9 : 8, '... plus one exactly once in Redis, or none');
    is($c->products_stock($id), $to eq 'redis' ? 990 : 991, '... or in MySQL');
}

# C10: kill -9 at every step, then once more
for my $to (qw(product redis)) {
    for my $point (qw(before_commit after_commit after_release)) {
        my ($id) = dead_sale();
        $c->ctl_dies($point, 'reconcile', $id, @release, '--to', $to);
        is_deeply($c->books_ledger($id), $point eq 'before_commit' ? [] : ["release user:8 1 $to"],
            '... what was committed is there');

        my ($exit, $one) = $c->reconcile($id);
        is($one->{units}{missing}, 0, '... no unit is missing in between') or diag(explain($one));

        ($exit, my $out, my $err) = $c->ctl('reconcile', $id, @release, '--to', $to);
        is($exit, 0, "run again to $to") or diag($out, $err);
        is_deeply($c->books_ledger($id), ["release user:8 1 $to"], '... one line of the ledger');
        is($c->stock($id), $to eq 'redis' ? 9 : 8, '... Redis has it once, or not at all');
        is($c->products_stock($id), $to eq 'redis' ? 990 : 991, '... the product too');
        is($redis->xlen($c->key('dead', $id)), 0, '... the letter is gone');
        is($c->result($id, 8), '{"success":false,"reason":"released"}', '... the buyer is told');
        ($exit, $one) = $c->reconcile($id);
        is($exit, 0, '... the books are in order') or diag(explain($one));
    }
}

# lost buyers: only as many units as the books miss
{
    my $id = $c->sale;
    $c->buy($id, 1, 2, 3);
    $c->drain($id);
    $redis->sadd($c->key('order_users', $id), 66);

    my $before = $c->everything;
    my ($exit, undef, $err) = $c->ctl('reconcile', $id, @release);
    is($exit, 4, 'a member who took no unit gives none back');
    like($err, qr/1 units were to be given back, but only 0 are missing/, '... and it says so');
    is($c->everything, $before, '... and nothing changes');

    $redis->srem($c->key('order_users', $id), 66);
    $c->buy($id, 67);
    $redis->xdel($c->key('orders', $id), ($c->entries($id))[-1]{id});
    ($exit) = $c->ctl('reconcile', $id, @release);
    is($exit, 0, 'a buyer whose entry is gone is released');
    is_deeply($c->books_ledger($id), ['release user:67 1 product'], '... with the unit');
    is(record($id, 67), 2, '... and a tombstone');
    is($c->products_stock($id), 991, '... that the product has now');
}

# how many units is not known
{
    my $id = $c->sale(max_quantity => 4);
    $c->buy($id, 1, [ 8, 3 ]);
    my @entries = $c->entries($id);
    $redis->xdel($c->key('orders', $id), $entries[1]{id});
    $c->drain($id);

    my ($exit, $one) = $c->reconcile($id, @release);
    is($exit, 1, 'without its units nobody is released');
    like($one->{findings}[0]{done}, qr/not known, give the journals/, '... and it says what helps');
    is_deeply($c->books_ledger($id), [], '... nothing is booked');

    ($exit, $one) = $c->reconcile($id, @release, '--journal', $c->journal('j.log', @entries));
    is($exit, 0, 'a journal knows');
    is_deeply($c->books_ledger($id), ['release user:8 3 product'], '... all three units');
}

# who is in flight, told success, or has an order by now is left alone
{
    my $id = $c->sale;
    $c->buy($id, 1 .. 4);
    $redis->xreadgroup('GROUP', 'seckilld', 't', 'COUNT', 2, 'STREAMS', $c->key('orders', $id), '>');
    my ($exit, $one) = $c->reconcile($id, @release);
    is($exit, 0, 'unread and pending purchases are in flight');
    is_deeply($c->books_ledger($id), [], '... and nobody is released');

    my ($entry) = $c->entries($id);
    $redis->xack($c->key('orders', $id), 'seckilld', $entry->{id});
    my ($code, $json) = $c->ctl_json('reconcile', $id, '--repair', 'release', '--yes', '--grace', '60s');
    is($code, 0, 'so is one that was acknowledged a moment ago');
    is($json->{activities}[0]{in_flight}, 4, '... by the time of its entry');
    is_deeply($c->books_ledger($id), [], '... and nobody is released');

    $redis->set($c->key('result:1', $id),
        '{"success":true,"order_id":5,"order_no":"26112915000012300000100000010001"}');
    ($exit, $one) = $c->reconcile($id, @release);
    is($exit, 1, 'a buyer who was told success is not released');
    like($one->{findings}[0]{done}, qr/told success/, '... and it says why');
    is_deeply($c->books_ledger($id), [], '... nothing is booked');
}

# a late commit: the order came while the books were read
{
    my $id = $c->sale;
    $c->buy($id, 1, 2);
    my $letter = $c->bury($id, 2);
    $c->drain($id);
    my $hold = $c->t->dbh($c->{mysql});
    $hold->begin_work;
    $hold->do("SELECT id FROM seckill_activities WHERE id = $id FOR UPDATE");

    my $pid = fork // die;
    if (!$pid) {
        open STDOUT, '>', $c->t->dir . '/late.out';
        open STDERR, '>&', \*STDOUT;
        my @command = ($c->t->build . '/seckillctl', '-c', $c->{conf}, 'reconcile', $id, @release);
        { no warnings 'exec'; exec { $command[0] } @command; }
        POSIX::_exit(127);
    }
    $c->t->wait_for(sub {
        $dbh->selectrow_array("SELECT COUNT(*) FROM information_schema.processlist "
            . "WHERE info LIKE '%$id FOR UPDATE%' AND id <> CONNECTION_ID() AND time_ms > 200");
    }, 10, 'the release to wait for the lock');
    $hold->do("DELETE FROM seckill_records WHERE activity_id = $id AND user_id = 2");
    $hold->do('INSERT INTO seckill_orders (order_no, user_id, product_id, activity_id, '
        . "seckill_price, epoch, seq) VALUES ('26112915000012300000100000020002', 2, $id, $id, 9.9, 1, 2)");
    $hold->do("UPDATE seckill_activities SET sold = sold + 1 WHERE id = $id");
    $hold->commit;
    waitpid $pid, 0;
    is_deeply($c->books_ledger($id), [], 'an order that came meanwhile is not released');
    is($c->products_stock($id), 990, '... no unit moves');
    is($c->column("SELECT COUNT(*) FROM seckill_records WHERE status = 2 AND activity_id = $id"), 0,
        '... and there is no tombstone');
}

# C9: a repeat that only MySQL notices
{
    my $id = $c->sale;
    $c->buy($id, 1, 1001);
    $c->drain($id);
    my $first = $c->result($id, 1001);
    $c->unseen_loss($id, 1001);
    is($c->buy($id, 1001), '1', 'buyers are lost, 1001 buys again');
    $c->drain($id);
    is($c->result($id, 1001), $first, '... and has the first order');
    is($c->column("SELECT COUNT(*) FROM seckill_orders WHERE activity_id = $id"), 2, '... one');
    my ($exit, $one) = $c->reconcile($id);
    is($exit, 0, '... the extra unit is in the books') or diag(explain($one));
    is_deeply(BooksTest::units($one), [ 10, 7, 2, 0, 0, 0, 1, 0 ], '... as released');
}

# a second purchase that was acknowledged and booked nowhere
{
    my $id = $c->sale;
    $c->buy($id, 1, 2);
    $c->drain($id);
    my $told = $c->result($id, 2);
    $c->unseen_loss($id, 2);
    $c->buy($id, 2);
    $redis->xreadgroup('GROUP', 'seckilld', 't', 'COUNT', 9, 'STREAMS', $c->key('orders', $id), '>');
    $redis->xack($c->key('orders', $id), 'seckilld', ($c->entries($id))[-1]{id});
    my ($exit, $one) = $c->reconcile($id, @release, '--to', 'redis');
    is($exit, 0, 'a second purchase is released') or diag(explain($one));
    is_deeply($c->books_ledger($id), ['surplus seq:1:3 1 redis'], '... as surplus');
    is($c->stock($id), 8, '... its unit is on sale');
    is($c->result($id, 2), $told, '... and the buyer keeps the order');
    is(record($id, 2), 1, '... without a tombstone');
}

# what vanished from Redis with its units has none to give
{
    my $id = $c->sale;
    $c->buy($id, 1);
    my ($entry) = $c->entries($id);
    $c->drain($id);
    my $journal = $c->journal('v.log', { %{$entry}, user => 5, seq => 9,
        order_no => '26112915000012300000100000090005' });
    my ($exit, $one) = $c->reconcile($id, @release, '--journal', $journal, '--to', 'redis');
    is($exit, 0, 'a vanished buyer is given up') or diag(explain($one));
    is_deeply($c->books_ledger($id), ['release user:5 0'], '... without a unit');
    is($c->stock($id), 9, '... Redis has it already');
    is($c->buy($id, 5), '2', '... and the buyer has taken part');
    ($exit) = $c->reconcile($id, '--journal', $journal);
    is($exit, 0, '... the journal is answered');
}

# over is over
{
    my ($id) = dead_sale();
    my $end = time - 1;
    $redis->hset($c->key('activity', $id), end_ms => $end * 1000);
    $dbh->do("UPDATE $_->[0] SET end_time = FROM_UNIXTIME($end) WHERE $_->[1] = $id")
        for [ 'seckill_activities', 'id' ], [ 'seckill_terms', 'activity_id' ];
    my ($exit, undef, $err) = $c->ctl('reconcile', $id, @release, '--to', 'redis');
    is($exit, 4, 'nothing goes back on sale after the end');
    is_deeply($c->books_ledger($id), [], '... nothing is booked');
    ($exit) = $c->ctl('reconcile', $id, @release);
    is($exit, 0, '... to the product it goes');
}

# Redis forgot what it was given: the total brings it again, with nobody left to release
{
    my ($id) = dead_sale();
    $c->ctl('reconcile', $id, @release, '--to', 'redis');
    $redis->hset($c->key('activity', $id), released => 0);
    $redis->decrby($c->key('stock', $id), 1);
    my ($exit, $one) = $c->reconcile($id);
    is($exit, 1, 'a unit that is booked for the sale and not there');
    ok($one->{unfinished}, '... is told');
    is($one->{units}{missing}, 0, '... and counted once');
    is(($c->ctl('reconcile', $id, @release, '--to', 'redis'))[0], 0, '... and brought');
    is($c->stock($id), 9, '... once');
    is($c->column('SELECT COUNT(*) FROM seckill_stock_log WHERE activity_id = ? AND kind = "release"', $id),
        1, '... with no line more');
}

# another run is at it: refused, whatever the work
{
    my ($id, $letter) = dead_sale();
    my $other = $c->t->dbh($c->{mysql});
    $other->do("SELECT GET_LOCK(CONCAT('seckill:', LEFT(SHA1(DATABASE()), 16), ':activity:$id'), 0)");
    my $before = $c->everything;
    for my $args ([ 'reconcile', $id, @release ], [ 'reconcile', $id, '--repair', 'replay' ],
        [ 'restock', $id, 5 ], [ 'settle', $id, '--yes' ], [ 'restore', $id, '--yes' ],
        [ 'dead', 'retry', $id, $letter ], [ 'dead', 'drop', $id, $letter, '--keep-units', '--yes' ])
    {
        my ($exit, undef, $err) = $c->ctl(@{$args});
        is($exit, 4, "two at once: the second $args->[0] is refused");
        like($err, qr/another seckillctl/, '... by name');
    }
    is($c->everything, $before, '... and nothing is changed');
}

# many, in several transactions
{
    my $id = $c->sale(stock_limit => 300);
    $c->buy($id, 1 .. 130);
    $redis->xreadgroup('GROUP', 'seckilld', 't', 'COUNT', 999, 'STREAMS', $c->key('orders', $id), '>');
    $redis->xack($c->key('orders', $id), 'seckilld', map { $_->{id} } $c->entries($id));
    $c->ctl_dies('after_release', 'reconcile', $id, @release, '--to', 'redis');
    my ($exit, $out) = $c->ctl('reconcile', $id, @release, '--to', 'redis');
    is($exit, 0, '130 lost buyers, with a crash in between');
    is($c->stock($id), 300, '... every unit is back once');
    is(scalar @{ $c->books_ledger($id) }, 130, '... each in a line of the ledger');
}

done_testing();
