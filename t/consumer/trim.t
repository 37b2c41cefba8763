# B4: streams get short again: what is acknowledged and older than "retain" goes,
# what is pending or unread stays, for every group.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;

my $c = ConsumerTest->new(conf => { consumer => { name => 'test', retain => '4s' } });

$c->sale(1, units => 1000);
$c->sale(2, units => 1000);
$c->sale(3, units => 1000, group => 1);
$c->buy(1, 1 .. 250);
$c->buy(2, 1 .. 10);
$c->buy(3, 1 .. 10);

# somebody else reads activity 2 too, and is behind; entries 5 to 8 of 3 are held
# by a consumer that is gone
$c->redis->xgroup('CREATE', $c->key(orders => 2), 'audit', 0);
$c->redis->xreadgroup('GROUP', 'audit', 'a', 'COUNT', 6, 'STREAMS', $c->key(orders => 2), '>');
my @entries = map { $_->[0] } @{ $c->redis->xrange($c->key(orders => 2), '-', '+') };
$c->redis->xack($c->key(orders => 2), 'audit', @entries[0 .. 5]);

$c->redis->xreadgroup('GROUP', 'seckilld', 'gone-1', 'COUNT', 8, 'STREAMS',
    $c->key(orders => 3), '>');
my @held = map { $_->[0] } @{ $c->redis->xrange($c->key(orders => 3), '-', '+') };
$c->redis->xack($c->key(orders => 3), 'seckilld', @held[0 .. 3]);

$c->start;
$c->wait_settled($_) for 1, 2;

my $length = sub { $c->redis->xlen($c->key(orders => $_[0])) };
is($length->(1), 250, 'what was just handled stays');

sleep 2;
$c->buy(1, 301 .. 350);
$c->t->wait_for(sub { $length->(1) <= 50 }, 15, 'the stream to be trimmed');
is($length->(1), 50, 'what is older than "retain" goes, what is younger stays');

$c->t->wait_for(sub { $length->(1) == 0 }, 15, 'the stream to be trimmed');
is($length->(1), 0, 'then all of it goes');
$c->t->wait_for(sub { $length->(2) <= 4 }, 10, 'activity 2 to be trimmed');
$c->t->wait_for(sub { $length->(3) <= 6 }, 10, 'activity 3 to be trimmed');
sleep 6;
is($length->(2), 4, 'entries that another group has not read stay');
is($length->(3), 6, 'and those that a dead consumer holds');

# a long one, while more is sold
$c->buy(1, 1001 .. 1600);
$c->t->wait_for(sub { $c->order_count(1) == 900 }, 10, 'the orders');
$c->t->wait_for(sub { $length->(1) == 0 }, 15, 'the stream to be trimmed again');
is($c->order_count(1), 900, 'every order is there');
is($c->pending(1), 0, 'and nothing pending');

ok($c->stop, 'the daemon stops well');

done_testing;
