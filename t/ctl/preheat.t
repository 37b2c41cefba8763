# preheat: once, whole, never into a running sale.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use CtlTest;
use Test::More;

# a server far from UTC: no zone of its own may reach a sale (C14)
my $c     = CtlTest->new(mariadb => { 'default-time-zone' => '+08:00' });
my $t     = $c->t;
my $redis = $c->redis;
my $ctl   = $t->build . '/seckillctl';

sub refused {
    my ($args, $like, $what, $code) = @_;

    my $before = $c->everything;
    my ($exit, $out, $err) = $c->ctl('preheat', @{$args});
    is($exit, $code // 4, "$what is refused");
    like($err, $like, '... with the reason');
    is($out, '', '... and nothing on stdout');
    is($c->everything, $before, '... and nothing is changed anywhere');
    return;
}

# created, then unchanged
{
    my $id = $c->activity(max_quantity => 2, by_registration => 1);
    my ($exit, $json, $err) = $c->ctl_json('preheat', $id);
    is($exit, 0, 'preheat works') or diag($err);
    is($json->{status}, 'created', '... and creates the sale');
    like($err, qr/registered users, and "seckill:eligible:\{$id\}" has none/,
        '... and warns that nobody is registered');

    my $facts = $c->facts($id);
    my ($start, $end) = $c->dbh->selectrow_array(
        'SELECT TIMESTAMPDIFF(SECOND, "1970-01-01", start_time) * 1000, '
            . 'TIMESTAMPDIFF(SECOND, "1970-01-01", end_time) * 1000 '
            . 'FROM seckill_activities WHERE id = ?', undef, $id);
    is_deeply($facts, {
            product_id => $id, price => '9.90', stock_limit => 100, start_ms => $start,
            end_ms => $end, state => 'open', max_quantity => 2, eligible => 1, epoch => 1,
            rev => 1, seq => 0, buyers_extra => 0,
        }, '... the facts are those of MySQL');
    is($c->stock($id), 100, '... the stock is the limit');
    is($redis->sismember('seckill:activities', $id), 1, '... it is registered');

    my %group = @{ ($redis->xinfo('GROUPS', "seckill:orders:{$id}"))[0] };
    is($group{name}, 'seckilld', '... the group is made with the stream');
    is($group{'last-delivered-id'}, '0-0', '... and begins at 0');

    my $token_key = $redis->hget('seckill:control', 'token_key');
    like($token_key, qr/\A[0-9a-f]{64}\z/, '... the key of the queue tokens is made');
    my $rev = $redis->hget('seckill:control', 'rev');
    cmp_ok($rev, '>', 1e12, '... and the nodes are told, by a rev above any that they remember');
    for my $key ($redis->keys("*{$id}*")) {
        is($redis->ttl($key), -1, "... $key does not expire");
    }

    is($c->products_stock($id), 900, '... MySQL reserved the units');
    is_deeply($c->ledger($id), [ "preheat reserve $id -100", "open redis $id 0" ],
        '... in the ledger');
    is($c->column('SELECT epoch FROM seckill_activities WHERE id = ?', $id), 1,
        '... and its epoch is 1');

    $redis->sadd("seckill:eligible:{$id}", 7);
    ($exit, $json, $err) = $c->ctl_json('preheat', $id);
    is($exit, 0, 'again is fine');
    is($json->{status}, 'unchanged', '... and changes nothing');
    is($err, '', '... without a warning now');
    is_deeply($c->facts($id), { %{$facts}, eligible_had => 1 },
        '... not the facts, but it is remembered that somebody is registered');
    is($c->products_stock($id), 900, '... no unit is reserved twice');
    is(scalar @{ $c->ledger($id) }, 2, '... nor written twice');
    is($redis->hget('seckill:control', 'token_key'), $token_key, '... the key stays');
    is($redis->hget('seckill:control', 'rev'), $rev + 1, '... the nodes are told again');
}

# two shells at the same moment (C4)
{
    my $id = $c->activity;
    my $one = "$ctl -c $c->{conf} preheat $id >/dev/null";
    my ($exit, undef, $err) = $t->run('sh', '-c',
        "$one & a=\$!; $one & b=\$!; $one & d=\$!; wait \$a && wait \$b && wait \$d");
    is($exit, 0, 'three at once all end well') or diag($err);
    is($c->products_stock($id), 900, '... units are reserved once');
    is($c->stock($id), 100, '... and put into Redis once');
    is(scalar @{ $c->ledger($id) }, 2, '... by one movement');
}

# before the start a change is carried over, by its difference
{
    my $id = $c->activity;
    my $other = $c->activity;
    $c->ctl('preheat', $id);

    my @steps = (
        [ 'stock_limit = 130, seckill_price = 8.50', 870, "preheat change-1 $id -30", 130 ],
        [ 'stock_limit = 20', 980, "preheat change-2 $id 110", 20 ],
        [ 'stock_limit = 0', 1000, "preheat change-3 $id 20", 0 ],
        [ 'stock_limit = 50', 950, "preheat change-4 $id -50", 50 ],
    );
    for my $step (@steps) {
        my ($set, $left, $line, $stock) = @{$step};
        $c->dbh->do("UPDATE seckill_activities SET $set WHERE id = $id");
        my ($exit, $json) = $c->ctl_json('preheat', $id);
        is($exit, 0, "a change before the start is taken: $set");
        is($json->{status}, 'updated', '... and said');
        is($c->products_stock($id), $left, '... its difference moves in products');
        is((grep {/^preheat/} @{ $c->ledger($id) })[-1], $line, '... through the ledger');
        is($c->stock($id), $stock, '... and Redis has the new stock');
    }
    is($c->facts($id)->{price}, '8.50', 'the price came along');
    is($c->facts($id)->{rev}, 5, 'each change raised rev');

    $c->dbh->do("UPDATE seckill_activities SET product_id = $other WHERE id = $id");
    my ($exit) = $c->ctl('preheat', $id);
    is($exit, 0, 'another product before the start is taken');
    is($c->products_stock($id), 1000, '... the old one has its units back');
    is($c->products_stock($other), 950, '... the new one gave them');
    is($c->facts($id)->{product_id}, $other, '... and Redis has it');
}

# too little stock
{
    my $id = $c->activity(products_stock => 99);
    refused([$id], qr/product $id has 99 units, activity $id needs 100 more/, 'too little stock');
    is_deeply($c->facts($id), {}, '... Redis knows nothing of it');
    is($c->column('SELECT epoch FROM seckill_activities WHERE id = ?', $id), 0,
        '... its epoch is 0 still');

    $c->dbh->do("UPDATE seckill_activities SET stock_limit = 99 WHERE id = $id");
    is(($c->ctl('preheat', $id))[0], 0, 'all the stock there is can be sold');
    is($c->products_stock($id), 0, '... to the last unit');

    $c->dbh->do("UPDATE seckill_activities SET product_id = 4711 WHERE id = $id");
    refused([$id], qr/product 4711, which is not in products/, 'an unknown product');
}

# a sale that has started (C4)
{
    my $id = $c->activity(start => -5);
    refused([$id], qr/start of activity $id \(.* UTC\) has passed; .*--late/, 'a late preheat');
    is(($c->ctl('preheat', $id, '--late'))[0], 0, '--late opens it');
    is($c->facts($id)->{state}, 'open', '... indeed');

    $redis->decrby("seckill:stock:{$id}", 6);
    $redis->sadd("seckill:order_users:{$id}", 1 .. 6);

    refused([$id], qr/has started \(.* UTC\): 94 units left, 6 buyers/, 'a started sale');
    refused([ $id, '--late' ], qr/has started/, 'a started sale, with --late');
    $c->dbh->do("UPDATE seckill_activities SET stock_limit = 500 WHERE id = $id");
    refused([$id], qr/has started/, 'a new limit after the start');
    is($c->stock($id), 94, 'the stock is what the sale left');

    # three shells at once (C4)
    my $before = $c->everything;
    my $one = "$ctl -c $c->{conf} preheat $id --late 2>/dev/null; echo \$?";
    my (undef, $codes) = $t->run('sh', '-c', "($one) & ($one) & ($one) & wait");
    is($codes, "4\n4\n4\n", 'three at once in a sale: each is refused');
    is($c->everything, $before, '... and nothing is changed');

    # the shop moves the start into the future: the sale has begun all the same
    $c->dbh->do('UPDATE seckill_activities SET start_time = DATE_ADD(UTC_TIMESTAMP(), '
            . "INTERVAL 600 SECOND) WHERE id = $id");
    refused([$id], qr/has started/, 'a start moved after the sale began');
}

# a buyer is a sale, whatever the clock says
{
    my $id = $c->activity;
    $c->ctl('preheat', $id);
    $redis->sadd("seckill:order_users:{$id}", 1);
    $c->dbh->do("UPDATE seckill_activities SET stock_limit = 500 WHERE id = $id");
    refused([$id], qr/has started \(.*\): 100 units left, 1 buyers/, 'a sale with a buyer');
}

# Redis lost it: selling again would be selling twice
{
    my $id = $c->activity(start => -5);
    $c->ctl('preheat', $id, '--late');
    $redis->del("seckill:activity:{$id}");
    refused([ $id, '--late' ], qr/has stock, buyers or purchases .* but not its facts/,
        'stock without facts');
    $redis->del("seckill:stock:{$id}", "seckill:orders:{$id}");
    refused([ $id, '--late' ], qr/was in Redis and may have sold/, 'a sale that Redis lost');

    my $sold = $c->activity;
    $c->ctl('preheat', $sold);
    $redis->del(map {"seckill:$_:{$sold}"} qw(activity stock orders));
    is(($c->ctl_json('preheat', $sold))[1]{status}, 'created',
        'lost before the start it is simply made again');
    is($c->products_stock($sold), 900, '... without reserving again');
    $redis->del(map {"seckill:$_:{$sold}"} qw(activity stock orders));
    $c->order($sold, 1);
    refused([$sold], qr/was in Redis and may have sold/, 'a lost sale with orders');

    my $old = $c->activity;
    $c->ctl('preheat', $old);
    $redis->hset("seckill:activity:{$old}", epoch => 3);
    refused([$old], qr/Redis holds epoch 3 .* MySQL epoch 1/, 'another generation in Redis');
}

# Redis must not evict (B10)
{
    my $id = $c->activity;
    $redis->config('SET', 'maxmemory-policy', 'allkeys-lru');
    refused([$id], qr/maxmemory-policy of Redis is allkeys-lru: .*--allow-eviction/,
        'an evicting Redis');
    is(($c->ctl('preheat', $id, '--allow-eviction'))[0], 0, '--allow-eviction allows it');
    $redis->config('SET', 'maxmemory-policy', 'noeviction');
}

# rights: where Redis does not tell, a warning; where it refuses half way, partly
sub conf_of_user {
    my ($name, @rules) = @_;
    $redis->acl('SETUSER', $name, 'on', ">$name-password", '~*', '&*', '+@all', @rules);
    my $file = $t->file("$name.password", "$name-password\n");
    return $t->conf(redis => $c->{redis}, mysql => $c->{mysql}, 'redis.user' => $name,
        'redis.password_file' => $file);
}

{
    my $id   = $c->activity;
    my $conf = conf_of_user('noconfig', '-config');
    $redis->config('SET', 'maxmemory-policy', 'volatile-ttl');
    my ($exit, undef, $err) = $t->ctl($conf, 'preheat', $id);
    is($exit, 4, 'without CONFIG the policy is found in INFO');
    like($err, qr/volatile-ttl/, '... and named');
    $redis->config('SET', 'maxmemory-policy', 'noeviction');

    $conf = conf_of_user('noinfo', '-config', '-info');
    ($exit, undef, $err) = $t->ctl($conf, 'preheat', $id);
    is($exit, 0, 'without either preheat works');
    like($err, qr/warning: Redis does not tell its maxmemory-policy/, '... with a warning');
}

# what Redis would refuse is found before the first write
for my $case ([ 'noscript', '-evalsha', 3600, [] ], [ 'latescript', '-evalsha', -5, ['--late'] ],
    [ 'noset', '-set', 3600, [] ], [ 'nogroup', '-xgroup|create', 3600, [] ])
{
    my ($name, $rule, $start, $late) = @{$case};
    my $id = $c->activity(start => $start);
    my $before = $c->everything;
    my ($exit, undef, $err) = $t->ctl(conf_of_user($name, $rule), 'preheat', $id, @{$late});
    is($exit, 4, "without the right $rule it is refused");
    like($err, qr/(?:NOPERM|can't run this command)/, '... with the reason');
    like($err, qr/nothing was changed/, '... and what was done: nothing');
    is($c->everything, $before, '... indeed');
    is(($c->ctl('preheat', $id, @{$late}))[0], 0, '... with it all is well');
}

{
    my $id = $c->activity;
    $redis->xgroup('CREATE', "seckill:orders:{$id}", 'other', 0, 'MKSTREAM');
    refused([$id], qr/is left over/, 'an empty stream without facts');
    $redis->del("seckill:orders:{$id}");
    $redis->set("seckill:stock:{$id}", 'many');
    refused([$id], qr/is left over/, 'a stock that is no number');

    my $damaged = $c->activity;
    $c->ctl('preheat', $damaged);
    $redis->hdel("seckill:activity:{$damaged}", 'seq');
    $c->dbh->do("UPDATE seckill_activities SET stock_limit = 110, seckill_price = 1 WHERE id = $damaged");
    refused([$damaged], qr/facts of the activity are missing or damaged/, 'facts without a seq');
}

# a break between MySQL and Redis, or within Redis, is healed by running it again
for my $case ([ 'nosadd', '-sadd', 3600, [] ], [ 'nohincrby', '-hincrby', 3600, [] ]) {
    my ($name, $rule, $start, $late) = @{$case};
    my $id = $c->activity(start => $start);
    my ($exit, undef, $err) = $t->ctl(conf_of_user($name, $rule), 'preheat', $id, @{$late});
    is($exit, 5, "broken off by $rule it is partly done");
    like($err, qr/(?:NOPERM|can't run this command).*run preheat again/s, '... with the reason and what to do');
    is($c->products_stock($id), 900, '... MySQL has reserved');

    ($exit, undef, $err) = $c->ctl_json('preheat', $id, @{$late});
    is($exit, 0, '... and running it again heals') or diag($err);
    is($c->products_stock($id), 900, '... nothing is reserved twice');
    is($c->stock($id), 100, '... and Redis has the stock');
    is_deeply($c->ledger($id), [ "preheat reserve $id -100", "open redis $id 0" ],
        '... one reservation, one opening');
}

# Redis dies at the worst moment: MySQL is committed, the script never ran
{
    my $id = $c->activity;
    $t->stop($c->{redis});
    my ($exit) = $c->ctl('preheat', $id);
    is($exit, 3, 'without Redis preheat is exit 3');
    is($c->products_stock($id), 1000, '... and MySQL did nothing');
    $t->restart($c->{redis});
    is(($c->ctl('preheat', $id))[0], 0, 'and with it again it works');
}

# what makes no sense
{
    refused([4711], qr/activity 4711 is not in seckill_activities/, 'an unknown activity', 1);
    refused([ $c->activity(start => -20, end => -10) ], qr/is over/, 'a sale that is over');
    refused([ $c->activity(start => -20, end => -10), '--late' ], qr/is over/,
        'a sale that is over, with --late');
    refused([ $c->activity(start => 20, end => 20) ], qr/ends before it starts/,
        'a sale without time');
    refused([ $c->activity(status => 2) ], qr/is over/, 'a sale that was settled');
    refused([ $c->activity(max_quantity => 0) ], qr/max_quantity 0/, 'no unit per purchase');
    refused([ $c->activity(stock_limit => 4_000_000_000, products_stock => 4_000_000_000) ],
        qr/stock_limit 4000000000 is above/, 'more units than the ledger can count');
}

# zones (C14)
{
    my $id = $c->activity(start => '2031-07-01 10:00:00', end => '2031-12-01 10:30:00');
    my $before = $c->everything;
    my ($exit, $out, $err) = $t->run('env', 'TZ=Europe/Berlin', $ctl, '-c', $c->{conf},
        'preheat', $id, '--dry-run');
    is($exit, 0, '--dry-run works') or diag($err);
    like($out, qr/would be created/, '... and tells what would happen');
    like($out, qr/products\.stock would be 900 \(-100\)/, '... in MySQL too');
    like($out, qr/start +2031-07-01 10:00:00 UTC, here 2031-07-01 12:00:00 \+0200 \(CEST\)/,
        '... the start in UTC and in the zone here, in summer');
    like($out, qr/end +2031-12-01 10:30:00 UTC, here 2031-12-01 11:30:00 \+0100 \(CET\)/,
        '... and the end in winter');
    like($out, qr/zone .* read as UTC/, '... and which zone MySQL was read in');
    is($c->everything, $before, '... and nothing is changed');

    ($exit, $out) = $t->run('env', 'TZ=Asia/Shanghai', $ctl, '-c', $c->{conf}, 'preheat', $id);
    like($out, qr/here 2031-07-01 18:00:00 \+0800 \(CST\)/, 'in Shanghai it is evening');
    is($c->facts($id)->{start_ms}, 1_940_666_400_000, '... and Redis has the same instant');
    is($c->facts($id)->{end_ms}, 1_953_887_400_000, '... of the end too');

    (undef, my $json) = $c->ctl_json('preheat', $id);
    is($json->{start_utc}, '2031-07-01 10:00:00 UTC', 'JSON names the zone');
    is($json->{start_ms}, 1_940_666_400_000, '... and has the instant');

    ($exit, $out) = $c->ctl('preheat', $id, '--dry-run');
    like($out, qr/would be unchanged/, '--dry-run foresees that nothing is to do');
    $c->dbh->do("UPDATE seckill_activities SET stock_limit = 5 WHERE id = $id");
    for (1 .. 2) {
        ($exit, $out) = $c->ctl('preheat', $id, '--dry-run');
        like($out, qr/would be updated.*would be 995 \(\+95\)/s, '--dry-run foresees a change');
    }
    is($c->stock($id), 100, '... and changes nothing, however often');
}

# prices pass as text (D10)
for my $price ('607013.31', '0.29', '17.08', '2.32', '99999999.99', '0.00') {
    my $id = $c->activity(seckill_price => $price, stock_limit => 0);
    is(($c->ctl('preheat', $id))[0], 0, "a sale at $price");
    is($c->facts($id)->{price}, $price, '... has that very price in Redis');
}

# no table, no sale
{
    my $id = $c->activity;
    $c->dbh->do('RENAME TABLE seckill_stock_log TO elsewhere');
    my ($exit, undef, $err) = $c->ctl('preheat', $id);
    is($exit, 4, 'a database without the ledger is refused');
    like($err, qr/seckill_stock_log.*schema apply/, '... with what to do');
    is_deeply($c->facts($id), {}, '... and Redis knows nothing');
}

done_testing();
