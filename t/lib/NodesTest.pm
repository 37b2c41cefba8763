package NodesTest;

# Several nginx nodes before one Redis, for t/e2e: sales, tokens, a crowd over
# kept connections, and what a node's process holds.  The servers are those of
# SeckillTest.

use strict;
use warnings;

use Digest::SHA qw(hmac_sha256);
use Exporter qw(import);
use IO::Select;
use IO::Socket::INET;
use MIME::Base64 qw(encode_base64url);
use Time::HiRes qw(sleep time);

our @EXPORT_OK = qw(burst code log_lines median now_ms sale tally token);

use constant KEY => 'a key of thirty-two bytes, or so';

# seconds for all the answers to one burst
use constant BURST_SECONDS => 30;

# A token of this user for an hour, without iat: clocks of nodes may differ.
sub token {
    my ($user) = @_;

    my $signed = encode_base64url('{"alg":"HS256"}') . '.'
               . encode_base64url(sprintf '{"sub":"%s","exp":%d}', $user, time + 3600);

    return "$signed." . encode_base64url(hmac_sha256($signed, KEY));
}

# Redis' clock.
sub now_ms {
    my ($redis) = @_;

    my $time = $redis->{client}->time;
    return $time->[0] * 1000 + int($time->[1] / 1000);
}

# Loads an activity.  start_ms and end_ms count from now; others as in the facts.
sub sale {
    my ($t, $redis, $id, %args) = @_;

    my %sale = (stock => 10, start_ms => -10_000, end_ms => 3_600_000, max_quantity => 1, epoch => 1, %args);
    my @keys = map {"seckill:$_:{$id}"} qw(activity stock order_users orders);
    my $now  = now_ms($redis);

    open my $fh, '<:raw', $t->root . '/lua/preheat.lua' or die "preheat.lua: $!\n";
    my $script = do { local $/ = undef; <$fh> };

    $redis->{client}->hsetnx('seckill:control', 'token_key', 'ab' x 32);
    $redis->{client}->sadd('seckill:activities', $id);
    my $answer = $redis->{client}->eval(
        $script, scalar @keys, @keys, 1, 1, '9.90', $sale{stock}, $now + $sale{start_ms},
        $now + $sale{end_ms}, $sale{max_quantity}, 0, $sale{epoch});
    die "preheat of $id: @{$answer}\n" if $answer->[0] ne 'created';
    $redis->{client}->hincrby('seckill:control', 'rev', 1);

    return $now;
}

# Sends requests [port, user, path], each to its port, over at most $connections
# in all, pipelined, all of them written before an answer is awaited.  Returns
# one { status, body, seconds } for each in the same order; status 0: none came.
sub burst {
    my ($connections, @requests) = @_;

    my (@lanes, %lane_of, @answers);
    for my $i (0 .. $#requests) {
        my ($port, $user, $path) = @{ $requests[$i] };
        my $lane = $lane_of{ $port . '/' . ($i % $connections) } //= do {
            my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port);
            push @lanes, { socket => $socket, out => '', in => '', waiting => [] };
            $lanes[-1];
        };
        $lane->{out} .= "POST $path HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                      . 'Authorization: Bearer ' . token($user) . "\r\n\r\n";
        push @{ $lane->{waiting} }, $i;
        $answers[$i] = { status => 0, body => '' };
    }
    @lanes = grep { $_->{socket} } @lanes;
    $_->{socket}->blocking(0) for @lanes;

    my $select = IO::Select->new(map { $_->{socket} } @lanes);
    my %by = map { $_->{socket} => $_ } @lanes;
    my $began = time;
    _send($_) for @lanes;
    while ($select->count && time < $began + BURST_SECONDS) {
        for my $socket ($select->can_read(0.05)) {
            my $lane = $by{$socket};
            my $n = sysread $socket, $lane->{in}, 65_536, length $lane->{in};
            next if !defined $n && $!{EAGAIN};
            _take($lane, \@answers, time - $began);
            $select->remove($socket) if !$n || !@{ $lane->{waiting} };
        }
        _send($_) for grep { length $_->{out} } @lanes;
    }

    return @answers;
}

sub _send {
    my ($lane) = @_;

    local $SIG{PIPE} = 'IGNORE';
    my $n = syswrite $lane->{socket}, $lane->{out};
    substr $lane->{out}, 0, $n, '' if $n;
    $lane->{out} = '' if !defined $n && !$!{EAGAIN};
    return;
}

# whole answers at the front of what has come
sub _take {
    my ($lane, $answers, $seconds) = @_;

    while ($lane->{in} =~ m{\AHTTP/1\.1 (\d+)(.*?)\r\n\r\n}s) {
        my ($status, $head, $length) = ($1, $2, $+[0]);
        my ($size) = $head =~ /\r\nContent-Length: (\d+)/i or return;
        last if length($lane->{in}) < $length + $size;
        my $text = substr $lane->{in}, 0, $length + $size, '';
        my $i = shift @{ $lane->{waiting} } // return;
        $answers->[$i] = { status => $status, body => substr($text, $length), seconds => $seconds };
    }
    return;
}

# The code of an answer, 0 when there was no answer of ours.
sub code {
    my ($answer) = @_;
    return $answer->{body} =~ /\A\{"code":(\d+),/ ? $1 : "status $answer->{status}";
}

# How many answers have which code.
sub tally {
    my %count;
    $count{ code($_) }++ for @_;
    return \%count;
}

# Lines of a node's error log but for the core's own about its clients.
sub log_lines {
    my ($t, $node) = @_;
    return scalar grep { !/ client 127\.0\.0\.1 closed keepalive connection/ } split /\n/, $t->log_text($node);
}

sub median {
    my @sorted = sort { $a <=> $b } @_;
    return $sorted[ $#sorted / 2 ];
}

1;
