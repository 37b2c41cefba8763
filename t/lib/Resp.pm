package Resp;

# Redis' protocol, as far as a server or a proxy of the tests must cut it.

use strict;
use warnings;

use Exporter 'import';
our @EXPORT_OK = qw(resp_length);

# Length of the first complete message that begins there, or undef.
sub resp_length {
    my ($bytes, $at) = @_;

    my $end = index $bytes, "\r\n", $at;
    return if $end < 0;

    my ($type, $count) = (substr($bytes, $at, 1), substr($bytes, $at + 1, $end - $at - 1));
    my $next = $end + 2;

    if ($type eq '$' && $count >= 0) {
        $next += $count + 2;
    } elsif ($type eq '*') {
        for (1 .. $count) {
            $next = resp_length($bytes, $next) // return;
        }
    }

    return $next <= length $bytes ? $next : undef;
}

1;
