# lua/preheat.lua: puts a sale into Redis once, changes it until it starts, and
# never touches one that runs.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use POSIX ();
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my ($facts, $stock, $buyers, $orders) = ScriptTest::keys_of('preheat', 1);

my $now  = $s->now_ms;
my %sale = (late => 0, product_id => 5, price => '9.90', stock_limit => 100,
            start_ms => $now + 600_000, end_ms => $now + 1_200_000, max_quantity => 2,
            eligible => 0, epoch => 1);
my @order = qw(late product_id price stock_limit start_ms end_ms max_quantity eligible epoch);

sub argv { my %all = (%sale, @_); return @all{@order} }

# status, epoch, rev, stock as one text; the time is checked on the way
sub preheat {
    my (%change) = @_;

    my $before = $s->now_ms;
    my ($status, $epoch, $rev, $time, $left)
        = @{ $s->call('preheat', [$facts, $stock, $buyers, $orders], argv(%change)) };
    my $after = $s->now_ms;

    return "the time is wrong: $time" if $time < $before || $time > $after;
    return "$status $epoch $rev $left";
}

# one test: this answer, and nothing written
sub answers {
    my ($change, $expected, $name) = @_;

    my $before = $s->dump_all;
    my $got    = preheat(%{$change});
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return is($before eq $s->dump_all ? $got : "$got, and something was written", $expected, $name);
}

sub groups {
    return map { my %group = @{$_}; "$group{name} $group{'last-delivered-id'}" }
        @{ $redis->xinfo('GROUPS', $orders) };
}

subtest 'created' => sub {
    $redis->flushdb;
    is(preheat(), 'created 1 1 100', 'a new sale');
    is_deeply({ $redis->hgetall($facts) }, {
        product_id => 5, price => '9.90', stock_limit => 100, start_ms => $sale{start_ms},
        end_ms => $sale{end_ms}, state => 'open', max_quantity => 2, eligible => 0,
        epoch => 1, rev => 1, seq => 0, buyers_extra => 0,
    }, 'the facts are exact');
    is($redis->get($stock), 100, 'the stock');
    is_deeply([groups()], ['seckilld 0-0'], 'the group reads from id 0');
    is($redis->xlen($orders), 0, 'an empty stream');
    is($redis->exists($buyers), 0, 'no buyers');
    is_deeply([map { $redis->pttl($_) } $facts, $stock, $orders], [-1, -1, -1], 'nothing expires');

    $redis->flushdb;
    is(preheat(product_id => '18446744073709551615', price => '99999999.99', stock_limit => 0,
               eligible => 1, epoch => 7), 'created 7 1 0', 'other facts');
    is_deeply([$redis->hmget($facts, qw(product_id price eligible epoch))],
        ['18446744073709551615', '99999999.99', 1, 7], 'kept as text');
    is($redis->get($stock), 0, 'stock 0');
};

subtest 'unchanged' => sub {
    $redis->flushdb;
    preheat();
    answers({}, 'unchanged 1 1 100', 'the same again');
    answers({ late => 1 }, 'unchanged 1 1 100', 'also with late');
    $redis->hset($facts, state => 'closed');
    answers({}, 'unchanged 1 1 100', 'the switch is not a fact of preheat');
};

subtest 'updated' => sub {
    $redis->flushdb;
    preheat();

    my ($rev, %is) = (1, %sale);
    for my $change ([product_id => 6], [price => '10.00'], [stock_limit => 90],
                    [start_ms => $sale{start_ms} + 1], [end_ms => $sale{end_ms} + 1],
                    [max_quantity => 3], [eligible => 1], [epoch => 2]) {
        my ($name, $value) = @{$change};
        $is{$name} = $value;
        $rev++;
        is(preheat(%is), "updated $is{epoch} $rev $is{stock_limit}", "another $name");
        answers(\%is, "unchanged $is{epoch} $rev $is{stock_limit}", 'and then it is so');
    }
    is_deeply({ $redis->hgetall($facts) }, {
        state => 'open', seq => 0, rev => $rev, buyers_extra => 0, map { $_ => $is{$_} } grep { $_ ne 'late' } @order
    }, 'all facts are the new ones');
    is($redis->get($stock), 90, 'and the stock');

    $redis->hset($facts, state => 'closed');
    $s->refused(sub { preheat(%is, epoch => 1) }, qr/SECKILL epoch/, 'an older epoch is refused');
    is(preheat(%is, price => '1.00'), "updated 2 " . ($rev + 1) . ' 90', 'while closed');
    is($redis->hget($facts, 'state'), 'closed', 'it stays closed');
};

