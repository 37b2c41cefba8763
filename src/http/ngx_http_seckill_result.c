
/*
 * What became of a purchase: asked by the result route, and for the state that
 * goes with "already taken part".
 */


#include "ngx_http_seckill_admit.h"
#include "ngx_http_seckill_facts.h"


/* most buyers of an activity whose result waits to be looked up */
#define NGX_HTTP_SECKILL_LOOKUPS  "10000"


/* longer than any result of ours: the last byte that is asked for */
#define NGX_HTTP_SECKILL_RESULT_LAST  511
#define NGX_HTTP_SECKILL_RESULT_END   "511"


/* replies of the call, in this order */
enum {
    RESULT_TEXT = 0,                    /* the beginning of result */
    RESULT_BUYER                        /* SISMEMBER order_users */
};


static ngx_int_t ngx_http_seckill_result_ask(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static void ngx_http_seckill_result_lookup(ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_result_ask_whole(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static void ngx_http_seckill_result_told(ngx_seckill_call_t *call);
static sk_verdict_e ngx_http_seckill_result_without(
    ngx_http_seckill_ctx_t *ctx, ngx_http_seckill_facts_t *facts);
static ngx_uint_t ngx_http_seckill_result_behind(ngx_http_seckill_ctx_t *ctx,
    ngx_http_seckill_facts_t *facts);
static ngx_int_t ngx_http_seckill_result_failed(ngx_http_seckill_ctx_t *ctx);
static ngx_seckill_call_t *ngx_http_seckill_result_call(
    ngx_http_seckill_ctx_t *ctx);
static void ngx_http_seckill_result_done(ngx_seckill_call_t *call);
static ngx_int_t ngx_http_seckill_result_read(ngx_http_seckill_ctx_t *ctx,
    ngx_seckill_call_t *call);


ngx_int_t
ngx_http_seckill_result_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    if (!ctx->answered) {
        return ngx_http_seckill_result_ask(r, ctx);
    }

    ctx->answered = 0;

    if (ctx->failed) {
        return ngx_http_seckill_result_failed(ctx);
    }

    if (ctx->buy) {
        /* "repeat", with ctx->state */

        if (ctx->state != SK_SUCCESS && ctx->state != SK_FAILED) {
            ctx->state = SK_QUEUEING;
        }

        return NGX_DONE;
    }

    if (ctx->stranger) {
        ctx->stranger = 0;
        return ngx_http_seckill_result_ask_whole(r, ctx);
    }

    ctx->verdict = ctx->state;

    /* a request that wants to be told goes on to hold */
    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_result_ask(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_seckill_call_t  *call;

    call = ngx_http_seckill_result_call(ctx);
    if (call == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_seckill_ask(r, ctx, call);

    return rc == NGX_BUSY ? ngx_http_seckill_result_failed(ctx) : rc;
}


/*
 * Redis knows neither a result nor the buyer.  "No purchase found" is its word
 * only while nothing of the sale is missing: both are asked at one instant.
 */

static ngx_int_t
ngx_http_seckill_result_ask_whole(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_seckill_call_t  *call;

    /* neither made-up ids nor damaged facts cost a call more */

    if (ctx->told && !ctx->facts.known && !ctx->facts.vanished) {
        ctx->verdict = SK_UNKNOWN_ACTIVITY;
        return NGX_OK;
    }

    if (ctx->told && ctx->facts.damaged) {
        return ngx_http_seckill_result_failed(ctx);
    }

    call = ngx_http_seckill_bought_question(ctx->conf, ctx->activity, ctx->user,
                                            ngx_http_seckill_result_told, ctx,
                                            ngx_http_seckill_deadline(ctx));
    if (call == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_seckill_ask(r, ctx, call);

    return rc == NGX_BUSY ? ngx_http_seckill_result_failed(ctx) : rc;
}


static void
ngx_http_seckill_result_told(ngx_seckill_call_t *call)
{
    ngx_http_seckill_ctx_t    *ctx;
    ngx_http_seckill_facts_t   facts;

    ctx = call->data;
    ctx->answered = 1;

    if (ngx_http_seckill_bought_read(call, &facts) != NGX_OK) {
        ctx->failed = 1;

    } else {
        ctx->state = ngx_http_seckill_result_without(ctx, &facts);
    }

    ngx_http_seckill_resume(ctx);
}


static sk_verdict_e
ngx_http_seckill_result_without(ngx_http_seckill_ctx_t *ctx,
    ngx_http_seckill_facts_t *facts)
{
    if (!facts->known) {
        /* a sale is settled before it may expire: another one was lost */
        return (ctx->facts.vanished
                || (ctx->facts.known && !ctx->facts.settled))
               ? SK_BUSY : SK_UNKNOWN_ACTIVITY;
    }

    if (facts->damaged || facts->lost || facts->paused) {
        return SK_BUSY;
    }

    if (!facts->whole) {
        return facts->settled ? SK_ENDED : SK_BUSY;
    }

    if (facts->member) {
        return SK_QUEUEING;
    }

    return ngx_http_seckill_result_behind(ctx, facts) ? SK_BUSY : SK_NO_RECORD;
}


/* Redis looks whole and knows less than it told this node: mark.c */

static ngx_uint_t
ngx_http_seckill_result_behind(ngx_http_seckill_ctx_t *ctx,
    ngx_http_seckill_facts_t *facts)
{
    ngx_http_seckill_mark_t  told, mark;

    told.epoch = facts->epoch;
    told.seq = facts->seq;

    ngx_http_seckill_mark_get(ctx->conf, ctx->activity, &mark);

    return ngx_http_seckill_mark_behind(&told, &mark);
}


/*
 * A buyer who posted again is not told "nothing was taken"; whose order is
 * remembered hears of it.
 */

static ngx_int_t
ngx_http_seckill_result_failed(ngx_http_seckill_ctx_t *ctx)
{
    if (ctx->remembered) {
        return ngx_http_seckill_say(ctx, ctx->buy ? SK_REPEAT : SK_SUCCESS);
    }

    return ngx_http_seckill_say(ctx, ctx->buy ? SK_UNKNOWN : SK_BUSY);
}


static ngx_seckill_call_t *
ngx_http_seckill_result_call(ngx_http_seckill_ctx_t *ctx)
{
    char                 key[SK_KEY_MAX], user[SK_ID_MAX];
    size_t               lens[4];
    ngx_int_t            rc;
    const char          *argv[4], *prefix;
    ngx_seckill_call_t  *call;

    call = ngx_seckill_call_create(ngx_http_seckill_result_done, ctx,
                                   ngx_http_seckill_deadline(ctx));
    if (call == NULL) {
        return NULL;
    }

    prefix = (char *) ctx->conf->prefix.data;

    argv[0] = "GETRANGE";
    lens[0] = sizeof("GETRANGE") - 1;
    argv[1] = key;
    lens[1] = sk_key(key, prefix, ctx->conf->prefix.len, SK_KEY_RESULT,
                     ctx->activity, ctx->user);
    argv[2] = "0";
    lens[2] = 1;
    argv[3] = NGX_HTTP_SECKILL_RESULT_END;
    lens[3] = sizeof(NGX_HTTP_SECKILL_RESULT_END) - 1;
    rc = ngx_seckill_call_command(call, 4, argv, lens);

    if (rc == NGX_OK) {
        argv[0] = "SISMEMBER";
        lens[0] = sizeof("SISMEMBER") - 1;
        lens[1] = sk_key(key, prefix, ctx->conf->prefix.len, SK_KEY_BUYERS,
                         ctx->activity, 0);
        argv[2] = user;
        lens[2] = sk_id_format(user, ctx->user);
        rc = ngx_seckill_call_command(call, 3, argv, lens);
    }

    if (rc != NGX_OK) {
        ngx_seckill_call_free(call);
        return NULL;
    }

    return call;
}


static void
ngx_http_seckill_result_done(ngx_seckill_call_t *call)
{
    ngx_http_seckill_ctx_t  *ctx;

    ctx = call->data;
    ctx->answered = 1;

    if (call->end != NGX_SECKILL_ANSWERED
        || ngx_http_seckill_result_read(ctx, call) != NGX_OK)
    {
        ctx->failed = 1;
    }

    ngx_http_seckill_resume(ctx);
}


static ngx_int_t
ngx_http_seckill_result_read(ngx_http_seckill_ctx_t *ctx,
    ngx_seckill_call_t *call)
{
    redisReply   *text, *buyer;
    sk_result_t  *result;

    text = call->replies[RESULT_TEXT];
    buyer = call->replies[RESULT_BUYER];

    if (text->type != REDIS_REPLY_STRING
        || buyer->type != REDIS_REPLY_INTEGER)
    {
        return NGX_ERROR;
    }

    if (text->len) {
        result = ngx_palloc(ctx->request->pool, sizeof(sk_result_t));

        if (result == NULL
            || text->len > NGX_HTTP_SECKILL_RESULT_LAST
            || sk_result_parse(result, text->str, text->len) != 0)
        {
            ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
                          "seckill result of user %uL in activity %uL is "
                          "damaged", ctx->user, ctx->activity);
            return NGX_ERROR;
        }

        ctx->result = result;
        ctx->state = result->success ? SK_SUCCESS : SK_FAILED;
        ngx_http_seckill_user_remember(ctx);
        return NGX_OK;
    }

    if (ctx->remembered) {
        ctx->state = SK_SUCCESS;
        ngx_http_seckill_user_remember(ctx);

    } else if (buyer->integer) {
        ctx->state = SK_QUEUEING;

        if (ngx_http_seckill_user_overdue(ctx)) {
            ngx_http_seckill_result_lookup(ctx);
        }

    } else {
        ctx->stranger = 1;
    }

    return NGX_OK;
}


/*
 * The result should be there by now: its key may have been lost, and the daemon
 * knows the answer.  Nobody waits for this call; a later poll finds the result.
 */

static void
ngx_http_seckill_result_lookup(ngx_http_seckill_ctx_t *ctx)
{
    char                  keys[3][SK_KEY_MAX], user[SK_ID_MAX];
    size_t                lens[8];
    ngx_uint_t            i;
    const char           *argv[8];
    const sk_script_t    *script;
    ngx_seckill_call_t   *call;
    ngx_seckill_redis_t  *redis;

    static const sk_key_e  names[] = {
        SK_KEY_LOOKUP, SK_KEY_BUYERS, SK_KEY_RESULT
    };

    redis = ngx_http_seckill_client(ctx->conf);
    if (redis == NULL) {
        return;
    }

    call = ngx_seckill_call_create(NULL, NULL, ngx_current_msec
                                               + ctx->conf->redis_timeout);
    if (call == NULL) {
        return;
    }

    script = &sk_scripts[SK_SCRIPT_LOOKUP];
    call->script = script;

    argv[0] = "EVALSHA";
    lens[0] = sizeof("EVALSHA") - 1;
    argv[1] = script->sha1;
    lens[1] = 40;
    argv[2] = "3";
    lens[2] = 1;

    for (i = 0; i < 3; i++) {
        argv[3 + i] = keys[i];
        lens[3 + i] = sk_key(keys[i], (char *) ctx->conf->prefix.data,
                             ctx->conf->prefix.len, names[i], ctx->activity,
                             ctx->user);
    }

    argv[6] = user;
    lens[6] = sk_id_format(user, ctx->user);
    argv[7] = NGX_HTTP_SECKILL_LOOKUPS;
    lens[7] = sizeof(NGX_HTTP_SECKILL_LOOKUPS) - 1;

    if (ngx_seckill_call_command(call, 8, argv, lens) != NGX_OK) {
        ngx_seckill_call_free(call);
        return;
    }

    (void) ngx_seckill_redis_send(redis, NGX_SECKILL_READS, 0, call);
}
