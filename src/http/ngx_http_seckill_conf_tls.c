
/*
 * "seckill_redis ... tls=on": whom to trust, who we are, and what the server is
 * called.  Files are read here, while the configuration is.
 */


#include "ngx_http_seckill.h"


static char *ngx_http_seckill_conf_tls_check(ngx_conf_t *cf,
    ngx_seckill_redis_addr_t *addr, ngx_seckill_redis_tls_t *tls);

#if (NGX_SSL)
static ngx_int_t ngx_http_seckill_conf_tls_create(ngx_conf_t *cf,
    ngx_seckill_redis_tls_t *tls);
static ngx_int_t ngx_http_seckill_conf_tls_trust(ngx_conf_t *cf,
    ngx_seckill_redis_tls_t *tls);
static ngx_int_t ngx_http_seckill_conf_tls_cert(ngx_conf_t *cf,
    ngx_seckill_redis_tls_t *tls);
#endif


ngx_int_t
ngx_http_seckill_conf_tls_option(ngx_str_t *option,
    ngx_seckill_redis_tls_t *tls, ngx_uint_t *on)
{
    size_t      len;
    ngx_str_t  *value;
    ngx_uint_t  i;

    struct {
        ngx_str_t   name;
        ngx_str_t  *value;
    } texts[] = {
        { ngx_string("tls_ca="), &tls->ca },
        { ngx_string("tls_cert="), &tls->cert },
        { ngx_string("tls_key="), &tls->key },
        { ngx_string("tls_name="), &tls->name }
    };

    if (ngx_strcmp(option->data, "tls=on") == 0) {
        *on = 1;
        return NGX_OK;
    }

    if (ngx_strcmp(option->data, "tls=off") == 0) {
        *on = 0;
        return NGX_OK;
    }

    if (ngx_strcmp(option->data, "tls_verify=on") == 0) {
        tls->verify = 1;
        return NGX_OK;
    }

    if (ngx_strcmp(option->data, "tls_verify=off") == 0) {
        tls->verify = 0;
        return NGX_OK;
    }

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        len = texts[i].name.len;
        value = texts[i].value;

        if (option->len > len
            && ngx_strncmp(option->data, texts[i].name.data, len) == 0
            && value->len == 0)
        {
            /* ends with a NUL, as all words of a configuration do */

            value->data = option->data + len;
            value->len = option->len - len;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


char *
ngx_http_seckill_conf_tls(ngx_conf_t *cf, ngx_seckill_redis_addr_t *addr,
    ngx_seckill_redis_tls_t *tls, ngx_uint_t on)
{
    if (!on) {
        if (tls->ca.len || tls->cert.len || tls->key.len || tls->name.len
            || !tls->verify)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "redis address \"%V\" has "
                               "\"tls_...\" parameters and no \"tls=on\"",
                               &addr->name);
            return NGX_CONF_ERROR;
        }

        return NGX_CONF_OK;
    }

#if (NGX_SSL)

    if (ngx_http_seckill_conf_tls_check(cf, addr, tls) != NGX_CONF_OK
        || ngx_http_seckill_conf_tls_create(cf, tls) != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    addr->tls = tls;

    return NGX_CONF_OK;

#else

    (void) ngx_http_seckill_conf_tls_check;

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"tls=on\" of redis address "
                       "\"%V\" needs an nginx that was built with SSL",
                       &addr->name);
    return NGX_CONF_ERROR;

#endif
}


