
/*
 * The Redis client of a worker: hiredis' reader and formatter on nginx's own
 * connections.  It knows sockets and calls, never a request.
 *
 * A client belongs to one worker and one address; it has a few connections,
 * each pipelined.  Calls made in one turn of the event loop leave in one write.
 * Every call ends exactly once, through its done().
 */


#ifndef _NGX_SECKILL_REDIS_H_INCLUDED_
#define _NGX_SECKILL_REDIS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_event_connect.h>
#include <hiredis/hiredis.h>

#include "sk_reader.h"
#include "sk_scripts.h"


#define NGX_SECKILL_REDIS_CONNECTIONS  16       /* most per client */
#define NGX_SECKILL_CALL_REPLIES       6        /* most commands of one call */


typedef struct ngx_seckill_redis_s       ngx_seckill_redis_t;
typedef struct ngx_seckill_redis_conn_s  ngx_seckill_redis_conn_t;
typedef struct ngx_seckill_call_s        ngx_seckill_call_t;

typedef void (*ngx_seckill_call_done_pt)(ngx_seckill_call_t *call);

/* a message of a channel; valid during the call only */
typedef void (*ngx_seckill_message_pt)(ngx_seckill_redis_t *redis,
    ngx_str_t *channel, ngx_str_t *text);

/* no message can be relied on any more: Redis is lost, or the worker ends */
typedef void (*ngx_seckill_silence_pt)(void);


/* how a call ended */
typedef enum {
    NGX_SECKILL_ANSWERED = 0,           /* replies[] are Redis' answer, no errors */
    NGX_SECKILL_NOT_RUN,                /* never sent, or refused before it ran */
    NGX_SECKILL_UNKNOWN                 /* sent, and the outcome is not known */
} ngx_seckill_end_e;


/* endings of calls as they are counted: the rows of the table of errors, then */
#define NGX_SECKILL_KIND_ERRORS    16
#define NGX_SECKILL_KIND_NOPERM    6                                 /* its row */
#define NGX_SECKILL_KIND_OTHER     (NGX_SECKILL_KIND_ERRORS)        /* an error without a row */
#define NGX_SECKILL_KIND_LOST      (NGX_SECKILL_KIND_ERRORS + 1)    /* sent, and no answer */
#define NGX_SECKILL_KIND_NOT_SENT  (NGX_SECKILL_KIND_ERRORS + 2)
#define NGX_SECKILL_KINDS          (NGX_SECKILL_KIND_ERRORS + 3)

/* upper bounds of the histograms, in milliseconds; one bucket more has no bound */
#define NGX_SECKILL_BOUNDS         { 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000 }
#define NGX_SECKILL_BUCKETS        11


typedef struct {
    ngx_atomic_t                buckets[NGX_SECKILL_BUCKETS];
    ngx_atomic_t                sum;                /* milliseconds */
} ngx_seckill_histogram_t;


/* counted by all workers, in memory they share */
typedef struct {
    ngx_seckill_histogram_t     calls;              /* answered ones */
    ngx_atomic_t                failed[NGX_SECKILL_KINDS];
} ngx_seckill_redis_count_t;


/* purchases and reads have connections of their own: neither waits for the other */
typedef enum {
    NGX_SECKILL_PURCHASES = 0,
    NGX_SECKILL_READS
} ngx_seckill_lane_e;


/* how to speak TLS, and with whom; of the configuration */
typedef struct {
    ngx_str_t                   ca;     /* empty: the system's */
    ngx_str_t                   cert;   /* ours, or empty */
    ngx_str_t                   key;
    ngx_str_t                   name;   /* of the server; ends with a NUL */
    ngx_uint_t                  verify;
#if (NGX_SSL)
    ngx_ssl_t                   ssl;
#endif
} ngx_seckill_redis_tls_t;


/* what a "seckill_redis" directive says; two equal ones share a client */
typedef struct {
    ngx_str_t                   name;   /* the address as written */
    struct sockaddr            *sockaddr;       /* NULL: "host" is resolved */
    socklen_t                   socklen;
    ngx_str_t                   host;
    in_port_t                   port;
    ngx_uint_t                  db;
    ngx_str_t                   user;
    ngx_str_t                   password;
    ngx_seckill_redis_tls_t    *tls;    /* NULL: without TLS */
} ngx_seckill_redis_addr_t;


