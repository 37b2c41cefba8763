
/*
 * The status endpoint: takes a picture of the zone's counters and answers with
 * it; what it looks like is in ngx_http_seckill_status_text.c.
 */


#include "ngx_http_seckill_journal.h"
#include "ngx_http_seckill_status.h"

#include <sys/resource.h>


static ngx_int_t ngx_http_seckill_status_handler(ngx_http_request_t *r);
static void ngx_http_seckill_status_take(ngx_shm_zone_t *shm_zone,
    ngx_http_seckill_status_t *status);
static void ngx_http_seckill_status_take_limits(
    ngx_http_seckill_status_t *status);
static void ngx_http_seckill_status_take_activities(
    ngx_http_seckill_shm_t *shm, ngx_http_seckill_status_t *status);
static void ngx_http_seckill_status_take_switches(
    ngx_http_seckill_shm_t *shm, uint32_t source,
    ngx_http_seckill_facts_t *facts,
    ngx_http_seckill_status_activity_t *activity);
static void ngx_http_seckill_status_take_zone_locked(ngx_slab_pool_t *shpool,
    ngx_http_seckill_shm_t *shm, ngx_http_seckill_status_t *status);


const char  *ngx_http_seckill_table_names[NGX_HTTP_SECKILL_TABLES] = {
    "sessions", "users", "negatives", "facts"
};


/* seckill_status [prometheus | json]; */

char *
ngx_http_seckill_conf_status(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_seckill_loc_conf_t  *slcf = conf;

    ngx_str_t                 *value;
    ngx_http_core_loc_conf_t  *clcf;

    if (slcf->status) {
        return "is duplicate";
    }

    value = cf->args->elts;
    slcf->status = NGX_HTTP_SECKILL_PROMETHEUS;

    if (cf->args->nelts > 1) {
        if (ngx_strcmp(value[1].data, "json") == 0) {
            slcf->status = NGX_HTTP_SECKILL_JSON;

        } else if (ngx_strcmp(value[1].data, "prometheus") != 0) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value \"%V\", "
                               "\"prometheus\" or \"json\" is expected",
                               &value[1]);
            return NGX_CONF_ERROR;
        }
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);
    clcf->handler = ngx_http_seckill_status_handler;

    return NGX_CONF_OK;
}


static ngx_int_t
ngx_http_seckill_status_handler(ngx_http_request_t *r)
{
    ngx_int_t                       rc;
    ngx_buf_t                      *b;
    ngx_chain_t                     out;
    ngx_http_seckill_status_t      *status;
    ngx_http_seckill_loc_conf_t    *slcf;
    ngx_http_seckill_main_conf_t   *smcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    slcf = ngx_http_get_module_loc_conf(r, ngx_http_seckill_module);
    smcf = ngx_http_get_module_main_conf(r, ngx_http_seckill_module);

    if (smcf->shm_zone == NULL) {
        return NGX_HTTP_NOT_FOUND;
    }

    status = ngx_pcalloc(r->pool, sizeof(ngx_http_seckill_status_t));
    if (status == NULL) {
        return NGX_ERROR;
    }

    ngx_http_seckill_status_take(smcf->shm_zone, status);
    ngx_http_seckill_status_take_limits(status);

    b = ngx_create_temp_buf(r->pool, ngx_http_seckill_status_size(status));
    if (b == NULL) {
        return NGX_ERROR;
    }

    if (slcf->status == NGX_HTTP_SECKILL_JSON) {
        b->last = ngx_http_seckill_status_json(status, b->last);
        ngx_str_set(&r->headers_out.content_type, "application/json");

    } else {
        b->last = ngx_http_seckill_status_prometheus(status, b->last);
        ngx_str_set(&r->headers_out.content_type,
                    "text/plain; version=0.0.4; charset=utf-8");
    }

    b->last_buf = 1;
    b->last_in_chain = 1;

    /* the type is complete: no charset is added */
    r->headers_out.content_type_len = 0;
    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_length_n = b->last - b->pos;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


static void
ngx_http_seckill_status_take(ngx_shm_zone_t *shm_zone,
    ngx_http_seckill_status_t *status)
{
    ngx_uint_t                  i;
    ngx_http_seckill_shm_t     *shm;
    ngx_http_seckill_count_t   *count;
    ngx_http_seckill_gauges_t  *gauges;

    shm = ngx_http_seckill_zone_lock(shm_zone);

    ngx_http_seckill_status_take_activities(shm, status);
    ngx_http_seckill_status_take_zone_locked(
                      (ngx_slab_pool_t *) shm_zone->shm.addr, shm, status);

    ngx_http_seckill_zone_unlock(shm_zone);

    status->zone_bytes = shm_zone->shm.size;

    count = &shm->count;

    for (i = 0; i < NGX_SECKILL_BUCKETS; i++) {
        status->requests[i] = count->requests.buckets[i];
        status->calls[i] = count->redis.calls.buckets[i];
    }

    status->requests_ms = count->requests.sum;
    status->calls_ms = count->redis.calls.sum;

    for (i = 0; i < NGX_SECKILL_KINDS; i++) {
        status->failed[i] = count->redis.failed[i];
    }

    status->batches = count->batches;
    status->losses = count->losses;
    status->journal = ngx_http_seckill_journal_on();
    status->journal_lines = count->journal.lines;
    status->journal_failures = count->journal.failures;
    status->journal_lost = count->journal.lost;
    status->journal_gap_ms = count->journal.gap_ms;
    status->purchases = count->purchases;
    status->resets = count->resets;

    for (i = 0; i < NGX_HTTP_SECKILL_WORKERS; i++) {
        gauges = &count->workers[i];

        /* a worker that died has left its gauges */

        if (gauges->pid == 0 || kill((pid_t) gauges->pid, 0) != 0) {
            continue;
        }

        status->workers++;
        status->workers_up += gauges->redis_up;
        status->pending += gauges->pending;
        status->waiters += gauges->waiters;
    }
}


/* every worker has those of the one that answers */

static void
ngx_http_seckill_status_take_limits(ngx_http_seckill_status_t *status)
{
    struct rlimit  limit;

    status->connections = ngx_cycle->connection_n;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        status->files = limit.rlim_cur;
    }
}


