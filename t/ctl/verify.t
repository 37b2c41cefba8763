# verify: the crowd, and every check of the books made to fail once.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use FakeTarget;
use Test::More;

my $c   = CtlTest->new;
my $t   = $c->t;
my $key = $t->key_file;

# A target that sells honestly, straight into Redis and MySQL; lie => { name => 1 }
# makes it do one thing wrong.  n counts what it did.
sub target {
    my ($activity, %lie) = @_;

    return FakeTarget->start(
        setup => sub {
            my $redis = $t->redis_client($c->{redis});
            my $dbh   = $t->dbh($c->{mysql});
            return {
                redis => $redis, dbh => $dbh,
                stock => $redis->get("seckill:stock:{$activity}") + ($lie{oversell} ? 1 : 0),
                bought => { map { $_ => 1 } $redis->smembers("seckill:order_users:{$activity}") },
                n => 0,
                seq => 2 * $dbh->selectrow_array('SELECT COUNT(*) FROM seckill_orders'),
            };
        },
        answer => sub { sell($activity, \%lie, @_) });
}

sub answer {
    my ($status, $code) = @_;
    return ($status, qq({"code":$code,"message":"x","data":null,"server_time_ms":1}));
}

sub sell {
    my ($activity, $lie, $method, $path, $user, $body, $state) = @_;

    my $redis = $state->{redis};
    my $n     = ++$state->{n};

    if ($method eq 'GET') {
        return answer(404, 40400) if $path ne "/seckill/result/$activity";
        return answer(200, 0)     if $lie->{queueing} && $user == $state->{first};
        return answer(200, $state->{bought}{$user} ? 1 : 40006);
    }
    return answer(404, 40400) if "$method $path" ne "POST /seckill/$activity";
    return answer(503, 50302) if $lie->{busy} && $n % 10 == 0;
    return answer(200, 40003) if $lie->{limit} && $state->{bought}{$user};
    return (200, '<html>') if $lie->{html} && $n == 3;

    if ($state->{bought}{$user}++) {
        return answer(200, 40004);
    }
    my $quantity = $body =~ /"quantity":(\d+)/ ? $1 : 1;
    if ($state->{stock} < $quantity) {
        delete $state->{bought}{$user};
        return answer(200, 40005);
    }

    $state->{stock} -= $quantity;
    $state->{first} //= $user;
    my $is_first = $state->{first} == $user;

    $redis->decrby("seckill:stock:{$activity}", $quantity) if !$lie->{stock};
    $redis->sadd("seckill:order_users:{$activity}", $user);
    $redis->xadd("seckill:orders:{$activity}", '*', user => $user) if $lie->{backlog};

    local $c->{mysql}{dbh} = $state->{dbh};
    my $owner = $lie->{stranger} && $is_first ? 999_999 : $user;
    $c->{seq} = 1000 * $activity + $state->{seq};
    for (1 .. ($lie->{double} && $is_first ? 2 : 1)) {
        $c->order($activity, $owner, quantity => $quantity) if !($lie->{lost} && $is_first);
    }
    $state->{seq} += 2;
    return if $lie->{cut} && $is_first;

    return answer(200, 0);
}

my @crowd = ('--key-file', $key, '--users', 20, '--requests', 40, '--concurrency', 8);

# A preheated running sale; returns its id.
sub sale {
    my (%args) = @_;
    my $id = $c->activity(start => -5, stock_limit => 10, %args);
    my ($exit, undef, $err) = $c->ctl('preheat', $id, '--late');
    die $err if $exit;
    return $id;
}

# { check => result } and all of the answer
sub verify {
    my ($id, $target, @args) = @_;
    my ($exit, $json, $err) = $c->ctl_json('verify', $id, '--url', $target->url, @crowd, @args);
    diag($err) if $err;
    return ($exit, { map { $_->{name} => $_->{result} } @{ $json->{checks} } }, $json);
}

sub failed { return join ', ', sort grep { $_[0]{$_} eq 'FAILED' } keys %{ $_[0] } }

