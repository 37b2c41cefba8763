
/*
 * Whose request it is.  A rewrite, an "if" or try_files is the client's own
 * request under another path.  What nginx makes behind another request
 * (a subrequest, post_action, error_page, X-Accel-Redirect) must not buy: the
 * client has asked for something else, and has its answer from there.
 *
 * r->internal does not tell, each rewrite sets it.  Of "error_page N = @name"
 * under "recursive_error_pages on" nothing is left in the request at all: where
 * the configuration has such a page, locations are traced.
 */


#include "ngx_http_seckill_path.h"


/* of a request, in a cleanup of its pool: a redirect clears contexts */
typedef struct {
    ngx_http_seckill_loc_conf_t  *conf;         /* the location before */
    ngx_uint_t                    error_page;   /* may have come through one */
} ngx_http_seckill_trace_t;


static const char *ngx_http_seckill_own_not(ngx_http_request_t *r);
static ngx_http_seckill_trace_t *ngx_http_seckill_own_traced(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_seckill_own_trace(ngx_http_request_t *r);
static void ngx_http_seckill_own_cleanup(void *data);


ngx_int_t
ngx_http_seckill_own(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    const char  *maker;

    maker = ngx_http_seckill_own_not(r);

    if (maker == NULL) {
        return NGX_OK;
    }

    if (!ctx->conf->own_told) {
        ctx->conf->own_told = 1;

        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "seckill does not "
                      "serve what %s sends to location \"%V\", only what a "
                      "client asks for; told once per worker",
                      maker, &ctx->conf->path_name);
    }

    return NGX_DECLINED;
}


static const char *
ngx_http_seckill_own_not(ngx_http_request_t *r)
{
    ngx_http_seckill_trace_t  *trace;

    if (r != r->main) {
        return "a subrequest";
    }

    if (r->post_action) {
        return "post_action";
    }

    if (r->error_page || r->err_status) {
        return "error_page";
    }

    if (r->upstream) {
        return "X-Accel-Redirect";
    }

    trace = r->internal ? ngx_http_seckill_own_traced(r) : NULL;

    return trace && trace->error_page ? "error_page" : NULL;
}


static ngx_http_seckill_trace_t *
ngx_http_seckill_own_traced(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t  *cln;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_seckill_own_cleanup) {
            return cln->data;
        }
    }

    return NULL;
}


/* a phase handler: each location that a request comes to */

static ngx_int_t
ngx_http_seckill_own_trace(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t           *cln;
    ngx_http_core_loc_conf_t     *clcf;
    ngx_http_core_srv_conf_t     *cscf;
    ngx_http_seckill_trace_t     *trace;
    ngx_http_seckill_loc_conf_t  *conf;

    trace = ngx_http_seckill_own_traced(r);

    if (trace == NULL) {
        cln = ngx_pool_cleanup_add(r->pool, sizeof(ngx_http_seckill_trace_t));
        if (cln == NULL) {
            return NGX_ERROR;
        }

        cln->handler = ngx_http_seckill_own_cleanup;
        trace = cln->data;

        /* an error before any location: the pages are those of the server */
        cscf = ngx_http_get_module_srv_conf(r, ngx_http_core_module);
        conf = cscf->ctx->loc_conf[ngx_http_seckill_module.ctx_index];

        trace->conf = conf;
        trace->error_page = 0;
    }

    conf = ngx_http_get_module_loc_conf(r, ngx_http_seckill_module);
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (clcf->named && trace->conf->untold_pages) {
        trace->error_page = 1;
    }

    trace->conf = conf;

    return NGX_DECLINED;
}


/* only its address is of use */

static void
ngx_http_seckill_own_cleanup(void *data)
{
}


void
ngx_http_seckill_conf_own(ngx_conf_t *cf, ngx_http_seckill_main_conf_t *smcf,
    ngx_http_seckill_loc_conf_t *prev, ngx_http_seckill_loc_conf_t *conf)
{
    ngx_uint_t                 i;
    ngx_http_err_page_t       *page;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->recursive_error_pages != 1 || clcf->error_pages == NULL) {
        return;
    }

    page = clcf->error_pages->elts;

    for (i = 0; i < clcf->error_pages->nelts; i++) {

        /* a page with a path becomes a GET */

        if (page[i].overwrite == 0
            && (page[i].value.lengths
                || (page[i].value.value.len
                    && page[i].value.value.data[0] == '@')))
        {
            smcf->untold_pages = 1;
            conf->untold_pages = 1;

            if (clcf->noname) {
                /* it is chosen after the trace of the location around it */
                prev->untold_pages = 1;
            }
        }
    }
}


ngx_int_t
ngx_http_seckill_own_init(ngx_conf_t *cf)
{
    ngx_http_handler_pt           *h;
    ngx_http_core_main_conf_t     *cmcf;
    ngx_http_seckill_main_conf_t  *smcf;

    smcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_seckill_module);

    if (!smcf->untold_pages || smcf->shm_zone == NULL) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_REWRITE_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_seckill_own_trace;

    return NGX_OK;
}
