# While a sale is rebuilt from MySQL its facts must not be missing: nginx would
# tell everybody "not started", as for an activity that does not exist (P5).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use Redis;
use SeckillTest;
use Test::More;

my $t = SeckillTest->new;
my $redis = $t->redis->{client};
my @keys  = map {"seckill:$_:{1}"} qw(activity stock order_users orders eligible dead);

$redis->hset($keys[0], product_id => 1, price => '9.90', stock_limit => 10, start_ms => 1000,
             end_ms => 4e12, state => 'paused', max_quantity => 1, eligible => 0, epoch => 1, rev => 1, seq => 3);
$redis->set($keys[1], 7);
$redis->sadd($keys[2], 1, 2, 3);
$redis->xgroup('CREATE', $keys[3], 'seckilld', 0, 'MKSTREAM');

open my $fh, '<:raw', $t->root . '/lua/clear.lua' or die "cannot read clear.lua: $!\n";
my $clear = do { local $/ = undef; <$fh> };
my $reply = $redis->eval($clear, 6, @keys, 'clear', 1, 5, 1, '');
is($reply->[0], 'cleared', 'restore has begun');

is($redis->exists($keys[0]), 1, 'the facts are there, for nobody shall hear "not started"');

done_testing;
