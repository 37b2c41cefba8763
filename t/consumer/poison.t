# Entries that can never become orders go to the dead letters, each with its
# reason and as it was, and nothing waits for them.

use strict;
use warnings;
use utf8;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;

my $c = ConsumerTest->new(conf => { 'consumer.workers' => 1 }, mariadb => { 'sql-mode' => '' });

# B9: four bad ones among a hundred good ones
{
    $c->sale(1, units => 100, group => 1);
    my %bad;
    $c->buy(1, 1 .. 25);
    $bad{missing} = $c->add(1, $c->message(1, 201, seq => undef));
    $c->buy(1, 26 .. 50);
    $bad{user} = $c->add(1, $c->message(1, 'abc'));
    $bad{large} = $c->add(1, $c->message(1, 203, ext => 'x' x 1_048_576));
    $c->buy(1, 51 .. 75);
    $bad{version} = $c->add(1, $c->message(1, 204, v => 99));
    $c->buy(1, 76 .. 100);

    my $began = time;
    $c->start;
    $c->wait_settled(1);
    cmp_ok(time - $began, '<', 5, 'without delay');

    $c->all_bought(1, [1 .. 100], 'a hundred orders among poison');
    is($c->order_count(1), 100, 'and no more');

    my $dead = $c->dead(1);
    is(scalar @{$dead}, 4, 'four dead letters');
    is_deeply([sort map { $_->{entry} } @{$dead}], [sort values %bad], 'by their old ids');
    is_deeply([map { $_->{reason} } @{$dead}], [('malformed') x 4], 'with a reason');

    my ($large) = grep { $_->{entry} eq $bad{large} } @{$dead};
    my %fields = @{ $large->{fields} };
    is(length $fields{ext}, 1_048_576, 'and all they held');
    ok($large->{error} ne '', 'and what was wrong with it');

    is($c->result(1, 203)->{success}, JSON::false(), 'the buyer hears that it failed');
    is($c->result(1, 203)->{reason}, 'malformed', 'and why');
    is($c->record(1, 203), 2, 'and so does the record');
    is($c->count(seckill_records => 'activity_id = 1 AND status = 2'), 3,
        'for those whose user can be read');

    my $lines = () = $c->t->log_text($c->{daemon}) =~ /msg="dead letter"/g;
    is($lines, 4, 'one line in the log for each');
}

# B2, B9: the group vanishes and all of it comes again: no letter is written twice
{
    $c->redis->xgroup('DESTROY', $c->key(orders => 1), 'seckilld');
    $c->t->wait_log($c->{daemon}, qr/consumer group created.*activity=1\b/);
    $c->wait_settled(1);
    is(scalar @{ $c->dead(1) }, 4, 'after the group was lost there are four letters still');
    is($c->order_count(1), 100, 'and a hundred orders');
    my $lines = () = $c->t->log_text($c->{daemon}) =~ /msg="dead letter"/g;
    is($lines, 4, 'with no second alarm');
}

# an entry deleted after it was delivered, an activity of another stream, too many fields
{
    $c->sale(2, units => 100, group => 1);
    $c->stop;
    $c->buy(2, 1);
    my $lost = $c->add(2, $c->message(2, 302));
    $c->redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'STREAMS', $c->key(orders => 2), '>');
    $c->redis->xdel($c->key(orders => 2), $lost);
    my $other = $c->add(2, $c->message(7, 303));
    my $many  = $c->add(2, $c->message(2, 304), map { ("f$_", $_) } 1 .. 100);
    my $no    = $c->add(2, $c->message(2, 305, order_no => '2' x 40));
    $c->start;
    $c->wait_settled(2);

    my %reason = map { $_->{entry} => $_->{reason} } @{ $c->dead(2) };
    is_deeply(\%reason, { $lost => 'deleted', $other => 'malformed', $many => 'malformed',
        $no => 'malformed' }, 'deleted, foreign, swollen and over-long ones');
    is($c->order_count(2), 1, 'the good one is an order');
    my ($swollen) = grep { $_->{entry} eq $many } @{ $c->dead(2) };
    is(scalar @{ $swollen->{fields} }, 220, 'a swollen one is kept whole');
}

# D3: what only MySQL can find: row 57 of 100 violates a rule of the shop
{
    $c->dbh->do("ALTER TABLE seckill_orders ADD CONSTRAINT no_57 CHECK (request_id <> 'bad')");
    $c->sale(3, units => 200);
    $c->buy(3, map { $_ == 57 ? [$_, 1, "\x{1F480}", 'bad'] : $_ } 1 .. 100);
    $c->wait_settled(3);

    $c->all_bought(3, [1 .. 56, 58 .. 100], '99 orders');
    my $dead = $c->dead(3);
    is(scalar @{$dead}, 1, 'one dead letter');
    is($dead->[0]{reason}, 'data_error', 'for the one that MySQL refuses');
    like($dead->[0]{error}, qr/^4025 .*no_57/, 'with its error');
    my %fields = @{ $dead->[0]{fields} };
    is($fields{ext}, "\xf0\x9f\x92\x80", 'four-byte characters are kept there');
    is($c->result(3, 57)->{reason}, 'data_error', 'the buyer hears it');
    is($c->record(3, 57), 2, 'its tombstone stands');
    is($c->sold(3), 99, 'its unit is not sold');

    # the same buyer again, as after a failover: the tombstone holds
    $c->add(3, $c->message(3, 57, seq => 57));
    $c->wait_settled(3);
    is($c->dead(3)->[1]{reason}, 'failed_before', 'a late replay meets the tombstone');
    is($c->count(seckill_orders => 'activity_id = 3 AND user_id = 57'), 0, 'and gets no order');
    $c->dbh->do('ALTER TABLE seckill_orders DROP CONSTRAINT no_57');
}

# D7: a price out of range can't be stored by a lax server either
{
    $c->sale(4, units => 10);
    $c->dbh->do('ALTER TABLE seckill_terms MODIFY price DECIMAL(14,2) NOT NULL');
    $c->dbh->do('UPDATE seckill_terms SET price = 123456789.99 WHERE activity_id = 4');
    $c->buy(4, 1);
    $c->wait_settled(4);
    is($c->order_count(4), 0, 'no altered row');
    like($c->dead(4)->[0]{error}, qr/^1264 /, 'but a dead letter with the error');
}

# D6: a server with a small packet
{
    $c->dbh->do('SET GLOBAL max_allowed_packet = 16384');
    $c->dbh->do('SET GLOBAL net_buffer_length = 1024');
    $c->stop;
    $c->sale(5, units => 1000);
    $c->buy(5, map { [$_, 1, 'e' x 200] } 1 .. 500);
    $c->start;
    $c->wait_settled(5);
    is($c->order_count(5), 500, 'batches are as large as the server takes');
    is_deeply($c->dead(5), [], 'no dead letters');
}

ok($c->stop, 'the daemon stops well');

done_testing;
