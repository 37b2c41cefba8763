# settle, by the clocks of Redis and MySQL: it can't be taken back, so both must be to
# be believed (F-F1); and doctor says when they are not.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use BooksTest;
use ClockShim;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $clocks = ClockShim->new;
my $c      = BooksTest->new;
my $redis  = $c->redis;

sub refused {
    my ($id, $words, $name) = @_;
    my $before = $c->everything;
    my ($exit, undef, $err) = $c->ctl('settle', $id, '--yes');
    is($exit, 4, "$name: refused");
    like($err, $words, '... and says why');
    is($c->everything, $before, '... and changes nothing');
    return;
}

# something happens while the command before this one runs
sub meanwhile {
    my ($delay, $code) = @_;
    my $pid = fork // die "fork: $!";
    return $pid if $pid;
    sleep $delay;
    $code->();
    POSIX::_exit(0);
}

my $id = $c->sale;
$c->buy($id, 1, 2);
$c->drain($id);

# Redis' clock alone says that the sale is over
{
    $clocks->step('redis-server', 7200);
    refused($id, qr/clocks of Redis and MySQL differ by \+7(?:199|200)\d{3} ms.*--clock-ok/,
        "F-F1: Redis' clock two hours ahead");
    my ($exit, $out) = $c->ctl('doctor', $id);
    is($exit, 1, 'doctor says so');
    like($out, qr/wrong +clocks +Redis' is \+7(?:199|200)\d{3} ms from MySQL's\n +-> let NTP/, '... by name');
    $clocks->step('redis-server', 0);
    (undef, $out) = $c->ctl('doctor', $id);
    like($out, qr/ok +clocks +Redis' is [+-]\d{1,3} ms from MySQL's/, '... and that they agree');
}

$redis->hset($c->key('activity', $id), end_ms => int(time * 1000) - 60_000);

# MySQL's
{
    $clocks->step('mariadbd', 2.5);
    refused($id, qr/differ by -2[45]\d\d ms/, "MySQL's clock ahead");
    $clocks->step('mariadbd', 0);
}

# a step between the two looks: both agree again at the second one
{
    my $pid = meanwhile(0.6, sub { $clocks->step($_, 7200) for qw(redis-server mariadbd) });
    refused($id, qr/clock was set by \+7(?:199|200)\d{3} ms/, 'both stepped while it looks');
    waitpid $pid, 0;
    $clocks->step($_, 0) for qw(redis-server mariadbd);
}

# an answer that took long says nothing of the clock
{
    my $busy = $c->t->redis_client($c->{redis});
    my $pid = meanwhile(0.7, sub { $busy->eval(
        'local t = redis.call("TIME") local n = 0'
        . ' repeat local u = redis.call("TIME") n = (u[1] - t[1]) * 1000000 + u[2] - t[2] until n > 1500000',
        0) });
    refused($id, qr/Redis' clock took more than 500 ms/, 'a Redis that answers late');
    waitpid $pid, 0;
}

# whoever knows better says so
{
    $clocks->step('mariadbd', 3600);
    my ($exit, $json, $err) = $c->ctl_json('settle', $id, '--yes', '--clock-ok');
    is($exit, 0, '--clock-ok settles') or diag($err);
    is($json->{sold}, 2, '... two are sold');
    $clocks->step('mariadbd', 0);
    my $ttl = $redis->pttl($c->key('stock', $id));
    ok($ttl > 86_300_000 && $ttl < 86_400_000 + 310_000, "... its keys go in a day ($ttl)");
    ($exit, $json) = $c->ctl_json('settle', $id, '--yes');
    is($exit, 0, 'again is fine');
}

# it is no word against Redis' own clock
{
    my $running = $c->sale;
    my ($exit, undef, $err) = $c->ctl('settle', $running, '--yes', '--clock-ok');
    is($exit, 4, '--clock-ok settles no sale that runs');
    like($err, qr/has not ended/, '... and says why');
}

done_testing();
