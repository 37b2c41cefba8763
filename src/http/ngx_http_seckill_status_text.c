
/*
 * The status as text: Prometheus' format, and JSON with the same figures.
 */


#include "ngx_http_seckill_status.h"


/* the longest line of a sample, and all that is not per activity */
#define NGX_HTTP_SECKILL_STATUS_LINE  128
#define NGX_HTTP_SECKILL_STATUS_REST  12288


static u_char *ngx_http_seckill_status_head(u_char *p, const char *name,
    const char *type, const char *help);
static u_char *ngx_http_seckill_status_value(u_char *p, const char *name,
    const char *type, const char *help, ngx_uint_t value);
static u_char *ngx_http_seckill_status_histogram(u_char *p, const char *name,
    const char *help, ngx_uint_t *buckets, ngx_uint_t ms);
static u_char *ngx_http_seckill_status_activities(
    ngx_http_seckill_status_t *status, u_char *p);
static u_char *ngx_http_seckill_status_journal(
    ngx_http_seckill_status_t *status, u_char *p);
static u_char *ngx_http_seckill_status_switches(
    ngx_http_seckill_status_t *status, u_char *p);
static u_char *ngx_http_seckill_status_tables(
    ngx_http_seckill_status_t *status, u_char *p);
static u_char *ngx_http_seckill_status_seconds(u_char *p, ngx_uint_t ms);
static u_char *ngx_http_seckill_json_histogram(u_char *p, const char *name,
    ngx_uint_t *buckets, ngx_uint_t ms);
static u_char *ngx_http_seckill_json_activity(u_char *p,
    ngx_http_seckill_status_activity_t *activity);


static const ngx_msec_t  ngx_http_seckill_bounds[] = NGX_SECKILL_BOUNDS;


size_t
ngx_http_seckill_status_size(ngx_http_seckill_status_t *status)
{
    return NGX_HTTP_SECKILL_STATUS_REST
           + status->n * (SK_VERDICTS + 5) * NGX_HTTP_SECKILL_STATUS_LINE;
}


u_char *
ngx_http_seckill_status_prometheus(ngx_http_seckill_status_t *status,
    u_char *p)
{
    ngx_uint_t  i;

    p = ngx_http_seckill_status_head(p, "seckill_build_info", "gauge",
                                     "Version of the module.");
    p = ngx_sprintf(p, "seckill_build_info{version=\"%s\",nginx=\"%s\"} 1\n",
                    NGX_HTTP_SECKILL_VERSION, NGINX_VERSION);

    p = ngx_http_seckill_status_activities(status, p);

    p = ngx_http_seckill_status_histogram(p, "seckill_request_duration_seconds",
                                    "Time of requests that did not wait for "
                                    "their result on purpose.",
                                    status->requests, status->requests_ms);
    p = ngx_http_seckill_status_histogram(p,
                                    "seckill_redis_call_duration_seconds",
                                    "Time of answered Redis calls, queueing "
                                    "included.",
                                    status->calls, status->calls_ms);

    p = ngx_http_seckill_status_head(p, "seckill_redis_failed_total", "counter",
                                     "Redis calls that were not answered, or "
                                     "refused, by kind.");

    for (i = 0; i < NGX_SECKILL_KINDS; i++) {
        p = ngx_sprintf(p, "seckill_redis_failed_total{kind=\"%s\"} %ui\n",
                        ngx_seckill_redis_kind(i), status->failed[i]);
    }

    p = ngx_http_seckill_status_value(p, "seckill_batches_total", "counter",
                                      "Calls of admit.lua.", status->batches);
    p = ngx_http_seckill_status_value(p, "seckill_batch_purchases_total",
                                      "counter", "Purchases in those calls.",
                                      status->purchases);
    p = ngx_http_seckill_status_value(p, "seckill_data_loss_total", "counter",
                                      "Times that Redis knew less of a sale "
                                      "than before: it was paused.",
                                      status->losses);
    p = ngx_http_seckill_status_journal(status, p);

    p = ngx_http_seckill_status_value(p, "seckill_pending_purchases", "gauge",
                                      "Purchases that wait for Redis.",
                                      status->pending);
    p = ngx_http_seckill_status_value(p, "seckill_waiters", "gauge",
                                      "Long polls and event streams.",
                                      status->waiters);
    p = ngx_http_seckill_status_value(p, "seckill_workers", "gauge",
                                      "Workers that have used Redis.",
                                      status->workers);
    p = ngx_http_seckill_status_value(p, "seckill_workers_redis_up", "gauge",
                                      "Workers whose Redis connections are all "
                                      "ready.", status->workers_up);
    p = ngx_http_seckill_status_value(p, "seckill_worker_connections", "gauge",
                                      "Connections that a worker may have.",
                                      status->connections);
    p = ngx_http_seckill_status_value(p, "seckill_worker_open_files", "gauge",
                                      "Files that a worker may open.",
                                      status->files);

    return ngx_http_seckill_status_tables(status, p);
}


