# F4, F5: servers that are away for long, a crowd that waits meanwhile, and a log
# that takes no line.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use IO::Socket::UNIX;
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(sleep time);

use constant AWAY_SECONDS => soak(5, 600);
use constant WAITING      => soak(2000, 50_000);

my $c = ConsumerTest->new(
    conf  => { 'mysql.timeout' => '2s', 'redis.timeout' => '1s' },
    redis => { appendonly => 'yes', appendfsync => 'no' });
my $port = $c->t->port;
$c->{conf} = $c->conf('http.listen' => "127.0.0.1:$port");

sub lines { my @lines = split /\n/, $c->t->log_text($c->{daemon}); return scalar @lines }

sub health {
    my (undef, $out) = $c->t->run('curl', '-s', '-m', 5, "http://127.0.0.1:$port/healthz");
    return $out;
}

sub cpu_ticks {
    open my $fh, '<', "/proc/$_[0]{pid}/stat" or die "stat: $!\n";
    my @field = split ' ', scalar(<$fh>) =~ s/.*\) //r;
    return $field[11] + $field[12];
}

# both are away before it starts
{
    $c->sale(1, units => 2 * WAITING);
    $c->buy(1, 1 .. WAITING);
    $c->t->stop($_) for $c->{mysql}, $c->{redis};

    my $path    = $c->t->dir . '/notify.sock';
    my $manager = IO::Socket::UNIX->new(Local => $path, Type => SOCK_DGRAM) or die $!;
    $c->start(NOTIFY_SOCKET => $path);
    $manager->recv(my $told, 256);
    is($told, 'READY=1', 'active for the service manager, although nothing is there');
    sleep AWAY_SECONDS;
    ok($c->t->alive($c->{daemon}), AWAY_SECONDS . ' s without servers: it waits inside');
    is(health(), "waiting\n", '... and says so');
    cmp_ok(lines(), '<=', 8 + AWAY_SECONDS / 60, '... in a few lines, and one a minute');
    cmp_ok(cpu_ticks($c->{daemon}), '<=', 20 + AWAY_SECONDS, '... at rest');

    $c->t->restart($_) for $c->{redis}, $c->{mysql};
    $c->{redis}{client} = $c->t->redis_client($c->{redis});
    $c->wait_settled(1, 60);
    is($c->order_count(1), WAITING, 'then it makes an order of each that waited');
}

# Redis goes while a crowd waits
{
    $c->stop;
    $c->buy(1, WAITING + 1 .. 2 * WAITING);
    $c->start;
    $c->t->wait_for(sub { $c->order_count(1) > WAITING }, 20, 'the first batch');
    my $before = lines();
    $c->t->kill9($c->{redis});
    sleep AWAY_SECONDS;
    cmp_ok(lines() - $before, '<=', 6 + AWAY_SECONDS / 10, 'Redis away: lines are few');
    $c->t->restart($c->{redis});
    $c->{redis}{client} = $c->t->redis_client($c->{redis});
    $c->wait_settled(1, 60);
    is($c->order_count(1), 2 * WAITING, 'no purchase is lost');
    is($c->sold(1), 2 * WAITING, 'or doubled');
    is_deeply($c->dead(1), [], 'and none is blamed');
    ok($c->stop, 'it stops well');
}

# no line can be written
{
    $c->{conf} = $c->conf('log.file' => '/dev/full');
    $c->sale(2, units => 100);
    $c->start;
    $c->buy(2, 1 .. 50);
    $c->add(2, $c->message(2, 99, v => 9));
    $c->wait_settled(2);
    $c->all_bought(2, [1 .. 50], 'a full disk under the log stops no order');
    is(scalar @{ $c->dead(2) }, 1, 'nor a dead letter');
    ok($c->stop, 'it stops well');
}

done_testing;
