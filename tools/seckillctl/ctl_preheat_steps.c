/*
 * The work of a preheat, in three steps that are each whole in themselves:
 *
 *   1  MySQL: the terms of the epoch, and units that are missing
 *   2  Redis: facts and epoch in one script, which asks its clock once more
 *   3  MySQL: the activity's epoch, and units that are too many
 *
 * Terms are never changed, so a run that was cut off anywhere has promised nothing
 * that is not written down, and the next one finds out by itself what is done.
 * Units are reserved before Redis may sell them and given back after it can't.
 * Everything that can refuse is asked before the first write.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_ledger.h"
#include "ctl_lost.h"
#include "ctl_preheat.h"


/*
 * Which epoch Redis shall have: the last one when its terms are the row's, else a new
 * one above all.  Terms of a run that was cut off are left alone: somebody may still
 * be about to tell Redis of them.
 */
static int
ctl_preheat_epoch(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int               rc, found;
    char              edits[CTL_EDITS_MAX];
    uint64_t          base;
    skb_terms_t       last;
    const ctl_row_t  *row;

    row = &preheat->row;

    if (preheat->resumed) {
        ctl_terms_of_row(row, preheat->live.epoch, &preheat->terms);
        return CTL_FINE;
    }

    rc = ctl_terms_read(ctl, preheat->activity, 0, &last, &found);
    if (rc != CTL_FINE) {
        return rc;
    }

    base = found && last.epoch > row->epoch ? last.epoch : row->epoch;
    preheat->fresh = !found || last.epoch != base || !ctl_terms_same(&last, row, edits);
    ctl_terms_of_row(row, base + (uint64_t) preheat->fresh, &preheat->terms);

    return CTL_FINE;
}


static int
ctl_preheat_ask(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int  rc;

    if ((rc = ctl_row_read(ctl, preheat->activity, 1, &preheat->row)) != CTL_FINE
        || (rc = ctl_live_read(ctl, preheat->activity, &preheat->live)) != CTL_FINE
        || (rc = ctl_reserve_read(ctl, preheat->activity, &preheat->row, &preheat->reserve))
           != CTL_FINE
        || (rc = ctl_preheat_check_row(ctl, preheat)) != CTL_FINE)
    {
        return rc;
    }

    rc = preheat->live.exists ? ctl_preheat_check_present(ctl, preheat)
                              : ctl_preheat_check_absent(ctl, preheat);

    if (rc == CTL_FINE) {
        rc = ctl_preheat_check_eligible(ctl, preheat);
    }

    return rc == CTL_FINE ? ctl_preheat_epoch(ctl, preheat) : rc;
}


/* dry: Redis tells what it would do, and changes nothing. */
static int
ctl_preheat_script(ctl_t *ctl, const ctl_preheat_t *preheat, int dry, redisReply **reply)
{
    char                keys[5][SK_KEY_MAX + 1], number[7][24];
    const ctl_row_t    *row;
    const skb_terms_t  *terms;

    row = &preheat->row;
    terms = &preheat->terms;

    ctl_key(ctl, keys[0], SK_KEY_ACTIVITY, preheat->activity, 0);
    ctl_key(ctl, keys[1], SK_KEY_STOCK, preheat->activity, 0);
    ctl_key(ctl, keys[2], SK_KEY_BUYERS, preheat->activity, 0);
    ctl_key(ctl, keys[3], SK_KEY_ORDERS, preheat->activity, 0);
    ctl_key(ctl, keys[4], SK_KEY_ELIGIBLE, preheat->activity, 0);

    snprintf(number[0], sizeof(number[0]), "%" PRIu64, terms->product);
    snprintf(number[1], sizeof(number[1]), "%" PRIu64, row->stock_limit);
    snprintf(number[2], sizeof(number[2]), "%" PRId64, terms->start_ms);
    snprintf(number[3], sizeof(number[3]), "%" PRId64, terms->end_ms);
    snprintf(number[4], sizeof(number[4]), "%" PRIu64, terms->max_quantity);
    snprintf(number[5], sizeof(number[5]), "%d", terms->by_registration);
    snprintf(number[6], sizeof(number[6]), "%" PRIu64, terms->epoch);

    return ctl_redis_eval(ctl, reply, SK_SCRIPT_PREHEAT, 5, (const char *[]) {
                              keys[0], keys[1], keys[2], keys[3], keys[4],
                              preheat->late ? "1" : "0", number[0], terms->price, number[1],
                              number[2], number[3], number[4], number[5], number[6], "dry"
                          }, dry ? 10 : 9);
}


