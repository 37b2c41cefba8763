package Chaos::Round;

# One sale under one or more faults: the crowd, the nemesis beside it, what an
# operator would do after a loss, and the judgement.

use strict;
use warnings;

use File::Copy qw(copy);
use File::Path qw(make_path);
use JSON::PP ();
use List::Util qw(max);
use Time::HiRes qw(sleep time);

use Chaos::Checker;
use Chaos::Crowd;
use Chaos::Facts;

use constant {
    TICK_SECONDS   => 0.1,
    DETECT_SECONDS => 10,
    RESTORE_SECONDS => 15,
    SHARE          => 0.6,      # units per user: it sells out, and not at once
    LOSS_SHARE     => 1,        # where Redis loses, it sells to the end
    MARGIN_MS      => 1500,     # a busy machine's, on top of P4
    SANITIZED_MS   => 5000,     # and with sanitizers
};

# stack, number, seed, users, span, faults; bare => 1: no probe, and the journals stay
sub new {
    my ($class, %args) = @_;

    my $self = bless { found => [], %args }, $class;
    $self->{id}    = 1000 + $self->{number};
    $self->{first} = 10_000_000 + 10_000 * $self->{number};
    $self->{lossy} = grep { $_->{loss} } @{ $self->{faults} };
    $self->{units} = int($self->{users} * ($self->{lossy} ? LOSS_SHARE : SHARE));
    $self->{goods} = Chaos::Stack::GOODS();
    $self->{name}  = join ' + ', map { $_->{name} } @{ $self->{faults} };

    return $self;
}

# Puts the sale up; some time before it begins, as a shop does.
sub prepare {
    my ($self) = @_;

    return if $self->{prepared}++;
    $self->{stack}->sale($self->{id}, $self->{units});
    return;
}

sub run {
    my ($self) = @_;

    srand $self->{seed} * 7919 + $self->{number};
    $self->{pick} = rand;
    my $began = time;
    my $ok = eval { $self->_sell; 1 };
    if (!$ok) {
        push @{ $self->{found} }, { rule => 'round', user => '-', text => "was not finished: $@" };
        kill 'KILL', $self->{pid} if $self->{pid};
    }
    $self->{seconds} = time - $began;

    return;
}

sub _journal {
    my ($self, $name) = @_;
    return $self->{stack}->t->dir . "/$self->{id}.$name";
}

sub _sell {
    my ($self) = @_;

    my $stack = $self->{stack};
    $self->prepare;
    $stack->found($self->{id});
    $_->{before} && $_->{before}->($stack, $self) for @{ $self->{faults} };

    my %crowd = (ports => [ map { $_->{port} } $stack->nodes ], key => $stack->{key}, activity => $self->{id},
                 first => $self->{first}, users => $self->{users});
    my $crowd = Chaos::Crowd->new(%crowd, seed => $self->{seed} + $self->{number}, span => $self->{span},
                                  patience => 6, journal => $self->_journal('crowd'));
    $self->{pid} = $crowd->start;
    $self->_strike;
    $self->_replay if grep { $_->{forgets} } @{ $self->{faults} };
    $self->{loss} ? $self->_after_loss : $self->{bare} || $self->_recover;
    kill 'USR1', $self->{pid};
    waitpid $self->{pid}, 0;
    delete $self->{pid};

    $self->{drained} = $stack->drained($self->{id});
    my @users = $self->_asked;
    my $audit = Chaos::Crowd->new(%crowd, audit => \@users, journal => $self->_journal('audit'));
    waitpid $audit->start, 0;
    $self->_judge;

    return;
}

