# A promoted replica lacks the last purchases, and new ones take their numbers
# before the daemon's next look at seq: the loss shows in the numbers that come
# a second time, and the sale must be paused all the same.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../consumer";

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep);

my $c = ConsumerTest->new;
my $redis = $c->redis;
my %key = map { $_ => $c->key($_ => 1) } qw(activity stock order_users orders);

$c->sale(1, units => 100);
$c->start;
$c->buy(1, 1 .. 20);
$c->wait_settled(1);
is($c->order_count(1), 20, 'twenty orders');
sleep 2.5;    # seq 20 is known by now

# what a replica looks like that missed the last ten; others buy before the next look
kill STOP => $c->{daemon}{pid};
my @entries = map { $_->[0] } @{ $redis->xrange($key{orders}, '-', '+') };
$redis->multi;
$redis->xdel($key{orders}, @entries[10 .. 19]);
$redis->srem($key{order_users}, 11 .. 20);
$redis->del(map {"seckill:result:$_:{1}"} 11 .. 20);
$redis->incrby($key{stock}, 10);
$redis->hset($key{activity}, 'seq', 10);
$redis->exec;
$c->buy(1, 21 .. 40);
kill CONT => $c->{daemon}{pid};
$c->wait_settled(1);

my $paused = $c->t->wait_for(sub { $redis->hget($key{activity}, 'state') eq 'paused' }, 5,
                             'the sale to be paused');
ok($paused, 'the sale is paused');
cmp_ok(scalar @{ $c->dead(1) }, '>', 0, 'numbers came a second time: dead letters');
ok($c->stop, 'the daemon stops well');

done_testing;
