
/*
 * One connection: find the address, connect, authenticate, select, load the
 * script, then calls in pipeline order until it fails; then back-off, and again.
 *
 * IDLE -> RESOLVING -> CONNECTING -> TLS -> HANDSHAKE -> READY -> (fail) IDLE;
 * only an address that is a name is resolved, and TLS is optional.  A try is over when all addresses of the
 * name have failed.  The first failure after a good answer keeps waiting calls
 * for one more try; from the second in a row on calls end at once as "not run",
 * until Redis has answered a handshake again.
 */


#include "ngx_seckill_redis_private.h"


/* milliseconds; the longest stays under 2 s with its jitter */
#define NGX_SECKILL_REDIS_DELAY      50
#define NGX_SECKILL_REDIS_DELAY_MAX  1600


static void ngx_seckill_redis_conn_connect(ngx_seckill_redis_conn_t *conn);
static void ngx_seckill_redis_conn_connect_peer(ngx_seckill_redis_conn_t *conn);
static void ngx_seckill_redis_conn_timer(ngx_event_t *ev);
static void ngx_seckill_redis_conn_deadline(ngx_event_t *ev);
static void ngx_seckill_redis_conn_flush(ngx_event_t *ev);
static void ngx_seckill_redis_conn_close(ngx_seckill_redis_conn_t *conn);
static ngx_msec_t ngx_seckill_redis_conn_expire(ngx_seckill_redis_conn_t *conn,
    ngx_queue_t *queue, ngx_queue_t *expired);
static void ngx_seckill_redis_conn_arm(ngx_seckill_redis_conn_t *conn,
    ngx_msec_t deadline);


static ngx_uint_t
ngx_seckill_redis_conn_open(ngx_seckill_redis_conn_t *conn)
{
    return conn->state == NGX_SECKILL_CONN_READY || conn->failures < 2;
}


ngx_uint_t
ngx_seckill_redis_worker_ends(void)
{
    return ngx_exiting || ngx_quit || ngx_terminate;
}


void
ngx_seckill_redis_conn_init(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_redis_t *redis)
{
    conn->redis = redis;
    conn->state = NGX_SECKILL_CONN_IDLE;
    conn->delay = NGX_SECKILL_REDIS_DELAY;

    ngx_queue_init(&conn->waiting);
    ngx_queue_init(&conn->sent);

    conn->timer.handler = ngx_seckill_redis_conn_timer;
    conn->timer.data = conn;
    conn->timer.log = ngx_cycle->log;
    conn->timer.cancelable = 1;

    /* holds an old worker until its calls have ended */
    conn->deadline.handler = ngx_seckill_redis_conn_deadline;
    conn->deadline.data = conn;
    conn->deadline.log = ngx_cycle->log;

    conn->flush.handler = ngx_seckill_redis_conn_flush;
    conn->flush.data = conn;
    conn->flush.log = ngx_cycle->log;

    ngx_seckill_redis_conn_connect(conn);
}


ngx_int_t
ngx_seckill_redis_conn_send(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_call_t *call)
{
    if (!ngx_seckill_redis_conn_open(conn)) {
        return NGX_BUSY;
    }

    ngx_queue_insert_tail(&conn->waiting, &call->queue);
    ngx_seckill_redis_conn_arm(conn, call->deadline);

    if (conn->state == NGX_SECKILL_CONN_READY) {
        ngx_seckill_redis_conn_post(conn);

    } else if (conn->state == NGX_SECKILL_CONN_IDLE && !conn->timer.timer_set) {
        /* an old worker stopped its back-off, but still has a request */
        ngx_add_timer(&conn->timer, 0);
    }

    return NGX_OK;
}


void
ngx_seckill_redis_conn_post(ngx_seckill_redis_conn_t *conn)
{
    ngx_post_event(&conn->flush, &ngx_posted_events);
}


static void
ngx_seckill_redis_conn_flush(ngx_event_t *ev)
{
    ngx_seckill_redis_conn_t  *conn;

    conn = ev->data;

    if (conn->state != NGX_SECKILL_CONN_READY
        && conn->state != NGX_SECKILL_CONN_HANDSHAKE)
    {
        return;
    }

    if (ngx_seckill_redis_conn_writev(conn) == NGX_ERROR) {
        ngx_seckill_redis_conn_fail(conn,
                       ngx_seckill_redis_tls_reason(conn, "write failed"));
    }
}


