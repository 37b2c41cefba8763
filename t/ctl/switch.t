# close and open: in force on every node and worker within seckill_refresh.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use NodesTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;
my $id    = $c->sale(stock_limit => 100_000, products_stock => 100_000);
my $other = $c->sale(stock_limit => 100_000, products_stock => 100_000);

my $refresh = 0.4;
my %node = (
    redis => $c->{redis}, key_file => $t->file('auth.key', NodesTest::KEY),
    http  => 'seckill_limit off; seckill_refresh 400ms;', workers => 2,
);
my @nodes = map { $t->nginx(%node) } 1, 2;
my $user  = 0;

# the tally of n purchases by new users, spread over nodes and workers
sub buyers {
    my ($activity, $n) = @_;
    my @requests = map { [ $nodes[ $_ % @nodes ]{port}, ++$user, "/seckill/$activity" ] } 1 .. $n;
    return NodesTest::tally(NodesTest::burst(8, @requests));
}

# Runs the tool while purchases go on; after refresh (and what a machine under load
# may lose) every answer has this code.
sub in_force {
    my ($activity, $code, @args) = @_;

    my ($exit, $out, $err) = $c->ctl(@args);
    is($exit, 0, "@args") or diag($err);
    my $until = time + $refresh + 2;
    my %before;
    while (time < $until) {
        my $tally = buyers($activity, 40);
        $before{$_} += $tally->{$_} for keys %{$tally};
    }
    is_deeply(buyers($activity, 80), { $code => 80 }, "... in force on all nodes: $code");
    is_deeply([ grep { !/^(?:0|50303)$/ } keys %before ], [], '... and no other answer meanwhile');
    return $out;
}

is_deeply(buyers($id, 80), { 0 => 80 }, 'the sale is open');

my $rev  = $c->facts($id)->{rev};
my $line = in_force($id, 50303, 'close', $id);
like($line, qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \S.*: activity $id, rev @{[ $rev + 1 ]}: closed$/m,
    'who closed it and when is printed');
is_deeply(buyers($other, 20), { 0 => 20 }, '... another sale goes on');
my $left = $c->stock($id);
buyers($id, 100);
is($c->stock($id), $left, '... nothing is sold');

{
    my $before = $redis->hget('seckill:control', 'rev');
    like(($c->ctl('close', $id))[1], qr/as it was before$/m, 'closing twice is fine');
    is($c->facts($id)->{rev}, $rev + 1, '... and changes nothing');
    is($redis->hget('seckill:control', 'rev'), $before + 1, '... but the nodes are told again');
}

# over reload: new workers, and the old ones gone
{
    my @old = map { $t->children($_) } @nodes;
    kill 'HUP', $_->{pid} for @nodes;
    $t->wait_for(sub { !grep { kill 0, $_ } @old }, 20, 'the old workers to end');
    is_deeply(buyers($id, 80), { 50303 => 80 }, 'closed over reload');
}
in_force($id, 0, 'open', $id);

# over restart
in_force($id, 50303, 'close', $id);
$t->stop($_) for @nodes;
@nodes = map { $t->nginx(%node) } 1, 2;
is_deeply(buyers($id, 80), { 50303 => 80 }, 'closed over restart');

# all of them; each sale's own switch is beside that
in_force($other, 50303, 'close', '--all');
is_deeply([ $c->facts($other)->{state}, $redis->hget('seckill:control', 'state') ],
    [ 'open', 'closed' ], '--all is in the control hash');
in_force($other, 0, 'open', '--all');
is_deeply(buyers($id, 40), { 50303 => 40 }, 'what was closed by its id stays closed');
in_force($id, 0, 'open', $id);

# cut off before the nodes were told: running it again tells them
{
    my $before = $redis->hget('seckill:control', 'rev');
    local $ENV{SECKILLCTL_FAILPOINT} = 'after_switch';
    isnt(($c->ctl('close', $id))[0], 0, 'a run is cut off');
    is($redis->hget('seckill:control', 'rev'), $before, '... before the nodes hear of it');
    delete $ENV{SECKILLCTL_FAILPOINT};
    in_force($id, 50303, 'close', $id);
}

# what is no switch
for my $case ([ 'paused', qr/paused.*restore/ ], [ 'settled', qr/settled.*over for good/ ]) {
    my ($state, $words) = @{$case};
    $redis->hset("seckill:activity:{$other}", state => $state);
    for my $verb (qw(open close)) {
        my $before = $c->everything;
        my ($exit, undef, $err) = $c->ctl($verb, $other);
        is($exit, 4, "$verb of a $state sale is refused");
        like($err, $words, '... and says why');
        is($c->everything, $before, '... and changes nothing');
    }
}

{
    my ($exit, $json) = $c->ctl_json('open', $id);
    is_deeply([ $exit, @{$json}{qw(activity state was)} ], [ 0, $id, 'open', 'closed' ], '--json');
    is(($c->ctl('close', 999))[0], 1, 'an unknown activity is exit 1');
    is(($c->ctl('close'))[0], 2, 'none is misuse');
    is(($c->ctl('close', 1, '--all'))[0], 2, '... and so is one with --all');
    $redis->hdel("seckill:activity:{$id}", 'state');
    my ($bad, undef, $err) = $c->ctl('close', $id);
    is($bad, 4, 'damaged facts are refused');
    like($err, qr/damaged/, '... in words');
    $redis->del('seckill:control');
    is(($c->ctl('close', '--all'))[0], 4, 'without the control hash nothing is switched');
    is($redis->exists('seckill:control'), 0, '... and none is made');
}

done_testing();
