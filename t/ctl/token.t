# token: what it mints is checked by an implementation of its own.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use Digest::SHA qw(hmac_sha256 hmac_sha384 hmac_sha512);
use JSON ();
use MIME::Base64 qw(decode_base64url encode_base64url);
use SeckillTest;
use Test::More;

my $t   = SeckillTest->new;
my $ctl = $t->build . '/seckillctl';
my $key = 'a key of 32 bytes, more or less.';

my %mac = (HS256 => \&hmac_sha256, HS384 => \&hmac_sha384, HS512 => \&hmac_sha512);

# The payload of a token whose signature is right, else undef.
sub payload {
    my ($token, $alg, $with) = @_;

    my ($head, $body, $sign, @more) = split /\./, $token, -1;
    return if @more || !defined $sign;

    my $header = JSON->new->utf8->decode(decode_base64url($head));
    return if $header->{alg} ne $alg;
    return if encode_base64url($mac{$alg}->("$head.$body", $with)) ne $sign;

    return decode_base64url($body);
}

my $file = $t->file('hs.key', "$key\n");

for my $alg (sort keys %mac) {
    my ($exit, $out, $err) = $t->run($ctl, 'token', '42', '--key-file', $file, '--alg', $alg);
    is($exit, 0, "token works with $alg");
    is($err, '', '... without a word on stderr');
    chomp $out;
    my $text = payload($out, $alg, $key);
    ok(defined $text, "... and $alg by another implementation agrees") or next;
    is(payload($out, $alg, "$key\n"), undef, '... the line end is not part of the key');

    my $claims = JSON->new->utf8->decode($text);
    is($claims->{sub}, '42', '... sub is the user');
    like($text, qr/"sub":"42"/, '... as a string');
    cmp_ok(abs($claims->{iat} - time), '<=', 5, '... iat is now');
    is($claims->{exp} - $claims->{iat}, 3600, '... and it lives an hour');
}

{
    my ($exit, $out) = $t->run($ctl, 'token', '18446744073709551615', '--key-file', $file,
        '--claim', 'uid', '--ttl', '90s');
    chomp $out;
    my $text = payload($out, 'HS256', $key);
    like($text, qr/"uid":"18446744073709551615"/, 'the widest id keeps all its digits');
    my $claims = JSON->new->utf8->decode($text);
    ok(!exists $claims->{sub}, '--claim replaces sub');
    is($claims->{exp} - $claims->{iat}, 90, '--ttl is the life');
}

{
    my ($exit, $out) = $t->run($ctl, 'token', '9..11', '--key-file', $file);
    my @users = map { JSON->new->utf8->decode(payload($_, 'HS256', $key))->{sub} }
        split /\n/, $out;
    is_deeply(\@users, [ 9, 10, 11 ], 'a range prints one per line');

    ($exit, $out) = $t->run($ctl, 'token', '9..10', '--key-file', $file, '--json');
    my $json = JSON->new->utf8->decode($out);
    is_deeply([ map { $_->{user} } @{ $json->{tokens} } ], [ '9', '10' ], '--json lists them');
    ok(payload($json->{tokens}[1]{token}, 'HS256', $key), '... with good tokens');
    cmp_ok(abs($json->{expires} - time - 3600), '<=', 5, '... and their end');

    ($exit, $out) = $t->run($ctl, 'token', '18446744073709551615..18446744073709551615',
        '--key-file', $file);
    is(scalar(split /\n/, $out), 1, 'the last range ends');
}

# the key
{
    my ($exit, $out, $err) = $t->run($ctl, 'token', '1', '--key-file', $t->dir . '/none');
    is($exit, 2, 'a missing key is exit 2');
    like($err, qr/none/, '... and is named');

    ($exit) = $t->run($ctl, 'token', '1', '--key-file', $t->file('empty', "\n"));
    is($exit, 2, 'an empty key is refused');

    # F-J1, F-J2: one reader for all, so the tool refuses what nginx refuses
    for (['nul.key', "\0" x 32, 'holds a NUL byte'], ['bom.key', "\xef\xbb\xbf$key", 'begins with a byte order mark'],
        ['blank.key', ' ' x 32, 'nothing but blanks'], ['short.key', 'fifteen bytes..', 'shorter than 16 bytes'])
    {
        my ($name, $text, $why) = @{$_};
        ($exit, $out, $err) = $t->run($ctl, 'token', '1', '--key-file', $t->file($name, $text));
        is($exit, 2, "$name is refused");
        like($err, qr/\Q$name": $why\E/, '... by name, with the reason');
    }
    ($exit, $out) = $t->run($ctl, 'token', '1', '--key-file', $t->file('crlf.key', "$key\r\n"));
    chomp $out;
    ok(payload($out, 'HS256', $key), 'CRLF at the end is not part of the key');

    ($exit) = $t->run($ctl, 'token', '1', '--key-file', $t->file('long', 'x' x 5000));
    is($exit, 2, 'a key too long is refused, not cut');

    ($exit, $out, $err) = $t->run($ctl, 'token', '1', '--key-file',
        $t->file('open.key', $key, oct(644)));
    is($exit, 0, 'a key that everybody may read works');
    like($err, qr/read by everybody/, '... with a warning');
    unlike("$out$err", qr/\Q$key/, '... and the key is never printed');
}

done_testing();
