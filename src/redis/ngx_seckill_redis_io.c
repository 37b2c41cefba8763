
/*
 * Bytes of one connection: replies in, calls out.  What waits leaves in one
 * writev(), what arrives is parsed as it comes.
 */


#include "ngx_seckill_redis_private.h"


#define NGX_SECKILL_REDIS_READ  16384
#define NGX_SECKILL_REDIS_IOVS  64


/*
 * Line, string, strings together, elements, depth.  The largest we ask for is a
 * page of SSCAN: 500 users, or all of a set that Redis keeps in one piece.
 */

const sk_reader_limits_t  ngx_seckill_redis_limits_hello =
    { 65536, 4096, 65536, 64, 2 };

const sk_reader_limits_t  ngx_seckill_redis_limits =
    { 65536, 1024 * 1024, 4 * 1024 * 1024, 256 * 1024, 7 };


static ssize_t ngx_seckill_redis_conn_put(ngx_seckill_redis_conn_t *conn,
    struct iovec *iovs, ngx_uint_t niov, size_t size);
static ngx_uint_t ngx_seckill_redis_conn_unsent(ngx_seckill_redis_conn_t *conn);


void
ngx_seckill_redis_conn_read(ngx_event_t *rev)
{
    int                        rc;
    void                      *reply;
    u_char                     buf[NGX_SECKILL_REDIS_READ], refused[128];
    ssize_t                    n;
    ngx_connection_t          *c;
    ngx_seckill_redis_conn_t  *conn;

    c = rev->data;
    conn = c->data;

    if (c->close) {
        /* worker_shutdown_timeout */
        ngx_seckill_redis_conn_fail(conn, "worker shuts down");
        return;
    }

    if (conn->state == NGX_SECKILL_CONN_CONNECTING) {
        /* a refusal: recv() would let the core log each try */
        ngx_seckill_redis_conn_write(c->write);

        if (conn->peer.connection != c
            || conn->state == NGX_SECKILL_CONN_TLS)
        {
            /* gone, or what arrives is for the handshake */
            return;
        }
    }

    do {
        n = c->recv(c, buf, sizeof(buf));

        if (n == NGX_AGAIN) {
            break;
        }

        if (n <= 0) {
            ngx_seckill_redis_conn_fail(conn, ngx_seckill_redis_tls_reason(conn,
                                        n ? "connection failed"
                                          : "connection closed"));
            return;
        }

        if (redisReaderFeed(conn->reader, (char *) buf, n) != REDIS_OK) {
            ngx_seckill_redis_conn_fail(conn, "out of memory");
            return;
        }

        for ( ;; ) {
            rc = sk_reader_reply(conn->reader, &reply);

            if (rc != REDIS_OK) {
                ngx_cpystrn(refused, (u_char *) sk_reader_error(conn->reader),
                            sizeof(refused));
                ngx_seckill_redis_conn_fail(conn, (char *) refused);
                return;
            }

            if (reply == NULL) {
                break;
            }

            ngx_seckill_redis_call_reply(conn, reply);

            if (conn->peer.connection != c) {
                /* the reply ended the connection */
                return;
            }
        }

    } while (rev->ready);

    if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        ngx_seckill_redis_conn_fail(conn, "read event failed");
    }
}


void
ngx_seckill_redis_conn_write(ngx_event_t *wev)
{
    int                        err;
    socklen_t                  len;
    ngx_connection_t          *c;
    ngx_seckill_redis_conn_t  *conn;

    c = wev->data;
    conn = c->data;

    if (conn->state == NGX_SECKILL_CONN_CONNECTING) {
        err = 0;
        len = sizeof(int);

        if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, (void *) &err, &len) == -1) {
            err = ngx_socket_errno;
        }

        if (err) {
            ngx_seckill_redis_conn_fail(conn, strerror(err));
            return;
        }

        ngx_seckill_redis_conn_connected(conn);
        return;
    }

    if (ngx_seckill_redis_conn_writev(conn) == NGX_ERROR) {
        ngx_seckill_redis_conn_fail(conn,
                       ngx_seckill_redis_tls_reason(conn, "write failed"));
    }
}


