
/*
 * The shared zone: a cache of Redis' own words.  Losing it costs speed, never
 * correctness.  Records are copied in and out under the mutex; no pointer into
 * the zone leaves this interface.
 */


#ifndef _NGX_HTTP_SECKILL_ZONE_H_INCLUDED_
#define _NGX_HTTP_SECKILL_ZONE_H_INCLUDED_


#include "ngx_http_seckill.h"


/* how good a record is */
typedef enum {
    NGX_HTTP_SECKILL_MISSING = 0,       /* not there, or too old to be used */
    NGX_HTTP_SECKILL_FRESH,
    NGX_HTTP_SECKILL_AGING              /* good, but the caller is to load it again */
} ngx_http_seckill_freshness_e;


typedef struct {
    uint32_t                     source;    /* which Redis, db and prefix */
    uint64_t                     activity;  /* 0: control */
    uint64_t                     user;      /* 0: the activity's own record */
} ngx_http_seckill_key_t;


void ngx_http_seckill_key_set(ngx_http_seckill_key_t *key, uint32_t source,
    uint64_t activity, uint64_t user);


/* "seckill_zone": creates it, or adopts the one of the last configuration */
ngx_int_t ngx_http_seckill_zone_init(ngx_shm_zone_t *shm_zone, void *data);


/* ngx_http_seckill_activity.c */

ngx_http_seckill_freshness_e ngx_http_seckill_zone_control(
    ngx_http_seckill_loc_conf_t *conf, ngx_http_seckill_control_t *control);

/* control_rev: a record from before that revision is not used */
ngx_http_seckill_freshness_e ngx_http_seckill_zone_facts(
    ngx_http_seckill_loc_conf_t *conf, uint64_t activity,
    uint64_t control_rev, ngx_http_seckill_facts_t *facts);

/* asked: ngx_current_msec when Redis was asked; an older answer is dropped */
void ngx_http_seckill_zone_set_control(ngx_http_seckill_loc_conf_t *conf,
    ngx_http_seckill_control_t *control, ngx_msec_t asked);
void ngx_http_seckill_zone_set_facts(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, ngx_http_seckill_facts_t *facts, ngx_msec_t asked);


#endif /* _NGX_HTTP_SECKILL_ZONE_H_INCLUDED_ */
