# Orders are written by the terms of their purchase's epoch, never by the
# activity's row (F-B1); an epoch without terms waits.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ConsumerTest;
use IO::Socket::INET;
use Test::More;

my $c     = ConsumerTest->new;
my $port  = $c->t->port;
$c->{conf} = $c->conf('http.listen' => "127.0.0.1:$port");
my $redis = $c->redis;
my $dbh   = $c->dbh;

sub at { my ($id) = @_; return [ map {"$_->{user_id} $_->{product_id} $_->{seckill_price}"} @{ $c->orders($id) } ] }

sub metrics {
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 5) or return '';
    print {$sock} "GET /metrics HTTP/1.0\r\n\r\n";
    local $/ = undef;
    return <$sock>;
}

sub log_count {
    my ($what) = @_;
    my $n = () = $c->t->log_text($c->{daemon}) =~ /$what/g;
    return $n;
}

# price and product edited between the purchase and its order
{
    $c->sale(1, units => 10);
    $c->buy(1, 1, 2);
    $dbh->do('INSERT INTO products (id, name, stock, price) VALUES (99, "other", 0, 1)');
    $dbh->do('UPDATE seckill_activities SET seckill_price = 99.00, product_id = 99 WHERE id = 1');
    $c->start;
    $c->wait_settled(1);
    is_deeply(at(1), [ '1 1 9.90', '2 1 9.90' ],
        'F-B1: price and product edited amid a sale: the orders are as promised');
}

# several epochs in one batch, each by its own terms
{
    $c->stop;
    $c->sale(2, units => 50);
    $dbh->do('UPDATE seckill_activities SET seckill_price = 5.00 WHERE id = 2');
    $c->terms(2, 2);
    $dbh->do('UPDATE seckill_activities SET seckill_price = 7.00, product_id = 1 WHERE id = 2');
    $c->terms(2, 3);
    for my $user (1 .. 12) {
        $c->add(2, $c->message(2, $user, epoch => 1 + $user % 3, seq => $user));
    }
    $c->start;
    $c->wait_settled(2);
    is_deeply([ sort { $a <=> $b } map { /^(\d+)/ } grep {/ 2 9\.90$/} @{ at(2) } ], [ 3, 6, 9, 12 ],
        'a batch of three epochs: the first');
    is(scalar(grep {/ 2 5\.00$/} @{ at(2) }), 4, '... the second');
    is(scalar(grep {/ 1 7\.00$/} @{ at(2) }), 4, '... and the third');

    # more than one transaction takes
    $c->stop;
    $c->terms(2, $_) for 4 .. 20;
    $c->add(2, $c->message(2, 100 + $_, epoch => $_, seq => 100 + $_)) for 4 .. 20;
    $c->start;
    $c->wait_settled(2);
    is($c->order_count(2), 12 + 17, 'twenty epochs in one batch are written too');
}

# an epoch without terms: it waits, others go on, and then it is written
{
    $c->stop;
    $c->sale(3, units => 10);
    $c->sale(4, units => 10);
    $c->add(3, $c->message(3, 1, epoch => 1, seq => 1));
    $c->add(3, $c->message(3, $_, epoch => 7, seq => $_)) for 2, 3;
    $c->start;
    $c->t->wait_log($c->{daemon},
        qr/level=error msg="activity is blocked, waiting".*activity=3.*no terms of activity 3 epoch 7/);
    pass('F-B1: an epoch without terms is an alarm with activity and epoch');
    $c->buy(4, 1 .. 3);
    $c->wait_settled(4);
    $c->all_bought(4, [ 1 .. 3 ], '... other activities go on');
    sleep 2;
    is(log_count(qr/activity is blocked.*activity=3/), 1, '... it is said once');
    is($c->pending(3), 2, '... its purchases wait');
    is($c->order_count(3), 1, '... the one with terms is written');
    is_deeply($c->dead(3), [], '... nothing is a dead letter');
    is($c->record(3, 2), undef, '... and no attempt is counted');
    $c->terms(3, 7);
    $c->wait_settled(3);
    $c->all_bought(3, [ 1 .. 3 ], '... once the terms are there they are orders');
    $c->t->wait_log($c->{daemon}, qr/activity goes on.*activity=3/);
}

# what is an order already does not wait for terms
{
    $c->stop;
    $c->sale(5, units => 10);
    $c->buy(5, 1);
    $c->start;
    $c->wait_settled(5);
    $dbh->do('DELETE FROM seckill_terms WHERE activity_id = 5');
    $c->add(5, $c->message(5, 1, epoch => 1, seq => 1));
    $c->wait_settled(5);
    is($c->order_count(5), 1, 'a purchase that is an order is settled without terms');
}

