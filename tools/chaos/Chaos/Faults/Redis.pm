package Chaos::Faults::Redis;

# What happens to Redis, and to the links to it.

use strict;
use warnings;

use IO::Socket::UNIX;
use Time::HiRes qw(sleep time);

use constant {
    LAG_MS       => 300,    # how far behind a replica may be that is cut off
    SAMPLE_TICKS => 8,      # sizes of the AOF that are remembered
    ALONE_SECONDS => 0.3,   # a node that was not told sells alone
};

sub faults {
    return (
        { name => 'redis-kill', party => 'redis', hold => [0.3, 1.2],
          begin => sub { $_[0]->t->kill9($_[0]->redis) },
          end   => \&_restart },
        { name => 'redis-freeze', party => 'redis', hold => [0.3, 2.5],
          begin => sub { kill 'STOP', $_[0]->redis->{pid} },
          end   => sub { kill 'CONT', $_[0]->redis->{pid} } },
        { name => 'redis-script-flush', party => 'redis', hold => [0.8, 1.5],
          begin => \&_flush, tick => \&_flush, end => \&_flush },
        { name => 'redis-oom', party => 'redis', hold => [0.4, 1.5],
          begin => sub { $_[0]->client->config_set('maxmemory', 1) },
          end   => sub { $_[0]->client->config_set('maxmemory', 0) } },
        { name => 'redis-misconf', party => 'redis', hold => [0.4, 1.5],
          begin => \&_fail_save, end => \&_save_again },
        { name => 'redis-readonly', party => 'redis', hold => [0.4, 1.5],
          begin => sub { $_[0]->client->replicaof('127.0.0.1', 1) },
          end   => sub { $_[0]->client->replicaof('NO', 'ONE') } },
        { name => 'redis-busy', party => 'redis', hold => [0.6, 1.5],
          begin => \&_occupy, end => \&_script_kill },
        { name => 'redis-everysec-loss', party => 'redis', hold => [0.9, 1.3], loss => 1,
          begin => \&_everysec, tick => \&_sample, end => \&_power_cut },
        { name => 'redis-promote', party => 'redis', hold => [0.3, 0.6], loss => 1,
          before => \&_replicate, begin => \&_isolate, end => \&_promote },
        { name => 'redis-promote-one-told', party => 'redis', hold => [0.3, 0.6], loss => 1,
          before => \&_replicate, begin => sub { _part($_[0]); _isolate(@_) }, end => \&_promote_for_one },
        { name => 'cut-reply-promote', party => 'nginxredis-redis', hold => [0.5, 0.8], loss => 1,
          before => \&_replicate, begin => sub { _cut_replies(@_); _isolate(@_) },
          end   => sub { _promote(@_); $_[0]->mend('nginx-redis') } },
        { name => 'cut-nginx-redis', party => 'nginxredis-redis', hold => [0.8, 1.8],
          begin => sub { _cut($_[0], 'nginx-redis', $_[1]) },
          end   => sub { $_[0]->mend('nginx-redis') } },
        { name => 'cut-reply', party => 'nginxredis-redis', hold => [0.8, 1.8],
          begin => \&_cut_replies, end => sub { $_[0]->mend('nginx-redis') } },
        { name => 'cut-daemon-redis', party => 'daemonredis-redis', hold => [0.8, 1.8],
          begin => sub { _cut($_[0], 'daemon-redis', $_[1]) },
          end   => sub { $_[0]->mend('daemon-redis') } },
        { name => 'cut-settle', party => 'daemonredis-redis', hold => [0.8, 1.8],
          begin => sub { _cut($_[0], 'daemon-redis', $_[1], match => qr/EVALSHA/, most => 3) },
          end   => sub { $_[0]->mend('daemon-redis') } },
    );
}

sub _restart {
    my ($stack) = @_;

    $stack->t->restart($stack->redis);
    delete $stack->redis->{client};
    return;
}

sub _flush { return $_[0]->client->script_flush }

# a folder where the snapshot shall go: rename() fails, whoever we are
sub _fail_save {
    my ($stack) = @_;

    my $client = $stack->client;
    unlink $stack->redis->{dir} . '/dump.rdb';
    mkdir $stack->redis->{dir} . '/dump.rdb' or die "mkdir: $!\n";
    $client->config_set('save', '3600 1');
    $client->bgsave;
    $stack->t->wait_for(sub { $client->info('persistence')->{rdb_last_bgsave_status} eq 'err' }, 10,
                        'a background save to fail');
    return;
}

sub _save_again {
    my ($stack) = @_;

    my $client = $stack->client;
    rmdir $stack->redis->{dir} . '/dump.rdb' or die "rmdir: $!\n";
    $client->bgsave;
    $stack->t->wait_for(sub { $client->info('persistence')->{rdb_last_bgsave_status} eq 'ok' }, 10,
                        'a background save to succeed');
    $client->config_set('save', '');
    return;
}

