# docs/cases.md: each case once, and each test that it names is there and says
# the number of the case.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/../..');

sub slurp {
    my ($name) = @_;
    open my $in, '<', "$root/$name" or return;
    local $/ = undef;
    return scalar <$in>;
}

# cases of others by their part, and F-A1 .. of faults that 0.1.0 had itself
my %count = (A => 29, B => 13, C => 17, D => 12, E => 12, F => 9, 'F-A' => 5, 'F-B' => 5, 'F-C' => 7, 'F-D' => 7,
             'F-E' => 2, 'F-F' => 3, 'F-G' => 4, 'F-H' => 4, 'F-I' => 2, 'F-J' => 2, 'F-K' => 3);
my (%row, @wrong);

for my $line (split /\n/, slurp('docs/cases.md')) {
    my ($case, $tests) = $line =~ /^\| ((?:F-)?[A-Q]\d+) \|.*\| ([^|]*) \|$/ or next;
    push @wrong, "$case: twice" if exists $row{$case};
    $row{$case} = [$tests =~ /`(t\/[^`]+)`/g];
    for my $file (@{ $row{$case} }) {
        my $text = slurp($file);
        push @wrong, "$case: $file " . (defined $text ? 'does not name it' : 'is missing')
            if ($text // '') !~ /\b\Q$case\E\b/;
    }
}
is_deeply(\@wrong, [], 'each test is there and names its case');

my @missing = grep { !$row{$_} } map { my $part = $_; map {"$part$_"} 1 .. $count{$part} } sort keys %count;
is_deeply(\@missing, [], 'no case is left out');

done_testing;
