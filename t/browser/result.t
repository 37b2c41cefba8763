#!/usr/bin/perl
#
# How the result comes to the page, and what happens when the network is lost.

use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin, "$FindBin::Bin/../lib";

use BrowserTest qw(run_in_browser);

run_in_browser(qw(push network));