/* { status, epoch, rev, now_ms, stock } */
static int
ctl_preheat_answer(ctl_t *ctl, ctl_preheat_t *preheat, const redisReply *reply)
{
    const char  *status;

    if (reply->type == REDIS_REPLY_ERROR) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis: %s", reply->str);
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 5
        || skb_redis_at(reply, 0)->type != REDIS_REPLY_STRING)
    {
        return ctl_fail(ctl, CTL_REFUSED, "lua/preheat.lua gave an answer of another version");
    }

    status = skb_redis_text(reply, 0);

    if (strcmp(status, "started") == 0 || strcmp(status, "late") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " started this very moment%s",
                        preheat->activity, status[0] == 'l' ? "; say --late to open it" : "");
    }

    snprintf(preheat->status, sizeof(preheat->status), "%s", status);
    preheat->rev = ctl_reply_u64(skb_redis_at(reply, 2));
    preheat->stock = (int64_t) ctl_reply_u64(skb_redis_at(reply, 4));

    return CTL_FINE;
}


/* Redis' own answer to all of it, before anything is written. */
static int
ctl_preheat_prove(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int          rc;
    redisReply  *reply;

    rc = ctl_preheat_script(ctl, preheat, 1, &reply);

    if (rc == CTL_FINE) {
        rc = ctl_preheat_answer(ctl, preheat, reply);
        freeReplyObject(reply);
    }

    if (rc != CTL_FINE) {
        ctl_warn("activity %" PRIu64 ": nothing was changed", preheat->activity);
    }

    return rc;
}


/* The first step, after the questions, in one transaction. */
static int
ctl_preheat_promise(ctl_t *ctl, void *data)
{
    int             rc;
    char            error[CTL_MESSAGE_MAX / 2];
    ctl_preheat_t  *preheat;

    preheat = data;

    rc = ctl_preheat_ask(ctl, preheat);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (preheat->resumed) {
        snprintf(preheat->status, sizeof(preheat->status), "finished");
        preheat->rev = preheat->live.rev;
        preheat->stock = preheat->live.stock;

    } else if ((rc = ctl_preheat_prove(ctl, preheat)) != CTL_FINE) {
        return rc;
    }

    preheat->reserve.epoch = preheat->terms.epoch;

    if (preheat->fresh
        && skb_terms_write(ctl_mysql(ctl), preheat->activity, &preheat->terms,
                           SKB_TERMS_PREHEAT, error, sizeof(error)) != SKB_TERMS_DONE)
    {
        return ctl_sql_failed(ctl);
    }

    if (preheat->resumed) {
        return CTL_FINE;
    }

    rc = ctl_reserve_take(ctl, preheat->activity, &preheat->row, &preheat->reserve);

    /* nothing in Redis can be of another epoch yet */
    if (rc == CTL_FINE && preheat->row.epoch == 0) {
        rc = ctl_sql(ctl, NULL, "UPDATE seckill_activities SET epoch = %" PRIu64
                     " WHERE id = %" PRIu64, preheat->terms.epoch, preheat->activity);
    }

    return rc;
}


