# The module must export what nginx looks up and nothing else: nginx loads
# modules with RTLD_GLOBAL, so a hiredis of another module would take our calls.

use strict;
use warnings;

use File::Basename qw(dirname);
use Test::More;

my $root  = dirname(__FILE__) . '/../..';
my $build = $ENV{SECKILL_BUILD} // 'build';
my $so    = ($build =~ m{^/} ? $build : "$root/$build") . '/ngx_http_seckill_module.so';

# Names in the dynamic symbol table, without versions.
sub symbols {
    my ($kind) = @_;

    open my $nm, '-|', 'nm', '-D', '--format=posix', "--$kind-only", $so
        or die "cannot run nm: $!";
    my @names = map { /^([^\s@]+)/ ? $1 : () } <$nm>;
    close $nm or die "nm failed on $so";

    return sort @names;
}

ok(-f $so, 'the module is there') or BAIL_OUT("no $so: run make");

is_deeply([symbols('defined')], [qw(ngx_module_names ngx_module_order ngx_modules)],
    'exports exactly the three names that nginx looks up');

my @imported = symbols('undefined');
my $hiredis  = qr/^(?:redis[A-Z]|hi_|sds|__redis|freeReplyObject|dict[A-Z])/;

is_deeply([grep { $_ =~ $hiredis } @imported], [], 'imports nothing of hiredis');
is_deeply([grep { $_ =~ /^(?:ngx_http_seckill|ngx_seckill|sk)_/ } @imported], [],
    'defines all that is its own');
ok((grep { $_ =~ /^ngx_/ } @imported), 'imports from nginx');

open my $readelf, '-|', 'readelf', '-d', '-W', $so or die "cannot run readelf: $!";
my @needed = map { /NEEDED.*\[(.*)\]/ ? $1 : () } <$readelf>;
close $readelf or die 'readelf failed';

is_deeply([grep {/hiredis/} @needed], [], 'needs no shared hiredis');

done_testing();
