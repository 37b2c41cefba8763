package OldVersion;

# Version 0.1.0 from this repository's own history, built once and kept in build/old.
#
#   my ($old, $why) = OldVersion::built($t);
#
# Returns the folder of its source, with what was built in its "build"; or undef and
# why there is none.

use strict;
use warnings;

use Fcntl qw(:flock);
use File::Path qw(make_path remove_tree);

use constant COMMIT => '1e121d3';

sub built {
    my ($t) = @_;

    my $root = $t->root;
    my $base = "$root/build/old";

    return (undef, 'sanitized builds have no 0.1.0 beside them') if $t->sanitized;
    return (undef, 'another nginx than the installed one is under test') if !_installed($t);

    my ($missing) = $t->run('git', '-C', $root, 'cat-file', '-e', COMMIT . '^{commit}');
    return (undef, 'the history of 0.1.0 is not here: a shallow clone ("git fetch --unshallow"), or no git at all')
        if $missing;

    my ($exit, $key, $err) = $t->run('sh', '-c', '(nginx -v 2>&1; mysql_config --version; cc --version) | cksum');
    my $name = COMMIT . '-' . ($key =~ /^(\d+)/)[0];

    make_path($base);
    open my $lock, '>>', "$base/lock" or die "$base/lock: $!";
    flock $lock, LOCK_EX or die "$base/lock: $!";
    return "$base/$name" if -e "$base/$name/.whole";

    remove_tree("$base/$name");
    make_path("$base/$name");
    ($exit, my $out, $err) = $t->run('sh', '-c', 'git -C "$1" archive "$2" | tar -x -C "$3" && exec env -u MAKEFLAGS '
        . '-u MAKELEVEL -u SECKILL_BUILD make -C "$3" all', 'sh', $root, COMMIT, "$base/$name");
    die "0.1.0 does not build: $out$err" if $exit;
    open my $whole, '>', "$base/$name/.whole" or die "$base/$name: $!";
    close $whole or die "$base/$name: $!";

    return "$base/$name";
}

# 0.1.0 is built for the installed nginx only
sub _installed {
    my ($t) = @_;

    my $flags = do { local (@ARGV, $/) = $t->build . '/nginx.flags'; eval { <> } // '' };
    return ($ENV{TEST_NGINX_BINARY} // '') =~ m{\A(?:|nginx|/usr/sbin/nginx)\z} && $flags =~ m{ src /usr/share/nginx/src };
}

1;