static u_char *
ngx_http_seckill_status_journal(ngx_http_seckill_status_t *status, u_char *p)
{
    p = ngx_http_seckill_status_value(p, "seckill_journal", "gauge",
                                      "1: this node writes a journal.",
                                      status->journal);
    p = ngx_http_seckill_status_value(p, "seckill_journal_lines_total",
                                      "counter", "Purchases in the journal.",
                                      status->journal_lines);
    p = ngx_http_seckill_status_value(p, "seckill_journal_failures_total",
                                      "counter", "Writes of the journal that "
                                      "failed.", status->journal_failures);
    p = ngx_http_seckill_status_value(p, "seckill_journal_lost_lines_total",
                                      "counter", "Purchases that are missing "
                                      "in the journal.", status->journal_lost);
    p = ngx_http_seckill_status_head(p, "seckill_journal_gap_seconds_total",
                                     "counter", "Seconds in which the journal "
                                     "could not be written, of all workers "
                                     "together.");
    p = ngx_sprintf(p, "seckill_journal_gap_seconds_total ");
    p = ngx_http_seckill_status_seconds(p, status->journal_gap_ms);
    *p++ = '\n';

    return p;
}


static u_char *
ngx_http_seckill_status_activities(ngx_http_seckill_status_t *status,
    u_char *p)
{
    ngx_uint_t                           i, k;
    ngx_http_seckill_status_activity_t  *activity;

    p = ngx_http_seckill_status_head(p, "seckill_requests_total", "counter",
                                     "Answered requests by activity and "
                                     "verdict.");

    for (i = 0; i < status->n; i++) {
        activity = &status->activities[i];

        for (k = 0; k < SK_VERDICTS; k++) {
            if (activity->verdicts[k] == 0) {
                continue;
            }

            p = ngx_sprintf(p, "seckill_requests_total{activity=\"");
            p = activity->activity ? ngx_sprintf(p, "%uL", activity->activity)
                                   : ngx_sprintf(p, "other");
            p = ngx_sprintf(p, "\",verdict=\"%s\"} %ui\n",
                            sk_verdicts[k].word, activity->verdicts[k]);
        }
    }

    p = ngx_http_seckill_status_head(p, "seckill_stock_units", "gauge",
                                     "Units left, as this node knows it.");

    for (i = 0; i < status->n; i++) {
        activity = &status->activities[i];

        if (activity->stock >= 0) {
            p = ngx_sprintf(p, "seckill_stock_units{activity=\"%uL\"} %L\n",
                            activity->activity, activity->stock);
        }
    }

    return ngx_http_seckill_status_switches(status, p);
}


static u_char *
ngx_http_seckill_status_switches(ngx_http_seckill_status_t *status, u_char *p)
{
    ngx_uint_t                           i;
    ngx_http_seckill_status_activity_t  *activity;

    p = ngx_http_seckill_status_head(p, "seckill_closed", "gauge",
                                     "1: the entry is shut in Redis, of this "
                                     "sale or of all.");

    for (i = 0; i < status->n; i++) {
        activity = &status->activities[i];

        if (activity->known) {
            p = ngx_sprintf(p, "seckill_closed{activity=\"%uL\"} %ui\n",
                            activity->activity, (ngx_uint_t) activity->closed);
        }
    }

    p = ngx_http_seckill_status_head(p, "seckill_limit_interval_seconds",
                                     "gauge", "Seconds a purchase of one user "
                                     "where the limit in Redis is in force in "
                                     "place of nginx' own; 0: no limit.");

    for (i = 0; i < status->n; i++) {
        activity = &status->activities[i];

        if (activity->limit_set) {
            p = ngx_sprintf(p, "seckill_limit_interval_seconds"
                            "{activity=\"%uL\"} ", activity->activity);
            p = ngx_http_seckill_status_seconds(p, activity->limit.interval_ms);
            *p++ = '\n';
        }
    }

    return p;
}


