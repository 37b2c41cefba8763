# Power fails while the last script is on its way to the disk: the AOF may end
# after any of its bytes.  Redis must come up, and the script must have happened
# as a whole or not at all.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use File::Copy qw(copy);
use File::Path qw(make_path remove_tree);
use POSIX ();
use SeckillTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $t  = SeckillTest->new;
my $id = 7;
my ($facts, $stock, $buyers, $orders, $eligible) =
    map {"seckill:$_:{$id}"} qw(activity stock order_users orders eligible);

sub script {
    my ($name) = @_;
    open my $fh, '<:raw', $t->root . "/lua/$name.lua" or die "cannot read $name.lua: $!\n";
    local $/ = undef;
    return scalar <$fh>;
}

# Everything a script of ours may have changed, as one text.
sub state_of {
    my ($redis) = @_;

    my %hash    = @{ $redis->hgetall($facts) };
    my $entries = $redis->xrange($orders, '-', '+');
    my $pending = $redis->xpending($orders, 'seckilld');
    my @keys    = sort $redis->keys('seckill:result:*');
    return join ' ', (map {"$_=$hash{$_}"} sort keys %hash), 'left ' . $redis->get($stock),
        'buyers ' . join(',', sort { $a <=> $b } $redis->smembers($buyers)),
        'entries ' . join(',', map { my %f = @{ $_->[1] }; "$_->[0]:$f{user}" } @{$entries}),
        "pending $pending->[0]", 'results ' . join(',', map { "$_=" . $redis->get($_) } @keys);
}

# Runs one call against a Redis with an AOF; returns its folder, where the call
# begins and ends in the file, and the states before and after it.
sub record {
    my ($call) = @_;

    my $server = $t->redis(appendonly => 'yes', appendfsync => 'always', 'auto-aof-rewrite-percentage' => 0);
    my $redis  = $server->{client};
    $redis->hset($facts, product_id => 1, price => '9.90', stock_limit => 10, start_ms => 1000,
                 end_ms => 4e12, state => 'open', max_quantity => 2, eligible => 0, epoch => 1, rev => 1, seq => 0);
    $redis->set($stock, 10);
    $redis->xgroup('CREATE', $orders, 'seckilld', 0, 'MKSTREAM');
    my $admit = script('admit');
    $redis->eval($admit, 5, $facts, $stock, $buyers, $orders, $eligible, $id, 1, 0, 0, 1, 1, 'req', '');
    $redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'STREAMS', $orders, '>');

    my ($file) = glob "$server->{dir}/appendonlydir/*.incr.aof";
    my %case   = (dir => "$server->{dir}/appendonlydir", file => (split m{/}, $file)[-1],
                  from => -s $file, before => state_of($redis));
    $call->($redis, $admit);
    @case{qw(to after)} = (-s $file, state_of($redis));
    $t->kill9($server);

    return \%case;
}

# Redis with the file cut at one byte: its state, or why it did not come up.
sub cut_at {
    my ($case, $bytes) = @_;

    my $dir = $t->dir . '/cut';
    remove_tree($dir);
    make_path("$dir/appendonlydir");
    copy($_, "$dir/appendonlydir/") or die "copy: $!\n" for glob "$case->{dir}/*";
    truncate "$dir/appendonlydir/$case->{file}", $bytes or die "truncate: $!\n";

    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', "$dir/log";
        open STDERR, '>&', \*STDOUT;
        my @command = ('setpriv', '--pdeathsig', 'KILL', 'redis-server', '--port', 0, '--unixsocket',
                       "$dir/s", '--dir', $dir, '--appendonly', 'yes', '--save', '');
        { no warnings 'exec'; exec { $command[0] } @command; }
        POSIX::_exit(127);
    }
    my ($state, $deadline) = (undef, time + 10);
    while (time < $deadline && !defined $state) {
        $state = eval { state_of(Redis->new(sock => "$dir/s", reconnect => 0)) };
        sleep 0.002 if !defined $state;
    }
    kill 'KILL', $pid;
    waitpid $pid, 0;

    return $state // 'Redis did not come up';
}

# Cuts after every byte of the call.
sub all_or_nothing {
    my ($what, $case) = @_;

    my ($wrong, %seen) = (0);
    isnt($case->{before}, $case->{after}, "$what changes something, $case->{from} to $case->{to}");
    for my $bytes ($case->{from} .. $case->{to}) {
        my $state = cut_at($case, $bytes);
        my $is = $state eq $case->{before} ? 'before' : $state eq $case->{after} ? 'after' : 'neither';
        $seen{$is}++;
        next if $is ne 'neither' && ($is eq 'after') == ($bytes == $case->{to});
        diag("cut at $bytes: $state") if $wrong++ < 3;
    }
    is($wrong, 0, "$what: whole only with its last byte, nothing before");
    is($seen{before}, $case->{to} - $case->{from}, "$what: tried at each of " . ($case->{to} - $case->{from}) . ' bytes');
    return;
}

require Redis;

all_or_nothing('a batch of purchases', record(sub {
    my ($redis, $admit) = @_;
    $redis->eval($admit, 5, $facts, $stock, $buyers, $orders, $eligible, $id, 3, 0, 0,
                 2, 1, 'req', '', 1, 1, 'req', '', 3, 2, 'req', 'sku');
}));

all_or_nothing('a settled batch', record(sub {
    my ($redis) = @_;
    my ($entry) = @{ $redis->xrange($orders, '-', '+') };
    $redis->eval(script('settle'), 2, $orders, "seckill:result:1:{$id}", 'seckilld', "seckill:results:{$id}",
                 $entry->[0], 1, '{"success":true,"order_id":5,"order_no":"26112912000000000000700000010001"}');
}));

done_testing;