subtest 'what was lost before the start is made whole' => sub {
    for my $case (
        ['the stock',       sub { $redis->del($stock) }],
        ['a changed stock', sub { $redis->set($stock, 7) }],
        ['the stream',      sub { $redis->del($orders) }],
        ['the group',       sub { $redis->xgroup('DESTROY', $orders, 'seckilld') }],
        ['the group of a used stream', sub { $redis->xdel($orders, $redis->xadd($orders, '*', 'v', 1));
                                             $redis->xgroup('DESTROY', $orders, 'seckilld') }],
        ['another group',   sub { $redis->xgroup('DESTROY', $orders, 'seckilld');
                                  $redis->xgroup('CREATE', $orders, 'name', '0') }],
    ) {
        my ($name, $lose) = @{$case};
        $redis->flushdb;
        preheat();
        $lose->();
        is(preheat(), 'updated 1 2 100', $name);
        is($redis->get($stock), 100, 'stock');
        ok((grep { $_ eq 'seckilld 0-0' } groups()), 'group');
        answers({}, 'unchanged 1 2 100', 'whole');
    }
};

subtest 'the fields that tell whether a sale is whole' => sub {
    my $eligible = ScriptTest::key('eligible', 1);
    my $with = sub { return $s->call('preheat', [$facts, $stock, $buyers, $orders, $eligible], argv(eligible => 1, @_))->[0] };
    my $had  = sub { return $redis->hget($facts, 'eligible_had') };

    $redis->flushdb;
    is($with->(), 'created', 'a sale by registration without members');
    is($had->(), undef, 'had none yet');
    is($redis->hget($facts, 'buyers_extra'), 0, 'nobody bought without a seq');
    $redis->sadd($eligible, 7);
    is($with->(), 'unchanged', 'members are loaded: no fact changed');
    is($had->(), 1, 'and it is remembered that there were some');
    $redis->del($eligible);
    is($with->(), 'unchanged', 'they are gone');
    is($had->(), 1, 'which does not make it one that had none');

    $redis->flushdb;
    $redis->sadd($eligible, 7);
    is($with->(eligible => 0), 'created', 'a sale for everybody');
    is($had->(), undef, 'needs no members');
    is($with->(), 'updated', 'by registration now');
    is($had->(), 1, 'with members');

    $redis->hdel($facts, 'buyers_extra');
    is($with->(), 'unchanged', 'a sale that version 0.1.0 put there');
    is($redis->hget($facts, 'buyers_extra'), 0, 'gets its field');

    $redis->set($eligible, 'x') if $redis->del($eligible);
    $s->refused(sub { $with->(price => '1.00') }, qr/SECKILL \Q$eligible\E is a string, not a set/, 'registered users of another type');
};

subtest 'started' => sub {
    my %past = (start_ms => $now - 1000, late => 1);

    for my $change ({}, { stock_limit => 500 }, { price => '1.00', late => 0 }, { epoch => 2 },
                    { start_ms => $now + 9_000_000, end_ms => $now + 9_100_000 }) {
        $redis->flushdb;
        is(preheat(%past), 'created 1 1 100', 'a sale that runs');
        answers({ %past, %{$change} }, 'started 1 1 100', "untouched by @{[%{$change}]}");
        $s->buy(1, 1 .. 6);
        answers({ %past, %{$change} }, 'started 1 1 94', 'also after sales');
    }

    my @sold = (
        ['buyers'  => sub { $redis->sadd($buyers, 7) }],
        ['a seq'   => sub { $redis->hset($facts, seq => 1) }],
        ['entries' => sub { $redis->xadd($orders, '*', 'v', 1) }],
        ['its end' => sub { $redis->hset($facts, state => 'settled') }],
        ['its loss' => sub { $redis->hset($facts, state => 'lost') }],
    );
    for my $case (@sold) {
        $redis->flushdb;
        preheat();
        $case->[1]->();
        answers({ stock_limit => 500, epoch => 2 }, 'started 1 1 100', "before the start, but $case->[0] tell of a sale");
        answers({}, 'started 1 1 100', 'with equal facts too');
    }

    $redis->flushdb;
    preheat(start_ms => $s->now_ms + 500);
    select undef, undef, undef, 0.55;
    answers({ stock_limit => 500 }, 'started 1 1 100', 'started meanwhile, by the clock of Redis');
    $redis->del($stock);
    answers({}, 'started 1 1 0', 'a lost stock is not made anew');
};

