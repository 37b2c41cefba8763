
/*
 * Facts of activities and control in the zone, how fresh they are, and the two
 * checks that need nothing else: the switch and the window.
 *
 * A record is fresh for seckill_refresh since Redis was asked; in its last
 * quarter one caller is told to load it again while it still serves.
 */


#include "ngx_http_seckill_load.h"
#include "ngx_http_seckill_sold_out.h"


/* one id of no activity is remembered per so many bytes of the zone */
#define NGX_HTTP_SECKILL_NEGATIVE_BYTES  512


typedef struct {
    ngx_http_seckill_record_t    record;
    ngx_msec_t                   asked;
    ngx_msec_t                   claimed;   /* somebody loads it since */
    ngx_http_seckill_control_t   control;
} ngx_http_seckill_control_record_t;




typedef struct {
    ngx_http_seckill_record_t    record;
    ngx_msec_t                   asked;
    uint64_t                     control_rev;
} ngx_http_seckill_negative_t;


static void ngx_http_seckill_control_keyless(ngx_http_request_t *r);
static ngx_int_t ngx_http_seckill_refuse(ngx_http_seckill_ctx_t *ctx,
    sk_verdict_e verdict);
static ngx_int_t ngx_http_seckill_expired(ngx_http_seckill_ctx_t *ctx);
static ngx_http_seckill_freshness_e ngx_http_seckill_freshness(
    ngx_http_seckill_loc_conf_t *conf, ngx_msec_t asked, ngx_msec_t *claimed);
static ngx_int_t ngx_http_seckill_activity_negative_locked(
    ngx_http_seckill_shm_t *shm, ngx_http_seckill_loc_conf_t *conf,
    ngx_http_seckill_key_t *key, uint64_t control_rev);
static void ngx_http_seckill_activity_set_negative_locked(
    ngx_http_seckill_loc_conf_t *conf, ngx_http_seckill_shm_t *shm,
    ngx_http_seckill_key_t *key, ngx_http_seckill_facts_t *facts,
    ngx_msec_t asked);


ngx_int_t
ngx_http_seckill_control_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_seckill_freshness_e  fresh;

    if (ctx->buy && !ctx->conf->open) {
        return ngx_http_seckill_say(ctx, SK_CLOSED);
    }

    if (ctx->answered) {
        ctx->answered = 0;

        if (ctx->failed) {
            return ngx_http_seckill_say(ctx, SK_BUSY);
        }

    } else {
        fresh = ngx_http_seckill_zone_control(ctx->conf, &ctx->control);

        if (fresh == NGX_HTTP_SECKILL_MISSING) {
            return ngx_http_seckill_load_wait(r, ctx, 0);
        }

        if (fresh == NGX_HTTP_SECKILL_AGING) {
            ngx_http_seckill_load_again(ctx, 0);
        }
    }

    if (!ctx->control.known) {
        /* Redis has lost its data: nothing is sold, nobody is told "no" */
        return ngx_http_seckill_say(ctx, SK_BUSY);
    }

    if (ctx->buy && ctx->control.closed) {
        return ngx_http_seckill_say(ctx, SK_CLOSED);
    }

    if (ctx->buy && ctx->conf->queue_token == NULL && ctx->control.nkeys == 0) {
        ngx_http_seckill_control_keyless(r);
        return ngx_http_seckill_say(ctx, SK_BUSY);
    }

    return NGX_OK;
}


/* no buyer could be given a queue_token, so nothing is sold */

static void
ngx_http_seckill_control_keyless(ngx_http_request_t *r)
{
    static time_t  said;

    if (said != ngx_time()) {
        said = ngx_time();
        ngx_log_error(NGX_LOG_ERR, r->connection->log, 0, "seckill has no key "
                      "for queue tokens, preheat makes one");
    }
}


ngx_int_t
ngx_http_seckill_facts_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_seckill_freshness_e  fresh;

    if (ctx->answered) {
        ctx->answered = 0;

        if (ctx->failed) {
            return ngx_http_seckill_say(ctx, SK_BUSY);
        }

    } else {
        fresh = ngx_http_seckill_zone_facts(ctx->conf, ctx->activity,
                                            ctx->control.rev, &ctx->facts);

        if (fresh == NGX_HTTP_SECKILL_MISSING) {
            return ngx_http_seckill_load_wait(r, ctx, ctx->activity);
        }

        if (fresh == NGX_HTTP_SECKILL_AGING) {
            ngx_http_seckill_load_again(ctx, ctx->activity);
        }
    }

    if (!ctx->facts.known && !ctx->facts.vanished) {
        return ngx_http_seckill_say(ctx, SK_UNKNOWN_ACTIVITY);
    }

    if (!ctx->facts.known || ctx->facts.damaged || ctx->facts.lost) {
        /* nothing is sold, and nobody is told "no" */
        return ngx_http_seckill_refuse(ctx, SK_BUSY);
    }

    return NGX_OK;
}