/* The second step. */
static int
ctl_preheat_redis(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int          rc;
    redisReply  *reply;

    rc = ctl_register(ctl, preheat->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    preheat->step = CTL_PREHEAT_ASKED;

    rc = ctl_preheat_script(ctl, preheat, 0, &reply);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_preheat_answer(ctl, preheat, reply);
    freeReplyObject(reply);

    if (rc != CTL_FINE) {
        preheat->step = CTL_PREHEAT_PROMISED;
        return rc;
    }

    preheat->step = CTL_PREHEAT_LIVE;
    ctl_failpoint("after_facts");

    /* the nodes drop what they remember, and find all of it there */
    return ctl_nodes_tell(ctl);
}


/* The third step, in one transaction. */
static int
ctl_preheat_finish(ctl_t *ctl, void *data)
{
    int             rc;
    char            error[CTL_MESSAGE_MAX / 2];
    ctl_row_t       now;
    ctl_preheat_t  *preheat;

    preheat = data;

    /* the row's lock; the values are those that Redis was given */
    rc = ctl_row_read(ctl, preheat->activity, 1, &now);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (skb_terms_finish(ctl_mysql(ctl), preheat->activity, preheat->terms.epoch, error,
                         sizeof(error)) == SKB_TERMS_FAILED)
    {
        return ctl_sql_failed(ctl);
    }

    if (!preheat->resumed || preheat->live.stock_limit == preheat->row.stock_limit) {
        rc = ctl_reserve_give(ctl, preheat->activity, &preheat->row, &preheat->reserve);
    }

    return rc == CTL_FINE ? ctl_reserve_opened(ctl, preheat->activity, &preheat->row,
                                               preheat->terms.epoch) : rc;
}


/* What is done and what is not, for whoever has to decide in a hurry. */
static int
ctl_preheat_partly(const ctl_preheat_t *preheat, int rc)
{
    char                  taken[64] = "no units";
    uint64_t              epoch;
    const ctl_reserve_t  *reserve;

    reserve = &preheat->reserve;
    epoch = preheat->terms.epoch;

    if (reserve->moved < 0) {
        snprintf(taken, sizeof(taken), "%" PRId64 " units", -reserve->moved);
    }

    /* all of the first step was done before, and Redis said no */
    if (preheat->step == CTL_PREHEAT_PROMISED && !preheat->fresh && reserve->moved == 0
        && preheat->row.epoch > 0)
    {
        ctl_warn("activity %" PRIu64 ": nothing was changed", preheat->activity);
        return rc;
    }

    switch (preheat->step) {

    case CTL_PREHEAT_PROMISED:
        ctl_warn("activity %" PRIu64 ": MySQL has the terms of epoch %" PRIu64 " and took %s "
                 "from the product, Redis is as it was: run preheat again; units that were "
                 "taken go back when the sale is settled", preheat->activity, epoch, taken);
        break;

    case CTL_PREHEAT_ASKED:
        ctl_warn("activity %" PRIu64 ": MySQL has the terms of epoch %" PRIu64 " and took %s "
                 "from the product, Redis did not say whether it took them: run preheat again",
                 preheat->activity, epoch, taken);
        break;

    default:
        ctl_warn("activity %" PRIu64 ": MySQL and Redis have the terms of epoch %" PRIu64
                 ", MySQL took %s from the product; not done: the row's epoch, and %" PRId64
                 " units back to the product: run preheat again", preheat->activity, epoch,
                 taken, reserve->back);
        break;
    }

    return CTL_PARTLY;
}


/* Everything but the last word, undone. */
static int
ctl_preheat_try(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int  rc;

    rc = ctl_sql(ctl, NULL, "START TRANSACTION");

    if (rc == CTL_FINE) {
        rc = ctl_preheat_promise(ctl, preheat);
    }

    if (rc == CTL_FINE && !preheat->resumed) {
        rc = ctl_reserve_give(ctl, preheat->activity, &preheat->row, &preheat->reserve);
    }

    if (ctl_sql(ctl, NULL, "ROLLBACK") != CTL_FINE && rc == CTL_FINE) {
        rc = CTL_UNREACHABLE;
    }

    return rc;
}


int
ctl_preheat_work(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int  rc;

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE
        || (rc = ctl_open_redis(ctl)) != CTL_FINE
        || (rc = ctl_preheat_eviction(ctl, preheat)) != CTL_FINE)
    {
        return rc;
    }

    /* two preheats at once: the second finds the work of the first done */
    rc = ctl_activity_lock(ctl, preheat->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (preheat->dry_run) {
        rc = ctl_preheat_try(ctl, preheat);

    } else {
        rc = ctl_sql_transaction(ctl, ctl_preheat_promise, preheat);
    }

    if (rc != CTL_FINE || preheat->dry_run) {
        return rc;
    }

    preheat->step = CTL_PREHEAT_PROMISED;
    ctl_failpoint("after_terms");

    if (preheat->resumed) {
        preheat->step = CTL_PREHEAT_LIVE;

    } else if ((rc = ctl_preheat_redis(ctl, preheat)) != CTL_FINE) {
        return ctl_preheat_partly(preheat, rc);
    }

    if ((rc = ctl_sql_transaction(ctl, ctl_preheat_finish, preheat)) != CTL_FINE) {
        return ctl_preheat_partly(preheat, rc);
    }

    ctl_failpoint("after_epoch");

    /* all is done: a lock that ends with the connection is no reason to say less */
    ctl_activity_unlock(ctl, preheat->activity);

    return CTL_FINE;
}
