
/*
 * Waiting for a result.  A request that wants to be told joins the hub of its
 * activity, and only then the state is read: what is published after the
 * subscription was confirmed wakes it, what was published before is read.
 *
 * One hub per worker and activity, while it has waiters.  Everything that makes
 * messages unreliable (Redis lost, worker ends) ends every wait explicitly.
 */


#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_wait.h"


#define NGX_HTTP_SECKILL_HUBS       256         /* buckets, a power of 2 */

#define NGX_HTTP_SECKILL_WAIT_MAX   60          /* seconds of a long poll */
#define NGX_HTTP_SECKILL_HEARTBEAT  15000       /* milliseconds */


struct ngx_http_seckill_hub_s {
    ngx_queue_t                   queue;        /* in its bucket */
    ngx_queue_t                   joining;      /* of ctx->queue, not confirmed */
    ngx_http_seckill_loc_conf_t  *conf;
    ngx_seckill_redis_t          *redis;        /* where it is subscribed */
    uint64_t                      activity;
    ngx_str_t                     channel;
    u_char                        name[SK_KEY_MAX];
    ngx_rbtree_t                  waiters;
    ngx_rbtree_node_t             sentinel;
    ngx_uint_t                    count;
    unsigned                      ready:1;      /* messages come */
    unsigned                      asked:1;      /* for the subscription */
};


static ngx_http_seckill_hub_t *ngx_http_seckill_hub(
    ngx_http_seckill_ctx_t *ctx);
static ngx_queue_t *ngx_http_seckill_hub_bucket(uint64_t activity);
static ngx_int_t ngx_http_seckill_hub_subscribe(ngx_http_seckill_hub_t *hub);
static void ngx_http_seckill_hub_subscribed(ngx_seckill_call_t *call);
static void ngx_http_seckill_hub_release(ngx_http_seckill_hub_t *hub);
static void ngx_http_seckill_wait_message(ngx_seckill_redis_t *redis,
    ngx_str_t *channel, ngx_str_t *text);
static void ngx_http_seckill_wait_silence(void);
static ngx_http_seckill_hub_t *ngx_http_seckill_wait_next(void);
static ngx_http_seckill_hub_t *ngx_http_seckill_wait_hub(
    ngx_seckill_redis_t *redis, ngx_str_t *channel);
static ngx_http_seckill_waiter_t *ngx_http_seckill_wait_user(
    ngx_http_seckill_hub_t *hub, uint64_t user);
static void ngx_http_seckill_wait_wake(ngx_http_seckill_waiter_t *waiter);
static void ngx_http_seckill_wait_timer(ngx_event_t *ev);
static ngx_uint_t ngx_http_seckill_wait_accepts(ngx_http_request_t *r);
static ngx_uint_t ngx_http_seckill_wait_knows(ngx_http_request_t *r);


static ngx_queue_t  ngx_http_seckill_hubs[NGX_HTTP_SECKILL_HUBS];

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

    if (hub == NULL) {
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
    ngx_http_seckill_wait_wake(waiter);
}


/* only a request that holds is woken: others will look by themselves */

static void
ngx_http_seckill_wait_wake(ngx_http_seckill_waiter_t *waiter)
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


static ngx_queue_t *
ngx_http_seckill_hub_bucket(uint64_t activity)
{
    ngx_uint_t  i;

    if (ngx_http_seckill_hubs[0].next == NULL) {
        for (i = 0; i < NGX_HTTP_SECKILL_HUBS; i++) {
            ngx_queue_init(&ngx_http_seckill_hubs[i]);
        }

        ngx_seckill_redis_listen(ngx_http_seckill_wait_message,
                                 ngx_http_seckill_wait_silence);
    }

    return &ngx_http_seckill_hubs[activity & (NGX_HTTP_SECKILL_HUBS - 1)];
}


/* NULL: messages can't be had now */

