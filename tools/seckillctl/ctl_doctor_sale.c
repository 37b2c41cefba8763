/*
 * doctor, one sale: preheated, equal in both servers, lasting, in time, with a
 * consumer that lives and keeps up.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"
#include "ctl_terms.h"

#define CTL_SILENT_MS  5000             /* over its time, and a consumer is dead */
#define CTL_CLAIM_MS   15000            /* a worker claims at least so often */


static void
ctl_doctor_facts(ctl_doctor_t *doctor, const ctl_live_t *live, const ctl_row_t *row)
{
    int  same;

    same = live->product_id == row->product_id && live->stock_limit == row->stock_limit
           && live->start_ms == row->start_ms && live->end_ms == row->end_ms
           && live->max_quantity == row->max_quantity && live->epoch == row->epoch
           && live->by_registration == row->by_registration
           && strcmp(live->price, row->price) == 0;

    ctl_doctor_tell(doctor, same ? CTL_IS_OK : CTL_IS_WRONG, "facts",
                    "preheat again; once it has started: set the row back",
                    "product, price, limit, times and epoch %s", same ? "are those of MySQL"
                    : "in Redis are not those of MySQL");
}


static int
ctl_doctor_terms(ctl_doctor_t *doctor, const ctl_live_t *live, const ctl_row_t *row)
{
    int            rc;
    ctl_promise_t  promise;

    rc = ctl_promise_read(doctor->ctl, live, row, &promise);
    if (rc != CTL_FINE) {
        return rc;
    }

    switch (promise.state) {

    case CTL_TERMS_EDITED:
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "terms", "set the row back: buyers get what they "
                        "were promised, other terms are another activity", "edited after the "
                        "start: %s", promise.edits);
        break;

    case CTL_TERMS_SHOWN:
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "terms", "before the start: preheat again with this "
                        "version; after it: orders are by the terms, close it if that is wrong",
                        "Redis shows something "
                        "else than its terms: %s", promise.edits);
        break;

    case CTL_TERMS_MISSING:
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "terms", "seckillctl schema apply, or preheat ID",
                        "MySQL has none of epoch %" PRIu64 ": orders wait", promise.epoch);
        break;

    default:
        ctl_doctor_tell(doctor, CTL_IS_OK, "terms", "", "the row is as promised");
    }

    return CTL_FINE;
}


static void
ctl_doctor_stock(ctl_doctor_t *doctor, const ctl_live_t *live, const ctl_row_t *row)
{
    int64_t      flight, due;
    const char  *cure;
    ctl_level_e  level;

    due = (int64_t) row->stock_limit - (int64_t) row->sold - (int64_t) row->returned;
    flight = live->unread < 0 || live->pending < 0 ? -1
             : live->unread + live->pending + (live->dead > 0 ? live->dead : 0);

    if (flight != 0 && live->stock != due) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "stock", "seckillctl reconcile tells",
                        "%" PRId64 " units in Redis, %" PRId64 " in MySQL, and purchases on their "
                        "way", live->stock, due);
        return;
    }

    level = CTL_IS_WRONG;
    cure = "before the start: preheat again; after it: reconcile";

    if (live->stock == due) {
        level = due > 0 ? CTL_IS_OK : CTL_IS_WARNING;
        cure = "restock, or leave it sold out";
    }

    ctl_doctor_tell(doctor, level, "stock", cure,
                    "%" PRId64 " units in Redis, %" PRId64 " in MySQL (limit minus sold)",
                    live->stock, due);
}


