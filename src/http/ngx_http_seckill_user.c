
/*
 * Records of users in the zone: their limits, and the order of those who have
 * one.  LRU and bounded; when the zone is full the least used makes room.
 */


#include "ngx_http_seckill_record.h"


/* polls have a looser limit of their own: 10 a second, 20 at once */
#define NGX_HTTP_SECKILL_RESULT_INTERVAL  100
#define NGX_HTTP_SECKILL_RESULT_BURST     20

/* a result that is missing for so many milliseconds is looked up in MySQL */
#define NGX_HTTP_SECKILL_OVERDUE  3000

/* an order is remembered for so many milliseconds, then Redis is asked again */
#define NGX_HTTP_SECKILL_REMEMBER  10000

/* which limit of a user */
#define NGX_HTTP_SECKILL_LIMIT_BUY     0
#define NGX_HTTP_SECKILL_LIMIT_RESULT  1
#define NGX_HTTP_SECKILL_LIMITS        2


/* how good an order is that this node remembers */
typedef enum {
    NGX_HTTP_SECKILL_NO_ORDER = 0,
    NGX_HTTP_SECKILL_OLD_ORDER,         /* good, where Redis knows no other */
    NGX_HTTP_SECKILL_ORDER
} ngx_http_seckill_order_e;


/* 128 bytes, a slot of the slab */
typedef struct {
    ngx_http_seckill_record_t    record;
    uint32_t                     until[NGX_HTTP_SECKILL_LIMITS];
    union {
        struct {                                /* without an order */
            uint32_t             queueing;      /* since when we hear so, 0: not */
            uint32_t             looked_up;     /* when the daemon was asked */
        } wait;
        struct {                                /* with one: as of when it is */
            uint16_t             epoch;         /* the lower half is enough */
            uint16_t             rev;
            uint32_t             asked;
        } order;
    } of;
    uint64_t                     order_no[2];   /* 16 digits each */
    uint64_t                     order_id;      /* 0: no order that we know of */
} ngx_http_seckill_user_t;


static ngx_http_seckill_order_e ngx_http_seckill_user_ordered(
    ngx_http_seckill_ctx_t *ctx, ngx_http_seckill_user_t *user,
    sk_result_t *result);
static ngx_int_t ngx_http_seckill_user_order(sk_result_t *result,
    uint64_t *order_no);
static uint16_t ngx_http_seckill_user_rev(uint64_t rev);
static sk_limit_t ngx_http_seckill_user_limit(ngx_http_seckill_ctx_t *ctx);
static ngx_msec_t ngx_http_seckill_user_limit_locked(
    ngx_http_seckill_ctx_t *ctx, ngx_http_seckill_user_t *user);
static ngx_msec_t ngx_http_seckill_user_charge(ngx_http_seckill_user_t *user,
    ngx_uint_t which, ngx_msec_t interval, ngx_uint_t burst);
static ngx_http_seckill_user_t *ngx_http_seckill_user_locked(
    ngx_http_seckill_ctx_t *ctx, ngx_http_seckill_shm_t *shm);


/*
 * A user whose order this node knows is answered at once.  Everybody else is
 * charged, and hears the refusal of all where there is one.
 *
 * An order is of one epoch.  Within it Redis may come to know another one: when
 * MySQL lost a commit and the purchase was replayed, which raises rev.  So with
 * another rev, and from time to time, Redis is asked; where it knows nothing of
 * the user, be it that it lost data or that it is away, the order stays true.
 */

