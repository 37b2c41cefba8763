# F-G1: seckilld and seckillctl do not believe what a reply announces: they close
# the connection, say once what was refused, and go on when Redis is itself again.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use FakeRedis;
use Test::More;
use Time::HiRes qw(sleep time);

my $c    = ConsumerTest->new(conf => { 'redis.timeout' => '2s' });
my $fake = FakeRedis->new(dir => $c->t->dir, real => $c->{redis}{sock});
$c->{conf} = $c->conf('redis.address' => 'unix:' . $fake->sock);

# what the process has reserved, in MiB, and its ticks of the processor
sub taken {
    my ($pid) = @_;

    open my $fh, '<', "/proc/$pid/status" or die "status of $pid: $!";
    my ($size) = map { /^VmPeak:\s+(\d+)/ } <$fh>;
    open my $stat, '<', "/proc/$pid/stat" or die "stat of $pid: $!";
    my @fields = split ' ', scalar <$stat>;

    return (int($size / 1024), $fields[13] + $fields[14]);
}

my %bad = (
    '*2147483647~'          => 'refused: a reply of 2147483647 elements',
    '*2~*1048576~'          => 'refused: a reply of 1048578 elements',
    '$2000000000~abc'       => 'refused: a string of 2000000000 bytes',
    '+' . 'x' x 70_000      => 'refused: a line of more than 65536 bytes',
);

# The daemon meets it amid its work, or in the handshake.
my $id = 0;
for my $command ('XREADGROUP', 'PING') {
    for my $bytes (sort keys %bad) {
        my $what = "$command: $bad{$bytes}";

        $c->sale(++$id, units => 100, group => 1);
        $fake->clear($command eq 'PING' ? "PING: send $bytes" : '');
        $c->start;
        $c->buy($id, 1 .. 5);
        if ($command ne 'PING') {
            $c->wait_settled($id);
            $fake->clear("$command: send $bytes");
            $c->buy($id, 6 .. 10);
        }
        ok($c->t->wait_for(sub { $c->t->log_text($c->{daemon}) =~ /\Q$bad{$bytes}\E/ }, 10), "$what: the log says so");
        my ($size, $ticks) = taken($c->{daemon}{pid});
        sleep 1;
        my ($after, $used) = taken($c->{daemon}{pid});
        cmp_ok($size, '<', 1500, '... little is reserved');
        cmp_ok($used - $ticks, '<', 30, '... and it does not burn');
        my $said = () = $c->t->log_text($c->{daemon}) =~ /level=error[^\n]*\Q$bad{$bytes}\E/g;
        cmp_ok($said, '<=', 4, '... once, by each who met it');

        $fake->clear('');
        $c->wait_settled($id, 20);
        $c->all_bought($id, [1 .. ($command eq 'PING' ? 5 : 10)], '... then all are told');
        my $begin = time;
        ok($c->stop, '... it stops well');
        cmp_ok(time - $begin, '<', 5, '... and soon');
    }
}

# --- the tool

for my $bytes (sort keys %bad) {
    for my $command ('PING', 'TIME', 'HGETALL', 'EVALSHA', 'FACTS', 'XPENDING', 'XINFO', 'SMEMBERS') {
        $fake->clear("$command: send $bytes");
        my ($exit, $out, $err) = $c->t->run($c->t->build . '/seckillctl', '-c', $c->{conf}, 'status', $id);
        next if !$fake->commands($command);
        is($exit, 3, "status, $command: $bad{$bytes}: exit 3");
        like($err, qr/\Q$bad{$bytes}\E/, '... and it says why');
    }
}

done_testing();
