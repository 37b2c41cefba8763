/*
 * The clocks of Redis and MySQL as the keeper sees them, for all threads.  What
 * was seen outlives a reload of the settings, so that HUP does not make a clock
 * that jumped a trusted one.
 */

#ifndef _SKD_CLOCKS_H_INCLUDED_
#define _SKD_CLOCKS_H_INCLUDED_

#include <stdint.h>

#include "skb_clock_trust.h"

/* Takes note of a look at both; what has changed is said in the log and counted. */
void skd_clocks_note(const skb_clock_reading_t readings[SKB_CLOCKS]);

/* A copy of what was seen. */
void skd_clocks_get(skb_clocks_t *clocks);

/* 1: a sale may be settled, keys may expire, entries may be deleted. */
int skd_clocks_may_settle(const skb_config_t *config);

/* 1: an unpaid order may be cancelled. */
int skd_clocks_may_cancel(const skb_config_t *config);

/* Redis' time in epoch milliseconds; 0 while it is not to be believed. */
uint64_t skd_clocks_redis_ms(const skb_config_t *config);

#endif /* _SKD_CLOCKS_H_INCLUDED_ */
