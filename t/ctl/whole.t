# Half of a sale is gone from Redis while its facts are there (F-D1): seckilld stops
# it, names what is missing and the cure; the cure works in each of these states;
# what cannot be restored is refused with nothing changed (F-C4).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;
my $dbh   = $c->dbh;

sub fact { return $redis->hget($c->key(activity => $_[0]), $_[1]) }
sub orders { return $c->column('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ?', @_) }
sub alarms { my ($id) = @_; my $n = () = $t->log_text($c->{daemon}) =~ /level=error msg="Redis lost.*activity=$id /g; return $n }

# buys, whatever admit.lua says of a sale that is not whole
sub tries { my ($id, @users) = @_; return eval { $c->buy($id, @users) } // 'refused' }

my %lost = (
    stock       => sub { $redis->del($c->key(stock => $_[0])) },
    order_users => sub { $redis->del($c->key(order_users => $_[0])) },
    orders      => sub { $redis->del($c->key(orders => $_[0])) },
    'stock,order_users,orders' => sub { $redis->del(map { $c->key($_ => $_[0]) } qw(stock order_users orders)) },
    'order_users one' => sub { $redis->srem($c->key(order_users => $_[0]), 2) },
    'orders last id' => sub {
        my $key = $c->key(orders => $_[0]);
        my $id = $redis->xadd($key, '18446744073709551615-18446744073709551615', user => 1);
        $redis->xreadgroup('GROUP', 'seckilld', 'x', 'COUNT', 9, 'STREAMS', $key, '>');
        $redis->xack($key, 'seckilld', $id);
        $redis->xdel($key, $id);
    },
    'facts' => sub { $redis->del($c->key(activity => $_[0])) },
);

$c->start;

for my $what (sort keys %lost) {
    my $id = $c->sale(stock_limit => 6);
    is($c->buy($id, 1 .. 3), '111', "without $what: three buy before");
    $c->drain($id);
    $t->wait_for(sub { (fact($id, 'buyers_extra') // '') eq '0' }, 5, 'the daemon to have looked');
    my ($name) = $what =~ /^(\S+)/;

    $lost{$what}->($id);
    my $state = $what eq 'facts' ? 'lost' : 'paused';
    $t->wait_for(sub { (fact($id, 'state') // '') eq $state }, 10, "state $state");
    $t->wait_log($c->{daemon}, qr/level=error msg="Redis lost data of a sale, restore it" activity=$id .*lost=$name .*cure="seckillctl restore $id"/);
    like(tries($id, 1, 9), qr/^(?:[27]+|refused)$/, '... nothing is sold');
    is(alarms($id), 1, '... and it is said once');

    my ($exit, $one) = $c->reconcile($id);
    is($exit, 1, '... reconcile says that it is wrong');

    ($exit, my $json, my $err) = $c->ctl_json('restore', $id, '--yes');
    is($exit, 0, '... restore works') or diag($err);
    is($json->{stock}, 3, '... three units are left');
    is(fact($id, 'state'), 'open', '... the sale is open');
    is(tries($id, 1, 2, 3, 11 .. 15), '22211133', '... buyers are known, the rest is sold, not one more');
    $c->drain($id);
    is(orders($id), 6, '... six orders of six units');
    is($redis->xlen($c->key(dead => $id)), 0, '... no dead letter');
    ($exit, $one) = $c->reconcile($id);
    is($exit, 0, '... the books are in order') or diag(explain($one));
    is(fact($id, 'buyers_extra'), 3, '... the buyers from before are counted beside seq');
    $t->wait_log($c->{daemon}, qr/msg="sale is whole again" activity=$id/);
}

# the metric says how many, and none any more
{
    my $port = $t->port;
    my $conf = $t->conf(redis => $c->{redis}, mysql => $c->{mysql}, 'http.listen' => "127.0.0.1:$port",
        'consumer.name' => 'other');
    my $daemon = $t->seckilld($conf);
    my $metrics = sub { (($t->run('curl', '-s', '-m', 5, "http://127.0.0.1:$port/metrics"))[1]) };
    $t->wait_for(sub { $metrics->() =~ /^seckilld_sales_not_whole\{missing="stock"\} 0$/m }, 10, 'the gauge');
    my $id = $c->sale(stock_limit => 6);
    $c->buy($id, 1);
    $c->drain($id);
    $redis->del($c->key(stock => $id));
    $t->wait_for(sub { $metrics->() =~ /^seckilld_sales_not_whole\{missing="stock"\} 1$/m }, 10, 'the gauge to rise');
    like($metrics->(), qr/^seckilld_data_loss_total [1-9]/m, 'the loss is counted');
    is(($c->ctl('restore', $id, '--yes'))[0], 0, 'restored');
    $t->wait_for(sub { $metrics->() =~ /^seckilld_sales_not_whole\{missing="stock"\} 0$/m }, 10, 'the gauge to fall');
    pass('a gauge tells how many sales miss what');
    $t->stop($daemon);
}

# the group alone is the daemon's to make again, and no loss
{
    my $id = $c->sale(stock_limit => 6);
    $c->buy($id, 1);
    $c->drain($id);
    $redis->xgroup('DESTROY', $c->key(orders => $id), 'seckilld');
    $c->buy($id, 2);
    $t->wait_for(sub { orders($id) == 2 }, 10, 'the second order');
    is(fact($id, 'state'), 'open', 'a lost group is made again, the sale goes on');
    is(($c->ctl('restore', $id, '--yes'))[0], 4, '... there is nothing to restore');
}

# registered users: said by name, the sale goes on when they are loaded
{
    my $id = $c->sale(stock_limit => 6, by_registration => 1);
    my $key = $c->key(eligible => $id);
    $redis->sadd($key, 1 .. 5);
    $t->wait_for(sub { fact($id, 'eligible_had') }, 5, 'eligible_had');
    is($c->buy($id, 1, 2), '11', 'registered users buy');
    $c->drain($id);
    $redis->del($key);
    $t->wait_log($c->{daemon}, qr/level=error msg="registered users of a sale are missing.*activity=$id .*lost=eligible/);
    {
        my ($exit, $one) = $c->reconcile($id);
        is($exit, 1, 'reconcile does not call that in order');
        is($one->{lost_key}, 'eligible', '... and names what is missing');
    }
    my $before = $c->everything;
    my ($exit, undef, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 4, 'restore has nothing to do');
    like($err, qr/load them again/, '... and says who has');
    is($c->everything, $before, '... and changes nothing');
    $redis->sadd($key, 1 .. 5);
    $t->wait_log($c->{daemon}, qr/msg="sale is whole again" activity=$id/);
    is($c->buy($id, 3), '1', '... it goes on by itself');

    # all of it gone: they stay needed after the restore
    $c->drain($id);
    $redis->del($key, map { $c->key($_ => $id) } qw(activity stock order_users orders));
    ($exit, undef, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 0, 'restored') or diag($err);
    like($err, qr/load them into "\Q$key\E"/, '... and it says what is missing yet');
    is(fact($id, 'eligible_had'), 1, '... which seckilld knows as well');
    $redis->sadd($key, 1 .. 5);
    is($c->buy($id, 4), '1', '... loaded, it sells');
}

# a closed sale is closed again, also after a restore that was cut off
{
    my $id = $c->sale(stock_limit => 6);
    $c->buy($id, 1);
    $c->drain($id);
    is(($c->ctl('close', $id))[0], 0, 'closed');
    $redis->del($c->key(stock => $id));
    $c->ctl_dies('after_clear', 'restore', $id, '--yes');
    is(fact($id, 'state'), 'paused', 'F-D3: while it is rebuilt it says "paused"');
    is(($c->ctl('restore', $id, '--yes'))[0], 0, 'run again');
    is(fact($id, 'state'), 'closed', '... it is closed, as it was');
}

# F-C4: units that do not add up are found before the first write
{
    my $id = $c->sale(stock_limit => 10, products_stock => 10);
    $c->buy($id, 1 .. 6);
    $c->drain($id);
    $c->halt;
    # the new master knows nothing of them, and sells on
    $redis->hset($c->key(activity => $id), seq => 0);
    $redis->set($c->key(stock => $id), 10);
    $redis->del($c->key(order_users => $id), $c->key(orders => $id), map { $c->key("result:$_", $id) } 1 .. 6);
    $redis->xgroup('CREATE', $c->key(orders => $id), 'seckilld', 0, 'MKSTREAM');
    $redis->hset($c->key(activity => $id), buyers_extra => 0);
    is($c->buy($id, 11 .. 20), '1' x 10, 'ten more are accepted');
    $c->start;
    $c->drain($id);
    $t->wait_for(sub { fact($id, 'state') eq 'paused' }, 10, 'the pause');
    is($redis->xlen($c->key(dead => $id)), 6, '... six of them are dead letters');
    $c->halt;

    my $before = $c->everything;
    my ($exit, undef, $err) = $c->ctl('restore', $id, '--yes');
    is($exit, 4, 'F-C4: refused');
    like($err, qr/6 units.*too many.*dead letters first/s, '... it says why, and what to do first');
    is($c->everything, $before, '... and nothing was changed');
    $c->start;
}

# F-C4: a lock that somebody holds, a word that is missing
{
    my $id = $c->sale(stock_limit => 10);
    $c->buy($id, 1 .. 3);
    $c->drain($id);
    $c->halt;
    $redis->del($c->key(stock => $id));
    my $before = $c->everything;
    my $other = $dbh->clone({ AutoCommit => 0 });
    $other->do("SELECT id FROM seckill_activities WHERE id = $id FOR UPDATE");
    is(($c->ctl('restore', $id, '--yes'))[0], 4, 'F-C4: a daemon that holds the row: refused');
    is($c->everything, $before, '... and nothing was changed');
    $other->rollback;
    $other->disconnect;
    $c->ctl_dies('before_clear', 'restore', $id, '--yes');
    is($c->everything, $before, '... nor by a run that was cut off before its first write');
    is(($c->ctl('restore', $id, '--yes'))[0], 0, '... then it works');
}

$c->halt if $c->{daemon};

done_testing();
