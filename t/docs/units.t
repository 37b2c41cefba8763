# What the units promise about a daemon whose servers are away: F4, F6, F7.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

my $root = abs_path(dirname(__FILE__) . '/../..');

sub unit {
    my ($name) = @_;
    open my $in, '<', "$root/tools/systemd/$name" or die "$name: $!\n";
    local $/ = undef;
    return scalar <$in>;
}

my $daemon = unit('seckilld.service');

# F4: restarts are spaced, and systemd never gives up
like($daemon, qr/^Restart=always$/m, 'it is started again');
like($daemon, qr/^RestartSec=[1-9]/m, '... after a pause');
like($daemon, qr/^StartLimitIntervalSec=0$/m, '... without a limit');
like($daemon, qr/^RestartPreventExitStatus=1 2$/m, '... but not with wrong settings');

# F6: systemd hears from the daemon itself
like($daemon, qr/^Type=notify$/m, 'it tells when it is up');
unlike($daemon, qr/PIDFile/, '... and has no PID file');

# F7: its own /tmp is nobody else's, so no path of ours leads there
for my $name (qw(seckilld.service seckill-preheat.service)) {
    unlike(unit($name), qr{/(?:var/)?tmp\b}, "$name points into no temporary folder");
}
open my $in, '<', "$root/tools/demo/seckilld.conf" or die "seckilld.conf: $!\n";
my @temporary = grep { !/^\s*[#;]/ && m{/tmp\b} } <$in>;
is_deeply(\@temporary, [], 'nor do the sample settings');

done_testing;
