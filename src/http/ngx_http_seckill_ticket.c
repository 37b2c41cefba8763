
/*
 * The queue_token: signed with the operator's key, or with the one that all
 * nodes share in Redis; the predecessor of that one is accepted.
 */


#include "ngx_http_seckill.h"


/* keys a worker keeps prepared; more than a rotation needs */
#define NGX_HTTP_SECKILL_TICKET_KEYS  8


typedef struct {
    u_char      key[NGX_HTTP_SECKILL_HMAC_KEY];
    sk_hmac_t  *hmac;
} ngx_http_seckill_ticket_key_t;


static sk_hmac_t *ngx_http_seckill_ticket_hmac(u_char *key);


static ngx_http_seckill_ticket_key_t
    ngx_http_seckill_ticket_keys[NGX_HTTP_SECKILL_TICKET_KEYS];


/* buf has SK_TICKET_LEN bytes */

ngx_int_t
ngx_http_seckill_ticket(ngx_http_seckill_ctx_t *ctx, u_char *buf)
{
    sk_hmac_t  *hmac;

    hmac = ctx->conf->queue_token;

    if (hmac == NULL) {
        hmac = ngx_http_seckill_ticket_hmac(ctx->control.keys[0]);
    }

    if (hmac == NULL
        || sk_ticket_format((char *) buf, hmac, ctx->activity, ctx->user) != 0)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* NGX_DECLINED: not signed by us, or for another activity */

ngx_int_t
ngx_http_seckill_ticket_user(ngx_http_seckill_ctx_t *ctx, ngx_str_t *token)
{
    uint64_t     activity;
    sk_hmac_t   *hmacs[2];
    ngx_uint_t   i, n;

    if (ctx->conf->queue_token) {
        hmacs[0] = ctx->conf->queue_token;
        n = 1;

    } else {
        n = ctx->control.nkeys;

        for (i = 0; i < n; i++) {
            hmacs[i] = ngx_http_seckill_ticket_hmac(ctx->control.keys[i]);

            if (hmacs[i] == NULL) {
                return NGX_DECLINED;
            }
        }
    }

    if (sk_ticket_verify(hmacs, n, (char *) token->data, token->len, &activity,
                         &ctx->user)
        != 0
        || activity != ctx->activity)
    {
        ctx->user = 0;
        return NGX_DECLINED;
    }

    return NGX_OK;
}


static sk_hmac_t *
ngx_http_seckill_ticket_hmac(u_char *key)
{
    static ngx_uint_t  next;

    ngx_uint_t                      i;
    ngx_http_seckill_ticket_key_t  *slot;

    for (i = 0; i < NGX_HTTP_SECKILL_TICKET_KEYS; i++) {
        slot = &ngx_http_seckill_ticket_keys[i];

        if (slot->hmac
            && sk_equal(slot->key, key, NGX_HTTP_SECKILL_HMAC_KEY))
        {
            return slot->hmac;
        }
    }

    /* two in a row are never the same slot, so a verify's first stays alive */

    slot = &ngx_http_seckill_ticket_keys[next++ % NGX_HTTP_SECKILL_TICKET_KEYS];

    if (slot->hmac) {
        sk_hmac_free(slot->hmac);
    }

    ngx_memcpy(slot->key, key, NGX_HTTP_SECKILL_HMAC_KEY);
    slot->hmac = sk_hmac_create(SK_HS256, key, NGX_HTTP_SECKILL_HMAC_KEY);

    return slot->hmac;
}


void
ngx_http_seckill_ticket_exit(void)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_SECKILL_TICKET_KEYS; i++) {
        if (ngx_http_seckill_ticket_keys[i].hmac) {
            sk_hmac_free(ngx_http_seckill_ticket_keys[i].hmac);
            ngx_http_seckill_ticket_keys[i].hmac = NULL;
        }
    }
}
