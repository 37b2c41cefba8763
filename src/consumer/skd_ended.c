/*
 * Sales that have ended settle themselves, once nothing of them is unread,
 * pending or dead.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "skb_log.h"
#include "skb_settle.h"
#include "skd_clocks.h"
#include "skd_keeper.h"

#define SKD_SETTLE_WAIT_MS     1000     /* until the queue is looked at again */
#define SKD_SETTLE_REFUSED_MS  30000    /* until somebody has looked, maybe */


/* Due: ended and not settled, or settled and gone from Redis, but still registered. */
static int
skd_ended_due(const skd_keeper_t *keeper, const skd_care_t *care)
{
    if (!care->has_row || care->unread || skd_now_ms() < care->settle_ms) {
        return 0;
    }

    if (!care->has_facts) {
        return care->ended;
    }

    return !care->settled && care->end_ms > 0
           && keeper->now_ms > care->end_ms + keeper->config->consumer.settle_after_ms;
}


/* What MySQL refuses for this sale, a CHECK among it, is no outage for the others. */
static skd_rc_e
skd_ended_failed(skd_keeper_t *keeper, skb_settle_e how, const skb_settle_t *settle)
{
    if (how == SKB_SETTLE_REDIS_LOST) {
        keeper->reader.class = SKB_REDIS_LOST;
        snprintf(keeper->reader.error, sizeof(keeper->reader.error), "%.200s", settle->error);
        return SKD_REDIS_LOST;
    }

    snprintf(keeper->writer.error, sizeof(keeper->writer.error), "%.200s", settle->error);

    switch (settle->class) {
    case SKB_MYSQL_CONFLICT:
        return SKD_CONFLICT;
    case SKB_MYSQL_DUPLICATE:
    case SKB_MYSQL_TOO_LARGE:
    case SKB_MYSQL_DATA:
        return SKD_BLOCKED;
    default:
        return SKD_MYSQL_LOST;
    }
}


/* What is on its way comes; who is missing is somebody's to look for. */
static skd_rc_e
skd_ended_wait(skd_stream_t *stream, const skb_settle_t *settle)
{
    skd_care_t  *care = &stream->care;

    if (strcmp(settle->why, "missing") != 0) {
        return SKD_OK;
    }

    care->settle_ms = skd_now_ms() + SKD_SETTLE_REFUSED_MS;

    if (care->absent != settle->missing) {
        care->absent = settle->missing;
        skd_count(SKD_COUNT_ABSENT, 1);
        skb_log(SKB_ERROR, "sale is not settled, buyers of it have no order",
                "activity=%" PRIu64 " buyers=%" PRIu64 " cure=\"seckillctl reconcile %" PRIu64
                " --repair replay|release\"", stream->activity, settle->missing,
                stream->activity);
    }

    return SKD_OK;
}


static skd_rc_e
skd_ended_settle(skd_keeper_t *keeper, skd_stream_t *stream)
{
    char           quoted[SKD_ERROR_MAX];
    skd_care_t    *care = &stream->care;
    skb_settle_e   how;
    skb_settle_t   settle;

    memset(&settle, 0, sizeof(settle));
    how = skb_settle(keeper->reader.redis, keeper->writer.mysql, keeper->config,
                     stream->activity, "seckilld", keeper->now_ms, 0, &settle);

    care->settle_ms = skd_now_ms() + SKD_SETTLE_WAIT_MS;

    switch (how) {

    case SKB_SETTLE_DONE:
        skd_count(SKD_COUNT_SETTLED, 1);
        skb_log(SKB_NOTICE, "sale is settled",
                "activity=%" PRIu64 " sold=%" PRIu64 " unsold=%" PRIu64, stream->activity,
                settle.sold, settle.unsold);
        care->settled = 1;
        return SKD_OK;

    case SKB_SETTLE_ALREADY:
        care->settled = 1;
        return SKD_OK;

    case SKB_SETTLE_WAIT:
        return skd_ended_wait(stream, &settle);

    case SKB_SETTLE_REFUSED:
        care->settle_ms = skd_now_ms() + SKD_SETTLE_REFUSED_MS;

        if (!care->refused) {
            care->refused = 1;
            skb_log(SKB_ERROR, "sale can't be settled", "activity=%" PRIu64 " error=%s",
                    stream->activity, skb_log_quote(quoted, sizeof(quoted), settle.error));
        }

        return SKD_OK;

    default:
        return skd_ended_failed(keeper, how, &settle);
    }
}


/* Settled, and its keys but the facts are gone: nothing is left to read or watch. */
static skd_rc_e
skd_ended_leave(skd_keeper_t *keeper, const skd_stream_t *stream)
{
    char         key[SK_KEY_MAX + 1];
    skd_rc_e     rc = SKD_OK;
    const char  *prefix = keeper->config->redis.prefix;
    redisReply  *reply;

    key[sk_key_global(key, prefix, strlen(prefix), "activities", strlen("activities"))] = '\0';
    reply = skb_redis_command(keeper->reader.redis, "SREM %s %" PRIu64, key, stream->activity);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(&keeper->reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


static int
skd_ended_gone(const skd_keeper_t *keeper, const skd_care_t *care)
{
    return care->has_row && care->ended && !care->unread && care->has_facts
           && strcmp(care->state, "settled") == 0 && care->expire_ms > 0
           && keeper->now_ms > care->expire_ms;
}


skd_rc_e
skd_keeper_settle(skd_keeper_t *keeper)
{
    skd_rc_e       rc = SKD_OK;
    skd_stream_t  *stream;

    /* for good, so not on one reading of one clock; the sale waits, nothing is lost */
    if (!skd_clocks_may_settle(keeper->config)) {
        return SKD_OK;
    }

    for (size_t i = 0; rc == SKD_OK && i < keeper->activities.count; i++) {
        stream = &keeper->activities.streams[i];

        if (skd_stopping(keeper->stop)) {
            break;
        }

        if (skd_ended_gone(keeper, &stream->care)) {
            rc = skd_ended_leave(keeper, stream);
            rc = skd_keeper_failed(keeper, SKD_DUTY_SETTLE, stream->activity, rc);
            continue;
        }

        if (skd_ended_due(keeper, &stream->care)
            && !skd_trouble_aside(SKD_DUTY_SETTLE, stream->activity))
        {
            rc = skd_ended_settle(keeper, stream);
            rc = skd_keeper_failed(keeper, SKD_DUTY_SETTLE, stream->activity, rc);
        }
    }

    return rc;
}
