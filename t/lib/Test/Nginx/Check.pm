package Test::Nginx::Check;

# The subtests of a block: what its sections expect against what came back.
# Per request, in this order: status, headers, body, further body checks, then
# the log lines that are new.

use strict;
use warnings;

use Digest::MD5 ();
use Digest::SHA ();
use Test::More ();
use Time::HiRes qw(sleep time);

use Test::Nginx::Wire;

# how long a line may take to reach a log, seconds
use constant LOG_SECONDS => 2;

my %filter = (
    md5_hex  => sub { Digest::MD5::md5_hex($_[0]) },
    sha1_hex => sub { Digest::SHA::sha1_hex($_[0]) },
    length   => sub { length $_[0] },
    uc       => sub { uc $_[0] },
    lc       => sub { lc $_[0] },
    ucfirst  => sub { ucfirst $_[0] },
    lcfirst  => sub { lcfirst $_[0] },
);

# Makes the checks of one block.  name: prefix of the subtests; count: requests
# of the block; server: its logs; body_checks: code of the test file.
sub new {
    my ($class, %args) = @_;
    return bless {%args}, $class;
}

# The value of a section for one request: an array has one for each.
sub _expected {
    my ($self, $section, $index) = @_;

    my $value = $self->{block}->$section;
    return $value if !defined $value || $self->{count} == 1 && ref $value ne 'ARRAY';

    if (ref $value ne 'ARRAY') {
        die "\"$section\" needs an array: the block has $self->{count} requests\n";
    }

    return $value->[$index];
}

# Everything about one response.
sub response {
    my ($self, $response, $index, $repeat) = @_;

    $self->_status($response, $index);
    $self->_headers($response, $index);
    $self->_body($response, $index, $repeat);

    return;
}

sub _status {
    my ($self, $response, $index) = @_;

    my $like = $self->_expected('error_code_like', $index);
    if (defined $like) {
        Test::More::like($response->{status}, qr/$like/, "$self->{name} - status code");
        return;
    }

    my $code = $self->_expected('error_code', $index) // 200;
    $code =~ s/^\s+|\s+$//g;
    Test::More::is($response->{status}, $code, "$self->{name} - status code");

    return;
}

sub _headers {
    my ($self, $response, $index) = @_;

    for my $line (_lines($self->_expected('response_headers', $index))) {
        if ($line =~ /^\s*!\s*(\S+)/) {
            my $value = Test::Nginx::Wire::header($response, $1);
            Test::More::is($value, undef, "$self->{name} - no header $1");
            next;
        }
        my ($name, $value) = _header_line($line);
        Test::More::is(Test::Nginx::Wire::header($response, $name) // '', $value,
                       "$self->{name} - header $name");
    }

    for my $line (_lines($self->_expected('response_headers_like', $index))) {
        my ($name, $value) = _header_line($line);
        Test::More::like(Test::Nginx::Wire::header($response, $name) // '', qr/^(?:$value)$/,
                         "$self->{name} - header $name");
    }

    my $like = $self->_expected('raw_response_headers_like', $index);
    Test::More::like($response->{raw_headers}, _pattern($like), "$self->{name} - raw headers")
        if defined $like;

    my $unlike = $self->_expected('raw_response_headers_unlike', $index);
    Test::More::unlike($response->{raw_headers}, _pattern($unlike), "$self->{name} - raw headers")
        if defined $unlike;

    return;
}

sub _header_line {
    my ($line) = @_;

    my ($name, $value) = $line =~ /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/
        or die "cannot read the header \"$line\"\n";

    return ($name, $value);
}

sub _body {
    my ($self, $response, $index, $repeat) = @_;

    my $name = "$self->{name} - %s (request $index, repeat $repeat)";
    my $body = $self->_filtered($response->{body}, $index);

    Test::More::fail(sprintf $name, "complete response: $response->{error}") if $response->{error};

    my $exact = $self->_expected('response_body', $index);
    is_str($body, $exact, sprintf $name, 'response_body') if defined $exact;

    my $like = $self->_expected('response_body_like', $index);
    Test::More::like($body, _pattern($like), sprintf $name, 'response_body_like') if defined $like;

    my $unlike = $self->_expected('response_body_unlike', $index);
    Test::More::unlike($body, _pattern($unlike), sprintf $name, 'response_body_unlike')
        if defined $unlike;

    $_->($self->{block}, $body, $index, $repeat, undef) for @{ $self->{body_checks} };

    return;
}

