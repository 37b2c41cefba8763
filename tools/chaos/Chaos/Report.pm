package Chaos::Report;

# What is printed: a line per round, its violations by user, and in the end a
# table by fault, which a file can carry.

use strict;
use warnings;

use List::Util qw(max sum0);

use constant SHOWN => 10;       # violations of one rule in one round

my ($BEGIN, $END) = ('<!-- chaos: begin -->', '<!-- chaos: end -->');

sub new {
    my ($class, %args) = @_;
    return bless { rounds => [], skipped => [], began => time, %args }, $class;
}

sub skipped {
    my ($self, $fault, $why) = @_;

    print "skipped: $fault->{name}: $why\n";
    push @{ $self->{skipped} }, [ $fault->{name}, $why ];
    return;
}

sub violations { return sum0(map { scalar @{ $_->{found} } } @{ $_[0]{rounds} }) }

sub add {
    my ($self, $round) = @_;

    push @{ $self->{rounds} }, $round;
    my $orders = $round->{facts} ? @{ $round->{facts}{orders} } : 0;
    my $note   = join ', ', grep {defined} $round->{note},
        $round->{detected} && "noticed: $round->{detected}";
    printf "%3d  %-44s %4d orders  felt %4d  sale %s  order %s  %4.1f s  %s%s\n", $round->{number},
        $round->{name}, $orders, $round->{felt} // 0, _seconds($round->{sale_again}), _seconds($round->{order_again}),
        $round->{seconds}, @{ $round->{found} } ? @{ $round->{found} } . ' VIOLATIONS' : 'ok',
        $note eq '' ? '' : "  ($note)";

    my %seen;
    for my $one (@{ $round->{found} }) {
        chomp(my $text = $one->{text});
        next if ++$seen{ $one->{rule} } > SHOWN;
        print "     $one->{rule}: user $one->{user}: $text\n";
    }
    for my $rule (sort grep { $seen{$_} > SHOWN } keys %seen) {
        print "     $rule: ", $seen{$rule} - SHOWN, " more\n";
    }
    print "     again: --seed $self->{seed} --only $round->{number}"
        . ($round->{kept} ? "; evidence: $round->{kept}" : '') . "\n" if @{ $round->{found} };
    return;
}

sub _seconds {
    my ($seconds) = @_;
    return defined $seconds ? sprintf '%5.2f s', $seconds : '   -   ';
}

sub _median {
    my @sorted = sort { $a <=> $b } grep {defined} @_;
    return @sorted ? $sorted[ $#sorted / 2 ] : undef;
}

# The table, as Markdown.
sub table {
    my ($self) = @_;

    my (%by, @order);
    for my $round (@{ $self->{rounds} }) {
        my $name = @{ $round->{faults} } > 1 ? 'mixed, two or three of them' : $round->{name};
        push @order, $name if !$by{$name};
        push @{ $by{$name} }, $round;
    }
    my $text = "| fault | rounds | violations | a sale again, median / worst | an order again, median / worst |\n"
        . "| --- | ---: | ---: | ---: | ---: |\n";
    for my $name (sort @order) {
        my @rounds = @{ $by{$name} };
        my @cells  = ($name, scalar @rounds, sum0(map { scalar @{ $_->{found} } } @rounds));
        for my $key (qw(sale_again order_again)) {
            my @times = grep {defined} map { $_->{$key} } @rounds;
            push @cells, @times ? sprintf '%.2f / %.2f s', _median(@times), max(@times) : '-';
        }
        $text .= '| ' . join(' | ', @cells) . " |\n";
    }
    return $text;
}

sub finish {
    my ($self, $file) = @_;

    my $n      = @{ $self->{rounds} };
    my $table  = $self->table;
    my $orders = sum0(map { $_->{facts} ? scalar @{ $_->{facts}{orders} } : 0 } @{ $self->{rounds} });
    my $head   = sprintf '%d rounds, %d users each, seed %d: %d orders, %d violations, %d s.', $n,
        $self->{users}, $self->{seed}, $orders, $self->violations, time - $self->{began};
    print "\n$head\n\n$table";
    return if !defined $file;

    open my $in, '<', $file or die "cannot read $file: $!\n";
    local $/ = undef;
    my $text = <$in>;
    close $in;
    my $skipped = join '', map {"\nNot run: $_->[0], $_->[1].\n"} @{ $self->{skipped} };
    $text =~ s/\Q$BEGIN\E.*\Q$END\E/$BEGIN\n$head\n\n$table$skipped$END/s
        or die "$file has no place for the table\n";
    open my $out, '>', $file or die "cannot write $file: $!\n";
    print {$out} $text;
    close $out or die "cannot write $file: $!\n";
    return;
}

1;
