# The whole tool against the real thing: schema, preheat, a crowd through nginx
# and seckilld, then status and order show on what came of it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;

my $c   = CtlTest->new;
my $t   = $c->t;
my $key = $t->key_file;
my $id  = $c->activity(start => -5, stock_limit => 50);

is(($c->ctl('preheat', $id, '--late'))[0], 0, 'preheated');

my $daemon = $t->seckilld($c->{conf});
my $nginx  = $t->nginx(redis => $c->{redis}, key_file => $key, workers => 2);
my @verify = ('verify', $id, '--url', "http://127.0.0.1:$nginx->{port}/seckill", '--key-file',
    $key, '--users', 500, '--requests', 1000, '--concurrency', 50);

{
    my ($exit, $json, $err) = $c->ctl_json(@verify);
    is($exit, 0, 'the sale passes') or diag($err, explain($json));
    is_deeply([ grep { $_->{result} ne 'ok' } @{ $json->{checks} } ], [], '... every check is ok');
    is($json->{verdicts}{accepted}, 50, '... every unit is sold');
    is($json->{verdicts}{other}, 0, '... every answer is one of ours');
}

{
    my ($exit, $json) = $c->ctl_json('status', $id);
    my $one = $json->{activities}[0];
    is($one->{phase}, 'running', 'status knows that it runs');
    is_deeply([ @{$one}{qw(stock buyers unread pending dead orders units_ordered mysql_sold)} ],
        [ 0, 50, 0, 0, 0, 50, 50, 50 ], '... and that everything is sold and ordered');
    is($one->{facts}{seq}, 50, '... in as many purchases');
}

{
    my ($no, $user) = $c->dbh->selectrow_array('SELECT order_no, user_id FROM seckill_orders '
            . 'WHERE activity_id = ? ORDER BY seq DESC LIMIT 1', undef, $id);
    my ($exit, $json) = $c->ctl_json('order', 'show', $no);
    is($exit, 0, 'order show knows a real order');
    is($json->{order_no}{seq_mod_10000000}, 50, '... whose number holds the seq');
    is($json->{order_no}{activity_mod_1000000}, $id, '... and the activity');
    is($json->{order_no}{user_mod_10000}, $user, '... and the user');
    cmp_ok(abs($json->{order_no}{accepted_ms} / 1000 - time), '<', 120, '... and the time');
}

# the sale is over, and stays over
{
    my ($exit, $json) = $c->ctl_json(@verify, '--first-user', 1001);
    is($exit, 0, 'another crowd finds nothing left, and the books in order');
    is($json->{verdicts}{accepted} // 0, 0, '... nobody is accepted');

    is(($c->ctl('preheat', $id))[0], 4, 'a preheat in the middle is refused');
}

done_testing();
