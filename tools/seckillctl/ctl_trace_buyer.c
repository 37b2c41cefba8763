/*
 * trace, the buyer and the ledger: what is held of a purchase beside its entry
 * and its order.
 */

#include <inttypes.h>
#include <stdio.h>

#include "ctl_trace.h"

#define CTL_REFS_MAX  1024              /* bytes of a condition on the ledger */


static int
ctl_story_buyer_redis(ctl_story_t *story, uint64_t activity, uint64_t user)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    ctl_key(story->ctl, key, SK_KEY_BUYERS, activity, 0);

    rc = ctl_redis(story->ctl, &reply, "SISMEMBER %s %" PRIu64, key, user);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_story_tell(story, "order_users", "user %" PRIu64 " is %s the buyers of activity %" PRIu64,
                   user, reply->integer ? "among" : "not among", activity);
    freeReplyObject(reply);

    ctl_key(story->ctl, key, SK_KEY_RESULT, activity, user);

    rc = ctl_redis(story->ctl, &reply, "GET %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_story_tell(story, "result", "%s", reply->type == REDIS_REPLY_STRING ? reply->str
                   : "none: the buyer is told \"queueing\"");
    freeReplyObject(reply);

    return CTL_FINE;
}


static int
ctl_story_buyer_mysql(ctl_story_t *story, uint64_t activity, uint64_t user)
{
    int         rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    static const char *const  statuses[] = { "queueing", "success", "failed", "?" };

    rc = ctl_sql(story->ctl, &res, "SELECT status, updated_at FROM seckill_records WHERE user_id = %"
                 PRIu64 " AND activity_id = %" PRIu64, user, activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    row = mysql_fetch_row(res);
    ctl_story_tell(story, "record", "%s%s%s", row ? statuses[ctl_column_u64(row[0]) & 3] : "none",
                   row && row[1] ? ", since " : "", row && row[1] ? row[1] : "");
    mysql_free_result(res);

    return CTL_FINE;
}


int
ctl_story_buyer(ctl_story_t *story, const ctl_bought_one_t *one)
{
    int  rc;

    rc = ctl_story_buyer_redis(story, one->activity, one->user);

    return rc == CTL_FINE ? ctl_story_buyer_mysql(story, one->activity, one->user) : rc;
}


/* movements of this purchase: by its order, its numbers, its letter; and by its buyer, once */
int
ctl_story_ledger(ctl_story_t *story, const ctl_bought_one_t *one, int buyer)
{
    int         rc, n;
    char        refs[CTL_REFS_MAX], order[CTL_QUOTE_MAX], letter[CTL_QUOTE_MAX];
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    ctl_sql_quote(story->ctl, order, one->order_no);
    ctl_sql_quote(story->ctl, letter, one->letter);

    n = snprintf(refs, sizeof(refs), "ref = CONCAT('order:', %s) OR (kind = 'extra' AND epoch = %"
                 PRIu64 " AND ref = '%" PRIu64 "') OR ref = 'seq:%" PRIu64 ":%" PRIu64 "' "
                 "OR (kind = 'retry' AND ref = %s)", order, one->epoch, one->seq, one->epoch,
                 one->seq, letter);

    if (buyer) {
        snprintf(refs + n, sizeof(refs) - (size_t) n, " OR ref = 'user:%" PRIu64 "'", one->user);
    }

    rc = ctl_sql(story->ctl, &res, "SELECT kind, ref, units, target, actor, note, created_at "
                 "FROM seckill_stock_log WHERE activity_id = %" PRIu64 " AND (%s) ORDER BY id "
                 "LIMIT 100", one->activity, refs);
    if (rc != CTL_FINE) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        ctl_story_tell(story, "ledger", "%s %s: %s units%s%s, by %s%s%s, %s UTC", row[0], row[1],
                       row[2], row[3][0] ? " to " : "", row[3], row[4], row[5][0] ? ", " : "",
                       row[5], row[6] ? row[6] : "?");
    }

    mysql_free_result(res);

    return CTL_FINE;
}