static u_char *
ngx_http_seckill_status_tables(ngx_http_seckill_status_t *status, u_char *p)
{
    ngx_uint_t  i;

    p = ngx_http_seckill_status_value(p, "seckill_zone_size_bytes", "gauge",
                                      "Size of the shared zone.",
                                      status->zone_bytes);
    p = ngx_http_seckill_status_value(p, "seckill_zone_free_bytes", "gauge",
                                      "Free pages of it.", status->zone_free);
    p = ngx_http_seckill_status_value(p, "seckill_zone_filters_bytes", "gauge",
                                      "Used by filters of buyers.",
                                      status->filters_bytes);
    p = ngx_http_seckill_status_value(p, "seckill_zone_resets_total", "counter",
                                      "Times the zone started anew because a "
                                      "worker died inside its lock.",
                                      status->resets);

    p = ngx_http_seckill_status_head(p, "seckill_zone_records", "gauge",
                                     "Records by table.");

    for (i = 0; i < NGX_HTTP_SECKILL_TABLES; i++) {
        p = ngx_sprintf(p, "seckill_zone_records{table=\"%s\"} %ui\n",
                        ngx_http_seckill_table_names[i], status->records[i]);
    }

    p = ngx_http_seckill_status_head(p, "seckill_zone_evictions_total",
                                     "counter", "Records that made room.");

    for (i = 0; i < NGX_HTTP_SECKILL_TABLES; i++) {
        p = ngx_sprintf(p, "seckill_zone_evictions_total{table=\"%s\"} %ui\n",
                        ngx_http_seckill_table_names[i], status->evicted[i]);
    }

    return p;
}


static u_char *
ngx_http_seckill_status_head(u_char *p, const char *name, const char *type,
    const char *help)
{
    return ngx_sprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
                       type);
}


static u_char *
ngx_http_seckill_status_value(u_char *p, const char *name, const char *type,
    const char *help, ngx_uint_t value)
{
    p = ngx_http_seckill_status_head(p, name, type, help);

    return ngx_sprintf(p, "%s %ui\n", name, value);
}


static u_char *
ngx_http_seckill_status_histogram(u_char *p, const char *name,
    const char *help, ngx_uint_t *buckets, ngx_uint_t ms)
{
    ngx_uint_t  i, sum;

    p = ngx_http_seckill_status_head(p, name, "histogram", help);
    sum = 0;

    for (i = 0; i < NGX_SECKILL_BUCKETS; i++) {
        sum += buckets[i];

        p = ngx_sprintf(p, "%s_bucket{le=\"", name);
        p = (i < NGX_SECKILL_BUCKETS - 1)
            ? ngx_http_seckill_status_seconds(p, ngx_http_seckill_bounds[i])
            : ngx_sprintf(p, "+Inf");
        p = ngx_sprintf(p, "\"} %ui\n", sum);
    }

    p = ngx_sprintf(p, "%s_sum ", name);
    p = ngx_http_seckill_status_seconds(p, ms);

    return ngx_sprintf(p, "\n%s_count %ui\n", name, sum);
}


static u_char *
ngx_http_seckill_status_seconds(u_char *p, ngx_uint_t ms)
{
    return ngx_sprintf(p, "%ui.%03ui", ms / 1000, ms % 1000);
}


