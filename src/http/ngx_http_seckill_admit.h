
/*
 * Purchases on their way to Redis.
 */


#ifndef _NGX_HTTP_SECKILL_ADMIT_H_INCLUDED_
#define _NGX_HTTP_SECKILL_ADMIT_H_INCLUDED_


#include "ngx_http_seckill.h"


struct ngx_http_seckill_lane_s {
    ngx_queue_t                   queue;        /* in its bucket */
    uint64_t                      activity;
    ngx_http_seckill_loc_conf_t  *conf;         /* of its purchases */
    ngx_queue_t                   gathering;    /* of ctx->queue, oldest first */
    ngx_http_seckill_batch_t     *batch;        /* in flight */
    ngx_event_t                   turn;         /* posted: the turn's end */
};


struct ngx_http_seckill_batch_s {
    ngx_http_seckill_lane_t      *lane;
    ngx_http_seckill_mark_t       mark;         /* when it left */
    ngx_uint_t                    n;
    sk_limit_t                    limit;        /* of its youngest purchase */
    uint64_t                      epoch;        /* that it knew, 0: none */
    u_char                        key[NGX_HTTP_SECKILL_HMAC_KEY];
    ngx_uint_t                    has_key;      /* signs lines of the journal */
    ngx_http_seckill_gone_t      *gone;         /* purchases without a client */
    ngx_http_seckill_ctx_t       *requests[1];  /* NULL: has gone */
};


/* The client of a purchase that gathers, or is in flight, has left. */
void ngx_http_seckill_lane_leave(ngx_http_seckill_ctx_t *ctx);
void ngx_http_seckill_batch_leave(ngx_http_seckill_ctx_t *ctx);

/* Purchases of this worker that wait for Redis. */
ngx_uint_t ngx_http_seckill_admit_pending(void);


/* ngx_http_seckill_admit_call.c */

/* The batch as one call of admit.lua.  NULL: out of memory. */
ngx_seckill_call_t *ngx_http_seckill_admit_question(
    ngx_http_seckill_batch_t *batch, ngx_seckill_call_done_pt done,
    ngx_msec_t deadline);

/*
 * Gives each request of the batch its verdict from the script's reply,
 * { time_ms, epoch, rev, seq, stock, verdicts }.  NGX_ERROR: it is not such.
 */
ngx_int_t ngx_http_seckill_admit_verdicts(ngx_http_seckill_batch_t *batch,
    redisReply *reply);


/* ngx_http_seckill_mark.c: Redis must never know less of a sale than before */

/* a knows less of the sale than b. */
ngx_uint_t ngx_http_seckill_mark_behind(ngx_http_seckill_mark_t *a,
    ngx_http_seckill_mark_t *b);

/* What Redis told this node last of the activity. */
void ngx_http_seckill_mark_get(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, ngx_http_seckill_mark_t *mark);

/* Redis told something newer. */
void ngx_http_seckill_mark_set(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, ngx_http_seckill_mark_t *told);

/*
 * Asked with that mark, Redis told less: admit.lua has paused the sale.  Counts
 * it and raises the alarm, once for each loss.
 */
void ngx_http_seckill_mark_lost(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, ngx_http_seckill_mark_t *mark,
    ngx_http_seckill_mark_t *told);


#endif /* _NGX_HTTP_SECKILL_ADMIT_H_INCLUDED_ */
