# reconcile while a sale runs: what moves while it looks is never wrong.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c  = BooksTest->new;
my $id = $c->sale(stock_limit => 50_000, products_stock => 50_000, max_quantity => 3);

$c->start;

# buyers come as fast as they can, and then one by one, so that the daemon keeps up
my $stop = $c->t->dir . '/stop';
my $pid = fork // die "fork: $!";
if (!$pid) {
    $c->{redis}{client} = $c->t->redis_client($c->{redis});
    my $user = 0;
    while (!-e $stop && $user < 30_000) {
        select undef, undef, undef, 0.03;
        my $n = -e "$stop.fast" ? 1 : 20;
        $c->buy($id, map { [ $_, 1 + $_ % 3 ] } $user + 1 .. $user + $n);
        $user += $n;
    }
    POSIX::_exit(0);
}

my (@wrong, %terms);
my $runs = 0;
my $began = time;
my $half;
while ($runs < 8 || time < $began + 6) {
    last if time > $began + 60;
    if ($runs >= 4 && time >= $began + 3 && !$half) {
        $half = 1;
        $c->t->file('stop.fast', '');
    }
    my ($exit, $one, $err) = $c->reconcile($id);
    $runs++;
    push @wrong, "$exit: missing $one->{units}{missing}, @{ BooksTest::found($one) }[0 .. 3] $err"
        if $exit != 0;
    $terms{$_} += $one->{units}{$_} for qw(orders unread pending);
}
$c->t->file('stop', '');
waitpid $pid, 0;

cmp_ok($runs, '>=', 5, "looked $runs times");
is_deeply(\@wrong, [], '... and nothing was ever wrong');
cmp_ok($terms{orders}, '>', 0, '... while orders were written');
cmp_ok($terms{unread} + $terms{pending}, '>', 0, '... and others waited');

$c->drain($id);
$c->halt;
my ($exit, $one) = $c->reconcile($id);
is($exit, 0, 'at the end the books are in order') or diag(explain($one->{units}));
is($one->{units}{orders} + $one->{units}{remaining}, 50_000, '... every unit is in them');

# a purchase and its order, both after the look at Redis and before that at MySQL
{
    my $other = $c->t->dbh($c->{mysql});
    $id = $c->sale;
    $c->buy($id, 1);
    $c->drain($id);
    $other->do('LOCK TABLES seckill_activities WRITE, seckill_orders WRITE, seckill_records WRITE');
    my $out = $c->t->dir . '/late.out';
    $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDOUT, '>', $out;
        my @command = ($c->t->build . '/seckillctl', '-c', $c->{conf}, 'reconcile', $id);
        { no warnings 'exec'; exec { $command[0] } @command; }
        POSIX::_exit(127);
    }
    $c->t->wait_for(sub {
        $c->column('SELECT COUNT(*) FROM information_schema.processlist '
            . "WHERE state LIKE '%metadata lock%' AND info LIKE '%seckill_activities WHERE id%'");
    }, 20, 'reconcile to wait for MySQL');
    is($c->buy($id, 2), '1', 'somebody buys meanwhile');
    my ($entry) = grep { $_->{user} == 2 } $c->entries($id);
    $other->do("INSERT INTO seckill_orders (order_no, user_id, product_id, activity_id, seckill_price, "
        . "epoch, seq) VALUES ('$entry->{order_no}', 2, $id, $id, 9.9, 1, $entry->{seq})");
    $other->do("INSERT INTO seckill_records (user_id, activity_id, status) VALUES (2, $id, 1)");
    $other->do("UPDATE seckill_activities SET sold = sold + 1, seq_seen = 2 WHERE id = $id");
    $other->do('UNLOCK TABLES');
    waitpid $pid, 0;
    my $exit = $? >> 8;
    open my $fh, '<', $out or die $!;
    local $/ = undef;
    my $said = <$fh>;
    is($exit, 0, '... and is not counted, as Redis was asked before') or diag($said);
    like($said, qr/^  orders +1\n.*^  missing +0$/ms, '... the books are those of that instant');
}

done_testing();
