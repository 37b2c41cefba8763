/*
 * What the metrics tell: counters and latencies that every thread adds to
 * without a lock, and a picture of the backlog that the keeper draws.
 */

#ifndef _SKD_STATS_H_INCLUDED_
#define _SKD_STATS_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

typedef enum {
#define SKD_COUNT(name, metric, labels, help)  SKD_COUNT_##name,
#include "skd_counts_x.h"
#undef SKD_COUNT
    SKD_COUNTS
} skd_count_e;

typedef enum {
    SKD_TIME_BATCH,                     /* from read to settled */
    SKD_TIME_COMMIT,                    /* the COMMIT alone */
    SKD_TIMES
} skd_time_e;

typedef enum {
    SKD_SERVER_REDIS,
    SKD_SERVER_MYSQL,
    SKD_SERVERS
} skd_server_e;

/* What a sale can miss in Redis; the names are those of pause.lua. */
typedef enum {
    SKD_MISS_SEQ,
    SKD_MISS_STOCK,
    SKD_MISS_BUYERS,
    SKD_MISS_ORDERS,
    SKD_MISS_ELIGIBLE,
    SKD_MISS_FACTS,
    SKD_MISSES
} skd_miss_e;

#define SKD_TIME_BUCKETS    14          /* the last one is +Inf */
#define SKD_BACKLOGS_MAX    1000        /* activities that are shown one by one */

/* The queue of one activity; numbers are -1 when not known. */
typedef struct {
    uint64_t  activity;
    int64_t   unread;
    int64_t   pending;
    int64_t   dead;
    int64_t   oldest_ms;                /* age of the oldest unhandled one, 0: none */
} skd_backlog_t;

void skd_count(skd_count_e count, uint64_t n);
uint64_t skd_counted(skd_count_e count);

/* Microseconds since a moment of skd_now_us(). */
int64_t skd_now_us(void);
void skd_took(skd_time_e time, int64_t since_us);

/* Seconds of a bucket's bound; the numbers in the buckets, not added up; sum in us. */
double skd_time_bound(size_t bucket);
void skd_times(skd_time_e time, uint64_t buckets[SKD_TIME_BUCKETS], uint64_t *sum_us);

/* A worker can or can't use a server; it is up when no worker says otherwise. */
void skd_server_down(skd_server_e server, unsigned worker, int down);
int skd_server_is_up(skd_server_e server);

/* Something was stored and settled now; 0 when never, else epoch milliseconds. */
void skd_succeeded(void);
int64_t skd_last_success_ms(void);

const char *skd_miss_name(skd_miss_e miss);

/* How many sales miss it; NULL: not known.  skd_misses_get() returns 0 then. */
void skd_misses_set(const int64_t n[SKD_MISSES]);
int skd_misses_get(int64_t n[SKD_MISSES]);

/* The new picture, at most SKD_BACKLOGS_MAX of it; activities are registered in all. */
void skd_backlogs_set(const skd_backlog_t *backlogs, size_t n, size_t activities);

/* Redis is away: nothing is known any more. */
void skd_backlogs_forget(void);

/*
 * A copy of it; returns how many, at most SKD_BACKLOGS_MAX.  *activities is -1 when
 * nothing is known, or the picture is too old to be shown.
 */
size_t skd_backlogs_get(skd_backlog_t *backlogs, int64_t *activities);

/* Workers say anew which servers are there: those that stopped say nothing any more. */
void skd_servers_forget(void);

#endif /* _SKD_STATS_H_INCLUDED_ */