static ngx_http_seckill_hub_t *
ngx_http_seckill_hub(ngx_http_seckill_ctx_t *ctx)
{
    ngx_queue_t             *q, *bucket;
    ngx_http_seckill_hub_t  *hub;

    bucket = ngx_http_seckill_hub_bucket(ctx->activity);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        hub = ngx_queue_data(q, ngx_http_seckill_hub_t, queue);

        if (hub->activity == ctx->activity
            && hub->conf->source == ctx->conf->source)
        {
            return hub;
        }
    }

    hub = ngx_calloc(sizeof(ngx_http_seckill_hub_t), ngx_cycle->log);
    if (hub == NULL) {
        return NULL;
    }

    hub->conf = ctx->conf;
    hub->activity = ctx->activity;
    hub->channel.data = hub->name;
    hub->channel.len = sk_key((char *) hub->name,
                              (char *) ctx->conf->prefix.data,
                              ctx->conf->prefix.len, SK_KEY_RESULTS,
                              ctx->activity, 0);

    ngx_queue_init(&hub->joining);
    ngx_rbtree_init(&hub->waiters, &hub->sentinel, ngx_rbtree_insert_value);
    ngx_queue_insert_tail(bucket, &hub->queue);

    if (ngx_http_seckill_hub_subscribe(hub) != NGX_OK) {
        ngx_queue_remove(&hub->queue);
        ngx_free(hub);
        return NULL;
    }

    return hub;
}


static ngx_int_t
ngx_http_seckill_hub_subscribe(ngx_http_seckill_hub_t *hub)
{
    ngx_seckill_call_t   *call;
    ngx_seckill_redis_t  *redis;

    redis = ngx_http_seckill_client(hub->conf);
    if (redis == NULL) {
        return NGX_ERROR;
    }

    call = ngx_seckill_call_create(ngx_http_seckill_hub_subscribed, hub,
                                   ngx_current_msec
                                   + hub->conf->redis_timeout);
    if (call == NULL) {
        return NGX_ERROR;
    }

    hub->redis = redis;
    hub->asked = 1;

    return ngx_seckill_redis_subscribe(redis, &hub->channel, call);
}


static void
ngx_http_seckill_hub_subscribed(ngx_seckill_call_t *call)
{
    ngx_queue_t             *q;
    ngx_http_seckill_ctx_t  *ctx;
    ngx_http_seckill_hub_t  *hub;

    hub = call->data;
    hub->asked = 0;
    hub->ready = (call->end == NGX_SECKILL_ANSWERED);

    /* held while it is looked at: the last who leaves would free it */
    hub->count++;

    while (!ngx_queue_empty(&hub->joining)) {
        q = ngx_queue_head(&hub->joining);
        ngx_queue_remove(q);

        ctx = ngx_queue_data(q, ngx_http_seckill_ctx_t, queue);
        ctx->answered = 1;

        if (!hub->ready) {
            ctx->wait = NGX_HTTP_SECKILL_WAIT_NONE;
            ngx_http_seckill_waiter_leave(ctx);
        }

        ngx_http_seckill_resume(ctx);
    }

    hub->count--;
    ngx_http_seckill_hub_release(hub);
}


static void
ngx_http_seckill_hub_release(ngx_http_seckill_hub_t *hub)
{
    if (hub->count || hub->asked) {
        return;
    }

    if (hub->ready) {
        ngx_seckill_redis_unsubscribe(hub->redis, &hub->channel);
    }

    ngx_queue_remove(&hub->queue);
    ngx_free(hub);
}


/* "<user> <result>" on "<prefix>:results:{activity}" */

