
/*
 * The end of a sale in memory: sold out on Redis' word, or past its end; and
 * the filter that tells buyers from everybody else.
 */


#ifndef _NGX_HTTP_SECKILL_SOLD_OUT_H_INCLUDED_
#define _NGX_HTTP_SECKILL_SOLD_OUT_H_INCLUDED_


#include "ngx_http_seckill_record.h"


typedef struct {
    ngx_http_seckill_record_t    record;
    ngx_msec_t                   asked;
    ngx_msec_t                   claimed;   /* somebody loads it since */
    ngx_http_seckill_facts_t     facts;

    ngx_msec_t                   sold_at;   /* when Redis said so */

    ngx_http_seckill_run_t       buyers;    /* the filter */
    uint64_t                     filter_id; /* of the load that fills it */
    ngx_msec_t                   filter_claimed;
    ngx_msec_t                   filter_started;    /* the last load, 0: none */

    ngx_http_seckill_mark_t      mark;

    unsigned                     lost:1;    /* Redis is behind the mark */
    unsigned                     sold_out:1;
    unsigned                     filter_ready:1;
    unsigned                     filter_off:1;  /* does not fit */
} ngx_http_seckill_facts_record_t;


/* The activity's record, or NULL. */
ngx_http_seckill_facts_record_t *ngx_http_seckill_facts_find_locked(
    ngx_http_seckill_shm_t *shm, uint32_t source, uint64_t activity);

/* Redis' script said that the stock is 0, at that revision. */
void ngx_http_seckill_sold_out_set(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, uint64_t epoch, uint64_t rev);

/* Newer facts: they may say sold out, or take it back. */
void ngx_http_seckill_sold_out_refresh_locked(ngx_http_seckill_shm_t *shm,
    ngx_http_seckill_facts_record_t *record, ngx_http_seckill_facts_t *facts,
    ngx_msec_t asked);


#endif /* _NGX_HTTP_SECKILL_SOLD_OUT_H_INCLUDED_ */
