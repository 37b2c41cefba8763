# TERM drains, other signals harm nothing, the service manager is told.

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

my $c = ConsumerTest->new(conf => { 'consumer.workers' => 1 });

# F1: TERM while a batch is in its transaction: it is finished, no other is begun, not
# even of the next activity
for my $signal (qw(TERM INT)) {
    my $id = $signal eq 'TERM' ? 1 : 11;
    my $next = $id + 1;

    $c->{conf} = $c->conf('consumer.batch' => 100);
    for ($id, $next) {
        $c->sale($_, units => 1000, group => 1);
        $c->buy($_, 1 .. 1000);
    }

    # one batch of each in turn: the third is the first activity's
    $c->start(SECKILLD_FAILPOINT => 'after_insert:3:700');
    $c->t->wait_for(sub { $c->order_count($next) == 100 && $c->pending($id) == 100 }, 10,
        'the third batch');

    my $began  = time;
    my $status = $c->t->stop($c->{daemon}, $signal);
    is($status, 0, "exit 0 after $signal");
    cmp_ok(time - $began, '<', 2, 'soon');
    is($c->order_count($id), 200, 'the batch in hand is committed');
    is($c->pending($id), 0, 'and acknowledged');
    $c->all_bought($id, [1 .. 200], 'and told');
    is($c->order_count($next), 100, 'the next activity waits');
    is($c->pending($next), 0, 'unread');
    like($c->t->log_text($c->{daemon}), qr/seckilld stops.*\n.*purchases settled.*\n.*is down/,
        'the log tells it');

    $c->start;
    $c->wait_settled($_) for $id, $next;
    is($c->order_count($id) + $c->order_count($next), 2000, 'a new start does the rest');
    $c->stop;
}

# F1: TERM during load, again and again
{
    $c->{conf} = $c->conf('consumer.batch' => 50);
    $c->sale(3, units => 20000);
    $c->buy(3, 1 .. 20000);
    for my $round (1 .. 8) {
        $c->start;
        $c->t->wait_log($c->{daemon}, qr/seckilld is up/);
        sleep 0.02 * $round;
        is($c->t->stop($c->{daemon}), 0, "exit 0 under load, round $round");
        is($c->pending(3) // 0, 0, 'nothing is left half done');
    }
    cmp_ok($c->order_count(3), '<', 20000, 'the rest is unread');
    $c->start;
    $c->wait_settled(3, 60);
    is($c->order_count(3), 20000, 'no purchase lost');
    is($c->sold(3), 20000, 'none doubled');
    ok($c->stop, 'stops well');
}

# F9: a storm of signals that mean nothing
{
    $c->{conf} = $c->conf;
    $c->sale(4, units => 20000);
    my $daemon = $c->start;
    $c->t->wait_log($daemon, qr/seckilld is up/);
    my $end = time + soak(3, 60);
    my $n   = 0;

    while (time < $end) {
        kill $_, $daemon->{pid} for qw(USR1 HUP CONT);
        sleep 0.002;
        $c->buy(4, map { $n * 20 + $_ } 1 .. 20) if $n++ < 900;
    }
    ok($c->t->alive($daemon), 'alive after a storm of USR1, HUP and CONT');
    $c->wait_settled(4);
    my $users = ($n < 900 ? $n : 900) * 20;
    is($c->order_count(4), $users, 'no purchase was lost in it');
    is($c->sold(4), $users, 'or doubled');
    unlike($c->t->log_text($daemon), qr/level=(?:warn|error)/, 'no error, no reconnect');
    my $began = time;
    is($c->t->stop($daemon), 0, 'and TERM still ends it');
    cmp_ok(time - $began, '<', 1, 'at once');
}

# F8: Redis went away while it wrote to it: an error, never an exit
{
    $c->sale(5, units => 1000);
    $c->start;
    my $rounds = soak(10, 100);
    for my $round (1 .. $rounds) {
        my @ids = map { /^id=(\d+) .*cmd=xreadgroup/ ? $1 : () }
            split /\n/, $c->redis->client('LIST');
        $c->redis->client('KILL', 'ID', $_) for @ids;
        $c->buy(5, $round);
        $c->wait_settled(5);
    }
    ok($c->t->alive($c->{daemon}), "alive after $rounds closed connections");
    $c->all_bought(5, [1 .. $rounds], 'and all have their orders');
    ok($c->stop, 'stops well');
}

# while they wait for servers, TERM is heard at once, wherever in the wait it comes
{
    $c->t->kill9($c->{mysql});
    my @daemons = map { $c->start } 1 .. 5;
    $c->t->wait_log($_, qr/unavailable/) for @daemons;
    sleep 4;
    my $slowest = 0;
    for my $daemon (@daemons) {
        my $began = time;
        is($c->t->stop($daemon), 0, 'it stops well while it waits');
        $slowest = time - $began if time - $began > $slowest;
    }
    cmp_ok($slowest, '<', 0.5, 'at once');
}

# READY and STOPPING
{
    my $path    = $c->t->dir . '/notify.sock';
    my $manager = IO::Socket::UNIX->new(Local => $path, Type => SOCK_DGRAM) or die $!;
    my $hear    = sub {
        return 'nothing' unless IO::Select->new($manager)->can_read(5);
        $manager->recv(my $text, 256);
        return $text;
    };

    $c->start(NOTIFY_SOCKET => $path);
    is($hear->(), 'READY=1', 'ready is told, although MySQL is down');
    ok($c->stop, 'stops well');
    is($hear->(), 'STOPPING=1', 'stopping is told');
}

done_testing;
