# A node's journal over its life: clients that leave, USR1, reload, a worker that is
# told to go, a full disk, keys that change, and several workers at once.

use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../lib";

use IO::Socket::INET;
use NodesTest qw(burst code sale tally token);
use POSIX ();
use SeckillTest;
use SignedJournal;
use Test::More;
use Time::HiRes qw(sleep);

my $t     = SeckillTest->new;
my $redis = $t->redis;
my $key   = $t->file('auth.key', NodesTest::KEY);
my $signs = SignedJournal->new(pack 'H*', 'ab' x 32);
my $root  = $> == 0;
my $id    = 0;

# the workers are nobody
chmod 0711, $t->dir, "$redis->{dir}";
chmod 0777, $redis->{sock};

# a limit on the size of files fails a write only where its signal is ignored
$SIG{XFSZ} = 'IGNORE';    ## no critic (RequireLocalizedPunctuationVars)

# where the user of the workers may make files
sub place {
    my ($name) = @_;

    my $dir = $t->dir . "/$name";
    mkdir $dir or die "$dir: $!\n";
    chmod 0777, $dir;
    return "$dir/accepted.journal";
}

sub node {
    my ($journal, %args) = @_;

    my $node = $t->nginx(redis => $redis, key_file => $key, journal => $journal, workers => 2,
        user => 'nobody nogroup', %args,
        http => 'seckill_limit off; seckill_redis_timeout 4s; seckill_timeout 8s; ' . ($args{http} // ''));
    chmod 0711, $node->{dir};
    return $node;
}

sub good {
    my ($journal, $kind, $by) = @_;
    return grep { $_->{good} && $_->{kind} eq $kind } ($by // $signs)->read_file($journal);
}

sub bad { return grep { !$_->{good} } $signs->read_file($_[0]) }

sub until_good {
    my ($journal, $kind, $count, $by) = @_;
    return $t->wait_for(sub { -e $journal && good($journal, $kind, $by) >= $count }, 10, "$count \"$kind\" in $journal");
}

sub posts { my ($node, $sale, @users) = @_; return map { [ $node->{port}, $_, "/seckill/$sale" ] } @users }

sub send_one {
    my ($node, $sale, $user) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $node->{port}) or die "connect: $!\n";
    print {$socket} "POST /seckill/$sale HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nX-Request-ID: gone-$user\r\n"
        . 'Authorization: Bearer ' . token($user) . "\r\n\r\n";
    return $socket;
}

sub redis_seq { return $redis->{client}->hget("seckill:activity:{$_[0]}", 'seq') }

# --- a node that sells nothing; several workers; a crowd
{
    my $journal = place('crowd');
    my $node = node($journal);
    sale($t, $redis, ++$id, stock => 1000);
    until_good($journal, 'open', 2);
    pass('F-A3: a node that sold nothing has an open line of each worker');
    is((stat $journal)[2] & 07777, 0640, '... and others can\'t read it');

    my @answers = burst(40, posts($node, $id, 1 .. 600));
    is(tally(@answers)->{0}, 600, '600 buyers');
    my %lines = map { $_->{user} => $_ } good($journal, 'accepted');
    is(scalar keys %lines, 600, '... and a line of each');
    my @stream = $redis->{client}->xrange("seckill:orders:{$id}", '-', '+');
    my @odd = grep {
        my %e = @{ $_->[1] };
        my $l = $lines{ $e{user} };
        "@{$l}{qw(seq order_no time epoch quantity)}" ne "@e{qw(seq order_no accepted_ms epoch quantity)}";
    } @stream;
    is(scalar @odd, 0, '... that says what the stream says');
    is(scalar bad($journal), 0, '... no line of two workers is mixed');

    # --- F-A4: the client has gone before the answer
    kill 'STOP', $redis->{pid};
    my $gone = send_one($node, $id, 701);
    sleep 0.2;
    close $gone;
    sleep 0.2;
    kill 'CONT', $redis->{pid};
    until_good($journal, 'accepted', 601);
    is(join(' ', map {"$_->{user}/$_->{request_id}"} grep { $_->{user} > 700 } good($journal, 'accepted')),
        '701/gone-701', 'F-A4: a client that left is in the journal, with the request');

    # --- workers are told to go while Redis does not answer
    burst(2, map { [ $node->{port}, $_, "/seckill/result/$id" ] } 1 .. 4);
    kill 'STOP', $redis->{pid};
    my @left = map { send_one($node, $id, $_) } 711, 712;
    sleep 0.3;
    kill 'TERM', $t->children($node);
    until_good($journal, 'unknown', 1);
    like(join(' ', map {"$_->{user}/$_->{epoch}/$_->{seq}/$_->{request_id}"} good($journal, 'unknown')),
        qr{\A71([12])/1/0/gone-71\1\b}, 'a batch that is never answered: a line of each purchase, without a seq');
    kill 'CONT', $redis->{pid};

    # --- the file is opened again
    until_good($journal, 'open', 4);
    rename $journal, "$journal.1" or die "rename: $!\n";
    kill 'USR1', $node->{pid};
    until_good($journal, 'open', 2);
    pass('USR1: a new file with an open line of each worker');
    is((stat $journal)[2] & 07777, 0640, '... that others can\'t read');
    is(scalar getpwuid((stat $journal)[4]), 'nobody', '... and that is the workers\'') if $root;
    is(code(burst(1, posts($node, $id, 721))), 0, '... a purchase after it');
    is(join(' ', map { $_->{user} } good($journal, 'accepted')), '721', '... is there and not in the old one');

    # --- a reload
    my %old = map { $_ => 1 } $t->children($node);
    my $open = good($journal, 'open');
    kill 'HUP', $node->{pid};
    $t->wait_for(sub { my @now = $t->children($node); @now && !grep { $old{$_} } @now }, 20, 'new workers');
    until_good($journal, 'open', $open + 2);
    is(code(burst(1, posts($node, $id, 722))), 0, 'after a reload it sells');
    is(join(' ', map { $_->{user} } good($journal, 'accepted')), '721 722', '... and writes');

    # --- the key changes
    my $other = SignedJournal->new(pack 'H*', 'cd' x 32);
    $redis->{client}->hset('seckill:control', 'token_key', 'cd' x 32, 'token_key_prev', 'ab' x 32);
    $redis->{client}->hincrby('seckill:control', 'rev', 1);
    sleep 2.2;
    is(code(burst(1, posts($node, $id, 723))), 0, 'another key in Redis');
    my ($line) = good($journal, 'accepted', $other);
    is("$line->{user} $line->{key_id}", '723 ' . $other->id, '... signs from then on, and the line names it');
    $redis->{client}->hset('seckill:control', 'token_key', 'ab' x 32);
    $redis->{client}->hdel('seckill:control', 'token_key_prev');
    $redis->{client}->hincrby('seckill:control', 'rev', 1);
    is($t->stop($node), 0, 'nginx ends');
}

# --- the key of a file: no Redis is needed for it
{
    my $journal = place('file');
    my $queue = $t->file('queue.key', "a key of a file, 29 bytes long\n", oct 600);
    my $by = SignedJournal->new('a key of a file, 29 bytes long');
    my $node = node($journal, http => "seckill_queue_token_key_file $queue;");
    sale($t, $redis, ++$id);
    until_good($journal, 'open', 2, $by);
    is(code(burst(1, posts($node, $id, 1))), 0, 'a node with a key file');
    is(scalar good($journal, 'accepted', $by), 1, '... signs with it');
    $t->stop($node);
}

# --- Redis is away at the start, and knows no key at first
{
    my $journal = place('late');
    my $control = { $redis->{client}->hgetall('seckill:control') };
    $redis->{client}->del('seckill:control');
    my $node = node($journal);
    sleep 0.5;
    is(scalar good($journal, 'open'), 0, 'without a key there is no open line');
    $redis->{client}->hset('seckill:control', %{$control});
    until_good($journal, 'open', 2);
    pass('... and there is one once a key is there, without a request');
    $t->stop($node);
}

# --- a full disk
{
    my $journal = place('full');
    my $node = node($journal, user => 'root', workers => 1, location => 'location /seckill/ { seckill on; } location = /status { seckill_status; }');
    sale($t, $redis, ++$id, stock => 100);
    until_good($journal, 'open', 1);
    my ($worker) = $t->children($node);
    is(code(burst(1, posts($node, $id, 1))), 0, 'before');

    # the limit counts for its error log as well, so the journal must be the largest
    { open my $fh, '>>', $journal or die "$journal: $!\n"; print {$fh} "\n" x 1_000_000; close $fh }
    # room for a line and a half
    my $room = (-s $journal) + 300;
    system 'prlimit', '--pid', $worker, "--fsize=$room:unlimited";
    $t->allow_log(qr/seckill_journal ".*" (?:can't be written|is written again)/);
    is(tally(burst(1, posts($node, $id, 2 .. 6)))->{0}, 5, 'a full disk: the sale goes on');
    is(scalar bad($journal), 1, 'one line is torn');
    is(scalar grep({/seckill_journal ".*" can't be written/} split /\n/, $t->log_text($node)), 1, '... and there is one alert');
    my (undef, $text) = $t->run('curl', '-s', "http://127.0.0.1:$node->{port}/status");
    my %before = $text =~ /^seckill_journal(\w*) (\S+)$/mg;
    is($before{''}, 1, 'status: there is a journal');
    cmp_ok($before{_failures_total}, '>=', 1, '... that failed');

    sleep 2.2;
    (undef, $text) = $t->run('curl', '-s', "http://127.0.0.1:$node->{port}/status");
    cmp_ok(($text =~ /^seckill_journal_gap_seconds_total (\S+)$/m)[0], '>=', 1, '... seconds of the gap are counted');
    is(scalar grep({/can't be written/} split /\n/, $t->log_text($node)), 1, '... no second alert');

    system 'prlimit', '--pid', $worker, '--fsize=unlimited:unlimited';
    until_good($journal, 'gap', 1);
    is(code(burst(1, posts($node, $id, 7))), 0, 'room again');
    my ($gap) = good($journal, 'gap');
    my %written = map { $_->{user} => 1 } good($journal, 'accepted');
    is($gap->{lost}, 7 - keys %written, 'the gap says how many lines are missing');
    cmp_ok($gap->{to}, '>', $gap->{from} + 1000, '... and from when to when');
    is(scalar bad($journal), 1, '... the torn line has spoiled no other');
    (undef, $text) = $t->run('curl', '-s', "http://127.0.0.1:$node->{port}/status");
    like($text, qr/^seckill_journal_lines_total @{[ scalar keys %written ]}$/m, 'status: lines');
    like($text, qr/^seckill_journal_lost_lines_total $gap->{lost}$/m, '... and lost ones');
    is(scalar grep({/is written again, \d+ lines are missing/} split /\n/, $t->log_text($node)), 1, 'one line says that it is over');
    $t->stop($node);
}

# --- one process
{
    my $journal = place('single');
    my $node = node($journal, workers => 1, main => "master_process off;\n");
    sale($t, $redis, ++$id, stock => 100);
    until_good($journal, 'open', 1);
    is(code(burst(1, posts($node, $id, 1))), 0, 'master_process off');
    is(code(burst(1, posts($node, $id, 2))), 0, '... once more');
    rename $journal, "$journal.1" or die "rename: $!\n";
    kill 'USR1', $node->{pid};
    until_good($journal, 'open', 1);
    is(code(burst(1, posts($node, $id, 3))), 0, '... after USR1');
    is(join(' ', map { $_->{user} } good("$journal.1", 'accepted'), good($journal, 'accepted')), '1 2 3', '... all are written');
    is(scalar bad($journal) + bad("$journal.1"), 0, '... and signed');
    $t->stop($node);
}

# --- nginx -t
{
    my ($exit, $out) = $t->nginx_test(redis => $redis, key_file => $key, http => "# seckill_journal\n", journal => 'off');
    unlike($out, qr/warn/, 'off is said: no warning');
    ($exit, $out) = $t->nginx_test(redis => $redis, key_file => $key, http => "seckill_journal off;");
    is($exit, 0, 'nginx -t');
    my $unset = $t->dir . '/unset.conf';
    open my $in, '<', $t->dir . '/nginx-t/nginx.conf' or die "nginx.conf: $!\n";
    my $conf = do { local $/ = undef; <$in> };
    $conf =~ s/seckill_journal off;//g;
    $unset = $t->file('unset.conf', $conf);
    (undef, undef, $out) = $t->run($ENV{TEST_NGINX_BINARY} // 'nginx', '-t', '-c', $unset, '-e', $t->dir . '/unset.log');
    like($out, qr/\[warn\].*"seckill_journal" is not set/, 'not set: nginx -t warns');
    POSIX::mkfifo($t->dir . '/fifo', 0600);
    for ([ $t->dir . '/fifo', qr/is not a regular file|No such device/ ], [ $t->dir, qr/failed \(21: Is a directory\)/ ],
        [ '/dev/null', qr/is not a regular file/ ], [ '/nowhere/at/all', qr/failed \(2: No such file/ ])
    {
        my ($path, $why) = @{$_};
        ($exit, $out) = $t->nginx_test(redis => $redis, key_file => $key, journal => $path);
        isnt($exit, 0, "$path is refused");
        like($out, $why, '... by name');
    }
    my $wide = place('wide');
    { open my $fh, '>', $wide or die "$wide: $!\n"; close $fh }
    chmod 0644, $wide;
    $t->nginx_test(redis => $redis, key_file => $key, journal => $wide);
    is((stat $wide)[2] & 07777, 0640, 'a file that others can read is closed to them');
}

done_testing();
