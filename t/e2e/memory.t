# Tokens that are good, expired and broken, mixed, on kept connections: the
# workers' memory stays where it is (E12).

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use Digest::SHA qw(hmac_sha256);
use IO::Socket::INET;
use MIME::Base64 qw(encode_base64url);
use NodesTest qw(sale token);
use SeckillTest;
use Soak qw(soak);
use Test::More;
use Time::HiRes qw(time);

use constant REQUESTS => soak(10_000, 2_000_000);
use constant PIPELINE => 200;

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $node  = $t->nginx(redis => $redis, key_file => $t->file('auth.key', NodesTest::KEY), workers => 1,
    log_level => 'warn', http => 'seckill_limit off;');
sale($t, $redis, 42, stock => 10);

sub signed {
    my ($claims) = @_;
    my $text = encode_base64url('{"alg":"HS256"}') . '.' . encode_base64url($claims);
    return "$text." . encode_base64url(hmac_sha256($text, NodesTest::KEY));
}

my @tokens = map {
    my $user = $_;
    my $good = token($user);
    ($good, signed("{\"sub\":\"$user\",\"exp\":1000}"), substr($good, 0, 40), "$good.x", signed('{"exp":4000000000,"sub":[]}'))
} 1 .. PIPELINE / 5;
my $batch = join '', map { "GET /seckill/result/42 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer $_\r\n\r\n" } @tokens;

sub rss_kib {
    my ($pid) = $t->children($node);
    open my $fh, '<', "/proc/$pid/status" or die "status: $!\n";
    return join('', <$fh>) =~ /VmRSS:\s*(\d+)/ ? $1 : die "no VmRSS\n";
}

my ($socket, %status);

# One round on the connection.
sub ask {
    $socket //= IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "connect: $!\n";
    print {$socket} $batch;
    my ($in, $seen) = ('', 0);
    while ($seen < @tokens) {
        sysread $socket, $in, 262_144, length $in or die "closed after $seen answers\n";
        while ($in =~ /HTTP\/1\.1 (\d+) [^\r]*\r\n.*?\r\n\r\n\{[^\n]*?"server_time_ms":\d+\}/sg) {
            $status{$1}++;
            $seen++;
        }
        # what is left of an answer that has not come whole
        $in = $in =~ /.*"server_time_ms":\d+\}(.*)\z/s ? $1 : $in;
    }
    return;
}

ask() for 1 .. 50;
my $warm = rss_kib();
my ($asked, $began) = (0, time);
while ($asked < REQUESTS) {
    # nginx ends it after a million
    undef $socket if $asked % 100_000 == 0;
    ask();
    $asked += @tokens;
}
my $grown = rss_kib() - $warm;
# the sanitizers keep what was freed, and look for leaks in their own way
cmp_ok($grown, '<', $t->sanitized ? 524_288 : 512, sprintf '%d requests in %d s: memory grew by %d KiB', $asked, time - $began, $grown);
my $all = 0;
$all += $_ for values %status;
is($status{401} * 5, $all * 4, 'four of five tokens were refused');
$t->stop($node);

done_testing();
