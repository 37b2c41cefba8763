
/*
 * Waiting for a result: long poll and server-sent events.
 */


#ifndef _NGX_HTTP_SECKILL_WAIT_H_INCLUDED_
#define _NGX_HTTP_SECKILL_WAIT_H_INCLUDED_


#include "ngx_http_seckill.h"


/*
 * Requests of one user that wait for one result, in a worker: so many tabs are
 * enough, and nobody holds all the places alone.
 */
#define NGX_HTTP_SECKILL_USER_WAITERS  8


typedef struct {
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
} ngx_http_seckill_hub_t;


/* a request that is to be told of its result */
struct ngx_http_seckill_waiter_s {
    ngx_rbtree_node_t         node;         /* in hub->waiters, by user */
    ngx_http_seckill_ctx_t   *ctx;
    ngx_http_seckill_hub_t   *hub;          /* NULL: has left */
    ngx_msec_t                until;        /* of a long poll */
    ngx_event_t               timer;        /* its end, or the next heartbeat */
    sk_result_t               result;       /* pushed */
    ngx_buf_t                 beat;         /* the heartbeat of a stream */
    unsigned                  pushed:1;
    unsigned                  silent:1;     /* no push can be relied on */
    unsigned                  stream:1;     /* server-sent events */
    unsigned                  opened:1;     /* headers of the stream are out */
};


/* A message, or the end of all messages: goes on with it, if it holds. */
void ngx_http_seckill_waiter_wake(ngx_http_seckill_waiter_t *waiter);

/* The client has left, or its answer is known. */
void ngx_http_seckill_waiter_leave(ngx_http_seckill_ctx_t *ctx);


/* ngx_http_seckill_hub.c */

/* The hub of the activity; NULL: messages can't be had now. */
ngx_http_seckill_hub_t *ngx_http_seckill_hub(ngx_http_seckill_ctx_t *ctx);

/* The user has as many waiters there as may be. */
ngx_uint_t ngx_http_seckill_hub_crowded(ngx_http_seckill_hub_t *hub,
    uint64_t user);

/* A waiter has left: frees a hub that nobody uses any more. */
void ngx_http_seckill_hub_release(ngx_http_seckill_hub_t *hub);


/* ngx_http_seckill_stream.c */

/* Opens the stream and says that the purchase is queueing. */
ngx_int_t ngx_http_seckill_stream_open(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* The client can take more: r->write_event_handler of an open stream. */
void ngx_http_seckill_stream_writer(ngx_http_request_t *r);

/* A comment that keeps proxies from closing an idle connection. */
ngx_int_t ngx_http_seckill_stream_heartbeat(ngx_http_request_t *r,
    ngx_http_seckill_waiter_t *waiter);

/* The verdict as the last event. */
ngx_int_t ngx_http_seckill_stream_end(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);


#endif /* _NGX_HTTP_SECKILL_WAIT_H_INCLUDED_ */
