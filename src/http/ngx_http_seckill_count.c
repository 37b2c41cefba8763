
/*
 * Counters in the zone, by atomic adds and without its lock; gauges in a place
 * of each worker's own.
 */


#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_record.h"


/* places an activity may have, from its id on */
#define NGX_HTTP_SECKILL_PROBES  8


static ngx_http_seckill_counted_t *ngx_http_seckill_count_find(
    ngx_http_seckill_count_t *count, uint32_t source, uint64_t activity);
static ngx_http_seckill_gauges_t *ngx_http_seckill_gauges(
    ngx_http_seckill_loc_conf_t *conf);


static ngx_http_seckill_count_t *
ngx_http_seckill_counts(ngx_http_seckill_loc_conf_t *conf)
{
    ngx_http_seckill_shm_t  *shm;

    shm = conf->shm_zone->data;

    return &shm->count;
}


void
ngx_http_seckill_count_start(ngx_http_seckill_loc_conf_t *conf)
{
    ngx_http_seckill_gauges_t  *gauges;

    ngx_seckill_redis_count(&ngx_http_seckill_counts(conf)->redis);

    gauges = ngx_http_seckill_gauges(conf);

    if (gauges->pid != (ngx_atomic_uint_t) ngx_pid) {
        /* what the worker before us left there */
        gauges->pending = 0;
        gauges->waiters = 0;
        gauges->redis_up = 0;
        gauges->pid = ngx_pid;
    }
}


void
ngx_http_seckill_count_request(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_time_t                  *tp;
    ngx_msec_int_t               ms;
    ngx_http_seckill_count_t    *count;
    ngx_http_seckill_counted_t  *counted;

    count = ngx_http_seckill_counts(ctx->conf);
    counted = ngx_http_seckill_count_find(count, ctx->conf->source,
                                          ctx->activity);

    (void) ngx_atomic_fetch_add(&counted->verdicts[ctx->verdict], 1);

    if (ctx->waiter) {
        /* waited on purpose */
        return;
    }

    tp = ngx_timeofday();
    ms = (ngx_msec_int_t) ((tp->sec - r->start_sec) * 1000
                           + (tp->msec - r->start_msec));

    ngx_seckill_histogram_add(&count->requests, ngx_max(ms, 0));
}


void
ngx_http_seckill_count_batch(ngx_http_seckill_loc_conf_t *conf, ngx_uint_t n)
{
    ngx_http_seckill_count_t  *count;

    count = ngx_http_seckill_counts(conf);

    (void) ngx_atomic_fetch_add(&count->batches, 1);
    (void) ngx_atomic_fetch_add(&count->purchases, n);
}


void
ngx_http_seckill_count_journal(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t lines)
{
    (void) ngx_atomic_fetch_add(
                    &ngx_http_seckill_counts(conf)->journal.lines, lines);
}


void
ngx_http_seckill_count_journal_failed(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t lines)
{
    ngx_http_seckill_count_t  *count;

    count = ngx_http_seckill_counts(conf);

    (void) ngx_atomic_fetch_add(&count->journal.failures, 1);
    (void) ngx_atomic_fetch_add(&count->journal.lost, lines);
}


void
ngx_http_seckill_count_journal_gap(ngx_http_seckill_loc_conf_t *conf,
    ngx_msec_t ms)
{
    (void) ngx_atomic_fetch_add(
                    &ngx_http_seckill_counts(conf)->journal.gap_ms, ms);
}


void
ngx_http_seckill_gauge_pending(ngx_http_seckill_loc_conf_t *conf, ngx_uint_t n)
{
    ngx_http_seckill_gauges(conf)->pending = n;
}


void
ngx_http_seckill_gauge_waiters(ngx_http_seckill_loc_conf_t *conf, ngx_uint_t n)
{
    ngx_http_seckill_gauges(conf)->waiters = n;
}


void
ngx_http_seckill_gauge_redis(ngx_http_seckill_loc_conf_t *conf)
{
    ngx_http_seckill_gauges(conf)->redis_up = ngx_seckill_redis_up();
}


static ngx_http_seckill_gauges_t *
ngx_http_seckill_gauges(ngx_http_seckill_loc_conf_t *conf)
{
    return &ngx_http_seckill_counts(conf)->workers[ngx_worker
                                                   % NGX_HTTP_SECKILL_WORKERS];
}


void
ngx_http_seckill_count_activity_locked(ngx_http_seckill_shm_t *shm,
    uint32_t source, uint64_t activity)
{
    ngx_uint_t                   i;
    ngx_http_seckill_counted_t  *counted;

    if (ngx_http_seckill_count_find(&shm->count, source, activity)
        != &shm->count.activities[NGX_HTTP_SECKILL_COUNTED])
    {
        return;
    }

    for (i = 0; i < NGX_HTTP_SECKILL_PROBES; i++) {
        counted = &shm->count.activities[(activity + i)
                                         % NGX_HTTP_SECKILL_COUNTED];
        if (counted->activity == 0) {
            counted->source = source;
            ngx_memory_barrier();
            counted->activity = activity;
            return;
        }
    }
}


/* the last one, when the activity has no counters of its own */

static ngx_http_seckill_counted_t *
ngx_http_seckill_count_find(ngx_http_seckill_count_t *count, uint32_t source,
    uint64_t activity)
{
    ngx_uint_t                   i;
    ngx_http_seckill_counted_t  *counted;

    for (i = 0; activity && i < NGX_HTTP_SECKILL_PROBES; i++) {
        counted = &count->activities[(activity + i) % NGX_HTTP_SECKILL_COUNTED];

        if (counted->activity == activity && counted->source == source) {
            return counted;
        }
    }

    return &count->activities[NGX_HTTP_SECKILL_COUNTED];
}
