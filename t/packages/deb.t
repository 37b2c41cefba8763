# The Debian packages: built from a copy of this tree, installed, used by
# nginx -t, refused beside another build of nginx, removed and purged without a
# trace.  It changes the system, so it runs only with SECKILL_DEB=1, as root;
# SECKILL_DEB_DIR names a folder with packages that are built already.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

plan skip_all => 'changes the system: set SECKILL_DEB=1' unless $ENV{SECKILL_DEB};
plan skip_all => 'needs root' unless $> == 0;

$ENV{PATH} = "$ENV{PATH}:/usr/sbin:/sbin";
$ENV{LC_ALL} = 'C.UTF-8';
$ENV{DEBIAN_FRONTEND} = 'noninteractive';

my $root = abs_path(dirname(__FILE__) . '/../..');
my $temp = tempdir(CLEANUP => 1);
my @names = qw(libnginx-mod-http-seckill seckilld seckillctl);
my @before = installed();
my $settings = -d '/etc/seckill';

plan skip_all => 'the packages or /etc/seckill are there already' if $settings || @before;

# ($status, $output) of a command, both streams
sub run {
    my (@command) = @_;

    open my $out, '-|', 'sh', '-c', 'exec 2>&1; exec "$@"', 'sh', @command
        or die "fork: $!";
    my $text = join '', <$out>;
    close $out;

    return ($? >> 8, $text);
}

# names of ours that dpkg knows, in any state
sub installed {
    my (undef, $text) = run('dpkg-query', '-W', '-f', '${Package} ${db:Status-Abbrev}\n', @names);

    return grep { / (?:ii|rc|iU|iF)/ } split /\n/, $text;
}

sub fine {
    my ($name, @command) = @_;
    my ($status, $text) = run(@command);

    is($status, 0, $name) or diag($text);

    return $text;
}

sub field {
    my ($file, $name) = @_;

    return (run('dpkg-deb', '-f', $file, $name))[1];
}

# nginx that is not the system's: only the module's own file is loaded
sub nginx_test {
    my ($load) = @_;

    open my $conf, '>', "$temp/nginx.conf" or die "nginx.conf: $!";
    print $conf "$load\npid $temp/nginx.pid;\nerror_log stderr;\nevents {}\n",
        "http { seckill_zone s:1m; access_log off; }\n";
    close $conf;

    return run('nginx', '-t', '-c', "$temp/nginx.conf");
}

END {
    local $?;

    run('dpkg', '--purge', @names) if Test::More->builder->has_plan && $ENV{SECKILL_DEB};
}

my $dir = $ENV{SECKILL_DEB_DIR};

if (!defined $dir) {
    mkdir "$temp/tree" or die "mkdir: $!";
    fine('copied', 'sh', '-c', 'tar -C "$1" -c --exclude=./build --exclude=./run '
        . '--exclude=./.git . | tar -C "$2" -x', 'sh', $root, "$temp/tree");
    fine('built', 'sh', '-c', 'cd "$1" && dpkg-buildpackage -us -uc -b', 'sh', "$temp/tree");
    $dir = $temp;
}

my %file = map { my $name = $_; $name => (glob "$dir/${name}_*.deb")[0] } @names;
is(scalar(grep { defined && -s } values %file), 3, 'three packages') or BAIL_OUT('no packages');

# A29: the binary interface: the exact one of the nginx it was built for
my ($abi) = (run('dpkg-query', '-W', '-f', '${Provides}', 'nginx'))[1] =~ /(nginx-abi-[^, ]+)/;
my $depends = field($file{'libnginx-mod-http-seckill'}, 'Depends');
like($depends, qr/\Q$abi\E\b/, "depends on $abi");
like(field($file{'libnginx-mod-http-seckill'}, 'Built-Using'), qr/^hiredis \(= \S+\)/,
    'says which hiredis is inside');
unlike($depends, qr/hiredis/, 'and needs none beside it');

# A29: another build of nginx: a package that depends on an interface nobody provides
fine('unpacked', 'dpkg-deb', '-R', $file{'libnginx-mod-http-seckill'}, "$temp/other");
fine('other build', 'sed', '-i', "s/\Q$abi\E/nginx-abi-0.0.0-1/", "$temp/other/DEBIAN/control");
fine('packed', 'dpkg-deb', '-b', "$temp/other", "$temp/other.deb");
my ($status, $text) = run('apt-get', '-s', '-y', '-q', 'install', "$temp/other.deb");
isnt($status, 0, 'the module of another build is refused');
like($text, qr/nginx-abi-0\.0\.0-1/, 'and the reason is told');

fine('installed', 'apt-get', '-y', '-q', 'install', @file{@names});
is(scalar(grep { / ii/ } installed()), 3, 'all configured');
ok(-l '/etc/nginx/modules-enabled/50-mod-http-seckill.conf', 'module enabled');
fine("the system's nginx -t", 'nginx', '-t');

($status, $text) = nginx_test('include /etc/nginx/modules-enabled/50-mod-http-seckill.conf;');
is($status, 0, 'its directives are known') or diag($text);

fine('user', 'id', 'seckill');
fine('settings', 'seckilld', '-t');
fine('seckilld --version', 'seckilld', '--version');
fine('seckillctl --help', 'seckillctl', '--help');
ok(-f '/usr/share/seckill/sql/0001_sale.sql', 'schema');
ok(-f '/etc/logrotate.d/libnginx-mod-http-seckill', 'journals are rotated');
ok(!-e '/etc/systemd/system/timers.target.wants/seckill-preheat.timer', 'timer not enabled');
ok(!-e '/etc/systemd/system/multi-user.target.wants/seckilld.service', 'daemon not enabled');
is(fine('units', 'systemd-analyze', 'verify', '--man=no', '--recursive-errors=no',
        'seckilld.service', 'seckill-preheat.service', 'seckill-preheat.timer'), '', 'no complaint');

# settings of the operator outlive a removal, and nothing outlives a purge
fine('removed', 'dpkg', '--remove', @names);
ok(-f '/etc/seckill/seckilld.conf', 'settings stay');
fine('nginx -t without it', 'nginx', '-t');
fine('purged', 'dpkg', '--purge', @names);
is_deeply([installed()], [], 'dpkg knows nothing of them');

for my $path (qw(/etc/seckill /usr/sbin/seckilld /usr/bin/seckillctl /usr/share/seckill
                 /usr/lib/nginx/modules/ngx_http_seckill_module.so
                 /usr/share/nginx/modules-available/mod-http-seckill.conf
                 /etc/nginx/modules-enabled/50-mod-http-seckill.conf)) {
    ok(!-e $path && !-l $path, "no $path");
}

fine('nginx -t after all', 'nginx', '-t');

done_testing();
