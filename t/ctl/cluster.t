# A28: a Redis Cluster, which is not supported.  Each program says what it met,
# nothing is half done, and no buyer hears "sold out".

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use NodesTest qw(burst code tally);
use Test::More;

my $c = CtlTest->new;
my $t = $c->t;

# a node of a cluster that serves half of the slots, and knows who has the others
my ($bus, @nodes);
for (1, 2) {
    $bus = $t->port;
    push @nodes, $t->redis('cluster-enabled' => 'yes', 'cluster-node-timeout' => 5000, 'cluster-port' => $bus);
}
my @half  = ([0, 8191], [8192, 16_383]);
for my $n (0, 1) {
    $nodes[$n]{client}->cluster('addslotsrange', @{ $half[$n] });
    $nodes[$n]{client}->cluster('set-config-epoch', $n + 1);
}
$nodes[0]{client}->cluster('meet', '127.0.0.1', $nodes[1]{port}, $bus);
for my $node (@nodes) {
    $t->wait_for(sub { join('', @{ [$node->{client}->cluster('info')] }) =~ /cluster_state:ok/ }, 20, 'the cluster');
}

my $id = $c->activity;
my $conf = $t->conf(redis => $nodes[0], mysql => $c->{mysql});
my ($exit, undef, $err) = $t->ctl($conf, 'preheat', $id);
isnt($exit, 0, 'preheat into a cluster is refused or breaks off');
like($err, qr/\b(?:MOVED|cluster)\b/i, '... and says why') or diag($err);
is($c->products_stock($id), 1000, '... before it took a unit');

($exit, my $out, $err) = $t->ctl($conf, 'doctor', $id);
isnt($exit, 0, 'the doctor finds it');
like("$out$err", qr/\b(?:MOVED|cluster)\b/i, '... and says why') or diag($out, $err);

my $daemon = $t->seckilld($conf);
$t->wait_log($daemon, qr/level=error .*(?:MOVED|cluster)/i);
pass('the daemon says so, and waits');
is($t->stop($daemon), 0, '... and stops well');

my $node = $t->nginx(redis => $nodes[0], key_file => $t->file('auth.key', NodesTest::KEY));
my @answers = burst(10, map { [$node->{port}, $_, "/seckill/$id"] } 1 .. 20);
is_deeply([grep { !/^5030[12]\z/ } keys %{ tally(@answers) }], [], 'a buyer hears that it is unavailable, and nothing else')
    or diag(explain(tally(@answers)));
$t->stop($node);

done_testing();
