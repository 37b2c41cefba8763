
/*
 * "seckill_intercept_errors on": refusals go to the error_page of the location,
 * as those of a proxied server do with proxy_intercept_errors.
 */


#include "ngx_http_seckill.h"


static void ngx_http_seckill_intercept_cleanup(void *data);


ngx_int_t
ngx_http_seckill_intercept(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_uint_t                 i;
    ngx_pool_cleanup_t        *cln;
    ngx_http_err_page_t       *page;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    /*
     * behind another request its own status stands; the core closes on 408
     * without an answer
     */

    if (!ctx->conf->intercept_errors || clcf->error_pages == NULL
        || ctx->not_own || r->uri_changes == 0
        || r->headers_out.status < NGX_HTTP_BAD_REQUEST
        || r->headers_out.status == NGX_HTTP_REQUEST_TIME_OUT)
    {
        return NGX_DECLINED;
    }

    page = clcf->error_pages->elts;

    for (i = 0; i < clcf->error_pages->nelts; i++) {
        if (page[i].status == (ngx_int_t) r->headers_out.status) {
            break;
        }
    }

    if (i == clcf->error_pages->nelts) {
        return NGX_DECLINED;
    }

    /* the redirect clears contexts; the variables are still those of the refusal */

    cln = ngx_pool_cleanup_add(r->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_seckill_intercept_cleanup;
    cln->data = ctx;

    return NGX_OK;
}


ngx_http_seckill_ctx_t *
ngx_http_seckill_intercepted(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_seckill_intercept_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


/* only its address is of use */

static void
ngx_http_seckill_intercept_cleanup(void *data)
{
}