sub _filtered {
    my ($self, $body, $index) = @_;

    my $filters = $self->{block}->response_body_filters;
    return $body if !defined $filters;

    my @list = ref $filters eq 'ARRAY' ? @{$filters}
             : ref $filters            ? ($filters)
             :                           split ' ', $filters;
    @list = @{ $list[$index] // [] } if @list && ref $list[0] eq 'ARRAY';

    for my $one (@list) {
        my $code = ref $one ? $one : $filter{$one} // die "unknown filter \"$one\"\n";
        $body = $code->($body);
    }

    return $body;
}

# The lines that the logs must and must not hold since the last check.
sub logs {
    my ($self, $repeat) = @_;

    $self->_log_lines('error',  'error_log',  $repeat);
    $self->_no_lines('error',   'no_error_log', $repeat);
    $self->_log_lines('access', 'access_log', $repeat);
    $self->_no_lines('access',  'no_access_log', $repeat);
    $self->_grep_error_log($repeat);

    return;
}

# The same for the lines written while nginx ended.
sub shutdown_logs {
    my ($self) = @_;

    $self->_log_lines('error', 'shutdown_error_log', 0);
    $self->_no_lines('error', 'no_shutdown_error_log', 0);

    return;
}

sub _log_lines {
    my ($self, $log, $section, $repeat) = @_;

    my @patterns = _patterns($self->{block}->$section);
    my $deadline = time + LOG_SECONDS;

    for my $pattern (@patterns) {
        my $regex = ref $pattern ? $pattern : qr/\Q$pattern\E/;
        my $found = 0;
        while (1) {
            $found = grep { $_ =~ $regex } split /\n/, $self->{server}->log_since($log);
            last if $found || time >= $deadline || defined $self->{server}->status;
            sleep 0.02;
        }
        Test::More::ok($found, "$self->{name} - $log.log has a line with \"$pattern\" (repeat $repeat)");
    }

    return;
}

sub _no_lines {
    my ($self, $log, $section, $repeat) = @_;

    for my $pattern (_patterns($self->{block}->$section)) {
        my $regex = ref $pattern ? $pattern : qr/\Q$pattern\E/;
        my @found = grep { $_ =~ $regex } split /\n/, $self->{server}->log_since($log);
        Test::More::ok(!@found, "$self->{name} - $log.log has no line with \"$pattern\" (repeat $repeat)");
        Test::More::diag($_) for @found;
    }

    return;
}

sub _grep_error_log {
    my ($self, $repeat) = @_;

    my $pattern = $self->{block}->grep_error_log;
    return if !defined $pattern;

    my $regex    = ref $pattern ? $pattern : qr/\Q$pattern\E/;
    my $expected = $self->{block}->grep_error_log_out // '';
    $expected = $expected->[$repeat] // '' if ref $expected eq 'ARRAY';

    my $text = $self->{server}->log_since('error');
    my $got  = '';
    $got .= substr($text, $-[0], $+[0] - $-[0]) . "\n" while $text =~ /$regex/g;
    is_str($got, $expected, "$self->{name} - grep_error_log_out (repeat $repeat)");

    return;
}

# Patterns by which the block names lines that would else be faults.
sub expected_lines {
    my ($self) = @_;

    return map { ref $_ ? $_ : qr/\Q$_\E/ }
        map { _patterns($self->{block}->$_) } qw(error_log shutdown_error_log grep_error_log);
}

# A text, or a pattern when it is one.
sub is_str {
    my ($got, $expected, $name) = @_;

    local $Test::Builder::Level = $Test::Builder::Level + 1;

    return Test::More::like($got, $expected, $name) if ref $expected;
    utf8::encode($expected) if utf8::is_utf8($expected);
    return Test::More::is($got, $expected, $name);
}

sub _patterns {
    my ($value) = @_;

    return if !defined $value;
    return ref $value eq 'ARRAY' ? @{$value} : ref $value ? ($value) : _lines($value);
}

sub _lines {
    my ($value) = @_;
    return grep {/\S/} split /\r?\n/, $value // '';
}

sub _pattern {
    my ($value) = @_;

    return ref $value ? $value : qr/$value/s;
}

1;
