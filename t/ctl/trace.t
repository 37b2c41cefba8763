# trace: the story of one purchase at each stage of it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use Test::More;

my $c  = BooksTest->new;
my $id = $c->sale(stock_limit => 50, max_quantity => 2);

# buys with a request_id of its own
sub buy {
    my ($user, $request_id) = @_;
    my @keys = map { $c->key($_, $id) } qw(activity stock order_users orders eligible);
    open my $fh, '<:raw', $c->t->root . '/lua/admit.lua' or die "admit.lua: $!";
    my $admit = do { local $/ = undef; <$fh> };
    return $c->redis->eval($admit, scalar @keys, @keys, $id, 1, 0, 0, $user, 2, $request_id, '')->[5];
}
is(buy(7, 'req-seven'), '1', 'somebody buys');
is(buy(8, 'req-eight'), '1', '... and another one');

my ($exit, $out, $err) = $c->ctl('trace', 'req-seven');
is($exit, 0, 'found in the stream') or diag($err);
like($out, qr/^  stream +activity $id, entry \d+-\d+: user 7, 2 units, epoch 1 seq 1, order_no (\d{32}), request_id req-seven, accepted 2/m,
    '... with all of it');
like($out, qr/^  way +entry \S+ is unread: no consumer/m, '... on its way: unread');
my ($order_no) = $out =~ /order_no (\d{32})/;
like($out, qr/^  order_users +user 7 is among/m, '... the buyer');
like($out, qr/^  result +none/m, '... has no result');
unlike($out, qr/^  order /m, '... and no order');
unlike($out, qr/user 8/, '... others are not part of it');

# delivered, twice, and not acknowledged
$c->redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'COUNT', 10, 'STREAMS', $c->key('orders', $id), $_) for '>', 0;
(undef, $out) = $c->ctl('trace', 'req-seven');
like($out, qr/^  way +entry \S+ is pending: with test-1 since \d+ ms, delivered 2 times$/m, 'with a consumer');
$c->{conf} = $c->t->conf(redis => $c->{redis}, mysql => $c->{mysql}, 'consumer.claim_idle' => '100ms');

$c->drain($id);
for my $name ('req-seven', $order_no) {
    ($exit, $out) = $c->ctl('trace', $name);
    is($exit, 0, "$name is traced");
    like($out, qr/^  order +id \d+: activity $id, user 7, order_no $order_no, request_id req-seven, 2 units, epoch 1 seq 1, created/m,
        '... to its order');
    like($out, qr/^  way +entry \S+ is acknowledged$/m, '... on its way: done');
    like($out, qr/^  record +success/m, '... its record');
    like($out, qr/^  result +\{"success":true.*$order_no/m, '... and its result');
}

# the entry is gone, the order stays; the ledger knows a cancelled one
$c->dbh->do("INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, actor) "
    . "VALUES ($id, $id, 1, 'cancel', 'order:$order_no', 2, 'test')");
$c->redis->xtrim($c->key('orders', $id), 'MAXLEN', 0);
($exit, my $json) = $c->ctl_json('trace', $order_no);
is($exit, 0, 'traced without the entry');
is_deeply([ map { $_->{where} } @{ $json->{story} } ], [qw(order order_users result record ledger)],
    '... by all that is left');
like($json->{story}[-1]{what}, qr/^cancel order:$order_no: 2 units, by test/, '... the ledger too');

# a dead letter
buy(9, 'req-nine');
$c->bury($id, 9);
($exit, $out) = $c->ctl('trace', 'req-nine');
is($exit, 0, 'a dead letter is traced');
like($out, qr/^  dead letter +activity $id, entry \S+: user 9, .* data_error$/m,
    '... with the error');
like($out, qr/^  record +failed/m, '... and the record');

# the ledger, by each way it names a purchase; others' rows are not told
my ($nine) = grep { $_->{user} eq '9' } $c->entries($id);
my $letter = ($c->entries($id, 'dead'))[-1]{id};
$c->dbh->do("INSERT INTO seckill_stock_log (activity_id, product_id, epoch, kind, ref, units, actor) VALUES "
    . join ', ', map {"($id, $id, $_->[0], '$_->[1]', '$_->[2]', 2, 'test')"}
    [ 1, 'release', 'user:9' ], [ 1, 'extra', $nine->{seq} ], [ 1, 'surplus', "seq:1:$nine->{seq}" ],
    [ 1, 'retry', $letter ], [ 2, 'extra', $nine->{seq} ], [ 1, 'release', 'user:99' ], [ 1, 'retry', '1-1' ]);
($exit, $json) = $c->ctl_json('trace', 'req-nine');
is_deeply([ map { $_->{what} =~ /^(\S+ [^:]+(?::\d+)*):/ } grep { $_->{where} eq 'ledger' } @{ $json->{story} } ],
    [ 'release user:9', "extra $nine->{seq}", "surplus seq:1:$nine->{seq}", "retry $letter" ], 'its ledger')
    or diag(explain($json));

# --scan is a bound, and said so
buy($_, "late-$_") for 11, 12, 13;
$c->redis->xadd($c->key('orders', $id), '*', 'x', $_) for 1 .. 600;
is(($c->ctl('trace', 'late-11'))[0], 0, 'older entries are found');
($exit, undef, $err) = $c->ctl('trace', 'late-11', '--scan', 1);
is($exit, 1, '... not beyond --scan');
like($err, qr/--scan/, '... which is named');

# an order whose entry is gone: by request_id among the newest orders, or in its sale
$c->redis->xtrim($c->key('orders', $id), 'MAXLEN', 0);
is(($c->ctl('trace', 'req-seven'))[0], 0, 'an order is found by request_id');
$c->dbh->do("UPDATE seckill_orders SET id = id + 500 WHERE user_id = 8");
($exit, undef, $err) = $c->ctl('trace', 'req-seven', '--scan', 100);
is($exit, 1, '... not beyond --scan');
like($err, qr/--activity/, '... and --activity is named');
is(($c->ctl('trace', 'req-seven', '--scan', 100, '--activity', $id))[0], 0, '... with which it is');
is(($c->ctl('trace', 'req-seven', '--activity', 77))[0], 1, '... but not in another sale');
is(($c->ctl('trace', $order_no, '--scan', 1))[0], 0, 'an order_no needs none of it');
is(($c->ctl('trace', 'req-seven', '--activity', 'x'))[0], 2, 'not an activity');

is(($c->ctl('trace', 'nobody'))[0], 1, 'no trace is exit 1');
is(($c->ctl('trace', $_))[0], 2, 'misuse') for '', 'x' x 65;
is(($c->ctl('trace', q{' OR '1'='1}))[0], 1, 'a quote is a letter');

done_testing();