static void
ngx_http_seckill_wait_message(ngx_seckill_redis_t *redis, ngx_str_t *channel,
    ngx_str_t *text)
{
    u_char                     *p;
    uint64_t                    user;
    sk_result_t                 result;
    ngx_http_seckill_hub_t     *hub;
    ngx_http_seckill_waiter_t  *waiter;

    p = ngx_strlchr(text->data, text->data + text->len, ' ');

    if (p == NULL
        || sk_id_parse((char *) text->data, p - text->data, &user) != 0
        || sk_result_parse(&result, (char *) p + 1,
                           text->data + text->len - (p + 1))
           != 0)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "seckill message on \"%V\" is damaged", channel);
        return;
    }

    hub = ngx_http_seckill_wait_hub(redis, channel);
    if (hub == NULL) {
        return;
    }

    hub->count++;

    while ((waiter = ngx_http_seckill_wait_user(hub, user)) != NULL) {
        waiter->result = result;
        waiter->pushed = 1;

        ngx_http_seckill_wait_wake(waiter);
    }

    hub->count--;
    ngx_http_seckill_hub_release(hub);
}


/* two Redis may have activities, and so channels, of the same name */

static ngx_http_seckill_hub_t *
ngx_http_seckill_wait_hub(ngx_seckill_redis_t *redis, ngx_str_t *channel)
{
    ngx_uint_t               i;
    ngx_queue_t             *q, *bucket;
    ngx_http_seckill_hub_t  *hub;

    for (i = 0; i < NGX_HTTP_SECKILL_HUBS; i++) {
        bucket = &ngx_http_seckill_hubs[i];

        for (q = ngx_queue_head(bucket);
             q != ngx_queue_sentinel(bucket);
             q = ngx_queue_next(q))
        {
            hub = ngx_queue_data(q, ngx_http_seckill_hub_t, queue);

            if (hub->redis == redis && hub->channel.len == channel->len
                && ngx_memcmp(hub->channel.data, channel->data, channel->len)
                   == 0)
            {
                return hub;
            }
        }
    }

    return NULL;
}


/* the next request of this user that was not told yet */

static ngx_http_seckill_waiter_t *
ngx_http_seckill_wait_user(ngx_http_seckill_hub_t *hub, uint64_t user)
{
    ngx_rbtree_node_t          *node, *first;
    ngx_http_seckill_waiter_t  *waiter;

    first = NULL;
    node = hub->waiters.root;

    while (node != hub->waiters.sentinel) {

        if (node->key < (ngx_rbtree_key_t) user) {
            node = node->right;
            continue;
        }

        if (node->key == (ngx_rbtree_key_t) user) {
            first = node;
        }

        node = node->left;
    }

    /* equal keys follow each other */

    for (node = first;
         node && node->key == (ngx_rbtree_key_t) user;
         node = ngx_rbtree_next(&hub->waiters, node))
    {
        waiter = (ngx_http_seckill_waiter_t *) node;

        if (!waiter->pushed) {
            return waiter;
        }
    }

    return NULL;
}


static void
ngx_http_seckill_wait_silence(void)
{
    ngx_http_seckill_hub_t     *hub;
    ngx_http_seckill_ctx_t     *ctx;
    ngx_http_seckill_waiter_t  *waiter;

    while ((hub = ngx_http_seckill_wait_next()) != NULL) {

        hub->ready = 0;
        waiter = (ngx_http_seckill_waiter_t *) hub->waiters.root;
        ctx = waiter->ctx;

        /* frees the hub with its last waiter */
        ngx_http_seckill_waiter_leave(ctx);

        ngx_http_seckill_wait_wake(waiter);
    }
}


/* a hub that has waiters; those of one that is being asked for are told there */

static ngx_http_seckill_hub_t *
ngx_http_seckill_wait_next(void)
{
    ngx_uint_t               i;
    ngx_queue_t             *q;
    ngx_http_seckill_hub_t  *hub;

    for (i = 0; i < NGX_HTTP_SECKILL_HUBS; i++) {
        for (q = ngx_queue_head(&ngx_http_seckill_hubs[i]);
             q != ngx_queue_sentinel(&ngx_http_seckill_hubs[i]);
             q = ngx_queue_next(q))
        {
            hub = ngx_queue_data(q, ngx_http_seckill_hub_t, queue);

            if (!hub->asked && hub->waiters.root != hub->waiters.sentinel) {
                return hub;
            }
        }
    }

    return NULL;
}
