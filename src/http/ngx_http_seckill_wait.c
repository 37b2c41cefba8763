
/*
 * Waiting for a result.  A request that wants to be told joins the hub of its
 * activity, and only then the state is read: what is published after the
 * subscription was confirmed wakes it, what was published before is read.
 */


#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_wait.h"


#define NGX_HTTP_SECKILL_WAIT_MAX   60          /* seconds of a long poll */
#define NGX_HTTP_SECKILL_HEARTBEAT  15000       /* milliseconds */


static void ngx_http_seckill_wait_timer(ngx_event_t *ev);
static ngx_uint_t ngx_http_seckill_wait_accepts(ngx_http_request_t *r);
static ngx_uint_t ngx_http_seckill_wait_knows(ngx_http_request_t *r);


/* waiters of this worker */
static ngx_uint_t   ngx_http_seckill_waiters;


/* what the query and the headers want: sets ctx->waiter, or leaves it NULL */

ngx_int_t
ngx_http_seckill_wish_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t                   seconds;
    ngx_str_t                   arg;
    ngx_uint_t                  stream;
    ngx_http_seckill_waiter_t  *waiter;

    if (r->method != NGX_HTTP_GET) {
        return NGX_OK;
    }

    stream = ngx_http_seckill_wait_accepts(r);
    seconds = 0;

    if (stream && ngx_http_seckill_wait_knows(r)) {
        return NGX_HTTP_NO_CONTENT;
    }

    if (!stream) {
        if (ngx_http_arg(r, (u_char *) "wait", sizeof("wait") - 1, &arg)
            != NGX_OK)
        {
            return NGX_OK;
        }

        seconds = ngx_atoi(arg.data, arg.len);

        if (seconds == NGX_ERROR) {
            return ngx_http_seckill_say(ctx, SK_BAD_REQUEST);
        }

        if (seconds == 0) {
            return NGX_OK;
        }
    }

    waiter = ngx_pcalloc(r->pool, sizeof(ngx_http_seckill_waiter_t));
    if (waiter == NULL) {
        return NGX_ERROR;
    }

    waiter->ctx = ctx;
    waiter->silent = 1;
    waiter->stream = stream;
    waiter->until = ngx_current_msec
                    + ngx_min(seconds, NGX_HTTP_SECKILL_WAIT_MAX) * 1000;
    waiter->timer.handler = ngx_http_seckill_wait_timer;
    waiter->timer.data = waiter;
    waiter->timer.log = r->connection->log;

    ctx->waiter = waiter;

    return NGX_OK;
}


/* the client says that it understands events */

static ngx_uint_t
ngx_http_seckill_wait_accepts(ngx_http_request_t *r)
{
    ngx_str_t  *accept;

    accept = ngx_http_seckill_find_header(r, "Accept", sizeof("Accept") - 1);

    return accept
           && ngx_strlcasestrn(accept->data, accept->data + accept->len,
                               (u_char *) "text/event-stream",
                               sizeof("text/event-stream") - 2)
              != NULL;
}


/* an EventSource that has its result comes again all the same: 204 ends that */

static ngx_uint_t
ngx_http_seckill_wait_knows(ngx_http_request_t *r)
{
    ngx_str_t  *id;

    id = ngx_http_seckill_find_header(r, "Last-Event-ID",
                                      sizeof("Last-Event-ID") - 1);

    return id && id->len == sizeof("final") - 1
           && ngx_strncmp(id->data, "final", sizeof("final") - 1) == 0;
}


/* before the state is read */

