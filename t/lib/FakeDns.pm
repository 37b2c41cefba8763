package FakeDns;

# A name server for the tests: a helper process on a UDP port of 127.0.0.1 that
# answers A and AAAA questions from a table which the test may change at any
# time.  Every question it hears is in a log that the test reads.
#
# The table has a line for each name, "NAME [TTL] ADDRESS...", or one of these
# words in place of the addresses:
#
#   silent      no answer
#   servfail    a server that can't
#   delay MS ADDRESS...   the answer is late
#
# A name without a line does not exist.

use strict;
use warnings;

use Carp qw(croak);
use IO::Socket::INET;
use POSIX ();
use Socket qw(AF_INET AF_INET6 inet_pton);
use Time::HiRes qw(sleep);

use constant PR_SET_PDEATHSIG => 1;
my %prctl = (x86_64 => 157, aarch64 => 167);

use constant { A => 1, AAAA => 28, SERVFAIL => 2, NXDOMAIN => 3 };

# Starts one.  dir: a private folder.
sub new {
    my ($class, %args) = @_;

    my $self = bless {
        owner => $$,
        table => "$args{dir}/dns.table",
        log   => "$args{dir}/dns.log",
    }, $class;

    $self->{socket} = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Proto => 'udp')
        or croak "no UDP port: $!";
    $self->{port} = $self->{socket}->sockport;
    $self->table($args{table} // '');
    $self->forget;

    $self->{pid} = fork // croak "fork: $!";
    if ($self->{pid} == 0) {
        my $call = $prctl{ (POSIX::uname())[4] };
        syscall $call, PR_SET_PDEATHSIG, POSIX::SIGKILL() if defined $call;
        POSIX::_exit(1) if getppid != $self->{owner};
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP __DIE__);
        $SIG{CHLD} = 'IGNORE';
        eval { $self->_serve; 1 } or print STDERR "FakeDns: $@";
        POSIX::_exit(1);
    }

    return $self;
}

sub port { return $_[0]{port} }

# Answers from these lines from now on.
sub table {
    my ($self, $text) = @_;

    _write("$self->{table}.new", $text);
    rename "$self->{table}.new", $self->{table} or croak "cannot rename $self->{table}: $!";
    return;
}

# Forgets what it has heard.
sub forget {
    my ($self) = @_;
    _write($self->{log}, '');
    return;
}

# The questions since forget(), as "NAME TYPE", oldest first.
sub questions {
    my ($self) = @_;

    open my $fh, '<', $self->{log} or croak "cannot read $self->{log}: $!";
    chomp(my @lines = <$fh>);
    return @lines;
}

sub DESTROY {
    my ($self) = @_;

    return if !$self->{pid} || $self->{owner} != $$;
    local ($?, $@, $!);
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    return;
}

# --- the helper process

sub _serve {
    my ($self) = @_;

    while (1) {
        my $peer = $self->{socket}->recv(my $query, 512) // next;
        my ($answer, $delay) = $self->_answer($query);

        if ($delay) {
            fork // die "fork: $!\n" and next;
            sleep $delay / 1000;
            $self->{socket}->send($answer, 0, $peer);
            POSIX::_exit(0);
        }
        $self->{socket}->send($answer, 0, $peer) if defined $answer;
    }
}

# The answer to a question and how late it is; nothing to be silent.
sub _answer {
    my ($self, $query) = @_;

    my ($id, $flags) = unpack 'n n', $query;
    my ($at, @labels) = (12);
    while (my $len = ord substr $query, $at, 1) {
        push @labels, substr $query, $at + 1, $len;
        $at += 1 + $len;
    }
    my $name     = lc join '.', @labels;
    my $type     = unpack 'n', substr $query, $at + 1, 2;
    my $question = substr $query, 12, $at + 5 - 12;

    open my $log, '>>', $self->{log} or die "cannot write $self->{log}: $!\n";
    print {$log} $name, ' ', $type == AAAA ? 'AAAA' : $type == A ? 'A' : $type, "\n";
    close $log;

    my ($ttl, @words) = $self->_line($name);
    return if ($words[0] // '') eq 'silent';

    my $delay = 0;
    (undef, $delay, @words) = @words if ($words[0] // '') eq 'delay';

    my $code = !defined $ttl ? NXDOMAIN : ($words[0] // '') eq 'servfail' ? SERVFAIL : 0;
    my $family = $type == A ? AF_INET : $type == AAAA ? AF_INET6 : undef;
    my @records;
    for my $word (defined $family && !$code ? @words : ()) {
        my $address = inet_pton($family, $word) // next;
        push @records, pack 'n n n N n/a*', 0xC00C, $type, 1, $ttl, $address;
    }

    return (pack('n n n n n n', $id, 0x8180 | $flags & 0x0100 | $code, 1, scalar @records, 0, 0)
            . $question . join('', @records), $delay);
}

# What the table says of a name: TTL (1) and the words behind it.
sub _line {
    my ($self, $name) = @_;

    open my $fh, '<', $self->{table} or die "cannot read $self->{table}: $!\n";
    while (my $line = <$fh>) {
        my ($found, @words) = split ' ', $line;
        next if !defined $found || lc $found ne $name;
        return (@words && $words[0] =~ /^\d+\z/ ? shift @words : 1, @words);
    }

    return;
}

sub _write {
    my ($path, $text) = @_;

    open my $fh, '>', $path or croak "cannot write $path: $!";
    print {$fh} $text;
    close $fh or croak "cannot write $path: $!";
    return;
}

1;
