# One does not stop all (F-I1): what the keeper can't do for one order or one sale is put
# aside, counted and named, and the others go on.  What is not known is left out of
# /metrics (F-I2).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(sleep time);

my $c    = ConsumerTest->new;
my $port = $c->t->port;
$c->{conf} = $c->conf('http.listen' => "127.0.0.1:$port", 'consumer.pay_timeout' => '2s',
    'consumer.cancelled_units' => 'activity', 'consumer.settle_after' => '200ms',
    'mysql.timeout' => '2s', 'redis.timeout' => '500ms');
my $redis = $c->redis;

sub ask {
    my ($path) = @_;
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 5)
        or return '';
    print {$sock} "GET $path HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    my $all = do { local $/ = undef; <$sock> } // '';
    return (split /\r\n\r\n/, $all, 2)[1] // '';
}
sub metric { my ($name) = @_; return ask('/metrics') =~ /^\Q$name\E (\S+)$/m ? $1 : undef }
sub cancelled { return $c->count(seckill_orders => "activity_id = $_[0] AND status = 3") }
sub lines { my ($pattern) = @_; my $n = () = $c->t->log_text($c->{daemon}) =~ /$pattern/g; return $n }

# a sale with units in the ledger, as preheat writes them, and buyers
sub sale {
    my ($id, @users) = @_;
    $c->sale($id, units => 10, group => 1);
    $c->dbh->do('INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units,'
        . " actor) VALUES (?, ?, 1, 'preheat', 'test', -10, 'test')", undef, $id, $id);
    $c->buy($id, @users);
    return;
}

# an order set back by hand, a sum that was reset, an order that a trigger protects, and a row
# that somebody holds
{
    $c->dbh->do(q{CREATE TRIGGER keep BEFORE UPDATE ON seckill_orders FOR EACH ROW
        IF NEW.status = 3 AND OLD.request_id = 'keep' THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'this one stays'; END IF});

    sale(1, 1 .. 3);
    $c->start;
    $c->wait_settled(1);
    $c->t->wait_for(sub { cancelled(1) == 3 }, 10, 'the cancel');
    $c->dbh->do('UPDATE seckill_orders SET status = 1 WHERE activity_id = 1 AND user_id = 1');

    sale(2, 1 .. 3);
    sale(3, [1, 1, '', 'keep'], 2 .. 6);
    sale(4, 1 .. 3);
    sale(5, 1 .. 3);
    $c->wait_settled($_) for 2 .. 5;
    $c->dbh->do('UPDATE seckill_activities SET sold = 0 WHERE id = 2');
    my $other = $c->t->dbh($c->{mysql});
    $other->begin_work;
    $other->do('SELECT * FROM seckill_activities WHERE id = 4 FOR UPDATE');
    my $order_no = $c->dbh->selectrow_array(
        'SELECT order_no FROM seckill_orders WHERE activity_id = 3 AND user_id = 1');

    $c->t->wait_for(sub { cancelled(5) == 3 }, 12, 'the cancel of the last sale');
    is(cancelled(5), 3, 'F-I1: a sale behind four that have trouble is served');
    $c->t->wait_for(sub { cancelled(3) == 5 }, 12, 'the cancel of the others of the sale');
    is(cancelled(3), 5, '... and the other orders of a sale with one that stays');
    is(cancelled(2), 0, '... a sale whose sum is wrong is left alone');
    is(cancelled(4), 0, '... one that is locked too');
    ok(cancelled(1) == 3 || lines(qr/unpaid activity=1 order=\d{32}/) == 1,
        '... an order set back is cancelled once more, or named');

    $c->t->wait_log($c->{daemon}, qr/for an activity.*duty=unpaid activity=4.*1205/, 15);
    pass('the sale that is locked is named, after a while');
    is(lines(qr/for an order.*duty=unpaid activity=3 order=$order_no order_id=\d+.*this one stays/), 1,
        'the order that stays is named, once');
    is(lines(qr/for an activity.*duty=unpaid activity=2 /), 1, '... and the sale');
    cmp_ok(metric('seckilld_keeper_failures_total{duty="unpaid"}'), '>=', 3, 'failures are counted');
    is(metric(qq(seckilld_troubles{duty="unpaid",activity="$_"})), 1, "activity $_ is shown") for 2 .. 4;
    like(ask('/healthz'), qr/\Atrouble\n(?:.*\n)*unpaid activity=3 order_id=[1-9]\d* tries=\d+\n/,
        '/healthz tells');

    # units that were cancelled are on sale again, of the others
    is($redis->hget($c->key(activity => 5), 'released'), 3, 'what was cancelled is on sale again');

    # mended
    $other->rollback;
    $c->dbh->do('UPDATE seckill_activities SET sold = 3 WHERE id = 2');
    $c->dbh->do('DROP TRIGGER keep');
    $c->t->wait_for(sub { cancelled(2) == 3 && cancelled(3) == 6 && cancelled(4) == 3 }, 45,
        'the cancels');
    is(cancelled($_), $_ == 3 ? 6 : 3, "activity $_ is served once its trouble is over") for 2 .. 4;
    $c->t->wait_for(sub { ask('/healthz') eq "ok\n" }, 30, 'all to be well');
    cmp_ok(lines(qr/does its duty again/), '>=', 3, 'which is said');
}

