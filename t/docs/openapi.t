# docs/openapi.yaml under a linter from npm, which also has to see a broken file.
# Skipped without node, npm or its packages.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Copy qw(copy);
use File::Temp qw(tempdir);
use lib dirname(__FILE__) . '/../lib';

use NodePackages qw(node_missing install_packages);
use Test::More;

my $here = abs_path(dirname(__FILE__) . '/openapi');
my $root = abs_path("$here/../../..");
my $home = "$root/build/openapi";

my $missing = node_missing();
plan skip_all => $missing if $missing;
plan skip_all => 'npm could not install the linter' if !install_packages($here, $home);
copy("$here/lint.mjs", "$home/lint.mjs") or die "lint.mjs: $!";

# (status, what was said)
sub lint {
    my ($file) = @_;

    my $said = qx(node '$home/lint.mjs' '$file' 2>&1);

    return ($? >> 8, $said);
}

my ($status, $said) = lint("$root/docs/openapi.yaml");
is($status, 0, 'docs/openapi.yaml is in order') or diag($said);
is($said, '', '... and nothing is worth a warning');

my $text = do { local (@ARGV, $/) = "$root/docs/openapi.yaml"; <> };
my $temp = tempdir(CLEANUP => 1);

for my $case (
    [ qr{'#/components/schemas/Accepted'}, "'#/components/schemas/Nowhere'", 'a reference that leads nowhere' ],
    [ qr{operationId: facts}, 'operationId: buy', 'an operation named twice' ],
    [ qr{required: true}, 'required: perhaps', 'a value of a wrong type' ])
{
    my ($from, $to, $name) = @{$case};
    (my $broken = $text) =~ s/$from/$to/ or die "nothing to break: $name";
    open my $out, '>', "$temp/openapi.yaml" or die "openapi.yaml: $!";
    print {$out} $broken;
    close $out or die "openapi.yaml: $!";

    ($status, $said) = lint("$temp/openapi.yaml");
    is($status, 1, "$name is found") or diag($said);
}

done_testing();
