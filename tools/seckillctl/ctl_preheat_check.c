/*
 * What can refuse a preheat.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_preheat.h"
#include "sk_purchase.h"


/* The policy as text, "" when Redis does not say. */
static int
ctl_eviction_policy(ctl_t *ctl, char *policy, size_t size)
{
    int          rc;
    size_t       len;
    redisReply  *reply;
    const char  *at;

    policy[0] = '\0';

    /* not CONFIG: who may ask for that may read Redis' passwords */
    rc = ctl_redis_try(ctl, &reply, "INFO memory");
    if (rc != CTL_FINE) {
        return rc;
    }

    at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, "\nmaxmemory_policy:") : NULL;

    if (at) {
        at += sizeof("\nmaxmemory_policy:") - 1;
        len = strcspn(at, "\r\n");
        snprintf(policy, size, "%.*s", (int) len, at);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


int
ctl_preheat_eviction(ctl_t *ctl, const ctl_preheat_t *preheat)
{
    int   rc;
    char  policy[64];

    if (preheat->allow_eviction) {
        return CTL_FINE;
    }

    rc = ctl_eviction_policy(ctl, policy, sizeof(policy));
    if (rc != CTL_FINE) {
        return rc;
    }

    if (policy[0] == '\0') {
        ctl_warn("Redis does not tell its maxmemory-policy; it must be noeviction");
        return CTL_FINE;
    }

    if (strcmp(policy, "noeviction") != 0) {
        return ctl_fail(ctl, CTL_REFUSED, "maxmemory-policy of Redis is %s: under pressure it "
                        "would drop stock, buyers and accepted purchases; set noeviction, or "
                        "say --allow-eviction", policy);
    }

    return CTL_FINE;
}


int
ctl_preheat_check_row(ctl_t *ctl, const ctl_preheat_t *preheat)
{
    const ctl_row_t  *row;

    row = &preheat->row;

    if (!row->exists) {
        return ctl_fail(ctl, CTL_NO, "activity %" PRIu64 " is not in seckill_activities",
                        preheat->activity);
    }

    if (row->end_ms <= row->start_ms || row->start_ms <= 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " ends before it starts",
                        preheat->activity);
    }

    if (preheat->reserve.settled) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " was settled%s: its units are back "
                        "in the product, and an activity is sold once; for another sale insert a "
                        "new activity", preheat->activity,
                        preheat->row.sold > 0 ? "" : " without a sale");
    }

    if (row->status == 2 || row->end_ms <= preheat->live.now_ms) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is over", preheat->activity);
    }

    if (row->stock_limit > INT32_MAX) {
        return ctl_fail(ctl, CTL_REFUSED, "stock_limit %" PRIu64 " is above %d",
                        row->stock_limit, INT32_MAX);
    }

    if (row->max_quantity < 1 || row->max_quantity > SK_QUANTITY_MAX || row->price[0] == '-') {
        return ctl_fail(ctl, CTL_REFUSED, "max_quantity %" PRIu64 " or price %s makes no sense",
                        row->max_quantity, row->price);
    }

    return CTL_FINE;
}


/*
 * It began without terms, so its orders wait: what Redis has shown to buyers is the
 * promise.  It is written down once the row says the same.
 */
static int
ctl_preheat_check_promise(ctl_t *ctl, ctl_preheat_t *preheat)
{
    char               edits[CTL_EDITS_MAX];
    skb_terms_t        wanted;
    const ctl_live_t  *live;

    live = &preheat->live;

    ctl_terms_of_row(&preheat->row, live->epoch, &wanted);

    if (!ctl_terms_shown(&wanted, live, edits)) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " sells by epoch %" PRIu64 " of "
                        "which MySQL has no terms, and its row is not what Redis shows: %s in "
                        "Redis; set the row to what buyers were shown and run it again; nothing "
                        "was changed",
                        preheat->activity, live->epoch, edits);
    }

    preheat->resumed = 1;
    preheat->fresh = 1;

    return CTL_FINE;
}


