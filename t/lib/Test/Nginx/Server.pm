package Test::Nginx::Server;

# The nginx of the runner: its folder, its configuration file, its start and
# its end.  It is a child that is waited for ("daemon off"), and a parent-death
# signal ends it when the test itself is killed.
#
# Environment: TEST_NGINX_ BINARY, LOAD_MODULES, SERVROOT, PORT, SERVER_PORT,
# LD_PRELOAD (for nginx alone), EVENT_TYPE.

use strict;
use warnings;

use Errno qw(EINTR);
use File::Path qw(make_path remove_tree);
use File::Temp ();
use IO::Socket::INET;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

# seconds; a sanitized nginx on a busy machine is slow
use constant START_SECONDS => 30;
use constant STOP_SECONDS  => 15;

use constant PORT_FIRST => 10_000;
use constant PORT_LAST  => 32_000;

use constant PR_SET_PDEATHSIG => 1;
my %prctl = (x86_64 => 157, aarch64 => 167);

# Returns a server that has not been started.  Its folder is TEST_NGINX_SERVROOT,
# or a private one that release() removes.
sub new {
    my ($class) = @_;

    my $given = $ENV{TEST_NGINX_SERVROOT};

    return bless {
        owner  => $$,
        root   => $given // File::Temp::tempdir('test-nginx-XXXXXX', TMPDIR => 1),
        given  => defined $given,
        port   => $ENV{TEST_NGINX_SERVER_PORT} // $ENV{TEST_NGINX_PORT} // free_port(),
        offset => {},
    }, $class;
}

sub root { return $_[0]{root} }
sub html { return "$_[0]{root}/html" }
sub port { return $_[0]{port} }

# Returns a TCP port of the loopback that was free a moment ago, below those that
# the kernel gives to clients: these come and go between two blocks.
sub free_port {
    for (1 .. 1000) {
        my $port = PORT_FIRST + int rand PORT_LAST - PORT_FIRST;
        return $port if IO::Socket::INET->new(
            LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'tcp', Listen => 1, ReuseAddr => 1);
    }

    die "no free port\n";
}

# After a start that failed because somebody else has the port: takes another
# and returns 1; 0 when that was not the reason, or the port was given.
sub move {
    my ($self) = @_;

    return 0 if defined($ENV{TEST_NGINX_SERVER_PORT} // $ENV{TEST_NGINX_PORT});
    return 0 if $self->log('stderr') !~ /bind\(\) to .*:$self->{port} failed/;

    $self->{port} = free_port();
    return 1;
}

# Makes the folder anew: no file of an earlier block is left.
sub fresh {
    my ($self) = @_;

    my $root = $self->{root};
    remove_tree($root, { keep_root => 1 });
    make_path(map {"$root/$_"} qw(conf logs html temp));
    write_file("$root/html/index.html", '<html><head><title>It works!</title></head></html>');
    $self->{offset} = {};

    return;
}

# Writes nginx.conf.  %part: main_config http_config config post_main_config
# (texts, already expanded), server_name, log_level, workers, connections,
# master (1 or 0), root_location (1 or 0), env (lines of "env").
sub configure {
    my ($self, %part) = @_;

    my $root   = $self->{root};
    my $master = $part{master} ? 'on' : 'off';
    my $user   = $> == 0 ? 'user root;' : '';
    my $events = $ENV{TEST_NGINX_EVENT_TYPE} ? "use $ENV{TEST_NGINX_EVENT_TYPE};" : '';
    my $load   = join '', map {"load_module $_;\n"} split ' ', $ENV{TEST_NGINX_LOAD_MODULES} // '';
    my $env    = join '', map {"env $_;\n"} @{ $part{env} },
        qw(LD_PRELOAD ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS);
    my $temp   = join '', map {"    ${_}_temp_path $root/temp/$_;\n"}
        qw(client_body proxy fastcgi uwsgi scgi);
    my $location = $part{root_location}
        ? "location / {\n            root $root/html;\n            index index.html index.htm;\n        }"
        : '';

    $self->{master} = $part{master};

    write_file("$root/conf/nginx.conf", <<"END_CONF");
daemon off;
master_process $master;
worker_processes $part{workers};
error_log $root/logs/error.log $part{log_level};
pid $root/logs/nginx.pid;
$user
$env$load
$part{main_config}

events {
    accept_mutex off;
    worker_connections $part{connections};
    $events
}

http {
    access_log $root/logs/access.log;
$temp
    default_type text/plain;
    keepalive_timeout 68s;

$part{http_config}

    server {
        listen 127.0.0.1:$self->{port};
        server_name '$part{server_name}';
        client_max_body_size 30M;

$part{config}

        $location
    }
}

$part{post_main_config}
END_CONF

    return;
}

# Starts nginx and waits until it serves.  Returns 1, or 0 when it ended
# instead: status() and log('stderr') tell why.
sub start {
    my ($self) = @_;

    delete $self->{status};
    my $pid = fork // die "fork: $!\n";
    $self->_exec if !$pid;
    $self->{pid} = $pid;

    my $deadline = time + START_SECONDS;
    while (time < $deadline) {
        return 0 if !$self->alive;
        return 1 if $self->_serves;
        sleep 0.005;
    }

    $self->stop;
    die "nginx did not start in " . START_SECONDS . " s\n";
}

# the pid file is written when all is set up, and then the port is open
sub _serves {
    my ($self) = @_;

    return 0 if !-s "$self->{root}/logs/nginx.pid";

    return IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 1) ? 1 : 0;
}

