package Chaos::Proxy;

# A wire that can be cut: a process between a client and a server on unix
# sockets that knows where packets begin and end (Redis: a command or a reply;
# MySQL: a packet with its four bytes of header), passes all on, and cuts the
# connection at every n-th packet that matches, in turn
#
#   before       the request is dropped
#   half         half of the request went through
#   after        the request went through, its answer is dropped
#   half-answer  half of the answer came back
#
# swap => { text => text of the same length } replaces bytes of a request, for
# tests that let the server run something else than the client asked for.

use strict;
use warnings;

use Errno qw(EINTR);
use IO::Select;
use IO::Socket::UNIX;
use POSIX ();
use Socket qw(SOMAXCONN);

use Resp qw(resp_length);

use Chaos::Process;

use constant MODES => qw(after before half-answer half);

# kind redis or mysql, sock, target; every (0: never cuts), match (a pattern on
# the request), from (which packet first), swap
sub new {
    my ($class, %args) = @_;

    my $self = bless { every => 0, from => 1, match => qr/./s, swap => {}, %args }, $class;

    unlink $self->{sock};
    my $listen = IO::Socket::UNIX->new(Local => $self->{sock}, Listen => SOMAXCONN)
        or die "cannot listen on $self->{sock}: $!\n";
    my $parent = $$;
    $self->{pid} = fork // die "fork: $!\n";
    if (!$self->{pid}) {
        Chaos::Process::end_with($parent);
        eval { $self->_serve($listen); 1 } or print STDERR "proxy: $@";
        POSIX::_exit(1);
    }
    close $listen;

    return $self;
}

sub stop {
    my ($self) = @_;

    return if !$self->{pid};
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    delete $self->{pid};
    unlink $self->{sock};
    return;
}

# How often it has cut.
sub cuts {
    my ($self) = @_;
    return -s "$self->{sock}.cuts" // 0;
}

# Length of the first whole packet of the bytes, or undef.
sub packet_length {
    my ($kind, $bytes, $answer) = @_;

    if ($kind eq 'mysql') {
        return if length $bytes < 4;
        my $length = 4 + unpack 'V', substr($bytes, 0, 3) . "\0";
        return length $bytes >= $length ? $length : undef;
    }
    return resp_length($bytes, 0);
}

# --- the process

sub _serve {
    my ($self, $listen) = @_;

    open $self->{log}, '>', "$self->{sock}.cuts" or die "cannot write $self->{sock}.cuts: $!\n";
    $self->{log}->autoflush(1);
    my $set = IO::Select->new($listen);
    my %side;           # fd => [link, its own end, the other end]
    $self->{seen} = $self->{cut} = 0;

    while (1) {
        for my $socket ($set->can_read) {
            if ($socket == $listen) {
                my $client = $listen->accept or next;
                my $server = IO::Socket::UNIX->new(Peer => $self->{target});
                next if !$server;                   # as if nobody listened
                my $link = { client => $client, server => $server, request => '', answer => '' };
                $side{ fileno $client } = [$link, 'client'];
                $side{ fileno $server } = [$link, 'server'];
                $set->add($client, $server);
                next;
            }
            # closed a moment ago, with its other end
            next if !defined fileno $socket;
            my ($link, $from) = @{ $side{ fileno $socket } // next };
            next if $self->_pass($link, $from);

            for my $end (@{$link}{qw(client server)}) {
                $set->remove($end);
                delete $side{ fileno $end };
                close $end;
            }
        }
    }
}

# Reads from one end and writes to the other; 0 when both are to be closed.
sub _pass {
    my ($self, $link, $from) = @_;

    my ($to, $buffer) = $from eq 'client' ? ('server', 'request') : ('client', 'answer');
    my $n = sysread $link->{$from}, $link->{$buffer}, 65_536, length $link->{$buffer};
    return 1 if !defined $n && $! == EINTR;
    return 0 if !$n;

    # what the server says first, and all while a wire is whole, needs no reading
    if ($from eq 'server' && !$link->{doom}) {
        my $bytes = $link->{answer};
        $link->{answer} = '';
        return _send($link->{client}, $bytes);
    }
    if ($from eq 'server') {
        return $self->_cut($link->{doom}) if $link->{doom} eq 'after';
        my $half = int(length($link->{answer}) / 2);
        _send($link->{client}, substr $link->{answer}, 0, $half);
        return $self->_cut($link->{doom});
    }

    while (defined(my $length = packet_length($self->{kind}, $link->{request}))) {
        my $packet = substr $link->{request}, 0, $length, '';
        $self->_request($link, $packet) or return 0;
    }
    return 1;
}

sub _request {
    my ($self, $link, $packet) = @_;

    for my $old (keys %{ $self->{swap} }) {
        $packet =~ s/\Q$old\E/$self->{swap}{$old}/g;
    }
    if ($self->{every} && $packet =~ $self->{match}) {
        my $n = ++$self->{seen} - $self->{from};
        if ($n >= 0 && $n % $self->{every} == 0) {
            my $mode = (MODES)[ $self->{cut}++ % 4 ];
            return $self->_cut($mode) if $mode eq 'before';
            if ($mode eq 'half') {
                _send($link->{server}, substr $packet, 0, int(length($packet) / 2));
                return $self->_cut($mode);
            }
            $link->{doom} = $mode;
        }
    }

    return _send($link->{server}, $packet);
}

sub _cut {
    my ($self, $mode) = @_;
    print { $self->{log} } '.';
    return 0;
}

sub _send {
    my ($socket, $bytes) = @_;

    my $done = 0;
    while ($done < length $bytes) {
        my $n = syswrite $socket, $bytes, length($bytes) - $done, $done;
        next if !defined $n && $! == EINTR;
        return 0 if !defined $n;
        $done += $n;
    }
    return 1;
}

1;
