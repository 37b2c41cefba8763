/*
 * Which sales are not as their terms say, for the metrics; skd_keeper_promise() of
 * skd_keeper.h finds out.
 */

#ifndef _SKD_PROMISE_H_INCLUDED_
#define _SKD_PROMISE_H_INCLUDED_

#include <stdio.h>

/* Two gauges with a line for each sale that has something to tell. */
void skd_promise_metrics(FILE *out);

#endif /* _SKD_PROMISE_H_INCLUDED_ */
