package SeckillTest::Text;

# Files as text.

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(slurp tail);

sub slurp {
    my ($path) = @_;

    open my $fh, '<:raw', $path or return '';
    local $/ = undef;

    return scalar(<$fh>) // '';
}

sub tail {
    my ($path, $lines) = @_;

    my @all = split /\n/, slurp($path);
    splice @all, 0, @all - $lines if @all > $lines;

    return join "\n", @all;
}

1;
