#!/usr/bin/perl
#
# The buyer's and the operator's page: what is seen and said, and who may click.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../lib";

use BrowserTest qw(run_in_browser);

run_in_browser(qw(words journey refusals clock access live));