# begin, hold, end; several one after the other, each lasting into the next
sub _strike {
    my ($self) = @_;

    my ($stack, @faults) = ($self->{stack}, @{ $self->{faults} });
    sleep 0.3 + rand 0.5;
    my $hold = max map { $_->{hold}[0] + rand($_->{hold}[1] - $_->{hold}[0]) } @faults;

    my @active;
    my $ok = eval {
        for my $fault (@faults) {
            $fault->{begin}->($stack, $self);
            push @active, $fault;
            sleep rand 0.3 if @faults > 1;
        }
        my $until = time + $hold;
        while (time < $until) {
            sleep TICK_SECONDS;
            $_->{tick} && $_->{tick}->($stack, $self) for @active;
        }
        1;
    };
    my $error = $@;
    for my $fault (@active) {
        eval { $fault->{end}->($stack, $self); 1 } or $error .= "$fault->{name} did not end: $@", $ok = 0;
    }
    die $error if !$ok;

    return;
}

# MySQL lost what it had committed: an operator reconciles after a failover.
sub _replay {
    my ($self) = @_;

    my $stack = $self->{stack};
    for my $id ($self->{id}, Chaos::Stack::PROBE_ACTIVITY()) {
        $stack->drained($id);
        my ($exit, $out, $err) = $stack->ctl('reconcile', $id, '--repair', 'replay', '--grace', '0s');
        # those that it has just queued may still be on their way
        push @{ $self->{found} }, { rule => 'replay', user => '-', text => "exit $exit: $out$err" }
            if $exit > 1;
    }
    return;
}

# how long after the end of the fault until a sale works again, and an order comes
sub _recover {
    my ($self) = @_;

    @{$self}{qw(sale_again order_again)} = $self->{stack}->probe;
    push @{ $self->{found} }, { rule => 'recovery', user => '-', text => 'no purchase became an order again' }
        if !defined $self->{order_again};
    return;
}

# Redis lost what it had accepted: that must be noticed, and restore must mend it.
sub _after_loss {
    my ($self) = @_;

    my ($stack, $loss) = ($self->{stack}, $self->{loss});
    my $began = time;
    my $gone  = $self->_vanished;
    $self->{note} = join ', ', grep {defined} $self->{note}, "$gone lost";
    my $must = $gone || $loss->{must};
    $stack->drained($self->{id}) if !$self->{hurry};
    for my $id ($self->{id}, Chaos::Stack::PROBE_ACTIVITY()) {
        my $seen = $self->_noticed($id, $must && $id == $self->{id} ? DETECT_SECONDS : 0);
        $self->{detected} = $seen if $id == $self->{id};
        push @{ $self->{found} }, { rule => 'noticed', user => '-', text => 'nobody noticed' }
            if $id == $self->{id} && $must && !$seen;
        next if !$seen;
        my ($exit, $out, $err) = $self->_restore($id);
        if ($exit != 0) {
            push @{ $self->{found} }, { rule => 'restore', user => '-', text => "exit $exit: $err" };
            $loss->{unrestored} = 1;
            next;
        }
        next if $id != $self->{id};
        my $told = JSON::PP->new->decode($out);
        # a purchase that was not answered may have been one, and its buyer may have heard so later
        $loss->{listed} = { map { $_->{user} => 1 } @{ $told->{lost} }, @{ $told->{maybe} } };
    }
    $loss->{unrestored} = 1 if !$self->{detected};
    $loss->{until} = time * 1000;
    @{$self}{qw(sale_again order_again)} = $stack->probe;
    $self->{restored} = time - $began;

    return;
}

# What an operator does: again while purchases are on their way to MySQL.
sub _restore {
    my ($self, $id) = @_;

    my $stack    = $self->{stack};
    my $deadline = time + RESTORE_SECONDS;
    my @told;
    do {
        @told = $stack->ctl('restore', $id, '--yes', '--json', map { ('--journal', $_->{journal}) } $stack->nodes);
        sleep 0.2 if $told[0] == 4;
    } while ($told[0] == 4 && time < $deadline);
    return @told;
}

# How many buyers of nginx' journal Redis has forgotten.
sub _vanished {
    my ($self) = @_;

    my ($stack, $gone) = ($self->{stack}, 0);
    my $buyers = { map { $_ => 1 } $stack->client->smembers($stack->key(order_users => $self->{id})) };
    for my $node ($stack->nodes) {
        open my $fh, '<', $node->{journal} or die "cannot read the journal of nginx: $!\n";
        while (my $line = <$fh>) {
            $gone++ if $line =~ /^1 accepted seckill \S+ \d+ $self->{id} \d+ \d+ (\d+) / && !$buyers->{$1};
        }
    }
    return $gone;
}

