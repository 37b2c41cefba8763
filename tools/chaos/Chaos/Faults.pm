package Chaos::Faults;

# Every fault by name.  A fault belongs to a party and is up to three steps:
#
#   begin  does it                    tick  is called ten times a second meanwhile
#   end    takes it back; the party works again when it returns
#
# hold: how long it lasts, seconds, at least and at most.  loss => 1: Redis may
# lose what it had accepted.  needs: code that says why it can't be done here.
# effect: code that is true when the fault was felt; what had no effect proves
# nothing.

use strict;
use warnings;

use Chaos::Faults::Clocks;
use Chaos::Faults::Keys;
use Chaos::Faults::Redis;
use Chaos::Faults::Mysql;
use Chaos::Faults::Processes;

# All faults as hashes, in a fixed order.
sub all {
    return (Chaos::Faults::Redis::faults(), Chaos::Faults::Mysql::faults(),
            Chaos::Faults::Processes::faults(), Chaos::Faults::Keys::faults(), Chaos::Faults::Clocks::faults());
}

sub named {
    my ($name) = @_;
    my ($fault) = grep { $_->{name} eq $name } all();
    return $fault // die "no fault is named \"$name\"; there are: @{[ map { $_->{name} } all() ]}\n";
}

# Whether two may run at the same time: not on one party, and no cut link to a
# server that is hit itself; losing data is a fault of its own.
sub mix {
    my ($one, $other) = @_;

    return 0 if $one->{loss} || $other->{loss};
    for my $party (split /-/, $one->{party}) {
        return 0 if grep { $_ eq $party } split /-/, $other->{party};
    }
    return 1;
}

1;
