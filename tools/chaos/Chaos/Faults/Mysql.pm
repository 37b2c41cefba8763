package Chaos::Faults::Mysql;

# What happens to MySQL, and to the daemon's link to it.

use strict;
use warnings;

use Time::HiRes qw(sleep);

sub faults {
    return (
        { name => 'mysql-kill', party => 'mysql', hold => [0.3, 1.5],
          begin => sub { $_[0]->t->kill9($_[0]->mysql) },
          end   => sub { $_[0]->t->restart($_[0]->mysql) } },
        { name => 'mysql-freeze', party => 'mysql', hold => [0.5, 4],
          begin => sub { kill 'STOP', $_[0]->mysql->{pid} },
          end   => sub { kill 'CONT', $_[0]->mysql->{pid} } },
        { name => 'mysql-read-only', party => 'mysql', hold => [0.5, 2],
          begin => sub { $_[0]->dbh->do('SET GLOBAL read_only = 1') },
          end   => sub { $_[0]->dbh->do('SET GLOBAL read_only = 0') } },
        { name => 'mysql-disk-full', party => 'mysql', hold => [0.8, 2],
          needs => sub { $_[0]->{disk} ? undef : 'a small disk can not be mounted here' },
          begin => \&_fill, tick => \&_fill, end => \&_empty },
        { name => 'mysql-failover', party => 'mysql', hold => [0.3, 0.9], forgets => 1,
          begin => \&_copy, end => \&_failover },
        { name => 'mysql-lock-wait', party => 'mysql', hold => [1, 3],
          begin => \&_lock, end => \&_unlock },
        { name => 'mysql-deadlock', party => 'mysql', hold => [0.8, 2],
          begin => \&_weight, tick => \&_deadlock, end => \&_relax },
        { name => 'mysql-kill-connection', party => 'mysql', hold => [0.8, 2],
          begin => \&_kill_connections, tick => \&_kill_connections, end => \&_kill_connections },
        { name => 'cut-daemon-mysql', party => 'daemonmysql-mysql', hold => [0.8, 2],
          begin => sub { _cut($_[0], $_[1]) },
          end   => sub { $_[0]->mend('daemon-mysql') } },
        { name => 'cut-commit', party => 'daemonmysql-mysql', hold => [0.8, 2],
          begin => sub { _cut($_[0], $_[1], match => qr/COMMIT/, most => 2) },
          end   => sub { $_[0]->mend('daemon-mysql') } },
    );
}

# A copy of all files at one instant is what a replica has that fell behind.
sub _copy {
    my ($stack) = @_;

    my $mysql = $stack->mysql;
    kill 'STOP', $mysql->{pid};
    my $copied = system 'cp', '-a', '--', "$mysql->{dir}/data", $stack->t->dir . '/replica';
    kill 'CONT', $mysql->{pid};
    die "the files of MySQL were not copied\n" if $copied != 0;
    return;
}

# The replica takes over: what was committed after the copy is gone.
sub _failover {
    my ($stack) = @_;

    my $mysql = $stack->mysql;
    $stack->t->kill9($mysql);
    system('rm', '-rf', '--', "$mysql->{dir}/data") == 0
        && system('mv', '--', $stack->t->dir . '/replica', "$mysql->{dir}/data") == 0
        or die "the files of MySQL were not replaced\n";
    $stack->t->restart($mysql);
    return;
}

# takes the last byte of the disk
sub _fill {
    my ($stack) = @_;

    open my $fh, '>>', "$stack->{disk}/ballast" or die "cannot write the ballast: $!\n";
    for my $size (1 << 20, 4096) {
        my $bytes = "\0" x $size;
        1 while (syswrite($fh, $bytes) // 0) == $size;
    }
    close $fh;
    return;
}

sub _empty {
    my ($stack) = @_;
    unlink "$stack->{disk}/ballast" or die "cannot remove the ballast: $!\n";
    return;
}

# somebody else's session, which holds what the daemon wants
sub _session {
    my ($stack) = @_;

    my $session = $stack->{session} //= $stack->t->dbh($stack->mysql);
    $session->{AutoCommit} = 0;
    $session->do('SET SESSION innodb_lock_wait_timeout = 1');
    return $session;
}

sub _lock {
    my ($stack, $round) = @_;

    _session($stack)->selectrow_array('SELECT id FROM seckill_activities WHERE id = ? FOR UPDATE',
                                      undef, $round->{id});
    return;
}

sub _unlock {
    my ($stack) = @_;

    my $session = delete $stack->{session} or return;
    $session->rollback;
    $session->disconnect;
    return;
}

# InnoDB ends the transaction that changed less: it shall be the daemon's
sub _weight {
    my ($stack) = @_;

    my $session = _session($stack);
    $session->do('CREATE TABLE IF NOT EXISTS test_ballast (id INT PRIMARY KEY, n INT) ENGINE=InnoDB');
    $session->do('REPLACE INTO test_ballast SELECT seq, 0 FROM seq_1_to_3000');
    $session->commit;
    return;
}

# first the activity, then the orders: the other way round than a batch that is all new
sub _deadlock {
    my ($stack, $round) = @_;

    my $session = _session($stack);
    eval {
        $session->do('UPDATE test_ballast SET n = n + 1');
        $session->selectrow_array('SELECT id FROM seckill_activities WHERE id = ? FOR UPDATE',
                                  undef, $round->{id});
        sleep 0.03;         # until a batch waits for it
        $session->selectall_arrayref(
            'SELECT id FROM seckill_orders WHERE activity_id = ? FOR UPDATE', undef, $round->{id});
        1;
    } or $round->{conflicts}++;
    eval { $session->rollback };
    return;
}

sub _relax {
    my ($stack) = @_;

    _unlock($stack);
    $stack->dbh->do('DROP TABLE IF EXISTS test_ballast');
    return;
}

sub _kill_connections {
    my ($stack) = @_;
    $stack->drop_clients('daemon-mysql');
    return;
}

sub _cut {
    my ($stack, $round, %how) = @_;

    my $most  = delete $how{most} // 11;
    my $every = 2 + int($round->{pick} * $most);
    $round->{note} = "every $every. packet";
    $stack->cut('daemon-mysql', every => $every, from => 1 + int($round->{pick} * 31) % 9, %how);
    return;
}

1;
