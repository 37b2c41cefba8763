package Chaos::Crowd;

# The buyers: some thousands of users, each a small state machine, over a fixed
# number of kept connections in one process of their own.  Every request leaves
# one line in a journal, whatever became of it; nothing is judged here.
#
# A user buys; one who was taken on asks for the result until it is final, and
# some post again; one who heard "nothing was taken" comes back; one who does
# not know (no answer, 50301) posts again or asks.
#
# A line of the journal, words between tabs:
#
#   sent received user kind outcome http code state token order_no quantity lag
#
#   sent, received  epoch milliseconds; received of a lost answer: when it was lost
#   kind            buy, poll or audit
#   outcome         answered; refused: no connection, nothing was sent; cut or
#                   timeout: it may have run
#   state           what the body says of the purchase: accepted, queueing,
#                   success, failed, or -
#   lag             longest time the crowd itself was away meanwhile, milliseconds

use strict;
use warnings;

use Digest::SHA qw(hmac_sha256);
use Errno qw(EINPROGRESS EAGAIN EINTR EWOULDBLOCK);
use IO::Handle;
use MIME::Base64 qw(encode_base64url);
use POSIX ();
use Socket qw(AF_INET SOCK_STREAM SOL_SOCKET SO_ERROR IPPROTO_TCP TCP_NODELAY inet_aton pack_sockaddr_in);
use Time::HiRes qw(time);

use Chaos::Process;

use constant {
    TIMEOUT_MS    => 5000,     # of one request: then its answer is given up
    POLL_FIRST_MS => 250,      # scaled down from the schedule that shops are told
    POLL_LAST_MS  => 1000,
    RETRY_MS      => 300,
    EXTRA_BUY     => 0.08,     # share of buyers who post again after they were taken on
    DOUBLE_CLICK  => 0.03,     # share of users who post twice at once
    PAIR          => 0.05,     # share of users who want two units
};

# ports (of the nodes, taken in turn), key (of the tokens), activity, first, users, span (seconds in which all
# arrive), seed, journal (path), connections, patience (seconds after the last
# arrival); audit => [users]: only ask each for the result.
sub new {
    my ($class, %args) = @_;

    my $self = bless {
        connections => 128,
        patience    => 8,
        span        => 2,
        %args,
        idle    => [],          # connections without a request
        busy    => {},          # fd => connection
        ready   => [],          # requests that wait for a connection
        due     => {},          # 10 ms slot => users to wake
        user    => {},
        active  => 0,
        lag     => 0,
        arrived_ms => 0,
        connects   => 0,
    }, $class;
    $self->{peers} = [ map { pack_sockaddr_in($_, inet_aton('127.0.0.1')) } @{ $self->{ports} } ];

    return $self;
}

# Starts the crowd as a process; returns its pid.
sub start {
    my ($self) = @_;

    my $parent = $$;
    my $pid    = fork // die "fork: $!\n";
    return $pid if $pid;

    Chaos::Process::end_with($parent);
    my $ok = eval { $self->run; 1 };
    print STDERR "crowd: $@" if !$ok;
    POSIX::_exit($ok ? 0 : 1);
}

# The token of a user, as a login service makes it; good for ten days, for the
# clock of a node may be wrong.
sub token {
    my ($key, $user) = @_;

    my $text = encode_base64url('{"typ":"JWT","alg":"HS256"}') . '.'
        . encode_base64url(sprintf '{"sub":"%s","exp":%d}', $user, time + 864_000);

    return "$text." . encode_base64url(hmac_sha256($text, $key));
}

