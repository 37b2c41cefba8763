package SeckillTest;

# Private servers for the tests: Redis, MariaDB, nginx with the module, seckilld
# and seckillctl.  This file owns their start, their temp directory and their
# end: whatever it started is stopped at END, and by the parent-death signal
# when the test itself is killed.  At END every log is read; an [alert], [crit],
# [emerg] or sanitizer line fails the test.
#
# Environment: SECKILL_BUILD (default build), SECKILL_KEEP=1 keeps the temp
# directory, SECKILL_MARIADB_TEMPLATE (default build/mariadb-template),
# SECKILL_TMP (default /tmp; short, for it begins the paths of unix sockets).

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use Errno qw(EINTR);
use Fcntl qw(:flock SEEK_SET);
use File::Basename qw(basename dirname);
use File::Path qw(make_path remove_tree);
use File::Temp ();
use IO::Socket::INET;
use POSIX qw(:sys_wait_h);
use Test::More ();
use Time::HiRes qw(sleep time);

# servers live in sbin, which the PATH of a plain user lacks
$ENV{PATH} = join ':', $ENV{PATH} // '/usr/bin:/bin', '/usr/sbin', '/sbin';

my $root = abs_path(dirname(__FILE__) . '/../..');

# how long a server may take to start or stop, seconds; sanitizers are slow
use constant START_SECONDS => 30;
use constant STOP_SECONDS  => 20;
use constant CTL_SECONDS   => 180;

my $bad_line = qr{\[(?:alert|crit|emerg)\]
                  |(?:Address|Leak|Memory|Thread|UndefinedBehavior)Sanitizer
                  |runtime\ error:}x;

my @living;    # every object of this process, for END and the signals