my @names = (
    'every request was answered', 'no 5xx', 'nobody was accepted twice', 'Redis stock is 0',
    'seckilld is done in time', 'one order per user', 'orders == initial stock',
    'every accepted buyer has exactly one order', 'no order of anybody else',
    'every accepted buyer reads success',
);

# an honest sale
{
    my $id = sale();
    my ($exit, $checks, $json) = verify($id, target($id), '--seed', 7);
    is($exit, 0, 'an honest sale passes');
    is_deeply([ map { $_->{name} } @{ $json->{checks} } ], \@names, '... every check is made');
    is(failed($checks), '', '... and none fails');
    is($json->{passed}, 1, '... passed');
    is($json->{verdicts}{accepted}, 10, '... ten were accepted');
    is($json->{verdicts}{accepted} + $json->{verdicts}{repeat} + $json->{verdicts}{sold_out}, 40,
        '... every answer is counted once');
    is_deeply([ @{$json}{qw(activity users requests concurrency seed)} ], [ $id, 20, 40, 8, 7 ],
        '... and it says what it did');
    cmp_ok($json->{requests_per_second}, '>', 0, '... how fast');
    ok($json->{p50_ms} > 0 && $json->{p50_ms} <= $json->{p90_ms}
            && $json->{p90_ms} <= $json->{p99_ms} && $json->{p99_ms} <= $json->{max_ms},
        '... and how long it took');
}

# each check fails when it should, and no other does
my $results = 'every accepted buyer reads success';
my $each    = 'every accepted buyer has exactly one order';
my $others  = 'no order of anybody else';
my $orders  = 'orders == initial stock';

for my $case (
    [ busy => 'no 5xx', 'answers 503 to some' ],
    [ lost => "$each, $orders", 'loses one order' ],
    [ stranger => "$each, $others", 'gives one order to a stranger' ],
    [ stock => 'Redis stock is 0', 'forgets to count' ],
    [ queueing => $results, 'leaves one buyer queueing for ever' ],
    [ oversell => "Redis stock is 0, $orders", 'sells one unit too many' ],
    [ backlog => 'seckilld is done in time', 'has purchases nobody works on' ],
    )
{
    my ($lie, $expect, $what) = @{$case};
    my $id = sale();
    my ($exit, $checks) = verify($id, target($id, $lie => 1), '--timeout', '300ms');
    is($exit, 1, "a sale that $what is exit 1");
    is(failed($checks), $expect, '... by the right check');
}

# one who got the unit but not the answer is a buyer all the same
{
    my $id = sale();
    my ($exit, $checks, $json) = verify($id, target($id, cut => 1), '--seed', 3);
    is($exit, 1, 'a sale that cuts a connection is exit 1');
    is(failed($checks), 'every request was answered', '... by that check alone');
    is($json->{outcomes}{cut}, 1, '... and the cut is counted');
}

# a page that is not ours may hide a purchase, and is counted as other
{
    my $id = sale();
    my ($exit, $checks, $json) = verify($id, target($id, html => 1));
    is($json->{verdicts}{other}, 1, 'an answer that is not ours is counted as other');
}

# accept everybody, always: a static page is no shop
{
    my $id = sale();
    my $fake = FakeTarget->start(answer => sub { answer(200, 0) });
    my ($exit, $checks) = verify($id, $fake);
    is($exit, 1, 'a target that accepts everybody is exit 1');
    is(failed($checks), join(', ', sort $each, $results, 'nobody was accepted twice', $orders,
            'Redis stock is 0'), '... by every check of the books');

    my (undef, $out) = $c->ctl('verify', $id, '--url', $fake->url, @crowd, '--first-user', 501);
    like($out, qr/^  FAILED +\Q$each\E +without one: 501 502 503 504 505 \.\.\.$/m,
        '... and the first of them are named');
}

# two orders of one user: only without the unique key
{
    my $id = sale();
    $c->dbh->do('ALTER TABLE seckill_orders DROP KEY uk_user_activity, ADD KEY x (user_id)');
    my ($exit, $checks) = verify($id, target($id, double => 1));
    is($exit, 1, 'two orders of one user are exit 1');
    is(failed($checks), join(', ', sort 'one order per user', $each, $orders),
        '... by the right checks');
    $c->dbh->do('DELETE FROM seckill_orders');
    $c->dbh->do('ALTER TABLE seckill_orders DROP KEY x, '
            . 'ADD UNIQUE KEY uk_user_activity (user_id, activity_id)');
}

