# Terms: what was promised when a sale was put up is what its buyers get (F-B1).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c = BooksTest->new;
my $sql = $c->t->root . '/sql';

# from version 0.1.0: epochs without terms get those of the row as it is
{
    my $id = $c->activity(epoch => 3, max_quantity => 2, seckill_price => '8.00');
    $c->order($id, 1, epoch => 1);
    $c->dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, '
        . "actor) VALUES ($id, $id, 2, 'restore', 'redis', 0, 'test')");
    my $new = $c->activity;

    my ($exit, $out, $err) = $c->ctl('schema', 'apply', '--dir', $sql);
    is($exit, 0, 'F-B1: schema apply after a tool of version 0.1.0 made epochs');
    like($err, qr/3 epochs had no terms/, '... says how many it found');
    is_deeply($c->terms($id), [ map {"$_ $id 8.00 2 migration"} 1 .. 3 ],
        '... of the row, of its orders and of the ledger');
    is_deeply($c->terms($new), [], '... and none for what was never put up');

    $c->dbh->do("UPDATE seckill_activities SET seckill_price = 99, epoch = 4 WHERE id = $id");
    ($exit, $out, $err) = $c->ctl('schema', 'apply', '--dir', $sql);
    like($err, qr/1 epochs had no terms/, 'again: one more');
    is_deeply($c->terms($id), [ (map {"$_ $id 8.00 2 migration"} 1 .. 3), "4 $id 99.00 2 migration" ],
        '... and those that were written stay as they are');

    my $before = $c->everything;
    $c->dbh->do('DELETE FROM seckill_schema WHERE version >= 5');
    ($exit, $out, $err) = $c->ctl('schema', 'apply', '--dir', $sql);
    is($exit, 0, 'the file itself can be run again') or diag($err);
    is($c->everything, $before, '... and changes nothing');
}

sub row_epoch { my ($id) = @_; return $c->column('SELECT epoch FROM seckill_activities WHERE id = ?', $id) }

sub edit { my ($id, $set) = @_; $c->dbh->do("UPDATE seckill_activities SET $set WHERE id = $id"); return }

# each change of a term before the start is another epoch, the limit is none
{
    my $id = $c->activity(max_quantity => 2);
    is(($c->ctl('preheat', $id))[0], 0, 'preheated');
    is_deeply($c->terms($id), ["1 $id 9.90 2 preheat"], '... with its terms');

    my $epoch = 1;
    for my $set ('seckill_price = 8.00', 'max_quantity = 3', 'by_registration = 1',
        'start_time = start_time + INTERVAL 1 SECOND', 'end_time = end_time + INTERVAL 1 SECOND')
    {
        edit($id, $set);
        is(($c->ctl('preheat', $id))[0], 0, "before the start preheat takes an edit: $set");
        $epoch++;
        is($c->facts($id)->{epoch}, $epoch, '... as another epoch in Redis');
        is(row_epoch($id), $epoch, '... and in MySQL');
        is(scalar @{ $c->terms($id) }, $epoch, '... with terms of its own');
        is(($c->ctl_json('preheat', $id))[1]{status}, 'unchanged', '... again: nothing');
    }
    edit($id, 'stock_limit = 50');
    is(($c->ctl('preheat', $id))[0], 0, 'another limit');
    is($c->facts($id)->{epoch}, $epoch, '... is no other epoch');
    is($c->products_stock($id), 950, '... and moves its units');
    is($c->facts($id)->{stock_limit}, 50, '... also in Redis');
}

# cut off after each step, finished by a second preheat
for my $point (qw(after_terms after_facts after_epoch)) {
    my $id = $c->activity(stock_limit => 10);
    my $other = $c->activity(products_stock => 10);
    $c->ctl('preheat', $id);
    edit($id, "seckill_price = 5.00, product_id = $other, stock_limit = 8");
    $c->ctl_dies($point, 'preheat', $id);
    is_deeply($c->terms($id), [ "1 $id 9.90 1 preheat", "2 $other 5.00 1 preheat" ],
        "cut off $point: the terms are there first");
    is($c->facts($id)->{epoch}, $point eq 'after_terms' ? 1 : 2, '... then Redis has them');
    is(row_epoch($id), $point eq 'after_epoch' ? 2 : 1, '... then the row has the epoch');
    is($c->products_stock($other), 2, '... units are taken first');
    is($c->products_stock($id), $point eq 'after_epoch' ? 1000 : 990, '... and given back last');

    my ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 0, '... a second preheat finishes it') or diag($err);
    is_deeply([ row_epoch($id), @{ $c->facts($id) }{qw(epoch price stock_limit)} ],
        [ 2, 2, '5.00', 8 ], '... both have the epoch');
    is($c->products_stock($id), 1000, '... the old product has its units');
    is($c->products_stock($other), 2, '... the new one gave them once');
}

