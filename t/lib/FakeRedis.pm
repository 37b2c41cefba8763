package FakeRedis;

# A Redis that misbehaves by a script: a helper process on a unix socket and a
# loopback port.  It stands in front of a real Redis and passes everything on
# that no rule names; without one it answers the handshake itself and nil to the
# rest.  Every command it hears is in a log that the test reads.
#
# A rule is one line, "COMMAND [/PATTERN/] [COUNT]: ACTION":
#
#   COMMAND    first word of a command, "SCRIPT LOAD", or CONNECT, which is a
#              connection before its first command; FACTS, CONTROL and
#              BOUGHT are the calls of these scripts, EVALSHA all others
#   /PATTERN/  only commands whose text, words joined by blanks, match
#   COUNT      which ones since clear(), of those that the rule names:
#              "2", "1-3", "4+"; all when not given
#   ACTION     pass                 as if there were no rule
#              error TEXT           "-TEXT", without running it
#              reply VALUE          without running it: +OK, :7, "text", nil, [1 2 "x"]
#              delay MS             run it, answer MS milliseconds later
#              stall MS             wait MS milliseconds, then run it
#              close                close the connection, without running it
#              run close            run it, then close instead of answering
#              run silent           run it, never answer
#              silent               never answer; the connection stays open
#              bytes [MS]           run it, answer byte by byte, MS (1) apart
#              half [close]         run it, send half of the answer
#              garbage              send what is not the Redis protocol
#              send BYTES           as they are, "~" for a line end, without running it
#              twice                run it, send the answer two times
#
# The first rule that fits counts.  One process serves one connection, so that
# a slow one holds up no other.

use strict;
use warnings;

