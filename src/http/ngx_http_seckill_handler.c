
/*
 * The request machine: which steps a request takes, and what makes it wait and
 * go on.  The only writer of ctx->step and ctx->wait.
 *
 * A step that suspends registers one wait; whoever ends the wait fills in the
 * context and resumes, and the same step runs again with ctx->answered set.
 */


#include "ngx_http_seckill_admit.h"
#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_wait.h"


static ngx_int_t ngx_http_seckill_run(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static ngx_int_t ngx_http_seckill_finish(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
static void ngx_http_seckill_leave(void *data);


ngx_int_t
ngx_http_seckill_handler(ngx_http_request_t *r)
{
    ngx_int_t                     rc;
    ngx_http_seckill_ctx_t       *ctx;
    ngx_http_seckill_loc_conf_t  *slcf;

    slcf = ngx_http_get_module_loc_conf(r, ngx_http_seckill_module);

    if (!slcf->enable) {
        return NGX_DECLINED;
    }

    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "http seckill handler");

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_seckill_ctx_t));
    if (ctx == NULL) {
        return NGX_ERROR;
    }

    ctx->conf = slcf;
    ctx->request = r;
    ctx->state = SK_QUEUEING;
    ctx->verdict = SK_VERDICTS;
    ctx->refusal = SK_VERDICTS;

    ngx_http_set_ctx(r, ctx, ngx_http_seckill_module);

    if (ngx_http_seckill_headers(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_http_seckill_route(r, ctx);

    if (rc == NGX_OK) {
        rc = ngx_http_seckill_run(r, ctx);

    } else if (rc == NGX_DONE) {
        rc = ngx_http_seckill_finish(r, ctx);
    }

    if (rc == NGX_AGAIN) {
        r->main->count++;
        return NGX_DONE;
    }

    return rc;
}


/*
 * NGX_AGAIN: suspended.  NGX_DONE: the body is being read, which has counted
 * the request.  Else what is to be given to ngx_http_finalize_request().
 */

static ngx_int_t
ngx_http_seckill_run(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t  rc;

    while (*ctx->step) {
        rc = (*ctx->step)(r, ctx);

        if (rc == NGX_OK) {
            ctx->step++;
            continue;
        }

        if (rc == NGX_DONE) {
            break;
        }

        if (rc == NGX_DECLINED) {
            /* the body is not here yet */
            return NGX_DONE;
        }

        return rc;
    }

    return ngx_http_seckill_finish(r, ctx);
}


/* a client that does not read is the core's to wait for, and no wait of ours */

static ngx_int_t
ngx_http_seckill_finish(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_seckill_answer(r, ctx);

    return rc == NGX_AGAIN ? NGX_OK : rc;
}


void
ngx_http_seckill_resume(ngx_http_seckill_ctx_t *ctx)
{
    ngx_connection_t  *c;

    c = ctx->request->connection;       /* finalizing may free the request */

    ngx_http_set_log_request(c->log, ctx->request);

    ngx_http_seckill_go_on(ctx);

    ngx_http_run_posted_requests(c);
}


void
ngx_http_seckill_go_on(ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = ctx->request;

    ctx->wait = NGX_HTTP_SECKILL_WAIT_NONE;

    rc = ngx_http_seckill_run(r, ctx);

    if (rc != NGX_AGAIN) {
        ngx_http_finalize_request(r, rc);
    }
}


ngx_int_t
ngx_http_seckill_say(ngx_http_seckill_ctx_t *ctx, sk_verdict_e verdict)
{
    ctx->verdict = verdict;
    return NGX_DONE;
}


sk_verdict_e
ngx_http_seckill_end_verdict(ngx_seckill_end_e end)
{
    return end == NGX_SECKILL_UNKNOWN ? SK_UNKNOWN : SK_BUSY;
}


ngx_int_t
ngx_http_seckill_cleanup(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_cleanup_t  *cln;

    if (ctx->cleanup_set) {
        return NGX_OK;
    }

    cln = ngx_http_cleanup_add(r, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_seckill_leave;
    cln->data = ctx;
    ctx->cleanup_set = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_seckill_wait(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx,
    ngx_http_seckill_wait_e wait)
{
    if (ngx_http_seckill_cleanup(r, ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    /* notices a client that leaves */
    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    if (r->connection->read->pending_eof) {
        /* it left with its last byte: no other event will say so */
        ngx_post_event(r->connection->read, &ngx_posted_events);
    }

    ctx->wait = wait;
    ctx->answered = 0;
    ctx->failed = 0;

    return NGX_AGAIN;
}


/* the request ends: whatever it waits for must not find it any more */

static void
ngx_http_seckill_leave(void *data)
{
    ngx_http_seckill_ctx_t  *ctx = data;

    switch (ctx->wait) {

    case NGX_HTTP_SECKILL_WAIT_NONE:
    case NGX_HTTP_SECKILL_WAIT_HOLD:
        break;

    case NGX_HTTP_SECKILL_WAIT_LOAD:
    case NGX_HTTP_SECKILL_WAIT_JOIN:
        ngx_queue_remove(&ctx->queue);
        break;

    case NGX_HTTP_SECKILL_WAIT_LANE:
        ngx_http_seckill_lane_leave(ctx);
        break;

    case NGX_HTTP_SECKILL_WAIT_BATCH:
        ngx_http_seckill_batch_leave(ctx);
        break;

    case NGX_HTTP_SECKILL_WAIT_CALL:
        ngx_seckill_call_detach(ctx->call);
        break;
    }

    ctx->wait = NGX_HTTP_SECKILL_WAIT_NONE;

    ngx_http_seckill_body_leave(ctx);
    ngx_http_seckill_waiter_leave(ctx);
}


ngx_int_t
ngx_http_seckill_ask(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx,
    ngx_seckill_call_t *call)
{
    ngx_int_t             rc;
    ngx_seckill_redis_t  *redis;

    redis = ngx_http_seckill_client(ctx->conf);

    if (redis == NULL) {
        ngx_seckill_call_free(call);
        return NGX_ERROR;
    }

    rc = ngx_http_seckill_wait(r, ctx, NGX_HTTP_SECKILL_WAIT_CALL);

    if (rc != NGX_AGAIN) {
        ngx_seckill_call_free(call);
        return rc;
    }

    ctx->call = call;

    if (ngx_seckill_redis_send(redis, NGX_SECKILL_READS, 0, call) != NGX_OK) {
        ctx->wait = NGX_HTTP_SECKILL_WAIT_NONE;
        return NGX_BUSY;
    }

    return NGX_AGAIN;
}


ngx_msec_t
ngx_http_seckill_deadline(ngx_http_seckill_ctx_t *ctx)
{
    ngx_msec_t  deadline;

    if (!ctx->deadline_set) {
        ctx->deadline_set = 1;
        ctx->waits_until = ngx_current_msec + ctx->conf->timeout;
    }

    deadline = ngx_current_msec + ctx->conf->redis_timeout;

    if ((ngx_msec_int_t) (deadline - ctx->waits_until) > 0) {
        return ctx->waits_until;
    }

    return deadline;
}


ngx_seckill_redis_t *
ngx_http_seckill_client(ngx_http_seckill_loc_conf_t *conf)
{
    if (conf->client == NULL) {
        ngx_http_seckill_count_start(conf);
        conf->client = ngx_seckill_redis_get(conf->redis,
                                             &conf->redis_settings);
    }

    return conf->client;
}
