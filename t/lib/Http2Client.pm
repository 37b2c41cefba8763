package Http2Client;

# One HTTP/2 connection in clear text, by prior knowledge, for what no client on
# the command line does: streams that are reset at a given moment, headers that
# come twice, bodies that stay away.
#
#   my $h2 = Http2Client->new($path_of_a_unix_socket);
#   my $id = $h2->request('POST', '/seckill/1001', [authorization => "Bearer $token"], body => '{}');
#   $h2->wait_for(sub { $h2->stream($id)->{ended} }, 5);
#   $h2->reset($id);
#
# A stream is { status, body, ended, reset }: "ended" by the server in order,
# "reset" with the code of its RST_STREAM.  Header blocks are sent as literals
# and read only as far as the status.

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(time);

use constant {
    DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4, PING => 6, GOAWAY => 7, WINDOW_UPDATE => 8,
    END_STREAM => 1, ACK => 1, END_HEADERS => 4, PADDED => 8, PRIORITY => 32,
    CANCEL => 8,
};

use constant PREFACE => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

# the static table of HPACK, from index 8 on
my @STATUS = (200, 204, 206, 304, 400, 404, 500);

sub new {
    my ($class, $path) = @_;

    my $socket = IO::Socket::UNIX->new(Peer => $path) or die "cannot connect to $path: $!\n";
    my $self = bless { socket => $socket, in => '', out => '', next => 1, streams => {} }, $class;

    # room for more answers than any test has
    $self->{out} = PREFACE . _frame(SETTINGS, 0, 0, '') . _frame(WINDOW_UPDATE, 0, 0, pack 'N', 1 << 24);
    $self->_write;

    return $self;
}

# Sends a request and returns its stream's id.  $headers: names and values in
# order.  body: sent with it; open: the stream is left open for a body that comes
# later, or never.
sub request {
    my ($self, $method, $path, $headers, %more) = @_;

    my $id = $self->{next};
    $self->{next} += 2;
    $self->{streams}{$id} = { body => '' };

    my @fields = (':method' => $method, ':scheme' => 'http', ':path' => $path, ':authority' => 'localhost', @{$headers});
    my $block  = '';
    while (my ($name, $value) = splice @fields, 0, 2) {
        $block .= "\x10" . _text($name) . _text($value);
    }
    my $end = defined $more{body} || $more{open} ? 0 : END_STREAM;
    $self->{out} .= _frame(HEADERS, END_HEADERS | $end, $id, $block);
    $self->{out} .= _frame(DATA, END_STREAM, $id, $more{body}) if defined $more{body};
    $self->_write;

    return $id;
}

# A piece of the body of an open stream; $last: there is no more.
sub data {
    my ($self, $id, $bytes, $last) = @_;

    $self->{out} .= _frame(DATA, $last ? END_STREAM : 0, $id, $bytes);
    $self->_write;
    return;
}

# The client does not want these any more.
sub reset {    ## no critic (ProhibitBuiltinHomonyms)
    my ($self, @ids) = @_;

    $self->{out} .= _frame(RST_STREAM, 0, $_, pack 'N', CANCEL) for @ids;
    $self->_write;
    return;
}

sub stream { return $_[0]{streams}{ $_[1] } }

# The server said that it takes no more streams, or went.
sub going { return $_[0]{going} || $_[0]{gone} }

# Reads until the code says yes; whether it did in time.
sub wait_for {
    my ($self, $code, $seconds) = @_;

    my $end = time + $seconds;
    while (!$code->()) {
        my $left = $end - time;
        return 0 if $left <= 0 || $self->{gone};
        $self->_read if IO::Select->new($self->{socket})->can_read($left);
    }
    return 1;
}

# Waits until all of these were ended by the server, and returns them.
sub answers {
    my ($self, $seconds, @ids) = @_;

    my @streams = map { $self->stream($_) } @ids;
    $self->wait_for(sub { !grep { !$_->{ended} } @streams }, $seconds);
    return @streams;
}

sub close {    ## no critic (ProhibitBuiltinHomonyms)
    my ($self) = @_;
    return close $self->{socket};
}

sub _frame {
    my ($type, $flags, $id, $payload) = @_;
    return substr(pack('N', length $payload), 1) . pack('C C N', $type, $flags, $id) . $payload;
}

# length in seven bits, then eight more at a time; no Huffman code
sub _text {
    my ($text) = @_;

    my $n = length $text;
    return chr($n) . $text if $n < 127;

    my $length = chr 127;
    $n -= 127;
    while ($n >= 128) {
        $length .= chr($n % 128 + 128);
        $n >>= 7;
    }
    return $length . chr($n) . $text;
}

sub _write {
    my ($self) = @_;

    while ($self->{out} ne '') {
        my $n = syswrite $self->{socket}, $self->{out};
        if (!defined $n) {
            $self->{gone} = 1;
            return;
        }
        substr $self->{out}, 0, $n, '';
    }
    return;
}

sub _read {
    my ($self) = @_;

    my $n = sysread $self->{socket}, $self->{in}, 65_536, length $self->{in};
    if (!$n) {
        $self->{gone} = 1;
        return;
    }
    while (length $self->{in} >= 9) {
        my ($high, $low, $type, $flags, $id) = unpack 'C n C C N', $self->{in};
        my $length = ($high << 16) + $low;
        last if length $self->{in} < 9 + $length;
        my $payload = substr $self->{in}, 9, $length;
        substr $self->{in}, 0, 9 + $length, '';
        $self->_take($type, $flags, $id, $payload);
    }
    return;
}

sub _take {
    my ($self, $type, $flags, $id, $payload) = @_;

    my $stream = $self->{streams}{$id};

    if    ($type == SETTINGS && !($flags & ACK)) { $self->{out} .= _frame(SETTINGS, ACK, 0, '') }
    elsif ($type == PING && !($flags & ACK))     { $self->{out} .= _frame(PING, ACK, 0, $payload) }
    elsif ($type == GOAWAY)                      { $self->{going} = 1 }
    elsif ($type == RST_STREAM)                  { $stream->{reset} = unpack 'N', $payload }
    elsif ($type == HEADERS)                     { $stream->{status} = _status($flags, $payload) }
    elsif ($type == DATA)                        { $stream->{body} .= $payload }

    if (($type == HEADERS || $type == DATA) && $flags & END_STREAM) {
        $stream->{ended} = time;
    }
    $self->_write;
    return;
}

# nginx writes it first, after the size of its table at most
sub _status {
    my ($flags, $block) = @_;

    die "a header block that nginx does not write\n" if $flags & (PADDED | PRIORITY);
    $block =~ s/^[\x20-\x3f]//;
    my $first = ord $block;

    return $STATUS[($first & 0x7f) - 8] if $first & 0x80;
    return substr $block, 2, 3 if $block =~ /^[\x08\x48]\x03/;
    die sprintf "a status that starts with %02x\n", $first;
}

1;
