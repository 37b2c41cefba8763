# Redis that lost data is noticed: seq of every sale is remembered in MySQL, and a
# sale whose own seq is behind it is paused.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $c = ConsumerTest->new;
my $redis = $c->redis;

sub seen { return ($c->dbh->selectrow_array(
    'SELECT seq_seen FROM seckill_activities WHERE id = ?', undef, $_[0]))[0] }
sub fact { return $redis->hget($c->key(activity => $_[0]), $_[1]) }

# purchases of which nothing but the count and the buyers is in Redis
sub counted {
    my ($id, $seq, %more) = @_;
    $redis->sadd($c->key(order_users => $id), 1 .. $seq);
    $redis->hset($c->key(activity => $id), seq => $seq, %more);
    return;
}

$c->start;

# remembered from orders, and from the facts when nothing is written
{
    $c->sale(1, units => 100);
    $c->buy(1, 1 .. 10);
    $c->wait_settled(1);
    is(seen(1), 10, 'the seq of orders is remembered with them');
    counted(1, 25);
    $c->t->wait_for(sub { seen(1) == 25 }, 5, 'the seq of the facts');
    is(fact(1, 'state'), 'open', 'a sale that goes on goes on');
}

# it falls
{
    my $rev = fact(1, 'rev');
    my $control = $redis->hget('seckill:control', 'rev') // 0;
    $redis->hset($c->key(activity => 1), seq => 24);
    $c->t->wait_for(sub { fact(1, 'state') eq 'paused' }, 5, 'the pause');
    is(fact(1, 'rev'), $rev + 1, 'paused, as a new revision');
    $c->t->wait_for(sub { ($redis->hget('seckill:control', 'rev') // 0) == $control + 1 }, 2,
        'the control hash');
    unlike($c->buy(1, 50), qr/1/, 'nothing is sold any more');
    $c->t->wait_log($c->{daemon}, qr/level=error.*lost data.*activity=1 .*seq_seen=25 seq=24/);
    sleep 2.5;
    my $lines = () = $c->t->log_text($c->{daemon}) =~ /lost data of a sale/g;
    is($lines, 1, 'the alarm is raised once');
    is(seen(1), 25, 'what was seen stays');
}

# repaired: the alarm is ready for the next loss
{
    counted(1, 30, state => 'open');
    $c->t->wait_for(sub { seen(1) == 30 }, 5, 'the seq');
    $redis->hset($c->key(activity => 1), seq => 3);
    $c->t->wait_for(sub { fact(1, 'state') eq 'paused' }, 5, 'the pause');
    my $lines = () = $c->t->log_text($c->{daemon}) =~ /lost data of a sale/g;
    is($lines, 2, 'a second loss is a second alarm');
}

# Redis comes back empty
{
    $c->sale(2, units => 100);
    $c->buy(2, 1 .. 5);
    $c->wait_settled(2);
    $redis->del($c->key(activity => 2));
    $c->t->wait_log($c->{daemon}, qr/lost data.*activity=2 state=missing/);
    is($redis->exists($c->key(activity => 2)), 0, 'missing facts are not made up');
}

# an older epoch is a loss too; one that MySQL does not know yet is none
{
    $c->sale(3, units => 100);
    $c->dbh->do('UPDATE seckill_activities SET epoch = 2 WHERE id = 3');
    $c->t->wait_for(sub { fact(3, 'state') eq 'paused' }, 5, 'the pause');
    pass('an older epoch is paused');
    $c->sale(4, units => 100, epoch => 2);
    sleep 2;
    is(fact(4, 'state'), 'open', 'a newer epoch is not');
    is(seen(4), 0, 'and its seq is not taken for the old one');
}

# sales are watched while no daemon ran: what was seen outlives it
{
    $c->sale(5, units => 100);
    $c->buy(5, 1 .. 20);
    $c->wait_settled(5);
    $c->stop;
    $redis->hset($c->key(activity => 5), seq => 5);
    $c->start;
    $c->t->wait_for(sub { fact(5, 'state') eq 'paused' }, 5, 'the pause');
    pass('a loss while the daemon was down is found at its start');
}

# B10: Redis that may evict keys; said once for each change
{
    my $alarms = sub { my $n = () = $c->t->log_text($c->{daemon}) =~ /level=error msg="Redis may evict/g; return $n };
    is($alarms->(), 0, 'no word while it evicts nothing');
    $redis->config('SET', 'maxmemory-policy', 'allkeys-lru');
    $c->t->wait_log($c->{daemon}, qr/level=error msg="Redis may evict the keys of a sale" maxmemory_policy=allkeys-lru$/m);
    $redis->config('SET', 'maxmemory-policy', 'noeviction');
    $c->t->wait_log($c->{daemon}, qr/level=notice msg="Redis evicts nothing any more" maxmemory_policy=noeviction$/m);
    is($alarms->(), 1, 'an alarm when it may, once');
}

ok($c->stop, 'the daemon stops well');

done_testing;
