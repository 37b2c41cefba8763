# Help, misuse and settings: what goes where, and the exit codes of DESIGN 9.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", $FindBin::Bin;

use JSON ();
use SeckillTest;
use Test::More;

my $t   = SeckillTest->new;
my $ctl = $t->build . '/seckillctl';

my @verbs = qw(schema preheat doctor status close open restock reconcile settle restore queue dead order trace token
    verify);

{
    my ($exit, $out, $err) = $t->run($ctl, '--help');
    is($exit, 0, '--help is fine');
    is($err, '', '... and says nothing on stderr');
    like($out, qr/^  $_ /m, "... and lists $_") for @verbs;
    like($out, qr/^exit: 0 fine, 1 .*2 .*3 .*4 .*5 /ms, '... and the exit codes');
}

for my $verb (@verbs) {
    my ($exit, $out, $err) = $t->run($ctl, $verb, '--help');
    is($exit, 0, "$verb --help is fine");
    like($out, qr/\Ausage: seckillctl $verb /, '... and begins with its usage');
    is($err, '', '... and says nothing on stderr');
}

my @misuse = (
    [ [], 'no verb' ],
    [ ['sell'], 'an unknown verb' ],
    [ ['--sell'], 'an unknown option' ],
    [ [ 'status', '--sell' ], 'an unknown option of a verb' ],
    [ [ 'status', '1', '2' ], 'two activities' ],
    [ ['preheat'], 'no activity' ],
    [ [ 'schema', 'drop' ], 'no such work on the schema' ],
    [ ['schema'], 'no work on the schema' ],
    [ [ 'order', 'show' ], 'no order' ],
    [ [ 'order', 'show', '--user', '1' ], 'a user without an activity' ],
    [ [ 'order', 'show', '123' ], 'a short order number' ],
    [ [ 'order', 'show', '269929150000123000001000000100007' ], 'a long order number' ],
    [ [ 'order', 'show', '26992915000012300000100000010007' ], 'an order number of month 99' ],
    [ ['reconcile'], 'no activity to reconcile' ],
    [ [ 'reconcile', '1', '2' ], 'two activities to reconcile' ],
    [ [ 'reconcile', '1', '--repair', 'all' ], 'an unknown repair' ],
    [ [ 'reconcile', '1', '--to', 'redis' ], 'a target without a release' ],
    [ [ 'reconcile', '1', '--grace', '5' ], 'a grace without unit' ],
    [ [ 'restock', '1' ], 'no units' ],
    [ [ 'restock', '1', '0' ], 'no units at all' ],
    [ [ 'restock', '1', '-5' ], 'negative units' ],
    [ [ 'restock', '1', '5', '--ref', 'a b' ], 'a name with a space' ],
    [ [ 'restock', '1', '5', '--finish' ], 'units to finish' ],
    [ ['settle'], 'nothing to settle' ],
    [ [ 'restore', '1', '2' ], 'two activities to restore' ],
    [ [ 'dead', 'list' ], 'no activity with letters' ],
    [ [ 'dead', 'bury', '1' ], 'no such work on letters' ],
    [ [ 'dead', 'show', '1' ], 'no letter to show' ],
    [ [ 'dead', 'drop', '1' ], 'no letters to drop' ],
    [ [ 'dead', 'drop', '1', '5-1', '--all' ], 'letters and all of them' ],
    [ [ 'dead', 'retry', '1', 'x' ], 'a letter that is none' ],
    [ ['token'], 'no user' ],
    [ [ 'token', '9..7' ], 'a range upside down' ],
    [ [ 'token', '1..2000000' ], 'a range too long' ],
    [ [ 'token', '7', '--alg', 'none' ], 'the algorithm none' ],
    [ [ 'token', '7', '--ttl', '1' ], 'a duration without unit' ],
    [ [ 'token', '7', '--ttl', '0s' ], 'a token that is dead at once' ],
    [ [ 'verify', '1' ], 'no address' ],
    [ [ 'verify', '1', '--url', 'ftp://x/' ], 'an address that is not http' ],
    [ [ 'verify', '1', '--url', 'http://x/?a=1' ], 'an address with a query' ],
    [ [ 'verify', '1', '--url', 'http://x', '--users', '0' ], 'no users' ],
    [ [ 'verify', '1', '--url', 'http://x', '--users', '1e3' ], 'users with an exponent' ],
    [ [ 'verify', '1', '--url', 'http://x', '--concurrency', '-1' ], 'negative connections' ],
    [ [ 'verify', '1', '--url', 'http://x', '--first-user', '18446744073709551615' ],
        'more users than there are ids' ],
);

