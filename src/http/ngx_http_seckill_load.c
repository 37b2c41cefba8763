
/*
 * Loads facts and control from Redis into the zone.
 */


#include "ngx_http_seckill_count.h"
#include "ngx_http_seckill_load.h"


#define NGX_HTTP_SECKILL_LOAD_BUCKETS  256      /* a power of 2 */

/* ids that this node never heard of: so many a second and worker are asked for */
#define NGX_HTTP_SECKILL_LOAD_STRANGERS  1000

/* HMGET of the facts, in this order */
enum {
    FACT_PRODUCT_ID = 0,
    FACT_PRICE,
    FACT_START_MS,
    FACT_END_MS,
    FACT_STATE,
    FACT_MAX_QUANTITY,
    FACT_EPOCH,
    FACT_REV,
    FACT_LIMIT,
    FACT_LIMIT_BURST,
    FACTS
};

/* HMGET of control, in this order */
enum {
    CONTROL_REV = 0,
    CONTROL_STATE,
    CONTROL_TOKEN_KEY,
    CONTROL_TOKEN_KEY_PREV,
    CONTROL_LIMIT,
    CONTROL_LIMIT_BURST,
    CONTROLS
};


struct ngx_http_seckill_load_s {
    ngx_queue_t                   queue;        /* in its bucket */
    ngx_queue_t                   waiters;      /* of ctx->queue */
    ngx_http_seckill_loc_conf_t  *conf;
    uint64_t                      activity;
    uint64_t                      control_rev;
    ngx_msec_t                    asked;
};


static ngx_http_seckill_load_t *ngx_http_seckill_load_start(
    ngx_http_seckill_ctx_t *ctx, uint64_t activity);
static ngx_queue_t *ngx_http_seckill_load_bucket(uint64_t activity);
static ngx_uint_t ngx_http_seckill_load_crowded(void);
static ngx_seckill_call_t *ngx_http_seckill_load_call(
    ngx_http_seckill_load_t *load);
static void ngx_http_seckill_load_done(ngx_seckill_call_t *call);
static ngx_int_t ngx_http_seckill_load_control(ngx_seckill_call_t *call,
    ngx_http_seckill_load_t *load, ngx_http_seckill_control_t *control);
static ngx_int_t ngx_http_seckill_load_facts(ngx_seckill_call_t *call,
    ngx_http_seckill_load_t *load, ngx_http_seckill_facts_t *facts);
static ngx_int_t ngx_http_seckill_load_number(redisReply *reply,
    uint64_t *number);
static ngx_uint_t ngx_http_seckill_load_is(redisReply *reply, const char *word);
static ngx_uint_t ngx_http_seckill_load_limit(redisReply **fields,
    uint64_t activity, sk_limit_t *limit);