subtest 'late' => sub {
    my %past = (start_ms => $now - 1000);

    $redis->flushdb;
    answers(\%past, 'late 0 0 0', 'a new sale whose start has passed');
    is($redis->dbsize, 0, 'nothing is there');
    is(preheat(%past, late => 1), 'created 1 1 100', 'unless late is meant');
    is($s->verdicts(1, 1), '1', 'and it sells');

    $redis->flushdb;
    preheat();
    answers(\%past, 'late 1 1 100', 'nor is a sale moved to start at once');
    is(preheat(%past, late => 1), 'updated 1 2 100', 'unless late is meant');
};

subtest 'leftovers and wrong types' => sub {
    my %make = (
        $stock  => sub { $redis->set($stock, 5) },
        $buyers => sub { $redis->sadd($buyers, 5) },
        $orders => sub { $redis->xadd($orders, '*', 'v', 1) },
    );
    for my $key (sort keys %make) {
        $redis->flushdb;
        $make{$key}->();
        $s->refused(sub { preheat() }, qr/SECKILL \Q$key\E is left over/, "$key without the facts");
        $s->refused(sub { preheat(late => 1, start_ms => $now - 9) }, qr/SECKILL \Q$key\E is left over/,
            'also with late');
    }

    for my $key ($facts, $stock, $buyers, $orders) {
        for my $there (0, 1) {
            $redis->flushdb;
            preheat() if $there;
            $redis->del($key);
            $redis->zadd($key, 1, 'x');
            $s->refused(sub { preheat(price => '1.00') }, qr/SECKILL \Q$key\E is a zset, not a/,
                "$key of another type, sale there: $there");
        }
    }

    for my $field (qw(start_ms epoch rev seq state)) {
        $redis->flushdb;
        preheat();
        $redis->hdel($facts, $field);
        $s->refused(sub { preheat(price => '1.00') }, qr/SECKILL facts/, "facts without $field");
    }
    $redis->flushdb;
    preheat();
    $redis->set($stock, 'abc');
    $s->refused(sub { preheat() }, qr/SECKILL stock/, 'stock abc');
};

subtest 'dry: it answers as it would, and nothing changes' => sub {
    my $dry = sub {
        my (%change) = @_;
        my $before = $s->dump_all;
        my $reply  = $s->call('preheat', [$facts, $stock, $buyers, $orders], argv(%change), 'dry');
        my $answer = join ' ', @{$reply}[0 .. 2, 4];
        return $before eq $s->dump_all ? $answer : "$answer, and something was written";
    };
    $redis->flushdb;
    is($dry->(), 'created 1 1 100', 'a new sale');
    is($redis->dbsize, 0, 'nothing is there');
    is($dry->(start_ms => $now - 1000), 'late 0 0 0', 'a late one');
    preheat();
    is($dry->(), 'unchanged 1 1 100', 'the same');
    is($dry->(price => '1.00', epoch => 2), 'updated 2 2 100', 'a change');
    $redis->hdel($facts, 'buyers_extra');
    is($dry->(), 'unchanged 1 1 100', 'of version 0.1.0');
    $redis->hset($facts, seq => 1);
    is($dry->(price => '1.00'), 'started 1 1 100', 'a sale that sold');

    for my $there (0, 1) {
        $redis->flushdb;
        preheat() if $there;
        $redis->config('SET', 'maxmemory', 1);
        $s->refused(sub { $dry->() }, qr/OOM/, "out of memory, sale there: $there");
        $redis->config('SET', 'maxmemory', 0);
        $redis->replicaof('127.0.0.1', $s->t->port);
        $s->refused(sub { $dry->() }, qr/READONLY/, "a replica, sale there: $there");
        $redis->replicaof('NO', 'ONE');
        next if $redis->info->{redis_version} =~ /^6/;
        $redis->acl('SETUSER', 'less', 'on', '>word', '~*', '+@all', '-xgroup|create');
        local $s->{client} = $s->connect_as('less', 'word');
        $s->refused(sub { $dry->() }, qr/NOPERM/, "without a right, sale there: $there", $redis);
    }
};

