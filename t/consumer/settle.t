# Results go to Redis in calls of bounded size, each whole in itself, and name
# orders whose ids nobody read back unless the server leaves some out.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use POSIX ();
use Test::More;

my $c     = ConsumerTest->new;
my $redis = $c->redis;

sub slurp {
    my ($name) = @_;

    open my $fh, '<:raw', $c->t->root . "/$name" or die "$name: $!";
    local $/ = undef;

    return scalar <$fh>;
}

my ($most) = slurp('src/consumer/skd_settle.h') =~ /^#define SKD_SETTLE_CALL\s+(\d+)/m;

# entries in each call of lua/settle.lua
sub calls {
    my ($settle) = @_;
    my @n;

    for my $entry (reverse @{ $redis->slowlog('GET', -1) }) {
        my ($command, $sha, $keys, @rest) = @{ $entry->[3] };
        next if lc $command ne 'evalsha' || $sha ne $settle;
        push @n, $keys - 1;
    }
    return @n;
}

# one batch, several calls
{
    my $settle = $redis->script('LOAD', slurp('lua/settle.lua'));
    $redis->config('SET', 'slowlog-max-len', 10_000);
    $c->sale(1, units => 1000, group => 1);
    $c->buy(1, 1 .. 2 * $most + 50);
    $redis->config('SET', 'slowlog-log-slower-than', 0);
    $c->start;
    $c->wait_settled(1);
    $redis->config('SET', 'slowlog-log-slower-than', -1);

    is_deeply([calls($settle)], [$most, $most, 50], 'a batch is told in calls of bounded size');
    $c->all_bought(1, [1 .. 2 * $most + 50], 'everybody is told');
    $c->stop;
}

# killed between two of them
{
    $c->sale(2, units => 1000, group => 1);
    $c->buy(2, 1 .. 2 * $most);
    my $status = $c->t->wait_exit($c->start(SECKILLD_FAILPOINT => 'in_settle'), 20);
    is($status & 127, POSIX::SIGKILL(), 'killed in the midst of it');

    is($c->order_count(2), 2 * $most, 'all orders are written');
    is($c->pending(2), $most, 'half of them are acknowledged');
    ok($c->result(2, $most)->{success}, 'those were told');
    is($c->result(2, $most + 1), undef, 'the others were not');

    $c->start;
    $c->wait_settled(2);
    $c->all_bought(2, [1 .. 2 * $most], 'the rest is told after the restart');
    is($c->order_count(2), 2 * $most, 'no order twice');
    is($c->sold(2), 2 * $most, 'counted once');
    is_deeply($c->dead(2), [], 'no dead letters');
    $c->stop;
}

# a server that counts in larger steps, as those of a cluster do
{
    $c->dbh->do('SET GLOBAL auto_increment_increment = 3');
    $c->sale(3, units => 1000, group => 1);
    $c->buy(3, 1 .. 300);
    $c->start;
    $c->wait_settled(3);

    my @id = map { $_->{id} } @{ $c->orders(3) };
    is($id[-1] - $id[0], 299 * 3, 'ids with gaps');
    $c->all_bought(3, [1 .. 300], 'every buyer hears the right one');
    ok($c->stop, 'the daemon stops well');
}

done_testing;
