package SeckillTest::Nginx;

# A private nginx with the module, a part of SeckillTest.

use strict;
use warnings;

use Carp qw(croak);
use File::Basename qw(basename);
use File::Path qw(make_path);
use IO::Socket::INET;

# Starts nginx with the module on a free loopback port.
#   http => text of the http block, location => text of the server block (wrapped
#   in "location /seckill/ {}" when it has no location of its own), main => text
#   of the main block, workers => n (1), log_level => info, redis => a redis()
#   and key_file => path for the usual zone, address and key, journal => path for
#   a journal, user => whose the workers are when the test is root (root).
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
    # journal => '': none, as with 0.1.0
    $http .= "\n    seckill_journal " . ($args{journal} // 'off') . ';'
        if $http !~ /^\s*seckill_journal\s/m && ($args{journal} // 'off') ne '';

    my $location = $args{location} // 'seckill on;';
    $location = "location /seckill/ {\n            $location\n        }"
        if $location !~ /^\s*location\b/m;

    my $workers = $args{workers}   // 1;
    my $level   = $args{log_level} // 'info';
    my $main    = ($> == 0 ? 'user ' . ($args{user} // 'root') . ";\n" : '') . ($args{main} // '');

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

sub _nginx_binary { return $ENV{TEST_NGINX_BINARY} // 'nginx' }

1;
