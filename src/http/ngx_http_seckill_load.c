
/*
 * Loads facts and control from Redis into the zone.
 */


#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_facts.h"
#include "ngx_http_seckill_load.h"


#define NGX_HTTP_SECKILL_LOAD_BUCKETS  256      /* a power of 2 */

/* ids that this node never heard of: so many a second and worker are asked for */
#define NGX_HTTP_SECKILL_LOAD_STRANGERS  1000


struct ngx_http_seckill_load_s {
    ngx_queue_t                   queue;        /* in its bucket */
    ngx_queue_t                   waiters;      /* of ctx->queue */
    ngx_http_seckill_loc_conf_t  *conf;
    uint64_t                      activity;
    uint64_t                      control_rev;
    ngx_msec_t                    asked;
    ngx_uint_t                    quiet;        /* for the journal, not for a request */
};


static ngx_http_seckill_load_t *ngx_http_seckill_load_start(
    ngx_http_seckill_ctx_t *ctx, uint64_t activity);
static ngx_queue_t *ngx_http_seckill_load_bucket(uint64_t activity);
static ngx_uint_t ngx_http_seckill_load_crowded(void);
static ngx_seckill_call_t *ngx_http_seckill_load_call(
    ngx_http_seckill_load_t *load);
static void ngx_http_seckill_load_broken(ngx_http_seckill_load_t *load,
    ngx_http_seckill_facts_t *facts);
static void ngx_http_seckill_load_done(ngx_seckill_call_t *call);


/* loads in flight of this worker */
static ngx_queue_t  ngx_http_seckill_loads[NGX_HTTP_SECKILL_LOAD_BUCKETS];


ngx_int_t
ngx_http_seckill_load_wait(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx,
    uint64_t activity)
{
    ngx_int_t                 rc;
    ngx_http_seckill_load_t  *load;

    load = ngx_http_seckill_load_start(ctx, activity);

    if (load == NULL) {
        return ngx_http_seckill_say(ctx, SK_BUSY);
    }

    rc = ngx_http_seckill_wait(r, ctx, NGX_HTTP_SECKILL_WAIT_LOAD);

    if (rc == NGX_AGAIN) {
        /* from here the request's time runs */
        (void) ngx_http_seckill_deadline(ctx);
        ngx_queue_insert_tail(&load->waiters, &ctx->queue);
    }

    return rc;
}


void
ngx_http_seckill_load_again(ngx_http_seckill_ctx_t *ctx, uint64_t activity)
{
    /* when it can't be started, the record grows old and others wait for one */
    (void) ngx_http_seckill_load_start(ctx, activity);
}


static ngx_queue_t *
ngx_http_seckill_load_bucket(uint64_t activity)
{
    ngx_uint_t  i;

    if (ngx_http_seckill_loads[0].next == NULL) {
        for (i = 0; i < NGX_HTTP_SECKILL_LOAD_BUCKETS; i++) {
            ngx_queue_init(&ngx_http_seckill_loads[i]);
        }
    }

    return &ngx_http_seckill_loads[activity
                                   & (NGX_HTTP_SECKILL_LOAD_BUCKETS - 1)];
}


/* made-up ids must not become a crowd of reads: Redis has a sale to run */

static ngx_uint_t
ngx_http_seckill_load_crowded(void)
{
    static time_t      second;
    static ngx_uint_t  count;

    if (second != ngx_time()) {
        second = ngx_time();
        count = 0;
    }

    return ++count > NGX_HTTP_SECKILL_LOAD_STRANGERS;
}


/* NULL: out of memory, Redis is away or overloaded, or too many unknown ids */

