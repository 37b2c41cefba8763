package chart;

# A bar chart as SVG: CPU of nginx and Redis per request, by path and variant.

use strict;
use warnings;

use List::Util qw(max);

# pixels
my ($left, $top, $bar, $gap, $width, $legend) = (130, 58, 15, 12, 470, 60);

my %colours = (nginx => '#2f6f9f', redis => '#b8523f');

sub svg {
    my ($rows, $paths, $clients) = @_;
    my @bars = grep { $_->{clients} == $clients } @$rows;
    my $most = max(1, map { $_->{nginx_us} + $_->{redis_us} } @bars);
    my $scale = $width / $most;
    my ($y, @out) = ($top);

    for my $path (@$paths) {
        my @group = grep { $_->{path} eq $path } @bars or next;

        push @out, label($left - 50, $y + $bar * @group / 2 + 4, $path, 'end');
        for my $row (sort { $a->{variant} cmp $b->{variant} } @group) {
            push @out, bar($row, $y, $scale);
            $y += $bar;
        }
        $y += $gap;
    }

    my $height = $y + 10;
    my $total = $left + $width + $legend + 130;

    return join "\n",
        qq(<svg xmlns="http://www.w3.org/2000/svg" width="$total" height="$height")
            . qq( viewBox="0 0 $total $height" font-family="sans-serif" font-size="12">),
        qq(<rect width="$total" height="$height" fill="#ffffff"/>),
        label(16, 22, "CPU microseconds per request, $clients clients", 'start'),
        legend(),
        @out,
        "</svg>\n";
}

sub label {
    my ($x, $y, $text, $anchor) = @_;

    return qq(<text x="$x" y="$y" text-anchor="$anchor" fill="#222222">$text</text>);
}

sub legend {
    my ($x, @out) = (16);

    for my $who (qw(nginx redis)) {
        push @out, qq(<rect x="$x" y="32" width="12" height="12" fill="$colours{$who}"/>),
                   label($x + 18, 42, $who, 'start');
        $x += 80;
    }
    return @out;
}

sub bar {
    my ($row, $y, $scale) = @_;
    my $height = $bar - 3;
    my $x = $left;
    my @out = (label($left - 6, $y + $bar - 5, $row->{variant}, 'end'));

    for my $who (qw(nginx redis)) {
        my $size = sprintf '%.1f', $row->{"${who}_us"} * $scale;
        push @out, qq(<rect x="$x" y="$y" width="$size" height="$height" fill="$colours{$who}"/>);
        $x += $size;
    }
    push @out, label($x + 6, $y + $bar - 5,
                     sprintf('%.1f us, %d/s', $row->{nginx_us} + $row->{redis_us}, $row->{rate}),
                     'start');
    return @out;
}

1;