/* After the start: what buyers were promised stays, whatever the row says by now. */
static int
ctl_preheat_check_started(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int                rc;
    char               start[CTL_TIME_MAX], limit[160] = "";
    ctl_promise_t      promise;
    const ctl_live_t  *live;

    live = &preheat->live;

    rc = ctl_promise_read(ctl, live, &preheat->row, &promise);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_time_utc(start, live->start_ms);

    if (promise.state == CTL_TERMS_SHOWN) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " has started (%s), and Redis shows "
                        "something else than its terms: %s; orders are by the first; nothing was "
                        "changed", preheat->activity, start, promise.edits);
    }

    if (promise.state == CTL_TERMS_EDITED) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " has started (%s), and its row was "
                        "edited: %s; buyers get what they were promised, set the row back; "
                        "nothing was changed", preheat->activity, start, promise.edits);
    }

    if (promise.state == CTL_TERMS_MISSING) {
        return ctl_preheat_check_promise(ctl, preheat);
    }

    if (live->epoch > preheat->row.epoch) {
        preheat->resumed = 1;
        return CTL_FINE;
    }

    if (live->stock_limit != preheat->row.stock_limit) {
        snprintf(limit, sizeof(limit), "; it was put up with %" PRIu64 " units and its row says %"
                 PRIu64 ": set the row back, more units come by restock", live->stock_limit,
                 preheat->row.stock_limit);
    }

    return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " has started (%s): %" PRId64
                    " units left, %" PRId64 " buyers; nothing was changed%s", preheat->activity,
                    start, live->stock, live->buyers, limit);
}


int
ctl_preheat_check_present(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int                rc, found;
    skb_terms_t        terms;
    const ctl_live_t  *live;

    live = &preheat->live;

    if (live->start_ms <= 0 || live->epoch == 0 || live->rev == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "the facts of activity %" PRIu64 " in Redis are damaged",
                        preheat->activity);
    }

    if (strcmp(live->state, "lost") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis lost activity %" PRIu64 ": restore it",
                        preheat->activity);
    }

    if (live->epoch != preheat->row.epoch) {
        rc = ctl_terms_read(ctl, preheat->activity, live->epoch, &terms, &found);
        if (rc != CTL_FINE) {
            return rc;
        }

        /*
         * Ahead with terms: a preheat was cut off after Redis had them.  Ahead without,
         * and sold: MySQL lost them.
         */
        if (live->epoch < preheat->row.epoch || (!found && live->seq == 0)) {
            return ctl_fail(ctl, CTL_REFUSED, "Redis holds epoch %" PRIu64 " of activity %" PRIu64
                            ", MySQL epoch %" PRIu64 ": one of them is not the right server, or "
                            "an old copy", live->epoch, preheat->activity, preheat->row.epoch);
        }
    }

    if (live->now_ms >= live->start_ms || live->buyers > 0 || live->seq > 0) {
        return ctl_preheat_check_started(ctl, preheat);
    }

    return CTL_FINE;
}


int
ctl_preheat_check_absent(ctl_t *ctl, const ctl_preheat_t *preheat)
{
    int                started;
    char               start[CTL_TIME_MAX];
    const ctl_live_t  *live;

    live = &preheat->live;
    started = live->now_ms >= preheat->row.start_ms;

    if (live->stock >= 0 || live->buyers > 0 || live->stream > 0) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis has stock, buyers or purchases of activity %"
                        PRIu64 " but not its facts: data was lost", preheat->activity);
    }

    if (preheat->reserve.orders > 0 || preheat->row.seq_seen > 0
        || (started && preheat->reserve.opened))
    {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " was in Redis and may have sold: "
                        "Redis lost it, a preheat would sell again", preheat->activity);
    }

    if (started && !preheat->late) {
        ctl_time_utc(start, preheat->row.start_ms);

        return ctl_fail(ctl, CTL_REFUSED, "the start of activity %" PRIu64 " (%s) has passed; "
                        "to open it late say --late", preheat->activity, start);
    }

    return CTL_FINE;
}


int
ctl_preheat_check_eligible(ctl_t *ctl, const ctl_preheat_t *preheat)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    ctl_key(ctl, key, SK_KEY_ELIGIBLE, preheat->activity, 0);

    rc = ctl_redis(ctl, &reply, "SCARD %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (preheat->row.by_registration && reply->integer == 0) {
        ctl_warn("activity %" PRIu64 " is for registered users, and \"%s\" has none yet",
                 preheat->activity, key);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}
