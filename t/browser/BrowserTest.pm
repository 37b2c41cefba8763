package BrowserTest;

# The pages in a real browser: starts a private stack, then node with some of the
# tests beside this file, whose TAP is passed on.  Skipped, and saying so, where
# chromium, node or the two npm packages can't be had; SECKILL_BROWSER=require
# makes that a failure.
#
# Screenshots stay in build/browser/shots, one folder for each .t file.

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(basename dirname);
use File::Path qw(make_path remove_tree);
use JSON::PP ();
use POSIX ();
use Test::More;

use NodePackages qw(node_missing install_packages);
use SeckillTest;

our @EXPORT_OK = qw(run_in_browser);

my $here = abs_path(dirname(__FILE__));
my $root = abs_path("$here/../..");
my $home = "$root/build/browser";

# names of *.mjs files: their tests run one after the other on one stack.  Does
# not return.
sub run_in_browser {
    my (@names) = @_;

    my $chromium = need_browser();
    my $t        = SeckillTest->new;
    my $stack    = start_stack($t, $chromium);

    # the plan and the results are node's; its children end with it
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        $ENV{SECKILL_STACK} = $stack->{file};
        $ENV{SECKILL_TESTS} = join ' ', @names;
        exec 'setpriv', '--pdeathsig', 'TERM', '--', 'node',
            "--test-reporter=$here/lib/reporter.mjs", "$here/run.mjs"
            or POSIX::_exit(127);
    }
    waitpid $pid, 0;
    my $failed = $? != 0;
    kill 'CONT', @{ $stack->{pids} };

    exit($failed ? 1 : 0);
}

sub missing {
    my ($what) = @_;

    if (($ENV{SECKILL_BROWSER} // '') eq 'require') {
        fail("the browser tests run: $what");
        done_testing;
        exit 1;
    }
    plan skip_all => "no browser tests: $what (tools/deps.sh browser installs what is missing)";
}

# the path of chromium, when everything else is there too
sub need_browser {
    my ($chromium) = grep { -x } map { ("$_/chromium", "$_/chromium-browser") } split /:/, $ENV{PATH};
    missing('chromium is not installed') if !$chromium;
    my $without = node_missing();
    missing($without) if $without;
    missing('npm could not install playwright-core and axe-core') if !install_packages($here, $home);

    return $chromium;
}

sub start_stack {
    my ($t, $chromium) = @_;

    my $redis = $t->redis;
    my $mysql = $t->mariadb;
    my $http  = $t->port;
    my $conf  = $t->conf(redis => $redis, mysql => $mysql, 'http.listen' => "127.0.0.1:$http");
    my $key   = $t->key_file;

    my ($exit, undef, $error) = $t->ctl($conf, 'schema', 'apply', '--dir', "$root/sql");
    die "no schema: $error\n" if $exit != 0;

    ($exit, my $tokens, $error) = $t->ctl($conf, 'token', '1..40', '--ttl', '8h', '--key-file', $key, '--json');
    die "no tokens: $error\n" if $exit != 0;
    my $users = $t->file('users.json', $tokens, oct(644));

    my $seckilld = $t->seckilld($conf);
    my $nginx    = $t->nginx(redis => $redis, key_file => $key, workers => 2, location => <<"END_CONF");
root $root/tools/demo/www;
        include $root/tools/demo/page.conf;

        location = /demo/users.json {
            alias $users;
        }

        location = /seckilld/metrics {
            proxy_pass http://127.0.0.1:$http/metrics;
        }

        # a browser beside it makes a small machine slow, which is no fault of Redis
        seckill_redis_timeout 3s;
        seckill_redis_connect_timeout 3s;
        seckill_timeout 6s;

        location /api/seckill/ {
            seckill on;
        }
END_CONF

    my $shots = "$home/shots/" . basename($0, '.t');
    remove_tree($shots);
    make_path($shots);

    # what the tests need to know of it
    my $file = $t->file('stack.json', JSON::PP->new->encode({
        base     => "http://127.0.0.1:$nginx->{port}",
        ctl      => [$t->build . '/seckillctl', '-c', $conf],
        redis    => { sock => $redis->{sock}, pid => $redis->{pid} },
        mysql    => $mysql->{sock},
        seckilld => $seckilld->{pid},
        nginx    => $nginx->{pid},
        users    => $users,
        chromium => $chromium,
        packages => "$home/package.json",
        shots    => $shots,
    }));

    return { file => $file, pids => [$redis->{pid}, $seckilld->{pid}] };
}

1;
