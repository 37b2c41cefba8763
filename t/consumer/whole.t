# The watch and sales that are not whole: each is judged by itself, what 0.1.0 did not
# count is counted once, and nothing is made up.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep);

my $c = ConsumerTest->new;
my $redis = $c->redis;

sub fact  { return $redis->hget($c->key(activity => $_[0]), $_[1]) }
sub lines { my ($re) = @_; my $n = () = $c->t->log_text($c->{daemon}) =~ /$re/g; return $n }

$c->sale($_, units => 100) for 1 .. 6;
$c->buy($_, 1 .. 3) for 1 .. 6;
$redis->sadd($c->key(order_users => 2), 901, 902);     # bought before a restore of 0.1.0
$redis->del($c->key(stock => 3));
$redis->del($c->key(orders => 4));
$redis->del($c->key(order_users => 5));
$redis->sadd($c->key(order_users => 5), 1);
$redis->hset($c->key(activity => 5), buyers_extra => 0);
$redis->hset($c->key(activity => 6), seq => 'x' x 100);
$c->start;

# facts of 0.1.0
{
    $c->t->wait_for(sub { defined fact(1, 'buyers_extra') && defined fact(2, 'buyers_extra') }, 10, 'the count');
    is(fact(1, 'buyers_extra'), 0, 'buyers beside seq are counted once: none');
    is(fact(2, 'buyers_extra'), 2, '... or two of an older life');
    $c->buy(2, 10);
    $c->wait_settled(2);
    $redis->srem($c->key(order_users => 2), 901);
    $c->t->wait_for(sub { fact(2, 'state') eq 'paused' }, 10, 'the pause');
    pass('... and one of those who goes is missed');
}

# what is broken keeps none of the others waiting
{
    $c->t->wait_for(sub { fact($_, 'state') eq 'paused' }, 10, "the pause of $_") for 3, 4, 5;
    $c->t->wait_log($c->{daemon}, qr/level=error .*restore it" activity=3 state=paused lost=stock /);
    $c->t->wait_log($c->{daemon}, qr/level=error .*restore it" activity=4 state=paused lost=orders /);
    $c->t->wait_log($c->{daemon}, qr/level=error .*restore it" activity=5 state=paused lost=order_users /);
    $c->t->wait_log($c->{daemon}, qr/level=\w+ .*activity=6.*facts of the activity are missing or damaged/);
    is(fact(1, 'state'), 'open', 'a whole one goes on');
    is($c->buy(1, 20), '1', '... and sells');
    $c->wait_settled(1);
    is(fact(3, 'buyers_extra'), undef, 'what is not whole is not counted');
}

# a lost stream is a loss: the daemon makes none
{
    sleep 1.5;
    is($redis->exists($c->key(orders => 4)), 0, 'a lost stream is not made again');
    $redis->xgroup('DESTROY', $c->key(orders => 1), 'seckilld');
    $c->buy(1, 21);
    $c->t->wait_for(sub { $c->order_count(1) == 5 }, 10, 'the order');
    is(fact(1, 'state'), 'open', 'a lost group is, and is no loss');
}

# more than was counted
{
    $redis->sadd($c->key(order_users => 1), 777);
    $c->t->wait_log($c->{daemon}, qr/level=error msg="a sale has more buyers than it counted, reconcile it" activity=1 surplus=1/);
    sleep 2.2;
    is(lines(qr/more buyers than it counted/), 1, 'more buyers than counted is said once');
    is(fact(1, 'state'), 'open', '... and pauses nothing');
    is($c->buy(1, 22), '1', '... it sells on');
}

# Redis goes and comes back: what was claimed half way begins anew (F-D4), each loss is said once
{
    my $before = lines(qr/restore it"/);
    $redis->client('KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    $c->t->wait_for(sub { $c->order_count(1) == 6 }, 10, 'the order after it');
    sleep 2.2;
    is(lines(qr/restore it"/), $before, 'a new connection is no new loss');
}

ok($c->stop, 'the daemon stops well');

done_testing;
