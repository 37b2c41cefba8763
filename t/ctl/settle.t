# settle: after the end, once, and only when nothing of the sale is on its way.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c     = BooksTest->new;
my $redis = $c->redis;

sub over { $redis->hset($c->key('activity', $_[0]), end_ms => time * 1000 - 1000); return }
sub row  { return [ $c->dbh->selectrow_array(
    'SELECT status, sold, returned FROM seckill_activities WHERE id = ?', undef, @_) ] }

# not yet
{
    my $id = $c->sale;
    $c->buy($id, 1, 2, 3);
    my $refused = sub {
        my ($words) = @_;
        my $before = $c->everything;
        my ($exit, undef, $err) = $c->ctl('settle', $id, '--yes');
        is($exit, 4, "refused: $words");
        like($err, qr/$words/, '... and says why');
        is($c->everything, $before, '... and changes nothing');
    };
    $refused->('has not ended');
    over($id);
    $refused->('not written yet');
    $redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'COUNT', 9, 'STREAMS', $c->key('orders', $id), '>');
    $refused->('not written yet');
    my $letter = $c->bury($id, 3);
    $c->drain($id);
    $refused->('dead letters');
    $c->ctl('reconcile', $id, '--repair', 'release', '--yes', '--grace', '0s');
    $c->dbh->do("UPDATE seckill_activities SET seq_seen = 9 WHERE id = $id");
    $refused->('lost data');
    $c->dbh->do("UPDATE seckill_activities SET seq_seen = 3 WHERE id = $id");
    $redis->hset($c->key('activity', $id), state => 'paused');
    $refused->('lost data');
    $redis->hset($c->key('activity', $id), state => 'open', seq => 0);
    $c->dbh->do("UPDATE seckill_activities SET seq_seen = 0 WHERE id = $id");
    $refused->('lost data');
    $redis->hset($c->key('activity', $id), seq => 3);

    my ($exit, undef, $err) = $c->ctl('settle', $id);
    is($exit, 4, 'without a word it is refused');
    like($err, qr/--yes/, '... and says which');

    # two orders, one unit released before: seven go back now
    is($c->products_stock($id), 991, 'one unit was released before');
    my $now = time * 1000;
    ($exit, my $json, $err) = $c->ctl_json('settle', $id, '--yes');
    is($exit, 0, 'settled') or diag($err);
    is_deeply([ @{$json}{qw(sold unsold)} ], [ 2, 7 ], '... two are sold, seven go back');
    is($c->products_stock($id), 998, '... to the product, which misses what was sold');
    is_deeply(row($id), [ 2, 2, 8 ], '... the activity has ended');
    is_deeply($c->books_ledger($id), [ 'release user:3 1 product', 'settle settle 7' ],
        '... on record');
    is($c->facts($id)->{state}, 'settled', '... Redis knows');
    is($c->buy($id, 1, 9), '25', '... nobody buys, a buyer hears so');

    my @keys = map { $c->key($_, $id) } qw(activity stock order_users orders result:1 result:3);
    for my $key (@keys) {
        my $ttl = $redis->pttl($key);
        my $days = $key =~ /activity/ ? 30 : 1;
        ok($ttl > $days * 86_400_000 - 100_000 && $ttl < $days * 86_400_000 + 310_000,
            "$key expires in days: $days ($ttl)");
    }
    is($redis->ttl('seckill:control'), -1, 'the control hash stays');

    my $before = $c->everything;
    ($exit, $json) = $c->ctl_json('settle', $id, '--yes');
    is($exit, 0, 'again is fine');
    ok($json->{already}, '... it was done before');
    is($json->{unsold}, 7, '... with the same numbers');
    is($c->everything, $before, '... and changes nothing');

    $redis->del(@keys);
    ($exit, $json) = $c->ctl_json('settle', $id, '--yes');
    is($exit, 0, 'also when the keys are gone');
    is($redis->sismember('seckill:activities', $id), 0, '... then it is not registered any more');
    is($c->products_stock($id), 998, '... and no unit moves');
    is(($c->ctl('restore', $id, '--yes'))[0], 4, 'a settled sale is not restored');
}

# two at once: the units go back once
{
    my $id = $c->sale;
    $c->buy($id, 1);
    $c->drain($id);
    over($id);
    my @runs = $c->at_once(([ 'settle', $id, '--yes' ]) x 3);
    is_deeply([ grep { $_->[0] != 0 && $_->[0] != 4 } @runs ], [], 'three at once: fine or refused');
    is($c->products_stock($id), 999, '... nine units went back once');
    is_deeply($c->books_ledger($id), ['settle settle 9'], '... in one line');
}

# a run that was cut off behind each step
{
    my $id = $c->sale;
    $c->buy($id, 1);
    $c->drain($id);
    over($id);
    $c->dbh->do('CREATE TRIGGER no_update BEFORE UPDATE ON products FOR EACH ROW '
        . "SIGNAL SQLSTATE '45000'");
    my ($exit) = $c->ctl('settle', $id, '--yes');
    cmp_ok($exit, '>', 2, 'MySQL says no behind the first step');
    is($c->facts($id)->{state}, 'settled', '... Redis is closed');
    is(row($id)->[0], 1, '... MySQL is not');
    is($redis->ttl($c->key('stock', $id)), -1, '... and nothing expires');
    $c->dbh->do('DROP TRIGGER no_update');
    is(($c->ctl('settle', $id, '--yes'))[0], 0, 'run again');
    is_deeply(row($id), [ 2, 1, 9 ], '... it is whole');
    cmp_ok($redis->ttl($c->key('activity', $id)), '>', 0, '... with the expiry');

    $redis->persist($c->key('activity', $id));
    $redis->persist($c->key('result:1', $id));
    is(($c->ctl('settle', $id, '--yes'))[0], 0, 'cut off before the expiry');
    cmp_ok($redis->ttl($c->key('result:1', $id)), '>', 0, '... it is set');
    is($c->products_stock($id), 999, '... and no unit moves twice');
}

