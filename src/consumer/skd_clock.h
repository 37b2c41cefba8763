/*
 * Time for waiting: a monotonic clock, jitter, and delays that grow.
 */

#ifndef _SKD_CLOCK_H_INCLUDED_
#define _SKD_CLOCK_H_INCLUDED_

#include <stdint.h>

typedef struct {
    uint32_t  delay_ms;                 /* the last one before jitter; 0 at first */
    int64_t   next_ms;                  /* not before, on skd_now_ms() */
} skd_backoff_t;

/* Milliseconds of a clock that is never set. */
int64_t skd_now_ms(void);

/* A random number in ms/2..ms. */
uint32_t skd_jitter(uint32_t ms);

/* The next try is due after first_ms, then twice that and so on up to cap_ms. */
void skd_backoff_grow(skd_backoff_t *backoff, uint32_t first_ms, uint32_t cap_ms);
void skd_backoff_reset(skd_backoff_t *backoff);

/* Milliseconds until the next try is due, 0 when it is. */
uint32_t skd_backoff_left(const skd_backoff_t *backoff);

#endif /* _SKD_CLOCK_H_INCLUDED_ */
