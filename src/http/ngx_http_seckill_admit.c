
/*
 * Gathers purchases into batches: at most seckill_batch in one call of
 * admit.lua, one call in flight per worker and activity while the next one
 * gathers.  The first purchase of a turn waits for the rest of the turn.
 *
 * A purchase that left for Redis ends with the script's verdict, or as unknown;
 * one that did not ends as busy, and its limit is given back.
 */


#include "ngx_http_seckill_admit.h"
#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_journal.h"


#define NGX_HTTP_SECKILL_LANES  256             /* buckets, a power of 2 */


static ngx_http_seckill_lane_t *ngx_http_seckill_lane(
    ngx_http_seckill_ctx_t *ctx);
static void ngx_http_seckill_lane_turn(ngx_event_t *ev);
static void ngx_http_seckill_lane_next(ngx_http_seckill_lane_t *lane);
static void ngx_http_seckill_lane_free(ngx_http_seckill_lane_t *lane);
static void ngx_http_seckill_lane_expire(ngx_http_seckill_lane_t *lane,
    ngx_uint_t all);
static ngx_http_seckill_batch_t *ngx_http_seckill_batch_take(
    ngx_http_seckill_lane_t *lane);
static ngx_int_t ngx_http_seckill_batch_send(ngx_http_seckill_batch_t *batch);
static void ngx_http_seckill_batch_done(ngx_seckill_call_t *call);
static void ngx_http_seckill_batch_refused(ngx_http_seckill_batch_t *batch,
    ngx_seckill_call_t *call);
static void ngx_http_seckill_batch_resume(ngx_http_seckill_batch_t *batch,
    sk_verdict_e verdict);


/* lanes of this worker that have purchases */
static ngx_queue_t  ngx_http_seckill_lanes[NGX_HTTP_SECKILL_LANES];

/* purchases that wait in lanes and batches of this worker */
static ngx_uint_t   ngx_http_seckill_pending;


ngx_int_t
ngx_http_seckill_admit_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t                 rc;
    ngx_http_seckill_lane_t  *lane;

    if (ctx->answered) {
        ctx->answered = 0;

        if (ctx->verdict == SK_BUSY) {
            ngx_http_seckill_limit_refund(ctx);
        }

        if (ctx->remembered && ctx->verdict != SK_ACCEPTED
            && ctx->verdict != SK_LIMITED)
        {
            /* the order is known: Redis may have lost the buyer, or be away */
            ctx->verdict = SK_REPEAT;
        }

        /* a repeat goes on to what became of the purchase */
        return ctx->verdict == SK_REPEAT ? NGX_OK : NGX_DONE;
    }

    if (ngx_http_seckill_pending >= ctx->conf->redis_settings.max_pending) {
        ngx_http_seckill_limit_refund(ctx);
        return ngx_http_seckill_say(ctx, SK_BUSY);
    }

    lane = ngx_http_seckill_lane(ctx);
    if (lane == NULL) {
        return NGX_ERROR;
    }

    rc = ngx_http_seckill_wait(r, ctx, NGX_HTTP_SECKILL_WAIT_LANE);

    if (rc == NGX_AGAIN) {
        ctx->deadline = ngx_http_seckill_deadline(ctx);
        ngx_queue_insert_tail(&lane->gathering, &ctx->queue);
        ngx_http_seckill_pending++;
    }

    if (lane->batch == NULL) {
        ngx_post_event(&lane->turn, &ngx_posted_events);
    }

    return rc;
}


ngx_uint_t
ngx_http_seckill_admit_pending(void)
{
    return ngx_http_seckill_pending;
}


static ngx_http_seckill_lane_t *
ngx_http_seckill_lane(ngx_http_seckill_ctx_t *ctx)
{
    ngx_uint_t                i;
    ngx_queue_t              *q, *bucket;
    ngx_http_seckill_lane_t  *lane;

    if (ngx_http_seckill_lanes[0].next == NULL) {
        for (i = 0; i < NGX_HTTP_SECKILL_LANES; i++) {
            ngx_queue_init(&ngx_http_seckill_lanes[i]);
        }
    }

    bucket = &ngx_http_seckill_lanes[ctx->activity
                                     & (NGX_HTTP_SECKILL_LANES - 1)];

    for (q = ngx_queue_head(bucket);
         q != ngx_queue_sentinel(bucket);
         q = ngx_queue_next(q))
    {
        lane = ngx_queue_data(q, ngx_http_seckill_lane_t, queue);

        if (lane->activity == ctx->activity && lane->conf == ctx->conf) {
            return lane;
        }
    }

    lane = ngx_calloc(sizeof(ngx_http_seckill_lane_t), ngx_cycle->log);
    if (lane == NULL) {
        return NULL;
    }

    lane->activity = ctx->activity;
    lane->conf = ctx->conf;
    lane->turn.handler = ngx_http_seckill_lane_turn;
    lane->turn.data = lane;
    lane->turn.log = ngx_cycle->log;

    ngx_queue_init(&lane->gathering);
    ngx_queue_insert_tail(bucket, &lane->queue);

    return lane;
}


