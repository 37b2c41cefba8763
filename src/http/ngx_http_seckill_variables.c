
/*
 * $seckill_verdict and its company: what the funnel said, for logs.
 */


#include "ngx_http_seckill.h"


typedef enum {
    VARIABLE_VERDICT = 0,
    VARIABLE_CODE,
    VARIABLE_ACTIVITY,
    VARIABLE_USER,
    VARIABLE_QUANTITY,
    VARIABLE_ORDER_NO,
    VARIABLE_SEQ,
    VARIABLE_EPOCH,
    VARIABLE_REDIS_TIME,
    VARIABLE_REQUEST_ID,
    VARIABLE_ACCEPTED
} ngx_http_seckill_variable_e;


static ngx_int_t ngx_http_seckill_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);
static u_char *ngx_http_seckill_variable_text(ngx_http_seckill_ctx_t *ctx,
    u_char *p, uintptr_t data);


static ngx_http_variable_t  ngx_http_seckill_variables[] = {

    { ngx_string("seckill_verdict"), NULL, ngx_http_seckill_variable,
      VARIABLE_VERDICT, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_code"), NULL, ngx_http_seckill_variable,
      VARIABLE_CODE, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_activity"), NULL, ngx_http_seckill_variable,
      VARIABLE_ACTIVITY, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_user"), NULL, ngx_http_seckill_variable,
      VARIABLE_USER, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_quantity"), NULL, ngx_http_seckill_variable,
      VARIABLE_QUANTITY, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_order_no"), NULL, ngx_http_seckill_variable,
      VARIABLE_ORDER_NO, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_seq"), NULL, ngx_http_seckill_variable,
      VARIABLE_SEQ, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_epoch"), NULL, ngx_http_seckill_variable,
      VARIABLE_EPOCH, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_redis_time"), NULL, ngx_http_seckill_variable,
      VARIABLE_REDIS_TIME, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_request_id"), NULL, ngx_http_seckill_variable,
      VARIABLE_REQUEST_ID, NGX_HTTP_VAR_NOCACHEABLE, 0 },

    { ngx_string("seckill_accepted"), NULL, ngx_http_seckill_variable,
      VARIABLE_ACCEPTED, NGX_HTTP_VAR_NOCACHEABLE, 0 },

      ngx_http_null_variable
};


ngx_int_t
ngx_http_seckill_add_variables(ngx_conf_t *cf)
{
    ngx_http_variable_t  *var, *v;

    for (v = ngx_http_seckill_variables; v->name.len; v++) {
        var = ngx_http_add_variable(cf, &v->name, v->flags);
        if (var == NULL) {
            return NGX_ERROR;
        }

        var->get_handler = v->get_handler;
        var->data = v->data;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_variable(ngx_http_request_t *r, ngx_http_variable_value_t *v,
    uintptr_t data)
{
    u_char                  *p, *last;
    ngx_http_seckill_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_seckill_module);

    if (ctx == NULL) {
        ctx = ngx_http_seckill_intercepted(r);
    }

    if (ctx == NULL) {
        v->not_found = 1;
        return NGX_OK;
    }

    /* the longest is a request_id */
    p = ngx_pnalloc(r->pool, SK_REQUEST_ID_MAX);
    if (p == NULL) {
        return NGX_ERROR;
    }

    last = ngx_http_seckill_variable_text(ctx, p, data);

    v->data = p;
    v->len = last - p;
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = (last == p);

    return NGX_OK;
}


/* nothing where it is not known */

static u_char *
ngx_http_seckill_variable_text(ngx_http_seckill_ctx_t *ctx, u_char *p,
    uintptr_t data)
{
    sk_order_no_t  no;

    switch (data) {

    case VARIABLE_VERDICT:
        if (ctx->verdict == SK_VERDICTS) {
            return p;
        }

        return ngx_sprintf(p, "%s", sk_verdicts[ctx->verdict].word);

    case VARIABLE_CODE:
        if (ctx->verdict == SK_VERDICTS) {
            return p;
        }

        return ngx_sprintf(p, "%d", sk_verdicts[ctx->verdict].code);

    case VARIABLE_ACTIVITY:
        return ctx->activity ? ngx_sprintf(p, "%uL", ctx->activity) : p;

    case VARIABLE_USER:
        return ctx->user ? ngx_sprintf(p, "%uL", ctx->user) : p;

    case VARIABLE_QUANTITY:
        return ctx->purchase ? ngx_sprintf(p, "%uD", ctx->purchase->quantity)
                             : p;

    case VARIABLE_ORDER_NO:
        if (ctx->seq) {
            no.accepted_ms = ctx->redis_ms;
            no.activity = ctx->activity;
            no.seq = ctx->seq;
            no.user = ctx->user;

            sk_order_no_format((char *) p, &no);
            return p + SK_ORDER_NO_LEN;
        }

        if (ctx->result) {
            return ngx_sprintf(p, "%s", ctx->result->order_no);
        }

        return p;

    case VARIABLE_SEQ:
        return ctx->seq ? ngx_sprintf(p, "%uL", ctx->seq) : p;

    case VARIABLE_EPOCH:
        return ctx->seq ? ngx_sprintf(p, "%uL", ctx->epoch) : p;

    case VARIABLE_REDIS_TIME:
        return ctx->redis_ms ? ngx_sprintf(p, "%uL", ctx->redis_ms) : p;

    case VARIABLE_REQUEST_ID:
        return ngx_cpymem(p, ctx->request_id.data, ctx->request_id.len);

    case VARIABLE_ACCEPTED:
        if (ctx->verdict == SK_ACCEPTED) {
            *p++ = '1';
        }

        return p;

    default:
        return p;
    }
}
