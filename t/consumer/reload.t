# HUP takes new settings between two batches and keeps the old ones when the new
# are wrong; USR1 opens the log again; the watchdog hears of the work itself.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use IO::Select;
use IO::Socket::UNIX;
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

my $c = ConsumerTest->new(conf => { 'mysql.timeout' => '2s', 'redis.timeout' => '200ms' });

sub slurp { open my $fh, '<', $_[0] or return ''; local $/ = undef; return <$fh> }
# at once: the daemon may be reading it
sub spill {
    my ($path, $text) = @_;
    open my $fh, '>', "$path.new" or die $!;
    print {$fh} $text;
    close $fh or die $!;
    rename "$path.new", $path or die $!;
    return;
}

sub hup { kill HUP => $c->{daemon}{pid}; return }

# new settings
{
    $c->start;
    $c->t->wait_log($c->{daemon}, qr/seckilld is up.*workers=3/);
    my $pid = $c->{daemon}{pid};
    spill($c->{conf}, slurp($c->conf('consumer.workers' => 4, 'consumer.batch' => 100)));
    hup();
    $c->t->wait_log($c->{daemon}, qr/settings are in use.*workers=4 batch=100/);
    $c->sale(1, units => 1000);
    $c->buy(1, 1 .. 500);
    $c->wait_settled(1);
    $c->all_bought(1, [1 .. 500], 'it goes on with four workers');
    my $n = @{ $c->redis->xinfo('CONSUMERS', $c->key(orders => 1), 'seckilld') };
    cmp_ok($n, '>=', 1, 'under their names');
    is($c->{daemon}{pid}, $pid, 'as the same process');
}

# F2: wrong ones
{
    my $good = slurp($c->{conf});
    spill($c->{conf}, "$good\n[consumer]\nbatsh = 1\n");
    hup();
    $c->t->wait_log($c->{daemon}, qr/settings are wrong.*unknown setting.*batsh/);
    unlink $c->{conf};
    hup();
    $c->t->wait_log($c->{daemon}, qr/settings are wrong.*cannot open/);
    $c->buy(1, 501 .. 510);
    $c->wait_settled(1);
    $c->all_bought(1, [501 .. 510], 'a bad file changes nothing');
    spill($c->{conf}, $good);
    hup();
    sleep 0.3;
    my $lines = () = $c->t->log_text($c->{daemon}) =~ /settings are in use/g;
    is($lines, 1, 'the same settings are no news');
}

# F2: under load: nothing is lost
{
    $c->sale(2, units => 20_000);
    my $before = slurp($c->{conf});
    my $good = $before =~ s/timeout = 200ms/'timeout = ' . soak('200ms', '2s')/er;
    my ($rounds, $each) = (soak(20, 1000), soak(200, 20));
    for my $round (1 .. $rounds) {
        $c->buy(2, map { $round * $each + $_ } 1 .. $each);
        # every second one is of no use
        spill($c->{conf}, $round % 2 ? $good . "[consumer]\nbatsh = 1\n"
                                     : $good =~ s/batch = \d+/'batch = ' . (50 + $round % 100)/er);
        hup();
        sleep soak(0.05, 0.01);
    }
    $c->wait_settled(2, 60);
    is($c->order_count(2), $rounds * $each, "$rounds reloads under load, half of them broken, lose nothing");
    is($c->sold(2), $rounds * $each, 'and double nothing');
    spill($c->{conf}, $before);
    is_deeply($c->dead(2), [], 'no dead letters');
    is($c->pending(2), 0, 'nothing is left half done');
    unlike($c->t->log_text($c->{daemon}) =~ s/.*settings are wrong.*//gr, qr/level=(?:warn|error)/,
        'no error');
    ok($c->stop, 'it stops well');
}

