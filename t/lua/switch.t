# lua/switch.lua: open and closed, nothing else, and each change once.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;
my $facts = (ScriptTest::keys_of('preheat', 1))[0];

sub switch { return scalar $s->call('switch', [ $_[0] ], @_[1, 2]) }

is_deeply(switch($facts, 'activity', 'closed'), [ 'missing', 0, '' ], 'no facts');
is($redis->exists($facts), 0, '... and none are made');

$s->sale(1);
my $rev = $redis->hget($facts, 'rev');
is_deeply(switch($facts, 'activity', 'closed'), [ 'switched', $rev + 1, 'open' ], 'closed');
is($redis->hget($facts, 'state'), 'closed', '... in the facts');
is_deeply(switch($facts, 'activity', 'closed'), [ 'unchanged', $rev + 1, 'closed' ], 'twice');
is_deeply(switch($facts, 'activity', 'open'), [ 'switched', $rev + 2, 'closed' ], 'opened');

for my $state (qw(paused settled)) {
    $redis->hset($facts, state => $state);
    for my $want (qw(open closed)) {
        my $before = $s->dump_all;
        is_deeply(switch($facts, 'activity', $want), [ 'refused', $rev + 2, $state ],
            "$state is not $want");
        is($s->dump_all, $before, '... nothing is written');
    }
}

$redis->hset('control', rev => 5);
is_deeply(switch('control', 'control', 'open'), [ 'unchanged', 5, 'open' ], 'control is open');
is_deeply(switch('control', 'control', 'closed'), [ 'switched', 5, 'open' ], '... and closed');
is($redis->hget('control', 'rev'), 5, '... its rev is for the caller');

done_testing();
