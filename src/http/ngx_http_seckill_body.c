
/*
 * The body of a purchase: read in memory up to seckill_body_max, never through
 * a file; or dropped, when the answer is known before it was read.
 */


#include "ngx_http_seckill.h"


static void ngx_http_seckill_body_handler(ngx_http_request_t *r);
static ngx_int_t ngx_http_seckill_body_read(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_body_collect(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_body_parse(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);


/* the longest time a refused body may keep coming, in seconds */
#define NGX_HTTP_SECKILL_LINGER  1


static ngx_uint_t
ngx_http_seckill_has_body(ngx_http_request_t *r)
{
    return r->headers_in.content_length_n > 0 || r->headers_in.chunked;
}


ngx_int_t
ngx_http_seckill_body_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t  rc;

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
        r->read_event_handler = ngx_http_seckill_body_handler;
        return;
    }

    if (rc != NGX_OK) {
        ngx_http_finalize_request(r, rc);
        return;
    }

    ctx->body_read = 1;

    /* the client's time is not ours: what Redis may take counts from here */
    ctx->deadline_set = 0;

    /* the core called us, and runs what is posted when it is done with r */
    ngx_http_seckill_go_on(ctx);
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
