# order show: a number read back, and the row behind it.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;

my $c    = CtlTest->new;
my $user = '18446744073709551615';
my $no   = '26112915203012300000100000421615';

$c->order(1, $user, order_no => $no, seq => 42, quantity => 3, ext => "\x{1F600} red, XL",
    request_id => 'req-1', seckill_price => '0.29', status => 2);

{
    my ($exit, $json, $err) = $c->ctl_json('order', 'show', $no);
    is($exit, 0, 'order show works') or diag($err);
    is_deeply($json->{order_no}, {
            accepted_ms => 1_795_965_630_123, accepted => '2026-11-29 15:20:30 UTC',
            activity_mod_1000000 => 1, seq_mod_10000000 => 42, user_mod_10000 => 1615,
        }, 'the number is read back');

    my $row = $json->{order};
    is($row->{order_no}, $no, 'the row is there');
    is($row->{user_id}, $user, '... with every digit of the user');
    is($row->{seckill_price}, '0.29', '... the price as text');
    is($row->{ext}, "\x{1F600} red, XL", '... four-byte characters whole');
    is($row->{status}, 'paid', '... the status as a word');
    is_deeply([ @{$row}{qw(activity_id quantity request_id epoch seq)} ], [ 1, 3, 'req-1', 1, 42 ],
        '... and the rest');
    like($row->{created_at}, qr/\A\d{4}-\d\d-\d\d /, '... with its time');
}

{
    my ($exit, $json) = $c->ctl_json('order', 'show', '--user', $user, '--activity', 1);
    is($exit, 0, 'by user and activity it is found too');
    is($json->{order}{order_no}, $no, '... the same one');
    is($json->{order_no}{seq_mod_10000000}, 42, '... its number read back');
}

{
    my ($exit, $out) = $c->ctl('order', 'show', $no);
    like($out, qr/^accepted +2026-11-29 15:20:30 UTC and 123 ms$/m, 'the table has the instant');
    like($out, qr/^status +paid$/m, '... and the row');
}

{
    my $other = $no =~ s/1615\z/1616/r;
    my ($exit, $json) = $c->ctl_json('order', 'show', $other);
    is($exit, 1, 'a number without a row is exit 1');
    is($json->{order}, undef, '... the row is null');
    is($json->{order_no}{user_mod_10000}, 1616, '... the number is read back all the same');

    ($exit, $json) = $c->ctl_json('order', 'show', '--user', 5, '--activity', 1);
    is($exit, 1, 'a user without an order is exit 1');
    is_deeply($json, { order_no => undef, order => undef }, '... and nothing is known');

    ($exit, my $out) = $c->ctl('order', 'show', $other);
    like($out, qr/no such order/, 'the table says so');
}

done_testing();