static void
ctl_doctor_window(ctl_doctor_t *doctor, const ctl_live_t *live, int64_t mysql_ms)
{
    char     start[CTL_TIME_MAX];
    int64_t  now, later;

    now = live->now_ms < mysql_ms ? live->now_ms : mysql_ms;
    later = live->now_ms > mysql_ms ? live->now_ms : mysql_ms;
    ctl_time_utc(start, live->start_ms);

    if (later >= live->end_ms) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "window", "settle it", "the sale is over");

    } else if (now >= live->start_ms) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "window", "nothing, if it is meant to",
                        "the sale runs since %s", start);

    } else {
        ctl_doctor_tell(doctor, later < live->start_ms ? CTL_IS_OK : CTL_IS_WRONG, "window",
                        "set the clocks: Redis and MySQL do not agree whether it has begun",
                        "start at %s, in %" PRId64 " s by Redis' clock, %" PRId64 " s by MySQL's",
                        start, (live->start_ms - live->now_ms) / 1000,
                        (live->start_ms - mysql_ms) / 1000);
    }
}


static void
ctl_doctor_state(ctl_doctor_t *doctor, const ctl_live_t *live)
{
    if (strcmp(live->state, "closed") == 0) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "state", "seckillctl open ID", "it is closed");
    } else {
        ctl_doctor_tell(doctor, strcmp(live->state, "open") ? CTL_IS_WRONG : CTL_IS_OK, "state",
                        "paused, lost: seckillctl restore ID; settled is over", "%s", live->state);
    }
}


static int
ctl_doctor_expiry(ctl_doctor_t *doctor, const ctl_live_t *live)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    size_t       i, wrong;
    redisReply  *reply;

    static const sk_key_e  keys[] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_ORDERS, SK_KEY_DEAD,
        SK_KEY_ELIGIBLE
    };

    wrong = 0;

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        ctl_key(doctor->ctl, key, keys[i], live->activity, 0);

        rc = ctl_redis(doctor->ctl, &reply, "PTTL %s", key);
        if (rc != CTL_FINE) {
            return rc;
        }

        if (reply->integer >= 0) {
            wrong++;
            ctl_doctor_tell(doctor, CTL_IS_WRONG, "expiry", "PERSIST it: only settle may let "
                            "keys expire", "\"%s\" expires in %lld ms", key, reply->integer);
        }

        freeReplyObject(reply);
    }

    if (wrong == 0) {
        ctl_doctor_tell(doctor, CTL_IS_OK, "expiry", "", "no key expires");
    }

    return CTL_FINE;
}


/*
 * Redis before 7.2 does not see a consumer that asks for what is not there: it
 * is seen when it claims.
 */
static int64_t
ctl_doctor_silence(const ctl_doctor_t *doctor)
{
    int64_t  ms;

    ms = ctl_config(doctor->ctl)->consumer.claim_idle_ms / 4;

    return (ms < CTL_CLAIM_MS ? ms : CTL_CLAIM_MS) + CTL_SILENT_MS;
}


static int
ctl_doctor_consumers(ctl_doctor_t *doctor, const ctl_live_t *live)
{
    int          rc, wrong;
    char         key[SK_KEY_MAX + 1];
    size_t       i, k, alive;
    int64_t      silence;
    redisReply  *reply;
    const redisReply  *one;

    ctl_key(doctor->ctl, key, SK_KEY_ORDERS, live->activity, 0);

    rc = ctl_redis_try(doctor->ctl, &reply, "XINFO CONSUMERS %s seckilld", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type != REDIS_REPLY_ARRAY) {
        wrong = reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "NOPERM", 6) != 0;
        ctl_doctor_tell(doctor, wrong ? CTL_IS_WRONG : CTL_IS_WARNING, "group", wrong
                        ? "preheat makes it; after a loss: restore"
                        : "use settings (-c) of a user with +xinfo, see README.md",
                        "%s", reply->type == REDIS_REPLY_ERROR ? reply->str : "no answer");
        freeReplyObject(reply);
        return CTL_FINE;
    }

    ctl_doctor_tell(doctor, CTL_IS_OK, "group", "", "seckilld");
    silence = ctl_doctor_silence(doctor);
    alive = 0;

    for (i = 0; i < reply->elements; i++) {
        one = skb_redis_at(reply, i);

        for (k = 0; k + 1 < one->elements; k += 2) {
            if (strcmp(skb_redis_text(one, k), "idle") == 0) {
                alive += skb_redis_at(one, k + 1)->integer < silence;
            }
        }
    }

    ctl_doctor_tell(doctor, alive ? CTL_IS_OK : CTL_IS_WRONG, "consumers",
                    "start seckilld, look at its log", "%zu of %zu were seen within %" PRId64
                    " s", alive, reply->elements, silence / 1000);
    freeReplyObject(reply);

    return CTL_FINE;
}


