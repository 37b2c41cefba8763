#!/usr/bin/env perl
#
# Medians, ratios, bench.json and the chart out of the runs of tools/bench/run.sh.
#
#   report.pl MACHINE ROWS BENCH_JSON BENCH_SVG
#
# A line of ROWS is one run; runs of one GROUP were made side by side:
#   http|durable GROUP VARIANT PATH CLIENTS RATE P50_MS P99_MS NGINX_US REDIS_US OTHER_CPU
#   orders GROUP VARIANT RATE DAEMON_US MARIADB_US REDIS_US

use strict;
use warnings;

use File::Basename qw(dirname);
use lib dirname(__FILE__);
use chart;

my @crowd_figures = qw(rate p50_ms p99_ms nginx_us redis_us other_cpu);
my @order_figures = qw(rate daemon_us mariadb_us redis_us);
my @path_order    = qw(floor accepted accepted_redis sold_out repeat limited bad_token);
my %decimals      = (rate => 0, p50_ms => 3, p99_ms => 3, other_cpu => 1);

@ARGV == 4 or die "usage: report.pl MACHINE ROWS BENCH_JSON BENCH_SVG\n";
my ($machine_file, $rows_file, $json_file, $svg_file) = @ARGV;

my @machine = read_machine($machine_file);
my @runs    = read_runs($rows_file);
my %rows    = medians(@runs);
my @ratios  = ratios(\@runs);

