# Entries of consumers that are gone are taken over; those that are only slow are
# not handled twice; a second copy of a daemon does no harm.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $c = ConsumerTest->new(
    conf => { 'consumer.claim_idle' => '800ms', 'consumer.workers' => 2 });

sub dead_consumer {
    my ($id, $count) = @_;
    return scalar @{ $c->redis->xreadgroup('GROUP', 'seckilld', 'gone-1', 'COUNT', $count,
        'STREAMS', $c->key(orders => $id), '>')->[0][1] };
}

# B8: a consumer that died with entries
{
    $c->sale(1, units => 300, group => 1);
    $c->buy(1, 1 .. 250);
    is(dead_consumer(1, 250), 250, 'a consumer dies with 250 entries');
    $c->start;
    $c->buy(1, 251 .. 260);
    $c->t->wait_for(sub { $c->order_count(1) == 10 }, 5, 'the new ones');
    cmp_ok($c->pending(1), '>=', 250, 'before the idle limit they are left alone');
    $c->wait_settled(1, 10);
    $c->all_bought(1, [1 .. 260], 'then they become orders');
    is($c->sold(1), 260, 'each counted once');
    like($c->t->log_text($c->{daemon}), qr/taken over.*activity=1/, 'the log tells it');
}

# what was deleted from the stream meanwhile: Redis 7 forgets it with the claim, we do not
{
    $c->sale(4, units => 100, group => 1);
    $c->buy(4, 1 .. 3);
    dead_consumer(4, 3);
    my $gone = $c->redis->xrange($c->key(orders => 4), '-', '+')->[1][0];
    $c->redis->xdel($c->key(orders => 4), $gone);
    $c->wait_settled(4, 10);
    $c->all_bought(4, [1, 3], 'entries of a dead consumer that are there become orders');
    is_deeply([map {"$_->{entry} $_->{reason} $_->{attempts}"} @{ $c->dead(4) }], ["$gone deleted 1"],
        'one that was deleted is a dead letter');
    is($c->pending(4), 0, 'and pending no more');
    my $lines = () = $c->t->log_text($c->{daemon}) =~ /msg="dead letter" activity=4 entry=\Q$gone\E/g;
    is($lines, 1, 'with one line');
}

# B13: worker threads keep their names
{
    my $names = join ' ', sort map { my %x = @{$_}; $x{name} }
        @{ $c->redis->xinfo('CONSUMERS', $c->key(orders => 1), 'seckilld') };
    is($names, 'gone-1 test-1 test-2', 'one name per worker');
    ok($c->stop, 'it stops');
    $c->start;
    $c->buy(1, 261 .. 270);
    $c->wait_settled(1);
    my $n = @{ $c->redis->xinfo('CONSUMERS', $c->key(orders => 1), 'seckilld') };
    is($n, 3, 'also after a restart');
}

# B8: a batch that takes longer than the idle limit, and a colleague who would claim it
{
    $c->sale(2, units => 100);
    my $colleague = $c->t->seckilld($c->conf('consumer.name' => 'other'));
    my $other = $c->t->dbh($c->{mysql});
    $other->begin_work;
    $other->do('SELECT * FROM seckill_activities WHERE id = 2 FOR UPDATE');
    $c->buy(2, 1 .. 50);
    sleep 2.5;
    is($c->order_count(2), 0, 'nothing while the row is locked for three idle limits');
    $other->rollback;
    $c->wait_settled(2, 15);
    $c->all_bought(2, [1 .. 50], 'then each has one order');
    is($c->sold(2), 50, 'counted once');
    is_deeply($c->dead(2), [], 'no dead letters');
    is($c->count(seckill_stock_log => "activity_id = 2 AND kind <> 'open'"), 0, 'nothing in the ledger');
    $c->t->stop($colleague);
}

# B8, B13: two copies under the same name, over the same purchases
{
    $c->sale(3, units => 5000);
    my $copy = $c->t->seckilld($c->{conf});
    for my $round (0 .. 19) {
        $c->buy(3, map { $round * 200 + $_ } 1 .. 200);
        sleep 0.02;
        if ($round == 10) {
            $c->t->kill9($copy);
            $copy = $c->t->seckilld($c->{conf});
        }
    }
    $c->wait_settled(3, 30);
    is($c->order_count(3), 4000, 'a second copy of the daemon: one order each');
    is($c->sold(3), 4000, 'counted once');
    $c->all_bought(3, [1 .. 4000], 'and told');
    is_deeply($c->dead(3), [], 'no dead letters');
    is($c->count(seckill_stock_log => "activity_id = 3 AND kind <> 'open'"), 0, 'nothing in the ledger');
    $c->t->stop($copy);
}

ok($c->stop, 'the daemon stops well');

done_testing;
