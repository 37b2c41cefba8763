
/*
 * What is counted, for the status endpoint.
 */


#ifndef _NGX_HTTP_SECKILL_COUNT_H_INCLUDED_
#define _NGX_HTTP_SECKILL_COUNT_H_INCLUDED_


#include "ngx_http_seckill.h"


/* The request was answered with ctx->verdict. */
void ngx_http_seckill_count_request(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* A batch of n purchases left. */
void ngx_http_seckill_count_batch(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t n);

/* This worker's gauges: purchases and requests that wait. */
void ngx_http_seckill_gauge_pending(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t n);
void ngx_http_seckill_gauge_waiters(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t n);

/* Lines that were written; that were not; milliseconds without a journal. */
void ngx_http_seckill_count_journal(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t lines);
void ngx_http_seckill_count_journal_failed(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t lines);
void ngx_http_seckill_count_journal_gap(ngx_http_seckill_loc_conf_t *conf,
    ngx_msec_t ms);

void ngx_http_seckill_gauge_redis(ngx_http_seckill_loc_conf_t *conf);

/* Before the worker's first call of Redis. */
void ngx_http_seckill_count_start(ngx_http_seckill_loc_conf_t *conf);


#endif /* _NGX_HTTP_SECKILL_COUNT_H_INCLUDED_ */
