/*
 * The Redis half of a restore.  Nothing is sold while the facts are missing, so
 * buyers and results can be written in pages.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_lost.h"
#include "ctl_restore.h"
#include "sk_result.h"
#include "skb_control.h"
#include "skb_redis.h"

#define CTL_PAGE  500                   /* users of one write */


static void
ctl_restore_keys(ctl_t *ctl, const ctl_restore_t *restore, char (*keys)[SK_KEY_MAX + 1])
{
    ctl_key(ctl, keys[0], SK_KEY_ACTIVITY, restore->activity, 0);
    ctl_key(ctl, keys[1], SK_KEY_STOCK, restore->activity, 0);
    ctl_key(ctl, keys[2], SK_KEY_BUYERS, restore->activity, 0);
    ctl_key(ctl, keys[3], SK_KEY_ORDERS, restore->activity, 0);
    ctl_key(ctl, keys[4], SK_KEY_ELIGIBLE, restore->activity, 0);
    ctl_key(ctl, keys[5], SK_KEY_DEAD, restore->activity, 0);
}


/* { status, rev, state, mark } of lua/clear.lua */
static int
ctl_restore_cleared(ctl_t *ctl, ctl_restore_t *restore, const redisReply *reply)
{
    const char  *status;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4
        || skb_redis_at(reply, 0)->type != REDIS_REPLY_STRING
        || skb_redis_at(reply, 2)->type != REDIS_REPLY_STRING
        || skb_redis_at(reply, 3)->type != REDIS_REPLY_STRING)
    {
        return ctl_redis_refused(ctl, reply);
    }

    status = skb_redis_text(reply, 0);
    restore->old_rev = ctl_reply_u64(skb_redis_at(reply, 1));

    if (strcmp(status, "healthy") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is open and nothing of it is "
                        "missing: there is nothing to restore", restore->activity);
    }

    if (strcmp(status, "eligible") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "of activity %" PRIu64 " only the registered users are "
                        "missing: load them again, it goes on by itself", restore->activity);
    }

    if (strcmp(status, "settled") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is settled", restore->activity);
    }

    if (strcmp(status, "busy") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "purchases of activity %" PRIu64 " are unread or "
                        "pending: let seckilld write them first", restore->activity);
    }

    if (strcmp(status, "moved") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " has changed this very moment, "
                        "nothing was done: run it again", restore->activity);
    }

    snprintf(restore->mark, sizeof(restore->mark), "%s", skb_redis_text(reply, 3));
    restore->cleared = strcmp(status, "cleared") == 0;

    if (strcmp(skb_redis_text(reply, 2), "closed") == 0) {
        snprintf(restore->state, sizeof(restore->state), "closed");
    }

    return CTL_FINE;
}


/* an order is a proof of its seq, whatever was written down */
static int
ctl_restore_seen(ctl_t *ctl, const ctl_restore_t *restore, uint64_t *seq)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT MAX(seq) FROM seckill_orders WHERE activity_id = %" PRIu64
                 " AND epoch = %" PRIu64, restore->activity, restore->books.row.epoch);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *seq = column ? ctl_column_u64(column[0]) : 0;
    mysql_free_result(res);

    if (*seq < restore->books.row.seq_seen) {
        *seq = restore->books.row.seq_seen;
    }

    return CTL_FINE;
}


static int
ctl_restore_script(ctl_t *ctl, ctl_restore_t *restore, const char *how)
{
    int          rc;
    uint64_t     seq;
    char         keys[6][SK_KEY_MAX + 1], number[2][24];
    redisReply  *reply;

    rc = ctl_restore_seen(ctl, restore, &seq);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_restore_keys(ctl, restore, keys);
    snprintf(number[0], sizeof(number[0]), "%" PRIu64, restore->books.row.epoch);
    snprintf(number[1], sizeof(number[1]), "%" PRIu64, seq);

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_CLEAR, 6, (const char *[]) {
                            keys[0], keys[1], keys[2], keys[3], keys[4], keys[5], how,
                            number[0], number[1], restore->books.row.sold > 0 ? "1" : "0",
                            restore->mark
                        }, 5);
    if (rc != CTL_FINE) {
        /* it may have run */
        restore->cleared |= strcmp(how, "clear") == 0;
        return rc;
    }

    rc = ctl_restore_cleared(ctl, restore, reply);
    freeReplyObject(reply);

    return rc;
}


int
ctl_restore_look(ctl_t *ctl, ctl_restore_t *restore)
{
    restore->mark[0] = '\0';

    return ctl_restore_script(ctl, restore, "look");
}


int
ctl_restore_clear(ctl_t *ctl, ctl_restore_t *restore)
{
    return ctl_restore_script(ctl, restore, "clear");
}


static int
ctl_restore_is_buyer(const ctl_person_t *person)
{
    return (person->flags & (CTL_ORDERED | CTL_TOMB | CTL_LETTER)) != 0;
}


