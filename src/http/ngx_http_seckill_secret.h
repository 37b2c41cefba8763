
/*
 * Secrets from files, read while the configuration is read.
 */


#ifndef _NGX_HTTP_SECKILL_SECRET_H_INCLUDED_
#define _NGX_HTTP_SECKILL_SECRET_H_INCLUDED_


#include "ngx_http_seckill.h"


/* A password from a file, as sk_secret_read() takes it; errors are logged. */
char *ngx_http_seckill_secret_password(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *password);

/* A key for HMAC from a file, of 16 bytes or more; errors are logged. */
char *ngx_http_seckill_secret_key(ngx_conf_t *cf, ngx_str_t *name,
    ngx_str_t *key);

/* Prepares a key; it lives as long as the configuration. */
sk_hmac_t *ngx_http_seckill_secret_hmac(ngx_conf_t *cf, sk_hmac_alg_e alg,
    ngx_str_t *key);

/* The key that signs the journal, made of that of the queue tokens. */
sk_journal_key_t *ngx_http_seckill_secret_journal(ngx_conf_t *cf,
    ngx_str_t *key);

/* Prepares the keys of a location's tokens; its settings are merged. */
char *ngx_http_seckill_secret_jwt(ngx_conf_t *cf,
    ngx_http_seckill_loc_conf_t *conf);


#endif /* _NGX_HTTP_SECKILL_SECRET_H_INCLUDED_ */
