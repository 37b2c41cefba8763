# What nodes remember follows what the tool repairs: an order that became another
# one (F-B3), a buyer who is put back (F-B4).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../ctl";

use BooksTest;
use HTTP::Tiny;
use JSON ();
use NodesTest ();
use Test::More;
use Time::HiRes qw(sleep);

my $c    = BooksTest->new;
my $t    = $c->t;
my $node = $t->nginx(redis => $c->{redis}, key_file => $t->file('jwt.key', NodesTest::KEY()), workers => 1,
    location => 'seckill on; seckill_limit off; seckill_refresh 200ms;');

# the order_id of an answer, else its code
sub ask {
    my ($method, $path, $user) = @_;
    my $r = HTTP::Tiny->new(timeout => 5)->request($method, "http://127.0.0.1:$node->{port}$path",
        { headers => { Authorization => 'Bearer ' . NodesTest::token($user) }, content => '' });
    my $json = eval { JSON->new->utf8->decode($r->{content}) } // {};
    my $order = ref $json->{data} ? $json->{data}{order_id} : undef;
    return $order ? "order $order" : $json->{code} // "http $r->{status}";
}
sub post { my ($id, $user) = @_; return ask('POST', "/seckill/$id", $user) }
sub poll { my ($id, $user) = @_; return ask('GET', "/seckill/result/$id", $user) }

sub replay {
    my ($id) = @_;
    my ($exit, $out, $err) = $c->ctl('reconcile', $id, '--grace', '0s', '--repair', 'replay');
    diag("$out$err") if $exit > 1;
    return $exit;
}

# --- F-B3: MySQL fails over and loses the last commits; the id goes to somebody else

{
    my ($id, $other) = ($c->sale, $c->sale);
    is(post($id, 1), '0', 'user 1 buys');
    $c->drain($id);
    my $told = poll($id, 1);
    like($told, qr/^order \d+$/, '... and hears of an order');
    my ($lost) = $told =~ /(\d+)/;

    $c->dbh->do("DELETE FROM seckill_$_ WHERE activity_id = ?", undef, $id) for qw(orders records);
    $c->dbh->do('UPDATE seckill_activities SET sold = 0, seq_seen = 0 WHERE id = ?', undef, $id);
    $c->dbh->do("ALTER TABLE seckill_orders AUTO_INCREMENT = $lost");

    is(post($other, 2), '0', 'user 2 buys');
    $c->drain($other);
    is(poll($other, 2), $told, '... and has that id now');

    replay($id);
    $c->drain($id);
    sleep 0.6;
    my $now = $c->column('SELECT id FROM seckill_orders WHERE activity_id = ? AND user_id = 1', $id);
    isnt($now, $lost, 'user 1 has another one');
    is(poll($id, 1), "order $now", '... which the node tells');
    is(post($id, 1), "order $now", '... to a second purchase too');
}

# --- F-B4: a buyer whom the filter does not know is put back

{
    my $id = $c->sale(stock_limit => 3);
    is(post($id, $_), '0', "user $_ buys") for 1 .. 3;
    $c->drain($id);
    $c->unseen_loss($id, 3);
    ok($t->wait_for(sub { post($id, 900); return post($id, 3) eq '40005' }, 10, 'the filter'), 'the filter does not know user 3');

    is(replay($id), 0, 'reconcile puts user 3 back');
    is($c->redis->sismember($c->key('order_users', $id), 3), 1, '... as a buyer');
    sleep 0.6;
    like(post($id, 3), qr/^order \d+$/, '... who is one at the node too');
    sleep 0.4;
    is(post($id, 900), '40005', 'a stranger hears that it is sold out');
    like(post($id, 3), qr/^order \d+$/, '... and the buyer that he bought');
}

done_testing();
