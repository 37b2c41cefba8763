
/*
 * The status endpoint's picture of a zone, taken at one moment.
 */


#ifndef _NGX_HTTP_SECKILL_STATUS_H_INCLUDED_
#define _NGX_HTTP_SECKILL_STATUS_H_INCLUDED_


#include "ngx_http_seckill_sold_out.h"


#define NGX_HTTP_SECKILL_VERSION  "0.1.0"


typedef struct {
    uint64_t                     activity;      /* 0: all others together */
    ngx_uint_t                   verdicts[SK_VERDICTS];
    int64_t                      stock;         /* -1: not known */
    uint64_t                     start_ms;
    uint64_t                     end_ms;
    sk_limit_t                   limit;         /* with limit_set */
    unsigned                     known:1;       /* what follows */
    unsigned                     closed:1;      /* in Redis: this or all */
    unsigned                     limit_set:1;   /* in place of seckill_limit */
} ngx_http_seckill_status_activity_t;


typedef struct {
    ngx_uint_t                   n;             /* activities */
    ngx_http_seckill_status_activity_t
                                 activities[NGX_HTTP_SECKILL_COUNTED + 1];

    ngx_uint_t                   requests[NGX_SECKILL_BUCKETS];
    ngx_uint_t                   requests_ms;
    ngx_uint_t                   calls[NGX_SECKILL_BUCKETS];
    ngx_uint_t                   calls_ms;
    ngx_uint_t                   failed[NGX_SECKILL_KINDS];

    ngx_uint_t                   batches;
    ngx_uint_t                   losses;
    ngx_uint_t                   journal;       /* 1: this node has one */
    ngx_uint_t                   journal_lines;
    ngx_uint_t                   journal_failures;
    ngx_uint_t                   journal_lost;
    ngx_uint_t                   journal_gap_ms;
    ngx_uint_t                   purchases;
    ngx_uint_t                   pending;
    ngx_uint_t                   waiters;
    ngx_uint_t                   workers;
    ngx_uint_t                   workers_up;    /* with Redis */
    ngx_uint_t                   connections;   /* of one worker, at most */
    ngx_uint_t                   files;         /* open in one worker, at most */

    size_t                       zone_bytes;
    size_t                       zone_free;
    ngx_uint_t                   records[NGX_HTTP_SECKILL_TABLES];
    ngx_uint_t                   evicted[NGX_HTTP_SECKILL_TABLES];
    ngx_uint_t                   filters_bytes;
    ngx_uint_t                   resets;
} ngx_http_seckill_status_t;


/* names of the tables, in their order */
extern const char  *ngx_http_seckill_table_names[NGX_HTTP_SECKILL_TABLES];


/* Room for either text, and the texts; they return their end. */
size_t ngx_http_seckill_status_size(ngx_http_seckill_status_t *status);
u_char *ngx_http_seckill_status_prometheus(ngx_http_seckill_status_t *status,
    u_char *p);
u_char *ngx_http_seckill_status_json(ngx_http_seckill_status_t *status,
    u_char *p);


#endif /* _NGX_HTTP_SECKILL_STATUS_H_INCLUDED_ */