sub _exec {
    my ($self) = @_;

    my $parent = getppid;
    my $call   = $prctl{ (POSIX::uname())[4] };

    # the workers of a master would outlive its KILL
    syscall $call, PR_SET_PDEATHSIG, $self->{master} ? POSIX::SIGTERM() : POSIX::SIGKILL()
        if defined $call;
    POSIX::_exit(126) if getppid != $parent;

    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP PIPE CHLD ALRM USR1 USR2);
    open STDIN,  '<',  '/dev/null';
    open STDOUT, '>>', "$self->{root}/logs/stderr.log" or POSIX::_exit(126);
    open STDERR, '>>', "$self->{root}/logs/stderr.log" or POSIX::_exit(126);
    $ENV{LD_PRELOAD} = $ENV{TEST_NGINX_LD_PRELOAD} if $ENV{TEST_NGINX_LD_PRELOAD};

    my @command = ($ENV{TEST_NGINX_BINARY} // 'nginx', '-p', "$self->{root}/",
                   '-e', "$self->{root}/logs/error.log", '-c', "$self->{root}/conf/nginx.conf");
    { no warnings 'exec'; exec { $command[0] } @command; }
    print STDERR "exec $command[0]: $!\n";
    POSIX::_exit(127);
}

# Waits until nginx has ended by itself; returns 0 when it still runs.
sub wait_exit {
    my ($self, $seconds) = @_;

    my $deadline = time + $seconds;
    while ($self->alive) {
        return 0 if time >= $deadline;
        sleep 0.005;
    }

    return 1;
}

sub alive {
    my ($self) = @_;

    return 0 if !$self->{pid};

    my $found = waitpid $self->{pid}, WNOHANG;
    return 1 if $found == 0;

    $self->{status} = $found == $self->{pid} ? $? : -1;
    delete $self->{pid};

    return 0;
}

# Ends nginx and returns its wait status.  Open requests are finished; what
# takes too long is killed with its workers, which the status shows.
sub stop {
    my ($self) = @_;

    return $self->{status} if !$self->alive;

    my @workers = split ' ', slurp("/proc/$self->{pid}/task/$self->{pid}/children");

    kill 'QUIT', $self->{pid};
    if (!$self->wait_exit(STOP_SECONDS)) {
        kill 'KILL', $self->{pid}, @workers;
        $self->wait_exit(STOP_SECONDS);
    }

    return $self->{status};
}

# Wait status of an nginx that has ended, else undef.
sub status { return $_[0]{status} }

# The text of a log: "error", "access" or "stderr".
sub log {
    my ($self, $name) = @_;
    return slurp("$self->{root}/logs/$name.log");
}

# What was written to a log since the last mark().
sub log_since {
    my ($self, $name) = @_;
    return substr $self->log($name), $self->{offset}{$name} // 0;
}

# From here on log_since() begins.
sub mark {
    my ($self) = @_;

    $self->{offset}{$_} = -s "$self->{root}/logs/$_.log" // 0 for qw(error access);
    return;
}

# Ends nginx and removes the private folder.
sub release {
    my ($self) = @_;

    return if $self->{owner} != $$;

    $self->stop;
    remove_tree($self->{root}) if !$self->{given} && !$ENV{TEST_NGINX_NO_CLEAN};

    return;
}

sub write_file {
    my ($path, $text) = @_;

    open my $fh, '>:raw', $path or die "cannot write $path: $!\n";
    utf8::encode($text) if utf8::is_utf8($text);
    print {$fh} $text;
    close $fh or die "cannot write $path: $!\n";

    return;
}

sub slurp {
    my ($path) = @_;

    open my $fh, '<:raw', $path or return '';
    local $/ = undef;

    return scalar(<$fh>) // '';
}

1;
