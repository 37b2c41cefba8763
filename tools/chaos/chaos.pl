#!/usr/bin/perl
#
# Sales under faults, and a judge of what came out of them.
#
#   tools/chaos/chaos.pl [--rounds N] [--seed S] [--users N] [--span SECONDS]
#                        [--fault NAME[,NAME]] [--only ROUND] [--report FILE] [--list]
#
# A round is one sale: some thousand users come through nginx, one fault or a
# few at once hit the stack meanwhile and end, the queue runs dry, every user is
# asked once more, and the checker holds the buyers' journal against Redis and
# MySQL.  Each fault comes at least once before any comes twice.  What a round
# does follows from the seed and its number: --seed S --only N is that round again.
#
# Exit: 0 no violation, 1 some, 2 usage or the stack did not come up.

use strict;
use warnings;

use FindBin;
use lib "$FindBin::RealBin", "$FindBin::RealBin/../../t/lib";

use Getopt::Long;

# a mount of ours vanishes with us, however we end
BEGIN {
    if (!$^C && $> == 0 && !$ENV{CHAOS_UNSHARED} && system('unshare -m true 2>/dev/null') == 0) {
        local $ENV{CHAOS_UNSHARED} = 1;
        exec 'unshare', '-m', '--propagation', 'private', $^X, $0, @ARGV;
    }
}

use Chaos::Faults;
use Chaos::Report;
use Chaos::Round;
use Chaos::Stack;

my %option = (rounds => 0, seed => int(time) % 1_000_000, users => 1200,
              span => 2.5);
GetOptions(\%option, qw(rounds=i seed=i users=i span=f fault=s only=i report=s list))
    && !@ARGV or die "usage: chaos.pl [--rounds N] [--seed S] [--users N] [--span SECONDS]\n"
    . "                [--fault NAME[,NAME]] [--only ROUND] [--report FILE] [--list]\n";

if ($option{list}) {
    print "$_->{name}\n" for Chaos::Faults::all();
    exit 0;
}

$| = 1;
for my $name (qw(INT TERM HUP)) {
    $SIG{$name} = sub { print STDERR "chaos: SIG$name\n"; exit 2 };
}
my @faults = Chaos::Faults::all();
my $rounds = $option{rounds} || @faults;
my $stack  = eval { Chaos::Stack->new } or do { print STDERR "chaos: $@"; exit 2 };
my $report = Chaos::Report->new(seed => $option{seed}, users => $option{users});

for my $fault (@faults) {
    my $why = $fault->{needs} && $fault->{needs}->($stack) or next;
    $report->skipped($fault, $why);
    $fault->{skip} = 1;
}
@faults = grep { !$_->{skip} } @faults;

print "seed $option{seed}, $rounds rounds, $option{users} users each\n";
my @numbers = $option{only} ? $option{only} : 1 .. $rounds;
my $next    = make($numbers[0]);
for my $i (0 .. $#numbers) {
    my $round = $next;
    $next = $i < $#numbers ? make($numbers[ $i + 1 ]) : undef;
    $round->run;
    $report->add($round);
}

$stack->done;
$report->finish($option{report});
exit($report->violations ? 1 : 0);

# A round with its sale put up already: the daemon has found it when it begins.
sub make {
    my ($number) = @_;

    my $round = Chaos::Round->new(
        stack => $stack, number => $number, seed => $option{seed}, users => $option{users},
        span => $option{span},
        faults => $option{fault} ? [ map { Chaos::Faults::named($_) } split /,/, $option{fault} ]
                                 : choose($number));
    $round->prepare;
    return $round;
}

# The faults of a round: each once, in an order of the seed; then any, and
# sometimes two or three together.
sub choose {
    my ($number) = @_;

    srand $option{seed};
    my @order = sort { $a->[0] <=> $b->[0] } map { [ rand, $_ ] } @faults;
    return [ $order[ $number - 1 ][1] ] if $number <= @order;

    srand $option{seed} * 7919 + $number;
    my $want   = rand() < 0.6 ? 1 : rand() < 0.7 ? 2 : 3;
    my @chosen = ($faults[ rand @faults ]);
    for (1 .. 20) {
        last if @chosen >= $want;
        my $next = $faults[ rand @faults ];
        push @chosen, $next if !grep { !Chaos::Faults::mix($_, $next) } @chosen;
    }
    return \@chosen;
}
