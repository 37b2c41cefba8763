# F-H1: a server's defaults decide nothing.  Every session of the daemon and of the tool
# sets what it needs, on a server whose defaults are as bad as they can be.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use ConsumerTest;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON ();
use POSIX ();
use Test::More;

my $secret = 'what a file of this host says';
my $c = ConsumerTest->new(
    mariadb => {
        'transaction-isolation' => 'READ-UNCOMMITTED', 'completion-type' => 'CHAIN', 'autocommit' => 'OFF',
        'sql-mode' => '', 'default-time-zone' => '+05:00', 'local-infile' => 'ON', 'max-statement-time' => 100,
        'general-log' => 1, 'log-output' => 'TABLE',
    },
    conf => { 'consumer.workers' => 1, 'consumer.claim_idle' => '1s', 'consumer.pay_timeout' => '0s',
              'mysql.timeout' => '2s' });
my $t = $c->t;

# of the test's own sessions: they are not the subject
$c->dbh->do($_) for 'SET autocommit = 1', 'SET completion_type = 0';
$c->dbh->do("SET GLOBAL $_") for 'unique_checks = 0', 'check_constraint_checks = 0', 'sql_select_limit = 2';
$c->dbh->do('ALTER TABLE seckill_orders ADD CONSTRAINT ck_thirteen CHECK (user_id <> 13)');

# A proxy that swallows the statement which matches, and whatever follows on its connection.
# Returns (pid, port, handle that can be read once it has).
sub proxy {
    my ($pattern) = @_;

    my $listen = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 20) or die "listen: $!";
    pipe my $read, my $write or die "pipe: $!";
    my $pid = fork // die "fork: $!";
    return ($pid, $listen->sockport, $read) if $pid;

    my $select = IO::Select->new($listen);
    my (%peer, %client);
    while (1) {
        for my $from ($select->can_read) {
            if ($from == $listen) {
                my $client = $listen->accept;
                my $server = IO::Socket::UNIX->new(Peer => $c->{mysql}{sock}) or POSIX::_exit(1);
                ($peer{$client}, $peer{$server}, $client{$client}) = ($server, $client, 1);
                $select->add($client, $server);
                next;
            }
            if (!sysread $from, my $bytes, 65_536) {
                $select->remove($from, $peer{$from});
                shutdown $peer{$from}, 2;
            } elsif ($client{$from} && $bytes =~ $pattern) {
                $select->remove($from, $peer{$from});
                syswrite $write, 'x';
            } else {
                syswrite $peer{$from}, $bytes;
            }
        }
    }
}

{
    $c->sale(1, units => 100, group => 1);
    is($c->buy(1, 1 .. 5), '11111', 'five buy');

    my ($pid, $port, $swallowed) = proxy(qr/SET sold = sold \+/);
    my $first = $t->seckilld($c->conf('mysql.socket' => undef, 'mysql.host' => '127.0.0.1', 'mysql.port' => $port));
    sysread $swallowed, my $byte, 1;
    pass('a daemon has inserted, and its next statement never arrives');
    $t->kill9($first);

    $c->start;
    $t->wait_for(sub { $c->is_settled(1) || $t->log_text($c->{daemon}) =~ /transaction is run again/ }, 10,
        'another to take over');
    ok(!$c->is_settled(1), 'F-H1: a second daemon does not believe rows that may be rolled back');

    kill KILL => $pid;
    waitpid $pid, 0;
    $c->wait_settled(1);
    is($c->order_count(1), 5, '... and once they are, it has written them');
    $c->all_bought(1, [1 .. 5], 'all have what they were told');
}

{
    $c->sale(2, units => 100);
    is($c->buy(2, 12 .. 16), '11111', 'five buy, one of them against a CHECK');
    $c->wait_settled(2, 30);
    is_deeply([map { $_->{reason} } @{ $c->dead(2) }], ['data_error'], 'a CHECK holds, whatever the default is');
    $c->all_bought(2, [12, 14 .. 16], '... and the others have theirs');

    # with a default of two rows at most
    is(scalar @{ $c->orders(1) } + @{ $c->orders(2) }, 9, 'nine orders, all committed');

    # new sessions after a loss
    my ($me) = $c->dbh->selectrow_array('SELECT CONNECTION_ID()');
    $c->dbh->do("KILL $_") for @{ $c->dbh->selectcol_arrayref(
        'SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> ?', undef, $me) };
    is($c->buy(2, 17 .. 19), '111', 'three more buy, after every session was killed');
    $c->wait_settled(2);
    $c->all_bought(2, [17 .. 19], '... and have their orders');
    ok($c->stop, 'the daemon stops well');

    my ($exit, $out, $err) = $t->ctl($c->{conf}, 'reconcile', 2);
    like($out . $err, qr/dead letter|dead_letter|1 dead/i, 'the tool reads the books on such a server') or diag($exit);
}

{
    my ($exit, $out) = $t->ctl($c->{conf}, 'doctor', 1, '--json');
    my @told = grep { $_->{check} eq 'defaults' } @{ JSON->new->decode($out)->{checks} };
    is_deeply([sort map { "$_->{level} " . ($_->{found} =~ /^(\w+)/)[0] } @told],
        [map {"warning $_"} sort qw(autocommit check_constraint_checks completion_type sql_mode tx_isolation unique_checks)],
        'doctor names each default that harms other programs');
    like($told[0]{do}, qr/SET GLOBAL/, '... with what to do');
}

# a server that asks for a file of the client's host
{
    my $dir = $t->dir . '/infile';
    mkdir $dir or die "mkdir: $!";
    my $file = $t->file('secret', "$secret\n");
    $t->file('infile/0001_infile.sql', "LOAD DATA LOCAL INFILE '$file' INTO TABLE products (name);\n");
    my ($exit, $out, $err) = $t->ctl($c->{conf}, 'schema', 'apply', '--dir', $dir);
    is($exit, 4, 'no file of the client is given away') or diag("$out$err");
    is($c->count(products => "name = '$secret'"), 0, '... not a word of it');
}

# what each session of ours said first
{
    # in the order they came: the log's times are those of each session's zone
    my $said = $c->dbh->selectall_arrayref("SELECT thread_id, argument FROM mysql.general_log WHERE command_type = 'Query'");
    my %said;
    push @{ $said{ $_->[0] } }, $_->[1] for @{$said};
    my @ours = grep { $_->[0] =~ /^SET SESSION innodb_lock_wait_timeout/ } values %said;
    cmp_ok(scalar @ours, '>=', 6, 'sessions of daemons and tool');

    my @want = (qw(autocommit completion_type sql_mode time_zone foreign_key_checks unique_checks sql_select_limit
        check_constraint_checks max_statement_time), 'ISOLATION LEVEL REPEATABLE READ', 'NAMES utf8mb4');
    my @less;
    for my $session (@ours) {
        my $head = join "\n", grep {/^SET /} @{$session}[0 .. ($#{$session} > 6 ? 6 : $#{$session})];
        push @less, grep { $head !~ /$_/i } @want;
    }
    is_deeply(\@less, [], 'F-H1: every one of them sets all of it before anything else');

    # the test's own sessions apart
    my @others = grep { "@{$_}" !~ /^SET SESSION innodb_lock|mysql\.general_log|CREATE |ADD COLUMN|ADD KEY|^SET time_zone = '\+00:00'$/ } values %said;
    is_deeply(\@others, [], '... and there is no other session');
}

done_testing;
