package ScriptTest;

# Runs the scripts of lua/ on a private Redis: names the keys of an activity,
# puts a sale there without preheat.lua, and compares everything in Redis before
# and after a call that must change nothing.

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use Digest::SHA qw(sha1_hex);
use File::Basename qw(dirname);
use SeckillTest;
use Test::More ();

my $lua = abs_path(dirname(__FILE__) . '/../../lua');

# Returns a set with a Redis of its own; %conf are more lines of redis.conf.
sub new {
    my ($class, %conf) = @_;

    my $t     = SeckillTest->new;
    my $redis = $t->redis(%conf);

    return bless { t => $t, proc => $redis, client => $redis->{client} }, $class;
}

sub t      { return $_[0]{t} }
sub client { return $_[0]{client} }

# Returns a second connection, with the rights of a user when one is given.
sub connect_as {
    my ($self, $user, $password) = @_;

    my $client = $self->{t}->redis_client($self->{proc});
    $client->auth($user, $password) if defined $user;

    return $client;
}

# Returns the text of lua/NAME.lua.
sub text {
    my ($name) = @_;

    open my $fh, '<:raw', "$lua/$name.lua" or croak "cannot read $lua/$name.lua: $!";
    local $/ = undef;

    return scalar <$fh>;
}

# Name of a key: key('stock', 1), key('result:7', 1).
sub key {
    my ($name, $activity) = @_;
    return "seckill:$name:{$activity}";
}

# The keys that a script takes, in order.
sub keys_of {
    my ($script, $activity) = @_;

    my @names = qw(activity stock order_users orders);
    push @names, 'eligible' if $script eq 'admit';

    return map { key($_, $activity) } @names;
}

# Calls a script and returns its reply; dies with Redis' words on an error.
sub call {
    my ($self, $script, $keys, @argv) = @_;
    return $self->call_text(text($script), $keys, @argv);
}

# The same with the text of a script, and with another connection in {client}.
sub call_text {
    my ($self, $text, $keys, @argv) = @_;

    my @all   = (scalar @{$keys}, @{$keys}, @argv);
    my $reply = eval { $self->{client}->evalsha(sha1_hex($text), @all) };
    return $reply if !$@;
    die $@ if $@ !~ /NOSCRIPT/;

    return $self->{client}->eval($text, @all);
}

# Redis TIME in milliseconds.
sub now_ms {
    my ($self) = @_;

    my ($seconds, $micros) = $self->{client}->time;

    return $seconds * 1000 + int($micros / 1000);
}

# Puts a sale there: open since a minute, for an hour, unless told otherwise.
sub sale {
    my ($self, $activity, %sale) = @_;

    my $now   = $self->now_ms;
    my $stock = delete $sale{stock} // 10;
    my %facts = (
        product_id   => 5,
        price        => '9.90',
        stock_limit  => $stock,
        start_ms     => $now - 60_000,
        end_ms       => $now + 3_600_000,
        state        => 'open',
        max_quantity => 1,
        eligible     => 0,
        epoch        => 1,
        rev          => 1,
        seq          => 0,
        %sale,
    );

    my $redis = $self->{client};
    $redis->del(keys_of('admit', $activity));
    $redis->hset(key('activity', $activity), %facts);
    $redis->set(key('stock', $activity), $stock);
    $redis->xgroup('CREATE', key('orders', $activity), 'seckilld', '0', 'MKSTREAM');

    return \%facts;
}

# Buys: each purchase is a user, or [user, quantity, request_id, ext].  Returns
# the reply by name.
sub buy {
    my ($self, $activity, @purchases) = @_;
    return $self->buy_with(text('admit'), $activity, @purchases);
}

sub buy_with {
    my ($self, $text, $activity, @purchases) = @_;

    my @argv = map {
        my ($user, $quantity, $request_id, $ext) = ref $_ ? @{$_} : ($_);
        ($user, $quantity // 1, $request_id // "r-$user", $ext // '')
    } @purchases;

    my $reply = $self->call_text($text, [keys_of('admit', $activity)], $activity, scalar @purchases, 0, 0,
                                 @argv);
    croak 'admit: a reply of ' . scalar(@{$reply}) . ' parts' if @{$reply} != 6 && @{$reply} != 7;

    my %reply;
    @reply{qw(now_ms epoch rev seq left verdicts trouble)} = @{$reply};

    return \%reply;
}

sub verdicts { my ($self, @all) = @_; return $self->buy(@all)->{verdicts} }

# The entries of the stream, oldest first: { id => .., user => .., ... }.
sub entries {
    my ($self, $activity) = @_;

    return map { { id => $_->[0], @{ $_->[1] } } }
        @{ $self->{client}->xrange(key('orders', $activity), '-', '+') };
}

# Everything in Redis: key, expiry or none, content as Redis would dump it.
sub dump_all {
    my ($self, $redis) = @_;

    $redis //= $self->{client};

    return join "\n", map {
        join ' ', $_, $redis->pttl($_) < 0 ? 'stays' : 'expires', sha1_hex($redis->dump($_))
    } sort $redis->keys('*');
}

# One test: the code dies with these words and Redis is as it was.
sub refused {
    my ($self, $code, $words, $name, $watch) = @_;

    my $before = $self->dump_all($watch);
    my $ok     = eval { $code->(); 1 };
    my $error  = $ok ? 'no error' : $@;
    my $after  = $self->dump_all($watch);

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    my $passed = Test::More::ok($error =~ $words && $before eq $after, $name);
    Test::More::diag("error: $error") if $error !~ $words;
    Test::More::diag("before:\n$before\nafter:\n$after") if $before ne $after;

    return $passed;
}

1;