print_table(\%rows);
print_ratios(\@ratios);
write_file($json_file, json(\@machine, \%rows, \@ratios));
write_file($svg_file, chart::svg($rows{http} // [], \@path_order, 64));
exit 0;


sub read_machine {
    my ($name) = @_;

    open my $file, '<', $name or die "$name: $!\n";
    return map { chomp; [split / /, $_, 2] } <$file>;
}

sub median {
    my @sorted = sort { $a <=> $b } @_;
    my $half = int(@sorted / 2);

    return @sorted % 2 ? $sorted[$half] : ($sorted[$half - 1] + $sorted[$half]) / 2;
}

# Each run a hash; kind, group, variant, and path and clients of the crowd's.
sub read_runs {
    my ($name) = @_;
    my @runs;

    open my $file, '<', $name or die "$name: $!\n";
    while (<$file>) {
        my ($kind, @field) = split;
        my %run = (kind => $kind);

        if ($kind eq 'orders') {
            @run{ qw(group variant), @order_figures } = @field;
        } else {
            @run{ qw(group variant path clients), @crowd_figures } = @field;
        }
        push @runs, \%run;
    }
    return @runs;
}

# ( http => [row, ...], durable => [...], orders => [...] ); a row is like a run
sub medians {
    my @runs = @_;
    my (%like, @order, %rows);

    for my $run (@runs) {
        my $key = join ' ', map { $run->{$_} // '' } qw(kind variant path clients);
        push @order, $key unless $like{$key};
        push @{ $like{$key} }, $run;
    }
    for my $key (@order) {
        my @alike = @{ $like{$key} };
        my %row = (%{ $alike[0] }, runs => scalar @alike);

        for my $figure ($row{kind} eq 'orders' ? @order_figures : @crowd_figures) {
            $row{$figure} = median(map { $_->{$figure} } @alike);
        }
        push @{ $rows{ $row{kind} } }, \%row;
    }
    return %rows;
}

sub cpu { return $_[0]{nginx_us} + $_[0]{redis_us} }

sub rate { return $_[0]{rate} }

sub p99 { return $_[0]{p99_ms} }

# The median of what each run of ours was to the run of theirs beside it, or
# undef.  ours and theirs: what a run has to look like.
sub beside {
    my ($runs, $ours, $theirs, $figure) = @_;
    my $is = sub {
        my ($run, $look) = @_;
        return !grep { ($run->{$_} // '') ne $look->{$_} } keys %$look;
    };
    my %other = map { $_->{group} => $_ } grep { $is->($_, $theirs) } @$runs;
    my @ratio;

    for my $run (grep { $is->($_, $ours) } @$runs) {
        my $other = $other{ $run->{group} } or next;
        push @ratio, $figure->($run) / $figure->($other) if $figure->($other) > 0;
    }
    return @ratio ? median(@ratio) : undef;
}

# What we hold ourselves to.
sub ratios {
    my ($runs) = @_;
    my @found;

    my $hold = sub {
        my ($name, $ours, $theirs, $figure, $word, $target) = @_;
        my $ratio = beside($runs, $ours, $theirs, $figure) // return;
        my $met = $word eq 'at most' ? $ratio <= $target : $ratio >= $target;

        push @found, { name => $name, ratio => $ratio, word => $word, target => $target,
                       met => $met };
    };
    my $crowd = sub {
        my ($variant, $path, $clients) = @_;
        return { kind => 'http', variant => $variant, path => $path, clients => $clients // 64 };
    };
    my $floor = $crowd->('floor', 'floor');

    for (['accepted', 0.40, 2.2], ['accepted_redis', 0.50, 1.6]) {
        my ($path, $most, $least) = @$_;
        my @sides = map { $crowd->($_, $path) } qw(ours lua);

        $hold->("$path, CPU / Lua", @sides, \&cpu, 'at most', $most);
        $hold->("$path, rate / Lua", @sides, \&rate, 'at least', $least);
    }
    $hold->('accepted, CPU / floor', $crowd->('ours', 'accepted'), $floor, \&cpu, 'at most', 1.8);
    $hold->('accepted, p99 / Lua, 200 clients',
            (map { $crowd->($_, 'accepted', 200) } qw(ours lua)), \&p99, 'at most', 0.6);
    $hold->('sold_out, CPU / floor', $crowd->('ours', 'sold_out'), $floor, \&cpu, 'at most', 1.20);
    for my $path (qw(repeat limited bad_token)) {
        my @sides = map { $crowd->($_, $path) } qw(ours lua);

        $hold->("$path, CPU / floor", $sides[0], $floor, \&cpu, 'at most', 1.35);
        $hold->("$path, CPU / Lua", @sides, \&cpu, 'at most', 0.35);
    }
    $hold->('accepted, fsync always / everysec, rate',
            (map { { kind => 'durable', variant => $_, clients => 64 } } qw(always everysec)),
            \&rate, 'at least', 0.7);

    my %orders = map { $_ => { kind => 'orders', variant => $_ } } qw(ours rowlock floor);
    $hold->('orders, rate / row lock', @orders{qw(ours rowlock)}, \&rate, 'at least', 25);
    $hold->('orders, rate / floor', @orders{qw(ours floor)}, \&rate, 'at least', 0.6);
    return @found;
}

sub print_table {
    my ($rows) = @_;

    print "\n" . join(", ", map { "$_->[0] $_->[1]" } @machine) . "\n";
    print "\nMedians.  CPU in microseconds per request; other: CPU of the rest of the machine.\n\n";
    if ($rows->{http} || $rows->{durable}) {
        printf "%-9s %-15s %7s %9s %8s %8s %7s %7s %7s %6s %4s\n", qw(variant path clients
               rate/s p50_ms p99_ms nginx redis sum other runs);
    }
    for my $row (sorted($rows->{http}), @{ $rows->{durable} // [] }) {
        printf "%-9s %-15s %7d %9.0f %8.2f %8.2f %7.2f %7.2f %7.2f %5.1f%% %4d\n",
               @{$row}{qw(variant path clients rate p50_ms p99_ms nginx_us redis_us)}, cpu($row),
               @{$row}{qw(other_cpu runs)};
    }
    if ($rows->{orders}) {
        printf "\n%-9s %9s %9s %9s %9s %4s\n", qw(orders rate/s seckilld mariadb redis runs);
        printf "%-9s %9.0f %9.2f %9.2f %9.2f %4d\n",
               @{$_}{qw(variant rate daemon_us mariadb_us redis_us runs)}
            for @{ $rows->{orders} };
    }
}

# by path, clients, variant
sub sorted {
    my ($rows) = @_;
    my %place = map { $path_order[$_] => $_ } 0 .. $#path_order;

    return sort {
        $place{ $a->{path} } <=> $place{ $b->{path} }
        || $a->{clients} <=> $b->{clients}
        || $a->{variant} cmp $b->{variant}
    } @{ $rows // [] };
}

sub print_ratios {
    my ($ratios) = @_;

    print "\nRatios to the run beside it, median, at 64 clients unless said otherwise.\n\n" if @$ratios;
    for (@$ratios) {
        printf "%-42s %6.2f  %s %.2f  %s\n", @{$_}{qw(name ratio word target)},
               $_->{met} ? 'pass' : 'MISS';
    }
    print "\n";
}

sub text {
    my ($text) = @_;

    $text =~ s/([\\"])/\\$1/g;
    return qq("$text");
}

sub json_row {
    my ($row, @names) = @_;
    my @pairs;

    for my $name (@names) {
        my $value = $row->{$name};
        next if !defined $value;
        if ($name =~ /^(?:variant|path|name|word)$/) {
            $value = text($value);
        } elsif ($name =~ /^(?:clients|runs)$/) {
            $value += 0;
        } else {
            $value = sprintf '%.*f', $decimals{$name} // 2, $value;
        }
        push @pairs, qq("$name": $value);
    }
    return join ', ', @pairs;
}

sub json {
    my ($machine, $rows, $ratios) = @_;
    my @crowd = (qw(variant path clients), @crowd_figures, 'runs');
    my @part;

    push @part, '  "machine": {'
        . join(', ', map { text($_->[0]) . ': ' . text($_->[1]) } @$machine) . '}';
    for (['rows', [sorted($rows->{http})], @crowd], ['durable', $rows->{durable}, @crowd],
         ['orders', $rows->{orders}, 'variant', @order_figures, 'runs'])
    {
        my ($name, $list, @names) = @$_;
        push @part, qq(  "$name": [\n)
            . join(",\n", map { '    {' . json_row($_, @names) . '}' } @{ $list // [] }) . "\n  ]";
    }
    push @part, qq(  "ratios": [\n) . join(",\n", map {
        '    {' . json_row($_, qw(name ratio word target)) . ', "met": '
        . ($_->{met} ? 'true' : 'false') . '}'
    } @$ratios) . "\n  ]";
    return "{\n" . join(",\n", @part) . "\n}\n";
}

sub write_file {
    my ($name, $text) = @_;

    open my $file, '>', $name or die "$name: $!\n";
    print {$file} $text;
    close $file or die "$name: $!\n";
    return;
}
