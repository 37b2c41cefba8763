# What buyers hear while Redis has lost data of a sale, and through the whole of a
# restore: never "no purchase found" (F-D3), never "not started" (F-D2), nothing is sold;
# then the truth again.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../ctl";

use BooksTest;
use HTTP::Tiny;
use JSON ();
use NodesTest ();
use Test::More;
use Time::HiRes qw(sleep);

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;
my $key   = $t->file('jwt.key', NodesTest::KEY());

$t->allow_log(qr/lost data/);

sub node {
    return $t->nginx(redis => $c->{redis}, key_file => $key, workers => 1,
        location => 'seckill on; seckill_limit off; seckill_refresh 200ms;');
}

# the code of an answer
sub ask {
    my ($node, $method, $path, $user) = @_;
    my $r = HTTP::Tiny->new(timeout => 5)->request($method, "http://127.0.0.1:$node->{port}$path",
        { headers => { Authorization => 'Bearer ' . NodesTest::token($user) }, content => '' });
    my $json = eval { JSON->new->utf8->decode($r->{content}) } // {};
    return $json->{code} // "http $r->{status}";
}
sub post { my ($node, $id, $user) = @_; return ask($node, 'POST', "/seckill/$id", $user) }
sub poll { my ($node, $id, $user) = @_; return ask($node, 'GET', "/seckill/result/$id", $user) }

# never a "no", whoever asks
sub no_word {
    my ($nodes, $ids, $name) = @_;
    my %heard;
    for my $node (@{$nodes}) {
        for my $id (@{$ids}) {
            $heard{ 'POST ' . post($node, $id, $_) }++ for 1, 5, 99;
            $heard{ 'GET ' . poll($node, $id, $_) }++ for 1, 5, 99;
        }
    }
    my @bad = grep { !/^POST (?:5030[123]|40004)$|^GET (?:5030[123]|1|2)$/ } sort keys %heard;
    is_deeply(\@bad, [], $name) or diag(explain(\%heard));
    return;
}

my $node = node();
my @ids = map { $c->sale(stock_limit => 10) } 1, 2;
my ($id, $other) = @ids;
my $next = $c->activity(start => 300, end => 3600, stock_limit => 5);
for my $sale (@ids) {
    is(post($node, $sale, $_), 0, "user $_ buys of $sale") for 1 .. 5;
}
$c->start;
$c->drain(@ids);
is(poll($node, $id, 5), 1, 'user 5 has an order');

# part of it: Redis forgot 4 and 5 with their results
{
    $redis->hset($c->key(activity => $id), seq => 3);
    $redis->incrby($c->key(stock => $id), 2);
    $redis->srem($c->key(order_users => $id), 4, 5);
    $redis->del($c->key("result:$_", $id)) for 4, 5;
    my $fresh = node();
    $t->wait_for(sub { $c->facts($id)->{state} eq 'paused' }, 10, 'the pause');
    sleep 0.5;
    no_word([ $node, $fresh ], [$id], 'F-D3: while it is paused nobody hears "no purchase found"');

    $c->ctl_dies('after_clear', 'restore', $id, '--yes');
    $redis->del($c->key('result:1', $id));
    sleep 0.5;
    no_word([ $node, $fresh ], [$id], '... nor while a restore that was cut off waits');
    is(($c->ctl('restore', $id, '--yes'))[0], 0, 'restored');
    $t->wait_for(sub { poll($node, $id, 5) eq 1 }, 10, 'the truth');
    is(poll($_, $id, 5), 1, 'then user 5 hears of the order') for $node, $fresh;
    is(poll($node, $id, 99), 40006, '... and who bought nothing hears so');
    $t->wait_for(sub { post($node, $id, 99) =~ /^(?:0|40004)$/ }, 5, 'the node to sell again');
    pass('... and may buy, within seckill_refresh');
    $c->drain($id);
    $t->stop($fresh);
}

# all of it, and the timer preheats the next sale
{
    $redis->flushall;
    my $fresh = node();
    sleep 0.5;
    no_word([ $node, $fresh ], \@ids, 'F-D2: Redis is empty: nobody hears "not started"');
    is(($c->ctl('preheat', '--due', '10m'))[0], 0, 'the timer preheats the next sale');
    sleep 0.5;
    my $third = node();
    no_word([ $node, $fresh, $third ], \@ids, '... and still nobody does, at any node');
    is(post($node, $next, 1), 40001, '... but for the next sale, which is not open yet');
    for my $sale (@ids) {
        is(($c->ctl('restore', $sale, '--yes'))[0], 0, "sale $sale is restored");
    }
    $t->wait_for(sub { poll($node, $other, 5) eq 1 && poll($third, $other, 5) eq 1 }, 10, 'the truth');
    is(poll($_, $other, 5), 1, 'user 5 hears of the order') for $node, $fresh, $third;
    is(post($node, $other, 5), 40004, '... and has taken part');
    $t->wait_for(sub { post($node, $other, 11) =~ /^(?:0|40004)$/ }, 5, 'the node to sell again');
    is(post($node, $other, $_), 0, "user $_ buys") for 12 .. 15;
    is(post($node, $other, 16), 40005, '... until it is sold out');
}

# stock alone, which nginx saw first
{
    $c->drain($other);
    $redis->del($c->key(order_users => $id));
    $t->wait_for(sub { $c->facts($id)->{state} eq 'paused' }, 10, 'the pause');
    sleep 0.5;
    no_word([$node], [$id], 'F-D1: the buyers alone: nobody buys twice, nobody hears a "no"');
    is(($c->ctl('restore', $id, '--yes'))[0], 0, 'restored');
    $t->wait_for(sub { post($node, $id, 4) eq 40004 }, 10, 'the truth');
    sleep 0.5;
    is(post($node, $id, $_), 40004, "user $_ has taken part") for 1 .. 5;
}

# F-D5: settled, and its other keys gone: 40002 at every node, whether it asked before or not
{
    $redis->hset($c->key(activity => $other), end_ms => time * 1000 - 2000);
    is(($c->ctl('settle', $other, '--yes'))[0], 0, 'settled');
    $redis->del(map { $c->key($_ => $other) } qw(stock order_users orders));
    $redis->del($c->key("result:$_", $other)) for 1 .. 16;
    my $fresh = node();
    sleep 0.5;
    is(post($_, $other, 99), 40002, 'F-D5: it is over') for $node, $fresh;
    is(poll($fresh, $other, 99), 40002, '... also for who asks for a result');
}

$c->halt;

done_testing();
