
/*
 * What the files of src/redis share among themselves.
 */


#ifndef _NGX_SECKILL_REDIS_PRIVATE_H_INCLUDED_
#define _NGX_SECKILL_REDIS_PRIVATE_H_INCLUDED_


#include "ngx_seckill_redis.h"


typedef enum {
    NGX_SECKILL_CONN_IDLE = 0,          /* never tried, or waiting for its back-off */
    NGX_SECKILL_CONN_RESOLVING,         /* its host name is being looked up */
    NGX_SECKILL_CONN_CONNECTING,
    NGX_SECKILL_CONN_TLS,               /* TLS' own handshake */
    NGX_SECKILL_CONN_HANDSHAKE,         /* AUTH, SELECT and the scripts are on their way */
    NGX_SECKILL_CONN_READY
} ngx_seckill_conn_state_e;


/* what an error reply means for the call and for its connection */
typedef enum {
    NGX_SECKILL_ERROR_OTHER = 0,        /* may have run */
    NGX_SECKILL_ERROR_NOSCRIPT,
    NGX_SECKILL_ERROR_REFUSED,          /* did not run; the connection is fine */
    NGX_SECKILL_ERROR_CLUSTER,          /* the same, from a node of a cluster */
    NGX_SECKILL_ERROR_WRONG_NODE,       /* did not run; look for the master again */
    NGX_SECKILL_ERROR_LOADING           /* did not run; come back later */
} ngx_seckill_error_e;


#define NGX_SECKILL_REDIS_ADDRS  8      /* most addresses of a name at a time */


/* where a connection goes */
typedef struct {
    ngx_resolver_ctx_t         *lookup;     /* under way */
    const char                 *error;      /* of the last lookup */

    ngx_uint_t                  n;          /* addresses of one lookup */
    ngx_uint_t                  next;       /* the first that was not tried */
    ngx_sockaddr_t              addrs[NGX_SECKILL_REDIS_ADDRS];
    socklen_t                   lens[NGX_SECKILL_REDIS_ADDRS];

    ngx_sockaddr_t              last;       /* where it went last */
    socklen_t                   last_len;   /* 0: nowhere yet */
    unsigned                    good:1;     /* and whether that was right */
} ngx_seckill_redis_endpoint_t;


/* of a reply: in the handshake, and then */
extern const sk_reader_limits_t  ngx_seckill_redis_limits_hello;
extern const sk_reader_limits_t  ngx_seckill_redis_limits;


struct ngx_seckill_redis_conn_s {
    ngx_seckill_redis_t        *redis;
    ngx_seckill_conn_state_e    state;
    ngx_seckill_redis_endpoint_t  endpoint;
    ngx_peer_connection_t       peer;
    redisReader                *reader;
    sk_reader_t                 reading;    /* the reply that it has begun */

    ngx_queue_t                 waiting;    /* not on the wire yet, oldest first */
    ngx_queue_t                 sent;       /* at least partly, oldest first */

    ngx_event_t                 timer;      /* back-off, lookup, connect, handshake */
    ngx_event_t                 deadline;   /* of the earliest call */
    ngx_event_t                 flush;      /* posted: writes what is waiting */

    ngx_msec_t                  delay;      /* of the next back-off */
    ngx_uint_t                  failures;   /* in a row, since the last good answer */
    uint64_t                    session;    /* another one with each connect */
    const sk_script_t          *loading;    /* the script that is on its way */
    unsigned                    subscriber:1;
    unsigned                    leaving:1;  /* sends nothing new, then closes */

#if (NGX_SSL)
    ngx_log_t                   tls_log;    /* of the core, into the reason */
    u_char                      tls_reason[256];
    ngx_buf_t                  *tls_out;    /* one record */
#endif
};


struct ngx_seckill_redis_s {
    ngx_queue_t                 queue;      /* of all clients of the worker */
    ngx_seckill_redis_addr_t    addr;
    ngx_seckill_redis_settings_t  settings;
    ngx_uint_t                  pending;    /* calls that have not ended */
    ngx_uint_t                  next;       /* connection for the next read */
    unsigned                    lost:1;     /* said so in the log */
    unsigned                    demoted:1;  /* not the master when last asked */
    unsigned                    cluster:1;  /* said so in the log */
    unsigned                    closing:1;
#if (NGX_SSL)
    ngx_ssl_session_t          *session;    /* the next handshake is a short one */
#endif
    ngx_uint_t                  nconns;
    ngx_seckill_redis_conn_t    conns[NGX_SECKILL_REDIS_CONNECTIONS];
    ngx_seckill_redis_conn_t    subscriber;     /* while it is used */
};


/* conn */

void ngx_seckill_redis_conn_init(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_redis_t *redis);

/* Takes the call.  NGX_BUSY: the breaker is open, the call is still the caller's. */
ngx_int_t ngx_seckill_redis_conn_send(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_call_t *call);

/* The worker ends: closes, and ends what is left. */
void ngx_seckill_redis_conn_exit(ngx_seckill_redis_conn_t *conn);

/* The connection is of no use any more: closes it and tries again later. */
void ngx_seckill_redis_conn_fail(ngx_seckill_redis_conn_t *conn,
    const char *reason);

/* Redis answered the handshake. */
void ngx_seckill_redis_conn_ready(ngx_seckill_redis_conn_t *conn);

