
/*
 * Who asks: a signed token, an opaque one that Redis knows, or what another
 * module found.  The result route takes the queue_token too.
 */


#include "ngx_http_seckill_session.h"

#include <openssl/evp.h>


/* longest opaque token, in bytes */
#define NGX_HTTP_SECKILL_SESSION_MAX  4096


static ngx_int_t ngx_http_seckill_auth_bearer(ngx_http_seckill_ctx_t *ctx,
    ngx_str_t *token);
static ngx_int_t ngx_http_seckill_auth_jwt(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, ngx_str_t *token);
static ngx_int_t ngx_http_seckill_auth_session(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, ngx_str_t *token);
static ngx_int_t ngx_http_seckill_auth_session_ask(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_seckill_call_t *ngx_http_seckill_auth_session_call(
    ngx_http_seckill_ctx_t *ctx);
static void ngx_http_seckill_auth_session_done(ngx_seckill_call_t *call);
static ngx_int_t ngx_http_seckill_auth_variable(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);


ngx_int_t
ngx_http_seckill_identify_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_str_t  token;

    if (ctx->answered) {
        ctx->answered = 0;

        if (ctx->failed) {
            return ngx_http_seckill_say(ctx, SK_BUSY);
        }

        return ctx->user ? NGX_OK : ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
    }

    if (ctx->body_waited && ctx->identified == ngx_time()) {
        /* the same second: a signed token says the same */
        return NGX_OK;
    }

    if (ctx->result_route
        && ngx_http_arg(r, (u_char *) "queue_token", sizeof("queue_token") - 1,
                        &token)
           == NGX_OK)
    {
        if (ngx_http_seckill_ticket_user(ctx, &token) != NGX_OK) {
            return ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
        }

        ctx->ticket = 1;

        return NGX_OK;
    }

    if (ctx->conf->auth == NGX_HTTP_SECKILL_AUTH_VARIABLE) {
        return ngx_http_seckill_auth_variable(r, ctx);
    }

    if (ngx_http_seckill_auth_bearer(ctx, &token) != NGX_OK) {
        return ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
    }

    if (ctx->conf->auth == NGX_HTTP_SECKILL_AUTH_REDIS) {
        return ngx_http_seckill_auth_session(r, ctx, &token);
    }

    return ngx_http_seckill_auth_jwt(r, ctx, &token);
}


/* one header, "Bearer", one space, a token without blanks */

static ngx_int_t
ngx_http_seckill_auth_bearer(ngx_http_seckill_ctx_t *ctx, ngx_str_t *token)
{
    size_t      i;
    ngx_str_t  *value;

    value = &ctx->authorization;

    if (ctx->authorizations != 1
        || value->len <= sizeof("Bearer ") - 1
        || ngx_strncasecmp(value->data, (u_char *) "Bearer ",
                           sizeof("Bearer ") - 1)
           != 0)
    {
        return NGX_DECLINED;
    }

    token->data = value->data + sizeof("Bearer ") - 1;
    token->len = value->len - (sizeof("Bearer ") - 1);

    for (i = 0; i < token->len; i++) {
        if (token->data[i] <= ' ' || token->data[i] == ','
            || token->data[i] >= 0x7f)
        {
            return NGX_DECLINED;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_auth_jwt(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx,
    ngx_str_t *token)
{
    sk_jwt_t  jwt;
    sk_jwt_e  rc;

    rc = sk_jwt_verify(&ctx->conf->jwt, (char *) token->data, token->len,
                       ngx_time(), &jwt);

    if (rc != SK_JWT_OK) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "seckill token refused: %s", sk_jwt_reason(rc));

        return ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
    }

    ctx->user = jwt.user;
    ctx->identified = ngx_time();

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_auth_variable(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_variable_value_t  *value;

    value = ngx_http_get_indexed_variable(r, ctx->conf->auth_variable);

    if (value == NULL || value->not_found
        || sk_id_parse((char *) value->data, value->len, &ctx->user) != 0)
    {
        ctx->user = 0;
        return ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
    }

    return NGX_OK;
}


/* Redis holds the hash of the token, never the token */

static ngx_int_t
ngx_http_seckill_auth_session(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, ngx_str_t *token)
{
    if (token->len > NGX_HTTP_SECKILL_SESSION_MAX) {
        return ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
    }

    ctx->token_hash = ngx_palloc(r->pool, NGX_HTTP_SECKILL_HASH_LEN);

    if (ctx->token_hash == NULL
        || EVP_Digest(token->data, token->len, ctx->token_hash, NULL,
                      EVP_sha256(), NULL)
           != 1)
    {
        return NGX_ERROR;
    }

    if (ngx_http_seckill_session_get(ctx->conf, ctx->token_hash, &ctx->user)
        == NGX_OK)
    {
        return ctx->user ? NGX_OK : ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
    }

    return ngx_http_seckill_auth_session_ask(r, ctx);
}


static ngx_int_t
ngx_http_seckill_auth_session_ask(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_seckill_call_t  *call;

    call = ngx_http_seckill_auth_session_call(ctx);
    if (call == NULL) {
        return NGX_ERROR;
    }

    ctx->asked = ngx_current_msec;

    rc = ngx_http_seckill_ask(r, ctx, call);

    return rc == NGX_BUSY ? ngx_http_seckill_say(ctx, SK_BUSY) : rc;
}


static ngx_seckill_call_t *
ngx_http_seckill_auth_session_call(ngx_http_seckill_ctx_t *ctx)
{
    char                 key[SK_KEY_MAX];
    u_char               name[sizeof("session:") - 1
                              + 2 * NGX_HTTP_SECKILL_HASH_LEN];
    size_t               lens[4];
    const char          *argv[4];
    ngx_seckill_call_t  *call;

    call = ngx_seckill_call_create(ngx_http_seckill_auth_session_done, ctx,
                                   ngx_http_seckill_deadline(ctx));
    if (call == NULL) {
        return NULL;
    }

    (void) ngx_hex_dump(ngx_cpymem(name, "session:", sizeof("session:") - 1),
                        ctx->token_hash, NGX_HTTP_SECKILL_HASH_LEN);

    /* one byte more than an id has: what is longer is none */

    argv[0] = "GETRANGE";
    lens[0] = sizeof("GETRANGE") - 1;
    argv[1] = key;
    lens[1] = sk_key_global(key, (char *) ctx->conf->prefix.data,
                            ctx->conf->prefix.len, (char *) name,
                            sizeof(name));
    argv[2] = "0";
    lens[2] = 1;
    argv[3] = "20";
    lens[3] = 2;

    if (ngx_seckill_call_command(call, 4, argv, lens) != NGX_OK) {
        ngx_seckill_call_free(call);
        return NULL;
    }

    return call;
}


static void
ngx_http_seckill_auth_session_done(ngx_seckill_call_t *call)
{
    redisReply              *reply;
    ngx_http_seckill_ctx_t  *ctx;

    ctx = call->data;
    ctx->answered = 1;
    ctx->user = 0;

    if (call->end != NGX_SECKILL_ANSWERED) {
        ctx->failed = 1;

    } else {
        reply = call->replies[0];

        if (reply->type == REDIS_REPLY_STRING
            && sk_id_parse(reply->str, reply->len, &ctx->user) != 0)
        {
            ctx->user = 0;
        }

        ngx_http_seckill_session_set(ctx->conf, ctx->token_hash, ctx->user,
                                     ctx->asked);
    }

    ngx_http_seckill_resume(ctx);
}
