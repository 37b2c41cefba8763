package ReadmeRights;

# The users of Redis, with the rights that README grants them.

use strict;
use warnings;

use Test::More;

use constant USERS => qw(nginx seckilld seckillctl);

# Runs the lines of README, twice, for that changes nothing.  Returns the password
# files by user; the password is "<user>-word".
sub grant {
    my ($t, $redis) = @_;

    my $client = $redis->{client};
    my $readme = do { local (@ARGV, $/) = $t->root . '/README.md'; <> };

    for my $user (USERS) {
        my ($rights) = $readme =~ /ACL SETUSER $user reset on >\.\.\. (.*?)\n\n/s or die "README grants nothing to $user";
        $rights =~ s/\(\S+ ([^)]*)\)/$1/g if old($client);
        for (1, 2) {
            is(eval { $client->acl('SETUSER', $user, 'reset', 'on', ">$user-word", split ' ', $rights) } // $@, 'OK',
                "Redis takes the line of $user");
        }
    }
    $client->acl('LOG', 'RESET');

    return map { $_ => $t->file("$_.word", "$_-word\n", oct 600) } USERS;
}

# 6.2 has no parentheses, nor tells what a user may.
sub old { my ($client) = @_; return $client->info->{redis_version} =~ /^6\./ }

# What was denied since the last look, but for what the tool only tries.
sub denied {
    my ($client) = @_;

    my @log = map { my %l = @{$_}; "$l{username}: $l{reason} $l{object} $l{context}" } @{ $client->acl('LOG', 1000) };
    $client->acl('LOG', 'RESET');
    return [grep { !/\Aseckillctl: command config(?:\|get)? toplevel\z/ } @log];
}

1;
