
/*
 * The end of a sale in memory.  Once Redis has said that the stock is 0, or the
 * end has surely passed, nobody can become a buyer any more: one worker loads
 * all buyers into a filter, and from then on whoever is not in it is refused
 * without I/O.  Until then, and whenever the filter says "perhaps", Redis is
 * asked, so that a buyer who comes again hears "already taken part".
 */


#include "ngx_http_seckill_sold_out.h"


/* SSCAN: members a page */
#define NGX_HTTP_SECKILL_SCAN_COUNT    "500"

/* a load that takes longer than this has died with its worker */
#define NGX_HTTP_SECKILL_SCAN_TIMEOUT  5000

/* so often a load begins again on another connection */
#define NGX_HTTP_SECKILL_SCAN_RESTARTS  1


typedef enum {
    NGX_HTTP_SECKILL_ON_SALE = 0,
    NGX_HTTP_SECKILL_PERHAPS_BUYER,     /* over, but Redis is to be asked */
    NGX_HTTP_SECKILL_NO_BUYER,          /* over, and surely did not buy */
    NGX_HTTP_SECKILL_NO_FILTER          /* over, and the caller is to load it */
} ngx_http_seckill_over_e;


/*
 * A filter being filled, page by page.  A cursor is of no use to another server,
 * and behind an address there may be another one at any time: all pages come
 * over one connection, or the load begins again.
 */
typedef struct {
    ngx_http_seckill_loc_conf_t  *conf;
    uint64_t                      activity;
    uint64_t                      id;
    uint64_t                      session;      /* the connection, 0: any */
    ngx_uint_t                    restarts;
    char                          cursor[24];
    size_t                        cursor_len;
} ngx_http_seckill_scan_t;


static ngx_http_seckill_over_e ngx_http_seckill_over(
    ngx_http_seckill_ctx_t *ctx, ngx_uint_t ended, uint64_t *id);
static void ngx_http_seckill_scan_start(ngx_http_seckill_ctx_t *ctx,
    uint64_t id);
static ngx_int_t ngx_http_seckill_scan_page(ngx_http_seckill_scan_t *scan);
static ngx_int_t ngx_http_seckill_scan_restart(ngx_http_seckill_scan_t *scan);
static void ngx_http_seckill_scan_done(ngx_seckill_call_t *call);
static ngx_int_t ngx_http_seckill_scan_read(ngx_http_seckill_scan_t *scan,
    ngx_seckill_call_t *call);
static void ngx_http_seckill_filter_drop_locked(ngx_http_seckill_shm_t *shm,
    ngx_http_seckill_facts_record_t *record);


ngx_int_t
ngx_http_seckill_sold_out_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx)
{
    int64_t      earliest;
    uint64_t     id;
    ngx_uint_t   ended;

    if (ctx->refusal != SK_VERDICTS) {
        return NGX_OK;
    }

    earliest = (int64_t) ngx_current_msec + ctx->control.clock
               - NGX_HTTP_SECKILL_CLOCK_SLACK;

    ended = ctx->facts.settled || earliest >= (int64_t) ctx->facts.end_ms;

    switch (ngx_http_seckill_over(ctx, ended, &id)) {

    case NGX_HTTP_SECKILL_NO_BUYER:
        return ngx_http_seckill_say(ctx, ended ? SK_ENDED : SK_SOLD_OUT);

    case NGX_HTTP_SECKILL_NO_FILTER:
        ngx_http_seckill_scan_start(ctx, id);
        return NGX_OK;

    default:
        return NGX_OK;
    }
}


static ngx_http_seckill_over_e
ngx_http_seckill_over(ngx_http_seckill_ctx_t *ctx, ngx_uint_t ended,
    uint64_t *id)
{
    static uint64_t  next;

    ngx_http_seckill_shm_t           *shm;
    ngx_http_seckill_over_e           over;
    ngx_http_seckill_facts_record_t  *record;

    if (!ended && ctx->facts.stock > 0 && !ctx->facts.sold_out) {
        return NGX_HTTP_SECKILL_ON_SALE;
    }

    over = NGX_HTTP_SECKILL_ON_SALE;

    shm = ngx_http_seckill_zone_lock(ctx->conf->shm_zone);

    record = ngx_http_seckill_facts_find_locked(shm, ctx->conf->source,
                                                ctx->activity);

    if (record == NULL || (!ended && !record->sold_out)) {
        goto done;
    }

    over = NGX_HTTP_SECKILL_PERHAPS_BUYER;

    if (record->filter_ready) {
        if (!ngx_http_seckill_buyers_has(&shm->buyers, &record->buyers,
                                         ctx->user))
        {
            over = NGX_HTTP_SECKILL_NO_BUYER;
        }

    } else if (!record->filter_off
               && (record->filter_id == 0
                   || ngx_current_msec - record->filter_claimed
                      > NGX_HTTP_SECKILL_SCAN_TIMEOUT)
               && (record->filter_started == 0
                   || (ngx_msec_int_t) (ngx_current_msec
                                        - record->filter_started)
                      >= (ngx_msec_int_t) ctx->conf->refresh))
    {
        /* not with each revision of an act of many: Redis is asked meanwhile */
        record->filter_started = ngx_current_msec;

        /* the pid, and a count: no two loads share an id */
        record->filter_id = ((uint64_t) ngx_pid << 32) | (uint32_t) ++next;
        record->filter_claimed = ngx_current_msec;
        *id = record->filter_id;
        over = NGX_HTTP_SECKILL_NO_FILTER;
    }

done:

    ngx_http_seckill_zone_unlock(ctx->conf->shm_zone);

    return over;
}


