# limit, close and open while a crowd buys: in force on every node and worker within
# seckill_refresh; over reload, resize of the zone and restart.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use NodesTest;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

use constant REFRESH => 0.4;

# what a machine with two cores and other work may lose beside that
use constant LATE => 1.0;

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;
my $id    = $c->sale(stock_limit => 1_000_000, products_stock => 1_000_100);
my $other = $c->sale(stock_limit => 1_000_000, products_stock => 1_000_000);

my @nodes;
my $user = 0;

sub start {
    my ($directives) = @_;
    $t->stop($_) for @nodes;
    @nodes = map {
        $t->nginx(redis => $c->{redis}, key_file => $t->file('auth.key', NodesTest::KEY), workers => 2,
            http => "$directives seckill_refresh 400ms; seckill_redis_timeout 2s; "
                  . 'seckill_redis_connect_timeout 2s; seckill_timeout 5s;')
    } 1, 2;
    return;
}

# Posts n times two purchases of one new user, both to one node ("node") or one to
# each, and returns how many pairs were answered how, like { '0 40003' => 20 }.
sub pairs {
    my ($sale, $n, $across) = @_;

    my @requests = map {
        my $i = $_;
        $user++;
        map { [ $nodes[ ($i + ($across ? $_ : 0)) % 2 ]{port}, $user, "/seckill/$sale" ] } 0, 1;
    } 1 .. $n;

    # pairs share a connection unless they go to different nodes
    my @answers = map { NodesTest::code($_) } NodesTest::burst(1, @requests[ map { 2 * $_, 2 * $_ + 1 } 0 .. $n - 1 ]);
    my %count;
    $count{ join ' ', sort { $a <=> $b } @answers[ 2 * $_, 2 * $_ + 1 ] }++ for 0 .. $n - 1;
    return \%count;
}

# Runs the tool and looks until all pairs are answered so; the last other answer
# must have been asked for within seckill_refresh.  Nothing else is said meanwhile.
sub in_force {
    my ($sale, $words, $between, @args) = @_;
    my %fine = map { $_ => 1 } $words, @{$between};

    my ($exit, $out, $err) = $c->ctl(@args);
    my $told = time;
    is($exit, 0, "@args") or diag($err);

    my ($last, %odd) = (0);
    while (time < $told + REFRESH + LATE + 0.5) {
        my $asked = time - $told;
        my $count = pairs($sale, 10);
        $last = $asked if grep { $_ ne $words } keys %{$count};
        $odd{$_} += $count->{$_} for grep { !$fine{$_} } keys %{$count};
    }
    is_deeply(pairs($sale, 40), { $words => 40 }, "... in force on all nodes: $words");
    cmp_ok($last, '<=', REFRESH + LATE, sprintf '... the last other answer was asked for after %.0f ms', $last * 1000);
    is_deeply(\%odd, {}, '... and nothing else was said meanwhile');
    return $out;
}

# a crowd of new users, each twice, on connections and in processes of its own
sub crowd {
    my ($sale) = @_;
    my $base = $t->dir . '/crowd';
    my $pid = fork // die "fork: $!";
    return $pid if $pid;

    my %count;
    my $buyer = 10_000_000;
    $SIG{TERM} = sub {
        $t->file('crowd', join '', map {"$_ $count{$_}\n"} sort keys %count);
        POSIX::_exit(0);
    };
    while (1) {
        my @requests = map { my $i = $_; $buyer++; map { [ $nodes[ $i % 2 ]{port}, $buyer, "/seckill/$sale" ] } 1, 2 } 1 .. 60;
        $count{ NodesTest::code($_) }++ for NodesTest::burst(6, @requests);
    }
}

sub crowd_end {
    my ($pid) = @_;
    kill 'TERM', $pid;
    waitpid $pid, 0;
    open my $fh, '<', $t->dir . '/crowd' or die "no tally of the crowd: $!";
    return { map { split ' ' } <$fh> };
}

sub reloaded {
    my ($what) = @_;
    my @old = map { $t->children($_) } @nodes;
    kill 'HUP', $_->{pid} for @nodes;
    $t->wait_for(sub { !grep { kill 0, $_ } @old }, 20, "the old workers to end: $what");
    return;
}

start('seckill_limit off;');
is_deeply(pairs($id, 40), { '0 40004' => 40 }, 'nobody is limited');

