
/*
 * Purchases on their way to Redis.
 */


#ifndef _NGX_HTTP_SECKILL_ADMIT_H_INCLUDED_
#define _NGX_HTTP_SECKILL_ADMIT_H_INCLUDED_


#include "ngx_http_seckill.h"


/* The client of a purchase that gathers, or is in flight, has left. */
void ngx_http_seckill_lane_leave(ngx_http_seckill_ctx_t *ctx);
void ngx_http_seckill_batch_leave(ngx_http_seckill_ctx_t *ctx);


#endif /* _NGX_HTTP_SECKILL_ADMIT_H_INCLUDED_ */