# less demand than stock
{
    my $id = sale(stock_limit => 50);
    my ($exit, $checks, $json) = verify($id, target($id));
    is($exit, 0, 'less demand than stock passes');
    is($checks->{'orders == demand'}, 'ok', '... orders are the demand');
    is($checks->{'Redis stock is what nobody wanted'}, 'ok', '... and the rest is left');

    # the same users again: buyers from before are told so, and no news
    ($exit, $checks, $json) = verify($id, target($id));
    is($exit, 0, 'the same crowd again passes');
    is($json->{verdicts}{repeat}, 40, '... everybody is told');
    is($c->stock($id), 30, '... and nothing is sold');

    # overlapping: half of them new, one unit short of what they want
    $c->redis->set("seckill:stock:{$id}", 9);
    ($exit, $checks, $json) = verify($id, target($id), '--first-user', 11);
    is($exit, 0, 'a crowd of old and new users passes');
    is($json->{verdicts}{accepted}, 9, '... the new ones share what is left');
}

# more than one unit each; 10 units in lots of 3 leave one
{
    my $id = sale(max_quantity => 3);
    my ($exit, $checks, $json) = verify($id, target($id), '--quantity', 3);
    is($exit, 0, 'lots of three pass');
    is($json->{verdicts}{accepted}, 3, '... three of them');
    is($c->stock($id), 1, '... and one unit is left');
}

# a limiter in front of the sale changes nothing in the books
{
    my $id = sale();
    my ($exit, $checks, $json) = verify($id, target($id, limit => 1));
    is($exit, 0, 'a sale with a limiter passes');
    cmp_ok($json->{verdicts}{limited}, '>', 0, '... limited ones are counted');
}

# --no-wait: the crowd's own checks only, without MySQL
{
    my $id   = sale();
    my $conf = $t->conf(redis => $c->{redis}, mysql => { sock => $t->dir . '/none' });
    my $fake = target($id);
    my ($exit, $out, $err) = $t->ctl($conf, 'verify', $id, '--url', $fake->url, @crowd,
        '--no-wait');
    is($exit, 0, '--no-wait needs no MySQL') or diag("$out$err");
    like($out, qr/^  skipped +\Q$each\E/m, '... and skips the orders');
    like($out, qr/^  ok +Redis stock is 0/m, '... not the stock');
    ($exit) = $t->ctl($conf, 'verify', $id, '--url', $fake->url, @crowd);
    is($exit, 3, 'without it MySQL must be there');
}