# cut off, then edited once more: what was about to be promised is left alone
{
    my $id = $c->activity;
    $c->ctl('preheat', $id);
    edit($id, 'seckill_price = 5.00');
    $c->ctl_dies('after_terms', 'preheat', $id);
    edit($id, 'seckill_price = 6.00');
    is(($c->ctl('preheat', $id))[0], 0, 'cut off, edited, and put up');
    is_deeply($c->terms($id), [ "1 $id 9.90 1 preheat", "2 $id 5.00 1 preheat",
        "3 $id 6.00 1 preheat" ], '... terms never change');
    is($c->facts($id)->{epoch}, 3, '... and Redis has the last');
}

# cut off after Redis had it, and the start passes: the daemon finishes it, or preheat does
for my $who (qw(daemon preheat)) {
    my $id = $c->activity(start => 3600, stock_limit => 10);
    $c->ctl('preheat', $id);
    edit($id, 'seckill_price = 5.00, start_time = UTC_TIMESTAMP() + INTERVAL 2 SECOND, stock_limit = 6');
    $c->ctl_dies('after_facts', 'preheat', $id);
    $c->t->wait_for(sub { $c->buy($id, 1) eq '1' }, 6, 'the start');
    $c->buy($id, 2);
    if ($who eq 'daemon') {
        $c->start;
        $c->t->wait_for(sub { row_epoch($id) == 2 }, 10, 'the daemon to finish it');
        pass('the daemon finishes a preheat that was cut off');
        $c->t->wait_log($c->{daemon}, qr/preheat that was cut off is finished" activity=$id epoch=2/);
        $c->t->wait_for(sub { $c->column('SELECT seq_seen FROM seckill_activities WHERE id = ?', $id) == 2 }, 5,
            'the seq of the new epoch');
        pass('... and watches the new epoch from then on');
    }
    my ($exit, $json, $err) = $c->ctl_json('preheat', $id);
    is($exit, $who eq 'daemon' ? 4 : 0, 'a preheat after that');
    is($json->{status}, 'finished', '... finished it') if $who eq 'preheat';
    is(row_epoch($id), 2, '... the row has the epoch');
    is($c->products_stock($id), 994, '... and the product its units') if $who eq 'preheat';
    $c->drain($id);
    is_deeply($c->dbh->selectcol_arrayref('SELECT seckill_price FROM seckill_orders WHERE activity_id = ?',
        undef, $id), [ '5.00', '5.00' ], '... the orders are by the new terms');
    is(($c->reconcile($id))[0], $who eq 'preheat' ? 0 : 1, '... reconcile');
    $c->halt if $who eq 'daemon';
}

# edited after the start: named everywhere, and nothing of it reaches a buyer
{
    my $id = $c->sale;
    $c->buy($id, 1, 2);
    is(($c->reconcile($id))[0], 0, 'a sale as promised is in order');
    edit($id, 'seckill_price = 99.00, end_time = end_time + INTERVAL 1 HOUR');

    my $before = $c->everything;
    my ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 4, 'F-B1: preheat after the start refuses an edit');
    like($err, qr/row was edited: price 9\.90, now 99\.00; end .* now /, '... and names it');
    is($c->everything, $before, '... nothing is changed');

    $c->drain($id);
    is_deeply($c->dbh->selectcol_arrayref('SELECT seckill_price FROM seckill_orders WHERE activity_id = ?',
        undef, $id), [ '9.90', '9.90' ], 'F-B1: the orders have the promised price');
    like(($c->ctl('order', 'show', '--user', 1, '--activity', $id))[1], qr/^seckill_price\s+9\.90$/m,
        '... which order show shows');

    ($exit, my $one) = $c->reconcile($id);
    is($exit, 1, 'reconcile is not content');
    like($one->{edited}, qr/price 9\.90, now 99\.00/, '... and says why');
    like(($c->ctl('reconcile', $id))[1], qr/row was edited: price 9\.90, now 99\.00/, '... also as text');
    like(($c->ctl('status', $id))[1], qr/^  edited +price 9\.90, now 99\.00; end /m, 'status names it');
    like(($c->ctl_json('status', $id))[1]{activities}[0]{edited}, qr/price/, '... also as JSON');
    my ($line) = grep { $_->{check} eq 'terms' } @{ ($c->ctl_json('doctor', $id))[1]{checks} };
    is($line->{level}, 'wrong', 'doctor calls it wrong');
    like($line->{found}, qr/price 9\.90, now 99\.00/, '... and names it');

    # more units come from the product that is sold
    my $other = $c->activity;
    edit($id, "product_id = $other");
    is(($c->ctl('restock', $id, 5))[0], 0, 'a restock while the row names another product');
    is($c->products_stock($other), 1000, '... takes nothing from that one');
    is($c->products_stock($id), 985, '... but from the promised one');
    edit($id, "product_id = $id");

    # a loss: what was promised goes on in the next epoch
    $c->redis->del(map { $c->key($_, $id) } qw(activity stock order_users orders));
    ($exit, $out, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 0, 'restore') or diag($err);
    is($c->facts($id)->{price}, '9.90', 'F-B1: restore copies the last terms, not the row');
    is($c->terms($id)->[-1], "2 $id 9.90 1 restore", '... into an epoch of its own');
    $c->buy($id, 3);
    $c->drain($id);
    is($c->column('SELECT seckill_price FROM seckill_orders WHERE user_id = 3 AND activity_id = ?', $id), '9.90',
        '... by which orders are written');

    edit($id, 'seckill_price = 9.90, end_time = end_time - INTERVAL 1 HOUR');
    is(($c->reconcile($id))[0], 0, 'set back: all is in order');
    unlike(($c->ctl('status', $id))[1], qr/edited/, '... and status is silent');
    edit($id, 'seckill_price = 99.00, status = 2');
    unlike(($c->ctl('status', $id))[1], qr/edited/, 'a settled sale is not named');
}

