# Journals as evidence: only whole lines with a true signature are believed, and
# what nobody can know is said.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use IO::Socket::INET;
use NodesTest ();
use Test::More;
use Time::HiRes qw(sleep);

my $c     = BooksTest->new;
my $t     = $c->t;
my $redis = $c->redis;
my $key   = $t->file('jwt.key', NodesTest::KEY);

my @replay = ('--repair', 'replay', '--grace', '0s');

sub orders { return $c->column('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = ?', @_) }

# written purchases, and a user whom only a journal knows; returns an entry for her
sub vanished {
    my ($id, $user, %args) = @_;

    my ($entry) = $c->entries($id);
    return { %{$entry}, user => $user, seq => 3, request_id => "r-$user",
        order_no => sprintf('261129150000123%06d0000003%04d', $id % 1e6, $user % 1e4), %args };
}

sub sold {
    my (%args) = @_;

    my $id = $c->sale(%args);
    $c->buy($id, 1, 2);
    my @gone = map { vanished($id, $_) } 7, 8;
    $c->drain($id);
    return ($id, @gone);
}

sub append {
    my ($path, $text) = @_;
    open my $fh, '>>:raw', $path or die "$path: $!\n";
    print {$fh} $text;
    close $fh or die "$path: $!\n";
    return;
}

# F-A1, F-A2, F-A3: what is no signed line
{
    my ($id, $gone) = sold();
    my $signs = $c->signs;
    my $good = $signs->purchase(%{$gone}, time => 1);
    my $before = $c->everything;

    my %forged = (
        'the log of 0.1.0' => "2026-11-29T15:00:00+00:00 activity=$id user=4711 seq=3 epoch=1 order_no=$gone->{order_no} quantity=5 redis_time=1 request_id=r uri=/x",
        'a line without a signature' => $good =~ s/ [0-9a-f]{32}\z//r,
        'another user' => $good =~ s/ 7 1 / 4711 1 /r,
        'another activity' => $good =~ s/ $id 1 3 7 / 999 1 3 7 /r,
        'another quantity' => $good =~ s/ 7 1 / 7 2 /r,
        'a field more' => $good =~ s/ (\S+)\z/ x $1/r,
        'half of a line' => substr($good, 0, 90),
        'a signature of nobody' => SignedJournal->new('some other secret')->purchase(%{$gone}, user => 4711, key_id => $signs->id),
        'a line that is too long' => 'x' x 70_000 . $good,
        'a line with NUL' => "$good\0",
        'a line of Windows' => "$good\r",
    );
    for my $name (sort keys %forged) {
        my $journal = $c->journal('forged.journal', $forged{$name});
        my ($exit, $one, $err) = $c->reconcile($id, '--journal', $journal);
        is($exit, 5, "$name: exit 5");
        is_deeply(BooksTest::found($one), [], '... it is nobody\'s purchase');
        like($err, qr/forged\.journal:4 is no whole line with a true signature/, '... and told by its number');
    }
    is($c->everything, $before, 'nothing was changed');

    # a bad line does not hide a good one, and exit 5 stands before 1
    my $journal = $c->journal('mixed.journal', 'junk', $gone, 'junk again');
    my ($exit, $one, $err) = $c->reconcile($id, '--journal', $journal);
    is($exit, 5, 'good lines among bad ones: exit 5');
    is_deeply(BooksTest::found($one), ['vanished 7'], '... the good one is believed');
    like($err, qr/:4 is no whole.*:8 is no whole/s, '... the bad ones are told');

    # a line without its end, as a crash leaves it
    append($journal = $c->journal('cut.journal'), "\n$good");
    ($exit, $one) = $c->reconcile($id, '--journal', $journal);
    is($exit, 5, 'F-A2: a line without its end');
    is_deeply(BooksTest::found($one), [], '... is not believed');
}