# the bar: on a terminal only
{
    my $id   = sale();
    my $fake = FakeTarget->start(answer => sub { answer(200, 40005) });
    my $run  = join ' ', $t->build . '/seckillctl', '-c', $c->{conf}, 'verify', $id, '--url',
        $fake->url, @crowd, '--no-wait';
    my (undef, $out, $err) = $t->run('script', '-qec', $run, '/dev/null');
    like($out, qr/buying \[[#.]{40}\] \d+\/40/, 'on a terminal there is a bar');
    (undef, $out, $err) = $t->run(split / /, $run);
    unlike("$out$err", qr/buying/, 'elsewhere there is none');
}

# who comes when is the seed's business
{
    my %order;
    for my $run ([ a => 5 ], [ b => 5 ], [ c => 6 ]) {
        my ($name, $seed) = @{$run};
        my $file = $t->file("order-$name", '');
        my $fake = FakeTarget->start(answer => sub {
            my (undef, undef, $user) = @_;
            open my $log, '>>', $file or die "order: $!";
            print {$log} "$user ";
            close $log or die "order: $!";
            return answer(200, 40005);
        });
        my $id = sale();
        $c->ctl('verify', $id, '--url', $fake->url, @crowd, '--concurrency', 1, '--seed', $seed);
        open my $in, '<', $file or die "order: $!";
        $order{$name} = <$in>;
    }
    is($order{a}, $order{b}, 'the same seed brings the same users in the same order');
    isnt($order{a}, $order{c}, 'another seed does not');
    unlike($order{a}, qr/\A1 2 3 4 5 /, 'and they come shuffled');
    my %seen;
    $seen{$_}++ for split / /, $order{a};
    is(join(' ', sort { $a <=> $b } keys %seen), join(' ', 1 .. 20),
        'and everybody comes at least once');
    is(scalar(split / /, $order{a}), 40, 'in as many requests as asked');
}

# addresses
{
    my $id   = sale();
    my $sock = $t->dir . '/fake.sock';
    my $fake = FakeTarget->start(sock => $sock, answer => sub {
        my ($method, $path) = @_;
        return answer(200, $path eq "/api/seckill/$id" ? 40005 : 40400);
    });
    for my $url ("unix:$sock:/api/seckill", "http://unix:$sock:/api/seckill/") {
        my ($exit, $json) = $c->ctl_json('verify', $id, '--url', $url, @crowd);
        is($json->{verdicts}{sold_out}, 40, "the address $url works");
    }

    my ($exit, undef, $err) = $c->ctl('verify', $id, '--url', 'http://127.0.0.1:1/x', @crowd);
    is($exit, 3, 'nobody at the address is exit 3');
    like($err, qr/nobody answers at "http:/, '... and said');

    ($exit, undef, $err) = $c->ctl('verify', 4711, '--url', 'http://127.0.0.1:1/x', @crowd);
    is($exit, 1, 'an activity that is not preheated is exit 1');

    my $later = $c->activity;
    $c->ctl('preheat', $later);
    my $shop = FakeTarget->start(answer => sub { answer(200, 40001) });
    ($exit, undef, $err) = $c->ctl('verify', $later, '--url', $shop->url, @crowd);
    is($exit, 1, 'a sale that has not started sells nothing: exit 1');
    like($err, qr/activity $later is not_started/, '... with a warning why');
}

# the client itself: https, and fast enough to be no bottleneck
{
    my $dir = $t->dir . '/stock-nginx';
    my ($port, $tls) = ($t->port, $t->port);
    my ($exit, undef, $err) = $t->run('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt',
        'ec_paramgen_curve:prime256v1', '-nodes', '-days', 1, '-subj', '/CN=localhost',
        '-addext', 'subjectAltName=DNS:localhost', '-keyout', "$dir.key", '-out', "$dir.crt");
    is($exit, 0, 'a certificate is made') or diag($err);

    my $nginx = FakeTarget->nginx($dir, <<"NGINX");
    default_type application/json;
    server {
        listen 127.0.0.1:$port backlog=4096;
        listen 127.0.0.1:$tls ssl backlog=4096;
        ssl_certificate $dir.crt;
        ssl_certificate_key $dir.key;
        return 200 '{"code":40005,"message":"x","data":null,"server_time_ms":1}';
    }
NGINX
    $t->wait_for(sub { IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") }, 10, 'nginx');

    my $id = sale();
    my @tls = ('verify', $id, '--url', "https://localhost:$tls/seckill", @crowd, '--no-wait');
    my ($code, $json) = $c->ctl_json(@tls, '--cacert', "$dir.crt");
    is($json->{verdicts}{sold_out}, 40, 'https works with --cacert');
    ($code, $json) = $c->ctl_json(@tls, '--insecure');
    is($json->{verdicts}{sold_out}, 40, '... and with --insecure');
    ($code, $json, $err) = $c->ctl_json(@tls);
    is($code, 3, '... and an unknown certificate is refused');

    my $many = $t->sanitized ? 5_000 : 30_000;
    ($code, $json) = $c->ctl_json('verify', $id, '--url', "http://127.0.0.1:$port/seckill",
        '--key-file', $key, '--users', 5_000, '--requests', $many, '--concurrency', 200,
        '--no-wait');
    is($json->{verdicts}{sold_out}, $many, "$many requests over 200 connections are answered");
    is($json->{outcomes}{answered}, $many, '... none is lost');
    my $rate = $json->{requests_per_second};
    diag("client: $rate requests/s");
    cmp_ok($rate, '>=', $t->sanitized ? 500 : 8000, '... fast enough');
}

done_testing();
