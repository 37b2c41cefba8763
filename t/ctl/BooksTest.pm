package BooksTest;

# A CtlTest with sales that run: purchases through the real lua/admit.lua, a
# daemon that writes them, dead letters, and journals as nginx writes them.

use strict;
use warnings;

use File::Basename qw(dirname);
use lib dirname(__FILE__);
use parent -norequire, 'CtlTest';
use CtlTest;
use POSIX ();
use SignedJournal;
use Test::More ();

# A sale that is open, preheated by seckillctl; args as CtlTest::activity.
sub sale {
    my ($self, %args) = @_;

    my $id = $self->activity(start => -60, end => 3600, stock_limit => 10, %args);
    my ($exit, $out, $err) = $self->ctl('preheat', $id, '--late');
    Test::More::is($exit, 0, "activity $id is preheated") or Test::More::diag($err);

    return $id;
}

sub key { my ($self, $name, $id) = @_; return "seckill:$name:{$id}" }

# Buys through lua/admit.lua; a user is an id or [id, quantity].  Returns verdicts.
sub buy {
    my ($self, $id, @users) = @_;

    $self->{admit} //= do {
        open my $fh, '<:raw', $self->t->root . '/lua/admit.lua' or die "admit.lua: $!";
        local $/ = undef;
        <$fh>;
    };
    my @args = map { ref $_ ? ($_->[0], $_->[1], 'req', '') : ($_, 1, 'req', '') } @users;
    my @keys = map { $self->key($_, $id) } qw(activity stock order_users orders eligible);

    return $self->redis->eval($self->{admit}, scalar @keys, @keys, $id, scalar @users, 0, 0, @args)->[5];
}

# Redis forgets a buyer, and nobody can see it: facts as 0.1.0 made them.
sub unseen_loss {
    my ($self, $id, @users) = @_;
    $self->redis->hdel($self->key('activity', $id), 'buyers_extra');
    $self->redis->srem($self->key('order_users', $id), @users);
    return;
}

# The entries of a stream, oldest first: { id => .., user => .., ... }.
sub entries {
    my ($self, $id, $name) = @_;
    return map { { @{ $_->[1] }, id => $_->[0] } }
        $self->redis->xrange($self->key($name // 'orders', $id), '-', '+');
}

# What signs the journals of this shop.
sub signs {
    my ($self) = @_;
    return $self->{signs} //= SignedJournal->new(pack 'H*', $self->redis->hget('seckill:control', 'token_key'));
}

# A journal as a node writes it.  A part is an entry of the stream, or text: a line.
sub journal {
    my ($self, $name, @parts) = @_;

    my $signs = $self->signs;
    my $text  = "\n" . $signs->open_line . "\n";

    for my $part (@parts) {
        my $line = $part;
        if (ref $part) {
            my %e = (request_id => "r-$part->{user}", ext => '', %{$part}, time => $part->{accepted_ms} // 1);
            delete @e{qw(id v accepted_ms)};
            $e{request_id} = "r-$e{user}" if $e{request_id} eq 'req';
            $line = $signs->purchase(%e);
        }
        $text .= "\n$line\n";
    }

    return $self->t->file($name, $text);
}

sub start { my ($self) = @_; return $self->{daemon} = $self->t->seckilld($self->{conf}) }
sub halt  { my ($self) = @_; return $self->t->stop(delete $self->{daemon}) }

# Waits until nothing of the activities is unread or pending.
sub drain {
    my ($self, @ids) = @_;

    my $own = !$self->{daemon};
    $self->start if $own;
    for my $id (@ids) {
        $self->t->wait_for(sub {
            my ($exit, $json) = $self->ctl_json('queue', $id);
            $exit == 0 && $json->{unread} == 0 && $json->{pending} == 0;
        }, 20, "activity $id to be written");
    }
    $self->halt if $own;
    return;
}

# A purchase of a user that the daemon read, buried with its tombstone: what the
# daemon leaves behind, without the daemon.  Returns the letter's id.
sub bury {
    my ($self, $id, $user, %args) = @_;

    my ($entry) = grep { $_->{user} eq $user } $self->entries($id);
    my @fields = map { $_ => $entry->{$_} }
        qw(v user activity quantity epoch seq order_no accepted_ms request_id ext);

    $self->redis->xreadgroup('GROUP', 'seckilld', 'test-1', 'COUNT', 1000, 'STREAMS',
        $self->key('orders', $id), '>');
    $self->dbh->do('INSERT INTO seckill_records (user_id, activity_id, status) VALUES (?, ?, 2)',
        undef, $user, $id) if $args{tombstone} // 1;
    my $letter = $self->redis->xadd($self->key('dead', $id), '*', entry => $entry->{id},
        reason => 'data_error', error => 'test', @fields);
    $self->redis->set($self->key("result:$user", $id), '{"success":false,"reason":"data_error"}');
    $self->redis->xack($self->key('orders', $id), 'seckilld', $entry->{id});

    return $letter;
}

# The one activity of "reconcile --json"; exit code first.
sub reconcile {
    my ($self, $id, @args) = @_;

    my ($exit, $json, $err) = $self->ctl_json('reconcile', $id, '--grace', '0s', @args);

    return ($exit, $json->{activities}[0] // {}, $err);
}

# Findings as "kind user" lines.
sub found {
    my ($one) = @_;
    return [ map {"$_->{kind} $_->{user}"} @{ $one->{findings} // [] } ];
}

# The terms of the equation, in order.
sub units {
    my ($one) = @_;
    return [ @{ $one->{units} }{qw(limit remaining orders unread pending dead released missing)} ];
}

sub result {
    my ($self, $id, $user) = @_;
    return $self->redis->get($self->key("result:$user", $id));
}

# Runs several at the same moment; returns their [exit, stdout . stderr].
sub at_once {
    my ($self, @runs) = @_;

    my @pids;
    my $base = $self->t->dir . '/at-once';
    my $n = 0;

    for my $run (@runs) {
        my $file = "$base-" . ++$n;
        my $pid = fork // die "fork: $!";
        if (!$pid) {
            open STDIN,  '<',  '/dev/null';
            open STDOUT, '>',  $file;
            open STDERR, '>&', \*STDOUT;
            my @command = ($self->t->build . '/seckillctl', '-c', $self->{conf}, @{$run});
            { no warnings 'exec'; exec { $command[0] } @command; }
            POSIX::_exit(127);
        }
        push @pids, [ $pid, $file ];
    }

    return map {
        my ($pid, $file) = @{$_};
        waitpid $pid, 0;
        my $exit = $? >> 8;
        open my $fh, '<', $file or die "$file: $!";
        local $/ = undef;
        [ $exit, scalar <$fh> ];
    } @pids;
}

# A run that dies at a failpoint: kill -9.
sub ctl_dies {
    my ($self, $point, @args) = @_;

    local $ENV{SECKILLCTL_FAILPOINT} = $point;
    my ($exit, $out, $err) = $self->ctl(@args);
    Test::More::is($exit, 128 + 9, "\"@args\" is killed at $point")
        or Test::More::diag($out, $err);
    return;
}

# The ledger in short: "kind ref units target" without what preheat wrote.
sub books_ledger {
    my ($self, $id) = @_;

    return $self->dbh->selectcol_arrayref(
        'SELECT TRIM(CONCAT_WS(" ", kind, ref, units, target)) FROM seckill_stock_log '
            . 'WHERE activity_id = ? AND kind NOT IN ("preheat", "open") ORDER BY id',
        undef, $id);
}

1;
