/*
 * See the header.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "skd_stats.h"

#define SKD_BACKLOGS_STALE_US  INT64_C(30000000)        /* an older picture is not shown */

typedef struct {
    atomic_uint_fast64_t  buckets[SKD_TIME_BUCKETS];
    atomic_uint_fast64_t  sum_us;
} skd_histogram_t;

static atomic_uint_fast64_t  skd_counts[SKD_COUNTS];
static skd_histogram_t       skd_histograms[SKD_TIMES];
static atomic_uint_fast64_t  skd_down[SKD_SERVERS];     /* a bit per worker */
static atomic_int_fast64_t   skd_success_ms;

static pthread_mutex_t  skd_backlogs_mutex = PTHREAD_MUTEX_INITIALIZER;
static skd_backlog_t    skd_backlogs[SKD_BACKLOGS_MAX];
static size_t           skd_backlogs_count;
static int64_t          skd_backlogs_activities = -1;
static int64_t          skd_backlogs_us;                /* when it was drawn */
static int              skd_misses_known;       /* under the same mutex */
static int64_t          skd_misses[SKD_MISSES];

/* microseconds; above the last one is +Inf */
static const uint32_t  skd_bounds_us[SKD_TIME_BUCKETS - 1] = {
    500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000,
    10000000
};


void
skd_count(skd_count_e count, uint64_t n)
{
    atomic_fetch_add_explicit(&skd_counts[count], n, memory_order_relaxed);
}


uint64_t
skd_counted(skd_count_e count)
{
    return atomic_load_explicit(&skd_counts[count], memory_order_relaxed);
}


int64_t
skd_now_us(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_MONOTONIC, &now);

    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}


void
skd_took(skd_time_e time, int64_t since_us)
{
    size_t            i = 0;
    int64_t           us = skd_now_us() - since_us;
    skd_histogram_t  *histogram = &skd_histograms[time];

    while (i < SKD_TIME_BUCKETS - 1 && us > (int64_t) skd_bounds_us[i]) {
        i++;
    }

    atomic_fetch_add_explicit(&histogram->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histogram->sum_us, (uint64_t) us, memory_order_relaxed);
}


double
skd_time_bound(size_t bucket)
{
    return (double) skd_bounds_us[bucket] / 1e6;
}


void
skd_times(skd_time_e time, uint64_t buckets[SKD_TIME_BUCKETS], uint64_t *sum_us)
{
    skd_histogram_t  *histogram = &skd_histograms[time];

    for (size_t i = 0; i < SKD_TIME_BUCKETS; i++) {
        buckets[i] = atomic_load_explicit(&histogram->buckets[i], memory_order_relaxed);
    }

    *sum_us = atomic_load_explicit(&histogram->sum_us, memory_order_relaxed);
}


void
skd_server_down(skd_server_e server, unsigned worker, int down)
{
    uint64_t  bit = UINT64_C(1) << (worker & 63);

    if (down) {
        atomic_fetch_or(&skd_down[server], bit);

    } else {
        atomic_fetch_and(&skd_down[server], ~bit);
    }
}


int
skd_server_is_up(skd_server_e server)
{
    return atomic_load(&skd_down[server]) == 0;
}


void
skd_succeeded(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_REALTIME, &now);
    atomic_store(&skd_success_ms, (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000);
}


int64_t
skd_last_success_ms(void)
{
    return atomic_load(&skd_success_ms);
}


const char *
skd_miss_name(skd_miss_e miss)
{
    static const char *const  names[SKD_MISSES] = {
        "seq", "stock", "order_users", "orders", "eligible", "facts"
    };

    return names[miss];
}


void
skd_misses_set(const int64_t n[SKD_MISSES])
{
    pthread_mutex_lock(&skd_backlogs_mutex);

    skd_misses_known = n != NULL;

    if (n != NULL) {
        memcpy(skd_misses, n, sizeof(skd_misses));
    }

    pthread_mutex_unlock(&skd_backlogs_mutex);
}


int
skd_misses_get(int64_t n[SKD_MISSES])
{
    int  known;

    pthread_mutex_lock(&skd_backlogs_mutex);

    known = skd_misses_known;
    memcpy(n, skd_misses, sizeof(skd_misses));

    pthread_mutex_unlock(&skd_backlogs_mutex);

    return known;
}


void
skd_servers_forget(void)
{
    for (int i = 0; i < SKD_SERVERS; i++) {
        atomic_store(&skd_down[i], 0);
    }
}


void
skd_backlogs_set(const skd_backlog_t *backlogs, size_t n, size_t activities)
{
    if (n > SKD_BACKLOGS_MAX) {
        n = SKD_BACKLOGS_MAX;
    }

    pthread_mutex_lock(&skd_backlogs_mutex);

    if (n > 0) {
        memcpy(skd_backlogs, backlogs, n * sizeof(skd_backlog_t));
    }

    skd_backlogs_count = n;
    skd_backlogs_activities = (int64_t) activities;
    skd_backlogs_us = skd_now_us();
    pthread_mutex_unlock(&skd_backlogs_mutex);
}


void
skd_backlogs_forget(void)
{
    pthread_mutex_lock(&skd_backlogs_mutex);

    skd_backlogs_count = 0;
    skd_backlogs_activities = -1;

    pthread_mutex_unlock(&skd_backlogs_mutex);
}


size_t
skd_backlogs_get(skd_backlog_t *backlogs, int64_t *activities)
{
    size_t  n;

    pthread_mutex_lock(&skd_backlogs_mutex);

    n = skd_backlogs_count;
    *activities = skd_backlogs_activities;

    /* the keeper may wait for a server, for as long as its timeout */
    if (skd_now_us() - skd_backlogs_us > SKD_BACKLOGS_STALE_US) {
        n = 0;
        *activities = -1;
    }

    memcpy(backlogs, skd_backlogs, n * sizeof(skd_backlog_t));

    pthread_mutex_unlock(&skd_backlogs_mutex);

    return n;
}
