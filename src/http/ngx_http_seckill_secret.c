
/*
 * Secrets from files: keys of tokens and passwords.  Files are read while the
 * configuration is read, and never later.
 */


#include "ngx_http_seckill_secret.h"
#include "sk_secret.h"


static ngx_int_t ngx_http_seckill_secret_file(ngx_conf_t *cf, const char *what,
    size_t least, ngx_str_t *name, ngx_str_t *text);
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
    return ngx_http_seckill_secret_file(cf, "key", SK_SECRET_KEY, name, key)
           == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}


char *
ngx_http_seckill_secret_password(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *password)
{
    return ngx_http_seckill_secret_file(cf, "password", SK_SECRET_PASSWORD,
                                        name, password)
           == NGX_OK ? NGX_CONF_OK : NGX_CONF_ERROR;
}


static ngx_int_t
ngx_http_seckill_secret_file(ngx_conf_t *cf, const char *what, size_t least,
    ngx_str_t *name, ngx_str_t *text)
{
    ngx_int_t    rc;
    ngx_str_t    file;
    sk_secret_t  secret;

    /* a copy, also because the path may be made full in place */

    file.len = name->len;
    file.data = ngx_pnalloc(cf->pool, name->len + 1);

    if (file.data == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_cpystrn(file.data, name->data, name->len + 1);

    if (ngx_conf_full_name(cf->cycle, &file, 1) != NGX_OK) {
        return NGX_ERROR;
    }

    if (sk_secret_read(&secret, (char *) file.data, least) != 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%s file \"%V\": %s", what,
                           &file, secret.error);
        return NGX_ERROR;
    }

    if (secret.open) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "%s file \"%V\" may be read "
                           "by everybody", what, &file);
    }

    rc = NGX_ERROR;

    text->data = ngx_pnalloc(cf->pool, secret.len);

    if (text->data) {
        ngx_memcpy(text->data, secret.text, secret.len);
        text->len = secret.len;
        rc = NGX_OK;
    }

    sk_secret_wipe(&secret);

    return rc;
}