static char *
ngx_http_seckill_conf_tls_check(ngx_conf_t *cf, ngx_seckill_redis_addr_t *addr,
    ngx_seckill_redis_tls_t *tls)
{
    ngx_str_t  host;

    if (addr->sockaddr && addr->sockaddr->sa_family == AF_UNIX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"tls=on\" is not for a unix "
                           "socket: \"%V\"", &addr->name);
        return NGX_CONF_ERROR;
    }

    if ((tls->cert.len == 0) != (tls->key.len == 0)) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"tls_cert=\" and "
                           "\"tls_key=\" of redis address \"%V\" need each other",
                           &addr->name);
        return NGX_CONF_ERROR;
    }

    if (!tls->verify && tls->ca.len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"tls_ca=%V\" is of no use "
                           "with \"tls_verify=off\"", &tls->ca);
        return NGX_CONF_ERROR;
    }

    if (tls->name.len) {
        return NGX_CONF_OK;
    }

    host = addr->host;

    if (host.len > 2 && host.data[0] == '[') {
        host.data++;
        host.len -= 2;
    }

    tls->name.data = ngx_pnalloc(cf->pool, host.len + 1);
    if (tls->name.data == NULL) {
        return NGX_CONF_ERROR;
    }

    (void) ngx_cpystrn(tls->name.data, host.data, host.len + 1);
    tls->name.len = host.len;

    return NGX_CONF_OK;
}


#if (NGX_SSL)

static ngx_int_t
ngx_http_seckill_conf_tls_create(ngx_conf_t *cf, ngx_seckill_redis_tls_t *tls)
{
    ngx_pool_cleanup_t  *cln;

    tls->ssl.log = cf->log;

    if (ngx_ssl_create(&tls->ssl, NGX_SSL_TLSv1_2|NGX_SSL_TLSv1_3, NULL)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        ngx_ssl_cleanup_ctx(&tls->ssl);
        return NGX_ERROR;
    }

    cln->handler = ngx_ssl_cleanup_ctx;
    cln->data = &tls->ssl;

    if (ngx_http_seckill_conf_tls_trust(cf, tls) != NGX_OK
        || ngx_http_seckill_conf_tls_cert(cf, tls) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_ssl_client_session_cache(cf, &tls->ssl, 1);
}


static ngx_int_t
ngx_http_seckill_conf_tls_trust(ngx_conf_t *cf, ngx_seckill_redis_tls_t *tls)
{
    if (!tls->verify) {
        return NGX_OK;
    }

    if (tls->ca.len == 0) {
        if (SSL_CTX_set_default_verify_paths(tls->ssl.ctx) == 0) {
            ngx_ssl_error(NGX_LOG_EMERG, cf->log, 0,
                          "SSL_CTX_set_default_verify_paths() failed");
            return NGX_ERROR;
        }

        return NGX_OK;
    }

    if (ngx_conf_full_name(cf->cycle, &tls->ca, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    if (SSL_CTX_load_verify_locations(tls->ssl.ctx, (char *) tls->ca.data, NULL)
        == 0)
    {
        ngx_ssl_error(NGX_LOG_EMERG, cf->log, 0,
                      "cannot load \"tls_ca=%V\" of \"seckill_redis\"", &tls->ca);
        return NGX_ERROR;
    }

    /* it may leave errors behind and still succeed */

    ERR_clear_error();

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_conf_tls_cert(ngx_conf_t *cf, ngx_seckill_redis_tls_t *tls)
{
    ngx_str_t    *empty;
    ngx_array_t  *passwords;

    if (tls->cert.len == 0) {
        return NGX_OK;
    }

    if (ngx_conf_full_name(cf->cycle, &tls->cert, 1) != NGX_OK
        || ngx_conf_full_name(cf->cycle, &tls->key, 1) != NGX_OK)
    {
        return NGX_ERROR;
    }

    /* a key with a password is refused: OpenSSL would ask on the terminal */

    passwords = ngx_array_create(cf->pool, 1, sizeof(ngx_str_t));
    if (passwords == NULL) {
        return NGX_ERROR;
    }

    empty = ngx_array_push(passwords);
    if (empty == NULL) {
        return NGX_ERROR;
    }

    ngx_str_set(empty, "");

    return ngx_ssl_certificate(cf, &tls->ssl, &tls->cert, &tls->key, passwords);
}

#endif
