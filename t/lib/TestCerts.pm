package TestCerts;

# Certificates for the tests, made by the openssl command in a private folder:
# two authorities that know nothing of each other, and what they have signed.
#
#   my $certs = TestCerts->new(dir => $dir);
#   $certs->ca, $certs->other_ca              the authorities' certificates
#   $certs->pair('server', 'DNS:redis.test')  (certificate, key) by the first one

use strict;
use warnings;

use Carp qw(croak);

sub new {
    my ($class, %args) = @_;

    my $self = bless { dir => "$args{dir}/certs" }, $class;
    mkdir $self->{dir} or croak "cannot make $self->{dir}: $!";
    $self->_authority($_) for qw(ca other);

    return $self;
}

sub ca       { return "$_[0]{dir}/ca.crt" }
sub other_ca { return "$_[0]{dir}/other.crt" }

# Returns the paths of a new certificate and its key.  %args: ca => 'other',
# days => -1 (it has ended), password => of the key.
sub pair {
    my ($self, $name, $names, %args) = @_;

    my $base = "$self->{dir}/$name";
    my $ca   = "$self->{dir}/" . ($args{ca} // 'ca');

    _openssl('req', '-new', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-keyout', "$base.key", '-out', "$base.csr", '-subj', "/CN=$name",
             defined $args{password} ? ('-passout', "pass:$args{password}") : '-nodes');

    open my $fh, '>', "$base.ext" or croak "cannot write $base.ext: $!";
    print {$fh} "subjectAltName=$names\n";
    close $fh or croak "cannot write $base.ext: $!";

    _openssl('x509', '-req', '-in', "$base.csr", '-CA', "$ca.crt", '-CAkey', "$ca.key", '-CAcreateserial',
             '-days', $args{days} // 2, '-extfile', "$base.ext", '-out', "$base.crt");

    return ("$base.crt", "$base.key");
}

sub _authority {
    my ($self, $name) = @_;

    my $base = "$self->{dir}/$name";
    _openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', "$base.key", '-out', "$base.crt",
             '-days', 2, '-subj', "/CN=authority $name");
    return;
}

sub _openssl {
    my (@args) = @_;

    open my $pipe, '-|', 'sh', '-c', 'exec openssl "$@" 2>&1 < /dev/null', 'sh', @args or croak "openssl: $!";
    my $said = do { local $/ = undef; scalar <$pipe> };
    close $pipe or croak "openssl @args: $said";
    return;
}

1;
