
/*
 * Who is the master.  Any node answers a handshake and reads, so only purchases
 * tell: one that is refused as a replica's, and the first one that runs then.
 * Connections follow what the purchases found, with the reads on them.
 */


#include "ngx_seckill_redis_private.h"


static void ngx_seckill_redis_conn_leave(ngx_seckill_redis_conn_t *conn,
    const char *reason);
static ngx_seckill_redis_conn_t *ngx_seckill_redis_conn_at(
    ngx_seckill_redis_t *redis, ngx_uint_t i);


void
ngx_seckill_redis_wrong_node(ngx_seckill_redis_conn_t *conn, const char *reason)
{
    ngx_uint_t                 i;
    ngx_seckill_redis_conn_t  *other;

    conn->redis->demoted = 1;

    for (i = 0; i <= conn->redis->nconns; i++) {
        other = ngx_seckill_redis_conn_at(conn->redis, i);

        if (other != conn && other->state == NGX_SECKILL_CONN_READY
            && ngx_seckill_redis_endpoint_same(other, conn))
        {
            ngx_seckill_redis_endpoint_bad(other);
            ngx_seckill_redis_conn_leave(other, reason);
        }
    }

    ngx_seckill_redis_endpoint_bad(conn);
    ngx_seckill_redis_conn_fail(conn, reason);
}


void
ngx_seckill_redis_right_node(ngx_seckill_redis_conn_t *conn)
{
    ngx_uint_t                 i;
    ngx_seckill_redis_conn_t  *other;

    if (!conn->redis->demoted) {
        return;
    }

    conn->redis->demoted = 0;

    for (i = 0; i <= conn->redis->nconns; i++) {
        other = ngx_seckill_redis_conn_at(conn->redis, i);

        if (other->redis && !ngx_seckill_redis_endpoint_same(other, conn)) {
            ngx_seckill_redis_endpoint_follow(other, conn);
            ngx_seckill_redis_conn_leave(other, "left for the master");
        }
    }

    for (i = 0; i < conn->redis->nconns; i++) {
        other = &conn->redis->conns[i];

        if (other->state == NGX_SECKILL_CONN_READY && !other->leaving) {
            ngx_seckill_redis_conn_back(other);
        }
    }
}


static ngx_seckill_redis_conn_t *
ngx_seckill_redis_conn_at(ngx_seckill_redis_t *redis, ngx_uint_t i)
{
    return (i < redis->nconns) ? &redis->conns[i] : &redis->subscriber;
}


/* what was sent is answered first */

static void
ngx_seckill_redis_conn_leave(ngx_seckill_redis_conn_t *conn, const char *reason)
{
    switch (conn->state) {

    case NGX_SECKILL_CONN_IDLE:
    case NGX_SECKILL_CONN_RESOLVING:
        return;

    case NGX_SECKILL_CONN_READY:
        if (!ngx_queue_empty(&conn->sent)) {
            conn->leaving = 1;
            return;
        }

        break;

    default:
        break;
    }

    ngx_seckill_redis_conn_fail(conn, reason);
}
