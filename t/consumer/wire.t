# Wires that are cut anywhere, rows that others want, and a server that is
# another one afterwards: D1, D4, D8, D9; a metrics client that leaves: F8.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin, "$FindBin::Bin/../../tools/chaos";

use Chaos::Proxy;
use ConsumerTest;
use IO::Socket::INET;
use POSIX ();
use Socket qw(SOL_SOCKET SO_LINGER);
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

my $c = ConsumerTest->new(conf => { 'mysql.timeout' => '2s', 'redis.timeout' => '1s', 'consumer.batch' => 20 });
my $plain = $c->{conf};
my $port  = $c->t->port;

sub each_once {
    my ($id, $n, $what) = @_;
    $c->wait_settled($id, 120);
    is($c->order_count($id), $n, "$what: one order each");
    is($c->sold($id), $n, '... counted once');
    $c->all_bought($id, [1 .. $n], '... and told');
    is_deeply($c->dead($id), [], '... no dead letter');
    return;
}

# --- the connection to MySQL breaks at any packet (D1)
{
    my $front = $c->t->dir . '/front.sock';
    my $proxy = Chaos::Proxy->new(kind => 'mysql', sock => $front, target => $c->{mysql}{sock}, every => 7, from => 1);
    $c->{conf} = $c->conf('mysql.socket' => $front);
    $c->sale(1, units => 1000);
    $c->buy(1, 1 .. 1000);
    $c->start;
    $c->t->wait_for(sub { $proxy->cuts >= soak(8, 60) }, 120, 'cuts');
    my $cuts = $proxy->cuts;
    $proxy->stop;
    $proxy = Chaos::Proxy->new(kind => 'mysql', sock => $front, target => $c->{mysql}{sock});
    each_once(1, 1000, "$cuts cuts at every seventh packet");
    ok($c->stop, 'it stops well');
    $proxy->stop;
    $c->{conf} = $plain;
}

