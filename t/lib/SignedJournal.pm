package SignedJournal;

# The journal of a node for tests: signs lines as the module does, and reads them
# back, by the description in src/shared/sk_journal.h and not by its code.

use strict;
use warnings;

use Digest::SHA qw(hmac_sha256 hmac_sha256_hex);

# A key, made of the bytes of the queue token's key.
sub new {
    my ($class, $secret) = @_;

    return bless {
        key => hmac_sha256('journal', $secret),
        id  => substr(hmac_sha256_hex('journal id', $secret), 0, 16),
    }, $class;
}

sub id { return $_[0]{id} }

sub escape {
    my ($text) = @_;

    return '-' if $text eq '';
    return '%2d' if $text eq '-';
    return $text =~ s/([^\x21-\x24\x26-\x7e])/sprintf '%%%02x', ord $1/ger;
}

sub unescape { my ($text) = @_; return $text eq '-' ? '' : $text =~ s/%([0-9a-f]{2})/chr hex $1/ger }

# A signed line without a line end; the words after the version are given.
sub sign {
    my ($self, @words) = @_;

    my $text = join ' ', 1, @words;
    return "$text " . substr hmac_sha256_hex($text, $self->{key}), 0, 32;
}

# A line of a purchase; what is not given is usual.
sub purchase {
    my ($self, %line) = @_;

    my %l = (kind => 'accepted', prefix => 'seckill', time => 1, epoch => 1, seq => 1,
        quantity => 1, request_id => 'req', ext => '', %line);
    $l{order_no} //= $l{kind} eq 'unknown' ? '-'
        : sprintf '261129150000123%06d%07d%04d', $l{activity} % 1e6, $l{seq} % 1e7, $l{user} % 1e4;
    $l{seq} = 0 if $l{kind} eq 'unknown';

    return $self->sign(@l{qw(kind prefix)}, $l{key_id} // $self->{id},
        @l{qw(time activity epoch seq user quantity order_no request_id)}, escape($l{ext}));
}

sub open_line {
    my ($self, %line) = @_;
    return $self->sign('open', $line{prefix} // 'seckill', $self->{id}, $line{time} // 1, $line{node} // 'node-1');
}

sub gap_line {
    my ($self, %line) = @_;
    return $self->sign('gap', $line{prefix} // 'seckill', $self->{id}, $line{time} // $line{to}, @line{qw(lost from to)});
}

# The lines of a text, each a hash with kind and its words; "good" when it is signed.
sub lines {
    my ($self, $text) = @_;

    my @lines;

    for my $line (grep {length} split /\n/, $text) {
        my ($signed, $mac) = $line =~ /\A(.*) ([0-9a-f]{32})\z/s;
        my %line = (text => $line, good => 0, kind => 'none');
        if (defined $mac) {
            $line{good} = substr(hmac_sha256_hex($signed, $self->{key}), 0, 32) eq $mac ? 1 : 0;
            my @words = split / /, $signed;
            @line{qw(version kind prefix key_id time)} = splice @words, 0, 5;
            my @names = $line{kind} eq 'open' ? qw(node)
                      : $line{kind} eq 'gap'  ? qw(lost from to)
                      : qw(activity epoch seq user quantity order_no request_id ext);
            $line{good} = 0 if @words != @names;
            @line{@names} = @words;
            $line{ext} = unescape($line{ext}) if defined $line{ext};
        }
        push @lines, \%line;
    }

    return @lines;
}

sub read_file {
    my ($self, $path) = @_;

    open my $fh, '<:raw', $path or die "$path: $!\n";
    local $/ = undef;
    return $self->lines(scalar(<$fh>) // '');
}

1;
