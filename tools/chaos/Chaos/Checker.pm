package Chaos::Checker;

# The judge: what the buyers were told (their journal), what Redis and MySQL
# hold in the end, what the logs say.  Each rule belongs to a promise and names
# every user on the wrong side of it.  It changes nothing.
#
# A round in which Redis may lose what it had accepted has loss => { from, to }
# in epoch milliseconds: purchases of that stretch, and only they, may be gone,
# and only if that was noticed.

use strict;
use warnings;

use Chaos::Crowd;
use Chaos::Facts;

use constant {
    CLOCK_MS  => 5,         # two clocks of one machine, rounding included
    ANSWER_MS => 1000,      # P4
};

my @rules = (
    [ 'P1 limit'        => \&_limit ],
    [ 'P1 once'         => \&_once ],
    [ 'P1 sold'         => \&_sold ],
    [ 'P1 identity'     => \&_identity ],
    [ 'P2 lost'         => \&_lost ],
    [ 'P2 twice'        => \&_twice ],
    [ 'P2 dead'         => \&_dead ],
    [ 'P2 left'         => \&_left ],
    [ 'P2 record'       => \&_record ],
    [ 'P2 result'       => \&_result ],
    [ 'P2 phantom'      => \&_phantom ],
    [ 'P2 promise'      => \&_promise ],
    [ 'P2 status'       => \&_status ],
    [ 'P2 seq'          => \&_seq ],
    [ 'P3 token'        => \&_token ],
    [ 'P3 truth'        => \&_truth ],
    [ 'P3 no record'    => \&_no_record ],
    [ 'P4 slow'         => \&_slow ],
    [ 'P5 sold out'     => \&_sold_out ],
    [ 'P5 window'       => \&_window ],
    [ 'P5 repeat'       => \&_repeat ],
    [ 'P5 not taken'    => \&_not_taken ],
    [ 'P5 answer'       => \&_answer ],
    [ 'P6 log'          => \&_log ],
    [ 'P7 backward'     => \&_backward ],
    [ 'units'           => \&_units ],
    [ 'buyers'          => \&_buyers ],
    [ 'goods'           => \&_goods ],
    [ 'returned'        => \&_returned ],
);

# round: limit (units), goods (products.stock before), price and product (as
# promised), journal (paths), loss, detected, window (a time of another clock),
# margin_ms, log (lines).  Returns a list of { rule, user, text }.
sub check {
    my ($round, $facts) = @_;

    my $case = _case($round, $facts);
    my @found;
    for my $rule (@rules) {
        my ($name, $code) = @{$rule};
        $code->($case, sub {
            my ($user, $text) = @_;
            push @found, { rule => $name, user => $user, text => $text };
        });
    }
    return @found;
}

# every rule by its name
sub rules { return map { $_->[0] } @rules }

