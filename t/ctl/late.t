# F-C6: a daemon holds a batch that the new master never heard of, the sale is restored,
# and the daemon wakes up.  What it held is not written, for its units are on sale again:
# it is named, and the journals bring it back.  Nobody of the new life pays for it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;
use Time::HiRes qw(sleep);

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;

sub orders { return $c->column('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ?', @_) }
sub sold   { return $c->column('SELECT sold FROM seckill_activities WHERE id = ?', @_) }
sub named  { my ($id) = @_; my $n = () = $t->log_text($c->{daemon}) =~ /level=error msg="purchase is older than the restore.*activity=$id /g; return $n }

# the new master knows nothing of the last purchases
sub failover {
    my ($id) = @_;
    $redis->hset($c->key(activity => $id), seq => 0, state => 'paused');
    $redis->set($c->key(stock => $id), 10);
    $redis->del($c->key(order_users => $id), $c->key(orders => $id));
    $redis->xgroup('CREATE', $c->key(orders => $id), 'seckilld', 0, 'MKSTREAM');
    return;
}

# stalled where: read and not begun; begun; all written and not committed
for my $point (qw(after_read after_begin after_insert)) {
    my $id = $c->sale(stock_limit => 10, products_stock => 10);
    $c->buy($id, 1 .. 4);
    { local $ENV{SECKILLD_FAILPOINT} = "$point:1:5000"; $c->start }
    $t->wait_for(sub { ($redis->xpending($c->key(orders => $id), 'seckilld') // [0])->[0] == 4 }, 10, 'the batch to be read');
    sleep 0.5;
    is(orders($id), 0, "stalled $point: nothing is committed");
    failover($id);

    my ($exit, $json, $err);
    for (1 .. 10) {
        my $before = $c->everything;
        ($exit, $json, $err) = $c->ctl_json('restore', $id, '--yes');
        last if $exit == 0;
        is($exit, 4, '... the daemon holds the row: refused');
        is($c->everything, $before, '... with nothing changed');
        sleep 1;
    }
    is($exit, 0, '... restored') or diag($err);

    if ($json->{stock} == 10) {
        $t->wait_for(sub { named($id) == 4 }, 15, 'the four to be named');
        is(named($id), 4, '... each of the four is named, once');
        is(orders($id), 0, '... and not written');
        is($c->buy($id, 11 .. 20), '1' x 10, '... ten others buy what is on sale');
    } else {
        is($json->{stock}, 6, '... the four were committed before: counted');
        is($c->buy($id, 11 .. 20), '1' x 6 . '3' x 4, '... six others buy');
    }
    $c->drain($id);
    is(orders($id), 10, '... ten orders');
    is(sold($id), 10, '... ten units sold');
    is($redis->xlen($c->key(dead => $id)), 0, '... no dead letter: nobody was promised too much');
    my ($wrong, $one) = $c->reconcile($id);
    is($wrong, 0, '... the books are in order') or diag(explain($one));
    $c->halt;
}

# what was queued again since the restore is of an older epoch too, and is written
{
    my $id = $c->sale(stock_limit => 10, products_stock => 10);
    $c->buy($id, 1 .. 4);
    my @lost = $c->entries($id);
    failover($id);
    is(($c->ctl('restore', $id, '--yes'))[0], 0, 'a restore that knows nothing of four');
    my %units = (quantity => 1);
    for my $e (@lost[ 0, 1 ]) {
        $redis->sadd($c->key(order_users => $id), $e->{user});
        $redis->decr($c->key(stock => $id));
        $redis->hincrby($c->key(activity => $id), buyers_extra => 1);
        $redis->xadd($c->key(orders => $id), '*', map { $_ => $e->{$_} }
            qw(v user activity quantity epoch seq order_no accepted_ms request_id ext));
    }
    $c->start;
    $c->buy($id, 21);
    $c->drain($id);
    is(orders($id), 3, 'purchases that Redis holds are written, of whatever epoch');
    is($c->column("SELECT COUNT(*) FROM seckill_orders WHERE activity_id = $id AND epoch = 1"), 2, '... two of them of the older one');
    is(named($id), 0, '... and none is called forgotten');
    $c->halt;
}

done_testing();