static void
ngx_seckill_redis_conn_connect(ngx_seckill_redis_conn_t *conn)
{
    ngx_int_t  rc;

    ngx_memzero(&conn->peer, sizeof(ngx_peer_connection_t));

    rc = ngx_seckill_redis_endpoint_find(conn);

    if (rc == NGX_AGAIN) {
        conn->state = NGX_SECKILL_CONN_RESOLVING;
        ngx_add_timer(&conn->timer, conn->redis->settings.connect_timeout);
        return;
    }

    if (rc != NGX_OK) {
        ngx_seckill_redis_conn_fail(conn, conn->endpoint.error);
        return;
    }

    ngx_seckill_redis_conn_connect_peer(conn);
}


static void
ngx_seckill_redis_conn_connect_peer(ngx_seckill_redis_conn_t *conn)
{
    ngx_log_t               quiet;
    ngx_int_t               rc;
    ngx_connection_t       *c;
    ngx_seckill_redis_t    *redis;
    ngx_peer_connection_t  *pc;

    redis = conn->redis;
    pc = &conn->peer;

    /* the core would log each try, ours is one line per change of state */
    quiet = *ngx_cycle->log;
    quiet.log_level = NGX_LOG_EMERG;
    quiet.next = NULL;

    pc->name = &redis->addr.name;
    pc->get = ngx_event_get_peer;
    pc->log = &quiet;
    pc->log_error = NGX_ERROR_ERR;

    conn->reader = sk_reader_create(&conn->reading,
                                    &ngx_seckill_redis_limits_hello);
    if (conn->reader == NULL) {
        ngx_seckill_redis_conn_fail(conn, "out of memory");
        return;
    }

    rc = ngx_event_connect_peer(pc);

    pc->log = ngx_cycle->log;

    if (rc == NGX_ERROR || rc == NGX_BUSY || rc == NGX_DECLINED) {
        ngx_seckill_redis_conn_fail(conn, strerror(ngx_socket_errno));
        return;
    }

    c = pc->connection;
    c->data = conn;
    c->log = ngx_cycle->log;
    c->read->log = c->log;
    c->write->log = c->log;
    c->log_error = NGX_ERROR_ERR;
    c->read->handler = ngx_seckill_redis_conn_read;
    c->write->handler = ngx_seckill_redis_conn_write;

    /* an old worker is told to end on its idle connections: see read() */
    c->idle = conn->subscriber;

    (void) fcntl(c->fd, F_SETFD, FD_CLOEXEC);

    if (pc->sockaddr->sa_family != AF_UNIX) {
        (void) ngx_tcp_nodelay(c);
    }

    conn->state = NGX_SECKILL_CONN_CONNECTING;
    ngx_add_timer(&conn->timer, redis->settings.connect_timeout);

    if (rc == NGX_OK) {
        ngx_seckill_redis_conn_connected(conn);
    }
}


void
ngx_seckill_redis_conn_connected(ngx_seckill_redis_conn_t *conn)
{
#if (NGX_SSL)
    if (conn->redis->addr.tls) {
        if (ngx_seckill_redis_tls_start(conn) != NGX_OK) {
            ngx_seckill_redis_conn_fail(conn,
              ngx_seckill_redis_tls_reason(conn, "TLS could not be begun"));
        }

        return;
    }
#endif

    if (ngx_seckill_redis_conn_hello(conn) != NGX_OK) {
        ngx_seckill_redis_conn_fail(conn, "handshake could not be sent");
    }
}


/*
 * The timer goes on: a resolver's handler is called in the middle of a list of
 * others who wait for the name, and must not close any of their connections.
 */

void
ngx_seckill_redis_conn_resolved(ngx_seckill_redis_conn_t *conn)
{
    /* the core leaves a timer as it is when it is to change by little */

    if (conn->timer.timer_set) {
        ngx_del_timer(&conn->timer);
    }

    ngx_add_timer(&conn->timer, 0);
}


