
/*
 * The path rule: nginx' choice of a location and ours of a route must not
 * disagree, or a limit on one location is walked around through another.
 *
 * A prefix location serves "{id}" and "result/{id}" right behind its own name,
 * and results only when the name itself ends in "result/".  In other locations,
 * and behind a rewrite to a path of another name, the URI must end so.
 */


#include "ngx_http_seckill_path.h"


/* bytes of a path that are shown in the log */
#define NGX_HTTP_SECKILL_PATH_SHOWN  128


static ngx_int_t ngx_http_seckill_path_prefix(ngx_str_t *rest,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_path_tail(ngx_str_t *uri,
    ngx_http_seckill_ctx_t *ctx);
static ngx_uint_t ngx_http_seckill_path_rest(ngx_str_t *uri, ngx_str_t *name,
    ngx_str_t *rest);
static ngx_uint_t ngx_http_seckill_path_id(u_char *p, u_char *last,
    uint64_t *id);
static void ngx_http_seckill_path_tell(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);


ngx_int_t
ngx_http_seckill_path(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t                     rc;
    ngx_str_t                     rest;
    ngx_http_seckill_loc_conf_t  *conf;

    conf = ctx->conf;

    if (conf->path == NGX_HTTP_SECKILL_PATH_PREFIX
        && r->uri.len >= conf->path_name.len
        && ngx_memcmp(r->uri.data, conf->path_name.data, conf->path_name.len)
           == 0)
    {
        rc = ngx_http_seckill_path_rest(&r->uri, &conf->path_name, &rest)
             ? ngx_http_seckill_path_prefix(&rest, ctx) : NGX_DECLINED;

    } else {
        rc = ngx_http_seckill_path_tail(&r->uri, ctx);
    }

    if (rc == NGX_OK && conf->path_results && !ctx->result_route) {
        rc = NGX_DECLINED;
    }

    if (rc != NGX_OK) {
        ctx->activity = 0;
        ctx->result_route = 0;
        ngx_http_seckill_path_tell(r, ctx);
    }

    return rc;
}


/* what follows the name; 0 when no slash parts them */

static ngx_uint_t
ngx_http_seckill_path_rest(ngx_str_t *uri, ngx_str_t *name, ngx_str_t *rest)
{
    rest->data = uri->data + name->len;
    rest->len = uri->len - name->len;

    if (name->len && name->data[name->len - 1] == '/') {
        return 1;
    }

    if (rest->len == 0 || rest->data[0] != '/') {
        return 0;
    }

    rest->data++;
    rest->len--;

    return 1;
}


static ngx_int_t
ngx_http_seckill_path_prefix(ngx_str_t *rest, ngx_http_seckill_ctx_t *ctx)
{
    u_char  *p, *last;

    p = rest->data;
    last = p + rest->len;

    if (ctx->conf->path_results) {
        ctx->result_route = 1;

    } else if (rest->len > sizeof("result/") - 1
               && ngx_memcmp(p, "result/", sizeof("result/") - 1) == 0)
    {
        ctx->result_route = 1;
        p += sizeof("result/") - 1;
    }

    return ngx_http_seckill_path_id(p, last, &ctx->activity) ? NGX_OK
                                                             : NGX_DECLINED;
}


static ngx_int_t
ngx_http_seckill_path_tail(ngx_str_t *uri, ngx_http_seckill_ctx_t *ctx)
{
    u_char      *p, *last, *segment;
    ngx_uint_t   result;

    last = uri->data + uri->len;
    segment = uri->data;
    result = 0;

    for (p = uri->data; p < last; p++) {
        if (*p != '/') {
            continue;
        }

        if (result) {
            /* one that is not the last but one */
            return NGX_DECLINED;
        }

        result = (p - segment == sizeof("result") - 1
                  && ngx_memcmp(segment, "result", sizeof("result") - 1) == 0);

        segment = p + 1;
    }

    ctx->result_route = result;

    return ngx_http_seckill_path_id(segment, last, &ctx->activity)
           ? NGX_OK : NGX_DECLINED;
}


static ngx_uint_t
ngx_http_seckill_path_id(u_char *p, u_char *last, uint64_t *id)
{
    return sk_id_parse((char *) p, last - p, id) == 0;
}


/*
 * A path that ends in an id may be meant by the operator: told once per location
 * and worker, so that nobody can fill the log.
 */

static void
ngx_http_seckill_path_tell(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    u_char                       *p, *last;
    uint64_t                      id;
    ngx_str_t                     uri;
    const char                   *rule;
    u_char                        shown[NGX_HTTP_SECKILL_PATH_SHOWN * 3];
    ngx_http_seckill_loc_conf_t  *conf;

    conf = ctx->conf;
    last = r->uri.data + r->uri.len;

    for (p = last; p > r->uri.data && p[-1] != '/'; p--) { /* void */ }

    if (conf->path_told || !ngx_http_seckill_path_id(p, last, &id)) {
        return;
    }

    conf->path_told = 1;

    /* decoded by nginx: a line end in it must not reach the log */
    uri.data = shown;
    uri.len = ngx_min(r->uri.len, NGX_HTTP_SECKILL_PATH_SHOWN);
    (void) ngx_escape_uri(shown, r->uri.data, uri.len, NGX_ESCAPE_URI);
    uri.len += 2 * ngx_escape_uri(NULL, r->uri.data, uri.len, NGX_ESCAPE_URI);

    if (conf->path != NGX_HTTP_SECKILL_PATH_PREFIX) {
        rule = "the URI must end in \"/{id}\" or \"/result/{id}\", without "
               "another segment \"result\"";

    } else if (conf->path_results) {
        rule = "only \"{id}\", for results, may follow the location's name";

    } else {
        rule = "only \"{id}\" or \"result/{id}\" may follow the location's name";
    }

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "seckill does not serve "
                  "\"%V\" in location \"%V\": %s; told once per worker",
                  &uri, &conf->path_name, rule);
}


void
ngx_http_seckill_conf_path(ngx_conf_t *cf, ngx_http_seckill_loc_conf_t *prev,
    ngx_http_seckill_loc_conf_t *conf)
{
    u_char                    *p, *last;
    uint64_t                   id;
    ngx_str_t                  name;
    ngx_http_core_loc_conf_t  *clcf;

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    if (clcf->noname) {
        /* "if" and "limit_except" are parts of the location around them */
        conf->path = prev->path;
        conf->path_name = prev->path_name;
        conf->path_results = prev->path_results;
        return;
    }

    conf->path_name = clcf->name;

    if (clcf->exact_match || clcf->named
#if (NGX_PCRE)
        || clcf->regex
#endif
       )
    {
        conf->path = NGX_HTTP_SECKILL_PATH_TAIL;
        return;
    }

    name = clcf->name;

    if (name.len && name.data[name.len - 1] == '/') {
        name.len--;
    }

    conf->path_results = name.len >= sizeof("/result") - 1
                         && ngx_memcmp(name.data + name.len
                                       - (sizeof("/result") - 1),
                                       "/result", sizeof("/result") - 1)
                            == 0;

    last = clcf->name.data + clcf->name.len;

    for (p = last; p > clcf->name.data && p[-1] != '/'; p--) { /* void */ }

    if (conf->enable && ngx_http_seckill_path_id(p, last, &id)) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "location \"%V\" serves "
                           "\"%V/{id}\" and not itself, write "
                           "\"location = %V\" for that",
                           &clcf->name, &clcf->name, &clcf->name);
    }
}
