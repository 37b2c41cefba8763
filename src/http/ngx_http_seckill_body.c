
/*
 * The body of a purchase: read in memory up to seckill_body_max, never through
 * a file; or dropped, when the answer is known before it was read.
 *
 * The client decides how long a body takes, within seckill_body_timeout.  When
 * one was waited for, what was looked at before it is looked at again.
 */


#include "ngx_http_seckill.h"


static void ngx_http_seckill_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_seckill_body_wait(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static void ngx_http_seckill_body_tick(ngx_http_seckill_ctx_t *ctx);
static void ngx_http_seckill_body_timer(ngx_event_t *ev);
static void ngx_http_seckill_body_stop(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_uint_t ngx_http_seckill_body_worker_ends(void);
static ngx_int_t ngx_http_seckill_body_read(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_body_collect(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_body_parse(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);


/* the longest time a refused body may keep coming, in seconds */
#define NGX_HTTP_SECKILL_LINGER  1

/* so often a body that is waited for is asked whether its worker goes on */
#define NGX_HTTP_SECKILL_BODY_TICK  500


static ngx_uint_t
ngx_http_seckill_has_body(ngx_http_request_t *r)
{
    return r->headers_in.content_length_n > 0 || r->headers_in.chunked;
}


ngx_int_t
ngx_http_seckill_body_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (ctx->body_waited && ngx_http_seckill_body_worker_ends()) {
        /* its keys may be gone already, and nobody could hear the answer twice */
        return ngx_http_seckill_say(ctx, SK_BUSY);
    }

    if (ctx->body_late) {
        return ngx_http_seckill_say(ctx, SK_TIMEOUT);
    }

    if (ctx->body_read || !ngx_http_seckill_has_body(r)) {
        return ngx_http_seckill_body_parse(r, ctx);
    }

    ctx->body.data = ngx_pnalloc(r->pool, ctx->conf->body_max + 1);
    if (ctx->body.data == NULL) {
        return NGX_ERROR;
    }

    r->request_body_no_buffering = 1;

    rc = ngx_http_read_client_request_body(r, ngx_http_seckill_body_handler);

    if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
        return rc;
    }

    /* the handler goes on, perhaps has done so already */
    return NGX_DECLINED;
}


static void
ngx_http_seckill_body_handler(ngx_http_request_t *r)
{
    ngx_int_t                rc;
    ngx_http_seckill_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_seckill_module);

    rc = ngx_http_seckill_body_read(r, ctx);

    if (rc == NGX_AGAIN) {
        if (ngx_http_seckill_body_wait(r, ctx) == NGX_OK) {
            r->read_event_handler = ngx_http_seckill_body_handler;
            return;
        }

        rc = NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (rc == NGX_HTTP_REQUEST_TIME_OUT) {
        /* client_body_timeout: the core would close without a word */
        ctx->body_late = 1;

    } else if (rc != NGX_OK) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    ngx_http_seckill_body_stop(r, ctx);
    ctx->body_read = 1;

    /* the client's time is not ours: what Redis may take counts from here */
    ctx->deadline_set = 0;

    /* the core called us, and runs what is posted when it is done with r */
    ngx_http_seckill_go_on(ctx);
}


/* the rest is not here yet */

static ngx_int_t
ngx_http_seckill_body_wait(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    if (ctx->body_waited) {
        return NGX_OK;
    }

    if (ngx_http_seckill_cleanup(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->body_timer = ngx_pcalloc(r->pool, sizeof(ngx_event_t));
    if (ctx->body_timer == NULL) {
        return NGX_ERROR;
    }

    ctx->body_timer->handler = ngx_http_seckill_body_timer;
    ctx->body_timer->data = ctx;
    ctx->body_timer->log = r->connection->log;

    ctx->body_waited = 1;
    ctx->body_user = ctx->user;
    ctx->body_until = ngx_current_msec + ctx->conf->body_timeout;

    ngx_http_seckill_body_tick(ctx);

    return NGX_OK;
}


static void
ngx_http_seckill_body_tick(ngx_http_seckill_ctx_t *ctx)
{
    ngx_msec_int_t  left;

    left = (ngx_msec_int_t) (ctx->body_until - ngx_current_msec);

    ngx_add_timer(ctx->body_timer,
                  (ngx_msec_t) ngx_max(1, ngx_min(left,
                                               NGX_HTTP_SECKILL_BODY_TICK)));
}


static void
ngx_http_seckill_body_timer(ngx_event_t *ev)
{
    ngx_http_request_t      *r;
    ngx_http_seckill_ctx_t  *ctx;

    ctx = ev->data;
    r = ctx->request;

    if ((ngx_msec_int_t) (ctx->body_until - ngx_current_msec) > 0
        && !ngx_http_seckill_body_worker_ends())
    {
        ngx_http_seckill_body_tick(ctx);
        return;
    }

    ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                  "seckill body has not come whole in time");

    ctx->body_late = 1;
    ngx_http_seckill_body_stop(r, ctx);
    ngx_http_seckill_resume(ctx);
}


/* nothing more of it is awaited; what is not here is not read to its end */

static void
ngx_http_seckill_body_stop(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_event_t  *rev;

    ngx_http_seckill_body_leave(ctx);

    if (!ctx->body_late) {
        return;
    }

    rev = r->connection->read;

    if (rev->timer_set) {
        ngx_del_timer(rev);
    }

    /* an answer comes first */
    rev->timedout = 0;
    r->connection->timedout = 0;

    r->read_event_handler = ngx_http_block_reading;
    r->keepalive = 0;
    r->lingering_close = 1;
    r->lingering_time = ngx_time() + NGX_HTTP_SECKILL_LINGER;
}


void
ngx_http_seckill_body_leave(ngx_http_seckill_ctx_t *ctx)
{
    if (ctx->body_timer && ctx->body_timer->timer_set) {
        ngx_del_timer(ctx->body_timer);
    }
}


static ngx_uint_t
ngx_http_seckill_body_worker_ends(void)
{
    return ngx_exiting || ngx_quit || ngx_terminate;
}


/*
 * Whoever asked before the body came asks still; the limit was charged to that
 * user.  A refusal is not for those whose order is known.
 */

ngx_int_t
ngx_http_seckill_again_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    if (ctx->user != ctx->body_user) {
        return ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
    }

    if (ctx->refusal == SK_VERDICTS) {
        return NGX_OK;
    }

    return ngx_http_seckill_say(ctx, ctx->remembered ? SK_REPEAT
                                                     : ctx->refusal);
}


/* NGX_OK: all of it is here, or more than is allowed */

static ngx_int_t
ngx_http_seckill_body_read(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t  rc;

    for ( ;; ) {
        rc = ngx_http_seckill_body_collect(r, ctx);

        if (rc == NGX_DECLINED) {
            ctx->body_too_large = 1;
            r->keepalive = 0;
            r->lingering_time = ngx_time() + NGX_HTTP_SECKILL_LINGER;
            return NGX_OK;
        }

        if (!r->reading_body) {
            return NGX_OK;
        }

        rc = ngx_http_read_unbuffered_request_body(r);

        if (rc >= NGX_HTTP_SPECIAL_RESPONSE) {
            return rc;
        }

        if (rc == NGX_AGAIN && r->request_body->bufs == NULL) {
            return NGX_AGAIN;
        }
    }
}


/* NGX_DECLINED: too large */

static ngx_int_t
ngx_http_seckill_body_collect(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    size_t        size;
    ngx_buf_t    *b;
    ngx_chain_t  *cl;

    if (r->request_body == NULL) {
        return NGX_OK;
    }

    for (cl = r->request_body->bufs; cl; cl = cl->next) {
        b = cl->buf;

        if (b->in_file) {
            /* read early by the core, with a buffer smaller than the body */
            return NGX_DECLINED;
        }

        size = b->last - b->pos;

        if (size == 0) {
            continue;
        }

        if (size > ctx->conf->body_max - ctx->body.len) {
            return NGX_DECLINED;
        }

        ngx_memcpy(ctx->body.data + ctx->body.len, b->pos, size);
        ctx->body.len += size;
        b->pos = b->last;
    }

    r->request_body->bufs = NULL;

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_body_parse(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    if (ctx->body_too_large) {
        return ngx_http_seckill_say(ctx, SK_TOO_LARGE);
    }

    ctx->purchase = ngx_palloc(r->pool, sizeof(sk_purchase_t));
    if (ctx->purchase == NULL) {
        return NGX_ERROR;
    }

    if (sk_purchase_parse(ctx->purchase, (char *) ctx->body.data,
                          ctx->body.len)
        != 0
        || ctx->purchase->quantity > ctx->facts.max_quantity)
    {
        return ngx_http_seckill_say(ctx, SK_BAD_REQUEST);
    }

    if (ctx->body_waited) {
        ngx_http_seckill_route_again(ctx);
    }

    return NGX_OK;
}


/*
 * A small body with a length keeps the connection.  One that is large or has
 * no length is not read to its end: the connection closes behind the answer.
 */

ngx_int_t
ngx_http_seckill_drop_body(ngx_http_request_t *r, size_t body_max)
{
    if (r->request_body || !ngx_http_seckill_has_body(r)) {
        return NGX_OK;
    }

#if (NGX_HTTP_V2)
    if (r->stream) {
        return ngx_http_discard_request_body(r);
    }
#endif

    if (r->headers_in.chunked
        || r->headers_in.content_length_n > (off_t) body_max)
    {
        r->keepalive = 0;
        r->lingering_close = 1;
        r->lingering_time = ngx_time() + NGX_HTTP_SECKILL_LINGER;
        return NGX_OK;
    }

    return ngx_http_discard_request_body(r);
}