/* for all but those whose order this node knows: user.c finds out */

static ngx_int_t
ngx_http_seckill_refuse(ngx_http_seckill_ctx_t *ctx, sk_verdict_e verdict)
{
    if (!ctx->buy) {
        return ngx_http_seckill_say(ctx, verdict);
    }

    ctx->refusal = verdict;

    return NGX_OK;
}


/*
 * Of which generation is the sale that a result is asked of?  A remembered
 * order is only good for its own.  Without an answer the question goes on: what
 * Redis says next decides.
 */

ngx_int_t
ngx_http_seckill_generation_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    ngx_int_t                     rc;
    ngx_http_seckill_freshness_e  fresh;

    if (ctx->answered) {
        ctx->answered = 0;
        ctx->told = !ctx->failed;
        return ngx_http_seckill_expired(ctx);
    }

    fresh = ngx_http_seckill_zone_facts(ctx->conf, ctx->activity,
                                        ctx->control.rev, &ctx->facts);

    if (fresh == NGX_HTTP_SECKILL_MISSING) {
        rc = ngx_http_seckill_load_wait(r, ctx, ctx->activity);

        if (rc == NGX_DONE) {
            ctx->verdict = SK_VERDICTS;
            rc = NGX_OK;
        }

        return rc;
    }

    if (fresh == NGX_HTTP_SECKILL_AGING) {
        ngx_http_seckill_load_again(ctx, ctx->activity);
    }

    ctx->told = 1;

    return ngx_http_seckill_expired(ctx);
}


/* a queue_token is good for as long as the facts of its sale are there */

static ngx_int_t
ngx_http_seckill_expired(ngx_http_seckill_ctx_t *ctx)
{
    if (ctx->ticket && ctx->told && !ctx->facts.known && !ctx->facts.vanished) {
        return ngx_http_seckill_say(ctx, SK_UNAUTHORIZED);
    }

    return NGX_OK;
}


/*
 * Only what is certain: near the start and the end Redis decides.  Whoever
 * comes after the end may have bought: the step "sold out" knows.
 */

ngx_int_t
ngx_http_seckill_window_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    int64_t                    latest;
    ngx_http_seckill_facts_t  *facts;

    facts = &ctx->facts;

    if (ctx->refusal != SK_VERDICTS) {
        return NGX_OK;
    }

    if (facts->settled) {
        /* its keys have expired, or will: the facts outlive them */
        return facts->whole ? NGX_OK : ngx_http_seckill_refuse(ctx, SK_ENDED);
    }

    if (facts->closed && !facts->paused) {
        return ngx_http_seckill_say(ctx, SK_CLOSED);
    }

    if (!facts->whole) {
        return ngx_http_seckill_refuse(ctx, SK_BUSY);
    }

    if (facts->paused) {
        return ngx_http_seckill_say(ctx, SK_CLOSED);
    }

    latest = (int64_t) ngx_current_msec + ctx->control.clock_max
             + NGX_HTTP_SECKILL_CLOCK_SLACK;

    if (latest < (int64_t) facts->start_ms) {
        return ngx_http_seckill_say(ctx, SK_NOT_STARTED);
    }

    return NGX_OK;
}


uint64_t
ngx_http_seckill_now_ms(ngx_http_seckill_ctx_t *ctx)
{
    ngx_time_t  *tp;

    if (ctx->redis_ms) {
        return ctx->redis_ms;
    }

    if (ctx->control.known) {
        return (uint64_t) ((int64_t) ngx_current_msec + ctx->control.clock);
    }

    tp = ngx_timeofday();

    return (uint64_t) tp->sec * 1000 + tp->msec;
}


