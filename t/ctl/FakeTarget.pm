package FakeTarget;

# An HTTP server whose answers a test decides, to see what seckillctl verify
# makes of them: keep-alive, one process, loopback or unix socket.  It believes
# any token.

use strict;
use warnings;

use Errno qw(EINTR);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use JSON ();
use MIME::Base64 qw(decode_base64url);
use POSIX ();

my @living;    # pids of this process's servers

# Starts a server; each request calls answer->($method, $path, $user, $body),
# which returns (status, body), or nothing to close the connection.  setup runs
# first in the server's process; its value is the fifth argument of answer.
sub start {
    my ($class, %args) = @_;

    my $listen =
        $args{sock}
        ? IO::Socket::UNIX->new(Local => $args{sock}, Listen => 128)
        : IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 128);
    die "cannot listen: $!" if !$listen;

    my $self = bless { port => $args{sock} ? undef : $listen->sockport, owner => $$ }, $class;

    my $parent = $$;
    my $pid    = fork // die "fork: $!";
    if ($pid == 0) {
        my $ok = eval { _serve($listen, $parent, %args); 1 };
        print STDERR "FakeTarget: $@" if !$ok;
        POSIX::_exit($ok ? 0 : 1);    # no END of the test in here
    }

    close $listen;
    $self->{pid} = $pid;
    push @living, $pid;

    return $self;
}

# The stock nginx without our module: text of the http block; it ends with us.
sub nginx {
    my ($class, $dir, $http) = @_;

    mkdir $dir or die "mkdir $dir: $!";
    my $temp = join '', map {"    ${_}_temp_path $dir/$_;\n"}
        qw(client_body proxy fastcgi uwsgi scgi);
    open my $conf, '>', "$dir/nginx.conf" or die "nginx.conf: $!";
    print {$conf} "daemon off;\nworker_processes 2;\npid $dir/pid;\n"
        . "error_log $dir/error.log;\nevents { worker_connections 4096; }\n"
        . "http {\n    access_log off;\n    keepalive_requests 1000000;\n$temp$http\n}\n";
    close $conf or die "nginx.conf: $!";

    my $self = bless { owner => $$ }, $class;
    my $pid  = fork // die "fork: $!";
    if ($pid == 0) {
        exec {'nginx'} 'nginx', '-p', "$dir/", '-e', "$dir/error.log", '-c', "$dir/nginx.conf"
            or POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    push @living, $pid;

    return $self;
}

sub url { return "http://127.0.0.1:$_[0]{port}/seckill" }

sub stop {
    my ($self) = @_;
    _end(delete $self->{pid}) if $self->{pid};
    return;
}

sub _end {
    my ($pid) = @_;
    @living = grep { $_ != $pid } @living;
    kill 'TERM', $pid;
    waitpid $pid, 0;
    return;
}

sub DESTROY {
    my ($self) = @_;
    $self->stop if $self->{owner} == $$;
    return;
}

END {
    my $exit = $?;
    _end($_) for @living;
    $? = $exit;
}

sub _serve {
    my ($listen, $parent, %args) = @_;

    @living = ();
    local $SIG{PIPE} = 'IGNORE';
    local $SIG{TERM} = 'DEFAULT';

    my $state  = $args{setup} ? $args{setup}->() : undef;
    my $select = IO::Select->new($listen);
    my %input;

    while (getppid() == $parent) {
        for my $fh ($select->can_read(0.5)) {
            if ($fh == $listen) {
                my $client = $listen->accept or next;
                $select->add($client);
                $input{$client} = '';
                next;
            }
            my $n = sysread $fh, $input{$fh}, 65536, length $input{$fh};
            next if !defined $n && $! == EINTR;
            my $alive = $n;
            while ($alive && (my @request = _request(\$input{$fh}))) {
                my ($status, $body) = $args{answer}->(@request, $state);
                $alive = defined $status && _answer($fh, $status, $body);
            }
            if (!$alive) {
                $select->remove($fh);
                delete $input{$fh};
                close $fh;
            }
        }
    }

    return;
}

# Takes one whole request off the text: (method, path, user, body), or nothing.
sub _request {
    my ($input) = @_;

    ${$input} =~ /\A(.*?)\r\n\r\n/s or return;
    my ($head, $at) = ($1, $+[0]);
    my $length = $head =~ /^content-length:\s*(\d+)/mi ? $1 : 0;
    return if length ${$input} < $at + $length;

    my $body = substr ${$input}, $at, $length;
    substr ${$input}, 0, $at + $length, '';

    my ($method, $path) = $head =~ /\A(\S+) (\S+) HTTP\/1\.1\r?$/m or return;
    my ($claims) = $head =~ /^authorization: Bearer [^.]+\.([^.]+)\./mi;
    my $user = $claims ? JSON->new->decode(decode_base64url($claims))->{sub} : undef;

    return ($method, $path, $user, $body);
}

sub _answer {
    my ($fh, $status, $body) = @_;

    my $text = "HTTP/1.1 $status X\r\nContent-Type: application/json\r\nContent-Length: "
        . length($body) . "\r\n\r\n$body";

    return (syswrite($fh, $text) // 0) == length $text;
}

1;
