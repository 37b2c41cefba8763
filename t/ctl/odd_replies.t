# F-G4: whatever shape a reply of Redis has, seckillctl ends with a word and an exit
# code, and never by a signal: no part of a reply is read without a look at its type.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib", "$FindBin::Bin/../consumer";

use ConsumerTest;
use FakeRedis;
use Test::More;

my $c = ConsumerTest->new;
$c->sale(1, units => 20, group => 1);
$c->buy(1, 1 .. 5);
$c->start;
$c->wait_settled(1);
ok($c->stop, 'a sale with five orders');
$c->buy(1, 6 .. 8);
$c->redis->xreadgroup('GROUP', 'seckilld', 'n-1', 'COUNT', 1, 'STREAMS', $c->key(orders => 1), '>');
my ($entry) = map { $_->[0] } $c->redis->xrange($c->key(orders => 1), '-', '+');
$c->redis->xadd($c->key(dead => 1), '*', entry => $entry // '1-1', reason => 'data_error', user => 6);
my ($letter) = map { $_->[0] } $c->redis->xrange($c->key(dead => 1), '-', '+');

my $fake = FakeRedis->new(dir => $c->t->dir, real => $c->{redis}{sock});
my $conf = $c->conf('redis.address' => 'unix:' . $fake->sock);

my @odd = ('nil', ':7', '[nil nil nil nil nil nil]', '[1 [2 3] "x" nil]', '[["1-1" 7]]', '[[1 2 3 4] [nil]]',
           '["18446744073709551616" "99999999999999999999" "x" -5 7 8]');
my @verbs = (['status', 1], ['queue', 1], ['reconcile', 1, '--grace', '0s'], ['doctor', 1],
             ['dead', 'list', 1], ['dead', 'show', 1, $letter], ['trace', 'req']);

for my $verb (@verbs) {
    # which commands the verb sends when all is well
    $fake->clear('');
    $c->t->run($c->t->build . '/seckillctl', '-c', $conf, @{$verb});
    my %sent = map { (split ' ', $_)[0] => 1 } $fake->commands;
    delete @sent{qw(CONNECT PING)};
    $sent{FACTS} = 1 if $sent{EVALSHA};

    my @crashed;
    for my $command (sort keys %sent) {
        for my $odd (@odd) {
            $fake->clear("$command: reply $odd");
            my ($exit, $out, $err) = $c->t->run('timeout', '-k', 1, 10, $c->t->build . '/seckillctl', '-c', $conf, @{$verb});
            push @crashed, "$command $odd: exit $exit $err" if $exit > 5 || $exit < 0 || $err =~ /Sanitizer|\(null\)/;
        }
    }
    is_deeply(\@crashed, [], "@{$verb}: " . join ' ', sort keys %sent);
}

done_testing;
