# F-E1, F-E2: ids of a stream go up to 18446744073709551615-18446744073709551615 and
# are never numbers: whatever somebody put there is buried, who bought has an order.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $c    = ConsumerTest->new;
my $last = '18446744073709551615';
my $id   = 0;

sub pending { return ($c->redis->xpending($c->key(orders => $id), 'seckilld'))[0] }

for my $workers (1, 3) {
    $c->{conf} = $c->conf('consumer.workers' => $workers);
    for my $forged (int((time + 10 * 365 * 86400) * 1000) . '-0', '9007199254740993-0', "$last-5") {
        my $what = "$workers workers, $forged";

        $c->sale(++$id, units => 50, group => 1);
        $c->redis->xadd($c->key(orders => $id), $forged, 'v', 1, 'bad', 'yes');
        is($c->buy($id, 1 .. 5), '1' x 5, "$what: five buy");
        $c->start;
        $c->wait_settled($id, 20);
        $c->all_bought($id, [1 .. 5], '... and have orders');
        is_deeply([map { $_->{entry} } @{ $c->dead($id) }], [$forged], '... the forged one is buried');
        if ($forged =~ /^2/) {
            is($c->buy($id, 6 .. 8), '111', '... three more buy');
            $c->wait_settled($id, 20);
            $c->all_bought($id, [1 .. 8], '... and have orders');
        } else {
            ok($c->t->wait_for(sub { $c->redis->hget($c->key(activity => $id), 'state') eq 'paused' }, 10),
                '... a stream without room stops the sale');
        }
        is(pending(), 0, '... nothing is left pending');
        ok($c->stop, '... it stops well');
    }

    # three ids are left, the last one is taken by somebody
    $c->sale(++$id, units => 5, group => 1);
    $c->redis->xadd($c->key(orders => $id), "$last-18446744073709551611", 'v', 1, 'bad', 'yes');
    is($c->buy($id, 1 .. 10), '1' x 4 . '0' x 6, "$workers workers, four ids are left: four buy");
    $c->start;
    $c->wait_settled($id, 20);
    $c->all_bought($id, [1 .. 4], '... and have orders');
    is($c->redis->get($c->key(stock => $id)), 1, '... one unit is left');
    is($c->sold($id), 4, '... four are sold in MySQL');
    sleep 1;
    is(pending(), 0, '... nothing is left pending');
    my @errors = $c->t->log_text($c->{daemon}) =~ /(level=error[^\n]*(?:ERR |invalid)[^\n]*)/g;
    is_deeply(\@errors, [], '... and no command is refused for its ids');
    ok($c->stop, '... it stops well');
}

done_testing;