subtest 'arguments' => sub {
    my @no_number = ('', 'abc', '-1', '+1', '1.0', '1e3', '0x1', '01', ' 1', "1\n", 'nan', 'inf', '1' x 16);
    my %bad = (
        late         => ['', '2', 'yes', '00'],
        product_id   => ['', '0', '01', '-1', 'abc', '18446744073709551616', '1' x 21],
        price        => ['', '9.9', '9.900', '.90', '-9.90', '9,90', '1e2', 'x', "9.90\n"],
        stock_limit  => \@no_number,
        start_ms     => [@no_number, $sale{end_ms}, $sale{end_ms} + 1],
        end_ms       => [@no_number, $sale{start_ms}, 0],
        max_quantity => [@no_number, 0],
        eligible     => ['', '2', 'true'],
        epoch        => [@no_number, 0],
    );

    for my $there (0, 1) {
        $redis->flushdb;
        preheat() if $there;
        for my $name (@order) {
            for my $value (@{ $bad{$name} }) {
                $s->refused(sub { preheat($name => $value) }, qr/SECKILL/, "$name \"$value\"");
            }
        }
    }

    my @keys = ($facts, $stock, $buyers, $orders);
    for my $n (0 .. 8, 10) {
        $s->refused(sub { $s->call('preheat', \@keys, (argv(), 1)[0 .. $n - 1]) },
            qr/SECKILL preheat takes/, "$n arguments");
    }
    for my $n (0 .. 3, 6) {
        $s->refused(sub { $s->call('preheat', [(@keys, "$stock-5", "$stock-6")[0 .. $n - 1]], argv()) },
            qr/SECKILL preheat takes/, "$n keys");
    }
    is(preheat(price => '10'), 'updated 1 2 100', 'a whole price is an amount');
};

subtest 'Redis refuses' => sub {
    for my $there (0, 1) {
        $redis->flushdb;
        preheat() if $there;
        $redis->config('SET', 'maxmemory', 1);
        $s->refused(sub { preheat(price => '2.00') }, qr/OOM/, "out of memory, sale there: $there");
        $redis->config('SET', 'maxmemory', 0);

        $redis->replicaof('127.0.0.1', $s->t->port);
        $s->refused(sub { preheat(price => '2.00') }, qr/READONLY/, "a replica, sale there: $there");
        $redis->replicaof('NO', 'ONE');
    }
};

subtest 'several at once' => sub {
    my ($clients, $rounds) = (4, 25);

    for my $id (1 .. $rounds) {
        $redis->del(ScriptTest::keys_of('admit', $id));
    }
    my @readers;
    for my $client (1 .. $clients) {
        pipe my $reader, my $writer or die "pipe: $!";
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            local $s->{client} = $s->connect_as;
            for my $id (1 .. $rounds) {
                my $reply = $s->call('preheat', [ScriptTest::keys_of('preheat', $id)], argv());
                print {$writer} "$id $reply->[0] $reply->[2]\n";
            }
            close $writer;
            POSIX::_exit(0);
        }
        close $writer;
        push @readers, [$pid, $reader];
    }
    my %said;
    for my $child (@readers) {
        my ($pid, $reader) = @{$child};
        /^(\d+) (.*)$/ and push @{ $said{$1} }, $2 while <$reader>;
        waitpid $pid, 0;
    }

    my $wanted = join ', ', 'created 1', ('unchanged 1') x ($clients - 1);
    my @wrong  = grep { join(', ', sort @{ $said{$_} // [] }) ne $wanted } 1 .. $rounds;
    is_deeply(\@wrong, [], "of $clients at once one creates, the others find it so");
};

subtest 'from preheat to the purchase' => sub {
    $redis->flushdb;
    preheat(start_ms => $s->now_ms + 500, stock_limit => 3, max_quantity => 2);
    is($s->verdicts(1, 1), '4', 'not started');
    select undef, undef, undef, 0.55;
    my $reply = $s->buy(1, [1, 2], 2, 3);
    is("$reply->{verdicts} $reply->{epoch} $reply->{rev} $reply->{seq}", '113 1 1 2', 'sells');

    my ($stream) = @{ $redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'COUNT', 10, 'STREAMS', $orders, '>') };
    is(scalar @{ $stream->[1] }, 2, 'the group gets what was sold before its first reader came');
};

done_testing();
