# Metrics and health on the loopback.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use IO::Socket::INET;
use Test::More;
use Time::HiRes qw(sleep time);

my $c    = ConsumerTest->new;
my $port = $c->t->port;
$c->{conf} = $c->conf('http.listen' => "127.0.0.1:$port", 'consumer.attempts' => 2,
    'consumer.retry' => '50ms', 'consumer.workers' => 1, 'mysql.timeout' => '2s', 'redis.timeout' => '200ms');

# (status, headers, body)
sub ask {
    my ($path, $method) = @_;
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 5)
        or return (0, '', '');
    print {$sock} ($method // 'GET') . " $path HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    my $all = do { local $/ = undef; <$sock> } // '';
    my ($head, $body) = split /\r\n\r\n/, $all, 2;
    my ($status) = $head =~ m{^HTTP/1.1 (\d+)};
    return ($status // 0, $head, $body // '');
}

sub metric {
    my ($name) = @_;
    my (undef, undef, $body) = ask('/metrics');
    return $body =~ /^\Q$name\E (\S+)$/m ? $1 : undef;
}

$c->dbh->do("ALTER TABLE seckill_orders ADD CONSTRAINT bad CHECK (request_id <> 'bad')");
$c->sale(1, units => 200, group => 1);
$c->buy(1, 1 .. 99, [100, 1, '', 'bad']);
$c->start;
$c->wait_settled(1);

{
    my ($status, $head, $body) = ask('/metrics');
    is($status, 200, '/metrics');
    like($head, qr{^Content-Type: text/plain; version=0\.0\.4}mi, 'is text for Prometheus');
    is(metric('seckilld_purchases_total{result="order"}'), 99, 'orders');
    is(metric('seckilld_purchases_total{result="dead"}'), 1, 'dead ones');
    is(metric('seckilld_retries_total{reason="data"}'), 1, 'attempts that failed');
    cmp_ok(metric('seckilld_retries_total{reason="split"}'), '>=', 6, 'splits');
    is(metric('seckilld_redis_up'), 1, 'Redis is up');
    is(metric('seckilld_mysql_up'), 1, 'MySQL is up');
    cmp_ok(abs(metric('seckilld_last_success_timestamp_seconds') - time), '<', 10, 'last success');
    cmp_ok(metric('seckilld_batch_duration_seconds_count'), '>=', 1, 'batches are timed');
    cmp_ok(metric('seckilld_commit_duration_seconds_sum'), '>', 0, 'and commits');
    is(metric('seckilld_batch_duration_seconds_bucket{le="+Inf"}'),
        metric('seckilld_batch_duration_seconds_count'), 'buckets add up');
    $c->t->wait_for(sub { (metric('seckilld_dead_letters{activity="1"}') // 0) == 1 }, 5, 'the picture');
    is(metric('seckilld_pending{activity="1"}'), 0, 'nothing pending');
    is(metric('seckilld_unread{activity="1"}'), 0, 'nothing unread');
    is(metric('seckilld_oldest_age_seconds{activity="1"}'), '0.000', 'nothing old');

    cmp_ok(metric('process_open_fds'), '>', 5, 'open files');
    my ($max) = do { local (@ARGV, $/) = "/proc/$c->{daemon}{pid}/limits"; <> =~ /^Max open files +(\d+)/m };
    is(metric('process_max_fds'), $max, '... of so many');

    # the format: each metric has help and type once, before its samples
    my (%type, @wrong);
    for my $line (split /\n/, $body) {
        if ($line =~ /^# TYPE (\S+) (counter|gauge|histogram)$/) {
            push @wrong, $line if $type{$1}++;
        } elsif ($line !~ /^# HELP \w+ \S/) {
            my ($name) = $line =~ /^(\w+?)(?:_bucket|_sum|_count)?(?:\{[^{}]*\})? -?[\d.]+(?:e[+-]\d+)?$/
                or push @wrong, $line;
            push @wrong, "no type: $line" unless $name && ($type{$name} || $line =~ /^(\w+)/ && $type{$1});
        }
    }
    is_deeply(\@wrong, [], 'the text is well formed');
    unlike($body, qr/password|token/i, 'without secrets');
}

# a backlog that lag can't tell (B12): rows are locked, an unread entry is deleted
{
    my $other = $c->t->dbh($c->{mysql});
    $other->begin_work;
    $other->do('SELECT * FROM seckill_activities WHERE id = 1 FOR UPDATE');
    $c->buy(1, 101);
    $c->t->wait_for(sub { $c->pending(1) == 1 }, 5, 'the read');
    $c->buy(1, 102 .. 121);
    my @ids = map { $_->[0] } @{ $c->redis->xrange($c->key(orders => 1), '-', '+') };
    $c->redis->xdel($c->key(orders => 1), $ids[-5]);
    $c->t->wait_for(sub { (metric('seckilld_unread{activity="1"}') // -1) == 19 }, 5, 'the backlog');
    is(metric('seckilld_pending{activity="1"}'), 1, 'one is pending');
    $c->t->wait_for(sub { metric('seckilld_oldest_age_seconds{activity="1"}') > 2 }, 6, 'its age');
    pass('it gets older');
    cmp_ok(metric('seckilld_retries_total{reason="conflict"}'), '>=', 1, 'conflicts are counted');
    my ($status, undef, $body) = ask('/healthz');
    is("$status $body", "200 ok\n", 'waiting for a lock is healthy');
    $other->rollback;
    $c->wait_settled(1);
}

# other requests
{
    is((ask('/nothing'))[0], 404, 'other paths are not found');
    my ($status, $head) = ask('/metrics', 'POST');
    is($status, 405, 'POST is refused');
    like($head, qr/^Allow: GET, HEAD/mi, 'with Allow');
    is((ask('/metrics', 'HEAD'))[2], '', 'HEAD has no body');
    my @idle = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) } 1 .. 40;
    $c->buy(1, 130);
    $c->wait_settled(1, 5);
    pass('idle clients stop no order');
    close $_ for grep {$_} @idle;
}

# servers that are away
{
    $c->t->kill9($c->{mysql});
    $c->t->wait_for(sub { (metric('seckilld_mysql_up') // 1) == 0 }, 15, 'mysql_up to fall');
    my ($status, undef, $body) = ask('/healthz');
    is("$status $body", "200 waiting\n", 'waiting is healthy');
    cmp_ok(metric('seckilld_outages_total{server="mysql"}'), '>=', 1, 'the outage is counted');
    $c->t->restart($c->{mysql});
    $c->{mysql}{dbh} = $c->t->dbh($c->{mysql});
    $c->t->wait_for(sub { (metric('seckilld_mysql_up') // 0) == 1 }, 10, 'mysql_up to rise');
    pass('and it is back');
}

# the port is taken: no metrics, but orders
{
    my $log = $c->t->seckilld($c->conf('http.listen' => "127.0.0.1:$port", 'consumer.name' => 'b'));
    $c->t->wait_log($log, qr/metrics can't be served.*$port/);
    ok($c->t->alive($log), 'a port that is taken is no reason to exit');
    $c->t->stop($log);
    my ($exit, undef, $err) = $c->t->run($c->t->build . '/seckilld', '-t', '-c',
        $c->t->file('open.conf', "[http]\nlisten = 0.0.0.0:9090\n"));
    is($exit, 1, 'an address that others can reach is refused');
    like($err, qr/loopback/, 'and says why');
}

ok($c->stop, 'the daemon stops well');

done_testing;
