
/*
 * What the path asks for and whose request it is.  See the files of both names.
 */


#ifndef _NGX_HTTP_SECKILL_PATH_H_INCLUDED_
#define _NGX_HTTP_SECKILL_PATH_H_INCLUDED_


#include "ngx_http_seckill.h"


/* ngx_http_seckill_path.c */

/* Sets ctx->activity and ctx->result_route.  NGX_DECLINED: it serves no such. */
ngx_int_t ngx_http_seckill_path(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* Which rule holds in the location that is being merged. */
void ngx_http_seckill_conf_path(ngx_conf_t *cf,
    ngx_http_seckill_loc_conf_t *prev, ngx_http_seckill_loc_conf_t *conf);


/* ngx_http_seckill_own.c */

/* NGX_DECLINED: nginx made this request behind another one. */
ngx_int_t ngx_http_seckill_own(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* Notes error pages that leave no trace in a request. */
void ngx_http_seckill_conf_own(ngx_conf_t *cf,
    ngx_http_seckill_main_conf_t *smcf, ngx_http_seckill_loc_conf_t *prev,
    ngx_http_seckill_loc_conf_t *conf);

/* All locations are merged: they are traced where there are such pages. */
ngx_int_t ngx_http_seckill_own_init(ngx_conf_t *cf);


#endif /* _NGX_HTTP_SECKILL_PATH_H_INCLUDED_ */