# --- every statement belongs to a transaction, whenever a connection is killed (D9)
{
    my $log = $c->t->dir . "/general.log";
    $c->dbh->do("SET GLOBAL general_log_file = '$log'");
    $c->dbh->do('SET GLOBAL general_log = 1');
    $c->sale(2, units => 1000);
    $c->buy(2, 1 .. 1000);
    $c->start;
    for (1 .. soak(15, 100)) {
        for my $row (@{ $c->dbh->selectall_arrayref('SHOW PROCESSLIST') }) {
            eval { $c->dbh->do("KILL $row->[0]") } if $row->[0] != $c->dbh->{mysql_thread_id} && ($row->[1] // '') eq 'root';
        }
        sleep 0.02;
    }
    each_once(2, 1000, 'connections killed amid batches');
    ok($c->stop, 'it stops well');
    $c->dbh->do('SET GLOBAL general_log = 0');

    my (%open, %set, %connects, @alone, $writes);
    open my $fh, '<', $log or die "general log: $!\n";
    while (my $line = <$fh>) {
        my ($thread, $what, $text) = $line =~ /^(?:\d{6} +[\d:]+)?\s+(\d+) (Connect|Query|Quit)\s+(.*)/ or next;
        next if $thread == $c->dbh->{mysql_thread_id};
        if ($what eq 'Connect') { $connects{$thread} = 1; next }
        next if $what eq 'Quit';
        $set{$thread}  = 1 if $text =~ /^SET SESSION .*sql_mode = 'STRICT_ALL_TABLES/;
        $open{$thread} = 1 if $text =~ /^(?:BEGIN|START TRANSACTION)/i;
        $open{$thread} = 0 if $text =~ /^(?:COMMIT|ROLLBACK)/i;
        # a key of the shop and a note of the ledger are one row, and move no unit
        next if $text =~ /^INSERT INTO seckill_stock_log .*,'open',/;
        next if $text !~ /^INSERT (?!INTO seckill_settings)|^UPDATE seckill_activities SET sold/i;
        $writes++;
        push @alone, $text if !$open{$thread};
    }
    cmp_ok($writes, '>', 100, 'the general log has the writes');
    is_deeply([map { substr $_, 0, 60 } @alone], [], '... none stands alone');
    my @bare = grep { !$set{$_} } keys %open;
    is_deeply(\@bare, [], '... and every session that writes made its settings');
}

# --- four workers, and a session that wants the same rows and gives them up (D4)
{
    $c->{conf} = $c->conf('consumer.workers' => 4, 'http.listen' => "127.0.0.1:$port");
    $c->sale($_, units => 3000) for 3, 4;
    $c->start;
    my $child = fork // die "fork: $!\n";
    if (!$child) {
        my $other = $c->t->dbh($c->{mysql});
        $other->do('SET innodb_lock_wait_timeout = 1');
        my ($n, $end) = (0, time + soak(4, 60));
        while (time < $end) {
            my $id = 3 + $n++ % 2;
            eval {
                $other->begin_work;
                # the rows in the other order: first the activity's, then those of users
                # to come; so many before that it is the daemon who has to give way
                my ($last) = $other->selectrow_array("SELECT COALESCE(MAX(user_id), 0) FROM seckill_orders WHERE activity_id = $id");
                $other->do('INSERT INTO seckill_records (user_id, activity_id) VALUES '
                    . join ',', map {"($_, 55)"} 1 .. 500);
                $other->do("UPDATE seckill_activities SET sold = sold WHERE id = $id");
                sleep 0.05;
                $other->do('INSERT INTO seckill_records (user_id, activity_id) VALUES '
                    . join ',', map { '(' . ($last + $_) . ", $id)" } 1 .. 200);
            };
            eval { $other->rollback };
        }
        POSIX::_exit(0);
    }
    for my $round (0 .. 99) {
        $c->buy($_, map { $round * 20 + $_ } 1 .. 20) for 3, 4;
        sleep soak(0.04, 0.6);
    }
    waitpid $child, 0;
    each_once($_, 2000, "rows that others wanted, activity $_") for 3, 4;
    my $log = $c->t->log_text($c->{daemon});
    my ($again) = scalar(() = $log =~ /transaction is run again/g);
    cmp_ok($again, '>', 0, "transactions were run again ($again lines)");
    like($log, qr/run again.*error="1213/, '... for deadlocks, too');
    my (undef, $metrics) = $c->t->run('curl', '-s', '-m', 5, "http://127.0.0.1:$port/metrics");
    like($metrics, qr/^seckilld_retries_total\{reason="conflict"\} [1-9]/m, '... and counted');
}

# --- who asks for the metrics and leaves (F8)
{
    for my $n (1 .. soak(20, 100)) {
        my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "connect: $!\n";
        print {$socket} "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
        setsockopt $socket, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0) if $n % 2;
        close $socket;
    }
    $c->sale(5, units => 10);
    $c->buy(5, 1 .. 10);
    each_once(5, 10, 'metrics clients that left');
    ok($c->stop, 'it stops well');
}

# --- the server behind the name is another one (D8)
{
    my $name   = $c->t->dir . '/name.sock';
    my $second = $c->t->mariadb;
    symlink $c->{mysql}{sock}, $name or die "symlink: $!\n";
    for my $dbh ($c->dbh, $second->{dbh}) {
        # root may write on a read-only server
        $dbh->do('CREATE USER shop@localhost');
        $dbh->do('GRANT SELECT, INSERT, UPDATE ON seckill.* TO shop@localhost');
    }
    $c->{conf} = $c->conf('mysql.socket' => $name, 'mysql.user' => 'shop');
    $c->sale(6, units => 10);
    for my $file (sort glob $c->t->root . '/sql/*.sql') {
        my ($exit, undef, $err) = $c->t->run('mariadb', '--no-defaults', '-uroot', "-S$second->{sock}", 'seckill', '-e', "source $file");
        die "$file: $err" if $exit;
    }
    my $row = $c->dbh->selectrow_hashref('SELECT * FROM seckill_activities WHERE id = 6');
    $second->{dbh}->do('INSERT INTO seckill_activities (' . join(',', sort keys %{$row}) . ') VALUES ('
        . join(',', map { $second->{dbh}->quote($row->{$_}) } sort keys %{$row}) . ')');
    $second->{dbh}->do('INSERT INTO seckill_terms SELECT id, 1, product_id, seckill_price, max_quantity, 0,'
        . " start_time, end_time, 'preheat', NOW() FROM seckill_activities WHERE id = 6");
    $c->start;
    $c->buy(6, 1 .. 3);
    $c->wait_settled(6);
    is($c->order_count(6), 3, 'three orders on the first server');

    $c->dbh->do('SET GLOBAL read_only = 1');
    unlink $name;
    symlink $second->{sock}, $name or die "symlink: $!\n";
    $c->buy(6, 4 .. 6);
    $c->wait_settled(6);
    is($second->{dbh}->selectrow_array('SELECT COUNT(*) FROM seckill_orders WHERE activity_id = 6'), 3, 'three on the other, by itself');
    like($c->t->log_text($c->{daemon}), qr/unavailable.*server=mysql.*1290/, '... once the first had refused');
    is_deeply($c->dead(6), [], '... none is blamed');
    ok($c->stop, 'it stops well');
}

done_testing;
