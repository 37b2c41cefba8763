package Chaos::Nginx;

# A private nginx that is no child of ours, as an upgrade of its binary needs:
# the master leaves the process that started it.  Owns its folder, its pid file
# and its end; a guard ends it when this process dies first.

use strict;
use warnings;

use File::Path qw(make_path);
use IO::Socket::INET;
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

use Chaos::Process;

use constant {
    START_SECONDS => 20,
    STOP_SECONDS  => 20,
};

# whole, for a master starts its successor by the name it was started with
my $binary = $ENV{TEST_NGINX_BINARY} // _find('nginx');

# t: a SeckillTest; name: of its folder; redis: path of the socket; key_file; workers
sub new {
    my ($class, %args) = @_;

    my $dir  = $args{t}->dir . "/$args{name}";
    my $self = bless {
        workers => 2, %args,
        dir     => $dir,
        pidfile => "$dir/nginx.pid",
        log     => "$dir/error.log",
        journal => "$dir/accepted.journal",
        port    => $args{t}->port,
        expected => {},             # workers that the nemesis killed
    }, $class;

    make_path("$dir/temp");
    Chaos::Process::adopt_orphans();
    $self->_configure;
    $self->_guard;

    return $self;
}

sub _configure {
    my ($self) = @_;

    my $dir  = $self->{dir};
    my $user = $> == 0 ? "user root;\n" : '';
    open my $fh, '>', "$dir/nginx.conf" or die "cannot write $dir/nginx.conf: $!\n";
    print {$fh} <<"END_CONF";
load_module @{[ $self->{t}->build ]}/ngx_http_seckill_module.so;
${user}worker_processes $self->{workers};
error_log $self->{log} info;
pid $self->{pidfile};
env FAKETIME;
env FAKETIME_DONT_FAKE_MONOTONIC;
@{[ map {"env $_;\n"} sort keys %{ $self->{t}->_sanitizer_env('preload') } ]}events {
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

    seckill_journal $self->{journal};
    seckill_zone seckill:16m;
    seckill_redis unix:$self->{redis};
    seckill_auth_key_file $self->{key_file};
    seckill_limit off;
    seckill_refresh 500ms;

    server {
        listen 127.0.0.1:$self->{port} backlog=4096;
        location /seckill/ {
            seckill on;
        }
    }
}
END_CONF
    close $fh or die "cannot write $dir/nginx.conf: $!\n";
    return;
}

# Ends nginx when this process is gone: nobody else would.
sub _guard {
    my ($self) = @_;

    pipe my $read, my $write or die "pipe: $!\n";
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        close $write;
        $SIG{$_} = 'IGNORE' for qw(INT TERM HUP);
        POSIX::setsid();
        sysread $read, my $nothing, 1;
        kill 'TERM', grep {$_} map { _number($_) } $self->{pidfile}, "$self->{pidfile}.oldbin";
        POSIX::_exit(0);
    }
    close $read;
    $self->{guard} = { pid => $pid, pipe => $write };
    return;
}

# Starts it; %env is for this run, FAKETIME for instance.
sub start {
    my ($self, %env) = @_;

    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDIN,  '<',  '/dev/null';
        open STDOUT, '>>', "$self->{dir}/stderr.log" or POSIX::_exit(126);
        open STDERR, '>>', "$self->{dir}/stderr.log" or POSIX::_exit(126);
        my $sanitizer = $self->{t}->_sanitizer_env('preload');
        local @ENV{ keys %{$sanitizer}, keys %env } = (values %{$sanitizer}, values %env);
        { no warnings 'exec'; exec $binary, '-p', "$self->{dir}/", '-e', $self->{log}, '-c', "$self->{dir}/nginx.conf"; }
        POSIX::_exit(127);
    }
    waitpid $pid, 0;
    die "nginx did not start, see $self->{dir}/stderr.log\n" . _slurp("$self->{dir}/stderr.log") if $? != 0;

    $self->_wait(sub { $self->master && $self->answers }, START_SECONDS, 'nginx to start');
    return;
}

