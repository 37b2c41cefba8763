package MysqlCut;

# A proxy in front of MySQL's socket that cuts one connection at a statement of our
# choice: before the server gets it, or after it has answered.

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;
use POSIX ();

# MysqlCut->new($dir, $back): listens at $dir/cut.sock.
sub new {
    my ($class, $dir, $back) = @_;

    my $self = bless { sock => "$dir/cut.sock", order => "$dir/cut.order", owner => $$ }, $class;
    my $listen = IO::Socket::UNIX->new(Local => $self->{sock}, Listen => 16) or die "listen: $!";

    $self->{pid} = fork // die "fork: $!";
    if ($self->{pid} == 0) {
        $self->serve($listen, $back);
        POSIX::_exit(0);
    }

    return $self;
}

sub sock { return $_[0]{sock} }

# cut('before' or 'after', 'text of the statement'): the next one that holds it.
sub cut {
    my ($self, $how, $text) = @_;
    open my $fh, '>', "$self->{order}.new" or die "$self->{order}: $!";
    print {$fh} "$how $text";
    close $fh or die "$self->{order}: $!";
    rename "$self->{order}.new", $self->{order} or die "$self->{order}: $!";
    return;
}

sub was_cut { return !-e $_[0]{order} }

sub order {
    my ($self, $data) = @_;

    open my $fh, '<', $self->{order} or return '';
    my ($how, $text) = split ' ', scalar <$fh>, 2;
    close $fh;
    return '' if index($data, $text) < 0;
    unlink $self->{order};
    return $how;
}

sub serve {
    my ($self, $listen, $back) = @_;

    my $select = IO::Select->new($listen);
    my (%peer, %client);

    while (getppid() == $self->{owner}) {
        for my $sock ($select->can_read(1)) {
            if ($sock == $listen) {
                my $client = $listen->accept or next;
                my $server = IO::Socket::UNIX->new(Peer => $back) or next;
                @peer{ $client, $server } = ($server, $client);
                $client{$client} = 1;
                $select->add($client, $server);
                next;
            }

            my $peer = $peer{$sock} or next;
            my $n = sysread $sock, my $data, 1 << 20;
            my $how = $n && $client{$sock} ? $self->order($data) : '';

            syswrite $peer, $data if $n && $how ne 'before';
            sysread $peer, my $lost, 65536 if $how eq 'after';
            next if $n && !$how;

            for my $end ($sock, $peer) {
                $select->remove($end);
                delete $peer{$end};
                delete $client{$end};
                close $end;
            }
        }
    }
    return;
}

sub DESTROY {
    my ($self) = @_;

    return if $$ != $self->{owner};
    local $?;
    kill TERM => $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

1;