ngx_int_t
ngx_http_seckill_user_step(ngx_http_request_t *r, ngx_http_seckill_ctx_t *ctx)
{
    ngx_msec_t                 left;
    sk_result_t                result;
    ngx_http_seckill_shm_t    *shm;
    ngx_http_seckill_user_t   *user;
    ngx_http_seckill_order_e   ordered;

    left = 0;
    ordered = NGX_HTTP_SECKILL_NO_ORDER;
    ngx_memzero(&result, sizeof(sk_result_t));

    ctx->limit = ngx_http_seckill_user_limit(ctx);

    shm = ngx_http_seckill_zone_lock(ctx->conf->shm_zone);

    user = ngx_http_seckill_user_locked(ctx, shm);

    if (user) {
        ordered = ngx_http_seckill_user_ordered(ctx, user, &result);

        if (ordered != NGX_HTTP_SECKILL_ORDER && ctx->refusal == SK_VERDICTS) {
            left = ngx_http_seckill_user_limit_locked(ctx, user);
        }
    }

    ngx_http_seckill_zone_unlock(ctx->conf->shm_zone);

    if (ordered != NGX_HTTP_SECKILL_NO_ORDER) {
        ctx->result = ngx_palloc(r->pool, sizeof(sk_result_t));
        if (ctx->result == NULL) {
            return NGX_ERROR;
        }

        *ctx->result = result;
        ctx->state = SK_SUCCESS;
        ctx->remembered = 1;
    }

    if (ordered == NGX_HTTP_SECKILL_ORDER
        || (ctx->remembered && ctx->refusal != SK_VERDICTS))
    {
        return ngx_http_seckill_say(ctx, ctx->buy ? SK_REPEAT : SK_SUCCESS);
    }

    if (ctx->refusal != SK_VERDICTS) {
        return ngx_http_seckill_say(ctx, ctx->refusal);
    }

    if (left && ctx->buy && ctx->conf->limit_dry_run) {
        ngx_log_error(NGX_LOG_NOTICE, r->connection->log, 0,
                      "seckill would limit user %uL, dry run", ctx->user);
        left = 0;
    }

    if (left) {
        ctx->retry_after = (left + 999) / 1000;
        return ngx_http_seckill_say(ctx, SK_LIMITED);
    }

    return NGX_OK;
}


/*
 * That of purchases: the activity's own, else that of all, both as Redis says,
 * else what this node is configured with.  Polls have not got the facts.
 */

static sk_limit_t
ngx_http_seckill_user_limit(ngx_http_seckill_ctx_t *ctx)
{
    sk_limit_t  limit;

    if (ctx->facts.limit_set) {
        return ctx->facts.limit;
    }

    if (ctx->control.limit_set) {
        return ctx->control.limit;
    }

    limit.interval_ms = (uint32_t) ctx->conf->limit;
    limit.burst = (uint32_t) ctx->conf->limit_burst;

    return limit;
}


static ngx_msec_t
ngx_http_seckill_user_limit_locked(ngx_http_seckill_ctx_t *ctx,
    ngx_http_seckill_user_t *user)
{
    ngx_msec_t  left;

    if (!ctx->buy) {
        return ctx->conf->limit
               ? ngx_http_seckill_user_charge(user,
                                              NGX_HTTP_SECKILL_LIMIT_RESULT,
                                              NGX_HTTP_SECKILL_RESULT_INTERVAL,
                                              NGX_HTTP_SECKILL_RESULT_BURST)
               : 0;
    }

    if (ctx->limit.interval_ms == 0) {
        return 0;
    }

    left = ngx_http_seckill_user_charge(user, NGX_HTTP_SECKILL_LIMIT_BUY,
                                        ctx->limit.interval_ms,
                                        ctx->limit.burst);
    if (left == 0) {
        ctx->charged = ctx->limit.interval_ms;
    }

    return left;
}


void
ngx_http_seckill_user_remember(ngx_http_seckill_ctx_t *ctx)
{
    uint64_t                  order_no[2];
    ngx_http_seckill_shm_t   *shm;
    ngx_http_seckill_user_t  *user;

    if (!ctx->result->success || ctx->facts.epoch == 0
        || ngx_http_seckill_user_order(ctx->result, order_no) != NGX_OK)
    {
        return;
    }

    shm = ngx_http_seckill_zone_lock(ctx->conf->shm_zone);

    user = ngx_http_seckill_user_locked(ctx, shm);

    if (user) {
        user->order_id = ctx->result->order_id;
        user->order_no[0] = order_no[0];
        user->order_no[1] = order_no[1];

        /* the facts are from before Redis was asked: never too new */
        user->of.order.epoch = (uint16_t) ctx->facts.epoch;
        user->of.order.rev = ngx_http_seckill_user_rev(ctx->facts.rev);
        user->of.order.asked = (uint32_t) ngx_current_msec;
    }

    ngx_http_seckill_zone_unlock(ctx->conf->shm_zone);
}