# The sale was paused, or a seq came a second time and its purchase is a letter.
sub _noticed {
    my ($self, $id, $seconds) = @_;

    my $stack    = $self->{stack};
    my $deadline = time + $seconds;
    do {
        my $state = $stack->client->hget($stack->key(activity => $id), 'state') // '';
        return $state if $state =~ /^(?:paused|lost)$/;
        sleep 0.1;
    } while (time < $deadline);
    for my $letter (@{ $stack->client->xrange($stack->key(dead => $id), '-', '+') }) {
        my %letter = @{ $letter->[1] };
        return 'letters' if ($letter{reason} // '') =~ /^(?:seq_conflict|over_limit)$/;
    }
    return;
}

# everybody who sent something
sub _asked {
    my ($self) = @_;

    my %users;
    Chaos::Crowd::each_line($self->_journal('crowd'), sub { $users{ $_[0]{user} } = 1 });
    return sort { $a <=> $b } keys %users;
}

sub _judge {
    my ($self) = @_;

    my $stack = $self->{stack};
    my @log   = ((map { $_->faults } $stack->nodes), $stack->daemon_faults);
    # the alarm is right where something was lost, and nowhere else
    @log = grep { !/ seckill redis lost data of activity \d+,/ } @log if $self->{loss};
    if (!$stack->daemon_alive) {
        push @log, sprintf 'seckilld ended by itself, wait status 0x%04x', $stack->{daemon}{status};
        $stack->daemon_start;
    }
    $self->{facts} = Chaos::Facts::read($stack, $self->{id});
    $self->{case}  = {
        goods => $self->{goods}, price => Chaos::Stack::PRICE(), product => $self->{id}, loss => $self->{loss}, detected => $self->{detected},
        window => $self->{window}, log => \@log, margin_ms => $stack->t->sanitized ? SANITIZED_MS : MARGIN_MS,
        journal => [ map { $self->_journal($_) } qw(crowd audit) ],
    };
    push @{ $self->{found} }, Chaos::Checker::check($self->{case}, $self->{facts});
    return if $self->{bare};

    $self->{felt} = $self->_felt;
    $self->_keep if @{ $self->{found} };
    unlink map { $self->_journal($_) } qw(crowd audit);

    return;
}

# how much of the fault anybody noticed: answers that were none, lines of the daemon
sub _felt {
    my ($self) = @_;

    my $felt = $self->{stack}->daemon_complaints;
    Chaos::Crowd::each_line($self->_journal('crowd'), sub {
        my ($answer) = @_;
        $felt++ if $answer->{outcome} ne 'answered' || $answer->{code} >= 50_000;
    });
    return $felt;
}

# evidence outlives the stack
sub _keep {
    my ($self) = @_;

    my $stack = $self->{stack};
    my $place = $stack->t->build . "/chaos/seed-$self->{seed}-round-$self->{number}";
    make_path($place);
    copy($self->_journal($_), "$place/$_.tsv") for qw(crowd audit);
    my $n = 0;
    for my $node ($stack->nodes) {
        $n++;
        copy($node->{log}, "$place/nginx-$n.log");
        copy($node->{journal}, "$place/accepted-$n.journal");
    }
    $n = 0;
    copy($_->{log}, sprintf '%s/seckilld-%02d.log', $place, ++$n) for @{ $stack->{daemons} };
    copy($stack->redis->{log}, "$place/redis.log");
    copy($stack->mysql->{log}, "$place/mysql.log");
    open my $fh, '>', "$place/facts.json" or return;
    print {$fh} JSON::PP->new->utf8->canonical->pretty->allow_nonref->encode($self->{facts});
    close $fh;
    $self->{kept} = $place;

    return;
}

1;