static void
ngx_seckill_redis_conn_timer(ngx_event_t *ev)
{
    ngx_seckill_redis_conn_t  *conn;

    conn = ev->data;

    switch (conn->state) {

    case NGX_SECKILL_CONN_IDLE:
        if (ngx_seckill_redis_worker_ends() && ngx_queue_empty(&conn->waiting)) {
            return;
        }

        ngx_seckill_redis_conn_connect(conn);
        return;

    case NGX_SECKILL_CONN_RESOLVING:
        if (conn->endpoint.lookup) {
            ngx_seckill_redis_conn_fail(conn, "host name not resolved in time");

        } else if (conn->endpoint.error) {
            ngx_seckill_redis_conn_fail(conn, conn->endpoint.error);

        } else {
            ngx_seckill_redis_conn_connect(conn);
        }

        return;

    case NGX_SECKILL_CONN_CONNECTING:
        ngx_seckill_redis_conn_fail(conn, "connect timed out");
        return;

    case NGX_SECKILL_CONN_TLS:
        ngx_seckill_redis_conn_fail(conn, "TLS handshake timed out");
        return;

    case NGX_SECKILL_CONN_HANDSHAKE:
        ngx_seckill_redis_conn_fail(conn, "no answer to the handshake");
        return;

    case NGX_SECKILL_CONN_READY:
        return;
    }
}


void
ngx_seckill_redis_conn_ready(ngx_seckill_redis_conn_t *conn)
{
    ngx_seckill_redis_t  *redis;

    static uint64_t  session;

    redis = conn->redis;

    conn->state = NGX_SECKILL_CONN_READY;
    conn->session = ++session;
    conn->reading.limits = &ngx_seckill_redis_limits;
    ngx_seckill_redis_endpoint_good(conn);

    if (conn->timer.timer_set) {
        ngx_del_timer(&conn->timer);
    }

    /* a replica answers a handshake too: only a purchase tells who is the master */

    if (!redis->demoted) {
        ngx_seckill_redis_conn_back(conn);
    }

    if (!ngx_queue_empty(&conn->waiting)) {
        ngx_seckill_redis_conn_post(conn);
    }
}


void
ngx_seckill_redis_conn_back(ngx_seckill_redis_conn_t *conn)
{
    ngx_uint_t            i;
    ngx_seckill_redis_t  *redis;

    redis = conn->redis;

    conn->failures = 0;
    conn->delay = NGX_SECKILL_REDIS_DELAY;

    if (!redis->lost) {
        return;
    }

    for (i = 0; i < redis->nconns; i++) {
        if (redis->conns[i].state != NGX_SECKILL_CONN_READY) {
            return;
        }
    }

    redis->lost = 0;
    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "seckill redis \"%V\" is back", &redis->addr.name);
}


void
ngx_seckill_redis_conn_fail(ngx_seckill_redis_conn_t *conn, const char *reason)
{
    ngx_msec_t            delay;
    ngx_seckill_redis_t  *redis;

    redis = conn->redis;

    ngx_seckill_redis_conn_close(conn);

    if (ngx_seckill_redis_endpoint_more(conn) && !redis->closing) {
        ngx_add_timer(&conn->timer, 0);
        ngx_seckill_redis_call_end_all(redis, &conn->sent, NGX_SECKILL_UNKNOWN,
                                       reason);
        ngx_seckill_redis_call_end_bound(redis, &conn->waiting, reason);
        return;
    }

    conn->failures++;
    delay = conn->delay / 2 + ngx_random() % (conn->delay / 2 + 1);
    conn->delay = ngx_min(conn->delay * 2, NGX_SECKILL_REDIS_DELAY_MAX);

    if (ngx_strncmp(reason, "LOADING", 7) == 0) {
        delay = NGX_SECKILL_REDIS_DELAY_MAX;
        conn->failures = ngx_max(conn->failures, 2);
    }

    if (!redis->lost && !redis->closing && !ngx_seckill_redis_worker_ends()) {
        redis->lost = 1;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "seckill redis \"%V\" lost: %s, next try in %Mms",
                      &redis->addr.name, reason, delay);
    }

    if (!redis->closing && !ngx_seckill_redis_worker_ends()) {
        ngx_add_timer(&conn->timer, delay);
    }

    ngx_seckill_redis_call_end_all(redis, &conn->sent, NGX_SECKILL_UNKNOWN,
                                   reason);
    ngx_seckill_redis_call_end_bound(redis, &conn->waiting, reason);

    if (!ngx_seckill_redis_conn_open(conn) || redis->closing
        || !conn->timer.timer_set)
    {
        ngx_seckill_redis_call_end_all(redis, &conn->waiting,
                                       NGX_SECKILL_NOT_RUN, reason);
    }

    if (conn->subscriber) {
        ngx_seckill_redis_silence();
    }
}