static ngx_http_seckill_load_t *
ngx_http_seckill_load_start(ngx_http_seckill_ctx_t *ctx, uint64_t activity)
{
    ngx_queue_t              *q, *bucket;
    ngx_seckill_call_t       *call;
    ngx_seckill_redis_t      *redis;
    ngx_http_seckill_load_t  *load;

    bucket = ngx_http_seckill_load_bucket(activity);

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        load = ngx_queue_data(q, ngx_http_seckill_load_t, queue);

        if (load->activity == activity
            && load->conf->source == ctx->conf->source
            && load->conf->shm_zone == ctx->conf->shm_zone
            && load->control_rev == (activity ? ctx->control.rev : 0))
        {
            return load;
        }
    }

    if (activity && !ctx->facts.known && ngx_http_seckill_load_crowded()) {
        return NULL;
    }

    redis = ngx_http_seckill_client(ctx->conf);
    if (redis == NULL) {
        return NULL;
    }

    load = ngx_alloc(sizeof(ngx_http_seckill_load_t), ngx_cycle->log);
    if (load == NULL) {
        return NULL;
    }

    load->conf = ctx->conf;
    load->activity = activity;
    load->control_rev = activity ? ctx->control.rev : 0;
    load->asked = ngx_current_msec;
    load->quiet = (ctx->request == NULL);
    ngx_queue_init(&load->waiters);

    call = ngx_http_seckill_load_call(load);
    if (call == NULL) {
        ngx_free(load);
        return NULL;
    }

    if (ngx_seckill_redis_send(redis, NGX_SECKILL_READS, 0, call) != NGX_OK) {
        ngx_free(load);
        return NULL;
    }

    ngx_queue_insert_tail(bucket, &load->queue);

    return load;
}


static ngx_seckill_call_t *
ngx_http_seckill_load_call(ngx_http_seckill_load_t *load)
{
    ngx_msec_t  deadline;

    deadline = load->asked + load->conf->redis_timeout;

    if (load->activity) {
        return ngx_http_seckill_facts_question(load->conf, load->activity,
                                               ngx_http_seckill_load_done,
                                               load, deadline);
    }

    return ngx_http_seckill_control_question(load->conf,
                                             ngx_http_seckill_load_done,
                                             load, deadline);
}


/* once for each change: nothing is sold, and somebody has to restore it */

static void
ngx_http_seckill_load_broken(ngx_http_seckill_load_t *load,
    ngx_http_seckill_facts_t *facts)
{
    if (facts->broken && !facts->damaged && !facts->settled) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "seckill activity %uL is not whole in redis: %s",
                      load->activity,
                      facts->lost ? (u_char *) "lost" : facts->missing);
    }
}


static void
ngx_http_seckill_load_done(ngx_seckill_call_t *call)
{
    ngx_int_t                    rc;
    ngx_queue_t                 *q;
    ngx_http_seckill_ctx_t      *ctx;
    ngx_http_seckill_load_t     *load;
    ngx_http_seckill_facts_t     facts;
    ngx_http_seckill_control_t   control;

    load = call->data;

    ngx_memzero(&facts, sizeof(ngx_http_seckill_facts_t));
    ngx_memzero(&control, sizeof(ngx_http_seckill_control_t));

    ngx_queue_remove(&load->queue);
    ngx_http_seckill_gauge_redis(load->conf);

    if (load->activity) {
        rc = ngx_http_seckill_facts_read(call, load->activity, &facts);

        if (rc == NGX_OK) {
            facts.control_rev = load->control_rev;
            ngx_http_seckill_zone_set_facts(load->conf, load->activity, &facts,
                                            load->asked);
            ngx_http_seckill_load_broken(load, &facts);
        }

    } else {
        rc = ngx_http_seckill_control_read(call, load->asked, &control);

        /* nobody has asked yet: "not there" would turn away whoever does next */

        if (rc == NGX_OK
            && (control.known || !load->quiet
                || !ngx_queue_empty(&load->waiters)))
        {
            ngx_http_seckill_zone_set_control(load->conf, &control,
                                              load->asked);
        }
    }

    while (!ngx_queue_empty(&load->waiters)) {
        q = ngx_queue_head(&load->waiters);
        ngx_queue_remove(q);

        ctx = ngx_queue_data(q, ngx_http_seckill_ctx_t, queue);
        ctx->answered = 1;

        if (rc != NGX_OK) {
            ctx->failed = 1;

        } else if (load->activity) {
            ctx->facts = facts;

        } else {
            ctx->control = control;
        }

        ngx_http_seckill_resume(ctx);
    }

    ngx_free(load);
}
