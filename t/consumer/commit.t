# D2: the answer to a COMMIT is lost, or the COMMIT never arrives.  What happened
# is found out by looking, not guessed.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use Test::More;

my $c = ConsumerTest->new(conf => { 'mysql.timeout' => '2s' });
my $front = $c->t->dir . '/proxy.sock';
my $orders = $c->t->dir . '/cut';

# A proxy in front of MySQL.  The file "cut" tells how many COMMITs to cut: before
# they are sent, or after the server has answered.
sub proxy {
    my ($back) = @_;

    my $listen = IO::Socket::UNIX->new(Local => $front, Listen => 16) or die $!;
    my $pid = fork // die $!;
    return $pid if $pid;

    my $select = IO::Select->new($listen);
    my %peer;
    my $drop = sub {
        for my $sock ($_[0], delete $peer{ $_[0] }) {
            $select->remove($sock);
            delete $peer{$sock};
            close $sock;
        }
    };
    while (getppid() != 1) {
        for my $sock ($select->can_read(1)) {
            next if $sock != $listen && !$peer{$sock};
            if ($sock == $listen) {
                my $client = $listen->accept or next;
                my $server = IO::Socket::UNIX->new(Peer => $back) or do { close $client; next };
                $peer{$client} = $server;
                $peer{$server} = $client;
                $client->blocking(1);
                ${*$client}{is_client} = 1;
                $select->add($client, $server);
                next;
            }
            my $n = sysread $sock, my $data, 1 << 20;
            if (!$n) { $drop->($sock); next }
            my $how = '';
            if (${*$sock}{is_client} && $data =~ /\x03COMMIT\z/ && -e $orders) {
                open my $fh, '<', $orders;
                ($how, my $left) = split ' ', <$fh>;
                close $fh;
                if (--$left) { open $fh, '>', $orders; print {$fh} "$how $left"; close $fh }
                else { unlink $orders }
            }
            if ($how eq 'before') { $drop->($sock); next }
            my $server = $peer{$sock};
            syswrite $server, $data;
            if ($how eq 'after') { sysread $server, my $lost, 65536; $drop->($sock) }
        }
    }
    POSIX::_exit(0);
}

sub cut { open my $fh, '>', $orders or die $!; print {$fh} "$_[0] $_[1]"; close $fh or die $!; return }

my $proxy = proxy($c->{mysql}{sock});
$c->{conf} = $c->conf('mysql.socket' => $front, 'consumer.batch' => 50);
$c->start;
my $id = 0;

for my $how (qw(after before)) {
    $c->sale(++$id, units => 250);
    cut($how, 1);
    $c->buy($id, 1 .. 50);
    $c->wait_settled($id, 20);
    ok(!-e $orders, "one COMMIT was cut $how the server had it");
    is($c->order_count($id), 50, 'one order each');
    is($c->sold($id), 50, 'counted once');
    $c->all_bought($id, [1 .. 50], 'and told');

    cut($how, 5);
    $c->buy($id, 51 .. 200);
    $c->wait_settled($id, 60);
    ok(!-e $orders, 'five more, one after the other');
    is($c->order_count($id), 200, 'one order each');
    is($c->sold($id), 200, 'counted once');
    $c->all_bought($id, [1 .. 200], 'and told');
    is_deeply($c->dead($id), [], 'nobody is blamed for it');
    is($c->count(seckill_stock_log => "activity_id = $id AND kind <> 'open'"), 0, 'nothing in the ledger');
}

# the limit is reached by orders whose COMMIT got lost: they are not refused by themselves
{
    $c->sale(++$id, units => 40);
    cut('after', 1);
    $c->buy($id, 1 .. 60);
    $c->wait_settled($id, 20);
    is($c->order_count($id), 40, 'a full sale of lost answers');
    $c->all_bought($id, [1 .. 40], 'all are successes');
    is_deeply($c->dead($id), [], 'none is over the limit');
}

ok($c->stop, 'the daemon stops well');
kill TERM => $proxy;
waitpid $proxy, 0;

done_testing;