# changed under load
my $crowd = crowd($id);
sleep 0.5;
my $rev  = $c->facts($id)->{rev};
my $line = in_force($id, '0 40003', ['0 40004'], 'limit', $id, '1r/m');
like($line, qr/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC \S.*: activity $id, rev @{[ $rev + 1 ]}: limit of a user 1r\/m burst=0, before that as configured$/m,
    'who set it and when is printed');
# the script hears it at once, the node's limit does not know yet
my @closing = ('0 40003', '0 50303', '40003 50303');
in_force($id, '50303 50303', \@closing, 'close', $id);
in_force($id, '0 40003', [ @closing, '50303 50303' ], 'open', $id);
in_force($id, '50303 50303', \@closing, 'close', '--all');
in_force($id, '0 40003', [ @closing, '50303 50303' ], 'open', '--all');
in_force($id, '0 40004', ['0 40003'], 'limit', $id, '1r/m', 'burst=5');
in_force($id, '0 40003', ['0 40004'], 'limit', $id, '2r/m');
{
    my $tally = crowd_end($crowd);
    my %known = map { $_ => delete $tally->{$_} // 0 } qw(0 40003 40004 50303);
    note("the crowd heard: @{[ %known ]}");
    is_deeply($tally, {}, 'the crowd heard nothing else');
    cmp_ok($known{$_}, '>', 100, "... and $_ many times") for sort keys %known;
}

is_deeply(pairs($other, 20), { '0 40004' => 20 }, 'another sale has no limit');

# what the nodes forget comes back from Redis
reloaded('reload');
is_deeply(pairs($id, 40), { '0 40003' => 40 }, 'limited over reload');
{
    for my $node (@nodes) {
        my $path = $node->{command}[-1];
        open my $in, '<', $path or die $!;
        local $/ = undef;
        (my $conf = <$in>) =~ s/seckill_zone seckill:8m;/seckill_zone seckill:12m;/ or die 'no zone';
        open my $out, '>', $path or die $!;
        print {$out} $conf;
        close $out or die $!;
    }
    reloaded('resize');
    is_deeply(pairs($id, 40), { '0 40003' => 40 }, '... over a resize of the zone');
    $t->stop($_) for @nodes;
    $t->restart($_) for @nodes;
    is_deeply(pairs($id, 40), { '0 40003' => 40 }, '... over restart');
}
is(($c->ctl('restock', $id, 5, '--ref', 'more'))[0], 0, 'restock');
sleep REFRESH + LATE;
is_deeply(pairs($id, 40), { '0 40003' => 40 }, '... keeps it');

# its own, that of all, nginx'
in_force($id, '0 40004', ['0 40003'], 'limit', $id, 'default');
in_force($other, '0 40003', ['0 40004'], 'limit', '--all', '1r/m');
is_deeply(pairs($id, 20), { '0 40003' => 20 }, '--all is for all');
in_force($id, '0 40004', ['0 40003'], 'limit', $id, 'off');
is_deeply(pairs($other, 20), { '0 40003' => 20 }, '... and its own beats it');
{
    my (undef, $json) = $c->ctl_json('status');
    is_deeply($json->{control}, { state => 'open', limit => { rate => '1r/m', burst => 0 } }, 'status has that of all');
    is_deeply([ map { $_->{facts}{limit} } @{ $json->{activities} } ], [ { rate => 'off', burst => 0 }, undef ], '... and their own');
    my ($exit, $out) = $c->ctl('status');
    like($out, qr/^activity $id:.*^  user limit +off, its own\n.*^activity $other:.*^  user limit +1r\/m burst=0, that of all$/ms, '... in words');
    (undef, $out) = $c->ctl('doctor', $id);
    like($out, qr/^  warning +user limit +1r\/m burst=0, in place of nginx' own\b/m, 'doctor warns of that of all');
    like($out, qr/^  warning +user limit +off, in place/m, '... and of its own');
    $redis->hset("seckill:activity:{$id}", limit => 'often');
    (undef, $out) = $c->ctl('doctor', $id);
    like($out, qr/^  wrong +user limit +often\b/m, '... and a damaged one is wrong');
}

# shared by all nodes, where nginx says so: one of a pair at two nodes
$c->ctl('limit', $id, 'default');
$c->ctl('limit', '--all', 'default');
start('seckill_limit rate=1000r/s scope=cluster;');
sleep 0.1;
{
    my $words = sub { my $count = pairs($other, 20, 1); $count->{'0 40003'} // 0 };
    cmp_ok($words->(), '<', 20, 'two nodes let both pass');
    is(($c->ctl('limit', $other, '1r/m'))[0], 0, 'limit');
    sleep REFRESH + LATE;
    is_deeply(pairs($other, 40, 1), { '0 40003' => 40 }, 'scope=cluster: one of two passes, whichever node it is');
    is(($c->ctl('limit', $other, 'off'))[0], 0, 'off');
    sleep REFRESH + LATE;
    is_deeply(pairs($other, 40, 1), { '0 40004' => 40 }, '... and both');
    $c->ctl('limit', $other, 'default');
}

# the tool
{
    my $before = $redis->hget('seckill:control', 'rev');
    local $ENV{SECKILLCTL_FAILPOINT} = 'after_limit';
    isnt(($c->ctl('limit', $id, '9r/m'))[0], 0, 'a run is cut off');
    is($redis->hget('seckill:control', 'rev'), $before, '... before the nodes hear of it');
    delete $ENV{SECKILLCTL_FAILPOINT};
    $rev = $c->facts($id)->{rev};
    like(($c->ctl('limit', $id, '9r/m'))[1], qr/as it was before$/m, 'again changes nothing');
    is($c->facts($id)->{rev}, $rev, '... not even rev');
    is($redis->hget('seckill:control', 'rev'), $before + 1, '... but tells the nodes');
}
{
    my ($exit, $json) = $c->ctl_json('limit', $id, '3r/s', 'burst=7');
    is_deeply([ $exit, @{$json}{qw(activity rev limit was)} ],
        [ 0, $id, $rev + 1, { rate => '3r/s', burst => 7 }, { rate => '9r/m', burst => 0 } ], '--json');
    ($exit, $json) = $c->ctl_json('limit', $id, 'default');
    is_deeply([ $exit, @{$json}{qw(limit was)} ], [ 0, undef, { rate => '3r/s', burst => 7 } ], '... of default');
    ($exit, $json) = $c->ctl_json('limit', '--all', 'off');
    is_deeply([ $exit, exists $json->{activity}, @{$json}{qw(activity limit was)} ],
        [ 0, 1, undef, { rate => 'off', burst => 0 }, undef ], '... of all');
    like(($c->ctl('limit', '--all', 'default'))[1], qr/: all activities: limit of a user as configured, before that off$/m, 'in words');
}
for my $args ([], [$id], ['--all'], [ 'x', '1r/s' ], [ $id, '0r/s' ], [ $id, '01r/s' ], [ $id, '1001r/s' ], [ $id, '1r/h' ],
    [ $id, '1r/s', 'burst=1001' ], [ $id, '1r/s', 'burst=' ], [ $id, '1r/s', '5' ], [ $id, 'off', 'burst=1' ],
    [ $id, 'default', 'burst=0' ], [ $id, '1r/s', 'burst=1', 'more' ], [ $id, '--all', '1r/s' ])
{
    my $before = $c->everything;
    is(($c->ctl('limit', @{$args}))[0], 2, "misuse: limit @{$args}");
    is($c->everything, $before, '... changes nothing');
}
{
    is(($c->ctl('limit', 999, '1r/s'))[0], 1, 'an unknown activity is exit 1');
    $redis->hset("seckill:activity:{$other}", state => 'settled');
    my $before = $c->everything;
    my ($exit, undef, $err) = $c->ctl('limit', $other, '1r/s');
    is($exit, 4, 'a settled one is refused');
    like($err, qr/settled.*over for good/, '... and says why');
    is($c->everything, $before, '... and nothing is changed');
    $redis->hdel("seckill:activity:{$id}", 'state');
    ($exit, undef, $err) = $c->ctl('limit', $id, '1r/s');
    is($exit, 4, 'damaged facts are refused');
    like($err, qr/damaged/, '... in words');
    $redis->del('seckill:control');
    is(($c->ctl('limit', '--all', '1r/s'))[0], 4, 'without the control hash nothing is set');
    is($redis->exists('seckill:control'), 0, '... and none is made');
}

done_testing();