u_char *
ngx_http_seckill_status_json(ngx_http_seckill_status_t *status, u_char *p)
{
    ngx_uint_t  i;

    p = ngx_sprintf(p, "{\"version\":\"%s\",\"activities\":{",
                    NGX_HTTP_SECKILL_VERSION);

    for (i = 0; i < status->n; i++) {
        p = ngx_http_seckill_json_activity(p, &status->activities[i]);
        *p++ = (i + 1 < status->n) ? ',' : '}';
    }

    p = ngx_http_seckill_json_histogram(p, "requests", status->requests,
                                        status->requests_ms);
    p = ngx_http_seckill_json_histogram(p, "redis_calls", status->calls,
                                        status->calls_ms);

    p = ngx_sprintf(p, ",\"redis_failed\":{");

    for (i = 0; i < NGX_SECKILL_KINDS; i++) {
        p = ngx_sprintf(p, "%s\"%s\":%ui", i ? "," : "",
                        ngx_seckill_redis_kind(i), status->failed[i]);
    }

    p = ngx_sprintf(p, "},\"journal\":{\"on\":%ui,\"lines\":%ui,"
                    "\"failures\":%ui,\"lost\":%ui,\"gap_ms\":%ui",
                    status->journal, status->journal_lines,
                    status->journal_failures, status->journal_lost,
                    status->journal_gap_ms);

    p = ngx_sprintf(p, "},\"data_loss\":%ui,\"batches\":%ui,\"batch_purchases\":%ui,"
                    "\"pending\":%ui,\"waiters\":%ui,\"workers\":%ui,"
                    "\"workers_redis_up\":%ui,\"worker_connections\":%ui,"
                    "\"worker_open_files\":%ui,\"zone\":{\"size\":%uz,"
                    "\"free\":%uz,\"filters\":%ui,\"resets\":%ui",
                    status->losses, status->batches, status->purchases,
                    status->pending,
                    status->waiters, status->workers, status->workers_up,
                    status->connections, status->files,
                    status->zone_bytes, status->zone_free,
                    status->filters_bytes, status->resets);

    for (i = 0; i < NGX_HTTP_SECKILL_TABLES; i++) {
        p = ngx_sprintf(p, ",\"%s\":%ui", ngx_http_seckill_table_names[i],
                        status->records[i]);
    }

    return ngx_sprintf(p, "}}\n");
}


static u_char *
ngx_http_seckill_json_activity(u_char *p,
    ngx_http_seckill_status_activity_t *activity)
{
    ngx_uint_t   k;
    const char  *comma;

    p = activity->activity ? ngx_sprintf(p, "\"%uL\":{", activity->activity)
                           : ngx_sprintf(p, "\"other\":{");
    comma = "";

    if (activity->stock >= 0) {
        p = ngx_sprintf(p, "\"stock\":%L,\"start_ms\":%uL,\"end_ms\":%uL",
                        activity->stock, activity->start_ms, activity->end_ms);
        comma = ",";
    }

    if (activity->known) {
        p = ngx_sprintf(p, "%s\"closed\":%s", comma,
                        activity->closed ? "true" : "false");
        comma = ",";
    }

    if (activity->limit_set) {
        p = ngx_sprintf(p, "%s\"limit\":{\"interval_ms\":%uD,\"burst\":%uD}",
                        comma, activity->limit.interval_ms,
                        activity->limit.burst);
        comma = ",";
    }

    p = ngx_sprintf(p, "%s\"verdicts\":{", comma);
    comma = "";

    for (k = 0; k < SK_VERDICTS; k++) {
        if (activity->verdicts[k]) {
            p = ngx_sprintf(p, "%s\"%s\":%ui", comma, sk_verdicts[k].word,
                            activity->verdicts[k]);
            comma = ",";
        }
    }

    return ngx_sprintf(p, "}}");
}


/* counts up to each bound, in milliseconds; the last has none */

static u_char *
ngx_http_seckill_json_histogram(u_char *p, const char *name,
    ngx_uint_t *buckets, ngx_uint_t ms)
{
    ngx_uint_t  i;

    p = ngx_sprintf(p, ",\"%s\":{\"sum_ms\":%ui,\"bounds_ms\":[", name, ms);

    for (i = 0; i < NGX_SECKILL_BUCKETS - 1; i++) {
        p = ngx_sprintf(p, "%s%M", i ? "," : "", ngx_http_seckill_bounds[i]);
    }

    p = ngx_sprintf(p, "],\"counts\":[");

    for (i = 0; i < NGX_SECKILL_BUCKETS; i++) {
        p = ngx_sprintf(p, "%s%ui", i ? "," : "", buckets[i]);
    }

    return ngx_sprintf(p, "]}");
}