# What a user wants to have with the order: bytes that a careless writer spoils.
sub ext {
    my ($user) = @_;
    return qq(sku "$user" it's \\ \xe7\xba\xa2\xe8\x89\xb2);
}

# The request_id of a user's n-th post.
sub request_id {
    my ($user, $n) = @_;
    return "crowd-$user-$n";
}

# The code, state, token and order_no of a body; code -1 when it is none of ours.
sub read_body {
    my ($body) = @_;

    return (-1, '-', '-', '-') if $body !~ /\A\{"code":(\d+),/;
    my $code  = $1;
    my $state = $code == 1 ? 'success' : $code == 2 ? 'failed' : '-';
    $state = $1 if $body =~ /"state":"(queueing|success|failed)"/;
    my ($token) = $body =~ /"queue_token":"([^"]+)"/;
    my ($order) = $body =~ /"order_no":"(\d+)"/;
    $state = 'accepted' if $code == 0 && defined $token;

    return ($code, $state, $token // '-', $order // '-');
}

sub run {
    my ($self) = @_;

    srand($self->{seed} // 1);
    open $self->{out}, '>', $self->{journal} or die "cannot write $self->{journal}: $!\n";
    $self->{stop_ms} = 1e15;
    local $SIG{USR1} = sub { $self->{hurry} = 1 };     # the fault is over

    my $now = time * 1000;
    $self->{slot} = int $now / 10;
    $self->_plan($now);

    while ($self->{active} > 0 && $now < $self->{stop_ms}) {
        $self->_select;
        my $was = $now;
        $now = time * 1000;
        $self->{lag} = $now - $was - 20;
        if ($self->{hurry}) {
            $self->{hurry} = 0;
            my $from = $now > $self->{arrived_ms} ? $now : $self->{arrived_ms};
            $self->{stop_ms} = $from + 1000 * $self->{patience};
        }
        $self->_wake($now);
        $self->_expire($now);
        $self->_send_ready($now);
    }
    $self->_lose($_, 'cut', $now) for grep { $_->{request} } values %{ $self->{busy} };
    close $self->{out} or die "cannot write $self->{journal}: $!\n";

    return;
}

# who comes when
sub _plan {
    my ($self, $now) = @_;

    if ($self->{audit}) {
        $self->{stop_ms} = $now + 30_000;
        my $n = 0;
        for my $user (@{ $self->{audit} }) {
            $self->_add($user, $now + 0.4 * $n++, audit => 1, tries => 0);
        }
        return;
    }

    for my $i (0 .. $self->{users} - 1) {
        my $user = $self->{first} + $i;
        my $at   = $now + 1000 * rand $self->{span};
        $self->_add($user, $at,
            quantity => rand() < PAIR         ? 2 : 1,
            double   => rand() < DOUBLE_CLICK ? 1 : 0,
            again    => rand() < EXTRA_BUY    ? 1 : 0,
            poll_ms  => POLL_FIRST_MS);
    }
    $self->{arrived_ms} = $now + 1000 * $self->{span};
    return;
}

sub _add {
    my ($self, $id, $at, %user) = @_;

    $self->{user}{$id} = { id => $id, phase => 'buy', flying => 0, %user };
    $self->{active}++;
    $self->_later($id, $at);
    return;
}

sub _later {
    my ($self, $id, $at_ms) = @_;
    push @{ $self->{due}{ int($at_ms / 10) } }, $id;
    return;
}

# users whose time has come put a request into the queue
sub _wake {
    my ($self, $now) = @_;

    my $slot = int($now / 10);
    for my $at ($self->{slot} - 1 .. $slot) {
        for my $id (@{ delete $self->{due}{$at} // [] }) {
            my $user = $self->{user}{$id} or next;
            $self->_ask($user, $user->{audit} ? 'audit' : $user->{phase});
            $self->_ask($user, 'buy') if delete $user->{double};
        }
    }
    $self->{slot} = $slot;
    return;
}

sub _ask {
    my ($self, $user, $kind) = @_;

    $user->{flying}++;
    push @{ $self->{ready} }, { user => $user, kind => $kind };
    return;
}

sub _bytes {
    my ($self, $request) = @_;

    my $user = $request->{user};
    my $auth = $user->{token} //= token($self->{key}, $user->{id});
    my $id   = $self->{activity};

    return "GET /seckill/result/$id HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer $auth\r\n\r\n"
        if $request->{kind} ne 'buy';

    my $ext  = ext($user->{id}) =~ s/(["\\])/\\$1/gr;
    my $body = qq({"quantity":$user->{quantity},"ext":"$ext"});
    return "POST /seckill/$id HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer $auth\r\n"
        . 'X-Request-ID: ' . request_id($user->{id}, ++$user->{posts}) . "\r\n"
        . 'Content-Length: ' . length($body) . "\r\n\r\n$body";
}

sub _send_ready {
    my ($self, $now) = @_;

    while (@{ $self->{ready} }) {
        my $peer = pop @{ $self->{idle} };
        $peer //= $self->_connect if keys %{ $self->{busy} } < $self->{connections};
        return if !$peer;

        my $request = shift @{ $self->{ready} };
        @{$peer}{qw(request out in sent lag)} = ($request, $self->_bytes($request), '', $now, 0);
        $self->{busy}{ $peer->{fd} } = $peer;
        $self->_write($peer, $now) if !$peer->{connecting};
    }
    return;
}

sub _connect {
    my ($self) = @_;

    socket my $socket, AF_INET, SOCK_STREAM, 0 or die "socket: $!\n";
    $socket->blocking(0);
    setsockopt $socket, IPPROTO_TCP, TCP_NODELAY, 1;
    my $done = connect $socket, $self->{peers}[ $self->{connects}++ % @{ $self->{peers} } ];
    # a refusal of the loopback is told at once, or when it is writable
    my $failed = !$done && $! != EINPROGRESS;

    return { socket => $socket, fd => fileno $socket, connecting => !$done, failed => $failed };
}

sub _select {
    my ($self) = @_;

    my ($in, $out) = ('', '');
    for my $peer (values %{ $self->{busy} }, @{ $self->{idle} }) {
        vec($in, $peer->{fd}, 1) = 1;
        vec($out, $peer->{fd}, 1) = 1 if $peer->{connecting} || ($peer->{out} // '') ne '';
    }
    my $n = select $in, $out, undef, 0.01;
    return if !defined $n || $n <= 0;

    my $now = time * 1000;
    for my $peer (values %{ $self->{busy} }) {
        if (vec $out, $peer->{fd}, 1) {
            $self->_connected($peer, $now) if $peer->{connecting};
            $self->_write($peer, $now) if $peer->{request} && !$peer->{connecting};
        }
        $self->_read($peer, $now) if $peer->{request} && vec $in, $peer->{fd}, 1;
    }
    # nginx closed it: no request is on it
    @{ $self->{idle} } = grep { !vec($in, $_->{fd}, 1) || $self->{busy}{ $_->{fd} } } @{ $self->{idle} };
    return;
}

sub _connected {
    my ($self, $peer, $now) = @_;

    my $error = unpack 'i', getsockopt $peer->{socket}, SOL_SOCKET, SO_ERROR;
    if ($error || $peer->{failed}) {
        $self->_lose($peer, 'refused', $now);
        return;
    }
    $peer->{connecting} = 0;
    return;
}

sub _write {
    my ($self, $peer, $now) = @_;

    my $n = syswrite $peer->{socket}, $peer->{out};
    if (!defined $n) {
        return if $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR;
        $self->_lose($peer, 'cut', $now);
        return;
    }
    substr $peer->{out}, 0, $n, '';
    $peer->{sent} = $now if $peer->{out} eq '';      # received whole, from here on
    return;
}

sub _read {
    my ($self, $peer, $now) = @_;

    my $n = sysread $peer->{socket}, $peer->{in}, 16_384, length $peer->{in};
    if (!defined $n) {
        return if $! == EAGAIN || $! == EWOULDBLOCK || $! == EINTR;
        $self->_lose($peer, 'cut', $now);
        return;
    }
    if ($n == 0) {
        # a kept connection that nginx closed before it read the request
        $self->_lose($peer, 'cut', $now);
        return;
    }

    my $end = index $peer->{in}, "\r\n\r\n";
    return if $end < 0;
    my $head = substr $peer->{in}, 0, $end;
    my ($status) = $head =~ m{\AHTTP/1\.1 (\d+)};
    my ($length) = $head =~ /^Content-Length: (\d+)/mi;
    return if length($peer->{in}) < $end + 4 + ($length // 0);

    my $body = substr $peer->{in}, $end + 4, $length // 0;
    my $close = !defined $length || $head =~ /^Connection: close/mi;
    $self->_finish($peer, $now, 'answered', $status // 0, read_body($body));
    delete $self->{busy}{ $peer->{fd} };
    push @{ $self->{idle} }, $peer if !$close;
    return;
}

sub _lose {
    my ($self, $peer, $outcome, $now) = @_;

    $self->_finish($peer, $now, $outcome, 0, -1, '-', '-', '-');
    delete $self->{busy}{ $peer->{fd} };
    return;
}

sub _expire {
    my ($self, $now) = @_;

    for my $peer (values %{ $self->{busy} }) {
        next if !$peer->{request};
        $peer->{lag} = $self->{lag} if $self->{lag} > $peer->{lag};
        if ($now - $peer->{sent} > TIMEOUT_MS) {
            $self->_lose($peer, $peer->{connecting} ? 'refused' : 'timeout', $now);
        }
    }
    return;
}

# one line of the journal, and what the user does next
sub _finish {
    my ($self, $peer, $now, $outcome, $http, $code, $state, $token, $order) = @_;

    my $request = delete $peer->{request};
    my $user    = $request->{user};
    printf { $self->{out} } "%.1f\t%.1f\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%d\t%d\n",
        $peer->{sent}, $now, $user->{id}, $request->{kind}, $outcome, $http, $code, $state,
        $token, $order, $user->{quantity} // 0, $peer->{lag};

    $user->{flying}--;
    if ($user->{audit}) {
        my $open = $outcome ne 'answered' || $http != 200 || $code == 0;
        return $self->_later($user->{id}, $now + 200) if $open && ++$user->{tries} < 50;
        return $self->_gone($user);
    }
    $self->_next($user, $now, $outcome, $code, $state) if !$user->{gone};
    return;
}

sub _next {
    my ($self, $user, $now, $outcome, $code, $state) = @_;

    return if $user->{flying};         # the other click decides
    my $final = $state eq 'success' || $state eq 'failed';

    if ($final || $code == 0 || $code == 40_004) {
        $user->{taken} = 1;
    }
    if ($final && !$user->{again}) {
        return $self->_gone($user);
    }
    if ($user->{taken} && $user->{again}) {            # clicks once more, then asks on
        @{$user}{qw(phase again)} = ('buy', 0);
        return $self->_later($user->{id}, $now + 20 + rand 200);
    }
    if ($user->{taken}) {
        $user->{phase} = 'poll';
        my $wait = $user->{poll_ms};
        $user->{poll_ms} = $wait * 1.5 > POLL_LAST_MS ? POLL_LAST_MS : $wait * 1.5;
        return $self->_later($user->{id}, $now + $wait * (0.9 + rand 0.2));
    }
    if ($outcome eq 'answered' && $code >= 40_000 && $code < 50_000 && $code != 40_003) {
        # nobody here: a user who only asked may still buy
        if ($code == 40_006 && $user->{phase} eq 'poll') {
            $user->{phase} = 'buy';
            return $self->_later($user->{id}, $now + RETRY_MS);
        }
        return $self->_gone($user);
    }

    my $unknown = $outcome ne 'refused' && $code != 50_302 && $code != 50_303;
    $user->{phase} = $unknown && rand() < 0.5 ? 'poll' : 'buy';
    $self->_later($user->{id}, $now + RETRY_MS * (0.7 + rand 0.6));
    return;
}

sub _gone {
    my ($self, $user) = @_;

    return if $user->{gone}++;
    $self->{active}--;
    return;
}

# --- reading a journal

# Calls code with a hash for each line.
sub each_line {
    my ($path, $code) = @_;

    my @names = qw(sent received user kind outcome http code state token order_no quantity lag);
    open my $fh, '<', $path or die "cannot read $path: $!\n";
    while (my $line = <$fh>) {
        chomp $line;
        my @words = split /\t/, $line;
        next if @words != @names;
        my %answer;
        @answer{@names} = @words;
        $code->(\%answer);
    }
    close $fh;
    return;
}

1;