void
ngx_http_seckill_sold_out_set(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, uint64_t epoch, uint64_t rev)
{
    ngx_http_seckill_shm_t           *shm;
    ngx_http_seckill_facts_record_t  *record;

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);

    record = ngx_http_seckill_facts_find_locked(shm, conf->source, activity);

    /* the script knows an older revision: units may have been added since */

    if (record && !record->sold_out && record->facts.epoch == epoch
        && record->facts.rev <= rev)
    {
        record->sold_out = 1;
        record->sold_at = ngx_current_msec;
        record->facts.stock = 0;
        record->facts.sold_out = 1;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);
}


void
ngx_http_seckill_sold_out_refresh_locked(ngx_http_seckill_shm_t *shm,
    ngx_http_seckill_facts_record_t *record, ngx_http_seckill_facts_t *facts,
    ngx_msec_t asked)
{
    /* another generation, or one more revision: its buyers are not these */

    if (facts->epoch != record->facts.epoch || facts->rev != record->facts.rev
        || !facts->known)
    {
        record->sold_out = 0;
        ngx_http_seckill_filter_drop_locked(shm, record);
    }

    if (facts->known && facts->stock == 0) {
        if (!record->sold_out) {
            record->sold_out = 1;
            record->sold_at = asked;
        }

    } else if (record->sold_out
               && (ngx_msec_int_t) (asked - record->sold_at) > 0)
    {
        record->sold_out = 0;
        ngx_http_seckill_filter_drop_locked(shm, record);
    }

    facts->sold_out = record->sold_out;
}


static void
ngx_http_seckill_filter_drop_locked(ngx_http_seckill_shm_t *shm,
    ngx_http_seckill_facts_record_t *record)
{
    ngx_http_seckill_buyers_give_locked(&shm->buyers, &record->buyers);

    record->filter_ready = 0;
    record->filter_off = 0;
    record->filter_id = 0;
}


/* nobody waits for it: whoever comes meanwhile asks Redis */

static void
ngx_http_seckill_scan_start(ngx_http_seckill_ctx_t *ctx, uint64_t id)
{
    ngx_http_seckill_scan_t  *scan;

    scan = ngx_calloc(sizeof(ngx_http_seckill_scan_t), ngx_cycle->log);
    if (scan == NULL) {
        return;
    }

    scan->conf = ctx->conf;
    scan->activity = ctx->activity;
    scan->id = id;
    scan->cursor[0] = '0';
    scan->cursor_len = 1;

    if (ngx_http_seckill_scan_page(scan) != NGX_OK) {
        /* the claim runs out, then the next request tries again */
        ngx_free(scan);
    }
}


static ngx_int_t
ngx_http_seckill_scan_page(ngx_http_seckill_scan_t *scan)
{
    char                  key[SK_KEY_MAX];
    size_t                lens[5];
    ngx_int_t             rc;
    const char           *argv[5];
    ngx_seckill_call_t   *call;
    ngx_seckill_redis_t  *redis;

    redis = ngx_http_seckill_client(scan->conf);
    if (redis == NULL) {
        return NGX_ERROR;
    }

    call = ngx_seckill_call_create(ngx_http_seckill_scan_done, scan,
                               ngx_current_msec + scan->conf->redis_timeout);
    if (call == NULL) {
        return NGX_ERROR;
    }

    argv[1] = key;
    lens[1] = sk_key(key, (char *) scan->conf->prefix.data,
                     scan->conf->prefix.len, SK_KEY_BUYERS, scan->activity, 0);

    argv[0] = "SSCAN";
    lens[0] = sizeof("SSCAN") - 1;
    argv[2] = scan->cursor;
    lens[2] = scan->cursor_len;
    argv[3] = "COUNT";
    lens[3] = sizeof("COUNT") - 1;
    argv[4] = NGX_HTTP_SECKILL_SCAN_COUNT;
    lens[4] = sizeof(NGX_HTTP_SECKILL_SCAN_COUNT) - 1;

    rc = ngx_seckill_call_command(call, 5, argv, lens);

    if (rc == NGX_OK) {
        argv[0] = "SCARD";
        lens[0] = sizeof("SCARD") - 1;
        rc = ngx_seckill_call_command(call, 2, argv, lens);
    }

    if (rc != NGX_OK) {
        ngx_seckill_call_free(call);
        return NGX_ERROR;
    }

    call->session = scan->session;

    return ngx_seckill_redis_send(redis, NGX_SECKILL_READS, 0, call);
}