# the journal by user, in order of sending, and the facts by user
sub _case {
    my ($round, $facts) = @_;

    my %case = (round => $round, facts => $facts, users => {}, orders => {}, dead => {}, queued => {});
    for my $path (@{ $round->{journal} }) {
        Chaos::Crowd::each_line($path, sub { push @{ $case{users}{ $_[0]{user} } }, $_[0] });
    }
    for my $user (keys %{ $case{users} }) {
        @{ $case{users}{$user} } = sort { $a->{sent} <=> $b->{sent} } @{ $case{users}{$user} };
    }
    for my $order (@{ $facts->{orders} }) {
        push @{ $case{orders}{ $order->{user_id} } }, $order;
        $order->{ms} = Chaos::Facts::order_ms($order->{order_no});
    }
    for my $list (qw(dead unread pending)) {
        for my $entry (@{ $facts->{$list} }) {
            my $by = $list eq 'dead' ? 'dead' : 'queued';
            push @{ $case{$by}{ $entry->{user} // '?' } }, $entry;
        }
    }
    return \%case;
}

# The answers of all users, and one user's.
sub _answers {
    my ($case, $code) = @_;
    for my $user (sort { $a <=> $b } keys %{ $case->{users} }) {
        $code->($user, $_) for @{ $case->{users}{$user} };
    }
    return;
}

sub _sum {
    my ($key, @rows) = @_;
    my $sum = 0;
    $sum += $_->{$key} // 0 for @rows;
    return $sum;
}

# the promises of a buyer whom nobody may forget
sub _acknowledged { return $_[0]{state} =~ /^(?:accepted|queueing|success)$/ }

# --- P1

sub _limit {
    my ($case, $say) = @_;

    my $units = _sum(quantity => @{ $case->{facts}{orders} });
    my $limit = $case->{facts}{row}{stock_limit};
    $say->('-', "$units units ordered, stock_limit is $limit") if $units > $limit;
    return;
}

sub _once {
    my ($case, $say) = @_;
    for my $user (sort keys %{ $case->{orders} }) {
        my $n = @{ $case->{orders}{$user} };
        $say->($user, "$n orders") if $n > 1;
    }
    return;
}

sub _sold {
    my ($case, $say) = @_;

    my $units = _sum(quantity => @{ $case->{facts}{orders} });
    my $sold  = $case->{facts}{row}{sold};
    $say->('-', "seckill_activities.sold is $sold, orders hold $units units") if $units != $sold;
    return;
}

sub _identity {
    my ($case, $say) = @_;

    my (%seq, %number);
    for my $order (@{ $case->{facts}{orders} }) {
        $say->($order->{user_id}, "epoch $order->{epoch} seq $order->{seq} is also the purchase of $_")
            for grep {defined} $seq{"$order->{epoch} $order->{seq}"};
        $say->($order->{user_id}, "order_no $order->{order_no} is also that of $_")
            for grep {defined} $number{ $order->{order_no} };
        $seq{"$order->{epoch} $order->{seq}"} = $number{ $order->{order_no} } = $order->{user_id};
    }
    return;
}

# --- P2

sub _lost {
    my ($case, $say) = @_;

    my $loss = $case->{round}{loss};
    my $gone = 0;
    for my $user (sort { $a <=> $b } keys %{ $case->{users} }) {
        my ($first) = grep { _acknowledged($_) } @{ $case->{users}{$user} };
        next if !$first || $case->{orders}{$user} || $case->{dead}{$user} || $case->{queued}{$user};
        my $what = sprintf 'heard %s (%d) at %.0f, has neither order nor dead letter',
            $first->{state}, $first->{code}, $first->{received};
        if (!$loss) {
            $say->($user, $what);
        } elsif ($first->{received} < $loss->{from} || $first->{sent} > $loss->{to}) {
            $say->($user, "$what; Redis lost only $loss->{from} to $loss->{to}");
        } else {
            $gone++;
            $say->($user, "$what, and restore did not name this user")
                if $loss->{listed} && !$loss->{listed}{$user};
        }
    }
    $case->{gone} = $gone;
    $say->('-', "$gone accepted purchases are gone and nobody noticed")
        if $gone && !$case->{round}{detected};
    return;
}

sub _twice {
    my ($case, $say) = @_;

    for my $user (sort keys %{ $case->{orders} }) {
        $say->($user, 'has an order and a dead letter') if $case->{dead}{$user} && !$case->{round}{loss};
        $say->($user, 'has an order and is still queued') if $case->{queued}{$user};
    }
    return if $case->{round}{loss};
    for my $user (sort { $a <=> $b } keys %{ $case->{users} }) {
        my $n = grep { $_->{state} eq 'accepted' } @{ $case->{users}{$user} };
        $say->($user, "was accepted $n times") if $n > 1;
    }
    return;
}

# an outage is no reason for a dead letter
sub _dead {
    my ($case, $say) = @_;

    return if $case->{round}{loss};
    for my $letter (@{ $case->{facts}{dead} }) {
        $say->($letter->{user} // '?', 'dead letter: ' . ($letter->{reason} // '') . ', '
            . ($letter->{first_error} // $letter->{error} // ''));
    }
    return;
}

sub _left {
    my ($case, $say) = @_;
    for my $list (qw(unread pending)) {
        my @entries = @{ $case->{facts}{$list} };
        $say->($_->{user} // '?', "entry $_->{id} is still $list") for @entries;
    }
    return;
}

sub _record {
    my ($case, $say) = @_;

    my $records = $case->{facts}{records};
    for my $user (sort keys %{ $case->{orders} }) {
        my $status = $records->{$user} // 'missing';
        $say->($user, "has an order, record is $status") if $status ne '1';
    }
    for my $user (sort grep { !$case->{orders}{$_} } keys %{$records}) {
        my $status = $records->{$user};
        $say->($user, "has no order, record is $status") if $status == 1 || !$case->{dead}{$user};
    }
    return;
}

sub _result {
    my ($case, $say) = @_;

    for my $user (sort keys %{ $case->{orders} }) {
        my ($order) = @{ $case->{orders}{$user} };
        my $result  = $case->{facts}{results}{$user} // 'missing';
        next if $result =~ /"success":true,"order_id":$order->{id},"order_no":"$order->{order_no}"/;
        next if $case->{round}{loss} && $result eq 'missing';
        $say->($user, "has order $order->{order_no}, the result is $result");
    }
    return;
}

sub _phantom {
    my ($case, $say) = @_;
    for my $user (sort keys %{ $case->{orders} }) {
        $say->($user, 'has an order and never bought')
            if !grep { $_->{kind} eq 'buy' } @{ $case->{users}{$user} // [] };
    }
    return;
}

# The order is what its buyer asked for, at the price that was promised.
sub _promise {
    my ($case, $say) = @_;

    my ($price, $product) = @{ $case->{round} }{qw(price product)};
    for my $order (@{ $case->{facts}{orders} }) {
        my $user  = $order->{user_id};
        my ($buy) = grep { $_->{kind} eq 'buy' } @{ $case->{users}{$user} // [] };
        next if !$buy;          # a phantom, which has a rule of its own
        $say->($user, "asked for $buy->{quantity} units, the order has $order->{quantity}")
            if $order->{quantity} != $buy->{quantity};
        utf8::encode(my $ext = $order->{ext});
        $say->($user, "the order's ext is \"$ext\"") if $ext ne Chaos::Crowd::ext($user);
        my $posts = grep { $_->{kind} eq 'buy' } @{ $case->{users}{$user} };
        $say->($user, "the order's request_id is \"$order->{request_id}\"")
            if !grep { $order->{request_id} eq Chaos::Crowd::request_id($user, $_) } 1 .. $posts;
        $say->($user, "was promised $price, the order's price is $order->{seckill_price}")
            if defined $price && $order->{seckill_price} != $price;
        $say->($user, "was promised product $product, the order has $order->{product_id}")
            if defined $product && $order->{product_id} != $product;
    }
    return;
}

# Nobody pays here, and no order is old enough to be cancelled.
sub _status {
    my ($case, $say) = @_;

    for my $order (@{ $case->{facts}{orders} }) {
        $say->($order->{user_id}, "the order's status is $order->{status}, it was neither paid nor late")
            if $order->{status} != 1;
    }
    return;
}

# No order has a number that Redis never gave, and MySQL remembers the largest one.
sub _seq {
    my ($case, $say) = @_;

    my ($live, $row) = @{ $case->{facts} }{qw(live row)};
    my $largest = 0;
    for my $order (grep { $_->{epoch} == $row->{epoch} } @{ $case->{facts}{orders} }) {
        $largest = $order->{seq} if $order->{seq} > $largest;
        $say->($order->{user_id}, "epoch $order->{epoch} seq $order->{seq}: Redis gave only $live->{seq}")
            if $live->{epoch} == $row->{epoch} && $order->{seq} > $live->{seq};
    }
    $say->('-', "seq_seen is $row->{seq_seen}, an order has seq $largest") if $row->{seq_seen} < $largest;
    for my $order (@{ $case->{facts}{orders} }) {
        $say->($order->{user_id}, "the order is of epoch $order->{epoch}, MySQL knows $row->{epoch}")
            if $order->{epoch} > $row->{epoch};
    }
    return;
}

# --- P3

sub _token {
    my ($case, $say) = @_;

    my %owner;
    for my $user (sort { $a <=> $b } keys %{ $case->{users} }) {
        my %tokens = map { $_->{token} => 1 } grep { $_->{token} ne '-' } @{ $case->{users}{$user} };
        $say->($user, 'got ' . keys(%tokens) . ' different queue tokens') if keys %tokens > 1;
        for my $token (keys %tokens) {
            $say->($user, "has the queue token of $owner{$token}") if $owner{$token};
            $owner{$token} = $user;
        }
    }
    return;
}

# what the last question found, after all was quiet
sub _truth {
    my ($case, $say) = @_;

    for my $user (sort { $a <=> $b } keys %{ $case->{users} }) {
        my ($last) = reverse grep { $_->{kind} eq 'audit' } @{ $case->{users}{$user} };
        next if !$last;
        my ($order) = @{ $case->{orders}{$user} // [] };
        my $truth = $order ? "success $order->{order_no}" : $case->{dead}{$user} ? 'failed -' : 'nobody';
        my $said  = $last->{code} == 40_006 ? 'nobody' : "$last->{state} $last->{order_no}";
        $said = "$said ($last->{outcome}, code $last->{code})" if $last->{http} != 200;
        $say->($user, "is $truth, and was told \"$said\"") if $said ne $truth;
    }
    return;
}

# "no purchase found" to somebody who had bought
sub _no_record {
    my ($case, $say) = @_;

    return if $case->{round}{loss};
    for my $user (sort { $a <=> $b } keys %{ $case->{users} }) {
        my $bought = _bought_ms($case, $user) // next;
        for my $answer (grep { $_->{code} == 40_006 } @{ $case->{users}{$user} }) {
            $say->($user, sprintf 'was told "no purchase" %.0f ms after it',
                $answer->{sent} - $bought) if $answer->{sent} > $bought + CLOCK_MS;
        }
    }
    return;
}

# when the purchase was made at the latest: by the order, or by the first yes
sub _bought_ms {
    my ($case, $user) = @_;

    my @times = map { $_->{received} } grep { _acknowledged($_) } @{ $case->{users}{$user} // [] };
    for my $owned (map { @{ $case->{$_}{$user} // [] } } qw(orders dead queued)) {
        push @times, $owned->{ms} // $owned->{accepted_ms} // ();
    }
    @times = sort { $a <=> $b } @times;
    return $times[0];
}

# --- P4

sub _slow {
    my ($case, $say) = @_;

    my $margin = $case->{round}{margin_ms} // 1000;
    _answers($case, sub {
        my ($user, $answer) = @_;
        return if $answer->{outcome} !~ /^(?:answered|timeout)$/;
        my $ms = $answer->{received} - $answer->{sent} - $answer->{lag};
        $say->($user, sprintf '%s %s after %.0f ms', $answer->{kind}, $answer->{outcome}, $ms)
            if $ms > ANSWER_MS + $margin;
    });
    return;
}

# --- P5

# No unit was left for this request, then nobody after it got as many.
sub _sold_out {
    my ($case, $say) = @_;

    my $round = $case->{round};
    return if $round->{loss};
    my @by_time = sort { $b->[0] <=> $a->[0] } map { [ $_->{ms} // $_->{accepted_ms} // 0, $_->{quantity} // 0 ] }
        @{ $case->{facts}{orders} }, map { @{$_} } values %{ $case->{dead} }, values %{ $case->{queued} };

    _answers($case, sub {
        my ($user, $answer) = @_;
        return if $answer->{code} != 40_005;
        my $after = $case->{facts}{left};
        for my $sold (@by_time) {
            last if $sold->[0] <= $answer->{received} + CLOCK_MS;
            $after += $sold->[1];
        }
        $say->($user, sprintf 'was told "sold out" at %.0f, %d units were left', $answer->{received}, $after)
            if $after >= $answer->{quantity};
    });
    return;
}

sub _window {
    my ($case, $say) = @_;

    # the time in which Redis' clock, which alone decides, was another one
    my $stepped = $case->{round}{window} // { from => 0, to => 0 };
    _answers($case, sub {
        my ($user, $answer) = @_;
        return if $answer->{received} >= $stepped->{from} && $answer->{sent} <= $stepped->{to};
        $say->($user, "was told $answer->{code} inside the window")
            if $answer->{code} =~ /^4000[127]$/;
    });
    return;
}

sub _repeat {
    my ($case, $say) = @_;

    return if $case->{round}{loss};
    _answers($case, sub {
        my ($user, $answer) = @_;
        return if $answer->{code} != 40_004;
        my $bought = _bought_ms($case, $user);
        my $owns   = $case->{orders}{$user} || $case->{dead}{$user} || $case->{queued}{$user};
        $say->($user, 'was told "already taken part" and did not') if !$owns;
        $say->($user, 'was told "already taken part" before it did')
            if $owns && $bought > $answer->{received} + CLOCK_MS;
    });
    return;
}

# every word was "nothing was taken", and something was
sub _not_taken {
    my ($case, $say) = @_;

    for my $user (sort keys %{ $case->{orders} }, keys %{ $case->{dead} }) {
        my @buys = grep { $_->{kind} eq 'buy' } @{ $case->{users}{$user} // [] };
        my @open = grep { $_->{outcome} !~ /^(?:answered|refused)$/ || _acknowledged($_)
                          || $_->{state} eq 'failed' || $_->{code} == 50_301 } @buys;
        $say->($user, 'bought, and every post was told that nothing was taken: '
            . join ' ', map { $_->{outcome} eq 'answered' ? $_->{code} : $_->{outcome} } @buys) if @buys && !@open;
    }
    return;
}

my %known = map { $_ => 1 } 0 .. 2, 40_001 .. 40_007, 50_301 .. 50_303;

sub _answer {
    my ($case, $say) = @_;
    _answers($case, sub {
        my ($user, $answer) = @_;
        return if $answer->{outcome} ne 'answered';
        my $http = $answer->{code} >= 50_000 ? 503 : 200;
        $say->($user, "$answer->{kind}: HTTP $answer->{http}, code $answer->{code}")
            if !$known{ $answer->{code} } || $answer->{http} != $http;
    });
    return;
}

# --- P6 and P7

sub _log {
    my ($case, $say) = @_;
    $say->('-', $_) for @{ $case->{round}{log} // [] };
    return;
}

# A later question never hears less than an earlier one was told.
sub _backward {
    my ($case, $say) = @_;

    my $loss = $case->{round}{loss};
    for my $user (sort { $a <=> $b } keys %{ $case->{users} }) {
        my @answers = grep { $_->{outcome} eq 'answered' } @{ $case->{users}{$user} };
        my $final;
        for my $answer (sort { $a->{received} <=> $b->{received} } @answers) {
            if ($answer->{state} =~ /^(?:success|failed)$/) {
                $final //= $answer;
            }
        }
        next if !$final;
        for my $answer (@answers) {
            next if $answer->{sent} <= $final->{received} || $answer->{code} >= 50_000;
            next if $answer->{state} eq $final->{state}
                && ($answer->{order_no} eq $final->{order_no} || $answer->{order_no} eq '-');
            # a Redis that forgot says so until it is restored
            next if $loss && $final->{received} < $loss->{until} && $answer->{sent} < $loss->{until};
            $say->($user, sprintf 'heard %s %s, and %.0f ms later code %d %s %s', $final->{state},
                $final->{order_no}, $answer->{sent} - $final->{received}, $answer->{code},
                $answer->{state}, $answer->{order_no});
        }
    }
    return;
}

# --- units

sub _units {
    my ($case, $say) = @_;

    my $facts = $case->{facts};
    my %units = (
        remaining => $facts->{left} // 0,
        orders    => _sum(quantity => @{ $facts->{orders} }),
        unread    => _sum(quantity => @{ $facts->{unread} }),
        pending   => _sum(quantity => @{ $facts->{pending} }),
        dead      => _sum(quantity => @{ $facts->{dead} }),
        released  => _sum(units => grep { $_->{kind} eq 'release' } @{ $facts->{ledger} }),
        extra     => _sum(units => grep { $_->{kind} eq 'extra' && $_->{epoch} == $facts->{live}{epoch} }
                                        @{ $facts->{ledger} }),
    );
    my $sum = 0;
    $sum += $_ for values %units;
    my $limit = $facts->{row}{stock_limit};
    return if $sum == $limit;
    # what a lossy Redis forgot of its own is missing from no shelf: MySQL has it
    return if $case->{round}{loss} && $case->{round}{loss}{unrestored};
    $say->('-', "$limit units are " . join(' + ', map {"$units{$_} $_"} sort keys %units) . " = $sum");
    return;
}

# order_users is exactly the buyers
sub _buyers {
    my ($case, $say) = @_;

    return if $case->{round}{loss} && $case->{round}{loss}{unrestored};
    my %owns = map { $_ => 1 } map { keys %{ $case->{$_} } } qw(orders dead queued);
    my $set  = $case->{facts}{buyers};
    my %released = map { $_->{ref} =~ /^user:(\d+)/ ? ($1 => 1) : () } @{ $case->{facts}{ledger} };

    for my $user (sort { $a <=> $b } keys %owns) {
        $say->($user, 'bought, and is not in order_users') if !$set->{$user};
    }
    for my $user (sort { $a <=> $b } keys %{$set}) {
        $say->($user, 'is in order_users, and bought nothing') if !$owns{$user} && !$released{$user};
    }
    return;
}

sub _goods {
    my ($case, $say) = @_;

    my $goods = $case->{round}{goods} // return;
    my $now   = $case->{facts}{product_stock};
    my $moved = _sum(units => grep { $_->{kind} !~ /^(?:release|surplus|extra|cancel)$/
                                     || ($_->{target} // '') eq 'product' } @{ $case->{facts}{ledger} });
    $say->('-', "products.stock is $now, $goods and the ledger's $moved were expected") if $goods + $moved != $now;
    return;
}

# What the activity says it gave back is what the ledger says.
sub _returned {
    my ($case, $say) = @_;

    my $booked = _sum(units => grep { $_->{kind} eq 'settle'
                                      || ($_->{target} // '') eq 'product' } @{ $case->{facts}{ledger} });
    my $row = $case->{facts}{row};
    $say->('-', "returned is $row->{returned}, the ledger gave back $booked") if $row->{returned} != $booked;
    return;
}

1;