static void
ngx_seckill_redis_conn_close(ngx_seckill_redis_conn_t *conn)
{
    ngx_pool_t        *pool;
    ngx_connection_t  *c;

    conn->state = NGX_SECKILL_CONN_IDLE;
    conn->loading = NULL;
    conn->leaving = 0;

    ngx_seckill_redis_endpoint_cancel(conn);

    if (conn->timer.timer_set) {
        ngx_del_timer(&conn->timer);
    }

    if (conn->flush.posted) {
        ngx_delete_posted_event(&conn->flush);
    }

    c = conn->peer.connection;

    if (c) {
#if (NGX_SSL)
        if (conn->redis->addr.tls) {
            ngx_seckill_redis_tls_close(conn);
        }
#endif

        pool = c->pool;
        ngx_close_connection(c);

        if (pool) {
            ngx_destroy_pool(pool);
        }

        conn->peer.connection = NULL;
    }

    if (conn->reader) {
        redisReaderFree(conn->reader);
        conn->reader = NULL;
    }
}


void
ngx_seckill_redis_conn_exit(ngx_seckill_redis_conn_t *conn)
{
    ngx_seckill_redis_conn_close(conn);

    ngx_seckill_redis_call_end_all(conn->redis, &conn->sent,
                                   NGX_SECKILL_UNKNOWN, "worker ends");
    ngx_seckill_redis_call_end_all(conn->redis, &conn->waiting,
                                   NGX_SECKILL_NOT_RUN, "worker ends");

    if (conn->deadline.timer_set) {
        ngx_del_timer(&conn->deadline);
    }
}


static void
ngx_seckill_redis_conn_arm(ngx_seckill_redis_conn_t *conn, ngx_msec_t deadline)
{
    ngx_msec_int_t  left;

    if (conn->deadline.timer_set
        && (ngx_msec_int_t) (conn->deadline.timer.key - deadline) <= 0)
    {
        return;
    }

    left = (ngx_msec_int_t) (deadline - ngx_current_msec);
    ngx_add_timer(&conn->deadline, left > 0 ? (ngx_msec_t) left : 0);
}


/*
 * A call that waited too long has surely not run; one that was sent too long
 * ago may have, and its connection is not used again.
 */

static void
ngx_seckill_redis_conn_deadline(ngx_event_t *ev)
{
    ngx_msec_t                 next;
    ngx_queue_t                expired;
    ngx_seckill_redis_conn_t  *conn;

    conn = ev->data;

    ngx_queue_init(&expired);
    (void) ngx_seckill_redis_conn_expire(conn, &conn->waiting, &expired);
    ngx_seckill_redis_call_end_all(conn->redis, &expired, NGX_SECKILL_NOT_RUN,
                                   "not sent in time");

    if (ngx_seckill_redis_conn_expire(conn, &conn->sent, NULL) == 0) {
        ngx_seckill_redis_conn_fail(conn, "no answer in time");
    }

    next = ngx_min(ngx_seckill_redis_conn_expire(conn, &conn->waiting, NULL),
                   ngx_seckill_redis_conn_expire(conn, &conn->sent, NULL));

    if (next != NGX_TIMER_INFINITE) {
        ngx_seckill_redis_conn_arm(conn, ngx_current_msec + next);
    }
}


/*
 * Milliseconds to the earliest deadline in the queue, 0 when it has passed,
 * NGX_TIMER_INFINITE when there is none.  What has passed is moved to
 * "expired", where given.  The handshake has a timer of its own.
 */

static ngx_msec_t
ngx_seckill_redis_conn_expire(ngx_seckill_redis_conn_t *conn,
    ngx_queue_t *queue, ngx_queue_t *expired)
{
    ngx_msec_t           next;
    ngx_queue_t         *q;
    ngx_msec_int_t       left;
    ngx_seckill_call_t  *call;

    next = NGX_TIMER_INFINITE;
    q = ngx_queue_head(queue);

    while (q != ngx_queue_sentinel(queue)) {
        call = ngx_queue_data(q, ngx_seckill_call_t, queue);
        q = ngx_queue_next(q);

        if (call->internal) {
            continue;
        }

        left = (ngx_msec_int_t) (call->deadline - ngx_current_msec);

        if (left > 0) {
            next = ngx_min(next, (ngx_msec_t) left);
            continue;
        }

        next = 0;

        if (expired) {
            ngx_queue_remove(&call->queue);
            ngx_queue_insert_tail(expired, &call->queue);
        }
    }

    return next;
}
