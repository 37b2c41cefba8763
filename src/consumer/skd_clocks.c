/*
 * See the header.  The judgement itself is skb_clock_trust's.
 */

#include <inttypes.h>
#include <pthread.h>

#include "skb_log.h"
#include "skd_clocks.h"
#include "skd_stats.h"

#define SKD_CLOCKS_STALE_MS  30000      /* the keeper has not looked for so long */

static pthread_mutex_t  skd_clocks_mutex = PTHREAD_MUTEX_INITIALIZER;
static skb_clocks_t     skd_clocks;

static const char *const  skd_clock_servers[SKB_CLOCKS] = { "redis", "mysql" };


static void
skd_clocks_say(const skb_clocks_t *clocks, int was_skewed)
{
    for (int i = 0; i < SKB_CLOCKS; i++) {
        if (clocks->clock[i].jump_ms != 0) {
            skd_count(i == SKB_CLOCK_REDIS ? SKD_COUNT_JUMPS_REDIS : SKD_COUNT_JUMPS_MYSQL, 1);
            skb_log(SKB_ERROR, "a server's clock was set, nothing is settled or cancelled for a "
                    "while", "server=%s by_ms=%+" PRId64, skd_clock_servers[i],
                    clocks->clock[i].jump_ms);
        }
    }

    if (clocks->skewed && !was_skewed) {
        skb_log(SKB_ERROR, "the clocks of Redis and MySQL differ, nothing is settled or "
                "cancelled", "redis_ahead_ms=%+" PRId64, clocks->skew_ms);

    } else if (!clocks->skewed && was_skewed) {
        skb_log(SKB_NOTICE, "the clocks of Redis and MySQL agree again",
                "redis_ahead_ms=%+" PRId64, clocks->skew_ms);
    }
}


void
skd_clocks_note(const skb_clock_reading_t readings[SKB_CLOCKS])
{
    int           was_skewed;
    skb_clocks_t  seen;

    pthread_mutex_lock(&skd_clocks_mutex);

    was_skewed = skd_clocks.skewed;
    skb_clocks_note(&skd_clocks, readings);
    seen = skd_clocks;

    pthread_mutex_unlock(&skd_clocks_mutex);

    skd_clocks_say(&seen, was_skewed);
}


void
skd_clocks_get(skb_clocks_t *clocks)
{
    pthread_mutex_lock(&skd_clocks_mutex);
    *clocks = skd_clocks;
    pthread_mutex_unlock(&skd_clocks_mutex);

    /* a thread that waits for a server looks at no clock */
    for (int i = 0; i < SKB_CLOCKS; i++) {
        if (skb_boot_ms() - clocks->clock[i].read_ms > SKD_CLOCKS_STALE_MS) {
            clocks->clock[i].fresh = 0;
        }
    }
}


static int
skd_clocks_trusted(const skb_config_t *config, uint64_t jump_wait_ms)
{
    skb_clocks_t  clocks;

    skd_clocks_get(&clocks);

    return skb_clocks_judge(&clocks, skb_boot_ms(), (int64_t) jump_wait_ms,
                            (int64_t) config->consumer.clock_trust_start_ms) == SKB_CLOCKS_FINE;
}


int
skd_clocks_may_settle(const skb_config_t *config)
{
    return skd_clocks_trusted(config, config->consumer.clock_trust_ms);
}


/* After that time an order of before the jump is as old as it looks, whichever way it was. */
int
skd_clocks_may_cancel(const skb_config_t *config)
{
    return skd_clocks_trusted(config, config->consumer.pay_timeout_ms);
}


uint64_t
skd_clocks_redis_ms(const skb_config_t *config)
{
    int64_t       ms;
    skb_clocks_t  clocks;

    if (!skd_clocks_may_settle(config)) {
        return 0;
    }

    skd_clocks_get(&clocks);
    ms = skb_clocks_now(&clocks, SKB_CLOCK_REDIS, skb_boot_ms());

    return ms > 0 ? (uint64_t) ms : 0;
}