# somebody's endless script
sub _occupy {
    my ($stack) = @_;

    $stack->client->config_set('busy-reply-threshold', 100);
    my $socket = IO::Socket::UNIX->new(Peer => $stack->redis->{sock}) or die "connect: $!\n";
    my $script = 'while true do end';
    printf {$socket} "*3\r\n\$4\r\nEVAL\r\n\$%d\r\n%s\r\n\$1\r\n0\r\n", length $script, $script;
    $socket->flush;
    $stack->{busy} = $socket;
    return;
}

sub _script_kill {
    my ($stack) = @_;

    my $client = $stack->t->redis_client($stack->redis);
    $client->script_kill;
    delete $stack->{busy};
    return;
}

# --- losing what was accepted

# Power goes while only the system had it: the AOF ends where it was some time ago.
sub _everysec {
    my ($stack, $round) = @_;

    $stack->client->config_set('appendfsync', 'everysec');
    $round->{sizes} = [];
    return _sample($stack, $round);
}

sub _aof {
    my ($stack) = @_;
    my ($file) = sort { $b cmp $a } glob $stack->redis->{dir} . '/appendonlydir/*.incr.aof';
    return $file;
}

sub _sample {
    my ($stack, $round) = @_;

    push @{ $round->{sizes} }, [ time * 1000, -s _aof($stack) ];
    shift @{ $round->{sizes} } if @{ $round->{sizes} } > SAMPLE_TICKS;
    return;
}

sub _power_cut {
    my ($stack, $round) = @_;

    $stack->t->kill9($stack->redis);
    my $now = time * 1000;
    my ($when, $size) = @{ $round->{sizes}[ int($round->{pick} * @{ $round->{sizes} }) ] };
    my $file = _aof($stack);
    my $torn = $size + int($round->{pick} * 1000) % 97;     # amid a command, too
    truncate $file, $torn or die "truncate: $!\n" if $torn < -s $file;
    $round->{loss} = { from => $when, to => $now };
    return _restart($stack);
}

sub _replicate {
    my ($stack) = @_;

    my $replica = $stack->t->redis($stack->redis_conf, replicaof => "127.0.0.1 $stack->{redis}{port}",
                                   'replica-read-only' => 'yes');
    $stack->t->wait_for(sub { $replica->{client}->info('replication')->{master_link_status} eq 'up' }, 20,
                        'the replica to follow');
    # the link is "up" a second before a master streams to it
    my $mark = time;
    $stack->client->set('chaos:mark', $mark);
    $stack->t->wait_for(sub { ($replica->{client}->get('chaos:mark') // '') eq $mark }, 20,
                        'the replica to hear of a write');
    $stack->{replica} = $replica;
    return;
}

# the replica hears nothing any more, the master sells on
sub _isolate {
    my ($stack, $round) = @_;

    $round->{loss} = { from => time * 1000 - LAG_MS };
    $stack->{replica}{client}->replicaof('127.0.0.1', 1);
    return;
}

sub _promote {
    my ($stack, $round, @links) = @_;

    $stack->t->kill9($stack->redis);
    $round->{loss}{to} = time * 1000;
    my $replica = delete $stack->{replica};
    $replica->{client}->replicaof('NO', 'ONE');
    # started again it must not be a replica
    $replica->{client}->config_rewrite;
    $stack->{redis} = $replica;
    $stack->point($_) for @links ? @links : qw(nginx2-redis nginx-redis daemon-redis);
    return;
}

# The second node hears no more of Redis.
sub _part {
    my ($stack) = @_;

    $stack->point('nginx2-redis', $stack->t->dir . '/nobody.sock');
    $stack->drop_clients('nginx2-redis');
    return;
}

# The new master meets the node first that was not told what is lost.
sub _promote_for_one {
    my ($stack, $round) = @_;

    my @late = qw(nginx-redis daemon-redis);
    $stack->point($_, $stack->t->dir . '/nobody.sock') for @late;
    _promote($stack, $round, 'nginx2-redis');
    sleep ALONE_SECONDS;
    $stack->point($_) for @late;
    return;
}

# --- the wire

sub _cut_replies {
    my ($stack, $round) = @_;
    return _cut($stack, 'nginx-redis', $round, match => qr/EVALSHA/);
}

sub _cut {
    my ($stack, $link, $round, %how) = @_;

    my $most  = delete $how{most} // 7;
    my $every = 2 + int($round->{pick} * $most);
    $round->{note} = "every $every. packet";
    $stack->cut($link, every => $every, from => 1 + int($round->{pick} * 31) % 5, %how);
    return;
}

1;