# a purchase that comes after the settle gets no order: its unit went back
{
    my $id = $c->sale;
    $c->buy($id, 1);
    my ($entry) = $c->entries($id);
    $c->drain($id);
    over($id);
    $c->ctl('settle', $id, '--yes');
    my ($sold, $returned, $limit) = $c->dbh->selectrow_array(
        "SELECT sold, returned, stock_limit FROM seckill_activities WHERE id = $id");
    is($sold + $returned, $limit, 'the guard of MySQL has nothing left to sell');
}

# never preheated through the ledger: no units are made up
{
    my $id = $c->sale;
    $c->buy($id, 1);
    $c->drain($id);
    $c->dbh->do("DELETE FROM seckill_stock_log WHERE activity_id = $id");
    over($id);
    is(($c->ctl('settle', $id, '--yes'))[0], 0, 'units that were never reserved');
    is($c->products_stock($id), 990, '... do not go back');

    $id = $c->sale;
    # a row that is not judged: the CHECK would not have it otherwise
    $c->dbh->do("UPDATE seckill_activities SET sold = 11, reserved = NULL WHERE id = $id");
    over($id);
    my ($exit, undef, $err) = $c->ctl('settle', $id, '--yes');
    is($exit, 4, 'more sold than reserved is refused');
    like($err, qr/more units than the ledger.*nothing was changed/, '... by name');
    is($c->products_stock($id), 990, '... and moves nothing');
    is($c->facts($id)->{state}, 'open', '... in Redis neither: it is proved before the first write');
}

# F-D7: a buyer in Redis of whom MySQL knows nothing
{
    my $id = $c->sale;
    $c->buy($id, 1 .. 3);
    $c->drain($id);
    # an entry that somebody deleted: no order, no letter, no word
    $c->buy($id, 4);
    $redis->xdel($c->key('orders', $id), ($c->entries($id))[-1]{id});
    over($id);
    my $before = $c->everything;
    my ($exit, undef, $err) = $c->ctl('settle', $id, '--yes');
    is($exit, 4, 'F-D7: a buyer without an order: refused');
    like($err, qr/1 buyers of activity $id have no order: "reconcile $id"/, '... and says what to do');
    is($c->everything, $before, '... and nothing is changed');

    local $c->{conf} = $c->t->conf(redis => $c->{redis}, mysql => $c->{mysql},
        'consumer.settle_after' => '100ms', 'consumer.clock_trust_start' => '0s');
    $c->start;
    $c->t->wait_log($c->{daemon}, qr/level=error msg="sale is not settled, buyers of it have no order" activity=$id buyers=1 cure=/);
    is(row($id)->[0], 1, '... seckilld waits, with an alarm');
    $c->halt;

    ($exit, my $out, $err) = $c->ctl('reconcile', $id, '--repair', 'release', '--yes', '--grace', '0s');
    like($out, qr/1 released \(1 units\), 0 left/, 'released') or diag($out, $err);
    is(($c->ctl('settle', $id, '--yes'))[0], 0, '... then it is settled');

    my $other = $c->sale;
    $c->buy($other, 1);
    $redis->xdel($c->key('orders', $other), ($c->entries($other))[-1]{id});
    over($other);
    is(($c->ctl('settle', $other, '--yes'))[0], 4, 'the same again');
    is(($c->ctl('settle', $other, '--yes', '--missing-ok'))[0], 0, '... or on somebody\'s word');
}

is(($c->ctl('settle', 999, '--yes'))[0], 4, 'an activity that is nowhere is refused');

# the units have nowhere to go: that is found before Redis closes the sale
for my $case ([ 'is gone', 'DELETE FROM products WHERE id = %d' ],
              [ 'is full', 'UPDATE products SET stock = 4294967295 WHERE id = %d' ])
{
    my ($words, $break) = @{$case};
    my $id = $c->sale(end => 3600);
    $c->buy($id, 1);
    $c->drain($id);
    $c->dbh->do("UPDATE seckill_activities SET end_time = UTC_TIMESTAMP() - INTERVAL 5 SECOND WHERE id = $id");
    $c->redis->hset($c->key('activity', $id), end_ms => (time - 5) * 1000);
    $c->dbh->do(sprintf $break, $id);
    my $before = $c->everything;
    my ($exit, $out, $err) = $c->ctl('settle', $id, '--yes');
    is($exit, 4, "a product that $words: the settle is refused") or diag($out, $err);
    like($err, qr/product $id is not in products, or has no room for 9 units; nothing was changed/,
        '... by name');
    is($c->everything, $before, '... and nothing was changed');
    $c->dbh->do("REPLACE INTO products (id, name, stock, price) VALUES ($id, 'again', 7, 19.90)");
    is(($c->ctl('settle', $id, '--yes'))[0], 0, '... with a product that has room it is done');
    is($c->products_stock($id), 16, '... which gets the units');
}

done_testing();
