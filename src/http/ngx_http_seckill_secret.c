
/*
 * Secrets from files: keys of tokens and passwords.  Files are read while the
 * configuration is read, and never later.
 */


#include "ngx_http_seckill_secret.h"


#define NGX_HTTP_SECKILL_SECRET_MAX  4096       /* bytes of a file */

/* RFC 7518, 3.2 wants the size of the hash; shorter than this is a mistake */
#define NGX_HTTP_SECKILL_KEY_MIN     16


static void ngx_http_seckill_secret_free(void *data);
static void ngx_http_seckill_secret_journal_free(void *data);


char *
ngx_http_seckill_secret_jwt(ngx_conf_t *cf, ngx_http_seckill_loc_conf_t *conf)
{
    ngx_str_t   *key;
    sk_hmac_t  **hmac;
    ngx_uint_t   i, n;

    key = conf->auth_keys->elts;
    n = conf->auth_keys->nelts;

    hmac = ngx_pcalloc(cf->pool, n * sizeof(sk_hmac_t *));
    if (hmac == NULL) {
        return NGX_CONF_ERROR;
    }

    for (i = 0; i < n; i++) {
        hmac[i] = ngx_http_seckill_secret_hmac(cf,
                                        (sk_hmac_alg_e) conf->auth_alg, &key[i]);
        if (hmac[i] == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    conf->jwt.keys = hmac;
    conf->jwt.nkeys = n;
    conf->jwt.alg = (sk_hmac_alg_e) conf->auth_alg;
    conf->jwt.claim = (char *) conf->auth_claim.data;
    conf->jwt.claim_len = conf->auth_claim.len;
    conf->jwt.leeway = conf->auth_leeway;

    return NGX_CONF_OK;
}


/* lives as long as the configuration */

sk_hmac_t *
ngx_http_seckill_secret_hmac(ngx_conf_t *cf, sk_hmac_alg_e alg, ngx_str_t *key)
{
    sk_hmac_t           *hmac;
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(cf->pool, 0);
    if (cln == NULL) {
        return NULL;
    }

    hmac = sk_hmac_create(alg, key->data, key->len);
    if (hmac == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "HMAC could not be prepared");
        return NULL;
    }

    cln->handler = ngx_http_seckill_secret_free;
    cln->data = hmac;

    return hmac;
}


static void
ngx_http_seckill_secret_free(void *data)
{
    sk_hmac_free(data);
}


sk_journal_key_t *
ngx_http_seckill_secret_journal(ngx_conf_t *cf, ngx_str_t *key)
{
    sk_journal_key_t    *journal;
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(cf->pool, sizeof(sk_journal_key_t));
    if (cln == NULL) {
        return NULL;
    }

    journal = cln->data;

    if (sk_journal_key_init(journal, key->data, key->len) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "HMAC could not be prepared");
        return NULL;
    }

    cln->handler = ngx_http_seckill_secret_journal_free;

    return journal;
}


static void
ngx_http_seckill_secret_journal_free(void *data)
{
    sk_journal_key_done(data);
}


char *
ngx_http_seckill_secret_key(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *key)
{
    ngx_str_t  file;

    file = *name;

    if (ngx_http_seckill_secret_read(cf, &file, key) != NGX_OK) {
        return NGX_CONF_ERROR;
    }

    if (key->len < NGX_HTTP_SECKILL_KEY_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "key in \"%V\" is shorter "
                           "than %d bytes", name, NGX_HTTP_SECKILL_KEY_MIN);
        return NGX_CONF_ERROR;
    }

    return NGX_CONF_OK;
}


/* a secret: the file's bytes less one newline at the end */

ngx_int_t
ngx_http_seckill_secret_read(ngx_conf_t *cf, ngx_str_t *name, ngx_str_t *text)
{
    ssize_t    n;
    ngx_fd_t   fd;
    ngx_str_t  file;

    /* a copy, also because the path may be made full in place */

    file.len = name->len;
    file.data = ngx_pnalloc(cf->pool, name->len + 1);
    text->data = ngx_pnalloc(cf->pool, NGX_HTTP_SECKILL_SECRET_MAX + 1);

    if (file.data == NULL || text->data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(file.data, name->data, name->len + 1);

    if (ngx_conf_full_name(cf->cycle, &file, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    fd = ngx_open_file(file.data, NGX_FILE_RDONLY, NGX_FILE_OPEN, 0);

    if (fd == NGX_INVALID_FILE) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_open_file_n " \"%V\" failed", &file);
        return NGX_ERROR;
    }

    n = ngx_read_fd(fd, text->data, NGX_HTTP_SECKILL_SECRET_MAX + 1);

    if (n == -1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, ngx_errno,
                           ngx_read_fd_n " \"%V\" failed", &file);
    }

    (void) ngx_close_file(fd);

    if (n == -1) {
        return NGX_ERROR;
    }

    if (n > NGX_HTTP_SECKILL_SECRET_MAX) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"%V\" is larger than %d "
                           "bytes", &file, NGX_HTTP_SECKILL_SECRET_MAX);
        return NGX_ERROR;
    }

    if (n && text->data[n - 1] == '\n') {
        n--;
    }

    text->len = n;

    return NGX_OK;
}