ngx_int_t
ngx_http_seckill_join_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t                   rc;
    ngx_http_seckill_hub_t     *hub;
    ngx_http_seckill_waiter_t  *waiter;

    if (ctx->answered) {
        ctx->answered = 0;

        /* not subscribed: the state is read all the same, and nobody waits */
        return NGX_OK;
    }

    waiter = ctx->waiter;

    if (waiter == NULL || ngx_http_seckill_waiters >= ctx->conf->max_waiters) {
        return NGX_OK;
    }

    hub = ngx_http_seckill_hub(ctx);

    if (hub == NULL || ngx_http_seckill_hub_crowded(hub, ctx->user)) {
        /* a plain answer, with a time to poll */
        return NGX_OK;
    }

    /* from here a cleanup takes it out again */
    rc = ngx_http_seckill_wait(r, ctx, NGX_HTTP_SECKILL_WAIT_JOIN);
    if (rc != NGX_AGAIN) {
        ngx_http_seckill_hub_release(hub);
        return rc;
    }

    waiter->hub = hub;
    waiter->silent = 0;
    waiter->node.key = (ngx_rbtree_key_t) ctx->user;
    ngx_rbtree_insert(&hub->waiters, &waiter->node);
    hub->count++;
    ngx_http_seckill_waiters++;
    ngx_http_seckill_gauge_waiters(ctx->conf, ngx_http_seckill_waiters);

    if (hub->ready) {
        ctx->wait = NGX_HTTP_SECKILL_WAIT_NONE;
        return NGX_OK;
    }

    ngx_queue_insert_tail(&hub->joining, &ctx->queue);

    return NGX_AGAIN;
}


/* after the state was read: "queueing" is worth waiting */

ngx_int_t
ngx_http_seckill_hold_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t                   rc;
    ngx_msec_int_t              left;
    ngx_http_seckill_waiter_t  *waiter;

    waiter = ctx->waiter;
    ctx->answered = 0;

    if (waiter == NULL) {
        return NGX_OK;
    }

    if (waiter->pushed) {
        ctx->result = &waiter->result;
        ctx->state = waiter->result.success ? SK_SUCCESS : SK_FAILED;
        ctx->verdict = ctx->state;
        ngx_http_seckill_user_remember(ctx);
    }

    left = (ngx_msec_int_t) (waiter->until - ngx_current_msec);

    if (ctx->state != SK_QUEUEING || waiter->silent
        || (!waiter->stream && left <= 0))
    {
        ngx_http_seckill_waiter_leave(ctx);
        return NGX_OK;
    }

    if (waiter->stream) {
        rc = waiter->opened ? ngx_http_seckill_stream_heartbeat(r, waiter)
                            : ngx_http_seckill_stream_open(r, ctx);

        if (rc == NGX_ERROR) {
            return NGX_ERROR;
        }

        left = NGX_HTTP_SECKILL_HEARTBEAT;
    }

    rc = ngx_http_seckill_wait(r, ctx, NGX_HTTP_SECKILL_WAIT_HOLD);

    if (rc == NGX_AGAIN) {
        ngx_add_timer(&waiter->timer, (ngx_msec_t) left);

        if (waiter->stream) {
            r->write_event_handler = ngx_http_seckill_stream_writer;
        }
    }

    return rc;
}


static void
ngx_http_seckill_wait_timer(ngx_event_t *ev)
{
    ngx_http_seckill_waiter_t  *waiter;

    waiter = ev->data;
    ngx_http_seckill_waiter_wake(waiter);
}


/* only a request that holds is woken: others will look by themselves */

void
ngx_http_seckill_waiter_wake(ngx_http_seckill_waiter_t *waiter)
{
    if (waiter->ctx->wait != NGX_HTTP_SECKILL_WAIT_HOLD) {
        return;
    }

    if (waiter->timer.timer_set) {
        ngx_del_timer(&waiter->timer);
    }

    waiter->ctx->answered = 1;
    ngx_http_seckill_resume(waiter->ctx);
}


void
ngx_http_seckill_waiter_leave(ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_seckill_hub_t     *hub;
    ngx_http_seckill_waiter_t  *waiter;

    waiter = ctx->waiter;

    if (waiter == NULL) {
        return;
    }

    if (waiter->timer.timer_set) {
        ngx_del_timer(&waiter->timer);
    }

    hub = waiter->hub;

    if (hub == NULL) {
        return;
    }

    ngx_rbtree_delete(&hub->waiters, &waiter->node);
    waiter->hub = NULL;
    waiter->silent = 1;
    ngx_http_seckill_waiters--;
    ngx_http_seckill_gauge_waiters(ctx->conf, ngx_http_seckill_waiters);
    hub->count--;

    ngx_http_seckill_hub_release(hub);
}
