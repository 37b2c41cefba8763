# A purchase that MySQL refuses for a reason of its own: attempts that grow
# apart, a tombstone, one letter, one alarm; the others do not wait for it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $c = ConsumerTest->new;
my $dir = $c->t->dir;
my $heard = "$dir/heard";
my $hook = $c->t->file('on-dead', <<"END", oct(755));
#!/bin/sh
{ echo "args=\$# \$*"; env; ls /proc/self/fd | wc -l; } >> $heard
END
$c->{conf} = $c->conf('consumer.on_dead' => $hook, 'consumer.retry' => '200ms');

sub rule { return $c->dbh->do("ALTER TABLE seckill_orders ADD CONSTRAINT bad "
    . "CHECK (request_id <> 'bad')") }
sub no_rule { return $c->dbh->do('ALTER TABLE seckill_orders DROP CONSTRAINT bad') }
sub heard { open my $fh, '<', $heard or return ''; local $/ = undef; return <$fh> }

$c->start;

# B9: five attempts, then a letter
{
    rule();
    $c->sale(1, units => 100);
    my $began = time;
    $c->buy(1, map { $_ == 57 ? [$_, 1, '', 'bad'] : $_ } 1 .. 100);
    $c->t->wait_for(sub { $c->order_count(1) == 99 }, 3, 'the good ones');
    cmp_ok(time - $began, '<', 1.4, 'the good ones do not wait');
    $c->t->wait_for(sub { defined $c->record(1, 57) }, 3, 'the record');
    is($c->record(1, 57), 0, 'the bad one is queueing while it is tried again');
    is($c->result(1, 57), undef, 'and not told anything');
    is($c->pending(1), 1, 'its entry stays pending');
    $c->wait_settled(1, 15);
    my $took = time - $began;
    cmp_ok($took, '>', 1.4, "intervals grow: $took s for 200, 400, 800, 1600 ms with jitter");

    my $dead = $c->dead(1);
    is(scalar @{$dead}, 1, 'one dead letter');
    is($dead->[0]{attempts}, 5, 'after five attempts');
    like($dead->[0]{first_error}, qr/^4025 /, 'with the first error');
    like($dead->[0]{last_error}, qr/^4025 /, 'and the last');
    cmp_ok($dead->[0]{dead_ms} - $dead->[0]{first_ms}, '>=', 1400, 'and both times');
    is($c->record(1, 57), 2, 'the tombstone stands');
    is($c->result(1, 57)->{reason}, 'data_error', 'the buyer hears it');
    is($c->sold(1), 99, 'its unit is not sold');

    $c->t->wait_for(sub { heard() =~ /args/ }, 5, 'the alarm command');
    my $entry = $dead->[0]{entry};
    like(heard(), qr/^args=3 1 57 \Q$entry\E$/m, 'the alarm names activity, user and entry');
    unlike(heard(), qr/SECKILL|mysql|redis|NOTIFY/i, 'and nothing else');
    my $lines = () = heard() =~ /args=/g;
    is($lines, 1, 'once');
    my $said = () = $c->t->log_text($c->{daemon}) =~ /can't be stored, trying again/g;
    is($said, 1, 'one line while it is tried');
}

# what heals meanwhile becomes an order
{
    $c->sale(2, units => 10);
    $c->buy(2, [1, 1, '', 'bad'], 2);
    $c->t->wait_for(sub { defined $c->record(2, 1) && $c->record(2, 1) == 0 }, 5, 'an attempt');
    no_rule();
    $c->wait_settled(2, 10);
    $c->all_bought(2, [1, 2], 'what can be stored at a later attempt is an order');
    is_deeply($c->dead(2), [], 'no dead letter');
    $c->dbh->do("UPDATE seckill_orders SET request_id = 'good' WHERE activity_id = 2");
}

# an outage is nobody's fault: it counts no attempt
{
    rule();
    $c->sale(3, units => 10);
    $c->buy(3, [1, 1, '', 'bad']);
    $c->t->wait_for(sub { defined $c->record(3, 1) }, 5, 'an attempt');
    $c->t->kill9($c->{mysql});
    sleep 3;
    is_deeply($c->dead(3), [], 'no letter while MySQL is down');
    $c->t->restart($c->{mysql});
    $c->{mysql}{dbh} = $c->t->dbh($c->{mysql});
    $c->wait_settled(3, 20);
    is($c->dead(3)->[0]{attempts}, 5, 'five attempts all the same');
    no_rule();
}

# killed while it waits: the next start begins anew, no double letter
{
    rule();
    $c->sale(4, units => 10);
    $c->buy(4, [1, 1, '', 'bad'], 2 .. 5);
    $c->t->wait_for(sub { defined $c->record(4, 1) }, 5, 'an attempt');
    $c->t->kill9($c->{daemon});
    $c->start;
    $c->wait_settled(4, 20);
    $c->all_bought(4, [2 .. 5], 'the others have orders');
    is(scalar @{ $c->dead(4) }, 1, 'one letter after a kill');
    is($c->record(4, 1), 2, 'and a tombstone');
    no_rule();
}

# more bad ones than may wait: the activity waits, nothing is lost
{
    rule();
    $c->{conf} = $c->conf('consumer.retry' => '20ms', 'consumer.attempts' => 3);
    $c->stop;
    $c->start;
    $c->sale(5, units => 1000);
    $c->buy(5, (map { [$_, 1, '', 'bad'] } 1 .. 400), 401 .. 500);
    $c->wait_settled(5, 60);
    is(scalar @{ $c->dead(5) }, 400, 'four hundred letters');
    is($c->order_count(5), 100, 'a hundred orders');
    no_rule();
}

# a command that can't run, and one that hangs, keep nothing waiting
{
    $c->{conf} = $c->conf('consumer.on_dead' => '/nowhere/at/all', 'consumer.attempts' => 1);
    $c->stop;
    $c->start;
    $c->sale(6, units => 10);
    $c->add(6, $c->message(6, 1, v => 99));
    $c->wait_settled(6, 5);
    $c->t->wait_log($c->{daemon}, qr/on_dead command can't run/);
    is(scalar @{ $c->dead(6) }, 1, 'no command, a letter all the same');
    my $hang = $c->t->file('hang', "#!/bin/sh\nexec sleep 5\n", oct(755));
    $c->{conf} = $c->conf('consumer.on_dead' => $hang);
    $c->stop;
    $c->start;
    $c->add(6, $c->message(6, $_, v => 99)) for 2 .. 5;
    $c->wait_settled(6, 5);
    is(scalar @{ $c->dead(6) }, 5, 'nothing waits for a command that hangs');
    my $began = time;
    ok($c->stop, 'the daemon stops well');
    cmp_ok(time - $began, '<', 1, 'at once');
}

done_testing;
