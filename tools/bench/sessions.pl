#!/usr/bin/env perl
#
# Opaque tokens for the bench.
#
#   sessions.pl COUNT TOKENS COMMANDS
#
# Writes one random token per line to TOKENS, and to COMMANDS, in Redis'
# protocol, what makes the n-th of them a session of user n.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);

my ($count, $tokens, $commands) = @ARGV;
@ARGV == 3 or die "usage: sessions.pl COUNT TOKENS COMMANDS\n";

open my $random, '<:raw', '/dev/urandom' or die "/dev/urandom: $!\n";
open my $out, '>', $tokens or die "$tokens: $!\n";
open my $redis, '>', $commands or die "$commands: $!\n";

for my $user (1 .. $count) {
    read($random, my $bytes, 16) == 16 or die "/dev/urandom: $!\n";
    my $token = unpack 'H*', $bytes;
    my @command = ('SET', 'seckill:session:' . sha256_hex($token), $user);

    print {$out} "$token\n";
    print {$redis} '*' . @command . "\r\n", map { '$' . length($_) . "\r\n$_\r\n" } @command;
}

close $out or die "$tokens: $!\n";
close $redis or die "$commands: $!\n";