static ngx_http_seckill_freshness_e
ngx_http_seckill_freshness(ngx_http_seckill_loc_conf_t *conf, ngx_msec_t asked,
    ngx_msec_t *claimed)
{
    ngx_msec_t  age;

    age = ngx_current_msec - asked;

    if ((ngx_msec_int_t) age < 0) {
        /* asked by a worker whose clock is a little ahead */
        return NGX_HTTP_SECKILL_FRESH;
    }

    if (age >= conf->refresh) {
        return NGX_HTTP_SECKILL_MISSING;
    }

    if (age >= conf->refresh - conf->refresh / 4
        && ngx_current_msec - *claimed >= conf->redis_timeout)
    {
        *claimed = ngx_current_msec;
        return NGX_HTTP_SECKILL_AGING;
    }

    return NGX_HTTP_SECKILL_FRESH;
}


ngx_http_seckill_freshness_e
ngx_http_seckill_zone_control(ngx_http_seckill_loc_conf_t *conf,
    ngx_http_seckill_control_t *control)
{
    ngx_http_seckill_key_t              key;
    ngx_http_seckill_shm_t             *shm;
    ngx_http_seckill_freshness_e        fresh;
    ngx_http_seckill_control_record_t  *record;

    fresh = NGX_HTTP_SECKILL_MISSING;

    ngx_http_seckill_key_set(&key, conf->source, 0, 0);

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);

    record = (ngx_http_seckill_control_record_t *)
             ngx_http_seckill_record_find_locked(
                 &shm->tables[NGX_HTTP_SECKILL_FACTS], &key);

    if (record) {
        fresh = ngx_http_seckill_freshness(conf, record->asked,
                                           &record->claimed);
        *control = record->control;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);

    return fresh;
}


void
ngx_http_seckill_zone_control_locked(ngx_http_seckill_shm_t *shm,
    uint32_t source, ngx_http_seckill_control_t *control)
{
    ngx_http_seckill_key_t              key;
    ngx_http_seckill_control_record_t  *record;

    ngx_http_seckill_key_set(&key, source, 0, 0);

    record = (ngx_http_seckill_control_record_t *)
             ngx_http_seckill_record_find_locked(
                 &shm->tables[NGX_HTTP_SECKILL_FACTS], &key);

    if (record) {
        *control = record->control;

    } else {
        ngx_memzero(control, sizeof(ngx_http_seckill_control_t));
    }
}


void
ngx_http_seckill_zone_set_control(ngx_http_seckill_loc_conf_t *conf,
    ngx_http_seckill_control_t *control, ngx_msec_t asked)
{
    ngx_http_seckill_key_t              key;
    ngx_http_seckill_shm_t             *shm;
    ngx_http_seckill_table_t           *table;
    ngx_http_seckill_control_record_t  *record;

    ngx_http_seckill_key_set(&key, conf->source, 0, 0);

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);
    table = &shm->tables[NGX_HTTP_SECKILL_FACTS];

    record = (ngx_http_seckill_control_record_t *)
             ngx_http_seckill_record_find_locked(table, &key);

    if (record == NULL) {
        record = (ngx_http_seckill_control_record_t *)
                 ngx_http_seckill_record_create_locked(conf->shm_zone, table,
                     &key, sizeof(ngx_http_seckill_control_record_t));
    }

    if (record && (record->asked == 0
                   || (ngx_msec_int_t) (asked - record->asked) >= 0))
    {
        record->asked = asked;
        record->control = *control;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);
}


ngx_http_seckill_facts_record_t *
ngx_http_seckill_facts_find_locked(ngx_http_seckill_shm_t *shm,
    uint32_t source, uint64_t activity)
{
    ngx_http_seckill_key_t  key;

    ngx_http_seckill_key_set(&key, source, activity, 0);

    return (ngx_http_seckill_facts_record_t *)
           ngx_http_seckill_record_find_locked(
               &shm->tables[NGX_HTTP_SECKILL_FACTS], &key);
}


ngx_http_seckill_freshness_e
ngx_http_seckill_zone_facts(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, uint64_t control_rev, ngx_http_seckill_facts_t *facts)
{
    ngx_http_seckill_key_t            key;
    ngx_http_seckill_shm_t           *shm;
    ngx_http_seckill_freshness_e      fresh;
    ngx_http_seckill_facts_record_t  *record;

    fresh = NGX_HTTP_SECKILL_MISSING;

    ngx_http_seckill_key_set(&key, conf->source, activity, 0);

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);

    record = (ngx_http_seckill_facts_record_t *)
             ngx_http_seckill_record_find_locked(
                 &shm->tables[NGX_HTTP_SECKILL_FACTS], &key);

    if (record) {
        /* also when they are too old to serve: the id is no stranger */
        *facts = record->facts;

        if (record->facts.control_rev >= control_rev) {
            fresh = ngx_http_seckill_freshness(conf, record->asked,
                                               &record->claimed);
        }

    } else if (ngx_http_seckill_activity_negative_locked(shm, conf, &key,
                                                         control_rev)
               == NGX_OK)
    {
        fresh = NGX_HTTP_SECKILL_FRESH;
        facts->known = 0;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);

    return fresh;
}


