
/*
 * The clients of a worker: one per address and settings, and which of its
 * connections a call takes.
 */


#include "ngx_seckill_redis_private.h"


static ngx_int_t ngx_seckill_redis_copy(ngx_str_t *dst, ngx_str_t *src);
static ngx_int_t ngx_seckill_redis_init_addr(ngx_seckill_redis_addr_t *dst,
    ngx_seckill_redis_addr_t *src);
static ngx_seckill_redis_t *ngx_seckill_redis_find(
    ngx_seckill_redis_addr_t *addr, ngx_seckill_redis_settings_t *settings);
static ngx_uint_t ngx_seckill_redis_same(ngx_str_t *a, ngx_str_t *b);
static ngx_uint_t ngx_seckill_redis_same_tls(ngx_seckill_redis_tls_t *a,
    ngx_seckill_redis_tls_t *b);
static ngx_uint_t ngx_seckill_redis_session(ngx_seckill_redis_t *redis,
    uint64_t session);
static void ngx_seckill_redis_close(ngx_seckill_redis_t *redis);


/* outlives configurations: with "master_process off" a reload keeps the worker */
static ngx_queue_t  ngx_seckill_redis_clients;


ngx_seckill_redis_t *
ngx_seckill_redis_get(ngx_seckill_redis_addr_t *addr,
    ngx_seckill_redis_settings_t *settings)
{
    ngx_uint_t            i;
    ngx_seckill_redis_t  *redis;

    if (ngx_seckill_redis_clients.next == NULL) {
        ngx_queue_init(&ngx_seckill_redis_clients);
    }

    redis = ngx_seckill_redis_find(addr, settings);
    if (redis) {
        return redis;
    }

    redis = ngx_calloc(sizeof(ngx_seckill_redis_t), ngx_cycle->log);
    if (redis == NULL) {
        return NULL;
    }

    if (ngx_seckill_redis_init_addr(&redis->addr, addr) != NGX_OK) {
        ngx_free(redis);
        return NULL;
    }

    redis->settings = *settings;
    redis->nconns = settings->connections;

    for (i = 0; i < redis->nconns; i++) {
        ngx_seckill_redis_conn_init(&redis->conns[i], redis);
    }

    ngx_queue_insert_tail(&ngx_seckill_redis_clients, &redis->queue);

    return redis;
}


static ngx_seckill_redis_t *
ngx_seckill_redis_find(ngx_seckill_redis_addr_t *addr,
    ngx_seckill_redis_settings_t *settings)
{
    ngx_queue_t          *q;
    ngx_seckill_redis_t  *redis;

    for (q = ngx_queue_head(&ngx_seckill_redis_clients);
         q != ngx_queue_sentinel(&ngx_seckill_redis_clients);
         q = ngx_queue_next(q))
    {
        redis = ngx_queue_data(q, ngx_seckill_redis_t, queue);

        if (!redis->closing
            && ngx_seckill_redis_same(&redis->addr.name, &addr->name)
            && ngx_seckill_redis_same(&redis->addr.user, &addr->user)
            && ngx_seckill_redis_same(&redis->addr.password, &addr->password)
            && redis->addr.db == addr->db
            && ngx_seckill_redis_same_tls(redis->addr.tls, addr->tls)
            && redis->settings.connections == settings->connections
            && redis->settings.max_pending == settings->max_pending
            && redis->settings.connect_timeout == settings->connect_timeout
            && redis->settings.resolver == settings->resolver
            && redis->settings.owner == settings->owner)
        {
            return redis;
        }
    }

    return NULL;
}


static ngx_uint_t
ngx_seckill_redis_same(ngx_str_t *a, ngx_str_t *b)
{
    return a->len == b->len
           && (a->len == 0 || ngx_memcmp(a->data, b->data, a->len) == 0);
}


static ngx_uint_t
ngx_seckill_redis_same_tls(ngx_seckill_redis_tls_t *a,
    ngx_seckill_redis_tls_t *b)
{
    if (a == b) {
        return 1;
    }

    return a && b && a->verify == b->verify
           && ngx_seckill_redis_same(&a->ca, &b->ca)
           && ngx_seckill_redis_same(&a->cert, &b->cert)
           && ngx_seckill_redis_same(&a->key, &b->key)
           && ngx_seckill_redis_same(&a->name, &b->name);
}


/* a failure here is an allocation that failed while a worker starts: leaked */

