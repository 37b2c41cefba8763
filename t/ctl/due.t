# preheat --due for a timer, status --watch for a terminal.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;

my $c     = CtlTest->new;
my $redis = $c->redis;

like(($c->ctl('preheat', '--due', '10m'))[1], qr/^no activity starts/, 'nothing is due');

my $soon    = $c->activity(start => 300);
my $later   = $c->activity(start => 3000);
my $running = $c->activity(start => -60);
my $settled = $c->activity(start => 300, status => 2);
my $poor    = $c->activity(start => 100, products_stock => 5);
my $edge    = $c->activity(start => 590);

my $live = sub { [ grep { $redis->exists("seckill:activity:{$_}") } 1 .. $edge ] };

{
    my $before = $c->everything;
    my ($exit, $out) = $c->ctl('preheat', '--due', '10m', '--dry-run');
    is($exit, 5, 'a dry run says what would be refused');
    is($c->everything, $before, '... and changes nothing');

    ($exit, $out, my $err) = $c->ctl('preheat', '--due', '10m');
    is($exit, 5, 'one is refused: partly done');
    like($err, qr/activity $poor|products/, '... and it is named');
    is_deeply($live->(), [ $soon, $edge ], '... all others that are due are ready, no more');
    like($out, qr/^activity $soon: created\n.*^activity $edge: created\n/ms, '... and told in turn');
}
{
    $c->dbh->do('UPDATE products SET stock = 500 WHERE id = ?', undef, $poor);
    my ($exit, $json) = $c->ctl_json('preheat', '--due', '10m');
    is($exit, 0, 'the next run of the timer heals it');
    is_deeply([ map {"$_->{activity} $_->{status}"} @{ $json->{activities} } ],
        [ "$poor created", "$soon unchanged", "$edge unchanged" ], '... and leaves the rest alone');
    is($c->products_stock($soon), 900, '... units are reserved once');
}
for my $args ([ '--due', '10m', $soon ], [ '--due', '10m', '--late' ], [ '--due', '0s' ],
    [ '--due', '10' ], [ '--due', '25h' ])
{
    is(($c->ctl('preheat', @{$args}))[0], 2, "misuse: @{$args}");
}

# --watch sees what changes, and an outage, until it is stopped
{
    my $out = $c->t->dir . '/watch.out';
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDOUT, '>', $out;
        open STDERR, '>&', \*STDOUT;
        my @command = ($c->t->build . '/seckillctl', '-c', $c->{conf}, 'status', $soon, '--watch=1');
        { no warnings 'exec'; exec { $command[0] } @command; }
        POSIX::_exit(127);
    }
    my $seen = sub {
        my ($what) = @_;
        return $c->t->wait_for(sub {
            open my $fh, '<', $out or return 0;
            local $/ = undef;
            return (<$fh> // '') =~ $what;
        }, 10, "\"$what\" on the screen");
    };
    ok($seen->(qr/^  stock +100$/m), 'the stock is shown');
    $redis->set("seckill:stock:{$soon}", 77);
    ok($seen->(qr/^  stock +77$/m), '... and what became of it');
    $c->t->stop($c->{redis});
    ok($seen->(qr/Redis: /), '... an outage is told');
    ok(kill(0, $pid), '... and watched to its end');
    kill 'TERM', $pid;
    waitpid $pid, 0;
}
is(($c->ctl('status', '--watch=0'))[0], 2, '0 seconds are refused');

done_testing();