# Ends it; QUIT lets it finish its requests.
sub stop {
    my ($self, $signal) = @_;

    my $pid = $self->master or return;
    kill $signal // 'QUIT', $pid;
    my $gone = eval { $self->_wait(sub { _gone($pid) }, STOP_SECONDS, 'nginx to end'); 1 };
    kill 'KILL', $self->workers($pid), $pid if !$gone;
    die $@ if !$gone;
    return;
}

sub done {
    my ($self) = @_;

    for my $file ("$self->{pidfile}.oldbin", $self->{pidfile}) {
        my $pid = _number($file) or next;
        kill 'TERM', $pid;
        eval { $self->_wait(sub { _gone($pid) }, STOP_SECONDS, 'nginx to end') };
    }
    kill 'KILL', $self->{guard}{pid};
    waitpid $self->{guard}{pid}, 0;
    return;
}

sub master { return _number($_[0]{pidfile}) }

sub workers {
    my ($self, $master) = @_;
    $master //= $self->master or return;
    return split ' ', _slurp("/proc/$master/task/$master/children");
}

sub answers {
    my ($self) = @_;
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => 1);
}

sub reload { return kill 'HUP', $_[0]->master }

# kill -9 of one worker, chosen by $pick of 0..1; returns its pid.
sub kill_worker {
    my ($self, $pick) = @_;

    my @workers = $self->workers or return;
    my $pid = $workers[ int($pick * @workers) ];
    $self->{expected}{$pid} = 1;
    kill 'KILL', $pid;
    return $pid;
}

# A new binary takes over the sockets: USR2, WINCH, QUIT.
sub upgrade {
    my ($self) = @_;

    my $old = $self->master or die "nginx is gone\n";
    kill 'USR2', $old;
    $self->_wait(sub {
        my $new = $self->master;
        return $new && $new != $old && scalar $self->workers($new);
    }, START_SECONDS, 'the new binary');
    kill 'WINCH', $old;
    my $new = $self->master;            # a child of the old master, too
    $self->_wait(sub { !grep { $_ != $new } $self->workers($old) }, STOP_SECONDS,
                 'old workers to leave');
    kill 'QUIT', $old;
    $self->_wait(sub { _gone($old) }, STOP_SECONDS, 'the old master to leave');
    return;
}

# New lines of the error log that no fault explains.
sub faults {
    my ($self) = @_;

    my @faults;
    for my $log ($self->{log}, "$self->{dir}/stderr.log") {
        open my $fh, '<', $log or next;
        seek $fh, $self->{read}{$log} // 0, 0;
        while (my $line = <$fh>) {
            next if $line !~ /\[(?:alert|crit|emerg)\]|Sanitizer|runtime error:|exited on signal/;
            next if $line =~ /process (\d+) exited on signal 9\b/ && $self->{expected}{$1};
            chomp $line;
            push @faults, "nginx: $line";
        }
        $self->{read}{$log} = tell $fh;
    }
    return @faults;
}

sub _wait {
    my ($self, $code, $seconds, $what) = @_;

    my $deadline = time + $seconds;
    while (time < $deadline) {
        return if $code->();
        sleep 0.01;
    }
    die "timed out waiting for $what\n";
}

# reaped by us as the nearest subreaper, or simply gone
sub _gone {
    my ($pid) = @_;
    return 1 if waitpid($pid, WNOHANG) == $pid;
    return !kill 0, $pid;
}

sub _find {
    my ($name) = @_;

    for my $dir (split(/:/, $ENV{PATH} // ''), '/usr/sbin', '/sbin') {
        return "$dir/$name" if -x "$dir/$name";
    }
    die "$name is not installed\n";
}

sub _number {
    my ($file) = @_;
    my ($pid) = _slurp($file) =~ /\A(\d+)/;
    return $pid;
}

sub _slurp {
    my ($path) = @_;
    open my $fh, '<', $path or return '';
    local $/ = undef;
    return scalar(<$fh>) // '';
}

1;
