# The checker of make chaos catches: a whole round is clean, and each guard that
# is taken away, in the script, the schema, the stores or the journal, is named
# by the rule that watches it.  A rule that nothing here trips fails the test.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../../tools/chaos";

use Digest::SHA qw(sha1_hex);
use Test::More;

use Chaos::Checker;
use Chaos::Round;
use Chaos::Stack;

my $stack = Chaos::Stack->new;
my $number = 0;
my %tripped;

sub slurp {
    my ($path) = @_;
    open my $fh, '<:raw', $path or die "cannot read $path: $!\n";
    local $/ = undef;
    return scalar <$fh>;
}

# A round without a fault; begin: what is done amid it.
sub round {
    my (%args) = @_;

    my $round = Chaos::Round->new(
        stack => $stack, number => ++$number, seed => 1, users => $args{users} // 300, span => 0.8, bare => 1,
        faults => [ { name => 'none', party => 'none', hold => [0.1, 0.2],
                      begin => $args{begin} // sub { }, end => sub { } } ]);
    $round->run;
    return $round;
}

# Tests that a rule is among those that speak.
sub tripped {
    my ($what, $found, @rules) = @_;

    my %by_rule;
    $by_rule{ $_->{rule} } //= $_ for @{$found};
    for my $rule (@rules) {
        my $one = $by_rule{$rule};
        ok($one, "$what: $rule") ? note("user $one->{user}: $one->{text}")
            : diag('said instead: ' . join ', ', sort keys %by_rule);
        $tripped{$rule} = 1 if $one;
    }
    return;
}

# --- nothing is wrong

my $clean = round();
is_deeply([ map {"$_->{rule}: $_->{user}: $_->{text}"} @{ $clean->{found} } ], [], 'a clean round is clean');
cmp_ok(scalar @{ $clean->{facts}{orders} }, '>', 100, 'and something was sold');

# --- the script that sells, with one check removed: nginx runs another one than it asks for

my $admit = slurp($stack->t->root . '/lua/admit.lua');

sub sabotage {
    my ($what, $old, $new, @rules) = @_;

    my $script = $admit;
    die "lua/admit.lua has no \"$old\"\n" if index($script, $old) < 0;
    substr $script, index($script, $old), length $old, $new;
    my $sha = $stack->client->script_load($script);
    $stack->cut('nginx-redis', swap => { sha1_hex($admit) => $sha });
    tripped($what, round()->{found}, @rules);
    $stack->mend('nginx-redis');
    $stack->drop_clients('nginx-redis');
    return;
}

sabotage('no test for repeats', 'call("SADD", buyers, user) == 0', 'call("SADD", buyers, user) == 2',
         'P2 twice');
sabotage('ten units too many', 'quantity > left then', 'quantity > left + 10 then', 'P2 dead');
sabotage('nothing is queued', 'pcall("XADD", orders, "*"', 'tostring("1-1", orders, "*"', 'P2 lost', 'units',
         'buyers');
sabotage('no unit is taken', 'pcall("DECRBY", stock, taken)', 'left', 'units');
sabotage('sold out is said early', 'quantity > left then', 'quantity > left - 40 then', 'P5 sold out');
sabotage('the end comes early', 'now_ms >= end_ms then', 'seq >= 50 then', 'P5 window');
sabotage('strangers are called buyers', 'verdict = SOLD_OUT', 'verdict = REPEAT', 'P5 repeat');
sabotage('the accepted are refused', 'verdict = ACCEPTED', 'verdict = SOLD_OUT', 'P5 not taken');

# --- what Redis holds in the end

{
    my $round  = round();
    my $id     = $round->{id};
    my ($user) = map { $_->{user_id} } @{ $round->{facts}{orders} };
    $stack->client->set("seckill:result:$user:{$id}", '{"success":false,"reason":"over_limit"}');
    $stack->client->sadd($stack->key(order_users => $id), 78);
    $stack->client->xadd($stack->key(orders => $id), '*', user => 79, quantity => 1);
    $stack->t->kill9($stack->{daemon});
    tripped('Redis was changed', [ Chaos::Checker::check($round->{case}, Chaos::Facts::read($stack, $id)) ],
            'P2 result', 'buyers', 'P2 left');
    $stack->daemon_start;
}

# --- what the buyers were told

# The clean journal with some lines changed.
sub told {
    my ($what, $change, @rules) = @_;

    my $path  = $clean->{case}{journal}[0];
    my @lines = map { [ split /\t/, $_ ] } split /\n/, slurp($path);
    $change->(\@lines);
    $stack->t->file('doctored', join '', map { join("\t", @{$_}) . "\n" } @lines);
    my %case = (%{ $clean->{case} }, journal => [ $stack->t->dir . '/doctored', $clean->{case}{journal}[1] ]);
    tripped($what, [ Chaos::Checker::check(\%case, $clean->{facts}) ], @rules);
    return;
}

# sent received user kind outcome http code state token order_no quantity lag
sub first {
    my ($lines, $column, $value) = @_;
    my ($line) = grep { $_->[$column] eq $value } @{$lines};
    return $line // die "no line has $value\n";
}

sub after {
    my ($line, @change) = @_;
    my @new = @{$line};
    @new[0, 1] = ($line->[1] + 100, $line->[1] + 110);
    while (my ($column, $value) = splice @change, 0, 2) {
        $new[$column] = $value;
    }
    return \@new;
}

told('another token', sub { push @{ $_[0] }, after(first($_[0], 7, 'accepted'), 8, 'AQother') }, 'P3 token');
told('no purchase found', sub { push @{ $_[0] }, after(first($_[0], 7, 'success'), 3, 'poll', 6, 40_006, 7, '-', 9, '-') },
     'P3 no record', 'P7 backward');
told('queueing again', sub { push @{ $_[0] }, after(first($_[0], 7, 'success'), 6, 0, 7, 'queueing', 9, '-') },
     'P7 backward');
told('an answer after three seconds', sub { first($_[0], 6, 40_005)->[1] += 3000 }, 'P4 slow');
told('no answer at all', sub { @{ first($_[0], 6, 40_005) }[1, 4] = (9e15, 'timeout') }, 'P4 slow');
told('an internal error', sub { @{ first($_[0], 6, 40_005) }[5, 6] = (500, -1) }, 'P5 answer');
told('not started', sub { first($_[0], 6, 40_005)->[6] = 40_001 }, 'P5 window');
told('busy to a buyer', sub {
    my ($lines) = @_;
    my $user = first($lines, 7, 'success')->[2];
    for my $line (grep { $_->[2] eq $user && $_->[3] eq 'buy' } @{$lines}) {
        @{$line}[5, 6, 7, 8] = (503, 50_302, '-', '-');
    }
}, 'P5 not taken');

# --- logs

{
    open my $fh, '>>', $stack->nginx->{log} or die "cannot write: $!\n";
    print {$fh} "2026/01/01 00:00:00 [alert] 1#1: worker process 2 exited on signal 11\n";
    close $fh;
    tripped('an alert', round()->{found}, 'P6 log');
}

# --- losing data: noticed, and in bounds

{
    my $user = ($clean->{facts}{orders}[0])->{user_id};
    my %facts = (%{ $clean->{facts} }, orders => [ grep { $_->{user_id} != $user } @{ $clean->{facts}{orders} } ]);
    my %loss  = (from => 0, to => 9e15, until => 9e15);
    tripped('a loss nobody noticed', [ Chaos::Checker::check({ %{ $clean->{case} }, loss => \%loss }, \%facts) ],
            'P2 lost');
    my @found = Chaos::Checker::check({ %{ $clean->{case} }, detected => 'paused',
                                        loss => { %loss, to => 1, listed => {} } }, \%facts);
    tripped('a loss outside of the fault', \@found, 'P2 lost');
}

# --- MySQL without its keys and guards: the daemon goes first, it would stop at that

$stack->t->kill9($stack->{daemon});
my $dbh = $stack->dbh;
$dbh->do('ALTER TABLE seckill_orders DROP KEY uk_user_activity, DROP KEY uk_purchase, DROP KEY uk_order_no');
$dbh->do('ALTER TABLE seckill_activities DROP CONSTRAINT ck_units');

# Damages the rows of the clean round, looks, and takes it back.
sub damaged {
    my ($what, $statement, @rules) = @_;

    my $id = $clean->{id};
    $statement =~ s/\bID\b/$id/g;
    $dbh->begin_work;
    $dbh->do($statement);
    tripped($what, [ Chaos::Checker::check($clean->{case}, Chaos::Facts::read($stack, $id)) ], @rules);
    $dbh->rollback;
    return;
}

my $columns = 'product_id, activity_id, seckill_price, quantity, epoch';
damaged('no key on user and activity',
    "INSERT INTO seckill_orders (order_no, user_id, seq, $columns)"
        . " SELECT CONCAT('9', SUBSTR(order_no, 2)), user_id, seq + 100000, $columns FROM seckill_orders"
        . ' WHERE activity_id = ID LIMIT 1', 'P1 once', 'P1 sold');
damaged('no key on the purchase',
    "INSERT INTO seckill_orders (order_no, user_id, seq, $columns)"
        . " SELECT order_no, 77, seq, $columns FROM seckill_orders WHERE activity_id = ID LIMIT 1",
    'P1 identity', 'P2 phantom', 'P2 record');
damaged('no guard on stock_limit', 'UPDATE seckill_activities SET stock_limit = 20 WHERE id = ID', 'P1 limit');
damaged('an order vanished', 'DELETE FROM seckill_orders WHERE activity_id = ID LIMIT 1', 'P2 lost',
        'P3 truth', 'P1 sold');
damaged('units came from nowhere', 'UPDATE products SET stock = stock + 1 WHERE id = ID', 'goods');

# F-C3: what an order was promised to be
damaged('two buyers have each other\'s quantity',
    'UPDATE seckill_orders o JOIN (SELECT MIN(user_id) u FROM seckill_orders WHERE activity_id = ID'
        . ' GROUP BY quantity) two ON o.user_id = two.u SET o.quantity = 3 - o.quantity WHERE o.activity_id = ID',
    'P2 promise');
damaged('another price', 'UPDATE seckill_orders SET seckill_price = 0.01 WHERE activity_id = ID LIMIT 1', 'P2 promise');
damaged('another product', 'UPDATE seckill_orders SET product_id = product_id + 1 WHERE activity_id = ID LIMIT 1',
        'P2 promise');
damaged('the ext of another', q{UPDATE seckill_orders SET ext = 'the address of another' WHERE activity_id = ID LIMIT 1},
        'P2 promise');
damaged('the request_id of another', q{UPDATE seckill_orders SET request_id = 'other' WHERE activity_id = ID LIMIT 1},
        'P2 promise');
damaged('orders are cancelled without a reason', 'UPDATE seckill_orders SET status = 3 WHERE activity_id = ID', 'P2 status');
damaged('returned grows without a ledger line', 'UPDATE seckill_activities SET returned = returned + 3 WHERE id = ID',
        'returned');
damaged('seq_seen is behind the orders', 'UPDATE seckill_activities SET seq_seen = 0 WHERE id = ID', 'P2 seq');
damaged('an order has the seq of nobody', 'UPDATE seckill_orders SET seq = seq + 100000 WHERE activity_id = ID LIMIT 1',
        'P2 seq');

is_deeply([ grep { !$tripped{$_} } Chaos::Checker::rules() ], [], 'every rule was seen to speak');

$stack->done;
done_testing;
