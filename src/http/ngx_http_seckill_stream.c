
/*
 * Server-sent events: the bytes of a stream.  What is said is what a poll would
 * have said; the last event has the id "final" and ends the stream.
 */


#include "ngx_http_seckill_wait.h"


/* "id: final", "event: result", "data: ", and the answer's own size */
#define NGX_HTTP_SECKILL_EVENT_SIZE  (128 + NGX_HTTP_SECKILL_ANSWER_SIZE)


static ngx_int_t ngx_http_seckill_stream_headers(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_stream_event(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, const char *id, ngx_uint_t last);
static ngx_int_t ngx_http_seckill_stream_send(ngx_http_request_t *r,
    ngx_buf_t *b, ngx_uint_t last);


ngx_int_t
ngx_http_seckill_stream_open(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    if (ngx_http_seckill_stream_headers(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    ctx->verdict = SK_QUEUEING;

    return ngx_http_seckill_stream_event(r, ctx, "queueing", 0);
}


ngx_int_t
ngx_http_seckill_stream_heartbeat(ngx_http_request_t *r,
    ngx_http_seckill_waiter_t *waiter)
{
    ngx_buf_t  *b;

    if (r->connection->buffered || r->buffered) {
        /* the client does not read: it needs no sign of life */
        return NGX_OK;
    }

    /* all is out, this buffer too: a stream of hours must not grow */

    b = &waiter->beat;
    ngx_memzero(b, sizeof(ngx_buf_t));

    b->pos = (u_char *) ":\n\n";
    b->last = b->pos + 3;
    b->memory = 1;

    return ngx_http_seckill_stream_send(r, b, 0);
}


ngx_int_t
ngx_http_seckill_stream_end(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    if (ngx_http_seckill_stream_headers(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (ctx->verdict == SK_QUEUEING) {
        /* the worker ends, or Redis is lost: the client comes again by itself */
        return ngx_http_send_special(r, NGX_HTTP_LAST);
    }

    return ngx_http_seckill_stream_event(r, ctx, "final", 1);
}


void
ngx_http_seckill_stream_writer(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_event_t               *wev;
    ngx_connection_t          *c;
    ngx_http_core_loc_conf_t  *clcf;

    c = r->connection;
    wev = c->write;

    if (wev->timedout) {
        c->timedout = 1;
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    rc = ngx_http_output_filter(r, NULL);

    if (rc == NGX_ERROR) {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (c->buffered) {
        ngx_add_timer(wev, clcf->send_timeout);

    } else if (wev->timer_set) {
        ngx_del_timer(wev);
    }

    if (ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK) {
        ngx_http_finalize_request(r, NGX_ERROR);
    }
}


static ngx_int_t
ngx_http_seckill_stream_headers(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t  rc;

    static ngx_str_t  type = ngx_string("text/event-stream");
    static ngx_str_t  no = ngx_string("no");

    if (ctx->waiter->opened) {
        return NGX_OK;
    }

    ctx->waiter->opened = 1;

    r->headers_out.status = NGX_HTTP_OK;
    r->headers_out.content_type = type;
    r->headers_out.content_type_len = type.len;
    r->headers_out.content_type_lowcase = NULL;

    if (ngx_http_seckill_common_headers(r, ctx) != NGX_OK
        || ngx_http_seckill_header(r, "X-Accel-Buffering", &no) != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_send_header(r);

    return (rc == NGX_ERROR || rc > NGX_OK) ? NGX_ERROR : NGX_OK;
}


static ngx_int_t
ngx_http_seckill_stream_event(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, const char *id, ngx_uint_t last)
{
    u_char     *p;
    ngx_buf_t  *b;

    b = ngx_create_temp_buf(r->pool, NGX_HTTP_SECKILL_EVENT_SIZE);
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = ngx_sprintf(b->last, "retry: 1000\nid: %s\nevent: result\ndata: ", id);

    p = ngx_http_seckill_answer_text(ctx, p);
    if (p == NULL) {
        return NGX_ERROR;
    }

    *p++ = '\n';
    *p++ = '\n';
    b->last = p;

    return ngx_http_seckill_stream_send(r, b, last);
}


static ngx_int_t
ngx_http_seckill_stream_send(ngx_http_request_t *r, ngx_buf_t *b,
    ngx_uint_t last)
{
    ngx_chain_t  out;

    b->flush = !last;
    b->last_buf = last;
    b->last_in_chain = last;

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}
