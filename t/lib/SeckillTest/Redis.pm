package SeckillTest::Redis;

# A private Redis, a part of SeckillTest.

use strict;
use warnings;

use Carp qw(croak);
use File::Basename qw(basename);

# Starts a private Redis on a unix socket and a loopback port.  %conf are more
# lines of redis.conf; an array reference repeats a directive, undef drops it.
# Nothing is persisted unless asked: appendonly => 'yes'.  SECKILL_REDIS_SERVER is
# another program than redis-server, of another release or of Valkey.
sub redis {
    my ($self, %conf) = @_;

    my $dir  = $self->_place('redis');
    my $sock = "$dir/redis.sock";

    for my $try (1 .. 3) {
        my $port = $self->port;
        my %all  = (
            bind               => '127.0.0.1',
            port               => $port,
            unixsocket         => $sock,
            unixsocketperm     => '700',
            dir                => $dir,
            save               => '""',
            appendonly         => 'no',
            'maxmemory-policy' => 'noeviction',
            %conf,
        );
        my $text = '';
        for my $key (sort grep { defined $all{$_} } keys %all) {
            $text .= "$key $_\n" for ref $all{$key} ? @{ $all{$key} } : $all{$key};
        }
        my $path = $self->file(basename($dir) . '/redis.conf', $text);

        my $proc = $self->_start(
            kind => 'redis', dir => $dir, log => "$dir/redis.log",
            command => [$ENV{SECKILL_REDIS_SERVER} // 'redis-server', $path],
            death   => 'KILL',
        );
        $proc->{port} = $port;
        $proc->{sock} = $sock;
        $proc->{password} = $conf{requirepass};
        $proc->{ready} = sub { $self->_redis_answers($proc) };

        if ($self->_ready($proc)) {
            $proc->{client} = $self->redis_client($proc);
            return $proc;
        }
        $self->_forget($proc, qr/Address already in use/);
    }

    croak 'redis-server: no free port after 3 tries';
}

# Returns a new client of package Redis.pm, which connects again by itself.
sub redis_client {
    my ($self, $redis) = @_;

    require Redis;

    return Redis->new(
        sock => $redis->{sock}, reconnect => 5, every => 50_000,
        (defined $redis->{password} ? (password => $redis->{password}) : ()));
}

# A PONG, an error for want of a password, but not LOADING, means it is up.
sub _redis_answers {
    my ($self, $redis) = @_;

    require IO::Socket::UNIX;

    my $socket = IO::Socket::UNIX->new(Peer => $redis->{sock}) or return 0;
    print {$socket} "PING\r\n";
    my $line = <$socket> // '';

    return $line =~ /^(?:\+PONG|-NOAUTH)/ ? 1 : 0;
}

1;
