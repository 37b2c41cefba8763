
/*
 * When a buyer should ask again: three times after half a second, counted from
 * the purchase, then every two seconds, and less often the nearer the worker is
 * to refusing.
 */


#include "ngx_http_seckill_admit.h"


#define NGX_HTTP_SECKILL_POLL_FIRST   500       /* milliseconds */
#define NGX_HTTP_SECKILL_POLL_THEN    2000

/* longer by so many tenths for each tenth of seckill_max_pending: 2 s become 10 */
#define NGX_HTTP_SECKILL_POLL_STRETCH 4

/*
 * Queueing for so long is the third poll of a buyer who keeps to the times: the
 * first comes half a second after the purchase, and only then we look.
 */
#define NGX_HTTP_SECKILL_POLL_EARLY   750


static ngx_uint_t ngx_http_seckill_poll_pending(ngx_http_seckill_ctx_t *ctx);


ngx_uint_t
ngx_http_seckill_poll_after(ngx_http_seckill_ctx_t *ctx)
{
    ngx_uint_t  ms, max, tenths;

    ms = NGX_HTTP_SECKILL_POLL_FIRST;

    /* the lower half of the clock, and of another worker maybe: signed */

    if (ctx->queueing
        && (int32_t) ((uint32_t) ngx_current_msec - ctx->queueing)
           >= NGX_HTTP_SECKILL_POLL_EARLY)
    {
        ms = NGX_HTTP_SECKILL_POLL_THEN;
    }

    max = ctx->conf->redis_settings.max_pending;
    tenths = 10 * ngx_min(ngx_http_seckill_poll_pending(ctx), max) / max;

    return ms + ms * NGX_HTTP_SECKILL_POLL_STRETCH * tenths / 10;
}


/* each of the two is refused at seckill_max_pending */

static ngx_uint_t
ngx_http_seckill_poll_pending(ngx_http_seckill_ctx_t *ctx)
{
    ngx_uint_t            calls, purchases;
    ngx_seckill_redis_t  *redis;

    redis = ngx_http_seckill_client(ctx->conf);

    calls = redis ? ngx_seckill_redis_pending(redis) : 0;
    purchases = ngx_http_seckill_admit_pending();

    return ngx_max(calls, purchases);
}