/* NGX_OK: Redis said lately that there is no such activity */

static ngx_int_t
ngx_http_seckill_activity_negative_locked(ngx_http_seckill_shm_t *shm,
    ngx_http_seckill_loc_conf_t *conf, ngx_http_seckill_key_t *key,
    uint64_t control_rev)
{
    ngx_http_seckill_negative_t  *negative;

    negative = (ngx_http_seckill_negative_t *)
               ngx_http_seckill_record_find_locked(
                   &shm->tables[NGX_HTTP_SECKILL_NEGATIVES], key);

    if (negative == NULL
        || negative->control_rev < control_rev
        || ngx_current_msec - negative->asked >= conf->negative)
    {
        return NGX_DECLINED;
    }

    return NGX_OK;
}


void
ngx_http_seckill_zone_set_facts(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, ngx_http_seckill_facts_t *facts, ngx_msec_t asked)
{
    ngx_http_seckill_key_t            key;
    ngx_http_seckill_shm_t           *shm;
    ngx_http_seckill_table_t         *table;
    ngx_http_seckill_facts_record_t  *record;

    ngx_http_seckill_key_set(&key, conf->source, activity, 0);

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);
    table = &shm->tables[NGX_HTTP_SECKILL_FACTS];

    record = (ngx_http_seckill_facts_record_t *)
             ngx_http_seckill_record_find_locked(table, &key);

    if (record == NULL && !facts->known) {
        ngx_http_seckill_activity_set_negative_locked(conf, shm, &key, facts,
                                                      asked);

    } else if (record == NULL) {
        record = (ngx_http_seckill_facts_record_t *)
                 ngx_http_seckill_record_create_locked(conf->shm_zone, table,
                     &key, sizeof(ngx_http_seckill_facts_record_t));
        ngx_http_seckill_count_activity_locked(shm, conf->source, activity);
    }

    if (record && (record->asked == 0
                   || (ngx_msec_int_t) (asked - record->asked) >= 0))
    {
        ngx_http_seckill_sold_out_refresh_locked(shm, record, facts, asked);

        /* a sale is settled before it may expire: this one was lost */
        facts->vanished = !facts->known && !record->facts.settled
                          && (record->facts.known || record->facts.vanished);

        if (facts->vanished || facts->damaged
            || (facts->lost && facts->epoch == 0))
        {
            /* whoever has an order of this generation still has it */
            facts->epoch = record->facts.epoch;
            facts->rev = record->facts.rev;
        }

        facts->broken = facts->known && !facts->whole
                        && (record->facts.whole || !record->facts.known);

        record->asked = asked;
        record->facts = *facts;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);
}


static void
ngx_http_seckill_activity_set_negative_locked(ngx_http_seckill_loc_conf_t *conf,
    ngx_http_seckill_shm_t *shm, ngx_http_seckill_key_t *key,
    ngx_http_seckill_facts_t *facts, ngx_msec_t asked)
{
    ngx_http_seckill_table_t     *table;
    ngx_http_seckill_negative_t  *negative;

    table = &shm->tables[NGX_HTTP_SECKILL_NEGATIVES];

    negative = (ngx_http_seckill_negative_t *)
               ngx_http_seckill_record_find_locked(table, key);

    if (negative == NULL) {
        if (table->count >= conf->shm_zone->shm.size
                            / NGX_HTTP_SECKILL_NEGATIVE_BYTES)
        {
            (void) ngx_http_seckill_record_evict_locked(conf->shm_zone, table);
        }

        negative = (ngx_http_seckill_negative_t *)
                   ngx_http_seckill_record_create_locked(conf->shm_zone, table,
                       key, sizeof(ngx_http_seckill_negative_t));
    }

    if (negative) {
        negative->asked = asked;
        negative->control_rev = facts->control_rev;
    }
}