# Returns a new set of private servers with a temp directory of its own.
sub new {
    my ($class) = @_;

    my $build = $ENV{SECKILL_BUILD} // 'build';
    $build = "$root/$build" if $build !~ m{^/};

    my $self = bless {
        owner   => $$,
        root    => $root,
        build   => $build,
        dir     => File::Temp::tempdir('skt-XXXXXX', DIR => $ENV{SECKILL_TMP} // '/tmp'),
        procs   => [],
        logs    => [],
        allowed => [],
        faults  => [],
        serial  => {},
    }, $class;

    push @living, $self;

    # exit() runs END; a handler of the test itself stays in charge
    for my $name (qw(INT TERM HUP)) {
        $SIG{$name} //= sub { exit 128 + 15 };
    }

    return $self;
}

sub dir   { return $_[0]{dir} }
sub root  { return $_[0]{root} }
sub build { return $_[0]{build} }

# True when the build under test carries ASan and UBSan.
sub sanitized { return -e "$_[0]{build}/.sanitize" ? 1 : 0 }

# Returns a TCP port of 127.0.0.1 that was free a moment ago.
sub port {
    my $socket = IO::Socket::INET->new(
        LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'tcp', Listen => 1)
        or croak "no free port: $!";

    return $socket->sockport;
}

# Writes dir/NAME and returns its path; mode 0600 unless given.
sub file {
    my ($self, $name, $content, $mode) = @_;

    my $path = "$self->{dir}/$name";
    open my $fh, '>:raw', $path or croak "cannot write $path: $!";
    print {$fh} $content;
    close $fh or croak "cannot write $path: $!";
    chmod $mode // oct(600), $path;

    return $path;
}

# Writes a file with 32 random bytes as hex digits and returns its path.
sub key_file {
    my ($self, $name) = @_;

    open my $fh, '<:raw', '/dev/urandom' or croak "cannot read /dev/urandom: $!";
    read($fh, my $bytes, 32) == 32 or croak 'short read of /dev/urandom';

    return $self->file($name // 'auth.key', unpack('H*', $bytes));
}

# An expected line of a log: what matches is no fault at END.
sub allow_log {
    my ($self, $pattern) = @_;
    push @{ $self->{allowed} }, $pattern;
    return;
}

# Calls the code until it is true and returns its value.  It may die, which
# counts as "not yet".  After $seconds: dies in void context, else says why and
# returns undef (an empty list).
sub wait_for {
    my ($self, $code, $seconds, $what) = @_;

    my $deadline = time + ($seconds // 10);
    my $error    = '';

    while (1) {
        my $value = eval { $code->() };
        $error = $@ if $@;
        return $value if $value;
        last          if time >= $deadline;
        sleep 0.01;
    }

    my $message = 'timed out waiting for ' . ($what // 'a condition')
        . ($error ? ", last error: $error" : '');
    croak $message unless defined wantarray;
    Test::More::diag($message);

    return;
}

# Starts a private Redis on a unix socket and a loopback port.  %conf are more
# lines of redis.conf; an array reference repeats a directive, undef drops it.
# Nothing is persisted unless asked: appendonly => 'yes'.
sub redis {
    my ($self, %conf) = @_;

    my $dir  = $self->_place('redis');
    my $sock = "$dir/redis.sock";

    for my $try (1 .. 3) {
        my $port = $self->port;
        my %all  = (
            bind               => '127.0.0.1',
            port               => $port,
            unixsocket         => $sock,
            unixsocketperm     => '700',
            dir                => $dir,
            save               => '""',
            appendonly         => 'no',
            'maxmemory-policy' => 'noeviction',
            %conf,
        );
        my $text = '';
        for my $key (sort grep { defined $all{$_} } keys %all) {
            $text .= "$key $_\n" for ref $all{$key} ? @{ $all{$key} } : $all{$key};
        }
        my $path = $self->file(basename($dir) . '/redis.conf', $text);

        my $proc = $self->_start(
            kind => 'redis', dir => $dir, log => "$dir/redis.log",
            command => ['redis-server', $path],
            death   => 'KILL',
        );
        $proc->{port} = $port;
        $proc->{sock} = $sock;
        $proc->{password} = $conf{requirepass};
        $proc->{ready} = sub { $self->_redis_answers($proc) };

        if ($self->_ready($proc)) {
            $proc->{client} = $self->redis_client($proc);
            return $proc;
        }
        $self->_forget($proc, qr/Address already in use/);
    }

    croak 'redis-server: no free port after 3 tries';
}

# Returns a new client of package Redis.pm, which connects again by itself.
sub redis_client {
    my ($self, $redis) = @_;

    require Redis;

    return Redis->new(
        sock => $redis->{sock}, reconnect => 5, every => 50_000,
        (defined $redis->{password} ? (password => $redis->{password}) : ()));
}

# A PONG, an error for want of a password, but not LOADING, means it is up.
sub _redis_answers {
    my ($self, $redis) = @_;

    require IO::Socket::UNIX;

    my $socket = IO::Socket::UNIX->new(Peer => $redis->{sock}) or return 0;
    print {$socket} "PING\r\n";
    my $line = <$socket> // '';

    return $line =~ /^(?:\+PONG|-NOAUTH)/ ? 1 : 0;
}

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

    $self->_ready($proc) or croak 'mariadbd did not start: ' . _tail($proc->{log}, 20);

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

# Writes a seckilld.conf and returns its path.  redis => and mysql => are what
# redis() and mariadb() returned; all others are "section.key" => value or
# section => { key => value }, and undef drops a default.
sub conf {
    my ($self, %args) = @_;

    my $redis = delete $args{redis};
    my $mysql = delete $args{mysql};
    my $n     = ++$self->{serial}{conf};
    my %conf  = (consumer => { name => 'test' }, log => { level => 'info' });

    if ($redis) {
        $conf{redis}{address} = "unix:$redis->{sock}";
        $conf{redis}{password_file} = $self->file("redis-$n.password", "$redis->{password}\n")
            if defined $redis->{password};
    }
    if ($mysql) {
        $conf{mysql} = { socket => $mysql->{sock}, user => 'root', database => 'seckill' };
    }
    for my $name (keys %args) {
        if (ref $args{$name} eq 'HASH') {
            $conf{$name}{$_} = $args{$name}{$_} for keys %{ $args{$name} };
        } elsif ($name =~ /^(\w+)\.(\w+)$/) {
            $conf{$1}{$2} = $args{$name};
        } else {
            croak "conf: \"$name\" is neither section.key nor a section";
        }
    }

    my $text = '';
    for my $section (sort keys %conf) {
        $text .= "[$section]\n";
        $text .= "$_ = $conf{$section}{$_}\n"
            for sort grep { defined $conf{$section}{$_} } keys %{ $conf{$section} };
    }

    return $self->file($n == 1 ? 'seckilld.conf' : "seckilld-$n.conf", $text);
}

# Starts build/seckilld -c CONF.  It does not wait until the daemon is up: use
# wait_log($proc, qr/.../).
sub seckilld {
    my ($self, $conf, @args) = @_;

    my $dir = $self->_place('seckilld');

    return $self->_start(
        kind => 'seckilld', dir => $dir, log => "$dir/seckilld.log",
        command => ["$self->{build}/seckilld", '-c', $conf, @args],
        env     => $self->_sanitizer_env,
        death   => 'KILL',
    );
}

# Runs build/seckillctl -c CONF ARGS to its end; returns exit code (128 + signal
# when killed), stdout and stderr.
sub ctl {
    my ($self, $conf, @args) = @_;
    return $self->run("$self->{build}/seckillctl", '-c', $conf, @args);
}

# Runs any command to its end, without input, for CTL_SECONDS at most.
sub run {
    my ($self, @command) = @_;

    my $base = "$self->{dir}/run-" . ++$self->{serial}{run};
    my $pid  = $self->_fork(\@command, "$base.out", "$base.err", $self->_sanitizer_env, 'KILL');

    if (!defined _wait($pid, CTL_SECONDS)) {
        kill 'KILL', $pid;
        waitpid $pid, 0;
        push @{ $self->{faults} }, "\"@command\" hung for " . CTL_SECONDS . ' s and was killed';
    }
    my $status = $?;
    my ($out, $err) = (_slurp("$base.out"), _slurp("$base.err"));
    unlink "$base.out", "$base.err";

    push @{ $self->{faults} }, "\"@command\": $err"
        if $err =~ /Sanitizer|runtime error:/;

    return (($status & 127) ? 128 + ($status & 127) : $status >> 8, $out, $err);
}

# Starts nginx with the module on a free loopback port.
#   http => text of the http block, location => text of the server block (wrapped
#   in "location /seckill/ {}" when it has no location of its own), main => text
#   of the main block, workers => n (1), log_level => info, redis => a redis()
#   and key_file => path for the usual zone, address and key.
sub nginx {
    my ($self, %args) = @_;

    my $dir = $self->_place('nginx');
    my $log = "$dir/error.log";

    for my $try (1 .. 3) {
        my $port = $self->port;
        my $conf = $self->_nginx_conf($dir, $port, %args);
        my $proc = $self->_start(
            kind => 'nginx', dir => $dir, log => $log,
            stderr  => "$dir/stderr.log",
            command => [_nginx_binary(), '-p', "$dir/", '-e', $log, '-c', $conf],
            env     => $self->_sanitizer_env('preload'),
            death   => 'TERM',       # KILL would leave the workers behind
        );
        $proc->{port}      = $port;
        $proc->{error_log} = $log;
        $proc->{ready} = sub {
            IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 1);
        };

        return $proc if $self->_ready($proc);
        $self->_forget($proc, qr/Address already in use/);
    }

    croak 'nginx: no free port after 3 tries';
}

# Runs nginx -t on the same arguments as nginx(); returns exit code and output.
sub nginx_test {
    my ($self, %args) = @_;

    my $dir  = $self->_place('nginx-t');
    my $conf = $self->_nginx_conf($dir, $self->port, %args);
    my $env  = $self->_sanitizer_env('preload');
    my @env = map {"$_=$env->{$_}"} sort keys %{$env};

    my ($exit, $out, $err) = $self->run('env', @env, _nginx_binary(), '-t', '-p', "$dir/",
                                        '-e', "$dir/error.log", '-c', $conf);
    return ($exit, $out . $err);
}

sub _nginx_conf {
    my ($self, $dir, $port, %args) = @_;

    my $http = $args{http} // '';
    $http .= "\n    seckill_zone seckill:8m;\n    seckill_redis unix:$args{redis}{sock};"
        if $args{redis};
    $http .= "\n    seckill_auth_key_file $args{key_file};" if $args{key_file};

    my $location = $args{location} // 'seckill on;';
    $location = "location /seckill/ {\n            $location\n        }"
        if $location !~ /^\s*location\b/m;

    my $workers = $args{workers}   // 1;
    my $level   = $args{log_level} // 'info';
    my $main    = ($> == 0 ? "user root;\n" : '') . ($args{main} // '');

    make_path("$dir/temp");

    return $self->file(basename($dir) . '/nginx.conf', <<"END_CONF");
daemon off;
load_module $self->{build}/ngx_http_seckill_module.so;
worker_processes $workers;
error_log $dir/error.log $level;
pid $dir/nginx.pid;
$main
events {
    worker_connections 4096;
}
http {
    client_body_temp_path $dir/temp/body;
    proxy_temp_path $dir/temp/proxy;
    fastcgi_temp_path $dir/temp/fastcgi;
    uwsgi_temp_path $dir/temp/uwsgi;
    scgi_temp_path $dir/temp/scgi;
    access_log off;
    keepalive_requests 1000000;
    $http
    server {
        listen 127.0.0.1:$port backlog=4096;
        server_name localhost;
        $location
    }
}
END_CONF
}

# Sends TERM and waits; returns the wait status.  What does not end is killed
# and fails the test.
sub stop {
    my ($self, $proc, $signal) = @_;

    return $proc->{status} if defined $proc->{status};

    my @children = $self->children($proc);
    $proc->{stopping} = 1;
    kill $signal // 'TERM', $proc->{pid};
    if (!defined _wait($proc->{pid}, STOP_SECONDS)) {
        push @{ $self->{faults} }, "$proc->{kind} ignored " . ($signal // 'TERM') . ' for '
            . STOP_SECONDS . ' s and was killed';
        kill 'KILL', $proc->{pid}, @children;
        waitpid $proc->{pid}, 0;
    }

    return $proc->{status} = $?;
}

# Kills a server at once, nginx with its workers, and collects it.
sub kill9 {
    my ($self, $proc) = @_;

    return $proc->{status} if defined $proc->{status};

    $proc->{stopping} = 1;
    kill 'KILL', $proc->{pid}, $proc->{kind} eq 'nginx' ? $self->children($proc) : ();
    waitpid $proc->{pid}, 0;

    return $proc->{status} = $?;
}

# Waits until a process ends by itself; returns its wait status or undef.
sub wait_exit {
    my ($self, $proc, $seconds) = @_;

    return $proc->{status} if defined $proc->{status};
    return unless defined _wait($proc->{pid}, $seconds // 10);

    $proc->{stopping} = 1;
    return $proc->{status} = $?;
}

# Starts a stopped server again: same command, ports, files and log.
sub restart {
    my ($self, $proc) = @_;

    $self->stop($proc);
    delete @{$proc}{qw(status stopping)};
    $proc->{pid} = $self->_fork($proc->{command}, $proc->{stdout}, $proc->{stderr},
                                $proc->{env}, $proc->{death});

    if ($proc->{ready}) {
        $self->_ready($proc)
            or croak "$proc->{kind} did not start again: " . _tail($proc->{log}, 20);
    }
    $proc->{dbh} = $self->dbh($proc) if $proc->{kind} eq 'mariadb';

    return $proc;
}

# True while the process runs.
sub alive {
    my ($self, $proc) = @_;

    return 0 if defined $proc->{status};
    return 1 if waitpid($proc->{pid}, WNOHANG) == 0;

    $proc->{status} = $?;
    return 0;
}

# Process ids of the direct children (nginx: its workers).
sub children {
    my ($self, $proc) = @_;
    return split ' ', _slurp("/proc/$proc->{pid}/task/$proc->{pid}/children");
}

# The log of a process so far, as one string.
sub log_text {
    my ($self, $proc) = @_;
    return _slurp($proc->{log});
}

# Waits until the log of a process matches.
sub wait_log {
    my ($self, $proc, $pattern, $seconds) = @_;

    return $self->wait_for(sub { _slurp($proc->{log}) =~ $pattern },
                           $seconds // 10, "\"$pattern\" in the log of $proc->{kind}");
}

sub _place {
    my ($self, $kind) = @_;

    my $n   = ++$self->{serial}{$kind};
    my $dir = "$self->{dir}/$kind" . ($n == 1 ? '' : "-$n");
    make_path($dir, { mode => oct(700) });

    return $dir;
}

sub _start {
    my ($self, %proc) = @_;

    my $proc = \%proc;
    $proc->{stdout} //= $proc->{kind} =~ /^(?:seckilld|nginx)$/ ? "$proc->{dir}/stdout.log" : $proc->{log};
    $proc->{stderr} //= $proc->{log};
    $proc->{env}    //= {};
    $proc->{pid} = $self->_fork(@{$proc}{qw(command stdout stderr env death)});

    push @{ $self->{procs} }, $proc;
    for my $log (@{$proc}{qw(log stderr)}) {
        push @{ $self->{logs} }, $log if !grep { $_ eq $log } @{ $self->{logs} };
    }

    return $proc;
}

# exec keeps the pid: setpriv arms the parent-death signal, env(1) adds the
# environment after it, so that a preloaded sanitizer meets the server alone
sub _fork {
    my ($self, $command, $stdout, $stderr, $env, $death) = @_;

    my @command = ('setpriv', '--pdeathsig', $death, '--', 'env',
                   (map {"$_=$env->{$_}"} sort keys %{$env}), @{$command});

    my $pid = fork // croak "fork: $!";
    return $pid if $pid;

    # the child: no END, no destructors, whatever happens
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE CHLD ALRM USR1 USR2);
    open STDIN,  '<',  '/dev/null';
    open STDOUT, '>>', $stdout or POSIX::_exit(126);
    open STDERR, '>>', $stderr or POSIX::_exit(126);
    { no warnings 'exec'; exec { $command[0] } @command; }
    print STDERR "exec $command[0]: $!\n";
    POSIX::_exit(127);
}

# Waits until a server answers; 0 when it died or took too long.
sub _ready {
    my ($self, $proc) = @_;

    my $deadline = time + START_SECONDS;
    while (time < $deadline) {
        my $ok = eval { $proc->{ready}->() };
        return $self->alive($proc) if $ok;
        return 0 if !$self->alive($proc);
        sleep 0.01;
    }

    return 0;
}

# A server that did not start: dies unless its log says why another try helps.
sub _forget {
    my ($self, $proc, $retry) = @_;

    my $text = join "\n", map { _slurp($_) } $proc->{log}, $proc->{stderr};
    $self->kill9($proc);
    $proc->{stopping} = 1;
    if ($text !~ $retry) {
        croak "$proc->{kind} did not start: " . substr($text, -2000);
    }

    @{ $self->{procs} } = grep { $_ != $proc } @{ $self->{procs} };
    unlink $proc->{log}, $proc->{stderr};
    return;
}

sub _nginx_binary { return $ENV{TEST_NGINX_BINARY} // 'nginx' }

sub _sanitizer_env {
    my ($self, $preload) = @_;

    return {} if !$self->sanitized;

    my %env = (
        ASAN_OPTIONS  => 'fast_unwind_on_malloc=0:detect_leaks=1',
        UBSAN_OPTIONS => 'print_stacktrace=1:halt_on_error=1',
        LSAN_OPTIONS  => "suppressions=$root/t/lib/lsan.supp:print_suppressions=0",
    );
    if ($preload) {
        $env{LD_PRELOAD} = join ' ', (map { _gcc_file($_) } qw(libasan.so libubsan.so)),
            "$self->{build}/nginx_reachable.so";
    }

    return \%env;
}

sub _gcc_file {
    my ($name) = @_;

    my $cc = $ENV{CC} // 'gcc';
    chomp(my $path = `$cc -print-file-name=$name`);
    croak "$cc does not know $name" if $path !~ m{^/};

    return abs_path($path);
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

    my $template = $ENV{SECKILL_MARIADB_TEMPLATE} // "$root/build/mariadb-template";
    chomp(my $version = `mariadbd --no-defaults --version`);
    croak 'mariadbd is not installed' if !$version;

    make_path(dirname($template));
    open my $lock, '>>', "$template.lock" or croak "cannot open $template.lock: $!";
    while (!flock $lock, LOCK_EX) {
        croak "cannot lock $template.lock: $!" if $! != EINTR;
    }

    if (_slurp("$template/seckill-version") ne $version) {
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

    croak "\"@command\" failed with status $?: " . _slurp($output->filename);
}

# Waits for one child with a deadline; $? holds its status.
sub _wait {
    my ($pid, $seconds) = @_;

    my $deadline = time + $seconds;
    while (1) {
        my $found = waitpid $pid, WNOHANG;
        return $pid if $found == $pid;
        return      if $found < 0 || time >= $deadline;
        sleep 0.005;
    }
}

sub _slurp {
    my ($path) = @_;

    open my $fh, '<:raw', $path or return '';
    local $/ = undef;

    return scalar(<$fh>) // '';
}

sub _tail {
    my ($path, $lines) = @_;

    my @all = split /\n/, _slurp($path);
    splice @all, 0, @all - $lines if @all > $lines;

    return join "\n", @all;
}

# What writes is stopped first, gently, so that leaks are reported; the stores
# hold nothing worth a clean end.
sub _finish {
    my ($self) = @_;

    my %gentle = (nginx => 1, seckilld => 1);

    for my $proc (reverse @{ $self->{procs} }) {
        if (!$self->alive($proc) && $proc->{status} != 0 && !$proc->{stopping}) {
            push @{ $self->{faults} }, sprintf '%s ended by itself, wait status 0x%04x',
                $proc->{kind}, $proc->{status};
        }
    }
    for my $proc (grep { $gentle{ $_->{kind} } && !defined $_->{status} } reverse @{ $self->{procs} }) {
        # after TERM nginx gives its workers a second, too short for a report
        if ($self->sanitized && $proc->{kind} eq 'nginx') {
            kill 'QUIT', $proc->{pid};
            $self->wait_exit($proc, 5);
        }
        my $status = $self->stop($proc);
        push @{ $self->{faults} }, sprintf '%s: wait status 0x%04x after TERM', $proc->{kind}, $status
            if $status & 127 && ($status & 127) != POSIX::SIGKILL() && ($status & 127) != POSIX::SIGTERM();
    }
    for my $proc (grep { !$gentle{ $_->{kind} } } reverse @{ $self->{procs} }) {
        $self->kill9($proc);
    }

    for my $log (@{ $self->{logs} }) {
        for my $line (grep { $_ =~ $bad_line } split /\n/, _slurp($log)) {
            next if grep { $line =~ $_ } @{ $self->{allowed} };
            push @{ $self->{faults} }, basename(dirname $log) . '/' . basename($log) . ": $line";
        }
    }

    return @{ $self->{faults} };
}

sub _show_logs {
    my ($self) = @_;

    for my $log (@{ $self->{logs} }) {
        my $tail = _tail($log, 25);
        print STDERR "# --- end of $log\n", (map {"# $_\n"} split /\n/, $tail) if $tail ne '';
    }
    return;
}

END {
    my $exit   = $?;
    my $failed = $exit != 0 || !Test::More->builder->is_passing;

    for my $self (grep { $_->{owner} == $$ } @living) {
        local $? = 0;
        local $@ = '';
        my @faults = eval { $self->_finish };
        push @faults, "cleanup: $@" if $@;

        print STDERR "# fault: $_\n" for @faults;
        $self->_show_logs if $failed || @faults;
        $exit ||= 1 if @faults;
        remove_tree($self->{dir}) if !$ENV{SECKILL_KEEP};
    }

    $? = $exit;
}

1;
