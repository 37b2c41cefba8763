# Servers that are down, read-only, locked or refuse us: the daemon waits, says
# so once, blames no purchase, and goes on by itself.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use Soak qw(soak);
use Test::More;

my $c = ConsumerTest->new(conf => { 'consumer.workers' => 1, 'mysql.timeout' => '2s',
    'redis.timeout' => '1s' });

sub log_count {
    my ($pattern) = @_;
    my $n = () = $c->t->log_text($c->{daemon}) =~ /$pattern/g;
    return $n;
}

# F4: both servers are down when it starts
{
    $c->sale(1, units => 1000);
    $c->buy(1, 1 .. 10);
    my $key   = $c->key(orders => 1);
    my $saved = $c->redis->dump($key);

    $c->t->kill9($c->{mysql});
    $c->t->kill9($c->{redis});
    $c->start;
    $c->t->wait_log($c->{daemon}, qr/unavailable.*server=redis/);
    sleep 2;
    ok($c->t->alive($c->{daemon}), 'it waits when both servers are down');
    is(log_count(qr/level=error/), 1, 'and says so once');

    $c->t->restart($c->{redis});
    $c->{redis}{client} = $c->t->redis_client($c->{redis});
    $c->t->wait_log($c->{daemon}, qr/unavailable.*server=mysql/);
    $c->preheat(1, units => 990, seq => 10);
    $c->redis->restore($key, 0, $saved, 'REPLACE');
    sleep 1;
    is($c->pending(1) // 0, 0, 'nothing is read while MySQL is down');

    $c->t->restart($c->{mysql});
    $c->wait_settled(1);
    $c->all_bought(1, [1 .. 10], 'orders come as soon as both are there');
    is(log_count(qr/level=error/), 2, 'one line for each server');
    is(log_count(qr/server is back/), 2, 'and one for each return');
}

# D1: MySQL dies under it, between batches and at a commit
{
    for my $round (0 .. 2) {
        my $first = 100 + $round * 100;
        $c->t->kill9($c->{mysql});
        $c->buy(1, $first .. $first + 99);
        sleep 1;
        $c->t->restart($c->{mysql});
        $c->wait_settled(1);
        $c->all_bought(1, [$first .. $first + 99], "MySQL killed, round $round");
    }
    is($c->order_count(1), 310, 'each once');
    is($c->sold(1), 310, 'and counted once');
    is_deeply($c->dead(1), [], 'no dead letters');

    $c->stop;
    $c->buy(1, 400 .. 499);
    $c->start(SECKILLD_FAILPOINT => 'after_insert:1:1500');
    $c->t->wait_for(sub { ($c->pending(1) // 0) == 100 }, 10, 'the batch to be read');
    sleep 1;
    is($c->order_count(1), 310, 'not committed');
    $c->t->kill9($c->{mysql});
    $c->t->restart($c->{mysql});
    $c->wait_settled(1);
    $c->all_bought(1, [400 .. 499], 'MySQL killed before the commit: the whole batch again');

    # the same, but the server had committed
    $c->stop;
    $c->buy(1, 500 .. 599);
    $c->start(SECKILLD_FAILPOINT => 'after_commit:1:1000');
    $c->t->wait_for(sub { $c->order_count(1) == 510 }, 10, 'the commit');
    is($c->result(1, 500), undef, 'not told yet');
    $c->wait_settled(1);
    $c->all_bought(1, [500 .. 599], 'told afterwards');
    is($c->sold(1), 510, 'all are counted once');
}

# D9: the connection is killed between two statements, many times
{
    $c->stop;
    my $conf = $c->{conf};
    $c->{conf} = $c->conf('consumer.batch' => 10);
    $c->sale(2, units => 1000);
    $c->buy(2, 1 .. 1000);
    $c->start;
    for (1 .. soak(30, 100)) {
        for my $row (@{ $c->dbh->selectall_arrayref('SHOW PROCESSLIST') }) {
            next if $row->[0] == $c->dbh->{mysql_thread_id} || ($row->[1] // '') ne 'root';
            eval { $c->dbh->do("KILL $row->[0]") };
        }
        select undef, undef, undef, 0.02;
    }
    $c->wait_settled(2, 60);
    $c->all_bought(2, [1 .. 1000], 'connections killed during batches');
    is($c->order_count(2), 1000, 'each once');
    is($c->sold(2), 1000, 'counted once');
    is_deeply($c->dead(2), [], 'no dead letters');
    $c->stop;
    $c->{conf} = $conf;
}

# D8: a user without privileges to write on a read-only server
{
    $c->dbh->do(q{CREATE USER shop@localhost IDENTIFIED BY 's3cret@:/#% x'});
    $c->dbh->do('GRANT SELECT, INSERT, UPDATE ON seckill.* TO shop@localhost');
    my $secret = $c->t->file('mysql.password', "s3cret\@:/#% x\n");
    my $conf   = $c->{conf};
    $c->{conf} = $c->conf('mysql.user' => 'shop', 'mysql.password_file' => $secret);

    $c->sale(3, units => 1000);
    $c->buy(3, 1 .. 10);
    $c->start;
    $c->wait_settled(3);
    $c->all_bought(3, [1 .. 10], 'SELECT, INSERT and UPDATE are enough');

    $c->dbh->do('SET GLOBAL read_only = 1');
    $c->buy(3, 11 .. 20);
    $c->t->wait_log($c->{daemon}, qr/unavailable.*server=mysql.*1290/);
    sleep soak(2, 60);
    is($c->order_count(3), 10, 'nothing is written while the server is read-only');
    is(log_count(qr/server is unavailable/), 1, 'which is said once');
    is_deeply($c->dead(3), [], 'and blamed on nobody');
    $c->dbh->do('SET GLOBAL read_only = 0');
    $c->wait_settled(3);
    $c->all_bought(3, [1 .. 20], 'and goes on by itself');
    $c->t->wait_log($c->{daemon}, qr/server is back.*server=mysql/);
    unlike($c->t->log_text($c->{daemon}), qr/s3cret/, 'no password in the log');

    # F4: a wrong password
    $c->stop;
    $c->t->file('mysql.password', "wrong-word\n");
    $c->start;
    $c->t->wait_log($c->{daemon}, qr/unavailable.*server=mysql.*Access denied/);
    sleep soak(2, 60);
    ok($c->t->alive($c->{daemon}), 'a wrong password is waited out');
    is(log_count(qr/level=error/), 1, 'with one clear line');
    unlike($c->t->log_text($c->{daemon}), qr/wrong-word/, 'that does not hold it');
    $c->t->file('mysql.password', "s3cret\@:/#% x\n");
    $c->buy(3, 21);
    $c->wait_settled(3);
    $c->all_bought(3, [21], 'a corrected file is read by itself');
    $c->stop;
    $c->{conf} = $conf;
}

# D5: somebody holds the activity's row for longer than the lock wait
{
    $c->sale(4, units => 100);
    $c->sale(5, units => 100);
    $c->start;
    my $other = $c->t->dbh($c->{mysql});
    $other->begin_work;
    $other->do('SELECT * FROM seckill_activities WHERE id = 4 FOR UPDATE');
    $c->buy(4, 1 .. 10);
    $c->t->wait_log($c->{daemon}, qr/transaction is run again.*1205/, 10);
    for (1 .. soak(1, 60)) {
        last if $c->order_count(4) != 0;
        sleep 1;
    }
    is($c->order_count(4), 0, 'no part of the batch is to be seen');
    $other->rollback;
    $c->wait_settled(4);
    $c->all_bought(4, [1 .. 10], 'a lock wait that ran out: all again');
    is_deeply($c->dead(4), [], 'no dead letters');
    cmp_ok(log_count(qr/transaction is run again/), '<=', soak(3, 40), 'one line for each time');
}

# D5: the wait runs out in the middle of the batch: what was written before is undone
{
    my $other = $c->t->dbh($c->{mysql});
    $other->begin_work;
    $other->do('INSERT INTO seckill_records (user_id, activity_id) VALUES (15, 4)');
    $c->buy(4, 11 .. 20);
    $c->t->wait_log($c->{daemon}, qr/(?:run again.*1205.*){2}/s, 10);
    for (1 .. 20) {
        last if $c->order_count(4) != 10;
        select undef, undef, undef, 0.1;
    }
    is($c->order_count(4), 10, 'no part of it is to be seen');
    is($c->sold(4), 10, 'nor counted');
    $other->rollback;
    $c->wait_settled(4);
    $c->all_bought(4, [1 .. 20], 'then all of it');
    is($c->sold(4), 20, 'counted once');
}

# D4: a deadlock: the other session wants what we hold and holds what we want
{
    $c->stop;
    my $other = $c->t->dbh($c->{mysql});
    $other->do('SET innodb_lock_wait_timeout = 10');
    $other->begin_work;
    # make it the heavier one, so that ours is the victim
    $other->do('INSERT INTO seckill_records (user_id, activity_id) VALUES '
        . join ',', map {"($_, 55)"} 1 .. 2000);
    $other->do('UPDATE seckill_activities SET sold = sold WHERE id = 5');
    $c->buy(5, 1 .. 10);
    $c->start;
    my $dirty = $c->t->dbh($c->{mysql});
    $dirty->do('SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED');
    $c->t->wait_for(sub {
        $dirty->selectrow_array('SELECT COUNT(*) FROM seckill_records WHERE activity_id = 5') == 10;
    }, 10, 'the batch to have written all but the row of the activity');
    $other->do('INSERT INTO seckill_records (user_id, activity_id) VALUES (1, 5)');
    $other->rollback;
    $c->wait_settled(5);
    ok($c->t->log_text($c->{daemon}) =~ /transaction is run again.*error="1213/, 'a deadlock');
    $c->all_bought(5, [1 .. 10], 'is run again as a whole');
    is($c->sold(5), 10, 'and counted once');
}

# an activity that MySQL does not know keeps nobody else waiting
{
    $c->preheat(6, units => 10);
    $c->buy(6, 1 .. 3);
    $c->t->wait_log($c->{daemon}, qr/activity is blocked.*activity=6.*not in MySQL/);
    $c->buy(5, 11 .. 20);
    $c->wait_settled(5, 5);
    $c->all_bought(5, [11 .. 20], 'the others go on');
    is($c->pending(6), 3, 'its purchases stay pending');
    sleep 1;
    is(log_count(qr/activity is blocked/), 1, 'which is said once');
    $c->dbh->do('INSERT INTO seckill_activities (id, product_id, seckill_price, stock_limit,'
        . ' start_time, end_time, epoch) VALUES (6, 5, 1, 10, NOW(), NOW(), 1)');
    $c->terms(6, 1);
    $c->wait_settled(6, 10);
    $c->all_bought(6, [1 .. 3], 'and become orders when it is there');
    $c->t->wait_log($c->{daemon}, qr/activity goes on.*activity=6/);
}

# A19: Redis has no memory for results: nothing is acknowledged, nothing lost
{
    my $used = { map { split /:/, $_, 2 } grep {/:/} split /\r\n/, $c->redis->info('memory') };
    $c->stop;
    $c->buy(5, 21 .. 30);
    $c->redis->config('SET', 'maxmemory', 1);
    $c->start;
    $c->t->wait_log($c->{daemon}, qr/unavailable.*server=redis.*OOM/);
    sleep 1;
    is($c->order_count(5), 30, 'the orders are made');
    is($c->pending(5), 10, 'but not acknowledged');
    is(log_count(qr/server is unavailable/), 1, 'said once');
    $c->redis->config('SET', 'maxmemory', 0);
    $c->wait_settled(5);
    $c->all_bought(5, [21 .. 30], 'told when there is memory again');
    $c->t->wait_log($c->{daemon}, qr/server is back.*server=redis/);
}

ok($c->stop, 'the daemon stops well');

done_testing;