/* It can be relied on: forgets its failures, and tells when all are back. */
void ngx_seckill_redis_conn_back(ngx_seckill_redis_conn_t *conn);

/* 1: no new connection is made for what may come later. */
ngx_uint_t ngx_seckill_redis_worker_ends(void);

/* Posts one write for all that waits. */
void ngx_seckill_redis_conn_post(ngx_seckill_redis_conn_t *conn);

/* Lookups are done or under way: goes on with the connection. */
void ngx_seckill_redis_conn_resolved(ngx_seckill_redis_conn_t *conn);


/* There is a connection: greets, or begins TLS. */
void ngx_seckill_redis_conn_connected(ngx_seckill_redis_conn_t *conn);


/* hello */

/* Connected: sends the handshake. */
ngx_int_t ngx_seckill_redis_conn_hello(ngx_seckill_redis_conn_t *conn);


/* endpoint */

/*
 * Sets the address of conn->peer.  NGX_AGAIN: its name is being looked up,
 * conn_resolved() tells.  NGX_ERROR: endpoint.error says why.
 */
ngx_int_t ngx_seckill_redis_endpoint_find(ngx_seckill_redis_conn_t *conn);

/* Stops a lookup. */
void ngx_seckill_redis_endpoint_cancel(ngx_seckill_redis_conn_t *conn);

/* 1: the name has addresses that were not tried yet. */
ngx_uint_t ngx_seckill_redis_endpoint_more(ngx_seckill_redis_conn_t *conn);

/* What became of the address; either way the next connect looks up again. */
void ngx_seckill_redis_endpoint_good(ngx_seckill_redis_conn_t *conn);
void ngx_seckill_redis_endpoint_bad(ngx_seckill_redis_conn_t *conn);

/* Will go to the other one's address, if its name still has it. */
void ngx_seckill_redis_endpoint_follow(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_redis_conn_t *other);

/* 1: both went to one address. */
ngx_uint_t ngx_seckill_redis_endpoint_same(ngx_seckill_redis_conn_t *a,
    ngx_seckill_redis_conn_t *b);


/* master */

/* A call was refused as only a replica does: leaves the node. */
void ngx_seckill_redis_wrong_node(ngx_seckill_redis_conn_t *conn,
    const char *reason);

/* A purchase ran: this is the master. */
void ngx_seckill_redis_right_node(ngx_seckill_redis_conn_t *conn);


/* tls */

#if (NGX_SSL)

/* Begins the handshake, and greets when it is done. */
ngx_int_t ngx_seckill_redis_tls_start(ngx_seckill_redis_conn_t *conn);

/* How many bytes were taken over, maybe to be sent later; or NGX_ERROR. */
ssize_t ngx_seckill_redis_tls_send(ngx_seckill_redis_conn_t *conn,
    struct iovec *iovs, ngx_uint_t niov);

/* 1: the socket was full, and something taken over waits. */
ngx_uint_t ngx_seckill_redis_tls_unsent(ngx_seckill_redis_conn_t *conn);

void ngx_seckill_redis_tls_close(ngx_seckill_redis_conn_t *conn);

/* No short handshake any more. */
void ngx_seckill_redis_tls_forget(ngx_seckill_redis_t *redis);

/* What the core has said of the connection, or else the other text. */
const char *ngx_seckill_redis_tls_reason(ngx_seckill_redis_conn_t *conn,
    const char *other);

#else

#define ngx_seckill_redis_tls_reason(conn, other)  other

#endif


/* io */

void ngx_seckill_redis_conn_read(ngx_event_t *rev);
void ngx_seckill_redis_conn_write(ngx_event_t *wev);

/* Writes what waits.  NGX_AGAIN: the socket is full, the rest follows. */
ngx_int_t ngx_seckill_redis_conn_writev(ngx_seckill_redis_conn_t *conn);


/* subscribe */

/* NGX_OK: it was a message, and is dealt with.  Does not take the reply. */
ngx_int_t ngx_seckill_redis_message(ngx_seckill_redis_t *redis,
    redisReply *reply);

/* The subscriber's connection failed. */
void ngx_seckill_redis_silence(void);


/* call */

/* The next reply of the oldest sent call.  Takes the reply. */
void ngx_seckill_redis_call_reply(ngx_seckill_redis_conn_t *conn,
    redisReply *reply);

/* Ends a call that is in no queue any more and frees it. */
void ngx_seckill_redis_call_end(ngx_seckill_redis_t *redis,
    ngx_seckill_call_t *call, ngx_seckill_end_e end, const char *error);

/* Ends all calls of a queue. */
void ngx_seckill_redis_call_end_all(ngx_seckill_redis_t *redis,
    ngx_queue_t *queue, ngx_seckill_end_e end, const char *error);

/* Ends the calls of a queue that must not run on another connection. */
void ngx_seckill_redis_call_end_bound(ngx_seckill_redis_t *redis,
    ngx_queue_t *queue, const char *error);

/* What Redis means by an error reply, and its kind. */
ngx_seckill_error_e ngx_seckill_redis_error(const redisReply *reply,
    ngx_uint_t *kind);


#endif /* _NGX_SECKILL_REDIS_PRIVATE_H_INCLUDED_ */
