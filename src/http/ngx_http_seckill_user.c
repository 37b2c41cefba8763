
/*
 * Records of users in the zone: their limits.  LRU and bounded; when the zone
 * is full the least used makes room.
 */


#include "ngx_http_seckill_record.h"


/* polls have a looser limit of their own: 10 a second, 20 at once */
#define NGX_HTTP_SECKILL_RESULT_INTERVAL  100
#define NGX_HTTP_SECKILL_RESULT_BURST     20


typedef struct {
    ngx_http_seckill_record_t    record;
    ngx_msec_t                   until[NGX_HTTP_SECKILL_LIMITS];
} ngx_http_seckill_user_t;


static ngx_http_seckill_user_t *ngx_http_seckill_user_locked(
    ngx_http_seckill_loc_conf_t *conf, ngx_http_seckill_key_t *key);


ngx_int_t
ngx_http_seckill_limit_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_msec_t               left;
    ngx_http_seckill_key_t   key;

    if (ctx->conf->limit == 0) {
        return NGX_OK;
    }

    key.source = ctx->conf->source;
    key.activity = ctx->activity;
    key.user = ctx->user;

    if (ctx->buy) {
        left = ngx_http_seckill_zone_charge(ctx->conf, &key,
                                            NGX_HTTP_SECKILL_LIMIT_BUY,
                                            ctx->conf->limit,
                                            ctx->conf->limit_burst);
    } else {
        left = ngx_http_seckill_zone_charge(ctx->conf, &key,
                                            NGX_HTTP_SECKILL_LIMIT_RESULT,
                                            NGX_HTTP_SECKILL_RESULT_INTERVAL,
                                            NGX_HTTP_SECKILL_RESULT_BURST);
    }

    if (left) {
        ctx->retry_after = (left + 999) / 1000;
        return ngx_http_seckill_say(ctx, SK_LIMITED);
    }

    ctx->limited = ctx->buy;

    return NGX_OK;
}


void
ngx_http_seckill_limit_refund(ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_seckill_key_t  key;

    if (!ctx->limited) {
        return;
    }

    ctx->limited = 0;

    key.source = ctx->conf->source;
    key.activity = ctx->activity;
    key.user = ctx->user;

    ngx_http_seckill_zone_refund(ctx->conf, &key, NGX_HTTP_SECKILL_LIMIT_BUY,
                                 ctx->conf->limit);
}


/*
 * until: when the requests that have passed would all have been made at the
 * allowed rate.  One more may pass while that is no more than "burst" intervals
 * ahead of now.
 */

ngx_msec_t
ngx_http_seckill_zone_charge(ngx_http_seckill_loc_conf_t *conf,
    ngx_http_seckill_key_t *key, ngx_uint_t which, ngx_msec_t interval,
    ngx_uint_t burst)
{
    ngx_msec_t                now, left;
    ngx_msec_int_t            ahead;
    ngx_slab_pool_t          *shpool;
    ngx_http_seckill_user_t  *user;

    shpool = (ngx_slab_pool_t *) conf->shm_zone->shm.addr;
    now = ngx_current_msec;
    left = 0;

    ngx_shmtx_lock(&shpool->mutex);

    user = ngx_http_seckill_user_locked(conf, key);

    if (user) {
        ahead = (ngx_msec_int_t) (user->until[which] - now);

        if (ahead < 0) {
            ahead = 0;
        }

        if (ahead > (ngx_msec_int_t) (interval * burst)) {
            left = ahead - interval * burst;

        } else {
            user->until[which] = now + ahead + interval;
        }
    }

    ngx_shmtx_unlock(&shpool->mutex);

    return left;
}


void
ngx_http_seckill_zone_refund(ngx_http_seckill_loc_conf_t *conf,
    ngx_http_seckill_key_t *key, ngx_uint_t which, ngx_msec_t interval)
{
    ngx_slab_pool_t          *shpool;
    ngx_http_seckill_user_t  *user;

    shpool = (ngx_slab_pool_t *) conf->shm_zone->shm.addr;

    ngx_shmtx_lock(&shpool->mutex);

    user = ngx_http_seckill_user_locked(conf, key);

    if (user) {
        user->until[which] -= interval;
    }

    ngx_shmtx_unlock(&shpool->mutex);
}


static ngx_http_seckill_user_t *
ngx_http_seckill_user_locked(ngx_http_seckill_loc_conf_t *conf,
    ngx_http_seckill_key_t *key)
{
    ngx_uint_t                  i;
    ngx_http_seckill_shm_t     *shm;
    ngx_http_seckill_user_t    *user;
    ngx_http_seckill_table_t   *table;

    shm = conf->shm_zone->data;
    table = &shm->tables[NGX_HTTP_SECKILL_USERS];

    user = (ngx_http_seckill_user_t *)
           ngx_http_seckill_record_find_locked(table, key);

    if (user == NULL) {
        user = (ngx_http_seckill_user_t *)
               ngx_http_seckill_record_create_locked(conf->shm_zone, table, key,
                                               sizeof(ngx_http_seckill_user_t));
        if (user) {
            for (i = 0; i < NGX_HTTP_SECKILL_LIMITS; i++) {
                user->until[i] = ngx_current_msec;
            }
        }
    }

    return user;
}
