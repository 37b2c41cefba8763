
/*
 * The verdict as status, headers and JSON.  Every body has "code", "message",
 * "data" and "server_time_ms".
 */


#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_wait.h"


static ngx_uint_t ngx_http_seckill_answer_streams(ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_answer_body(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static u_char *ngx_http_seckill_data(ngx_http_seckill_ctx_t *ctx, u_char *p);
static u_char *ngx_http_seckill_data_facts(ngx_http_seckill_ctx_t *ctx,
    u_char *p);
static u_char *ngx_http_seckill_data_ticket(ngx_http_seckill_ctx_t *ctx,
    u_char *p);
static ngx_int_t ngx_http_seckill_answer_headers(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_answer_options(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);


static ngx_str_t  ngx_http_seckill_type =
    ngx_string("application/json; charset=utf-8");
static ngx_str_t  ngx_http_seckill_no_store = ngx_string("no-store");
static ngx_str_t  ngx_http_seckill_max_age = ngx_string("public, max-age=1");
static ngx_str_t  ngx_http_seckill_bearer = ngx_string("Bearer");
static ngx_str_t  ngx_http_seckill_allow =
    ngx_string("GET, HEAD, POST, OPTIONS");
static ngx_str_t  ngx_http_seckill_allow_result =
    ngx_string("GET, HEAD, OPTIONS");


ngx_int_t
ngx_http_seckill_answer(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t            rc;
    const sk_verdict_t  *verdict;

    if (ctx->verdict == SK_VERDICTS) {
        /* the facts have no other verdict */
        ctx->verdict = SK_FACTS;
    }

    if (ctx->verdict == SK_BUSY) {
        /* nothing was taken, so nothing was asked */

        if (ctx->body_waited) {
            ctx->user = ctx->body_user;
        }

        ngx_http_seckill_limit_refund(ctx);
    }

    ngx_http_seckill_count_request(r, ctx);

    rc = ngx_http_seckill_drop_body(r, ctx->conf->body_max);
    if (rc != NGX_OK) {
        return rc;
    }

    if (r->method == NGX_HTTP_OPTIONS && ctx->verdict == SK_METHOD) {
        return ngx_http_seckill_answer_options(r, ctx);
    }

    if (ngx_http_seckill_answer_streams(ctx)) {
        return ngx_http_seckill_stream_end(r, ctx);
    }

    verdict = &sk_verdicts[ctx->verdict];

    r->headers_out.status = ctx->conf->rest_status ? verdict->rest_status
                                                   : verdict->status;

    if (ngx_http_seckill_answer_headers(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_seckill_intercept(r, ctx);

    if (rc != NGX_DECLINED) {
        return rc == NGX_OK ? (ngx_int_t) r->headers_out.status : rc;
    }

    return ngx_http_seckill_answer_body(r, ctx);
}


static ngx_int_t
ngx_http_seckill_answer_body(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t     rc;
    ngx_buf_t    *b;
    ngx_chain_t   out;

    r->headers_out.content_type = ngx_http_seckill_type;
    r->headers_out.content_type_len = sizeof("application/json") - 1;
    r->headers_out.content_type_lowcase = NULL;

    b = ngx_create_temp_buf(r->pool, NGX_HTTP_SECKILL_ANSWER_SIZE);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_http_seckill_answer_text(ctx, b->last);
    if (b->last == NULL) {
        return NGX_ERROR;
    }

    b->last_buf = (r == r->main);
    b->last_in_chain = 1;

    r->headers_out.content_length_n = b->last - b->pos;

    rc = ngx_http_send_header(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    out.buf = b;
    out.next = NULL;

    return ngx_http_output_filter(r, &out);
}


/* an open stream goes on as one; a new one is worth it for a final answer */

static ngx_uint_t
ngx_http_seckill_answer_streams(ngx_http_seckill_ctx_t *ctx)
{
    if (ctx->waiter == NULL || !ctx->waiter->stream) {
        return 0;
    }

    return ctx->waiter->opened || ctx->verdict == SK_SUCCESS
           || ctx->verdict == SK_FAILED || ctx->verdict == SK_NO_RECORD
           || ctx->verdict == SK_ENDED;
}


u_char *
ngx_http_seckill_answer_text(ngx_http_seckill_ctx_t *ctx, u_char *p)
{
    const char          *message;
    const sk_verdict_t  *verdict;

    verdict = &sk_verdicts[ctx->verdict];
    message = (ctx->conf->messages == NGX_HTTP_SECKILL_EN) ? verdict->en
                                                           : verdict->zh;

    p = ngx_sprintf(p, "{\"code\":%d,\"message\":\"%s\",\"data\":",
                    verdict->code, message);

    p = ngx_http_seckill_data(ctx, p);
    if (p == NULL) {
        return NULL;
    }

    return ngx_sprintf(p, ",\"server_time_ms\":%uL}",
                       ngx_http_seckill_now_ms(ctx));
}


/* no token is needed to ask what is allowed; CORS is add_header's */

static ngx_int_t
ngx_http_seckill_answer_options(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t  rc;

    r->headers_out.status = NGX_HTTP_NO_CONTENT;
    r->header_only = 1;

    if (ngx_http_seckill_header(r, "Allow",
                                ctx->result_route
                                ? &ngx_http_seckill_allow_result
                                : &ngx_http_seckill_allow)
        != NGX_OK
        || ngx_http_seckill_header(r, "X-Request-ID", &ctx->request_id)
           != NGX_OK)
    {
        return NGX_ERROR;
    }

    rc = ngx_http_send_header(r);

    return rc == NGX_OK ? ngx_http_send_special(r, NGX_HTTP_LAST) : rc;
}


static u_char *
ngx_http_seckill_data(ngx_http_seckill_ctx_t *ctx, u_char *p)
{
    switch (ctx->verdict) {

    case SK_FACTS:
        return ngx_http_seckill_data_facts(ctx, p);

    case SK_ACCEPTED:
        p = ngx_http_seckill_data_ticket(ctx, p);
        if (p == NULL) {
            return NULL;
        }

        return ngx_sprintf(p, ",\"state\":\"queueing\",\"activity\":\"%uL\","
                           "\"quantity\":%uD,\"poll_after_ms\":%ui}",
                           ctx->activity, ctx->purchase->quantity,
                           ngx_http_seckill_poll_after(ctx));

    case SK_REPEAT:
        p = ngx_http_seckill_data_ticket(ctx, p);
        if (p == NULL) {
            return NULL;
        }

        p = ngx_sprintf(p, ",\"state\":\"%s\"", sk_verdicts[ctx->state].word);

        if (ctx->state == SK_SUCCESS) {
            p = ngx_sprintf(p, ",\"order_id\":%uL,\"order_no\":\"%s\"",
                            ctx->result->order_id, ctx->result->order_no);

        } else if (ctx->state == SK_QUEUEING) {
            p = ngx_sprintf(p, ",\"poll_after_ms\":%ui",
                            ngx_http_seckill_poll_after(ctx));
        }

        *p++ = '}';
        return p;

    case SK_QUEUEING:
        return ngx_sprintf(p, "{\"state\":\"queueing\",\"poll_after_ms\":%ui}",
                           ngx_http_seckill_poll_after(ctx));

    case SK_SUCCESS:
    case SK_FAILED:
        return p + sk_result_format((char *) p, ctx->result);

    default:
        return ngx_cpymem(p, "null", sizeof("null") - 1);
    }
}


/* opens the object and leaves it open */

static u_char *
ngx_http_seckill_data_ticket(ngx_http_seckill_ctx_t *ctx, u_char *p)
{
    p = ngx_cpymem(p, "{\"queue_token\":\"",
                   sizeof("{\"queue_token\":\"") - 1);

    if (ngx_http_seckill_ticket(ctx, p) != NGX_OK) {
        return NULL;
    }

    p += SK_TICKET_LEN;
    *p++ = '"';

    return p;
}


static u_char *
ngx_http_seckill_data_facts(ngx_http_seckill_ctx_t *ctx, u_char *p)
{
    uint64_t                   now;
    const char                *state;
    ngx_http_seckill_facts_t  *facts;

    facts = &ctx->facts;
    now = ngx_http_seckill_now_ms(ctx);

    if (facts->settled || now >= facts->end_ms) {
        state = "ended";

    } else if (facts->closed || ctx->control.closed || !ctx->conf->open) {
        state = "closed";

    } else {
        state = (now < facts->start_ms) ? "not_started" : "running";
    }

    return ngx_sprintf(p, "{\"activity\":\"%uL\",\"product_id\":\"%uL\","
                       "\"price\":\"%*s\",\"start_ms\":%uL,\"end_ms\":%uL,"
                       "\"state\":\"%s\",\"sold_out\":%s,\"max_quantity\":%uD}",
                       ctx->activity, facts->product_id,
                       (size_t) facts->price_len, facts->price,
                       facts->start_ms, facts->end_ms, state,
                       facts->sold_out ? "true" : "false",
                       facts->max_quantity);
}


static ngx_int_t
ngx_http_seckill_answer_headers(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_str_t  value;

    if (ngx_http_seckill_common_headers(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    switch (ctx->verdict) {

    case SK_UNAUTHORIZED:
        return ngx_http_seckill_header(r, "WWW-Authenticate",
                                       &ngx_http_seckill_bearer);

    case SK_METHOD:
        return ngx_http_seckill_header(r, "Allow",
                                       ctx->result_route
                                       ? &ngx_http_seckill_allow_result
                                       : &ngx_http_seckill_allow);

    case SK_LIMITED:
    case SK_BUSY:
    case SK_CLOSED:
        break;

    default:
        return NGX_OK;
    }

    value.data = ngx_pnalloc(r->pool, NGX_INT_T_LEN);
    if (value.data == NULL) {
        return NGX_ERROR;
    }

    value.len = ngx_sprintf(value.data, "%ui", ngx_max(ctx->retry_after, 1))
                - value.data;

    return ngx_http_seckill_header(r, "Retry-After", &value);
}


ngx_int_t
ngx_http_seckill_common_headers(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_str_t  *cache;

    cache = (ctx->verdict == SK_FACTS) ? &ngx_http_seckill_max_age
                                       : &ngx_http_seckill_no_store;

    if (ngx_http_seckill_header(r, "Cache-Control", cache) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_seckill_header(r, "X-Request-ID", &ctx->request_id);
}


ngx_int_t
ngx_http_seckill_add_header(ngx_http_request_t *r, const char *name,
    size_t name_len, ngx_str_t *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    h->hash = 1;
#if (nginx_version >= 1023000)
    h->next = NULL;
#endif
    h->key.len = name_len;
    h->key.data = (u_char *) name;
    h->value = *value;

    return NGX_OK;
}
