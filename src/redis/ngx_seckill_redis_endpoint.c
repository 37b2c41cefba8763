
/*
 * Where a connection goes: the one address of the directive, or one of those
 * that its host name has right now.  Names are looked up by nginx' resolver,
 * which keeps answers as long as their TTL says; nothing is kept here but the
 * addresses of one lookup while they are tried one after the other.
 */


#include "ngx_seckill_redis_private.h"


static ngx_int_t ngx_seckill_redis_endpoint_lookup(
    ngx_seckill_redis_conn_t *conn);
static void ngx_seckill_redis_endpoint_answer(ngx_resolver_ctx_t *lookup);
static void ngx_seckill_redis_endpoint_take(ngx_seckill_redis_conn_t *conn);
static void ngx_seckill_redis_endpoint_order(ngx_seckill_redis_endpoint_t *ep);


ngx_int_t
ngx_seckill_redis_endpoint_find(ngx_seckill_redis_conn_t *conn)
{
    ngx_int_t                   rc;
    ngx_seckill_redis_addr_t   *addr;

    addr = &conn->redis->addr;

    if (addr->sockaddr) {
        conn->peer.sockaddr = addr->sockaddr;
        conn->peer.socklen = addr->socklen;
        return NGX_OK;
    }

    if (!ngx_seckill_redis_endpoint_more(conn)) {
        rc = ngx_seckill_redis_endpoint_lookup(conn);

        if (rc != NGX_OK) {
            return rc;
        }
    }

    ngx_seckill_redis_endpoint_take(conn);

    return NGX_OK;
}


static ngx_int_t
ngx_seckill_redis_endpoint_lookup(ngx_seckill_redis_conn_t *conn)
{
    ngx_resolver_ctx_t            *lookup;
    ngx_seckill_redis_endpoint_t  *ep;

    ep = &conn->endpoint;
    ep->n = 0;
    ep->next = 0;
    ep->error = "host name could not be looked up";

    lookup = ngx_resolve_start(conn->redis->settings.resolver, NULL);

    if (lookup == NULL || lookup == NGX_NO_RESOLVER) {
        return NGX_ERROR;
    }

    /* no timeout of its own: the connection's timer holds for both */

    lookup->name = conn->redis->addr.host;
    lookup->handler = ngx_seckill_redis_endpoint_answer;
    lookup->data = conn;
    lookup->timeout = 0;

    ep->lookup = lookup;

    if (ngx_resolve_name(lookup) != NGX_OK) {
        ep->lookup = NULL;
        return NGX_ERROR;
    }

    if (ep->lookup) {
        return NGX_AGAIN;
    }

    /* answered from the resolver's memory */

    return ep->error ? NGX_ERROR : NGX_OK;
}


static void
ngx_seckill_redis_endpoint_answer(ngx_resolver_ctx_t *lookup)
{
    ngx_uint_t                     i, late;
    ngx_resolver_addr_t           *addr;
    ngx_seckill_redis_conn_t      *conn;
    ngx_seckill_redis_endpoint_t  *ep;

    conn = lookup->data;
    ep = &conn->endpoint;
    late = lookup->async;

    if (lookup->state != NGX_OK) {
        ep->error = ngx_resolver_strerror(lookup->state);

    } else {
        ep->n = ngx_min(lookup->naddrs, NGX_SECKILL_REDIS_ADDRS);
        ep->error = ep->n ? NULL : "host name has no address";

        for (i = 0; i < ep->n; i++) {
            addr = &lookup->addrs[i];
            ngx_memcpy(&ep->addrs[i], addr->sockaddr, addr->socklen);
            ngx_inet_set_port(&ep->addrs[i].sockaddr, conn->redis->addr.port);
            ep->lens[i] = addr->socklen;
        }

        ngx_seckill_redis_endpoint_order(ep);
    }

    ngx_resolve_name_done(lookup);
    ep->lookup = NULL;

    if (late) {
        ngx_seckill_redis_conn_resolved(conn);
    }
}


/* what was right last time is tried first, what was wrong last of all */

static void
ngx_seckill_redis_endpoint_order(ngx_seckill_redis_endpoint_t *ep)
{
    socklen_t       len;
    ngx_uint_t      i, to;
    ngx_sockaddr_t  addr;

    for (i = 0; ep->last_len && i < ep->n; i++) {
        if (ngx_cmp_sockaddr(&ep->addrs[i].sockaddr, ep->lens[i],
                             &ep->last.sockaddr, ep->last_len, 1)
            != NGX_OK)
        {
            continue;
        }

        to = ep->good ? 0 : ep->n - 1;

        addr = ep->addrs[to];
        len = ep->lens[to];
        ep->addrs[to] = ep->addrs[i];
        ep->lens[to] = ep->lens[i];
        ep->addrs[i] = addr;
        ep->lens[i] = len;

        return;
    }
}


static void
ngx_seckill_redis_endpoint_take(ngx_seckill_redis_conn_t *conn)
{
    ngx_seckill_redis_endpoint_t  *ep;

    ep = &conn->endpoint;

    ep->last = ep->addrs[ep->next];
    ep->last_len = ep->lens[ep->next];
    ep->good = 0;
    ep->next++;

    conn->peer.sockaddr = &ep->last.sockaddr;
    conn->peer.socklen = ep->last_len;
}


void
ngx_seckill_redis_endpoint_cancel(ngx_seckill_redis_conn_t *conn)
{
    if (conn->endpoint.lookup) {
        ngx_resolve_name_done(conn->endpoint.lookup);
        conn->endpoint.lookup = NULL;
    }
}


ngx_uint_t
ngx_seckill_redis_endpoint_more(ngx_seckill_redis_conn_t *conn)
{
    return conn->endpoint.next < conn->endpoint.n;
}


void
ngx_seckill_redis_endpoint_good(ngx_seckill_redis_conn_t *conn)
{
    conn->endpoint.good = 1;
    conn->endpoint.n = 0;
    conn->endpoint.next = 0;
}


void
ngx_seckill_redis_endpoint_bad(ngx_seckill_redis_conn_t *conn)
{
    conn->endpoint.good = 0;
    conn->endpoint.n = 0;
    conn->endpoint.next = 0;
}


void
ngx_seckill_redis_endpoint_follow(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_redis_conn_t *other)
{
    ngx_seckill_redis_endpoint_good(conn);

    conn->endpoint.last = other->endpoint.last;
    conn->endpoint.last_len = other->endpoint.last_len;
}


ngx_uint_t
ngx_seckill_redis_endpoint_same(ngx_seckill_redis_conn_t *a,
    ngx_seckill_redis_conn_t *b)
{
    if (a->redis->addr.sockaddr) {
        return 1;
    }

    return ngx_cmp_sockaddr(&a->endpoint.last.sockaddr, a->endpoint.last_len,
                            &b->endpoint.last.sockaddr, b->endpoint.last_len, 1)
           == NGX_OK;
}
