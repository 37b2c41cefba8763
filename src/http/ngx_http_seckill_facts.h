
/*
 * What lua/facts.lua and lua/control.lua are asked and what they answer.
 */


#ifndef _NGX_HTTP_SECKILL_FACTS_H_INCLUDED_
#define _NGX_HTTP_SECKILL_FACTS_H_INCLUDED_


#include "ngx_http_seckill.h"


/* numbers of ours are exact in Lua and JavaScript too: up to 2^53 - 1 */
#define NGX_HTTP_SECKILL_NUMBER_MAX  9007199254740991LL


/* A call of facts.lua.  NULL: out of memory. */
ngx_seckill_call_t *ngx_http_seckill_facts_question(
    ngx_http_seckill_loc_conf_t *conf, uint64_t activity,
    ngx_seckill_call_done_pt done, void *data, ngx_msec_t deadline);

/* A call of bought.lua: has the user, and is the sale whole? */
ngx_seckill_call_t *ngx_http_seckill_bought_question(
    ngx_http_seckill_loc_conf_t *conf, uint64_t activity, uint64_t user,
    ngx_seckill_call_done_pt done, void *data, ngx_msec_t deadline);

/* A call of control.lua. */
ngx_seckill_call_t *ngx_http_seckill_control_question(
    ngx_http_seckill_loc_conf_t *conf, ngx_seckill_call_done_pt done,
    void *data, ngx_msec_t deadline);

/*
 * NGX_ERROR: no such answer.  Facts that are there and can't be used are
 * "damaged", so that they are not asked for again by everybody.
 */
ngx_int_t ngx_http_seckill_facts_read(ngx_seckill_call_t *call,
    uint64_t activity, ngx_http_seckill_facts_t *facts);

/* Of the facts only what is said of them, epoch, seq and member. */
ngx_int_t ngx_http_seckill_bought_read(ngx_seckill_call_t *call,
    ngx_http_seckill_facts_t *facts);

/* asked: ngx_current_msec when Redis was asked */
ngx_int_t ngx_http_seckill_control_read(ngx_seckill_call_t *call,
    ngx_msec_t asked, ngx_http_seckill_control_t *control);


#endif /* _NGX_HTTP_SECKILL_FACTS_H_INCLUDED_ */