/* from the first page, wherever it runs; what was read is dropped with it */

static ngx_int_t
ngx_http_seckill_scan_restart(ngx_http_seckill_scan_t *scan)
{
    if (scan->restarts++ == NGX_HTTP_SECKILL_SCAN_RESTARTS) {
        return NGX_ERROR;
    }

    scan->session = 0;
    scan->cursor[0] = '0';
    scan->cursor_len = 1;

    return ngx_http_seckill_scan_page(scan);
}


static void
ngx_http_seckill_scan_done(ngx_seckill_call_t *call)
{
    ngx_int_t                 rc;
    ngx_http_seckill_scan_t  *scan;

    scan = call->data;
    rc = NGX_BUSY;

    if (call->end == NGX_SECKILL_ANSWERED) {
        rc = ngx_http_seckill_scan_read(scan, call);

        if (rc != NGX_AGAIN) {
            ngx_free(scan);
            return;
        }

        scan->session = call->session;
        rc = ngx_http_seckill_scan_page(scan);
    }

    if (rc == NGX_BUSY) {
        rc = ngx_http_seckill_scan_restart(scan);
    }

    if (rc != NGX_OK) {
        /* the claim runs out, then the next request tries again */
        ngx_free(scan);
    }
}


/* NGX_AGAIN: there are more pages */

static ngx_int_t
ngx_http_seckill_scan_read(ngx_http_seckill_scan_t *scan,
    ngx_seckill_call_t *call)
{
    size_t                            i;
    uint64_t                          user;
    ngx_int_t                         rc;
    redisReply                       *cursor, *page, *count;
    ngx_uint_t                        last;
    ngx_http_seckill_shm_t           *shm;
    ngx_http_seckill_facts_record_t  *record;

    count = call->replies[1];

    if (call->replies[0]->type != REDIS_REPLY_ARRAY
        || call->replies[0]->elements != 2
        || call->replies[0]->element[0]->type != REDIS_REPLY_STRING
        || call->replies[0]->element[0]->len >= (int) sizeof(scan->cursor)
        || call->replies[0]->element[1]->type != REDIS_REPLY_ARRAY
        || count->type != REDIS_REPLY_INTEGER)
    {
        return NGX_ERROR;
    }

    cursor = call->replies[0]->element[0];
    page = call->replies[0]->element[1];
    last = (cursor->len == 1 && cursor->str[0] == '0');
    rc = last ? NGX_OK : NGX_AGAIN;

    shm = ngx_http_seckill_zone_lock(scan->conf->shm_zone);

    record = ngx_http_seckill_facts_find_locked(shm, scan->conf->source,
                                                scan->activity);

    if (record == NULL || record->filter_id != scan->id) {
        /* the revision changed meanwhile, or somebody else took over */
        rc = NGX_ERROR;
        goto done;
    }

    record->filter_claimed = ngx_current_msec;

    if (scan->cursor_len == 1 && scan->cursor[0] == '0') {
        ngx_http_seckill_buyers_give_locked(&shm->buyers, &record->buyers);
        ngx_http_seckill_buyers_take_locked(&shm->buyers, &record->buyers,
                                            (uint64_t) count->integer);
    }

    if (record->buyers.n == 0) {
        record->filter_off = 1;
        rc = NGX_ERROR;
        goto done;
    }

    for (i = 0; i < page->elements; i++) {
        if (page->element[i]->type != REDIS_REPLY_STRING
            || sk_id_parse(page->element[i]->str, page->element[i]->len, &user)
               != 0)
        {
            /* not a user of ours: nobody can ask for it */
            continue;
        }

        if (ngx_http_seckill_buyers_add(&shm->buyers, &record->buyers, user)
            != NGX_OK)
        {
            ngx_http_seckill_filter_drop_locked(shm, record);
            record->filter_off = 1;
            rc = NGX_ERROR;
            goto done;
        }
    }

    if (last) {
        record->filter_ready = 1;
    }

done:

    ngx_http_seckill_zone_unlock(scan->conf->shm_zone);

    ngx_memcpy(scan->cursor, cursor->str, cursor->len);
    scan->cursor_len = cursor->len;

    return rc;
}