/*
 * Writes the unfinished call and all that wait; before READY only the
 * handshake, which is the first.  NGX_AGAIN: the socket is full.
 */

ngx_int_t
ngx_seckill_redis_conn_writev(ngx_seckill_redis_conn_t *conn)
{
    size_t               size;
    ssize_t              n;
    ngx_uint_t           i, niov;
    ngx_queue_t         *q;
    struct iovec         iovs[NGX_SECKILL_REDIS_IOVS];
    ngx_connection_t    *c;
    ngx_seckill_call_t  *call, *calls[NGX_SECKILL_REDIS_IOVS];

    c = conn->peer.connection;

    while (c->write->ready) {
        niov = 0;
        size = 0;

        if (!ngx_queue_empty(&conn->sent)) {
            q = ngx_queue_last(&conn->sent);
            call = ngx_queue_data(q, ngx_seckill_call_t, queue);

            if (call->written < call->len) {
                calls[niov++] = call;
            }
        }

        for (q = ngx_queue_head(&conn->waiting);
             q != ngx_queue_sentinel(&conn->waiting)
             && niov < NGX_SECKILL_REDIS_IOVS;
             q = ngx_queue_next(q))
        {
            call = ngx_queue_data(q, ngx_seckill_call_t, queue);

            if ((conn->state != NGX_SECKILL_CONN_READY || conn->leaving)
                && !call->internal)
            {
                break;
            }

            calls[niov++] = call;
        }

        if (niov == 0 && !ngx_seckill_redis_conn_unsent(conn)) {
            return NGX_OK;
        }

        for (i = 0; i < niov; i++) {
            iovs[i].iov_base = calls[i]->buf + calls[i]->written;
            iovs[i].iov_len = calls[i]->len - calls[i]->written;
            size += iovs[i].iov_len;
        }

        n = ngx_seckill_redis_conn_put(conn, iovs, niov, size);

        if (n < 0) {
            return NGX_ERROR;
        }

        if (n == 0) {
            break;
        }

        for (i = 0; i < niov && n > 0; i++) {
            call = calls[i];

            if (call->written == 0) {
                ngx_queue_remove(&call->queue);
                ngx_queue_insert_tail(&conn->sent, &call->queue);
            }

            size = ngx_min((size_t) n, iovs[i].iov_len);
            call->written += size;
            n -= size;
        }
    }

    if (ngx_handle_write_event(c->write, 0) != NGX_OK) {
        return NGX_ERROR;
    }

    return NGX_AGAIN;
}


/* bytes that are on their way, or NGX_ERROR; notes when the socket is full */

static ssize_t
ngx_seckill_redis_conn_put(ngx_seckill_redis_conn_t *conn, struct iovec *iovs,
    ngx_uint_t niov, size_t size)
{
    ssize_t            n;
    ngx_connection_t  *c;

#if (NGX_SSL)
    if (conn->redis->addr.tls) {
        return ngx_seckill_redis_tls_send(conn, iovs, niov);
    }
#endif

    c = conn->peer.connection;

    do {
        n = writev(c->fd, iovs, niov);
    } while (n == -1 && ngx_errno == NGX_EINTR);

    if (n == -1) {
        if (ngx_errno != NGX_EAGAIN) {
            return NGX_ERROR;
        }

        n = 0;
    }

    if ((size_t) n < size) {
        c->write->ready = 0;
    }

    return n;
}


static ngx_uint_t
ngx_seckill_redis_conn_unsent(ngx_seckill_redis_conn_t *conn)
{
#if (NGX_SSL)
    if (conn->redis->addr.tls) {
        return ngx_seckill_redis_tls_unsent(conn);
    }
#endif

    return 0;
}
