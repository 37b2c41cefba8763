# F-H2: "host" is TCP whatever it is called, and TLS to MySQL is proved or refused.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use IO::Socket::INET;
use JSON ();
use POSIX ();
use Test::More;
use TestCerts;

my $first = SeckillTest->new;
my $certs = TestCerts->new(dir => $first->dir);
my ($cert, $key)       = $certs->pair('server', 'DNS:localhost,IP:127.0.0.1');
my ($named, $its_key)  = $certs->pair('named', 'DNS:db.test');
my ($mine, $mine_key)  = $certs->pair('client', 'DNS:shop.test');
my ($old, $old_key)    = $certs->pair('old', 'DNS:localhost', days => -1);
chmod 0755, $first->dir, "$first->{dir}/certs";

my $c = ConsumerTest->new(
    mariadb => { tcp => 1, 'ssl-ca' => $certs->ca, 'ssl-cert' => $cert, 'ssl-key' => $key },
    conf => { 'consumer.claim_idle' => '1s', 'consumer.pay_timeout' => '0s' });
my $t = $c->t;

# (exit, what is said) of the tool on these settings of [mysql]
sub look {
    my (%settings) = @_;
    my $conf = $c->conf('mysql.socket' => undef, map { ("mysql.$_" => $settings{$_}) } keys %settings);
    my ($exit, $out, $err) = $t->ctl($conf, 'schema', 'status', '--dir', $t->root . '/sql');
    return ($exit, $err);
}

sub refused {
    my ($name, $pattern, %settings) = @_;
    my ($exit, $said) = look(%settings);
    is($exit, 3, "$name: refused");
    like($said, $pattern, '... and said') or diag($said);
    return;
}

my $port = $c->{mysql}{port};
my %good = (host => 'localhost', port => $port, ssl => 'on', ca => $certs->ca);

{
    my ($exit, $said) = look(%good);
    is($exit, 1, 'the right name and authority: connected') or diag($said);
    ($exit, $said) = look(%good, host => '127.0.0.1');
    is($exit, 1, '... and by the address that the certificate has') or diag($said);
    refused('another authority', qr/MySQL: connect: .*(?:certificate|SSL)/i, %good, ca => $certs->other_ca);
    refused('an authority that the system does not know', qr/MySQL: connect: .*(?:certificate|SSL)/i, %good, ca => undef);
}

# localhost with a port is never somebody else's socket
{
    my $other = $t->mariadb(tcp => 1);
    my $dbh = $t->dbh($other);
    $dbh->do('CREATE TABLE here (n INT)');
    my $conf = $c->conf('mysql.socket' => undef, 'mysql.host' => 'localhost', 'mysql.port' => $port);
    local $ENV{MYSQL_UNIX_PORT} = $other->{sock};
    my ($exit, $out, $err) = $t->ctl($conf, 'doctor', '--json');
    my ($tls) = grep { $_->{check} eq 'tls' } @{ JSON->new->decode($out)->{checks} };
    is($tls->{level}, 'ok', 'localhost without TLS: doctor is content') or diag($out);
    ($exit, $err) = look(host => 'localhost', port => $port);
    is($exit, 1, 'localhost with a port is TCP to this port');
    my $free = $t->port;
    refused('localhost with a port where nobody is', qr{MySQL: connect: Can't connect to server on 'localhost'}, host => 'localhost', port => $free);

    # this one has no TLS
    refused('a server without TLS', qr/MySQL: connect: .*(?:TLS|SSL).*(?:required|not speak)/i, %good, port => $other->{port});
    $t->stop($other);
}

# somebody between us and the server who takes TLS out of its greeting
{
    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 5) or die "listen: $!";
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my $client = $listen->accept;
        my $server = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or POSIX::_exit(1);
        sysread $server, my $greeting, 4096;
        my $at = index($greeting, "\0", 5) + 1 + 4 + 8 + 1;
        substr($greeting, $at, 2) = pack 'v', unpack('v', substr $greeting, $at, 2) & ~0x800;
        syswrite $client, $greeting;
        my $n = sysread $client, my $answer, 4096;
        syswrite $write, $n ? 'told' : 'nothing';
        POSIX::_exit(0);
    }
    close $write;
    refused('a greeting without TLS', qr/MySQL: connect: /, %good, port => $listen->sockport);
    waitpid $pid, 0;
    sysread $read, my $heard, 100;
    is($heard, 'nothing', '... and who took it out heard no user and no password');
}

for my $case ([ 'a certificate of another name', $named, $its_key ], [ 'a certificate that has ended', $old, $old_key ]) {
    my ($name, @pair) = @{$case};
    my $server = $t->mariadb(tcp => 1, 'ssl-ca' => $certs->ca, 'ssl-cert' => $pair[0], 'ssl-key' => $pair[1]);
    refused($name, qr/MySQL: connect: .*(?:certificate|SSL)/i, %good, port => $server->{port});
    $t->stop($server);
}

# a user whom the server takes only with a certificate, for the whole way of a sale
$c->dbh->do(q{CREATE USER shop IDENTIFIED BY 'a-word' REQUIRE X509});
$c->dbh->do('GRANT SELECT, INSERT, UPDATE ON seckill.* TO shop');
my %shop = (%good, user => 'shop', password_file => $t->file('m.password', "a-word\n", oct 600));
refused('no certificate of ours', qr/Access denied/, %shop);
{
    my %with = (%shop, cert => $mine, key => $mine_key);
    $c->{conf} = $c->conf('mysql.socket' => undef, map { ("mysql.$_" => $with{$_}) } keys %with);
    $c->sale(1, units => 100);
    is($c->buy(1, 1 .. 20), '1' x 20, 'twenty buy');
    $c->start;
    $c->wait_settled(1);
    $c->all_bought(1, [1 .. 20], 'all have their orders, over TLS');

    my ($me) = $c->dbh->selectrow_array('SELECT CONNECTION_ID()');
    my $sessions = $c->dbh->selectcol_arrayref(q{SELECT id FROM information_schema.processlist WHERE user = 'shop'});
    cmp_ok(scalar @{$sessions}, '>=', 2, 'by sessions of that user');
    $c->dbh->do("KILL $_") for @{$sessions};
    is($c->buy(1, 21), '1', 'one more, after every session was killed');
    $c->wait_settled(1);
    $c->all_bought(1, [21], '... has its order');

    my ($exit, $out) = $t->ctl($c->{conf}, 'doctor', 1, '--json');
    my ($tls) = grep { $_->{check} eq 'tls' } @{ JSON->new->decode($out)->{checks} };
    is($tls->{level}, 'ok', 'doctor tells it');
    like($tls->{found}, qr/^TLS\S+, the certificate is that of "localhost"$/, '... with the cipher and the name');
    ok($c->stop, 'the daemon stops well');
    unlike($t->log_text($c->{daemon}), qr/a-word/, '... and has not told the password');
}

done_testing;
