# C8: a result that is gone from Redis is answered from MySQL, for those who ask;
# nobody is told what is not so.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Test::More;
use Time::HiRes qw(sleep time);

my $c = ConsumerTest->new;
my $redis = $c->redis;

my $script = do {
    open my $fh, '<:raw', $c->t->root . '/lua/lookup.lua' or die $!;
    local $/ = undef;
    <$fh>;
};

# what the module runs when a poll finds a buyer without a result
sub ask {
    my ($id, $user) = @_;
    return $redis->eval($script, 3, $c->key(lookup => $id), $c->key(order_users => $id),
        "seckill:result:$user:{$id}", $user, 10_000);
}

sub raw { return $redis->get("seckill:result:$_[1]:{$_[0]}") }

$c->sale(1, units => 20);
$c->buy(1, 1 .. 10, [11, 1, '', 'bad']);
$c->dbh->do("ALTER TABLE seckill_orders ADD CONSTRAINT bad CHECK (request_id <> 'bad')");
$c->{conf} = $c->conf('consumer.attempts' => 1);
$c->start;
$c->wait_settled(1);

# an order
{
    my $before = raw(1, 3);
    $redis->del("seckill:result:3:{1}");
    is(ask(1, 3), 1, 'a buyer asks');
    my $began = time;
    $c->t->wait_for(sub { defined raw(1, 3) }, 5, 'the answer');
    cmp_ok(time - $began, '<', 1.5, 'it comes soon');
    is(raw(1, 3), $before, 'with the same order');
    is($redis->scard($c->key(lookup => 1)), 0, 'nobody waits any more');
    is($redis->ttl("seckill:result:3:{1}"), -1, 'it lives as long as the others');
}

# everybody at once, after Redis lost all results
{
    my %before = map { $_ => raw(1, $_) } 1 .. 10;
    $redis->del("seckill:result:$_:{1}") for 1 .. 10;
    $redis->sadd($c->key(lookup => 1), 1 .. 10);
    $c->t->wait_for(sub { !grep { !defined raw(1, $_) } 1 .. 10 }, 5, 'the answers');
    is_deeply({ map { $_ => raw(1, $_) } 1 .. 10 }, \%before, 'ten at once');
}

# a tombstone
{
    is($c->record(1, 11), 2, 'user 11 has failed');
    $redis->del('seckill:result:11:{1}');
    is(ask(1, 11), 1, 'and asks');
    $c->t->wait_for(sub { defined raw(1, 11) }, 5, 'the answer');
    is(raw(1, 11), '{"success":false,"reason":"failed"}', 'failed, and not queueing for ever');
}

# one who is still in the queue, and one who never bought
{
    $c->stop;
    $c->buy(1, 12);
    is(ask(1, 12), 1, 'a buyer whose purchase is not read yet');
    is(ask(1, 99), 0, 'one who never bought can not ask');
    $redis->sadd($c->key(lookup => 1), 98, 'junk', '0', '-1', '18446744073709551616');
    $redis->xgroup('DESTROY', $c->key(orders => 1), 'seckilld');
    $redis->rename($c->key(orders => 1), 'aside');
    $c->start;
    $c->t->wait_for(sub { $redis->scard($c->key(lookup => 1)) == 0 }, 5, 'the look-up');
    sleep 0.3;
    is(raw(1, 12), undef, 'is told nothing');
    is(raw(1, 98), undef, 'nor is a stranger');
    $redis->del($c->key(orders => 1));
    $redis->rename('aside', $c->key(orders => 1));
    $c->wait_settled(1, 10);
    $c->all_bought(1, [12], 'until there is an order');
}

# a poll that waits hears it: the answer is published
{
    my $file = $c->t->dir . '/heard';
    my $pid = fork // die $!;
    if (!$pid) {
        my $other = $c->t->redis_client($c->{redis});
        my $got;
        $other->subscribe('seckill:results:{1}', sub { $got = $_[0] });
        open my $ready, '>', "$file.ready";
        $other->wait_for_messages(1) until defined $got;
        open my $fh, '>', $file;
        print {$fh} $got;
        close $fh;
        require POSIX;
        POSIX::_exit(0);
    }
    $c->t->wait_for(sub { -e "$file.ready" }, 5, 'the subscriber');
    my $before = raw(1, 5);
    $redis->del('seckill:result:5:{1}');
    ask(1, 5);
    waitpid $pid, 0;
    open my $fh, '<', $file or die $!;
    is(scalar <$fh>, "5 $before", 'the answer is published');
}

# MySQL is down when they ask: they are answered later
{
    $c->t->kill9($c->{mysql});
    $redis->del('seckill:result:6:{1}');
    ask(1, 6);
    sleep 2;
    is(raw(1, 6), undef, 'no answer while MySQL is down');
    is($redis->sismember($c->key(lookup => 1), 6), 1, 'the buyer waits in the list');
    $c->t->restart($c->{mysql});
    $c->{mysql}{dbh} = $c->t->dbh($c->{mysql});
    $c->t->wait_for(sub { defined raw(1, 6) }, 10, 'the answer');
    $c->all_bought(1, [6], 'answered when it is back');
}

ok($c->stop, 'the daemon stops well');

done_testing;