void
ngx_http_seckill_user_published(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, uint64_t user_id, sk_result_t *result)
{
    uint64_t                  order_no[2];
    ngx_uint_t                good;
    ngx_http_seckill_key_t    key;
    ngx_http_seckill_shm_t   *shm;
    ngx_http_seckill_user_t  *user;

    good = result->success
           && ngx_http_seckill_user_order(result, order_no) == NGX_OK;

    ngx_http_seckill_key_set(&key, conf->source, activity, user_id);

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);

    /* nobody asked for the others: they take no room */

    user = (ngx_http_seckill_user_t *)
           ngx_http_seckill_record_find_locked(
               &shm->tables[NGX_HTTP_SECKILL_USERS], &key);

    if (user && user->order_id) {

        if (good) {
            user->order_id = result->order_id;
            user->order_no[0] = order_no[0];
            user->order_no[1] = order_no[1];

        } else {
            user->order_id = 0;
            ngx_memzero(&user->of, sizeof(user->of));
        }
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);
}


static ngx_int_t
ngx_http_seckill_user_order(sk_result_t *result, uint64_t *order_no)
{
    u_char     *no;
    ngx_int_t   head, tail;

    no = (u_char *) result->order_no;

    head = ngx_atoi(no, SK_ORDER_NO_LEN / 2);
    tail = ngx_atoi(no + SK_ORDER_NO_LEN / 2, SK_ORDER_NO_LEN / 2);

    if (head == NGX_ERROR || tail == NGX_ERROR) {
        return NGX_ERROR;
    }

    order_no[0] = (uint64_t) head;
    order_no[1] = (uint64_t) tail;

    return NGX_OK;
}


/* a revision may be a count or a time: every bit of it reaches the 16 */

static uint16_t
ngx_http_seckill_user_rev(uint64_t rev)
{
    return (uint16_t) (rev * 0x9e3779b97f4a7c15ULL >> 48);
}


/* 1: the result is overdue, and it is this request that asks the daemon */

ngx_uint_t
ngx_http_seckill_user_overdue(ngx_http_seckill_ctx_t *ctx)
{
    uint32_t                  now;
    ngx_uint_t                overdue;
    ngx_http_seckill_shm_t   *shm;
    ngx_http_seckill_user_t  *user;

    now = (uint32_t) ngx_current_msec | 1;
    overdue = 0;

    shm = ngx_http_seckill_zone_lock(ctx->conf->shm_zone);

    user = ngx_http_seckill_user_locked(ctx, shm);

    /* with an order it does not wait: the room is that of the order */

    if (user && user->order_id == 0) {

        if (user->of.wait.queueing == 0) {
            user->of.wait.queueing = now;
            user->of.wait.looked_up = now;

        } else if (now - user->of.wait.queueing > NGX_HTTP_SECKILL_OVERDUE
                   && now - user->of.wait.looked_up > NGX_HTTP_SECKILL_OVERDUE)
        {
            user->of.wait.looked_up = now;
            overdue = 1;
        }

        ctx->queueing = user->of.wait.queueing;
    }

    ngx_http_seckill_zone_unlock(ctx->conf->shm_zone);

    return overdue;
}


