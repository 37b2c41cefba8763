
/*
 * Hubs: one per worker and activity, while it has waiters.  A hub is subscribed
 * to its activity's channel and wakes whom a message is for.  Everything that
 * makes messages unreliable (Redis lost, worker ends) ends every wait.
 */


#include "ngx_http_seckill_wait.h"


#define NGX_HTTP_SECKILL_HUBS  256              /* buckets, a power of 2 */


static ngx_queue_t *ngx_http_seckill_hub_bucket(uint64_t activity);
static ngx_int_t ngx_http_seckill_hub_subscribe(ngx_http_seckill_hub_t *hub);
static void ngx_http_seckill_hub_subscribed(ngx_seckill_call_t *call);
static void ngx_http_seckill_hub_message(ngx_seckill_redis_t *redis,
    ngx_str_t *channel, ngx_str_t *text);
static ngx_http_seckill_hub_t *ngx_http_seckill_hub_find(
    ngx_seckill_redis_t *redis, ngx_str_t *channel);
static ngx_rbtree_node_t *ngx_http_seckill_hub_first(
    ngx_http_seckill_hub_t *hub, uint64_t user);
static ngx_http_seckill_waiter_t *ngx_http_seckill_hub_waiter(
    ngx_http_seckill_hub_t *hub, uint64_t user);
static void ngx_http_seckill_hub_silence(void);
static ngx_http_seckill_hub_t *ngx_http_seckill_hub_next(void);


static ngx_queue_t  ngx_http_seckill_hubs[NGX_HTTP_SECKILL_HUBS];


static ngx_queue_t *
ngx_http_seckill_hub_bucket(uint64_t activity)
{
    ngx_uint_t  i;

    if (ngx_http_seckill_hubs[0].next == NULL) {
        for (i = 0; i < NGX_HTTP_SECKILL_HUBS; i++) {
            ngx_queue_init(&ngx_http_seckill_hubs[i]);
        }

        ngx_seckill_redis_listen(ngx_http_seckill_hub_message,
                                 ngx_http_seckill_hub_silence);
    }

    return &ngx_http_seckill_hubs[activity & (NGX_HTTP_SECKILL_HUBS - 1)];
}


ngx_http_seckill_hub_t *
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


void
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
ngx_http_seckill_hub_message(ngx_seckill_redis_t *redis, ngx_str_t *channel,
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

    hub = ngx_http_seckill_hub_find(redis, channel);
    if (hub == NULL) {
        return;
    }

    /* also for whoever does not wait just now */
    ngx_http_seckill_user_published(hub->conf, hub->activity, user, &result);

    hub->count++;

    while ((waiter = ngx_http_seckill_hub_waiter(hub, user)) != NULL) {
        waiter->result = result;
        waiter->pushed = 1;

        ngx_http_seckill_waiter_wake(waiter);
    }

    hub->count--;
    ngx_http_seckill_hub_release(hub);
}


/* two Redis may have activities, and so channels, of the same name */

static ngx_http_seckill_hub_t *
ngx_http_seckill_hub_find(ngx_seckill_redis_t *redis, ngx_str_t *channel)
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


/* a user's requests: equal keys follow each other */

static ngx_rbtree_node_t *
ngx_http_seckill_hub_first(ngx_http_seckill_hub_t *hub, uint64_t user)
{
    ngx_rbtree_node_t  *node, *first;

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

    return first;
}


ngx_uint_t
ngx_http_seckill_hub_crowded(ngx_http_seckill_hub_t *hub, uint64_t user)
{
    ngx_uint_t          n;
    ngx_rbtree_node_t  *node;

    n = 0;

    for (node = ngx_http_seckill_hub_first(hub, user);
         node && node->key == (ngx_rbtree_key_t) user;
         node = ngx_rbtree_next(&hub->waiters, node))
    {
        if (++n == NGX_HTTP_SECKILL_USER_WAITERS) {
            return 1;
        }
    }

    return 0;
}


/* the next request of this user that was not told yet */

static ngx_http_seckill_waiter_t *
ngx_http_seckill_hub_waiter(ngx_http_seckill_hub_t *hub, uint64_t user)
{
    ngx_rbtree_node_t          *node;
    ngx_http_seckill_waiter_t  *waiter;

    for (node = ngx_http_seckill_hub_first(hub, user);
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
ngx_http_seckill_hub_silence(void)
{
    ngx_http_seckill_hub_t     *hub;
    ngx_http_seckill_ctx_t     *ctx;
    ngx_http_seckill_waiter_t  *waiter;

    while ((hub = ngx_http_seckill_hub_next()) != NULL) {

        hub->ready = 0;
        waiter = (ngx_http_seckill_waiter_t *) hub->waiters.root;
        ctx = waiter->ctx;

        /* frees the hub with its last waiter */
        ngx_http_seckill_waiter_leave(ctx);

        ngx_http_seckill_waiter_wake(waiter);
    }
}


/* a hub that has waiters; those of one that is being asked for are told there */

static ngx_http_seckill_hub_t *
ngx_http_seckill_hub_next(void)
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
