
/*
 * Loads facts and control from Redis into the zone: one load in flight per
 * worker and id, whoever asks waits for the same one.  Activity 0 is control.
 */


#ifndef _NGX_HTTP_SECKILL_LOAD_H_INCLUDED_
#define _NGX_HTTP_SECKILL_LOAD_H_INCLUDED_


#include "ngx_http_seckill_zone.h"


/* For a step: waits; the context has the loaded record when it is resumed. */
ngx_int_t ngx_http_seckill_load_wait(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, uint64_t activity);

/* Nobody waits: the record still serves. */
void ngx_http_seckill_load_again(ngx_http_seckill_ctx_t *ctx,
    uint64_t activity);


#endif /* _NGX_HTTP_SECKILL_LOAD_H_INCLUDED_ */