for my $case (@misuse) {
    my ($args, $what) = @{$case};
    my ($exit, $out, $err) = $t->run($ctl, @{$args});
    is($exit, 2, "$what is misuse");
    is($out, '', '... silent on stdout');
    like($err, qr/^try "seckillctl .*--help"$/m, '... with advice on stderr');
}

# ids are canonical or refused, before anything is asked of a server
for my $id ('0', '042', '+42', '-42', '42abc', '0x2A', '4.2e1', '', ' 42', '42 ',
    '18446744073709551616', '9' x 40)
{
    for my $verb (qw(preheat doctor status close open reconcile settle restore queue)) {
        my ($exit, undef, $err) = $t->run($ctl, '-c', '/nowhere', $verb, $id);
        is($exit, 2, "$verb refuses the id \"$id\"");
        unlike($err, qr/nowhere/, '... before it reads the settings');
    }
}

{
    my ($exit, $out, $err) = $t->run($ctl, '-c', $t->dir . '/none.conf', 'status', '1');
    is($exit, 2, 'a missing settings file is exit 2');
    like($err, qr/none\.conf/, '... and is named');

    my $conf = $t->file('bad.conf', "[redis]\naddress = 127.0.0.1:1\nadress = 127.0.0.1:1\n");
    ($exit, $out, $err) = $t->run($ctl, '-c', $conf, 'status', '1');
    is($exit, 2, 'an unknown setting is exit 2');
    like($err, qr/bad\.conf:3: /, '... with the line');

    ($exit, $out, $err) = $t->run($ctl, '--json', '-c', $conf, 'status', '1');
    my $json = JSON->new->utf8->decode($out);
    is($json->{error}{exit}, 2, 'with --json an error is JSON too');
    like($json->{error}{message}, qr/bad\.conf:3: /, '... with the same words');

    # options are taken on either side of the verb
    ($exit, my $other) = $t->run($ctl, 'status', '1', '-c', $conf, '--json');
    is($other, $out, '--json and -c work after the verb too');
}

# nobody there: exit 3, each server named
{
    my $redis = $t->redis;
    my $none  = $t->dir . '/none.sock';
    my $conf  = $t->conf(redis => { sock => $none }, mysql => { sock => $none });

    for my $args ([ 'status', '1' ], ['status'], [ 'verify', '1', '--url', 'http://127.0.0.1:1',
        '--key-file', $t->key_file ])
    {
        my ($exit, undef, $err) = $t->ctl($conf, @{$args});
        is($exit, 3, "$args->[0] without Redis is exit 3");
        like($err, qr/^seckillctl: Redis: /m, '... and says so');
    }

    for my $args ([ 'schema', 'status', '--dir', $t->root . '/sql' ], [ 'preheat', '1' ],
        [ 'order', 'show', '--user', '1', '--activity', '1' ])
    {
        my ($exit, undef, $err) = $t->ctl($conf, @{$args});
        is($exit, 3, "$args->[0] without MySQL is exit 3");
        like($err, qr/^seckillctl: MySQL: /m, '... and says so');
    }

    # half of it: what Redis says is shown all the same
    $conf = $t->conf(redis => $redis, mysql => { sock => $none });
    $redis->{client}->hset('seckill:activity:{7}', state => 'open', 'start_ms' => 1,
        'end_ms' => 2);
    $redis->{client}->set('seckill:stock:{7}', 5);

    my ($exit, $out) = $t->ctl($conf, 'status', '7', '--json');
    my $json = JSON->new->utf8->decode($out);
    is($exit, 3, 'status without MySQL is exit 3');
    is($json->{activities}[0]{stock}, 5, '... and shows what Redis says');
    is($json->{activities}[0]{orders}, undef, '... and knows no orders');
    is($json->{error}{exit}, 3, '... and says why in JSON');
}

# an answer that cannot be written is not fine
{
    my $key = $t->key_file('full.key');
    my ($exit, undef, $err) = $t->run('sh', '-c',
        "exec $ctl token 1..1000 --key-file $key > /dev/full");
    is($exit, 5, 'a full disk is not exit 0');
    like($err, qr/cannot write/, '... and is told');
}

done_testing();