static void
ngx_http_seckill_status_take_activities(ngx_http_seckill_shm_t *shm,
    ngx_http_seckill_status_t *status)
{
    uint32_t                             source;
    ngx_uint_t                           i, k;
    ngx_http_seckill_counted_t          *counted;
    ngx_http_seckill_facts_record_t     *record;
    ngx_http_seckill_status_activity_t  *activity;

    for (i = 0; i <= NGX_HTTP_SECKILL_COUNTED; i++) {
        counted = &shm->count.activities[i];

        if (counted->activity == 0 && i != NGX_HTTP_SECKILL_COUNTED) {
            continue;
        }

        activity = &status->activities[status->n++];
        activity->activity = counted->activity;
        activity->stock = -1;

        for (k = 0; k < SK_VERDICTS; k++) {
            activity->verdicts[k] = counted->verdicts[k];
        }

        source = (uint32_t) counted->source;

        record = counted->activity
                 ? ngx_http_seckill_facts_find_locked(shm, source,
                                                      counted->activity)
                 : NULL;

        if (record) {
            activity->stock = record->facts.stock;
            activity->start_ms = record->facts.start_ms;
            activity->end_ms = record->facts.end_ms;

            ngx_http_seckill_status_take_switches(shm, source,
                                                  &record->facts, activity);
        }
    }
}


/* those of this sale before those of all */

static void
ngx_http_seckill_status_take_switches(ngx_http_seckill_shm_t *shm,
    uint32_t source, ngx_http_seckill_facts_t *facts,
    ngx_http_seckill_status_activity_t *activity)
{
    ngx_http_seckill_control_t  control;

    ngx_http_seckill_zone_control_locked(shm, source, &control);

    activity->known = facts->known;
    activity->closed = (facts->closed && !facts->settled) || control.closed;
    activity->limit_set = facts->limit_set || control.limit_set;
    activity->limit = facts->limit_set ? facts->limit : control.limit;
}


static void
ngx_http_seckill_status_take_zone_locked(ngx_slab_pool_t *shpool,
    ngx_http_seckill_shm_t *shm, ngx_http_seckill_status_t *status)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_SECKILL_TABLES; i++) {
        status->records[i] = shm->tables[i].count;
        status->evicted[i] = shm->tables[i].evicted;
    }

    status->zone_free = shpool->pfree * ngx_pagesize;
    status->filters_bytes = shm->buyers.in_use * 1024;
}