static ngx_http_seckill_order_e
ngx_http_seckill_user_ordered(ngx_http_seckill_ctx_t *ctx,
    ngx_http_seckill_user_t *user, sk_result_t *result)
{
    if (user->order_id == 0) {
        return NGX_HTTP_SECKILL_NO_ORDER;
    }

    if (user->of.order.epoch != (uint16_t) ctx->facts.epoch
        && (ctx->buy || ctx->told || ctx->facts.epoch))
    {
        /* of another sale, or of none that Redis still knows */
        user->order_id = 0;
        ngx_memzero(&user->of, sizeof(user->of));
        return NGX_HTTP_SECKILL_NO_ORDER;
    }

    result->success = 1;
    result->order_id = user->order_id;
    (void) ngx_sprintf((u_char *) result->order_no, "%016uL%016uL",
                       user->order_no[0], user->order_no[1]);

    if (user->of.order.rev != ngx_http_seckill_user_rev(ctx->facts.rev)
        || (uint32_t) ngx_current_msec - user->of.order.asked
           > NGX_HTTP_SECKILL_REMEMBER)
    {
        return NGX_HTTP_SECKILL_OLD_ORDER;
    }

    return NGX_HTTP_SECKILL_ORDER;
}


void
ngx_http_seckill_limit_refund(ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_seckill_shm_t   *shm;
    ngx_http_seckill_user_t  *user;

    if (ctx->charged == 0) {
        return;
    }

    shm = ngx_http_seckill_zone_lock(ctx->conf->shm_zone);

    user = ngx_http_seckill_user_locked(ctx, shm);

    if (user) {
        user->until[NGX_HTTP_SECKILL_LIMIT_BUY] -= (uint32_t) ctx->charged;
    }

    ngx_http_seckill_zone_unlock(ctx->conf->shm_zone);

    ctx->charged = 0;
}


/*
 * The generic cell rate algorithm, in milliseconds.  until: when the requests
 * that have passed would all have been made at the allowed rate; one more may
 * pass while that is no more than "burst" intervals ahead of now.  Returns 0,
 * or the time until one would pass.
 */

static ngx_msec_t
ngx_http_seckill_user_charge(ngx_http_seckill_user_t *user, ngx_uint_t which,
    ngx_msec_t interval, ngx_uint_t burst)
{
    int64_t   ahead;
    uint32_t  now;

    /*
     * The clock's lower half wraps in 49 days, differences do not care.  More
     * than is ever charged is a record so old that its past looks like future,
     * or was charged by a slower rate that is no longer in force.
     */

    now = (uint32_t) ngx_current_msec;
    ahead = (int32_t) (user->until[which] - now);

    if (ahead < 0 || ahead > (int64_t) (interval * (burst + 1))) {
        ahead = 0;
    }

    if (ahead > (int64_t) (interval * burst)) {
        return (ngx_msec_t) (ahead - (int64_t) (interval * burst));
    }

    user->until[which] = now + (uint32_t) ahead + (uint32_t) interval;

    return 0;
}


/* found or made; NULL: the zone has no room, and the request passes */

static ngx_http_seckill_user_t *
ngx_http_seckill_user_locked(ngx_http_seckill_ctx_t *ctx,
    ngx_http_seckill_shm_t *shm)
{
    ngx_uint_t                 i;
    ngx_http_seckill_key_t     key;
    ngx_http_seckill_user_t   *user;
    ngx_http_seckill_table_t  *table;

    ngx_http_seckill_key_set(&key, ctx->conf->source, ctx->activity,
                             ctx->user);

    table = &shm->tables[NGX_HTTP_SECKILL_USERS];

    user = (ngx_http_seckill_user_t *)
           ngx_http_seckill_record_find_locked(table, &key);

    if (user == NULL) {
        user = (ngx_http_seckill_user_t *)
               ngx_http_seckill_record_create_locked(ctx->conf->shm_zone, table,
                                        &key, sizeof(ngx_http_seckill_user_t));
        if (user) {
            for (i = 0; i < NGX_HTTP_SECKILL_LIMITS; i++) {
                user->until[i] = (uint32_t) ngx_current_msec;
            }
        }
    }

    return user;
}
