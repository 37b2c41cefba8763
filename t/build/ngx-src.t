# make NGINX_SRC=dir builds the module against a source tree and leaves the tree
# as it was.  SECKILL_NGINX_SRC names another tree than that of nginx-dev.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp ();
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/../..');
my $tree = $ENV{SECKILL_NGINX_SRC} // '';

if ($tree eq '') {
    ($tree) = map { m{^(.*)/conf_flags$} ? $1 : () } `dpkg -L nginx-dev 2>/dev/null`;
}
plan skip_all => 'no nginx source tree: set SECKILL_NGINX_SRC' if !$tree;

# What is in the tree, with sizes and times.
sub listing { return join '', sort `find '$tree/' -printf '%P %s %T@\n'` }

# make's own variables would reach the make that is tested
delete @ENV{qw(MAKEFLAGS MAKEOVERRIDES MFLAGS MAKELEVEL)};

my $temp   = File::Temp->newdir('skt-XXXXXX', DIR => '/tmp');
my $before = listing();
my $output = `make -C '$root' module NGINX_SRC='$tree' BUILD='$temp/b' 2>&1 < /dev/null`;

is($?, 0, "builds against $tree") or diag($output);
is(listing(), $before, 'the tree is untouched');

my $module = "$temp/b/ngx_http_seckill_module.so";
my @names  = sort map { /^(\S+)/ ? $1 : () } `nm -D --format=posix --defined-only '$module'`;
is_deeply(\@names, [qw(ngx_module_names ngx_module_order ngx_modules)], 'exports only three names');

my $again = `make -C '$root' module NGINX_SRC='$tree' BUILD='$temp/b' 2>&1 < /dev/null`;
is($?, 0, 'builds again');
unlike($again, qr/configuring|-o .*\.o/, 'and has nothing to do');

done_testing;