# more units than the terms allow
{
    $c->stop;
    $c->sale(6, units => 100);
    $c->add(6, $c->message(6, 1, quantity => 11, seq => 1));
    $c->add(6, $c->message(6, 2, quantity => 10, seq => 2));
    $dbh->do('UPDATE seckill_activities SET max_quantity = 1 WHERE id = 6');
    $c->start;
    $c->wait_settled(6);
    is_deeply([ map { $_->{user_id} } @{ $c->orders(6) } ], [2],
        'a quantity above the terms becomes no order, one above the row does');
    is($c->dead(6)->[0]{reason}, 'data_error', '... but a dead letter');
    like($c->dead(6)->[0]{error}, qr/quantity 11 is above the 10 that epoch 1 allows/, '... that says why');
    is($c->sold(6), 10, '... and takes no units');
}

# a row edited amid its sale: an alarm and a metric, once it has begun and until it is settled
{
    $c->sale(7, units => 10);
    $c->sale(8, units => 10, start_ms => (time + 3600) * 1000);
    $c->sale(9, units => 10);
    my $edited = 'seckilld_edited_terms';
    $dbh->do('UPDATE seckill_activities SET seckill_price = 99, end_time = end_time + INTERVAL 1 HOUR WHERE id IN (7, 8)');
    $c->t->wait_log($c->{daemon},
        qr/level=error msg="the row of a running sale was edited, .*" activity=7 epoch=1 edited=price,end$/m);
    pass('F-B1: an edit amid a sale is an alarm');
    $c->t->wait_for(sub { metrics() =~ /^$edited\{activity="7"\} 1$/m }, 5, 'the metric');
    unlike(metrics(), qr/^$edited\{activity="[89]"\}/m, '... one before the start is none, nor is an untouched sale');
    sleep 2;
    is(log_count(qr/was edited.*activity=7/), 1, '... it is said once');

    $dbh->do('UPDATE seckill_activities SET status = 2 WHERE id = 7');
    $c->t->wait_for(sub { metrics() !~ /^$edited\{activity="7"/m }, 5, 'a settled sale not to be named');
    pass('... a settled sale is not named');

    $dbh->do('DELETE FROM seckill_terms WHERE activity_id = 9');
    $c->t->wait_log($c->{daemon}, qr/level=error msg="a sale has no terms, its orders wait" activity=9 epoch=1/);
    $c->t->wait_for(sub { metrics() =~ /^seckilld_missing_terms\{activity="9"\} 1$/m }, 5, 'the metric');
    pass('a sale without terms is an alarm and a metric before anybody bought');
}

# F-B1: a preheat that was cut off after Redis had its epoch
{
    $c->sale(10, units => 10);
    $redis->hset($c->key(activity => 10), epoch => 2);
    sleep 2;
    is(($dbh->selectrow_array('SELECT epoch FROM seckill_activities WHERE id = 10'))[0], 1,
        'an epoch that no terms have is not taken over');
    $c->terms(10, 2);
    $c->t->wait_log($c->{daemon}, qr/a preheat that was cut off is finished" activity=10 epoch=2/);
    is(($dbh->selectrow_array('SELECT epoch FROM seckill_activities WHERE id = 10'))[0], 2,
        'with terms it is, and the preheat is finished');
    $c->buy(10, 1 .. 3);
    $c->t->wait_for(sub { ($dbh->selectrow_array('SELECT seq_seen FROM seckill_activities WHERE id = 10'))[0] == 3 },
        5, 'the seq');
    pass('... and its seq is remembered');
    $c->t->wait_for(sub { $c->count(seckill_stock_log => "activity_id = 10 AND epoch = 2 AND kind = 'open'") == 1 },
        5, 'the ledger to know it');
    pass('... and the ledger knows that Redis has this epoch: a loss would be seen');
}

# one that can't be finished keeps no other from it
{
    $c->sale($_, units => 10) for 11, 12;
    $c->terms($_, 2) for 11, 12;
    $dbh->do('ALTER TABLE seckill_activities ADD CONSTRAINT no_11 CHECK (product_id <> 11 OR epoch < 2)');
    $redis->hset($c->key(activity => $_), epoch => 2) for 11, 12;
    $c->t->wait_log($c->{daemon}, qr/a preheat that was cut off is finished" activity=12 epoch=2/);
    is(($dbh->selectrow_array('SELECT epoch FROM seckill_activities WHERE id = 11'))[0], 1,
        'MySQL refuses to finish one preheat: the others are finished');
    $dbh->do('ALTER TABLE seckill_activities DROP CONSTRAINT no_11');
    $c->t->wait_for(sub { ($dbh->selectrow_array('SELECT epoch FROM seckill_activities WHERE id = 11'))[0] == 2 },
        90, 'the other one');
    pass('... and it too, later');
}

ok($c->stop, 'it stops well');

done_testing();