use Carp qw(croak);
use Cwd qw(abs_path);
use Digest::SHA qw(sha1_hex);
use Errno qw(EINTR);
use File::Basename qw(dirname);
use Fcntl qw(:flock SEEK_SET);
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Resp qw(resp_length);
use Socket qw(SOMAXCONN IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(sleep time);

use constant PR_SET_PDEATHSIG => 1;
my %prctl = (x86_64 => 157, aarch64 => 167);

# the scripts that only read, by their SHA-1
my $root = dirname(dirname(dirname(abs_path(__FILE__))));
my %readers = map { sha1_hex(_read("$root/lua/$_.lua")) => uc } qw(facts control bought);

# what hiredis and Redis call a protocol error
use constant GARBAGE => "HTTP/1.1 400 Bad Request\r\nServer: not redis\r\n\r\n";

# Starts one.  dir: a private folder; real: path of the unix socket of the Redis
# behind it, or none; name: of its files, "fake".
sub new {
    my ($class, %args) = @_;

    my $base = "$args{dir}/" . ($args{name} // 'fake');
    my $self = bless {
        owner => $$,
        real  => $args{real},
        sock  => "$base.sock",
        log   => "$base.log",
        rules => "$base.rules",
    }, $class;

    unlink $self->{sock};
    $self->{listen} = [
        IO::Socket::UNIX->new(Local => $self->{sock}, Listen => SOMAXCONN),
        IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => SOMAXCONN),
    ];
    croak "cannot listen: $!" if grep { !$_ } @{ $self->{listen} };
    $self->{port} = $self->{listen}[1]->sockport;
    $self->clear($args{rules} // '');
    $self->start;

    return $self;
}

sub sock { return $_[0]{sock} }
sub port { return $_[0]{port} }
sub pid  { return $_[0]{pid} }

# New rules from now on; forgets what it has heard.
sub clear {
    my ($self, $rules) = @_;

    _parse_rules($rules // '');
    _write($self->{rules}, $rules // '');
    _write($self->{log}, '');
    return;
}

# New rules from now on; goes on counting.
sub rules {
    my ($self, $rules) = @_;

    _parse_rules($rules);
    _write($self->{rules}, $rules);
    return;
}

# Every command since clear(), as "WORD WORD ...", oldest first; with a name
# only those.  CONNECT stands for each connection.
sub commands {
    my ($self, $name) = @_;

    open my $fh, '<:raw', $self->{log} or croak "cannot read $self->{log}: $!";
    chomp(my @lines = <$fh>);

    return @lines if !defined $name;
    return grep {/^\Q$name\E(?: |\z)/i} @lines;
}

# Starts it again after stop().
sub start {
    my ($self) = @_;

    $self->{pid} = _child($$);
    return if $self->{pid};

    eval { $self->_serve; 1 } or print STDERR "FakeRedis: $@";
    POSIX::_exit(1);
}

# Ends it with every connection.  Whoever connects now waits in the queue of the
# socket, as with a Redis that was stopped.
sub stop {
    my ($self) = @_;

    return if !$self->{pid} || $self->{owner} != $$;

    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    delete $self->{pid};
    return;
}

sub DESTROY {
    my ($self) = @_;

    local ($?, $@, $!);
    $self->stop;
    return;
}

# --- the helper process

# fork, and a child that ends with this process
sub _child {
    my ($parent) = @_;

    my $pid = fork // croak "fork: $!";
    return $pid if $pid;

    my $call = $prctl{ (POSIX::uname())[4] };
    syscall $call, PR_SET_PDEATHSIG, POSIX::SIGKILL() if defined $call;
    POSIX::_exit(1) if getppid != $parent;
    $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP CHLD __DIE__);
    $SIG{PIPE} = 'IGNORE';

    return 0;
}

sub _serve {
    my ($self) = @_;

    $SIG{CHLD} = 'IGNORE';
    my $set = IO::Select->new(@{ $self->{listen} });

    while (1) {
        for my $listener ($set->can_read) {
            my $client = $listener->accept or next;
            if (!_child($$)) {
                setsockopt $client, IPPROTO_TCP, TCP_NODELAY, 1 if $client->isa('IO::Socket::INET');
                eval { $self->_connection($client); 1 } or print STDERR "FakeRedis: $@";
                POSIX::_exit(0);
            }
            close $client;
        }
    }
}

sub _connection {
    my ($self, $client) = @_;

    close $_ for @{ $self->{listen} };
    my %peer = (client => $client, in => '');

    return if !$self->_act(\%peer, [ 'CONNECT' ], '');

    while (1) {
        my ($words, $bytes) = _command(\%peer);
        return if !$words;
        return if !$self->_act(\%peer, $words, $bytes);
    }
}

# Hears one command; 0 when the connection is to be closed.
sub _act {
    my ($self, $peer, $words, $bytes) = @_;

    my ($verb, @args) = split ' ', $self->_hear($words);
    my $connect = $words->[0] eq 'CONNECT';
    my $text = join ' ', @args;

    return 0 if $verb eq 'close';
    return _idle($peer) if $verb eq 'silent';
    return _send($peer, "-$text\r\n") if $verb eq 'error';
    return _send($peer, GARBAGE) if $verb eq 'garbage';
    return _send($peer, _encode($text)) if $verb eq 'reply';
    return _send($peer, $text =~ s/~/\r\n/gr) if $verb eq 'send';

    sleep $args[0] / 1000 if $verb eq 'stall';
    return 1 if $connect;

    my $reply = $self->_run($peer, $words, $bytes);
    return 0 if !defined $reply;

    if ($verb eq 'run') {
        return $text eq 'close' ? 0 : _idle($peer);
    }
    sleep $args[0] / 1000 if $verb eq 'delay';
    $reply .= $reply if $verb eq 'twice';
    if ($verb eq 'half') {
        _send($peer, substr $reply, 0, int(length($reply) / 2));
        return $text eq 'close' ? 0 : _idle($peer);
    }
    if ($verb eq 'bytes') {
        for my $byte (split //, $reply) {
            _send($peer, $byte) or return 0;
            sleep(($args[0] // 1) / 1000);
        }
        return 1;
    }

    return _send($peer, $reply);
}

# Writes a command to the log and finds its rule.  The lock makes the counts of
# all connections one.
sub _hear {
    my ($self, $words) = @_;

    my @words = @{$words};
    if (@words > 1 && uc $words[0] eq 'EVALSHA' && $readers{ $words[1] }) {
        splice @words, 0, 2, $readers{ $words[1] };
    }
    my $line = join ' ', map { my $w = $_; $w =~ s/[\r\n]+/ /g; substr $w, 0, 2000 } @words;
    my $action = 'pass';

    open my $log, '+>>:raw', $self->{log} or die "cannot open $self->{log}: $!\n";
    while (!flock $log, LOCK_EX) {
        die "cannot lock $self->{log}: $!\n" if $! != EINTR;
    }
    seek $log, 0, SEEK_SET;
    chomp(my @before = <$log>);
    syswrite $log, "$line\n";

    for my $rule (_parse_rules(_read($self->{rules}))) {
        next if !_fits($rule, $line);
        my $count = 1 + grep { _fits($rule, $_) } @before;
        next if $count < $rule->{from} || $count > $rule->{to};
        $action = $rule->{action};
        last;
    }
    close $log;

    return $action;
}

sub _fits {
    my ($rule, $line) = @_;

    return 0 if $line !~ /^\Q$rule->{command}\E(?: |\z)/i;
    return !defined $rule->{pattern} || $line =~ /$rule->{pattern}/;
}

sub _parse_rules {
    my ($text) = @_;

    my @rules;
    for my $line (grep { /\S/ && !/^\s*#/ } split /\n/, $text) {
        $line =~ m{^\s*([A-Za-z]+(?:\ [A-Za-z]+)?)(?:\s+/(.*?)/)?(?:\s+(\d+)(\+|-(\d+))?)?\s*:\s*(.*?)\s*$}x
            or croak "FakeRedis: cannot read the rule \"$line\"";
        my %rule = (command => $1, pattern => $2, action => $6, from => $3 // 1,
                    to => defined $5 ? $5 : defined $4 || !defined $3 ? 9**9 : $3);
        $rule{action} =~ m{^(?:pass|close|silent|garbage|twice|run\ (?:close|silent)|half(?:\ close)?
                           |bytes(?:\ \d+)?|(?:delay|stall)\ \d+|(?:error|reply|send)\ .+)$}x
            or croak "FakeRedis: unknown action \"$rule{action}\"";
        push @rules, \%rule;
    }

    return @rules;
}

# The answer, from the Redis behind or of our own; undef when that has gone.
sub _run {
    my ($self, $peer, $words, $bytes) = @_;

    return _handshake($words) if !defined $self->{real};

    $peer->{real} //= IO::Socket::UNIX->new(Peer => $self->{real}) or return;
    print { $peer->{real} } $bytes;
    $peer->{real}->flush;
    $peer->{back} //= '';

    while (1) {
        my $length = resp_length($peer->{back}, 0);
        if (defined $length) {
            return substr $peer->{back}, 0, $length, '';
        }
        my $n = sysread $peer->{real}, $peer->{back}, 65_536, length $peer->{back};
        next if !defined $n && $! == EINTR;
        return if !$n;
    }
}

# what a client needs before its first real command
sub _handshake {
    my ($words) = @_;

    my $name = uc $words->[0];
    return "+OK\r\n" if $name =~ /^(?:AUTH|SELECT|CLIENT|SET|FLUSHALL)$/;
    return "+PONG\r\n" if $name eq 'PING';
    return _encode('"' . sha1_hex($words->[2]) . '"') if $name eq 'SCRIPT' && uc $words->[1] eq 'LOAD';
    return "-NOSCRIPT No matching script. Please use EVAL.\r\n" if $name eq 'EVALSHA';
    if ($name eq 'TIME') {
        my $now = time;
        return _encode(sprintf '["%d" "%d"]', int $now, ($now - int $now) * 1_000_000);
    }

    return "\$-1\r\n";
}

# +OK  :7  "text"  nil  [item item ..]
sub _encode {
    my ($text) = @_;

    my @tokens = $text =~ /(\[|\]|"(?:[^"\\]|\\.)*"|[^\s\[\]]+)/g;
    my $bytes = _encode_next(\@tokens);
    die "cannot read the reply \"$text\"\n" if !defined $bytes || @tokens;

    return $bytes;
}

sub _encode_next {
    my ($tokens) = @_;

    my $token = shift @{$tokens} // return;

    if ($token eq '[') {
        my @items;
        while (@{$tokens} && $tokens->[0] ne ']') {
            push @items, _encode_next($tokens);
        }
        shift @{$tokens} // return;
        return '*' . @items . "\r\n" . join '', @items;
    }
    return "\$-1\r\n"      if $token eq 'nil';
    return "$token\r\n"    if $token =~ /^[+:-]/;
    return ":$token\r\n"   if $token =~ /^\d+$/;
    return                 if $token !~ /^"(.*)"$/s;

    (my $string = $1) =~ s/\\(.)/$1/g;
    return '$' . length($string) . "\r\n$string\r\n";
}

# The next command as words and as bytes; nothing when the client has gone.
sub _command {
    my ($peer) = @_;

    while (1) {
        if ($peer->{in} =~ /\A\*/) {
            my $length = resp_length($peer->{in}, 0);
            if (defined $length) {
                my $bytes = substr $peer->{in}, 0, $length, '';
                return (_words($bytes), $bytes);
            }
        } elsif ($peer->{in} =~ s/\A([^\n]*?)\r?\n//) {
            return ([split ' ', $1], "$1\r\n") if $1 ne '';
            next;
        }
        my $n = sysread $peer->{client}, $peer->{in}, 65_536, length $peer->{in};
        next if !defined $n && $! == EINTR;
        return if !$n;
    }
}

sub _words {
    my ($bytes) = @_;

    my @words;
    pos($bytes) = index($bytes, "\r\n") + 2;
    while ($bytes =~ /\G\$(\d+)\r\n/gc) {
        push @words, substr $bytes, pos $bytes, $1;
        pos($bytes) = pos($bytes) + $1 + 2;
    }

    return \@words;
}

sub _send {
    my ($peer, $bytes) = @_;

    my $done = 0;
    while ($done < length $bytes) {
        my $n = syswrite $peer->{client}, $bytes, length($bytes) - $done, $done;
        next if !defined $n && $! == EINTR;
        return 0 if !defined $n;
        $done += $n;
    }

    return 1;
}

# reads and says nothing until the client leaves
sub _idle {
    my ($peer) = @_;

    while (1) {
        my $n = sysread $peer->{client}, my $dropped, 65_536;
        next if !defined $n && $! == EINTR;
        return 0 if !$n;
    }
}

sub _write {
    my ($path, $text) = @_;

    open my $fh, '>:raw', "$path.new" or croak "cannot write $path: $!";
    print {$fh} $text;
    close $fh or croak "cannot write $path: $!";
    rename "$path.new", $path or croak "cannot rename $path.new: $!";
    return;
}

sub _read {
    my ($path) = @_;

    open my $fh, '<:raw', $path or croak "cannot read $path: $!";
    local $/ = undef;
    return scalar(<$fh>) // '';
}

1;