typedef struct {
    ngx_uint_t                  connections;
    ngx_uint_t                  max_pending;        /* calls */
    ngx_msec_t                  connect_timeout;    /* up to the script's load */
    ngx_resolver_t             *resolver;       /* NULL: not a host name */
    void                       *owner;          /* of what is pointed to: a pool */
} ngx_seckill_redis_settings_t;


struct ngx_seckill_call_s {
    /* the caller's; done is NULL when the caller has gone */
    ngx_seckill_call_done_pt    done;
    void                       *data;
    ngx_msec_t                  deadline;           /* in ngx_current_msec */

    /*
     * Of the connection that answered.  A new call with it runs there or not at
     * all: a cursor is of no use to another server.  0: any connection.
     */
    uint64_t                    session;

    /* the answer, valid in done() only */
    ngx_seckill_end_e           end;
    redisReply                 *replies[NGX_SECKILL_CALL_REPLIES];
    const char                 *error;              /* the reason, when not answered */

    /* the Redis side's */
    ngx_msec_t                  created;
    ngx_uint_t                  kind;               /* of the failure */
    ngx_queue_t                 queue;
    const sk_script_t          *script;             /* of an EVALSHA */
    ngx_uint_t                  expected;           /* replies */
    ngx_uint_t                  received;
    char                       *buf;
    size_t                      len;
    size_t                      written;
    unsigned                    resent:1;
    unsigned                    internal:1;         /* handshake, script load */
};


/*
 * The worker's client for the address, made on first use and kept until the
 * worker ends; it points into the configuration only where settings->owner is
 * set.  NULL: no memory.
 */
ngx_seckill_redis_t *ngx_seckill_redis_get(ngx_seckill_redis_addr_t *addr,
    ngx_seckill_redis_settings_t *settings);

/*
 * The owner is about to go: closes the clients that point into it.  A worker
 * has one configuration for its life, but with "master_process off" it goes on.
 */
void ngx_seckill_redis_forget(void *owner);

/* From now on the worker counts its calls there. */
void ngx_seckill_redis_count(ngx_seckill_redis_count_t *count);

/* The name of a kind of failure: "oom", "lost". */
const char *ngx_seckill_redis_kind(ngx_uint_t kind);

void ngx_seckill_histogram_add(ngx_seckill_histogram_t *histogram,
    ngx_msec_t value);

/* 1 when every connection of every client of the worker is ready. */
ngx_uint_t ngx_seckill_redis_up(void);

/* Calls of the client that have not ended, at most settings.max_pending. */
ngx_uint_t ngx_seckill_redis_pending(ngx_seckill_redis_t *redis);

/* Closes every connection of the worker; calls in flight end first. */
void ngx_seckill_redis_exit(void);

/*
 * Hands a call over.  It is owned by the Redis side from here, whatever is
 * returned: NGX_OK, or NGX_BUSY when it has already ended as "not run" (too many
 * pending, or Redis is known to be away) and done() was not called.
 */
ngx_int_t ngx_seckill_redis_send(ngx_seckill_redis_t *redis,
    ngx_seckill_lane_e lane, ngx_uint_t hash, ngx_seckill_call_t *call);


/*
 * Subscribes to a channel, on a connection of its own that is made on first
 * use.  done() tells when messages come for sure.  NGX_BUSY as above.
 */
ngx_int_t ngx_seckill_redis_subscribe(ngx_seckill_redis_t *redis,
    ngx_str_t *channel, ngx_seckill_call_t *call);

/* Nobody listens any more. */
void ngx_seckill_redis_unsubscribe(ngx_seckill_redis_t *redis,
    ngx_str_t *channel);

/* Where the messages of all of the worker's subscriptions go. */
void ngx_seckill_redis_listen(ngx_seckill_message_pt message,
    ngx_seckill_silence_pt silence);


/* Returns NULL when out of memory.  Until it is sent the caller owns it. */
ngx_seckill_call_t *ngx_seckill_call_create(ngx_seckill_call_done_pt done,
    void *data, ngx_msec_t deadline);

/* Appends a command to the call; each gives one reply. */
ngx_int_t ngx_seckill_call_command(ngx_seckill_call_t *call, ngx_uint_t argc,
    const char **argv, const size_t *lens);

/* The caller lost interest; the reply is still read and dropped. */
void ngx_seckill_call_detach(ngx_seckill_call_t *call);

void ngx_seckill_call_free(ngx_seckill_call_t *call);


#endif /* _NGX_SECKILL_REDIS_H_INCLUDED_ */
