package SeckillTest::MariaDB;

# A private MariaDB, a part of SeckillTest.  Its empty data directory is made once
# for all tests, in SECKILL_MARIADB_TEMPLATE.

use strict;
use warnings;

use Carp qw(croak);
use Errno qw(EINTR);
use Fcntl qw(:flock);
use File::Basename qw(dirname);
use File::Path qw(make_path remove_tree);
use File::Temp ();
use POSIX ();
use SeckillTest::Text qw(slurp tail);

# Starts a private MariaDB with an empty database "seckill" and user root
# without a password.  %conf are more options of mariadbd (name => value); with
# tcp => 1 it listens on a free loopback port too.
sub mariadb {
    my ($self, %conf) = @_;

    my $dir  = $self->_place('mysql');
    my $data = "$dir/data";
    my $tcp  = delete $conf{tcp};
    my $port = $tcp ? $self->port : undef;

    $self->_mariadb_data($data);

    my %all = (
        'datadir'                        => $data,
        'socket'                         => "$dir/mysql.sock",
        'pid-file'                       => "$dir/mysql.pid",
        'innodb-flush-log-at-trx-commit' => 1,
        'character-set-server'           => 'utf8mb4',
        'performance-schema'             => 'OFF',
        ($tcp ? ('port' => $port, 'bind-address' => '127.0.0.1') : ('skip-networking' => undef)),
        _mariadb_sizes(),
        %conf,
    );
    my @options = map { defined $all{$_} ? "--$_=$all{$_}" : "--$_" } sort keys %all;

    my $proc = $self->_start(
        kind => 'mariadb', dir => $dir, log => "$dir/mysql.log",
        command => ['mariadbd', '--no-defaults', _mariadb_user(), '--skip-name-resolve',
                    '--skip-log-bin', @options],
        death   => 'KILL',
    );
    $proc->{sock}  = "$dir/mysql.sock";
    $proc->{port}  = $port;
    $proc->{ready} = sub { $self->dbh($proc, 'mysql') };

    $self->_ready($proc) or croak 'mariadbd did not start: ' . tail($proc->{log}, 20);

    my $setup = $self->dbh($proc, 'mysql');
    $setup->do('DROP DATABASE IF EXISTS seckill');
    $setup->do('CREATE DATABASE seckill CHARACTER SET utf8mb4');
    $setup->disconnect;
    $proc->{dbh} = $self->dbh($proc);

    return $proc;
}

# Returns a new DBI handle: errors die, autocommit is on, times are UTC.
sub dbh {
    my ($self, $my, $database) = @_;

    require DBI;
    $database //= 'seckill';

    my $dbh = DBI->connect(
        "dbi:mysql:database=$database;mysql_socket=$my->{sock}", 'root', '',
        {   RaiseError => 1, PrintError => 0, AutoCommit => 1, AutoInactiveDestroy => 1,
            mysql_enable_utf8mb4 => 1, mysql_auto_reconnect => 1,
        });
    $dbh->do("SET time_zone = '+00:00'");

    return $dbh;
}

# Empties the database of a server in a tenth of a second.
sub fresh_database {
    my ($self, $my) = @_;

    $my->{dbh}->do('DROP DATABASE seckill');
    $my->{dbh}->do('CREATE DATABASE seckill CHARACTER SET utf8mb4');
    $my->{dbh}->do('USE seckill');
    return;
}

sub _mariadb_user { return $> == 0 ? '--user=root' : () }

# given to mariadb-install-db and mariadbd alike, or the log is made anew
sub _mariadb_sizes {
    return (
        'innodb-buffer-pool-size' => '32M',
        'innodb-log-file-size'    => '8M',
    );
}

# Installing a data directory takes seconds: it is done once and then copied,
# both under a lock, for tests run side by side.
sub _mariadb_data {
    my ($self, $data) = @_;

    my $template = $ENV{SECKILL_MARIADB_TEMPLATE} // "$self->{root}/build/mariadb-template";
    chomp(my $version = `mariadbd --no-defaults --version`);
    croak 'mariadbd is not installed' if !$version;

    make_path(dirname($template));
    open my $lock, '>>', "$template.lock" or croak "cannot open $template.lock: $!";
    while (!flock $lock, LOCK_EX) {
        croak "cannot lock $template.lock: $!" if $! != EINTR;
    }

    if (slurp("$template/seckill-version") ne $version) {
        _mariadb_install($template, $version);
    }
    _run('cp', '-a', '--', $template, $data);

    return;
}

sub _mariadb_install {
    my ($template, $version) = @_;

    my %sizes = _mariadb_sizes();
    remove_tree($template, "$template.new");
    _run('mariadb-install-db', '--no-defaults', _mariadb_user(), "--datadir=$template.new",
         '--auth-root-authentication-method=normal', '--skip-test-db', '--skip-name-resolve',
         map {"--$_=$sizes{$_}"} sort keys %sizes);
    open my $fh, '>', "$template.new/seckill-version" or croak "cannot write the stamp: $!";
    print {$fh} $version;
    close $fh or croak "cannot write the stamp: $!";
    rename "$template.new", $template or croak "cannot rename $template.new: $!";

    return;
}

# Runs a quiet command that must succeed.
sub _run {
    my (@command) = @_;

    my $output = File::Temp->new;
    my $pid = fork // croak "fork: $!";
    if (!$pid) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>&', $output;
        open STDERR, '>&', $output;
        { no warnings 'exec'; exec { $command[0] } @command; }
        POSIX::_exit(127);
    }
    waitpid $pid, 0;
    return if $? == 0;

    croak "\"@command\" failed with status $?: " . slurp($output->filename);
}

1;
