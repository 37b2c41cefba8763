# F-D4: the buyers' filter is loaded page by page, and amid the pages the address
# leads to another server: a proxy, or a name, that was switched over.  The cursor
# of the old one is of no use there, for its hash seed is another one.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use IO::Select;
use IO::Socket::INET;
use NodesTest qw(burst sale tally);
use POSIX ();
use SeckillTest;
use Test::More;
use Time::HiRes qw(sleep time);

use constant BUYERS => 5000;

my $t   = SeckillTest->new;
my $one = $t->redis;
my $two = $t->redis;
$t->allow_log(qr/lost: /);

sale($t, $one, 7, stock => BUYERS);
$one->{client}->sadd('seckill:order_users:{7}', $_ .. $_ + 499) for map { 1 + 500 * $_ } 0 .. BUYERS / 500 - 1;
$one->{client}->set('seckill:stock:{7}', 0);
$one->{client}->hset('seckill:activity:{7}', 'seq', BUYERS);
$two->{client}->restore($_, 0, $one->{client}->dump($_)) for $one->{client}->keys('*');
is($two->{client}->scard('seckill:order_users:{7}'), BUYERS, 'the second server has all buyers');

# When the third page has been answered the address is switched over: the answer
# and the end of every connection reach the worker at once.

sub between {
    my ($listen, $worker_of) = @_;

    my $set = IO::Select->new($listen);
    my (%peer, %scans, %client);
    my ($pages, $port) = (0, $one->{port});

    while (1) {
        for my $from ($set->can_read) {
            if ($from == $listen) {
                my $client = $listen->accept;
                my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "connect: $!\n";
                @peer{ $client, $server } = ($server, $client);
                $client{$client} = 1;
                $set->add($client, $server);
                next;
            }
            my $to = $peer{$from} or next;
            if (!sysread $from, my $bytes, 1 << 20) {
                $set->remove($from, $to);
                delete @peer{ $from, $to };
                close $_ for $from, $to;
                next;
            } elsif ($client{$from}) {
                if ($bytes =~ /SSCAN/) {
                    $scans{$to} = 1;
                    $pages++;
                }
                syswrite $to, $bytes;
            } else {
                if ($scans{$from} && $pages == 3 && $port == $one->{port}) {
                    my $more = IO::Select->new($from);
                    while ($more->can_read(0.1)) {
                        sysread $from, $bytes, 1 << 20, length $bytes or last;
                    }
                    my $worker = $worker_of->();
                    kill 'STOP', $worker;
                    $port = $two->{port};
                    syswrite $to, $bytes;
                    for my $old (grep { $_ != $listen } $set->handles) {
                        $set->remove($old);
                        close $old;
                    }
                    %peer = ();
                    kill 'CONT', $worker;
                    last;
                }
                syswrite $to, $bytes;
            }
        }
    }
    return;
}

my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 50) or die "listen: $!\n";
my $file = $t->file('worker', '');

my $proxy = fork // die "fork: $!\n";
if (!$proxy) {
    $SIG{PIPE} = 'IGNORE';
    eval {
        between($listen, sub { open my $fh, '<', $file or die "$file: $!\n"; chomp(my $pid = <$fh>); return $pid });
        1;
    } or print STDERR "proxy: $@";
    POSIX::_exit(1);
}

my $node = $t->nginx(key_file => $t->file('auth.key', NodesTest::KEY), workers => 1,
    http => 'seckill_zone seckill:8m; seckill_limit off; seckill_redis 127.0.0.1:' . $listen->sockport . ";\n"
          . 'seckill_redis_timeout 4s; seckill_redis_connect_timeout 2s; seckill_timeout 8s;');
open my $children, '<', "/proc/$node->{pid}/task/$node->{pid}/children" or die "children: $!\n";
my ($worker) = split ' ', <$children>;
$t->file('worker', "$worker\n");

sub ask { return burst(20, map { [ $node->{port}, $_, '/seckill/7' ] } @_) }

ask(900_001);

# the filter is there when a stranger is refused without a call
sub sells { return $_[0]{client}->info('commandstats')->{cmdstat_scard} // '' }
ok($t->wait_for(sub {
    my $before = sells($two);
    ask(900_002);
    return $before ne '' && sells($two) eq $before;
}, 15, 'the filter'), 'the filter is loaded at the new server');

my @buyers = map { 10 * $_ } 1 .. BUYERS / 10;
is_deeply(tally(ask(@buyers)), { 40004 => scalar @buyers }, 'every buyer who posts again is known');
is_deeply(tally(ask(900_010 .. 900_020)), { 40005 => 11 }, 'and strangers hear that it is sold out');

kill 'KILL', $proxy;
waitpid $proxy, 0;
done_testing();