static void ngx_http_seckill_load_key(redisReply *reply,
    ngx_http_seckill_control_t *control);


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
    char                 name[SK_KEY_MAX], stock[SK_KEY_MAX];
    size_t               lens[2 + FACTS];
    ngx_int_t            rc;
    ngx_str_t           *prefix;
    ngx_uint_t           i, n;
    ngx_seckill_call_t  *call;

    static const char  *facts[] = { "HMGET", NULL, "product_id", "price",
                                    "start_ms", "end_ms", "state",
                                    "max_quantity", "epoch", "rev",
                                    "limit", "limit_burst" };
    static const char  *control[] = { "HMGET", NULL, "rev", "state",
                                      "token_key", "token_key_prev",
                                      "limit", "limit_burst" };
    const char         *argv[2 + FACTS];

    prefix = &load->conf->prefix;

    call = ngx_seckill_call_create(ngx_http_seckill_load_done, load,
                                   load->asked + load->conf->redis_timeout);
    if (call == NULL) {
        return NULL;
    }

    n = load->activity ? 2 + FACTS : 2 + CONTROLS;
    ngx_memcpy(argv, load->activity ? facts : control, n * sizeof(char *));

    argv[1] = name;

    for (i = 0; i < n; i++) {
        lens[i] = (i == 1) ? 0 : ngx_strlen(argv[i]);
    }

    if (load->activity) {
        lens[1] = sk_key(name, (char *) prefix->data, prefix->len,
                         SK_KEY_ACTIVITY, load->activity, 0);
    } else {
        lens[1] = sk_key_global(name, (char *) prefix->data, prefix->len,
                                "control", sizeof("control") - 1);
    }

    rc = ngx_seckill_call_command(call, n, argv, lens);

    if (load->activity) {
        argv[0] = "GET";
        lens[0] = sizeof("GET") - 1;
        argv[1] = stock;
        lens[1] = sk_key(stock, (char *) prefix->data, prefix->len,
                         SK_KEY_STOCK, load->activity, 0);
        n = 2;

    } else {
        argv[0] = "TIME";
        lens[0] = sizeof("TIME") - 1;
        n = 1;
    }

    if (rc != NGX_OK
        || ngx_seckill_call_command(call, n, argv, lens) != NGX_OK)
    {
        ngx_seckill_call_free(call);
        return NULL;
    }

    return call;
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

    ngx_queue_remove(&load->queue);
    ngx_http_seckill_gauge_redis(load->conf);

    if (load->activity) {
        rc = ngx_http_seckill_load_facts(call, load, &facts);

        if (rc == NGX_OK) {
            ngx_http_seckill_zone_set_facts(load->conf, load->activity, &facts,
                                            load->asked);
        }

    } else {
        rc = ngx_http_seckill_load_control(call, load, &control);

        if (rc == NGX_OK) {
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


static ngx_int_t
ngx_http_seckill_load_control(ngx_seckill_call_t *call,
    ngx_http_seckill_load_t *load, ngx_http_seckill_control_t *control)
{
    int64_t       now;
    uint64_t      seconds, micros;
    redisReply   *hash, *time;

    if (call->end != NGX_SECKILL_ANSWERED) {
        return NGX_ERROR;
    }

    hash = call->replies[0];
    time = call->replies[1];

    if (hash->type != REDIS_REPLY_ARRAY || hash->elements != CONTROLS
        || time->type != REDIS_REPLY_ARRAY || time->elements != 2
        || ngx_http_seckill_load_number(time->element[0], &seconds) != NGX_OK
        || ngx_http_seckill_load_number(time->element[1], &micros) != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_memzero(control, sizeof(ngx_http_seckill_control_t));

    /* Redis read its clock after the question left and before this turn */

    now = (int64_t) (seconds * 1000 + micros / 1000);
    control->clock = now - (int64_t) ngx_current_msec;
    control->clock_max = now + 1 - (int64_t) load->asked;

    if (ngx_http_seckill_load_number(hash->element[CONTROL_REV], &control->rev)
        != NGX_OK)
    {
        return NGX_OK;
    }

    control->known = 1;
    control->closed =
                ngx_http_seckill_load_is(hash->element[CONTROL_STATE], "closed");

    ngx_http_seckill_load_key(hash->element[CONTROL_TOKEN_KEY], control);
    ngx_http_seckill_load_key(hash->element[CONTROL_TOKEN_KEY_PREV], control);

    control->limit_set = ngx_http_seckill_load_limit(
                                          &hash->element[CONTROL_LIMIT],
                                          load->activity, &control->limit);

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_load_facts(ngx_seckill_call_t *call,
    ngx_http_seckill_load_t *load, ngx_http_seckill_facts_t *facts)
{
    uint64_t      max_quantity, stock;
    redisReply   *hash, **fact;

    if (call->end != NGX_SECKILL_ANSWERED) {
        return NGX_ERROR;
    }

    hash = call->replies[0];

    if (hash->type != REDIS_REPLY_ARRAY || hash->elements != FACTS) {
        return NGX_ERROR;
    }

    ngx_memzero(facts, sizeof(ngx_http_seckill_facts_t));
    facts->control_rev = load->control_rev;

    fact = hash->element;

    if (fact[FACT_STATE]->type == REDIS_REPLY_NIL) {
        return NGX_OK;
    }

    if (ngx_http_seckill_load_number(fact[FACT_PRODUCT_ID], &facts->product_id)
            != NGX_OK
        || ngx_http_seckill_load_number(fact[FACT_START_MS], &facts->start_ms)
            != NGX_OK
        || ngx_http_seckill_load_number(fact[FACT_END_MS], &facts->end_ms)
            != NGX_OK
        || ngx_http_seckill_load_number(fact[FACT_MAX_QUANTITY], &max_quantity)
            != NGX_OK
        || ngx_http_seckill_load_number(fact[FACT_EPOCH], &facts->epoch)
            != NGX_OK
        || ngx_http_seckill_load_number(fact[FACT_REV], &facts->rev) != NGX_OK
        || fact[FACT_PRICE]->type != REDIS_REPLY_STRING
        || fact[FACT_PRICE]->len > sizeof(facts->price))
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "seckill facts of activity %uL are damaged",
                      load->activity);
        return NGX_ERROR;
    }

    facts->known = 1;
    facts->max_quantity = (uint32_t) ngx_min(max_quantity, SK_QUANTITY_MAX);
    facts->price_len = (uint8_t) fact[FACT_PRICE]->len;
    ngx_memcpy(facts->price, fact[FACT_PRICE]->str, facts->price_len);

    facts->settled = ngx_http_seckill_load_is(fact[FACT_STATE], "settled");
    facts->closed = !ngx_http_seckill_load_is(fact[FACT_STATE], "open");
    facts->limit_set = ngx_http_seckill_load_limit(&fact[FACT_LIMIT],
                                                   load->activity,
                                                   &facts->limit);

    if (ngx_http_seckill_load_number(call->replies[1], &stock) == NGX_OK) {
        facts->stock = (int64_t) stock;

    } else {
        /* the script refuses; here nobody is told "sold out" */
        facts->stock = -1;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_load_number(redisReply *reply, uint64_t *number)
{
    if (reply->type != REDIS_REPLY_STRING) {
        return NGX_ERROR;
    }

    if (reply->len == 1 && reply->str[0] == '0') {
        *number = 0;
        return NGX_OK;
    }

    return sk_id_parse(reply->str, reply->len, number) == 0 ? NGX_OK
                                                            : NGX_ERROR;
}


static ngx_uint_t
ngx_http_seckill_load_is(redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_STRING
           && (size_t) reply->len == ngx_strlen(word)
           && ngx_memcmp(reply->str, word, reply->len) == 0;
}


/* rate and burst, as lua/limit.lua writes them; 0: none is set */

static ngx_uint_t
ngx_http_seckill_load_limit(redisReply **fields, uint64_t activity,
    sk_limit_t *limit)
{
    if (fields[0]->type == REDIS_REPLY_NIL) {
        return 0;
    }

    if (fields[0]->type == REDIS_REPLY_STRING
        && fields[1]->type == REDIS_REPLY_STRING
        && sk_limit_parse(limit, fields[0]->str, fields[0]->len,
                          fields[1]->str, fields[1]->len)
           == 0)
    {
        return 1;
    }

    if (activity) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "seckill limit of "
                      "activity %uL is damaged, the next one in line is used",
                      activity);
    } else {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "seckill limit of all "
                      "activities is damaged, that of nginx is used");
    }

    return 0;
}


/* 64 hex digits */

static void
ngx_http_seckill_load_key(redisReply *reply,
    ngx_http_seckill_control_t *control)
{
    ngx_int_t   n;
    ngx_uint_t  i;

    if (reply->type != REDIS_REPLY_STRING
        || reply->len != NGX_HTTP_SECKILL_HMAC_KEY * 2)
    {
        return;
    }

    for (i = 0; i < NGX_HTTP_SECKILL_HMAC_KEY; i++) {
        n = ngx_hextoi((u_char *) reply->str + i * 2, 2);
        if (n == NGX_ERROR) {
            return;
        }

        control->keys[control->nkeys][i] = (u_char) n;
    }

    control->nkeys++;
}