static void
ngx_http_seckill_lane_turn(ngx_event_t *ev)
{
    ngx_http_seckill_lane_next(ev->data);
}


/* sends the next batch, when none is in flight; the lane may be gone afterwards */

static void
ngx_http_seckill_lane_next(ngx_http_seckill_lane_t *lane)
{
    ngx_http_seckill_batch_t  *batch;

    ngx_http_seckill_lane_expire(lane, 0);

    while (lane->batch == NULL && !ngx_queue_empty(&lane->gathering)) {

        batch = ngx_http_seckill_batch_take(lane);

        if (batch == NULL) {
            /* out of memory: nobody is left waiting */
            ngx_http_seckill_lane_expire(lane, 1);
            break;
        }

        /* in flight from here: what is resumed below must not start another */
        lane->batch = batch;

        if (ngx_http_seckill_batch_send(batch) == NGX_OK) {
            return;
        }

        ngx_http_seckill_batch_resume(batch, SK_BUSY);
        ngx_http_seckill_journal_done(batch);
        ngx_free(batch);
        lane->batch = NULL;
    }

    if (lane->batch == NULL && ngx_queue_empty(&lane->gathering)) {
        ngx_http_seckill_lane_free(lane);
    }
}


static void
ngx_http_seckill_lane_free(ngx_http_seckill_lane_t *lane)
{
    if (lane->turn.posted) {
        ngx_delete_posted_event(&lane->turn);
    }

    ngx_queue_remove(&lane->queue);
    ngx_free(lane);
}


/*
 * Purchases that have used up most of their time while others were in flight:
 * Redis is too slow for the crowd, and these surely did not run.
 */

static void
ngx_http_seckill_lane_expire(ngx_http_seckill_lane_t *lane, ngx_uint_t all)
{
    ngx_msec_t               quarter;
    ngx_queue_t              expired, *q;
    ngx_http_seckill_ctx_t  *ctx;

    quarter = lane->conf->redis_timeout / 4;

    ngx_queue_init(&expired);

    while (!ngx_queue_empty(&lane->gathering)) {
        q = ngx_queue_head(&lane->gathering);
        ctx = ngx_queue_data(q, ngx_http_seckill_ctx_t, queue);

        if (!all
            && (ngx_msec_int_t) (ctx->deadline - ngx_current_msec)
               > (ngx_msec_int_t) quarter)
        {
            break;
        }

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&expired, q);
    }

    while (!ngx_queue_empty(&expired)) {
        q = ngx_queue_head(&expired);
        ngx_queue_remove(q);

        ctx = ngx_queue_data(q, ngx_http_seckill_ctx_t, queue);
        ctx->answered = 1;
        ctx->verdict = SK_BUSY;
        ngx_http_seckill_pending--;

        ngx_http_seckill_resume(ctx);
    }
}


void
ngx_http_seckill_lane_leave(ngx_http_seckill_ctx_t *ctx)
{
    /* an empty lane is freed by its next turn or batch */

    ngx_queue_remove(&ctx->queue);
    ngx_http_seckill_pending--;
}


void
ngx_http_seckill_batch_leave(ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_seckill_journal_keep(ctx);

    ctx->batch->requests[ctx->index] = NULL;
    ngx_http_seckill_pending--;
}


