# What stands in the place of a journal when nginx opens it again: a FIFO, a device
# behind a link, a folder, nothing.  No process hangs and no line is lost.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use NodesTest qw(burst code sale tally);
use POSIX ();
use SeckillTest;
use SignedJournal;
use Test::More;
use Time::HiRes qw(sleep);

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $key   = $t->file('auth.key', NodesTest::KEY);
my $signs = SignedJournal->new(pack 'H*', 'ab' x 32);
my $id    = 0;

# the workers are nobody
chmod 0711, $t->dir, $redis->{dir};
chmod 0777, $redis->{sock};

sub place {
    my ($name) = @_;

    my $dir = $t->dir . "/$name";
    mkdir $dir or die "$dir: $!\n";
    chmod 0777, $dir;
    return "$dir/accepted.journal";
}

sub node {
    my ($journal) = @_;

    my $node = $t->nginx(redis => $redis, key_file => $key, journal => $journal, workers => 2,
        user => 'nobody nogroup', http => 'seckill_limit off; seckill_redis_timeout 4s; seckill_timeout 8s;');
    chmod 0711, $node->{dir};
    return $node;
}

sub good { my ($journal, $kind) = @_; return grep { $_->{good} && $_->{kind} eq $kind } $signs->read_file($journal) }

sub opened {
    my ($journal, $count) = @_;
    return $t->wait_for(sub { -f $journal && good($journal, 'open') >= $count }, 10, "$count open lines in $journal");
}

sub reload {
    my ($node) = @_;

    my %old = map { $_ => 1 } $t->children($node);
    kill 'HUP', $node->{pid};
    return $t->wait_for(sub { my @now = $t->children($node); @now && !grep { $old{$_} } @now }, 20, 'new workers');
}

my %put = (
    'a FIFO'               => sub { POSIX::mkfifo($_[0], 0666) or die "mkfifo: $!\n"; chmod 0666, $_[0] },
    'a FIFO with a reader' => sub { POSIX::mkfifo($_[0], 0666); chmod 0666, $_[0]; sysopen $_[1], $_[0], POSIX::O_RDWR() },
    'a link to a device'   => sub { symlink '/dev/null', $_[0] },
    'a folder'             => sub { mkdir $_[0] },
);

$t->allow_log(qr/\[emerg\].*(?:is not a regular file|No such device|Is a directory)/);

for my $what (sort keys %put) {
    my $journal = place($what =~ s/\W/-/gr);
    my $node = node($journal);
    my $user = 0;
    my $posts = sub { map { [ $node->{port}, ++$user, "/seckill/$id" ] } 1 .. $_[0] };

    sale($t, $redis, ++$id, stock => 100);
    opened($journal, 2);
    my @old = sort $t->children($node);
    rename $journal, "$journal.1" or die "rename: $!\n";
    $put{$what}->($journal, my $reader);
    kill 'USR1', $node->{pid};
    opened("$journal.1", 4);
    is(tally(burst(4, $posts->(8)))->{0}, 8, "$what: the sale goes on");
    is(scalar good("$journal.1", 'accepted'), 8, '... and the lines go where they went before');
    is(join(' ', sort $t->children($node)), "@old", '... of the same workers');

    -d $journal ? rmdir $journal : unlink $journal;
    kill 'USR1', $node->{pid};
    opened($journal, 2);
    is(code(burst(1, $posts->(1))), 0, '... once it is gone');
    is(scalar good($journal, 'accepted'), 1, '... there is a new file');
    is((stat $journal)[2] & 07777, 0640, '... that others can\'t read');
    ok(reload($node), '... and the master still listens');
    is($t->stop($node), 0, '... and ends');
}

# --- another path, and the old folder goes
{
    my ($old, $new) = map { place($_) } qw(old new);
    my $node = node($old);
    opened($old, 2);
    my $conf = "$node->{dir}/nginx.conf";
    open my $in, '<', $conf or die "$conf: $!\n";
    my $text = do { local $/ = undef; <$in> };
    $t->file('moved.conf', $text =~ s/\Q$old\E/$new/r);
    rename $t->dir . '/moved.conf', $conf or die "rename: $!\n";
    unlink $old;
    ok(reload($node), 'another path');
    opened($new, 2);
    ok(!-e $old, '... the old file is not made again');
    rmdir $old =~ s{/[^/]+\z}{}r or die "rmdir: $!\n";
    ok(reload($node), '... and nobody misses its folder');
    unlike($t->log_text($node), qr{\[emerg\].*/old/}, '... in the log');
    $t->stop($node);
}

done_testing();