# settling: MySQL refuses one, a row is held, facts are of another type
{
    sale($_, 1) for 11 .. 14;
    $c->wait_settled($_) for 11 .. 14;
    $c->dbh->do(q{CREATE TRIGGER stay BEFORE UPDATE ON seckill_activities FOR EACH ROW
        IF NEW.status = 2 AND NEW.id = 11 THEN
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not yet'; END IF});
    my $other = $c->t->dbh($c->{mysql});
    $other->begin_work;
    $other->do('SELECT * FROM seckill_activities WHERE id = 12 FOR UPDATE');
    $redis->rename($c->key(activity => 13), 'elsewhere');
    $redis->lpush($c->key(activity => 13), 'x');
    $redis->hset($c->key(activity => $_), end_ms => int((time - 5) * 1000)) for 11, 12, 14;
    $c->t->wait_for(sub { ($redis->hget($c->key(activity => 14), 'state') // '') eq 'settled' }, 15,
        'the settle');
    pass('F-I1: the last sale is settled');
    $c->t->wait_log($c->{daemon}, qr/duty=settle activity=11 .*not yet/);
    pass('... what MySQL refuses is named');
    cmp_ok(metric('seckilld_keeper_failures_total{duty="settle"}'), '>=', 1, '... and counted');
    $c->t->wait_for(sub { (metric('seckilld_troubles{duty="watch",activity="13"}') // 0) == 1 }, 15,
        'the watch to tell');
    is(lines(qr/lost data.*activity=13/), 0, 'facts that cannot be read are no loss');
    $other->rollback;
    $c->dbh->do('DROP TRIGGER stay');
    $redis->del($c->key(activity => 13));
    $redis->rename('elsewhere', $c->key(activity => 13));
    $c->t->wait_for(sub { $c->count(seckill_activities => 'id IN (11, 12) AND status = 2') == 2 }, 45,
        'the others');
    pass('... and all are once they can be');
}

# a duty that can't be done at all, and looks like a lost server: the others have their turn
{
    $c->sale(16, units => 10, group => 1);
    $c->buy(16, 1 .. 2);
    $c->wait_settled(16);
    $c->dbh->do('RENAME TABLE seckill_terms TO elsewhere');
    $c->t->wait_for(sub { cancelled(16) == 2 }, 20, 'the cancel');
    is(cancelled(16), 2, 'F-I1: a duty without its table stops no other one');
    $c->t->wait_log($c->{daemon}, qr/can't do its duty".*duty=promise.*seckill_terms/, 20);
    pass('... and is named');
    $c->dbh->do('RENAME TABLE elsewhere TO seckill_terms');
}

# F-I2: MySQL is away, the backlog is told all the same; Redis is away, nothing is
{
    $c->sale(21, units => 100, group => 1);
    $c->buy(21, 1);
    $c->wait_settled(21);
    $c->t->wait_for(sub { defined metric('seckilld_unread{activity="21"}') }, 5, 'the picture');
    cmp_ok(metric('seckilld_activities'), '>=', 1, 'activities are counted');
    $c->t->kill9($c->{mysql});
    $c->t->wait_for(sub { (metric('seckilld_mysql_up') // 1) == 0 }, 15, 'mysql_up to fall');
    $c->buy(21, 2 .. 9);
    $c->t->wait_for(sub { (metric('seckilld_unread{activity="21"}') // 0)
        + (metric('seckilld_pending{activity="21"}') // 0) == 8 }, 15, 'the backlog');
    pass('F-I2: the backlog grows in /metrics while MySQL is away');
    is(metric('seckilld_clock_skew_seconds'), undef, '... and a clock that nobody sees has no skew');
    is(metric('seckilld_clocks_trusted'), 0, '... nor is it trusted');
    $c->t->restart($c->{mysql});
    $c->wait_settled(21, 20);

    $c->t->kill9($c->{redis});
    $c->t->wait_for(sub { (metric('seckilld_redis_up') // 1) == 0 }, 15, 'redis_up to fall');
    $c->t->wait_for(sub { !defined metric('seckilld_activities') }, 10, 'the picture to go');
    unlike(ask('/metrics'), qr/^seckilld_(?:unread|pending|dead_letters|oldest_age_seconds|activities)\b/m,
        'F-I2: what Redis held is not told while Redis is away');
}

ok($c->stop, 'the daemon stops well');

done_testing;
