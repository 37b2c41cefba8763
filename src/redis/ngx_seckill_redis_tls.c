
/*
 * TLS of a connection, by nginx' own: the handshake, whether the other side is
 * who it should be, and the buffer that makes few records of many calls.
 *
 * What the core has to say of a connection's TLS becomes the reason why it is
 * lost: one line per change of state, and not one per try.
 */


#include "ngx_seckill_redis_private.h"


#if (NGX_SSL)


static ngx_int_t ngx_seckill_redis_tls_name(ngx_connection_t *c,
    ngx_seckill_redis_tls_t *tls);
static void ngx_seckill_redis_tls_done(ngx_connection_t *c);
static const char *ngx_seckill_redis_tls_verify(ngx_connection_t *c,
    ngx_seckill_redis_tls_t *tls);
static void ngx_seckill_redis_tls_save(ngx_connection_t *c);
static void ngx_seckill_redis_tls_log(ngx_log_t *log, ngx_uint_t level,
    u_char *buf, size_t len);


ngx_int_t
ngx_seckill_redis_tls_start(ngx_seckill_redis_conn_t *conn)
{
    ngx_int_t             rc;
    ngx_log_t            *log;
    ngx_connection_t     *c;
    ngx_seckill_redis_t  *redis;

    redis = conn->redis;
    c = conn->peer.connection;

    conn->state = NGX_SECKILL_CONN_TLS;
    conn->tls_reason[0] = '\0';

    log = &conn->tls_log;
    *log = *ngx_cycle->log;
    log->log_level = NGX_LOG_ERR;
    log->writer = ngx_seckill_redis_tls_log;
    log->wdata = conn;
    log->next = NULL;

    c->log = log;
    c->read->log = log;
    c->write->log = log;

    c->pool = ngx_create_pool(512, ngx_cycle->log);
    if (c->pool == NULL) {
        return NGX_ERROR;
    }

    conn->tls_out = ngx_create_temp_buf(c->pool, NGX_SSL_BUFSIZE);
    if (conn->tls_out == NULL) {
        return NGX_ERROR;
    }

    if (ngx_ssl_create_connection(&redis->addr.tls->ssl, c, NGX_SSL_CLIENT)
        != NGX_OK
        || ngx_seckill_redis_tls_name(c, redis->addr.tls) != NGX_OK)
    {
        return NGX_ERROR;
    }

    c->ssl->save_session = ngx_seckill_redis_tls_save;

    if (redis->session && ngx_ssl_set_session(c, redis->session) != NGX_OK) {
        return NGX_ERROR;
    }

    rc = ngx_ssl_handshake(c);

    if (rc == NGX_AGAIN) {
        c->ssl->handler = ngx_seckill_redis_tls_done;
        return NGX_OK;
    }

    ngx_seckill_redis_tls_done(c);

    return NGX_OK;
}


/* for the server to choose a certificate by, and for OpenSSL to compare */

static ngx_int_t
ngx_seckill_redis_tls_name(ngx_connection_t *c, ngx_seckill_redis_tls_t *tls)
{
    char               *name;
    u_char              addr[16];
    X509_VERIFY_PARAM  *param;

    name = (char *) tls->name.data;
    param = SSL_get0_param(c->ssl->connection);

    if (ngx_inet_addr(tls->name.data, tls->name.len) != INADDR_NONE
#if (NGX_HAVE_INET6)
        || ngx_inet6_addr(tls->name.data, tls->name.len, addr) == NGX_OK
#endif
       )
    {
        /* an address is no server name, says RFC 6066 */
        return X509_VERIFY_PARAM_set1_ip_asc(param, name) ? NGX_OK : NGX_ERROR;
    }

    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);

    return X509_VERIFY_PARAM_set1_host(param, name, tls->name.len)
           && SSL_set_tlsext_host_name(c->ssl->connection, name)
           ? NGX_OK : NGX_ERROR;
}


static void
ngx_seckill_redis_tls_done(ngx_connection_t *c)
{
    const char                *error;
    ngx_seckill_redis_conn_t  *conn;

    conn = c->data;

    if (!c->ssl->handshaked) {
        ngx_seckill_redis_conn_fail(conn,
                 ngx_seckill_redis_tls_reason(conn, "TLS handshake failed"));
        return;
    }

    error = ngx_seckill_redis_tls_verify(c, conn->redis->addr.tls);

    if (error) {
        /* a session is as good as the handshake that began it */

        ngx_seckill_redis_tls_forget(conn->redis);

        (void) ngx_snprintf(conn->tls_reason, sizeof(conn->tls_reason),
                            "certificate refused: %s%Z", error);
        ngx_seckill_redis_conn_fail(conn, (char *) conn->tls_reason);
        return;
    }

    c->read->handler = ngx_seckill_redis_conn_read;
    c->write->handler = ngx_seckill_redis_conn_write;

    if (ngx_seckill_redis_conn_hello(conn) != NGX_OK) {
        ngx_seckill_redis_conn_fail(conn,
             ngx_seckill_redis_tls_reason(conn, "handshake could not be sent"));
        return;
    }

    /* the event of what came behind the handshake may have gone to it */

    if (c->read->ready) {
        ngx_post_event(c->read, &ngx_posted_events);
    }
}