static ngx_http_seckill_batch_t *
ngx_http_seckill_batch_take(ngx_http_seckill_lane_t *lane)
{
    ngx_uint_t                 max;
    ngx_queue_t               *q;
    ngx_http_seckill_ctx_t    *ctx;
    ngx_http_seckill_batch_t  *batch;

    max = lane->conf->batch;

    batch = ngx_alloc(sizeof(ngx_http_seckill_batch_t)
                      + max * sizeof(ngx_http_seckill_ctx_t *),
                      ngx_cycle->log);
    if (batch == NULL) {
        return NULL;
    }

    batch->lane = lane;
    batch->n = 0;
    batch->gone = NULL;

    ngx_http_seckill_gauge_pending(lane->conf, ngx_http_seckill_pending);

    while (batch->n < max && !ngx_queue_empty(&lane->gathering)) {
        q = ngx_queue_head(&lane->gathering);

        /* the analyzer forgets what linked the queue: NOLINTNEXTLINE */
        ngx_queue_remove(q);

        ctx = ngx_queue_data(q, ngx_http_seckill_ctx_t, queue);
        ctx->wait = NGX_HTTP_SECKILL_WAIT_BATCH;
        ctx->batch = batch;
        ctx->index = batch->n;

        batch->requests[batch->n++] = ctx;
        batch->limit = ctx->limit;
    }

    ngx_http_seckill_journal_take(batch, batch->requests[batch->n - 1]);

    return batch;
}


static ngx_int_t
ngx_http_seckill_batch_send(ngx_http_seckill_batch_t *batch)
{
    ngx_seckill_call_t           *call;
    ngx_seckill_redis_t          *redis;
    ngx_http_seckill_loc_conf_t  *conf;

    conf = batch->lane->conf;

    redis = ngx_http_seckill_client(conf);
    if (redis == NULL) {
        return NGX_ERROR;
    }

    /* the oldest purchase, which is the first, has waited longest */
    call = ngx_http_seckill_admit_question(batch,
                                           ngx_http_seckill_batch_done,
                                           batch->requests[0]->deadline);
    if (call == NULL) {
        return NGX_ERROR;
    }

    ngx_http_seckill_count_batch(conf, batch->n);

    return ngx_seckill_redis_send(redis, NGX_SECKILL_PURCHASES,
                                  (ngx_uint_t) batch->lane->activity, call);
}


static void
ngx_http_seckill_batch_done(ngx_seckill_call_t *call)
{
    sk_verdict_e               verdict;
    ngx_http_seckill_lane_t   *lane;
    ngx_http_seckill_batch_t  *batch;

    batch = call->data;
    lane = batch->lane;

    verdict = SK_VERDICTS;              /* each its own */

    if (call->end != NGX_SECKILL_ANSWERED) {
        ngx_http_seckill_batch_refused(batch, call);
        verdict = ngx_http_seckill_end_verdict(call->end);

    } else if (ngx_http_seckill_admit_verdicts(batch, call->replies[0])
               != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "seckill script \"admit\" gave an answer that does not "
                      "fit its question");
        verdict = SK_UNKNOWN;
    }

    if (verdict == SK_UNKNOWN) {
        ngx_http_seckill_journal_unknown(batch);
    }

    /* lane->batch is still set: nobody starts another batch meanwhile */

    ngx_http_seckill_batch_resume(batch, verdict);
    ngx_http_seckill_journal_done(batch);
    ngx_free(batch);

    ngx_http_seckill_gauge_pending(lane->conf, ngx_http_seckill_pending);

    lane->batch = NULL;
    ngx_http_seckill_lane_next(lane);
}


/* a refusal of the script is an alarm, but not one per batch */

static void
ngx_http_seckill_batch_refused(ngx_http_seckill_batch_t *batch,
    ngx_seckill_call_t *call)
{
    static time_t  said;

    if (call->received == 0 || said == ngx_time()) {
        /* the connection was lost, and the client has said so */
        return;
    }

    said = ngx_time();

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "seckill purchases of activity %uL refused by redis: %s",
                  batch->lane->activity, call->error);
}


/* SK_VERDICTS: each request has its own verdict already */

static void
ngx_http_seckill_batch_resume(ngx_http_seckill_batch_t *batch,
    sk_verdict_e verdict)
{
    ngx_uint_t               i;
    ngx_http_seckill_ctx_t  *ctx;

    for (i = 0; i < batch->n; i++) {
        ctx = batch->requests[i];

        if (ctx == NULL) {
            continue;
        }

        ngx_http_seckill_pending--;
        batch->requests[i] = NULL;

        ctx->answered = 1;

        if (verdict != SK_VERDICTS) {
            ctx->verdict = verdict;
        }

        ngx_http_seckill_resume(ctx);
    }
}
