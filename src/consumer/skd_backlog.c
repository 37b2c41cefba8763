/*
 * How much waits, counted from the group and never from the stream's length;
 * what Redis does not know it does not call zero.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_clock_trust.h"
#include "skd_keeper.h"

#define SKD_BACKLOG_COUNT  10000        /* entries counted one by one when lag is not known */


static const redisReply *
skd_group_field(const redisReply *info, const char *name)
{
    for (size_t i = 0; i + 1 < info->elements; i += 2) {
        if (strcmp(skb_redis_text(info, i), name) == 0) {
            return skb_redis_at(info, i + 1);
        }
    }

    return NULL;
}


/* Milliseconds that an entry is old; ids begin with Redis' own time. */
static void
skd_backlog_age(skd_backlog_t *backlog, uint64_t now_ms, const char *id)
{
    uint64_t  ms = strtoull(id, NULL, 10);
    int64_t   age = now_ms > ms ? (int64_t) (now_ms - ms) : 1;

    if (age > backlog->oldest_ms) {
        backlog->oldest_ms = age;
    }
}


/* Behind the last delivered one: its first entry, and all of them without a lag. */
static skd_rc_e
skd_backlog_unread(skd_keeper_t *keeper, const skd_stream_t *stream, const char *last,
    const redisReply *lag, skd_backlog_t *backlog)
{
    int          known = lag != NULL && lag->type == REDIS_REPLY_INTEGER && lag->integer >= 0;
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;

    if (strcmp(last, SKB_REDIS_LAST_ID) == 0) {
        backlog->unread = 0;
        return SKD_OK;
    }

    reply = skb_redis_command(keeper->reader.redis, "XRANGE %s (%s + COUNT %d", stream->key, last,
                              known ? 1 : SKD_BACKLOG_COUNT);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(&keeper->reader, reply);

    } else {
        backlog->unread = known ? lag->integer : (int64_t) reply->elements;

        if (reply->elements > 0) {
            skd_backlog_age(backlog, keeper->now_ms, skb_redis_text(skb_redis_at(reply, 0), 0));

            /* a lag of nothing while something waits is no lag */
            backlog->unread += backlog->unread == 0;
        }
    }

    freeReplyObject(reply);

    return rc;
}


static skd_rc_e
skd_backlog_pending(skd_keeper_t *keeper, const skd_stream_t *stream, skd_backlog_t *backlog)
{
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;

    reply = skb_redis_command(keeper->reader.redis, "XPENDING %s %s", stream->key, SKD_GROUP);

    if (skb_redis_class(reply) != SKB_REDIS_FINE || reply->elements != 4) {
        rc = skd_reader_failed(&keeper->reader, reply);

    } else {
        backlog->pending = skb_redis_at(reply, 0)->integer;

        if (skb_redis_at(reply, 1)->type == REDIS_REPLY_STRING) {
            skd_backlog_age(backlog, keeper->now_ms, skb_redis_text(reply, 1));
        }
    }

    freeReplyObject(reply);

    return rc;
}


static skd_rc_e
skd_backlog_group(skd_keeper_t *keeper, const skd_stream_t *stream, const redisReply *info,
    skd_backlog_t *backlog)
{
    skd_rc_e           rc;
    const redisReply  *last = skd_group_field(info, "last-delivered-id");

    if (last == NULL || last->type != REDIS_REPLY_STRING) {
        return SKD_OK;
    }

    rc = skd_backlog_unread(keeper, stream, last->str, skd_group_field(info, "lag"), backlog);

    return rc == SKD_OK ? skd_backlog_pending(keeper, stream, backlog) : rc;
}


static skd_rc_e
skd_backlog_dead(skd_keeper_t *keeper, const skd_stream_t *stream, skd_backlog_t *backlog)
{
    char         key[SK_KEY_MAX + 1];
    skd_rc_e     rc = SKD_OK;
    const char  *prefix = keeper->config->redis.prefix;
    redisReply  *reply;

    key[sk_key(key, prefix, strlen(prefix), SK_KEY_DEAD, stream->activity, 0)] = '\0';
    reply = skb_redis_command(keeper->reader.redis, "XLEN %s", key);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(&keeper->reader, reply);

    } else {
        backlog->dead = reply->integer;
    }

    freeReplyObject(reply);

    return rc;
}


static skd_rc_e
skd_backlog_one(skd_keeper_t *keeper, const skd_stream_t *stream, skd_backlog_t *backlog)
{
    skd_rc_e           rc;
    redisReply        *reply;
    const redisReply  *name;

    *backlog = (skd_backlog_t) { stream->activity, -1, -1, -1, 0 };
    rc = skd_backlog_dead(keeper, stream, backlog);

    if (rc != SKD_OK) {
        return rc;
    }

    reply = skb_redis_command(keeper->reader.redis, "XINFO GROUPS %s", stream->key);

    switch (skb_redis_class(reply)) {

    case SKB_REDIS_FINE:
        for (size_t i = 0; rc == SKD_OK && i < reply->elements; i++) {
            name = skd_group_field(skb_redis_at(reply, i), "name");

            if (name != NULL && strcmp(name->str, SKD_GROUP) == 0) {
                rc = skd_backlog_group(keeper, stream, skb_redis_at(reply, i), backlog);
            }
        }

        break;

    case SKB_REDIS_ERROR:
        break;                          /* no stream: nothing is known of it */

    default:
        rc = skd_reader_failed(&keeper->reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


/* Ages are told by Redis' own clock, which made the ids. */
static skd_rc_e
skd_backlog_clock(skd_keeper_t *keeper)
{
    skb_redis_class_e    class;
    skb_clock_reading_t  reading;

    class = skb_clock_read_redis(keeper->reader.redis, &reading, keeper->reader.error,
                                 sizeof(keeper->reader.error));

    if (class != SKB_REDIS_FINE) {
        keeper->reader.class = class;
        return SKD_REDIS_LOST;
    }

    keeper->now_ms = (uint64_t) reading.ms;

    return SKD_OK;
}


skd_rc_e
skd_keeper_backlog(skd_keeper_t *keeper)
{
    size_t         n = 0;
    skd_rc_e       rc;
    skd_stream_t  *stream;

    if (keeper->config->http_port == 0) {
        return SKD_OK;
    }

    rc = skd_backlog_clock(keeper);

    for (size_t i = 0; rc == SKD_OK && i < keeper->activities.count && n < SKD_BACKLOGS_MAX; i++) {
        stream = &keeper->activities.streams[i];
        rc = skd_backlog_one(keeper, stream, &keeper->backlogs[n++]);
        rc = skd_keeper_failed(keeper, SKD_DUTY_BACKLOG, stream->activity, rc);
    }

    if (rc == SKD_OK) {
        skd_backlogs_set(keeper->backlogs, n, keeper->activities.count);
    }

    return rc;
}