static const char *
ngx_seckill_redis_tls_verify(ngx_connection_t *c, ngx_seckill_redis_tls_t *tls)
{
    long   rc;
    X509  *cert;

    if (!tls->verify) {
        return NULL;
    }

    cert = SSL_get_peer_certificate(c->ssl->connection);

    if (cert == NULL) {
        return "there is none";
    }

    X509_free(cert);

    rc = SSL_get_verify_result(c->ssl->connection);

    return rc == X509_V_OK ? NULL : X509_verify_cert_error_string(rc);
}


static void
ngx_seckill_redis_tls_save(ngx_connection_t *c)
{
    ngx_ssl_session_t         *session;
    ngx_seckill_redis_conn_t  *conn;

    conn = c->data;

    session = ngx_ssl_get_session(c);

    if (session) {
        ngx_seckill_redis_tls_forget(conn->redis);
        conn->redis->session = session;
    }
}


void
ngx_seckill_redis_tls_forget(ngx_seckill_redis_t *redis)
{
    if (redis->session) {
        ngx_ssl_free_session(redis->session);
        redis->session = NULL;
    }
}


/*
 * OpenSSL wants a write that was not finished once more as it was: what is in
 * the buffer stays until it has gone.
 */

ssize_t
ngx_seckill_redis_tls_send(ngx_seckill_redis_conn_t *conn, struct iovec *iovs,
    ngx_uint_t niov)
{
    size_t             taken, size;
    ssize_t            n;
    ngx_buf_t         *out;
    ngx_uint_t         i;
    ngx_connection_t  *c;

    c = conn->peer.connection;
    out = conn->tls_out;
    taken = 0;

    for ( ;; ) {

        while (out->pos < out->last) {
            n = c->send(c, out->pos, out->last - out->pos);

            if (n == NGX_ERROR) {
                return NGX_ERROR;
            }

            if (n == NGX_AGAIN) {
                return taken;
            }

            out->pos += n;
        }

        if (taken || niov == 0) {
            return taken;
        }

        out->pos = out->start;
        out->last = out->start;

        for (i = 0; i < niov && out->last < out->end; i++) {
            size = ngx_min(iovs[i].iov_len, (size_t) (out->end - out->last));
            out->last = ngx_cpymem(out->last, iovs[i].iov_base, size);
            taken += size;
        }
    }
}


ngx_uint_t
ngx_seckill_redis_tls_unsent(ngx_seckill_redis_conn_t *conn)
{
    return conn->tls_out->pos < conn->tls_out->last;
}


/* without a word to the other side, for that might have to wait */

void
ngx_seckill_redis_tls_close(ngx_seckill_redis_conn_t *conn)
{
    ngx_connection_t  *c;

    c = conn->peer.connection;

    if (c->ssl) {
        c->ssl->no_wait_shutdown = 1;
        c->ssl->no_send_shutdown = 1;
        (void) ngx_ssl_shutdown(c);
    }

    conn->tls_out = NULL;
}


const char *
ngx_seckill_redis_tls_reason(ngx_seckill_redis_conn_t *conn, const char *other)
{
    return conn->tls_reason[0] ? (char *) conn->tls_reason : other;
}


/* keeps the first message, less its time and process */

static void
ngx_seckill_redis_tls_log(ngx_log_t *log, ngx_uint_t level, u_char *buf,
    size_t len)
{
    u_char                    *p, *last;
    ngx_seckill_redis_conn_t  *conn;

    conn = log->wdata;
    last = buf + len;

    if (conn->tls_reason[0]) {
        return;
    }

    p = ngx_strlchr(buf, last, '#');
    p = p ? ngx_strlchr(p, last, ' ') : NULL;
    p = p ? p + 1 : buf;

    while (last > p && (last[-1] == LF || last[-1] == CR)) {
        last--;
    }

    len = ngx_min((size_t) (last - p), sizeof(conn->tls_reason) - 1);
    ngx_memcpy(conn->tls_reason, p, len);
    conn->tls_reason[len] = '\0';
}


#endif /* NGX_SSL */
