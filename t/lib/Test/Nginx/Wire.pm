package Test::Nginx::Wire;

# The client side of the runner: the sections of a block as bytes on a socket,
# and the bytes that come back as responses.

use strict;
use warnings;

use Errno qw(EAGAIN EINTR EWOULDBLOCK);
use IO::Select;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

use constant READ_SIZE => 65_536;

# Returns the exchanges of a block, in order: { packets => [..], methods => [..] }.
# One exchange is one connection; pipelined requests share one.
sub exchanges {
    my ($block) = @_;

    if (defined(my $raw = $block->raw_request)) {
        my @packets = map { _packet($_) } ref $raw eq 'ARRAY' ? @{$raw} : $raw;
        my ($method) = $packets[0]{value} =~ /^(\w+) /;
        my $middle = seconds(scalar $block->raw_request_middle_delay);
        $_->{delay_before} //= $middle for @packets[1 .. $#packets];
        return { packets => \@packets, methods => [$method // 'GET'] };
    }

    if (defined(my $list = $block->pipelined_requests)) {
        my @parts = map { _request($block, $list->[$_], $_, $_ < $#{$list}) } 0 .. $#{$list};
        return { packets => [map { @{ $_->{packets} } } @parts],
                 methods => [map { @{ $_->{methods} } } @parts] };
    }

    my $request = $block->request;
    return if !defined $request;

    my @list = ref $request eq 'ARRAY' ? @{$request} : ($request);

    return map { _request($block, $list[$_], $_, 0) } 0 .. $#list;
}

# one request of the list: a text, or an array of packets
sub _request {
    my ($block, $spec, $index, $keep) = @_;

    my @packets = map { _packet($_) } ref $spec eq 'ARRAY' ? @{$spec} : $spec;
    my $first   = $packets[0];
    my $text    = $first->{value};

    $text =~ s/\A(?:[ \t]*(?:#[^\n]*)?\n)+//;
    my ($line, $body) = split /\r?\n/, $text, 2;
    my ($method, $uri, $version) = $line =~ m{^\s*(\S+)(?:\s+(.*?))?(?:\s+(HTTP/\d+\.\d+))?\s*$}
        or die "cannot read the request \"$line\"\n";
    $uri = '/' if !defined $uri || $uri eq '';
    $version //= 'HTTP/1.1';
    $body    //= '';

    my $headers = $block->more_headers;
    $headers = $headers->[$index] if ref $headers eq 'ARRAY';
    my @headers = grep {/\S/} split /\r?\n/, $headers // '';

    if (!grep {/^(?:Content-Length|Transfer-Encoding)\s*:/i} @headers) {
        $body =~ s/\A\s+|\s+\z//g if @packets == 1;
        my $length = length $body;
        $length += length $packets[$_]{value} for 1 .. $#packets;
        push @headers, "Content-Length: $length" if $length > 0;
    }
    unshift @headers, 'Connection: ' . ($keep ? 'keep-alive' : 'close')
        if !grep {/^Connection\s*:/i} @headers;
    unshift @headers, 'Host: localhost' if !grep {/^Host\s*:/i} @headers;

    $first->{value} = join("\r\n", "$method $uri $version", @headers, '', '') . $body;

    return { packets => \@packets, methods => [$method] };
}

sub _packet {
    my ($spec) = @_;

    my %packet = ref $spec eq 'HASH' ? %{$spec} : (value => $spec);
    utf8::encode($packet{value}) if utf8::is_utf8($packet{value});

    return \%packet;
}

# "50ms", "2s" or plain seconds as a number; undef for anything else.
sub seconds {
    my ($text) = @_;

    return if !defined $text || $text !~ /^\s*([\d.]+)\s*(ms|s)?/;
    return defined $2 && $2 eq 'ms' ? $1 / 1000 : $1;
}

# Runs one exchange against the port.  %how: timeout (seconds between two
# events), abort (a timeout is no failure), shutdown (argument of shutdown(2)
# after the last packet).  Returns the bytes read and what went wrong, if any.
sub talk {
    my ($port, $exchange, %how) = @_;

    local $SIG{PIPE} = 'IGNORE';

    my $socket = IO::Socket::INET->new(
        PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp', Timeout => $how{timeout})
        or return ('', "cannot connect: $!");
    $socket->sockopt(IO::Socket::INET::TCP_NODELAY(), 1) if IO::Socket::INET->can('TCP_NODELAY');
    $socket->blocking(0);

    my $state = { socket => $socket, in => '', eof => 0, timeout => $how{timeout} };
    my $gap   = @{ $exchange->{methods} } > 1 ? 0 : $ENV{TEST_NGINX_SLEEP} // 0.015;

    for my $i (0 .. $#{ $exchange->{packets} }) {
        my $packet = $exchange->{packets}[$i];
        my $delay  = seconds($packet->{delay_before}) // ($i > 0 ? $gap : 0);
        sleep $delay if $delay > 0;
        my $error = _send($state, $packet->{value});
        return ($state->{in}, $error) if $error && !$how{abort};
        last if $error || $state->{eof} || $state->{broken};
    }
    shutdown $socket, $how{shutdown} if defined $how{shutdown};

    while (!$state->{eof}) {
        if (!_wait_for($state, 0)) {
            return ($state->{in}, $how{abort} ? undef : 'client socket timed out');
        }
        _receive($state);
    }

    return ($state->{in}, undef);
}

# reads while it writes, or both sides could wait for each other
sub _send {
    my ($state, $bytes) = @_;

    my $done = 0;
    while ($done < length $bytes && !$state->{eof} && !$state->{broken}) {
        my ($can_read, $can_write) = _wait_for($state, 1);
        return 'client socket timed out' if !$can_read && !$can_write;
        _receive($state) if $can_read;
        next if !$can_write;

        my $n = syswrite $state->{socket}, $bytes, length($bytes) - $done, $done;
        if (defined $n) {
            $done += $n;
        } elsif (!($!{EAGAIN} || $!{EINTR} || $!{EWOULDBLOCK})) {
            $state->{broken} = 1;    # it may still have answered
        }
    }

    return;
}

sub _wait_for {
    my ($state, $writing) = @_;

    my $set = IO::Select->new($state->{socket});
    my ($read, $write) = IO::Select->select($set, $writing ? $set : undef, undef, $state->{timeout});

    return (scalar @{ $read // [] }, scalar @{ $write // [] }) if $writing;
    return scalar @{ $read // [] };
}

sub _receive {
    my ($state) = @_;

    my $n = sysread $state->{socket}, $state->{in}, READ_SIZE, length $state->{in};
    return if !defined $n && ($!{EAGAIN} || $!{EINTR} || $!{EWOULDBLOCK});
    $state->{eof} = 1 if !$n;

    return;
}

# Splits bytes into the response to a request of this method and the rest.
# Returns { status, raw_headers, headers => [[name, value]..], body } and the
# rest, or nothing but undef and the reason.
sub response {
    my ($bytes, $method) = @_;

    while ($bytes =~ m{\AHTTP/1\.1 1\d\d [^\n]*\n(?:[^\n]+\n)*?\r?\n}) {
        $bytes = substr $bytes, $+[0];
    }

    $bytes =~ m{\A(HTTP/\d\.\d\s+(\d{3})[^\n]*\r?\n)} or return (undef, 'no status line');
    my %response = (status => $2, headers => [], body => '');
    my $end = index $bytes, "\r\n\r\n";
    return (undef, 'header without an end') if $end < 0;

    $response{raw_headers} = substr $bytes, 0, $end + 2;
    my $rest = substr $bytes, $end + 4;

    for my $line (split /\r\n/, substr $response{raw_headers}, length $1) {
        my ($name, $value) = $line =~ /^([^:\s]+):\s*(.*?)\s*$/ or return (undef, "bad header \"$line\"");
        push @{ $response{headers} }, [$name, $value];
    }

    if ($method eq 'HEAD' || $response{status} =~ /^(?:204|304)$/) {
        return (\%response, $rest);
    }

    my $coding = header(\%response, 'Transfer-Encoding') // '';
    my $length = header(\%response, 'Content-Length');

    if ($coding =~ /\bchunked\b/i) {
        ($response{body}, $rest, my $error) = _dechunk($rest);
        $response{error} = $error;
    } elsif (defined $length) {
        $response{error} = "body of " . length($rest) . " of $length bytes" if length $rest < $length;
        $response{body} = substr $rest, 0, $length;
        $rest = length $rest > $length ? substr $rest, $length : '';
    } else {
        ($response{body}, $rest) = ($rest, '');
    }

    return (\%response, $rest);
}

sub _dechunk {
    my ($bytes) = @_;

    my $body = '';
    while ($bytes =~ /\A([0-9a-fA-F]+)(?:;[^\r\n]*)?\r\n/) {
        my ($size, $start) = (hex $1, $+[0]);
        if ($size == 0) {
            return ($body, '', 'no end of the trailer') if $bytes !~ /\A[^\n]*\n(?:[^\r\n]+\r\n)*\r\n/;
            return ($body, substr($bytes, $+[0]));
        }
        return ($body . substr($bytes, $start), '', 'chunk is cut') if length $bytes < $start + $size + 2;
        $body .= substr $bytes, $start, $size;
        $bytes = substr $bytes, $start + $size + 2;
    }

    return ($body, $bytes, 'bad chunk size');
}

# The values of a header joined by ", ", or undef.
sub header {
    my ($response, $name) = @_;

    my @values = map { $_->[1] } grep { lc $_->[0] eq lc $name } @{ $response->{headers} };

    return @values ? join(', ', @values) : undef;
}

1;
