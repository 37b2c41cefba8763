/*
 * See the header.
 */

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "skd_clock.h"


int64_t
skd_now_ms(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}


/* Two daemons that lost the same server must not come back in step. */
uint32_t
skd_jitter(uint32_t ms)
{
    uint32_t  random = 0;

    if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t) sizeof(random)) {
        random = (uint32_t) skd_now_ms() * 2654435761u;
    }

    return ms / 2 + random % (ms / 2 + 1);
}


void
skd_backoff_grow(skd_backoff_t *backoff, uint32_t first_ms, uint32_t cap_ms)
{
    if (backoff->delay_ms == 0) {
        backoff->delay_ms = first_ms;

    } else if (backoff->delay_ms > cap_ms / 2) {
        backoff->delay_ms = cap_ms;

    } else {
        backoff->delay_ms *= 2;
    }

    backoff->next_ms = skd_now_ms() + skd_jitter(backoff->delay_ms);
}


void
skd_backoff_reset(skd_backoff_t *backoff)
{
    backoff->delay_ms = 0;
    backoff->next_ms = 0;
}


uint32_t
skd_backoff_left(const skd_backoff_t *backoff)
{
    int64_t  left = backoff->next_ms - skd_now_ms();

    return left > 0 ? (uint32_t) left : 0;
}
