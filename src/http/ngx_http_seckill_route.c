
/*
 * Method and headers: what is asked, before anything is looked up.  The path is
 * that of path.c, whose request it is that of own.c.
 */


#include "ngx_http_seckill_path.h"


static ngx_int_t ngx_http_seckill_route_buy(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_request_id(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, ngx_str_t *given);


/* the funnel, in order */

static const ngx_http_seckill_step_pt  ngx_http_seckill_buy[] = {
    ngx_http_seckill_control_step,
    ngx_http_seckill_facts_step,
    ngx_http_seckill_window_step,
    ngx_http_seckill_identify_step,
    ngx_http_seckill_sold_out_step,
    ngx_http_seckill_user_step,
    ngx_http_seckill_body_step,
    ngx_http_seckill_admit_step,
    ngx_http_seckill_result_step,
    NULL
};


/* behind the body: the client alone decides how long that takes */

static const ngx_http_seckill_step_pt  ngx_http_seckill_again[] = {
    ngx_http_seckill_body_step,
    ngx_http_seckill_control_step,
    ngx_http_seckill_facts_step,
    ngx_http_seckill_window_step,
    ngx_http_seckill_identify_step,
    ngx_http_seckill_again_step,
    ngx_http_seckill_sold_out_step,
    ngx_http_seckill_admit_step,
    ngx_http_seckill_result_step,
    NULL
};


static const ngx_http_seckill_step_pt  ngx_http_seckill_result[] = {
    ngx_http_seckill_control_step,
    ngx_http_seckill_identify_step,
    ngx_http_seckill_wish_step,
    ngx_http_seckill_generation_step,
    ngx_http_seckill_user_step,
    ngx_http_seckill_join_step,
    ngx_http_seckill_result_step,
    ngx_http_seckill_hold_step,
    NULL
};


static const ngx_http_seckill_step_pt  ngx_http_seckill_facts[] = {
    ngx_http_seckill_control_step,
    ngx_http_seckill_facts_step,
    NULL
};


ngx_int_t
ngx_http_seckill_route(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    if (ngx_http_seckill_own(r, ctx) != NGX_OK) {
        ctx->not_own = 1;
        return ngx_http_seckill_say(ctx, SK_NOT_FOUND);
    }

    if (ngx_http_seckill_path(r, ctx) != NGX_OK) {
        return ngx_http_seckill_say(ctx, SK_NOT_FOUND);
    }

    if (r->method == NGX_HTTP_OPTIONS) {
        ctx->verdict = SK_METHOD;
        return NGX_DONE;
    }

    if (ctx->result_route) {
        ctx->step = ngx_http_seckill_result;

    } else if (r->method == NGX_HTTP_POST) {
        return ngx_http_seckill_route_buy(r, ctx);

    } else {
        ctx->step = ngx_http_seckill_facts;
    }

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return ngx_http_seckill_say(ctx, SK_METHOD);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_route_buy(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ctx->buy = 1;
    ctx->step = ngx_http_seckill_buy;

    if (r->headers_in.content_length_n > (off_t) ctx->conf->body_max) {
        return ngx_http_seckill_say(ctx, SK_TOO_LARGE);
    }

    return NGX_OK;
}


void
ngx_http_seckill_route_again(ngx_http_seckill_ctx_t *ctx)
{
    /* the step that is being run is the first here too */
    ctx->step = ngx_http_seckill_again;
}


/* a walk begins with part at the list's first and i at 0; NULL at its end */

static ngx_table_elt_t *
ngx_http_seckill_next_header(ngx_list_part_t **part, ngx_uint_t *i)
{
    ngx_table_elt_t  *header;

    while (*i >= (*part)->nelts) {
        if ((*part)->next == NULL) {
            return NULL;
        }

        *part = (*part)->next;
        *i = 0;
    }

    header = (*part)->elts;

    return &header[(*i)++];
}


static ngx_uint_t
ngx_http_seckill_is_header(ngx_table_elt_t *header, const char *name,
    size_t len)
{
    return header->key.len == len
           && ngx_strncasecmp(header->key.data, (u_char *) name, len) == 0;
}


ngx_str_t *
ngx_http_seckill_find_header(ngx_http_request_t *r, const char *name,
    size_t len)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *header;

    part = &r->headers_in.headers.part;
    i = 0;

    while ((header = ngx_http_seckill_next_header(&part, &i)) != NULL) {
        if (ngx_http_seckill_is_header(header, name, len)) {
            return &header->value;
        }
    }

    return NULL;
}


ngx_int_t
ngx_http_seckill_headers(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_str_t         given;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *header;

    ngx_str_null(&given);

    part = &r->headers_in.headers.part;
    i = 0;

    while ((header = ngx_http_seckill_next_header(&part, &i)) != NULL) {

        if (ngx_http_seckill_is_header(header, "Authorization",
                                       sizeof("Authorization") - 1))
        {
            ctx->authorization = header->value;
            ctx->authorizations = ctx->authorizations ? 2 : 1;

        } else if (ngx_http_seckill_is_header(header, "X-Request-ID",
                                              sizeof("X-Request-ID") - 1))
        {
            given = header->value;
        }
    }

    return ngx_http_seckill_request_id(r, ctx, &given);
}


/* the client's when it is sane, else one of ours: worker's secret and a count */

static ngx_int_t
ngx_http_seckill_request_id(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx,
    ngx_str_t *given)
{
    static uint64_t  nonce, count;

    if (given->len && sk_request_id_ok((char *) given->data, given->len)) {
        ctx->request_id = *given;
        return NGX_OK;
    }

    if (nonce == 0) {
        nonce = ((uint64_t) ngx_random() << 33) ^ ((uint64_t) ngx_random() << 11)
                ^ ((uint64_t) ngx_pid << 40) ^ (uint64_t) ngx_time();
    }

    ctx->request_id.data = ngx_pnalloc(r->pool, 32);
    if (ctx->request_id.data == NULL) {
        return NGX_ERROR;
    }

    ctx->request_id.len = 32;
    (void) ngx_sprintf(ctx->request_id.data, "%016xL%016xL", nonce, ++count);

    return NGX_OK;
}
