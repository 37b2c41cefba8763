# lua/facts.lua and lua/control.lua: what is told of a sale, of one that is not
# whole, and of values that are too long.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin", "$FindBin::Bin/../lib";
use ScriptTest;
use Test::More;

my $s     = ScriptTest->new;
my $redis = $s->client;

my ($facts, $stock, $buyers, $orders, $eligible) = ScriptTest::keys_of('admit', 1);
my $control = 'seckill:control';
my @names   = qw(product_id price start_ms end_ms state max_quantity epoch rev seq limit limit_burst eligible
                 stock_limit buyers_extra eligible_had expire_ms restocked released);

# facts(user): the reply by name, the facts as a hash
sub facts {
    my (@user) = @_;

    my %told;
    @told{qw(status facts stock buyers member)} =
        @{ $s->call('facts', [ $facts, $stock, $buyers, $orders, $eligible ], @user) };
    my @values = @{ $told{facts} };
    $told{facts} = { map { $names[$_] => $values[$_] } 0 .. $#values };

    return \%told;
}

# what bought.lua says must be the same
sub status {
    my $told = facts();
    my $bought = $s->call('bought', [ $facts, $stock, $buyers, $orders, $eligible ], 7);
    is($bought->[0], $told->{status}, "bought.lua: $told->{status}") if $told->{status} ne 'stock' || !$redis->exists($stock);
    is_deeply([ @{$bought}[ 1 .. 3 ] ], [ map { $told->{facts}{$_} } qw(state epoch seq) ], '... of the same sale')
        if $bought->[0] !~ /^(?:none|damaged)$/;
    is($bought->[4], facts(7)->{member}, '... and buyer') if $bought->[0] ne 'damaged';
    return $told->{status};
}

sub sale {
    my (%sale) = @_;
    $redis->del($eligible);
    return $s->sale(1, %sale);
}

is(status(), 'none', 'no such sale');

my $sale = sale(stock => 10);
my $told = facts();
is($told->{status}, 'whole', 'a sale that has just been put there is whole, without an order_users');
is_deeply({ map { $_ => $told->{facts}{$_} } keys %{$sale} }, $sale, 'its facts');
is($told->{stock}, 10, 'its stock');
is("$told->{buyers} $told->{member}", '0 0', 'and no buyers');

$s->buy(1, 7, 8, 9);
$told = facts(8);
is("$told->{status} $told->{stock} $told->{buyers} $told->{member} $told->{facts}{seq}", 'whole 7 3 1 3', 'three bought');
is(facts('18446744073709551615')->{member}, 0, 'somebody else did not');

# --- facts that are gone are no sale that has not begun (F-D2)

$redis->rename($facts, 'away');
is(status(), 'damaged', 'F-D2: the facts are gone, the sale is not');
$redis->rename('away', $facts);

# --- not whole (F-D1)

$redis->hset($facts, buyers_extra => 0);
is(status(), 'whole', 'whole with buyers_extra');

$redis->rename($stock, 'away');
is(status(), 'stock', 'F-D1: no stock');
is(facts()->{stock}, undef, 'and none is told');
$redis->lpush($stock, 1);
is(status(), 'stock', 'a stock of another type');
$redis->rename('away', $stock);

$redis->rename($orders, 'away');
is(status(), 'orders', 'F-D1: no stream');
$redis->rename('away', $orders);
$redis->hset($facts, seq => 0, buyers_extra => 0);
$redis->rename($orders, 'away');
is(status(), 'orders', 'also when nobody bought yet: admit.lua says the same');
$redis->rename('away', $orders);
$redis->hset($facts, seq => 3);

$redis->srem($buyers, 7);
is(status(), 'order_users', 'F-D1: one buyer is missing');
$redis->hset($facts, buyers_extra => -1);
is(status(), 'whole', 'unless that is how it was: the extra may be negative');
$redis->hdel($facts, 'buyers_extra');
is(status(), 'whole', 'and without it nobody knows');
$redis->del($buyers);
is(status(), 'order_users', 'F-D1: but all are missing when somebody bought');
$redis->hset($facts, buyers_extra => -3);
is(status(), 'whole', 'an empty set is none, and there is nobody to miss');
$redis->set($buyers, 'x');
is(facts(7)->{member}, 0, 'nobody is in what is no set');
$redis->del($buyers);
$redis->hset($facts, buyers_extra => 2);
is(status(), 'order_users', 'more must be there than bought: after a restore');
$redis->sadd($buyers, 1 .. 6);
is(status(), 'whole', 'more than must be are no loss');

$redis->hset($facts, eligible => 1);
is(status(), 'whole', 'by registration, and nobody has registered yet');
$redis->hset($facts, eligible_had => 1);
is(status(), 'eligible', 'F-D1: those who had are gone');
$redis->sadd($eligible, 5);
is(status(), 'whole', 'and back');

# --- damaged, and too long (F-G3)

for my $bad ('x', '-1', '1e3', '9' x 16, '') {
    $redis->hset($facts, seq => $bad);
    is(status(), 'damaged', "F-G2: seq is \"$bad\"");
}
$redis->hset($facts, seq => 3, buyers_extra => 'many');
is(status(), 'damaged', 'F-G2: buyers_extra is no number');
$redis->hset($facts, buyers_extra => 'x' x 100);
is(status(), 'damaged', 'F-G3: buyers_extra is too long');
$redis->hset($facts, buyers_extra => 0);

my $long = 'x' x 5_000_000;
$redis->hset($facts, price => $long);
$told = facts();
is($told->{facts}{price}, 5_000_000, 'F-G3: of a long value its length');
is($told->{facts}{state}, 'open', 'and the others as they are');
$redis->hset($facts, price => '9.90', never_heard_of => $long);
ok(!exists facts()->{facts}{never_heard_of}, 'nor its name');
$redis->set($stock, $long);
is(facts()->{stock}, 65, 'F-G3: nor a long stock');
is(status(), 'whole', 'which is there');
$redis->del($facts);
$redis->hset($facts, map { $_ => $long } @names);
is(status(), 'damaged', 'F-G3: all are too long');
$redis->del($facts);
$redis->set($facts, $long);
is(status(), 'damaged', 'F-G3: not a hash');
is_deeply(facts()->{facts}, {}, 'and nothing of it is told');

# --- what it may not do

$s->refused(sub { $s->call('facts', [ $facts, $stock ]) }, qr/SECKILL facts takes/, 'too few keys');
$redis->del($facts);
sale(stock => 3);
my $before = $s->dump_all;
facts(7);
is($s->dump_all, $before, 'it writes nothing');
$redis->acl('SETUSER', 'half', 'on', '>half', '~seckill:*', '+evalsha', '+eval', '+type', '+hlen');
my $half = bless { client => $s->connect_as('half', 'half') }, 'ScriptTest';
$half->refused(sub { $half->call('facts', [ $facts, $stock, $buyers, $orders, $eligible ]) }, qr/NOPERM|can't run this command|permission/i,
               'a user without the rights hears so', $redis);

# --- control

sub control { return $s->call('control', [$control]) }

my ($what, $fields, $seconds) = @{ control() };
is($what, 'none', 'no control');
ok(abs($seconds - time) < 5, 'and the clock all the same');

$redis->hset($control, rev => 5, state => 'open', token_key => 'a' x 64, limit => '1r/s');
($what, $fields) = @{ control() };
is($what, 'fine', 'control');
is_deeply($fields, [ 5, 'open', 'a' x 64, undef, '1r/s', undef ], 'its fields');

$redis->hset($control, token_key => $long, token_key_prev => $long);
is_deeply(control()->[1], [ 5, 'open', 5_000_000, 5_000_000, '1r/s', undef ], 'F-G3: of long ones the lengths');
$redis->set($control, $long);
is(control()->[0], 'damaged', 'F-G3: not a hash');
$s->refused(sub { $s->call('control', []) }, qr/SECKILL control takes/, 'no key');

done_testing();
