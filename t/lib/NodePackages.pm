package NodePackages;

# npm's packages for a test: from a folder with package.json and a lock file into
# one below build/, once per state of the lock file, for all who ask.

use strict;
use warnings;

use Exporter qw(import);
use Fcntl qw(:flock);
use File::Copy qw(copy);
use File::Path qw(make_path);
use Test::More ();

our @EXPORT_OK = qw(node_missing install_packages);

# What is not there, in words, or undef.
sub node_missing {
    my $old_enough = 'const [a, b] = process.versions.node.split(".").map(Number);'
        . 'process.exit(a > 18 || (a === 18 && b >= 19) ? 0 : 1)';

    return 'node is not installed, or older than 18.19' if system("node -e '$old_enough' 2>/dev/null") != 0;
    return 'npm is not installed' if system('command -v npm > /dev/null') != 0;
    return;
}

# True when the packages are there.
sub install_packages {
    my ($from, $home) = @_;

    make_path($home);
    open my $lock, '>>', "$home/.lock" or die "cannot open $home/.lock: $!\n";
    flock $lock, LOCK_EX or die "cannot lock $home/.lock: $!\n";

    return 1 if _slurp("$home/package-lock.json") eq _slurp("$from/package-lock.json")
        && -e "$home/node_modules/.package-lock.json";

    for my $name (qw(package.json .npmrc package-lock.json)) {
        copy("$from/$name", "$home/$name") or die "cannot copy $name: $!\n";
    }
    my $output = `cd '$home' && timeout 120 npm ci 2>&1 < /dev/null`;
    return 1 if $? == 0;

    unlink "$home/package-lock.json";
    Test::More::diag($output);
    return 0;
}

sub _slurp {
    my ($path) = @_;

    open my $fh, '<:raw', $path or return '';
    local $/ = undef;

    return <$fh> // '';
}

1;