static ngx_int_t
ngx_seckill_redis_init_addr(ngx_seckill_redis_addr_t *dst,
    ngx_seckill_redis_addr_t *src)
{
    if (src->sockaddr) {
        dst->sockaddr = ngx_alloc(src->socklen, ngx_cycle->log);
        if (dst->sockaddr == NULL) {
            return NGX_ERROR;
        }

        ngx_memcpy(dst->sockaddr, src->sockaddr, src->socklen);
        dst->socklen = src->socklen;
    }

    dst->port = src->port;
    dst->db = src->db;
    dst->tls = src->tls;

    if (ngx_seckill_redis_copy(&dst->name, &src->name) != NGX_OK
        || ngx_seckill_redis_copy(&dst->host, &src->host) != NGX_OK
        || ngx_seckill_redis_copy(&dst->user, &src->user) != NGX_OK
        || ngx_seckill_redis_copy(&dst->password, &src->password) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_seckill_redis_copy(ngx_str_t *dst, ngx_str_t *src)
{
    dst->data = ngx_alloc(src->len + 1, ngx_cycle->log);
    if (dst->data == NULL) {
        return NGX_ERROR;
    }

    if (src->len) {
        ngx_memcpy(dst->data, src->data, src->len);
    }

    dst->data[src->len] = '\0';
    dst->len = src->len;

    return NGX_OK;
}


/* the connection of that session; their number: it has gone */

static ngx_uint_t
ngx_seckill_redis_session(ngx_seckill_redis_t *redis, uint64_t session)
{
    ngx_uint_t  i;

    for (i = 0; i < redis->nconns; i++) {
        if (redis->conns[i].session == session
            && redis->conns[i].state == NGX_SECKILL_CONN_READY
            && !redis->conns[i].leaving)
        {
            break;
        }
    }

    return i;
}


ngx_int_t
ngx_seckill_redis_send(ngx_seckill_redis_t *redis, ngx_seckill_lane_e lane,
    ngx_uint_t hash, ngx_seckill_call_t *call)
{
    ngx_uint_t  half, i;

    if (redis->closing || redis->pending >= redis->settings.max_pending) {
        ngx_seckill_call_free(call);
        return NGX_BUSY;
    }

    half = redis->nconns / 2;

    if (call->session) {
        i = ngx_seckill_redis_session(redis, call->session);

        if (i == redis->nconns) {
            ngx_seckill_call_free(call);
            return NGX_BUSY;
        }

    } else if (half == 0) {
        i = 0;

    } else if (lane == NGX_SECKILL_PURCHASES) {
        i = hash % (redis->nconns - half);

    } else {
        i = redis->nconns - half + redis->next++ % half;
    }

    if (ngx_seckill_redis_conn_send(&redis->conns[i], call) != NGX_OK) {
        ngx_seckill_call_free(call);
        return NGX_BUSY;
    }

    redis->pending++;

    return NGX_OK;
}


ngx_uint_t
ngx_seckill_redis_up(void)
{
    ngx_uint_t            i;
    ngx_queue_t          *q;
    ngx_seckill_redis_t  *redis;

    if (ngx_seckill_redis_clients.next == NULL) {
        return 0;
    }

    for (q = ngx_queue_head(&ngx_seckill_redis_clients);
         q != ngx_queue_sentinel(&ngx_seckill_redis_clients);
         q = ngx_queue_next(q))
    {
        redis = ngx_queue_data(q, ngx_seckill_redis_t, queue);

        for (i = 0; i < redis->nconns && !redis->closing; i++) {
            if (redis->conns[i].state != NGX_SECKILL_CONN_READY) {
                return 0;
            }
        }
    }

    return !ngx_queue_empty(&ngx_seckill_redis_clients);
}


ngx_uint_t
ngx_seckill_redis_pending(ngx_seckill_redis_t *redis)
{
    return redis->pending;
}


void
ngx_seckill_redis_forget(void *owner)
{
    ngx_queue_t          *q;
    ngx_seckill_redis_t  *redis;

    if (ngx_seckill_redis_clients.next == NULL) {
        return;
    }

    for (q = ngx_queue_head(&ngx_seckill_redis_clients);
         q != ngx_queue_sentinel(&ngx_seckill_redis_clients);
         q = ngx_queue_next(q))
    {
        redis = ngx_queue_data(q, ngx_seckill_redis_t, queue);

        if (redis->settings.owner == owner) {
            ngx_seckill_redis_close(redis);
        }
    }
}


/* ends its calls, which must not start new ones */

static void
ngx_seckill_redis_close(ngx_seckill_redis_t *redis)
{
    ngx_uint_t  i;

    redis->closing = 1;

    for (i = 0; i < redis->nconns; i++) {
        ngx_seckill_redis_conn_exit(&redis->conns[i]);
    }

    if (redis->subscriber.redis) {
        ngx_seckill_redis_conn_exit(&redis->subscriber);
    }

#if (NGX_SSL)
    ngx_seckill_redis_tls_forget(redis);
#endif
}


void
ngx_seckill_redis_exit(void)
{
    ngx_queue_t          *q, *next;
    ngx_seckill_redis_t  *redis;

    if (ngx_seckill_redis_clients.next == NULL) {
        return;
    }

    /* what ends with one client may still look at another: freed last */

    for (q = ngx_queue_head(&ngx_seckill_redis_clients);
         q != ngx_queue_sentinel(&ngx_seckill_redis_clients);
         q = ngx_queue_next(q))
    {
        redis = ngx_queue_data(q, ngx_seckill_redis_t, queue);

        ngx_seckill_redis_close(redis);
    }

    for (q = ngx_queue_head(&ngx_seckill_redis_clients);
         q != ngx_queue_sentinel(&ngx_seckill_redis_clients);
         q = next)
    {
        next = ngx_queue_next(q);
        redis = ngx_queue_data(q, ngx_seckill_redis_t, queue);

        ngx_free(redis->addr.sockaddr);
        ngx_free(redis->addr.name.data);
        ngx_free(redis->addr.host.data);
        ngx_free(redis->addr.user.data);
        ngx_free(redis->addr.password.data);
        ngx_free(redis);
    }

    ngx_queue_init(&ngx_seckill_redis_clients);
}