/* queues the commands of one user; returns how many, or -1 */
static int
ctl_restore_append(ctl_t *ctl, const ctl_restore_t *restore, const ctl_person_t *person,
    const char *buyers)
{
    int            rc;
    char           key[SK_KEY_MAX + 1], text[SK_RESULT_MAX + 1];
    sk_result_t    result;
    redisContext  *redis;

    redis = ctl_redis_context(ctl);

    memset(&result, 0, sizeof(result));
    result.success = (person->flags & CTL_ORDERED) != 0;

    if (result.success) {
        result.order_id = person->order_id;
        memcpy(result.order_no, person->order_no, sizeof(result.order_no));
    } else {
        strcpy(result.reason, "failed");
    }

    text[sk_result_format(text, &result)] = '\0';
    ctl_key(ctl, key, SK_KEY_RESULT, restore->activity, person->user);

    rc = redisAppendCommand(redis, "SADD %s %" PRIu64, buyers, person->user);
    rc |= result.success ? redisAppendCommand(redis, "SET %s %s", key, text)
                         : redisAppendCommand(redis, "SET %s %s NX", key, text);

    return rc == REDIS_OK ? 2 : -1;
}


static int
ctl_restore_replies(ctl_t *ctl, int n)
{
    int            i, rc;
    void          *reply;
    redisContext  *redis;

    rc = CTL_FINE;
    redis = ctl_redis_context(ctl);

    for (i = 0; i < n; i++) {
        if (skb_redis_reply(redis, &reply) != REDIS_OK) {
            return ctl_fail(ctl, CTL_UNREACHABLE, "Redis: %s", skb_redis_reason(redis, NULL));
        }

        if (rc == CTL_FINE && skb_redis_class(reply) != SKB_REDIS_FINE) {
            rc = ctl_fail(ctl, CTL_REFUSED, "Redis: %s", skb_redis_reason(redis, reply));
        }

        freeReplyObject(reply);
    }

    return rc;
}


static int
ctl_restore_buyers(ctl_t *ctl, ctl_restore_t *restore)
{
    int                  rc, n, more;
    char                 buyers[SK_KEY_MAX + 1];
    size_t               i, last;
    const ctl_people_t  *people;

    rc = CTL_FINE;
    people = &restore->books.people;
    ctl_key(ctl, buyers, SK_KEY_BUYERS, restore->activity, 0);

    for (i = 0; i < people->n && rc == CTL_FINE; i = last) {
        n = 0;

        for (last = i; last < people->n && last < i + CTL_PAGE; last++) {
            if (!ctl_restore_is_buyer(&people->all[last])) {
                continue;
            }

            more = ctl_restore_append(ctl, restore, &people->all[last], buyers);
            if (more < 0) {
                return ctl_fail(ctl, CTL_UNREACHABLE, "Redis: out of memory");
            }

            n += more;
            restore->buyers++;
        }

        rc = ctl_restore_replies(ctl, n);
        ctl_failpoint("after_page");
    }

    return rc;
}


/* { rev, now_ms } of lua/restore.lua */
static int
ctl_restore_open(ctl_t *ctl, ctl_restore_t *restore)
{
    int                 rc;
    char                keys[6][SK_KEY_MAX + 1], number[13][24];
    size_t              i;
    redisReply         *reply;
    const ctl_row_t    *row;
    const skb_terms_t  *terms;

    row = &restore->books.row;
    terms = &restore->terms;
    ctl_restore_keys(ctl, restore, keys);

    const uint64_t  numbers[13] = {
        terms->product, row->stock_limit, (uint64_t) terms->start_ms, (uint64_t) terms->end_ms,
        terms->max_quantity, (uint64_t) terms->by_registration, restore->epoch,
        (uint64_t) restore->books.restocks, (uint64_t) restore->books.resold,
        (uint64_t) restore->stock, restore->buyers, restore->old_rev + 1, restore->last_ms
    };

    for (i = 0; i < 13; i++) {
        snprintf(number[i], sizeof(number[i]), "%" PRIu64, numbers[i]);
    }

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_RESTORE, 4, (const char *[]) {
                            keys[0], keys[1], keys[2], keys[3], number[0], terms->price,
                            number[1], number[2], number[3], number[4], number[5], number[6],
                            restore->state, number[7], number[8], number[9], number[10],
                            number[11], number[12]
                        }, 15);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
        restore->rev = ctl_reply_u64(skb_redis_at(reply, 0));
    } else {
        rc = ctl_redis_refused(ctl, reply);
    }

    freeReplyObject(reply);

    return rc;
}


/* above whatever the nodes remember, also when the old one was lost: by the clock */
static int
ctl_restore_control(ctl_t *ctl, uint64_t now_ms)
{
    int          rc;
    redisReply  *reply;

    rc = CTL_FINE;
    reply = skb_control_raise(ctl_redis_context(ctl), ctl_config(ctl), now_ms);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = ctl_fail(ctl, CTL_UNREACHABLE, "Redis: %s",
                      skb_redis_reason(ctl_redis_context(ctl), reply));
    }

    freeReplyObject(reply);

    return rc;
}


int
ctl_restore_write(ctl_t *ctl, ctl_restore_t *restore)
{
    int  rc;

    if ((rc = ctl_register(ctl, restore->activity)) != CTL_FINE
        || (rc = ctl_restore_buyers(ctl, restore)) != CTL_FINE
        || (rc = ctl_restore_open(ctl, restore)) != CTL_FINE)
    {
        return rc;
    }

    ctl_failpoint("after_restore");

    return ctl_restore_control(ctl, (uint64_t) restore->books.live.now_ms);
}
