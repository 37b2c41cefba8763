
/*
 * "seckill_redis": where Redis is and who we are there.  A host name is only
 * taken down here; workers look it up.
 */


#include "ngx_http_seckill_secret.h"


static char *ngx_http_seckill_conf_redis_address(ngx_conf_t *cf,
    ngx_str_t *text, ngx_seckill_redis_addr_t *addr);
static char *ngx_http_seckill_conf_redis_option(ngx_conf_t *cf,
    ngx_str_t *option, ngx_seckill_redis_addr_t *addr);
static void ngx_http_seckill_conf_redis_forget(void *pool);


/* seckill_redis address [db=n] [user=name] [password_file=path] [tls=on ...]; */

char *
ngx_http_seckill_conf_redis(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_seckill_loc_conf_t  *slcf = conf;

    char                      *rv;
    ngx_str_t                 *value;
    ngx_int_t                  rc;
    ngx_uint_t                 i, on;
    ngx_seckill_redis_tls_t   *tls;
    ngx_seckill_redis_addr_t  *addr;

    if (slcf->redis != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    addr = ngx_pcalloc(cf->pool, sizeof(ngx_seckill_redis_addr_t));
    tls = ngx_pcalloc(cf->pool, sizeof(ngx_seckill_redis_tls_t));

    if (addr == NULL || tls == NULL) {
        return NGX_CONF_ERROR;
    }

    on = 0;
    tls->verify = 1;

    value = cf->args->elts;

    rv = ngx_http_seckill_conf_redis_address(cf, &value[1], addr);

    for (i = 2; rv == NGX_CONF_OK && i < cf->args->nelts; i++) {
        rc = ngx_http_seckill_conf_tls_option(&value[i], tls, &on);

        if (rc == NGX_DECLINED) {
            rv = ngx_http_seckill_conf_redis_option(cf, &value[i], addr);
        }
    }

    if (rv == NGX_CONF_OK) {
        rv = ngx_http_seckill_conf_tls(cf, addr, tls, on);
    }

    if (rv == NGX_CONF_OK && addr->user.len && addr->password.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"user=%V\" needs a \"password_file=\"",
                           &addr->user);
        return NGX_CONF_ERROR;
    }

    slcf->redis = addr;

    return rv;
}


static char *
ngx_http_seckill_conf_redis_address(ngx_conf_t *cf, ngx_str_t *text,
    ngx_seckill_redis_addr_t *addr)
{
    ngx_url_t  u;

    ngx_memzero(&u, sizeof(ngx_url_t));

    u.url = *text;
    u.default_port = 6379;
    u.no_resolve = 1;

    if (ngx_parse_url(cf->pool, &u) != NGX_OK) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s in redis address \"%V\"",
                           u.err ? u.err : "an error", text);
        return NGX_CONF_ERROR;
    }

    addr->name = *text;
    addr->host = u.host;
    addr->port = u.port;

    if (u.naddrs) {
        addr->sockaddr = u.addrs[0].sockaddr;
        addr->socklen = u.addrs[0].socklen;
    }

    return NGX_CONF_OK;
}


static char *
ngx_http_seckill_conf_redis_option(ngx_conf_t *cf, ngx_str_t *option,
    ngx_seckill_redis_addr_t *addr)
{
    ngx_int_t   n;
    ngx_str_t   name;

    if (option->len > 3 && ngx_strncmp(option->data, "db=", 3) == 0) {
        n = ngx_atoi(option->data + 3, option->len - 3);

        if (n == NGX_ERROR || n > 65535) {
            goto invalid;
        }

        addr->db = n;
        return NGX_CONF_OK;
    }

    if (option->len > 5 && ngx_strncmp(option->data, "user=", 5) == 0) {
        addr->user.data = option->data + 5;
        addr->user.len = option->len - 5;
        return NGX_CONF_OK;
    }

    if (option->len > 14
        && ngx_strncmp(option->data, "password_file=", 14) == 0)
    {
        name.data = option->data + 14;
        name.len = option->len - 14;

        return ngx_http_seckill_secret_password(cf, &name, &addr->password);
    }

invalid:

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"",
                       option);

    return NGX_CONF_ERROR;
}


/* which resolver the location has; it is known when all is read */

char *
ngx_http_seckill_conf_redis_check(ngx_conf_t *cf,
    ngx_http_seckill_loc_conf_t *slcf)
{
    ngx_resolver_ctx_t        *resolve;
    ngx_http_core_loc_conf_t  *clcf;

    if (slcf->redis->tls) {
        slcf->redis_settings.owner = cf->pool;
    }

    if (slcf->redis->sockaddr) {
        return NGX_CONF_OK;
    }

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    /* asked this way, as the fields of a resolver are not the same everywhere */
    resolve = ngx_resolve_start(clcf->resolver, NULL);

    if (resolve == NULL) {
        return NGX_CONF_ERROR;
    }

    if (resolve == NGX_NO_RESOLVER) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "redis address \"%V\" is a host name and needs a "
                           "\"resolver\" directive, with a name server that "
                           "knows it", &slcf->redis->name);
        return NGX_CONF_ERROR;
    }

    ngx_resolve_name_done(resolve);

    slcf->redis_settings.resolver = clcf->resolver;
    slcf->redis_settings.owner = cf->pool;

    return NGX_CONF_OK;
}


/* later than what clients point to, so that its cleanup comes first */

ngx_int_t
ngx_http_seckill_conf_redis_owner(ngx_conf_t *cf)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_seckill_conf_redis_forget;
    cln->data = cf->pool;

    return NGX_OK;
}


static void
ngx_http_seckill_conf_redis_forget(void *pool)
{
    ngx_seckill_redis_forget(pool);
}