# F-A3: what is no journal at all
{
    my ($id, $gone) = sold();
    my $good = $c->journal('good.journal', $gone);
    my %files = (
        'an empty file' => '', 'a JSON log' => qq({"time":"x","user":7}\n),
        'a journal without an open line' => "\n" . $c->signs->purchase(%{$gone}) . "\n",
        'a journal of another shop' => "\n" . SignedJournal->new('some other secret')->open_line . "\n",
        'an open line of another prefix' => "\n" . $c->signs->open_line(prefix => 'shop2') . "\n",
    );
    my $before = $c->everything;
    for my $name (sort keys %files) {
        my $path = $t->file('none.journal', $files{$name});
        my ($exit, undef, $err) = $c->reconcile($id, '--journal', $path);
        is($exit, 2, "$name: exit 2");
        like($err, qr/none\.journal" has no signed "open" line/, '... and why');
        ($exit) = $c->ctl('restore', $id, '--yes', '--journal', $good, $path);
        is($exit, 2, '... restore says so as well');
    }
    is($c->everything, $before, '... before anything is done');

    # compressed, whole and broken
    system('gzip', '-k', $good) == 0 or die "gzip\n";
    my ($exit, $one) = $c->reconcile($id, '--journal', "$good.gz");
    is($exit, 1, 'a .gz is read');
    is_deeply(BooksTest::found($one), ['vanished 7'], '... as the file it was');
    truncate "$good.gz", (-s "$good.gz") - 12;
    ($exit, undef, my $err) = $c->reconcile($id, '--journal', "$good.gz");
    is($exit, 2, 'F-A3: half of a .gz: exit 2');
    like($err, qr/can't be read to its end/, '... and why');
    ($exit) = $c->reconcile($id, '--journal', $t->dir);
    is($exit, 2, 'a directory: exit 2');

    # standard input, also for all activities
    my $command = join ' ', $t->build . '/seckillctl', '-c', $c->{conf}, 'reconcile', '--all', '--json', '--grace', '0s',
        '--journal', '-', '<', $good;
    my $out = `$command`;
    is($? >> 8, 1, '- is standard input') or diag($out);
    my ($one_of) = grep { $_->{activity} == $id } @{ JSON->new->utf8->decode($out)->{activities} };
    is_deeply(BooksTest::found($one_of), ['vanished 7'], '... for each of several activities');
    ($exit) = $c->ctl('reconcile', $id, '--journal', '-', '-');
    is($exit, 2, '... and only one journal');
}

# several shops in one file, and a key that nobody knows
{
    my ($id, $gone) = sold();
    my $journal = $c->journal('shops.journal', $c->signs->purchase(%{$gone}, prefix => 'shop2'));
    my ($exit, $one, $err) = $c->reconcile($id, '--journal', $journal);
    is($exit, 0, 'lines of another shop are no fault');
    like($err, qr/shops\.journal:4: a line of another shop, with prefix "shop2"/, '... but told');

    my $other = SignedJournal->new('some other secret');
    $journal = $c->journal('keys.journal', $other->purchase(%{$gone}));
    ($exit, $one, $err) = $c->reconcile($id, '--journal', $journal);
    is($exit, 5, 'a key that is not known');
    like($err, qr/keys\.journal:4: signed with key @{[ $other->id ]}, which is not known/, '... is named');
    is_deeply(BooksTest::found($one), [], '... and not believed');

    # the key of nodes that have a file, and an older key of Redis
    my $file = $t->file('queue.key', "some other secret\n", oct 600);
    my $conf = $t->conf(redis => $c->{redis}, mysql => $c->{mysql}, 'redis.queue_token_key_file' => $file);
    ($exit) = $t->ctl($conf, 'reconcile', $id, '--grace', '0s', '--journal', $journal);
    is($exit, 1, 'queue_token_key_file names it: believed');

    $redis->hset('seckill:control', token_key => 'cd' x 32);
    $journal = $c->journal('old-key.journal', SignedJournal->new(pack 'H*', 'cd' x 32)->purchase(%{$gone}));
    $c->ctl('schema', 'apply', '--dir', $t->root . '/sql');
    is($redis->hget('seckill:control', 'token_key') eq 'cd' x 32, '', 'a key that Redis had for a while');
    ($exit, $one) = $c->reconcile($id, '--journal', $journal);
    is_deeply(BooksTest::found($one), ['vanished 7'], '... is known from MySQL');
}

# what replay proves of a signed line
{
    my ($id, $gone) = sold(max_quantity => 2, stock_limit => 5);
    for my $case (
        [ 'more units than allowed', { quantity => 3 }, qr/more units than the terms/ ],
        [ 'a seq that the epoch can\'t have given', { seq => 900_001 }, qr/seq is above the units/ ],
        [ 'an epoch from the future', { epoch => 7 }, qr/does not know its epoch/ ],
        [ 'an epoch without terms', { epoch => 1 }, qr/no terms of its epoch/, "DELETE FROM seckill_terms WHERE activity_id = $id" ],
        )
    {
        my ($name, $change, $why, $sql) = @{$case};
        $c->dbh->do("CREATE TABLE IF NOT EXISTS kept AS SELECT * FROM seckill_terms WHERE activity_id = $id");
        $c->dbh->do($sql) if $sql;
        my $before = $c->everything;
        my ($exit, $one) = $c->reconcile($id, @replay, '--journal', $c->journal('odd.journal', { %{$gone}, %{$change} }));
        is($exit, 1, "F-A1: $name");
        like($one->{findings}[0]{done}, $why, '... is not queued, and why');
        is($c->everything, $before, '... nothing was changed');
        $c->dbh->do('INSERT INTO seckill_terms SELECT * FROM kept') if $sql;
    }
    # a seq that this sale will give to somebody else
    my ($exit, $one) = $c->reconcile($id, @replay, '--journal', $c->journal('ahead.journal', { %{$gone}, seq => 5, ext => "a b\n" }));
    is($exit, 0, 'a seq that the sale has not come to') or diag(explain($one));
    $c->drain($id);
    my $order = $c->dbh->selectrow_hashref("SELECT * FROM seckill_orders WHERE activity_id = $id AND user_id = 7");
    is($order->{seq}, 3, '... gets the next one');
    is("$order->{request_id}|$order->{ext}", "r-7|a b\n", '... with request and ext of the line');
    is($c->buy($id, 20, 21), '11', '... and the sale goes on behind it');
    $c->drain($id);
    is(orders($id), 5, '... with an order for everybody');
}

# F-B4: who was put back is told to the nodes, once
{
    my ($id, @gone) = sold();
    my $rev = $c->facts($id)->{rev};
    my $all = $redis->hget('seckill:control', 'rev');
    my ($exit) = $c->reconcile($id, @replay, '--journal', $c->journal('two.journal', @gone));
    is($exit, 0, 'two are queued again');
    is($c->facts($id)->{rev}, $rev + 1, 'F-B4: rev of the activity is raised once');
    is($redis->hget('seckill:control', 'rev'), $all + 1, '... and that of control');
    is($c->facts($id)->{buyers_extra} // 0, $redis->scard($c->key('order_users', $id)) - $c->facts($id)->{seq},
        '... buyers_extra is kept');
    $c->drain($id);
    $redis->srem($c->key('order_users', $id), 1);
    $rev = $c->facts($id)->{rev};
    $c->reconcile($id, @replay);
    is($c->facts($id)->{rev}, $rev + 1, 'a buyer who is one again: raised as well');
    $c->reconcile($id, @replay);
    is($c->facts($id)->{rev}, $rev + 1, 'nothing was done: not raised');
}

# who may have bought, and gaps
{
    my ($id, $gone) = sold();
    my $signs = $c->signs;
    my $journal = $c->journal('maybe.journal',
        $signs->purchase(kind => 'unknown', activity => $id, user => 50, quantity => 1, request_id => 'ask-50', ext => 'e', time => 5),
        $signs->purchase(kind => 'unknown', activity => $id, user => 1, quantity => 1, time => 5),
        $signs->purchase(kind => 'unknown', activity => $id, user => 7, quantity => 1, time => 5), $gone,
        $signs->gap_line(lost => 4, from => 1_795_914_000_000, to => 1_795_914_060_000));
    my ($exit, $json) = $c->ctl_json('reconcile', $id, '--grace', '0s', '--journal', $journal);
    my $one = $json->{activities}[0];
    is($exit, 1, 'a lost buyer, one who may be');
    is_deeply(BooksTest::found($one), [ 'vanished 7', 'maybe 50' ], '... are told apart; who has an order is neither');
    is($one->{wrong}, 1, '... only the first is wrong');
    is_deeply($json->{journals}{gaps}, [ { journal => $journal, lines => 4, from_ms => 1_795_914_000_000, to_ms => 1_795_914_060_000 } ],
        '... and the gap is told');
    my (undef, $out) = $c->ctl('reconcile', $id, '--grace', '0s', '--journal', $journal);
    like($out, qr/gap      4 lines from 2026-11-29 \S+ UTC to .* could not be written/, '... in words as well');

    $c->reconcile($id, @replay, '--journal', $journal);
    $c->drain($id);
    is(orders($id), 3, 'replay takes the lost one');
    is($c->column("SELECT COUNT(*) FROM seckill_orders WHERE activity_id = $id AND user_id = 50"), 0, '... not the one who may be');
    ($exit, $one) = $c->reconcile($id, @replay, '--journal', $journal, '--user', 50);
    is($exit, 0, '... but with --user') or diag(explain($one));
    $c->drain($id);
    my $order = $c->dbh->selectrow_hashref("SELECT * FROM seckill_orders WHERE activity_id = $id AND user_id = 50");
    is("$order->{request_id} $order->{ext} $order->{seq}", 'ask-50 e 4', '... with the request and a fresh seq');
    is(($c->reconcile($id))[0], 0, '... the books are in order');
}

# restore tells all of it
{
    my ($id, $gone) = sold();
    my $signs = $c->signs;
    my $journal = $c->journal('restore.journal', $gone,
        $signs->purchase(kind => 'unknown', activity => $id, user => 50, quantity => 1, request_id => 'ask-50', time => 5),
        # a moment ago, of the epoch that is restored: not on its way any more
        $signs->purchase(kind => 'unknown', activity => $id, user => 51, quantity => 1, request_id => 'ask-51',
            time => time * 1000 + 900),
        $signs->gap_line(lost => 4, from => 1, to => 2));
    $redis->flushall;
    my ($exit, $json, $err) = $c->ctl_json('restore', $id, '--yes', '--journal', $journal);
    is($exit, 0, 'restored') or diag($err);
    is_deeply([ map { $_->{user} } @{ $json->{lost} } ], [7], '... who is lost');
    is_deeply([ map {"$_->{user} $_->{request_id}"} @{ $json->{maybe} } ], [ '50 ask-50', '51 ask-51' ], '... who may be');
    is($json->{journals}{lost_lines}, 4, '... and what can\'t be known');

    $redis->flushall;
    append($journal, "junk\n");
    ($exit, my $out) = $c->ctl('restore', $id, '--yes', '--journal', $journal);
    is($exit, 5, 'a bad line: restored, exit 5');
    like($out, qr/lost     user 7, .*maybe    user 50, 1 units, epoch 1, request_id ask-50.*gap      4 lines.*1 lines are not believed/s, '... in words');
    is($c->stock($id), 8, '... whole');
}

# --unsigned: the log of 0.1.0, for people only
{
    my ($id, $gone) = sold();
    my $line = sub { my ($user) = @_; "2026-11-29T15:00:00+00:00 activity=$id user=$user seq=3 epoch=1 order_no=$gone->{order_no} quantity=1 redis_time=1 request_id=r uri=/x\n" };
    my $old = $t->file('accepted.log', $line->(7) . $line->(1));
    my ($exit) = $c->reconcile($id, '--journal', $old);
    is($exit, 2, 'the log of 0.1.0 is no journal');
    my $before = $c->everything;
    ($exit, my $one) = $c->reconcile($id, '--unsigned', @replay, '--journal', $old);
    is($exit, 0, '--unsigned reads it') or diag(explain($one));
    (undef, my $out) = $c->ctl('reconcile', $id, '--grace', '0s', '--unsigned', '--journal', $old);
    like($out, qr/unsigned: user 7, 1 units, epoch 1 seq 3/, '... lists who has no order');
    unlike($out, qr/user 1,/, '... and nobody else');
    is($c->everything, $before, '... and replays nothing');
    append($old, $line->(9) =~ s/user=9/user=9 user=10/r);
    ($exit) = $c->reconcile($id, '--unsigned', '--journal', $old);
    is($exit, 5, 'a word that comes twice is no line');
}

# --- through nginx

sub node {
    my ($name, $refresh) = @_;

    my $journal = $t->dir . "/$name.journal";
    my $node = $t->nginx(redis => $c->{redis}, key_file => $key, journal => $journal, location => 'seckill on;',
        http => 'seckill_limit off; seckill_redis_timeout 400ms; seckill_refresh ' . ($refresh // '200ms') . ';');
    $t->wait_for(sub { -s $journal }, 5, 'the journal');
    return ($node, $journal);
}

sub raw {
    my ($node, $text) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "connect: $!\n";
    print {$socket} $text;
    return $socket if !defined wantarray || wantarray;
    local $/ = undef;
    return ((<$socket> // '') =~ /"code":(\d+)/)[0];
}

sub request {
    my ($path, $user) = @_;
    return "POST $path HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\nAuthorization: Bearer "
        . NodesTest::token($user) . "\r\n\r\n";
}

# F-A1: a buyer writes somebody else's purchase into the journal (journal-forged.t, F13j.pl)
{
    my ($node, $journal) = node('uri');
    my $id = $c->sale(stock_limit => 20, max_quantity => 1);
    my $other = $c->sale(stock_limit => 20, max_quantity => 1);
    is(scalar raw($node, request("/seckill/$id", 1000)), 0, 'an honest purchase');
    raw($node, request("/seckill/x%20user=777%20seq=5000%20quantity=10%20order_no=26113018000000000000150000000777%20/$id", 1001));
    raw($node, request("/seckill/x%20activity=$other%20user=778%20seq=6000%20quantity=10%20/$id", 1002));
    raw($node, request("/seckill/%0a1%20accepted%20seckill%20/$id", 1003));
    # F-A2: a line longer than the reader's buffer (F13k.pl)
    raw($node, request('/seckill/x' . "\xff" x 4200 . "%20activity=$id%20user=779%20seq=7000%20/$id", 1004));
    sleep 0.3;
    $c->drain($id, $other);
    for my $sale ($id, $other) {
        my ($exit, $one, $err) = $c->reconcile($sale, '--journal', $journal, @replay);
        is($exit, 0, 'replay of the node\'s journal') or diag($err);
    }
    $c->drain($id, $other);
    is($c->column('SELECT COUNT(*) FROM seckill_orders WHERE user_id IN (777, 778, 779)'), 0,
        'nobody has an order who never bought');
    $t->stop($node);
}

# F-A4: a client that left, and an answer that never came; then Redis loses both (journal-holes.t)
{
    my ($node, $journal) = node('holes', '20s');
    my $id = $c->sale;
    is(scalar raw($node, request("/seckill/$id", 1)), 0, 'user 1 buys');
    $c->drain($id);

    kill 'STOP', $c->{redis}{pid};
    my ($left) = raw($node, request("/seckill/$id", 3));
    sleep 0.1;
    close $left;
    sleep 0.7;
    kill 'CONT', $c->{redis}{pid};
    $t->wait_for(sub { $c->facts($id)->{seq} == 2 }, 5, 'Redis to run it');
    is(scalar raw($node, request("/seckill/$id", 3)), '40004', 'user 3 has taken part');

    # a master that does not know
    $redis->hset($c->key('activity', $id), seq => 1, state => 'paused');
    $redis->set($c->key('stock', $id), 9);
    $redis->srem($c->key('order_users', $id), 3);
    $redis->xtrim($c->key('orders', $id), 'MAXLEN', 0);
    sleep 1.1;    # younger lines are in flight
    my ($exit, $json, $err) = $c->ctl_json('restore', $id, '--yes', '--journal', $journal);
    is($exit, 0, 'restored') or diag($err);
    is_deeply([ map { $_->{user} } @{ $json->{lost} }, @{ $json->{maybe} } ], [3], 'F-A4: the lost buyer is listed');
    $t->stop($node);
}

done_testing();