static int
ctl_doctor_eligible(ctl_doctor_t *doctor, const ctl_live_t *live)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    if (!live->by_registration) {
        return CTL_FINE;
    }

    ctl_key(doctor->ctl, key, SK_KEY_ELIGIBLE, live->activity, 0);

    rc = ctl_redis(doctor->ctl, &reply, "SCARD %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_doctor_tell(doctor, reply->integer > 0 ? CTL_IS_OK : CTL_IS_WRONG, "registered",
                    "load the registered users into this set: nobody else may buy",
                    "%lld users in \"%s\"", reply->integer, key);
    freeReplyObject(reply);

    return CTL_FINE;
}


/* the buyers' filter of a node: 8 bytes each, in an eighth of the zone */
static void
ctl_doctor_filter(ctl_doctor_t *doctor, const ctl_live_t *live)
{
    double  wanted;

    if (doctor->zone <= 0) {
        return;
    }

    wanted = (double) live->stock_limit * 8 * 8;

    ctl_doctor_tell(doctor, doctor->zone < wanted ? CTL_IS_WARNING : CTL_IS_OK, "zone",
                    "a larger seckill_zone under another name; until then everybody is asked of "
                    "Redis after the sell-out", "%.0f KiB at least, to refuse after %" PRIu64
                    " buyers from memory; the smallest node has %.0f KiB", wanted / 1024,
                    live->stock_limit, doctor->zone / 1024);
}


int
ctl_doctor_sale(ctl_doctor_t *doctor, uint64_t activity)
{
    int         rc;
    int64_t     mysql_ms;
    ctl_row_t   sale;
    ctl_live_t  live;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    if ((rc = ctl_live_read(doctor->ctl, activity, &live)) != CTL_FINE
        || (rc = ctl_row_read(doctor->ctl, activity, 0, &sale)) != CTL_FINE
        || (rc = ctl_sql(doctor->ctl, &res, "SELECT FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000)"))
           != CTL_FINE)
    {
        return rc;
    }

    row = mysql_fetch_row(res);
    mysql_ms = row ? ctl_column_i64(row[0]) : 0;
    mysql_free_result(res);

    if (doctor->all && (sale.status == 2 || (sale.exists && sale.end_ms <= live.now_ms))) {
        return CTL_FINE;
    }

    if (!sale.exists) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "facts", "insert it, then preheat",
                        "not in seckill_activities");
        return CTL_FINE;
    }

    if (!live.exists) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "facts", sale.epoch ? "seckillctl restore ID"
                        : "seckillctl preheat ID", "not in Redis");
        return CTL_FINE;
    }

    ctl_doctor_window(doctor, &live, mysql_ms);
    ctl_doctor_state(doctor, &live);
    ctl_doctor_limit(doctor, &live.limit, "seckillctl limit ID default");
    ctl_doctor_facts(doctor, &live, &sale);

    if ((rc = ctl_doctor_terms(doctor, &live, &sale)) != CTL_FINE) {
        return rc;
    }

    ctl_doctor_stock(doctor, &live, &sale);
    ctl_doctor_filter(doctor, &live);

    if ((rc = ctl_doctor_whole(doctor, &live)) != CTL_FINE
        || (rc = ctl_doctor_eligible(doctor, &live)) != CTL_FINE
        || (rc = ctl_doctor_expiry(doctor, &live)) != CTL_FINE)
    {
        return rc;
    }

    rc = ctl_doctor_consumers(doctor, &live);

    return rc == CTL_FINE ? ctl_doctor_rate(doctor, &live) : rc;
}
