
/*
 * Opaque tokens remembered for seckill_refresh.
 */


#ifndef _NGX_HTTP_SECKILL_SESSION_H_INCLUDED_
#define _NGX_HTTP_SECKILL_SESSION_H_INCLUDED_


#include "ngx_http_seckill.h"


#define NGX_HTTP_SECKILL_HASH_LEN  32           /* SHA-256 of a token */


/* NGX_OK and the user, 0 for a bad token; NGX_DECLINED: Redis is to be asked. */
ngx_int_t ngx_http_seckill_session_get(ngx_http_seckill_loc_conf_t *conf,
    u_char *hash, uint64_t *user);

/* What Redis said when it was asked, in ngx_current_msec. */
void ngx_http_seckill_session_set(ngx_http_seckill_loc_conf_t *conf,
    u_char *hash, uint64_t user, ngx_msec_t asked);


#endif /* _NGX_HTTP_SECKILL_SESSION_H_INCLUDED_ */
