/*
 * How often a user may buy: "5r/s", "2r/m" or "off", and a burst.  In nginx'
 * configuration, in Redis and on the command line of seckillctl it is one text.
 */

#ifndef _SK_LIMIT_H_INCLUDED_
#define _SK_LIMIT_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SK_RATE_MAX   1000              /* requests per second or minute */
#define SK_BURST_MAX  1000
#define SK_RATE_TEXT  8                 /* "1000r/s", NUL included */

typedef struct {
    uint32_t  interval_ms;              /* between two requests, 0: off */
    uint32_t  burst;
} sk_limit_t;

/* "1r/s" .. "1000r/s", "1r/m" .. "1000r/m"; returns 0 or -1. */
int sk_rate_parse(const char *text, size_t len, uint32_t *interval_ms);

/* 0 .. SK_BURST_MAX; returns 0 or -1. */
int sk_burst_parse(const char *text, size_t len, uint32_t *burst);

/* A rate or "off", and a burst, which "off" does not have; returns 0 or -1. */
int sk_limit_parse(sk_limit_t *limit, const char *rate, size_t rate_len, const char *burst,
    size_t burst_len);

#endif /* _SK_LIMIT_H_INCLUDED_ */