# restore after a preheat that was cut off before Redis had its terms
{
    my $id = $c->activity(start => 2, stock_limit => 10);
    $c->ctl('preheat', $id);
    edit($id, 'seckill_price = 1.00');
    $c->ctl_dies('after_terms', 'preheat', $id);
    $c->t->wait_for(sub { $c->buy($id, 1) eq '1' }, 6, 'the start');
    $c->drain($id);
    $c->redis->del(map { $c->key($_, $id) } qw(activity stock order_users orders));
    is(($c->ctl('restore', $id, '--yes'))[0], 0, 'restore after terms that Redis never had');
    is($c->facts($id)->{price}, '9.90', '... goes on by those in force');
    is_deeply($c->terms($id), [ "1 $id 9.90 1 preheat", "2 $id 1.00 1 preheat", "3 $id 9.90 1 restore" ],
        '... in an epoch above all');
}

# no terms amid a sale: preheat writes them down once the row says what buyers saw
{
    my $id = $c->sale;
    $c->buy($id, 1);
    $c->dbh->do("DELETE FROM seckill_terms WHERE activity_id = $id");
    edit($id, 'seckill_price = 99.00');
    is(($c->reconcile($id))[0], 1, 'a sale without terms is not in order');
    like(($c->ctl('status', $id))[1], qr/^  terms +missing, orders wait/m, '... status says so');
    my ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 4, '... a row that is not what Redis shows is refused');
    like($err, qr/set the row to what buyers were shown/, '... and it says what to do');
    edit($id, 'seckill_price = 9.90');
    is(($c->ctl('preheat', $id))[0], 0, '... preheat takes it');
    is_deeply($c->terms($id), ["1 $id 9.90 1 preheat"], '... as its terms');
    $c->drain($id);
    is(scalar @{ $c->dbh->selectcol_arrayref('SELECT id FROM seckill_orders WHERE activity_id = ?', undef, $id) }, 1,
        '... and the order is written');
}

# a tool of version 0.1.0 beside: it changes facts and leaves the epoch
{
    my $id = $c->activity;
    $c->ctl('preheat', $id);
    edit($id, 'seckill_price = 8.00');
    $c->redis->hset($c->key('activity', $id), price => '8.00');
    like(($c->ctl('status', $id))[1], qr/^  edited +in Redis: price 9\.90, now 8\.00/m,
        'facts that are not by their terms are named, also before the start');
    is(($c->ctl('preheat', $id))[0], 0, '... a preheat of this version');
    is($c->terms($id)->[-1], "2 $id 8.00 1 preheat", '... makes them terms');
    is($c->facts($id)->{epoch}, 2, '... of an epoch of their own');

    my $runs = $c->sale;
    $c->redis->hset($c->key('activity', $runs), price => '1.00');
    my ($exit, $out, $err) = $c->ctl('preheat', $runs);
    is($exit, 4, 'after the start it is refused');
    like($err, qr/Redis shows something else than its terms: price 9\.90, now 1\.00/, '... and named');
    is(($c->reconcile($runs))[0], 1, '... by reconcile too');
}

