# The documents against the code: every configuration in docs/directives.md and
# the README's synopsis passes nginx -t, every seckillctl verb that a document
# types exists, completion works, and references and manuals are complete.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

$ENV{PATH} = "$ENV{PATH}:/usr/sbin:/sbin";
$ENV{LC_ALL} = 'C.UTF-8';

my $root = abs_path(dirname(__FILE__) . '/../..');
my $build = $ENV{SECKILL_BUILD} // 'build';
$build = "$root/$build" if $build !~ m{^/};

plan skip_all => 'the module is sanitized' if -e "$build/.sanitize";
plan skip_all => 'nothing is built' if !-e "$build/ngx_http_seckill_module.so";

my $temp = tempdir(CLEANUP => 1);

sub slurp {
    my ($name) = @_;

    open my $in, '<', "$root/$name" or die "$name: $!";
    local $/;

    return scalar <$in>;
}

# ($status, $output), both streams
sub run {
    my (@command) = @_;

    open my $out, '-|', 'sh', '-c', 'exec 2>&1; exec "$@"', 'sh', @command
        or die "fork: $!";
    my $text = join '', <$out>;
    close $out;

    return ($? >> 8, $text);
}

sub certificate {
    my ($status, $text) = run(qw(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=docs
                                 -keyout /dev/null));
    die "openssl: $text\n" if $status != 0;
    return $text;
}

# files of the examples become files of ours
sub localize {
    my ($text) = @_;

    for my $path ($text =~ m{(/etc/seckill/[\w.-]+)}g) {
        my ($name) = $path =~ m{([^/]+)$};
        open my $file, '>', "$temp/$name" or die "$name: $!";
        print $file $name =~ /\.crt\z/ ? certificate() : "a secret of more than sixteen bytes\n";
        close $file;
    }

    $text =~ s{/etc/seckill/}{$temp/}g;
    $text =~ s{/var/log/nginx/}{$temp/}g;

    return $text;
}

# an example may be a part: what it leaves out is added
sub nginx_test {
    my ($name, $http) = @_;

    my $rest = '';
    $rest .= "seckill_zone rest:1m;\n" if $http !~ /^\s*seckill_zone\b/m;
    $rest .= "seckill_redis 127.0.0.1:6379;\n" if $http !~ /^\s*seckill_redis\s/m;
    $rest .= "seckill_auth_key_file /etc/seckill/jwt.key;\n"
        if $http !~ /^\s*seckill_auth_key_file\b/m;
    $rest .= "server { listen unix:$temp/sock; location / { seckill on; } }\n";

    open my $conf, '>', "$temp/nginx.conf" or die "nginx.conf: $!";
    print $conf "load_module $build/ngx_http_seckill_module.so;\npid $temp/pid;\n",
        "error_log stderr;\nevents {}\nhttp {\n",
        localize($http . "\n" . $rest), "}\n";
    close $conf;

    my ($status, $text) = run('nginx', '-t', '-c', "$temp/nginx.conf");
    is($status, 0, $name) or diag($text);

    return;
}

my $directives = slurp('docs/directives.md');
my $section = '';

for my $part (split /^(?=###? )/m, $directives) {
    ($section) = $part =~ /^###? (.*)/ or next;
    nginx_test("example of $section", $1) while $part =~ /^```nginx\n(.*?)^```$/msg;
}

my ($synopsis) = slurp('README.md') =~ /^## Synopsis.*?^```nginx\n(.*?)^```$/ms;
$synopsis =~ s/^load_module.*//m;
$synopsis =~ s/\A.*?^http \{(.*)^\}\s*\z/$1/ms;
$synopsis =~ s/listen 80;/listen unix:$temp\/80;/;
nginx_test("the README's synopsis", $synopsis);

# verbs that the documents type
my %verb = map { $_ => 1 } (run("$build/seckillctl", '--help'))[1] =~ /^  ([a-z]+) /mg;
ok(scalar(keys %verb) > 5, 'verbs are known');

for my $name (map { s{^\Q$root\E/}{}r } glob("$root/README*.md $root/docs/*.md")) {
    my $text = slurp($name);
    my @wrong = grep { !$verb{$_} } $text =~ /(?<!SETUSER )\bseckillctl ([a-z]+)\b(?! (?:and|is|was|may))/g;
    is_deeply(\@wrong, [], "$name: its verbs exist");
}

# completion says what the tool says
my ($status, $text) = run('bash', '-c', <<'END_BASH', 'bash', $root, $build);
. "$1/tools/completion/seckillctl.bash"
PATH=$2:$PATH
try() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _seckillctl
    echo "$*: ${COMPREPLY[*]}"
}
try seckillctl rec
try seckillctl dead ''
try seckillctl -c file restock 1 --f
try seckillctl limit 1 o
END_BASH

is($text, "seckillctl rec: reconcile\nseckillctl dead : drop list retry show\n"
    . "seckillctl -c file restock 1 --f: --finish\nseckillctl limit 1 o: off\n", 'completion');

($status, $text) = run("$root/tools/check-docs.sh", $build);
is($status, 0, 'manuals and references are complete') or diag($text);

done_testing();
