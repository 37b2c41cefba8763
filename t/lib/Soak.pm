package Soak;

# How long and how much: a test that waits takes both numbers, the short one of
# "make test" and the literal one of the case in docs/cases.md, which "make soak"
# (SECKILL_SOAK=1) asks for.

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(soak soaking);

sub soaking { return $ENV{SECKILL_SOAK} ? 1 : 0 }

sub soak {
    my ($short, $literal) = @_;
    return soaking() ? $literal : $short;
}

1;