# F-B5: settled without a sale, then put up again
{
    my $id = $c->activity(start => -60, end => 2, stock_limit => 10);
    $c->ctl('preheat', $id, '--late');
    sleep 3;
    is(($c->ctl('settle', $id, '--yes'))[0], 0, 'settled without a sale');
    $c->redis->del(grep {/\{$id\}/} $c->redis->keys('*'));
    $c->redis->srem('seckill:activities', $id);
    edit($id, 'status = 0, start_time = UTC_TIMESTAMP() + INTERVAL 1 HOUR, end_time = UTC_TIMESTAMP() + INTERVAL 2 HOUR');
    my $before = $c->everything;
    my ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 4, 'F-B5: a settled activity is not put up again');
    like($err, qr/was settled without a sale: .* insert a new activity/, '... it says why, and what to do');
    is($c->everything, $before, '... nothing is written');
}

# F-C2: a lower limit, Redis can't write, the start passes
{
    my $id = $c->activity(start => 3, stock_limit => 10, products_stock => 10);
    $c->ctl('preheat', $id);
    edit($id, 'stock_limit = 4');
    $c->redis->config('SET', 'maxmemory', 1);
    my ($exit, $out, $err) = $c->ctl('preheat', $id);
    isnt($exit, 0, 'F-C2: a lower limit while Redis can not write');
    like($err, qr/nothing was changed/, '... it says what it did: nothing');
    is($c->products_stock($id), 0, '... MySQL gave nothing back before Redis sold less');
    $c->redis->config('SET', 'maxmemory', 0);
    $c->t->wait_for(sub { $c->buy($id, 1) eq '1' }, 6, 'the start');
    ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 4, '... after the start');
    like($err, qr/put up with 10 units and its row says 4/, '... the limit is named');
    is($c->products_stock($id), 0, '... and stays');
    edit($id, 'stock_limit = 10');
    $c->buy($id, 2 .. 12);
    $c->drain($id);
    is($c->column('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ?', $id), 10,
        '... all that were accepted have their orders, and no more');
    is(($c->reconcile($id))[0], 0, '... and the books agree');
}

# a later step fails: what was done and what not is said, and the second try adds nothing
{
    my $id = $c->activity(stock_limit => 10);
    $c->ctl('preheat', $id);
    edit($id, 'stock_limit = 30, seckill_price = 3.00');
    my $before = $c->everything;
    $c->redis->config('SET', 'maxmemory', 1);
    my ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 4, 'Redis can not write: refused');
    like($err, qr/Redis: .*OOM.*activity $id: nothing was changed/s, '... with its reason');
    is($c->everything, $before, '... before the first write');
    $c->redis->config('SET', 'maxmemory', 0);

    $c->redis->acl('SETUSER', 'default', '-sadd');
    ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 5, 'Redis refuses the second step: partly done');
    like($err, qr/MySQL has the terms of epoch 2 and took 20 units from the product, Redis is as it was/,
        '... it says exactly what is done');
    ($exit, $out, $err) = $c->ctl('preheat', $id);
    like($err, qr/Redis: .*(?:NOPERM|permission)/, '... again: the same reason');
    like($err, qr/activity $id: nothing was changed/, '... and nothing more is done');
    $c->redis->acl('SETUSER', 'default', '+sadd');
    is(($c->ctl('preheat', $id))[0], 0, '... and then it works');
    is($c->products_stock($id), 970, '... units were taken once');
    is_deeply($c->terms($id), [ "1 $id 9.90 1 preheat", "2 $id 3.00 1 preheat" ], '... one more epoch');
}

# Redis lost a sale whose row was edited: what stands in for it shows the promise too
{
    my $id = $c->sale;
    $c->buy($id, 1);
    $c->drain($id);
    edit($id, 'seckill_price = 99.00');
    $c->redis->flushall;
    $c->t->allow_log(qr/lost/);
    $c->start;
    $c->t->wait_for(sub { ($c->facts($id)->{state} // '') eq 'lost' }, 15, 'the facts of a lost sale');
    $c->halt;
    is($c->facts($id)->{price}, '9.90', 'the facts of a lost sale are those of its terms');
    my ($exit, $out, $err) = $c->ctl('preheat', $id);
    is($exit, 4, 'a preheat of it is refused');
    like($err, qr/restore it/, '... and says what to do');
    ($exit, $out, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 0, 'restore') or diag($err);
    is($c->facts($id)->{price}, '9.90', '... by the same terms');
}

done_testing();
