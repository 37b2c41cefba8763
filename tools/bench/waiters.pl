#!/usr/bin/env perl
#
# The crowd of tools/bench/waiters.sh.
#
#   waiters.pl NAME PORT WORKER REDIS TOKENS COUNT QUERY ACCEPT
#
# Opens COUNT connections that wait for their result, publishes the results on the
# Redis with that socket, and prints what a waiter cost the process WORKER, how
# long after the first PUBLISH the answers were read here, and what processor time
# the worker needed for it, which depends less on who else runs.

use strict;
use warnings;

use IO::Poll ();
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Time::HiRes qw(sleep time);

use constant SECONDS => 30;
use constant BATCH   => 1000;
use constant CROWD   => 500;

@ARGV == 8 or die "usage: waiters.pl NAME PORT WORKER REDIS TOKENS COUNT QUERY ACCEPT\n";
my ($name, $port, $worker, $redis, $tokens, $count, $query, $accept) = @ARGV;

sub connection {
    return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) // die "cannot connect: $!\n";
}

sub status {
    my ($metric) = @_;

    my $socket = connection();
    print {$socket} "GET /status HTTP/1.0\r\n\r\n";
    local $/ = undef;
    my ($value) = <$socket> =~ /^$metric (\d+)$/m;
    return $value // die "no $metric\n";
}

# bytes that the worker holds besides what it shares
sub private_bytes {
    open my $fh, '<', "/proc/$worker/statm" or die "worker $worker: $!\n";
    my (undef, $pages, $shared) = split ' ', <$fh>;
    return ($pages - $shared) * POSIX::sysconf(POSIX::_SC_PAGESIZE());
}

# seconds of processor that the worker has used
sub processor {
    open my $fh, '<', "/proc/$worker/schedstat" or die "worker $worker: $!\n";
    my ($ns) = split ' ', <$fh>;
    return $ns / 1e9;
}

sub come {
    my ($from, $to, $token) = @_;

    my @sockets = map { connection() } $from .. $to;
    for my $i (0 .. $#sockets) {
        syswrite $sockets[$i], "GET /buy/result/1$query HTTP/1.1\r\nHost: localhost\r\nAccept: $accept\r\n"
            . "Connection: close\r\nAuthorization: Bearer $token->[$from + $i]\r\n\r\n";
    }
    return @sockets;
}

# In scripts of a thousand, one after another.
sub publish {
    my $socket = IO::Socket::UNIX->new(Peer => $redis) // die "redis: $!\n";
    my $script = q{for i = ARGV[1], ARGV[2] do redis.call('PUBLISH', KEYS[1], string.format('%d %s', i, ARGV[3])) end};
    my $result = '{"success":true,"order_id":1,"order_no":"26112910203040500100100000011001"}';

    for (my $from = 1; $from <= $count; $from += BATCH) {
        my $to = $from + BATCH - 1;
        my @command = ('EVAL', $script, 1, 'seckill:results:{1}', $from, $to < $count ? $to : $count, $result);
        syswrite $socket, '*' . @command . "\r\n" . join '', map { '$' . length($_) . "\r\n$_\r\n" } @command;
        my $answer = <$socket>;
        die "redis: $answer" if $answer !~ /^\$-1/;
    }
    return;
}

# Seconds after $began at which each answer was here.
sub hear {
    my ($began, @sockets) = @_;

    my %text = map { fileno($_) => '' } @sockets;
    my %by   = map { fileno($_) => $_ } @sockets;
    my @seconds;

    while (%by && time < $began + SECONDS) {
        my @poll = map { ($_ => IO::Poll::POLLIN()) } keys %by;
        IO::Poll::_poll(100, @poll);
        while (my ($fd, $events) = splice @poll, 0, 2) {
            next if !$events;
            my $n = sysread $by{$fd}, $text{$fd}, 4096, length $text{$fd};
            if ($text{$fd} =~ /\{"code":1,/) {
                push @seconds, time - $began;
                delete $by{$fd};
            } elsif (!$n) {
                die "a connection ended without a result: $text{$fd}\n";
            }
        }
    }
    die keys(%by) . " were not told\n" if %by;
    return sort { $a <=> $b } @seconds;
}

open my $fh, '<', $tokens or die "$tokens: $!\n";
chomp(my @token = ('', <$fh>));

# the first makes what all share: the client of Redis, the hub, nginx' own tables
my @sockets = come(1, 1, \@token);
sleep 0.02 while status('seckill_waiters') < 1;
my $before = private_bytes();

# not more at once than may ask Redis at once
my $end = time + SECONDS;
for (my $from = 2; $from <= $count; $from += CROWD) {
    my $to = $from + CROWD - 1;
    push @sockets, come($from, $to < $count ? $to : $count, \@token);
    sleep 0.01 while status('seckill_waiters') < @sockets && time < $end;
}
my $waiting = status('seckill_waiters');
die "$waiting of $count wait\n" if $waiting != $count;
my $after = private_bytes();

my ($used, $began) = (processor(), time);
defined(my $child = fork) or die "fork: $!\n";
if ($child == 0) {
    publish();
    POSIX::_exit(0);
}
my @seconds = hear($began, @sockets);
$used = processor() - $used;
waitpid $child, 0;
die "results were not published\n" if $?;

printf "  %-14s %6d waiters  %6.2f KiB each  told after: median %.3f s, 99%% %.3f s, last %.3f s; %.3f s of the worker's processor\n", $name, $count,
    ($after - $before) / 1024 / ($count - 1), $seconds[$count / 2], $seconds[$count * 0.99], $seconds[-1], $used;