# a log file, moved away and opened again
{
    my $log = $c->t->dir . '/daemon.log';
    $c->{conf} = $c->conf('log.file' => $log);
    $c->start;
    $c->t->wait_for(sub { slurp($log) =~ /seckilld is up/ }, 10, 'the log file');
    rename $log, "$log.1" or die $!;
    $c->sale(3, units => 10);
    $c->add(3, $c->message(3, 1, v => 9));
    $c->wait_settled(3);
    like(slurp("$log.1"), qr/dead letter/, 'lines follow the file that was moved');
    kill USR1 => $c->{daemon}{pid};
    $c->t->wait_for(sub { -e $log }, 5, 'a new file');
    $c->add(3, $c->message(3, 2, v => 9));
    $c->wait_settled(3);
    like(slurp($log), qr/dead letter.*user=2/, 'until USR1 opens a new one');
    unlike(slurp("$log.1"), qr/user=2/, 'which gets all from then on');

    # a place that is gone: the old file stays
    rename $log, "$log.2" or die $!;
    mkdir $log or die $!;
    kill USR1 => $c->{daemon}{pid};
    $c->t->wait_for(sub { slurp("$log.2") =~ /can't be opened/ }, 5, 'the complaint');
    $c->add(3, $c->message(3, 3, v => 9));
    $c->wait_settled(3);
    like(slurp("$log.2"), qr/dead letter.*user=3/, 'a file that can not be opened loses no line');
    ok($c->stop, 'it stops well');
    rmdir $log;
}

# F3: the watchdog
{
    my $path    = $c->t->dir . '/notify.sock';
    my $manager = IO::Socket::UNIX->new(Local => $path, Type => SOCK_DGRAM) or die $!;
    my $hear    = sub {
        my ($seconds) = @_;
        my %heard;
        my $end = time + $seconds;
        while ((my $left = $end - time) > 0) {
            next unless IO::Select->new($manager)->can_read($left);
            $manager->recv(my $text, 256);
            $heard{$text}++;
        }
        return \%heard;
    };

    $c->{conf} = $c->conf;
    $c->sale(4, units => 100);
    $c->start(NOTIFY_SOCKET => $path, WATCHDOG_USEC => 300_000);
    my $heard = $hear->(2);
    cmp_ok($heard->{'WATCHDOG=1'}, '>=', 10, 'it is fed while there is nothing to do');

    # a long wait for a lock is no hang
    my $other = $c->t->dbh($c->{mysql});
    $other->begin_work;
    $other->do('SELECT * FROM seckill_activities WHERE id = 4 FOR UPDATE');
    $c->buy(4, 1);
    my $seconds = soak(6, 30);
    $heard = $hear->($seconds);
    cmp_ok($heard->{'WATCHDOG=1'}, '>=', 7.5 * $seconds, "and through $seconds seconds of a lock");
    $other->rollback;
    $c->wait_settled(4);

    # servers that are down are no hang
    $c->t->kill9($c->{mysql});
    $seconds = soak(4, 300);
    $heard = $hear->($seconds);
    cmp_ok($heard->{'WATCHDOG=1'}, '>=', 7 * $seconds, "and while MySQL is down for $seconds seconds");
    $c->t->restart($c->{mysql});
    $c->{mysql}{dbh} = $c->t->dbh($c->{mysql});

    # a reload is told
    spill($c->{conf}, slurp($c->{conf}) =~ s/level = info/level = notice/r);
    hup();
    $heard = $hear->(1);
    ok($heard->{'RELOADING=1'} && $heard->{'READY=1'}, 'a reload is told, begin and end');
    ok($c->stop, 'it stops well');

    # a worker that hangs is not hidden by the others
    $c->start(NOTIFY_SOCKET => $path, WATCHDOG_USEC => 300_000,
        SECKILLD_FAILPOINT => 'after_insert:1:9000');
    $c->buy(4, 2);
    $c->t->wait_for(sub { ($c->pending(4) // 0) == 1 }, 10, 'the batch');
    sleep 5.8;
    $hear->(0.2);
    $heard = $hear->(1.5);
    is($heard->{'WATCHDOG=1'} // 0, 0, 'it is not fed while a worker hangs');
    $c->wait_settled(4, 15);
    $heard = $hear->(1);
    cmp_ok($heard->{'WATCHDOG=1'} // 0, '>=', 5, 'and is again when it goes on');
    ok($c->stop, 'it stops well');
}

done_testing;
