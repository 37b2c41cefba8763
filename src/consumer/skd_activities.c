/*
 * One SMEMBERS a second: the set has a member per activity, not per buyer.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sk_id.h"
#include "skb_log.h"
#include "skd_activities.h"

#define SKD_REFRESH_MS  1000


void
skd_activities_done(skd_activities_t *activities)
{
    for (size_t i = 0; i < activities->count; i++) {
        skd_frozen_free(activities->streams[i].frozen);
    }

    free(activities->streams);
    memset(activities, 0, sizeof(skd_activities_t));
}


void
skd_activities_rewind(skd_activities_t *activities)
{
    for (size_t i = 0; i < activities->count; i++) {
        skd_stream_rewind(&activities->streams[i]);
        /* a cursor means nothing to another server */
        strcpy(activities->streams[i].claim_cursor, "0-0");
        activities->streams[i].claim_ms = 0;
        activities->streams[i].next_ms = 0;
    }

    activities->next_ms = 0;
}


static int
skd_stream_compare(const void *left, const void *right)
{
    const skd_stream_t  *a = left, *b = right;

    return a->activity < b->activity ? -1 : a->activity > b->activity;
}


/* Among the first n, which are sorted. */
static skd_stream_t *
skd_activities_among(skd_activities_t *activities, size_t n, uint64_t activity)
{
    skd_stream_t  key;

    if (n == 0) {
        return NULL;
    }

    memset(&key, 0, sizeof(key));
    key.activity = activity;

    return bsearch(&key, activities->streams, n, sizeof(skd_stream_t), skd_stream_compare);
}


skd_stream_t *
skd_activities_find(skd_activities_t *activities, uint64_t activity)
{
    return skd_activities_among(activities, activities->count, activity);
}


static skd_rc_e
skd_activities_room(skd_activities_t *activities, size_t size)
{
    void  *streams;

    if (size <= activities->size) {
        return SKD_OK;
    }

    size += size / 2;
    streams = realloc(activities->streams, size * sizeof(skd_stream_t));

    if (streams == NULL) {
        return SKD_BLOCKED;
    }

    activities->streams = streams;
    activities->size = size;

    return SKD_OK;
}


/* Whatever is in the set and is no id is somebody's mistake: say it, once. */
static int
skd_activities_id(skd_activities_t *activities, const redisReply *member, uint64_t *id)
{
    char  quoted[64];

    if (member->type == REDIS_REPLY_STRING && sk_id_parse(member->str, member->len, id) == 0) {
        return 1;
    }

    if (!activities->complained && !activities->quiet) {
        activities->complained = 1;
        skb_log(SKB_WARN, "registered activity is not an id", "member=%s",
                skb_log_quote(quoted, sizeof(quoted), member->str));
    }

    return 0;
}


static void
skd_activities_drop(skd_activities_t *activities)
{
    size_t  kept = 0;

    for (size_t i = 0; i < activities->count; i++) {
        if (activities->streams[i].listed) {
            activities->streams[kept++] = activities->streams[i];

        } else {
            skb_log(activities->quiet ? SKB_DEBUG : SKB_INFO,
                    "activity is not registered any more", "activity=%" PRIu64,
                    activities->streams[i].activity);
            skd_frozen_free(activities->streams[i].frozen);
        }
    }

    activities->count = kept;
}


static skd_rc_e
skd_activities_merge(skd_activities_t *activities, skd_reader_t *reader,
    const redisReply *members)
{
    size_t         known = activities->count;
    uint64_t       id;
    skd_stream_t  *stream;

    if (members->elements > SKD_ACTIVITIES_MAX
        || skd_activities_room(activities, known + members->elements) != SKD_OK)
    {
        snprintf(reader->error, sizeof(reader->error), "%zu registered activities are too many",
                 members->elements);
        return SKD_BLOCKED;
    }

    for (size_t i = 0; i < known; i++) {
        activities->streams[i].listed = 0;
    }

    for (size_t i = 0; i < members->elements; i++) {
        if (!skd_activities_id(activities, members->element[i], &id)) {
            continue;
        }

        stream = skd_activities_among(activities, known, id);

        if (stream == NULL) {
            stream = &activities->streams[activities->count++];
            skd_stream_init(stream, reader->config->redis.prefix, id);
            skb_log(activities->quiet ? SKB_DEBUG : SKB_INFO, "activity found", "activity=%" PRIu64, id);
        }

        stream->listed = 1;
    }

    skd_activities_drop(activities);

    if (activities->count > 0) {
        qsort(activities->streams, activities->count, sizeof(skd_stream_t), skd_stream_compare);
    }

    return SKD_OK;
}


skd_rc_e
skd_activities_refresh(skd_activities_t *activities, skd_reader_t *reader)
{
    char         key[SK_KEY_MAX];
    size_t       len;
    skd_rc_e     rc;
    redisReply  *reply;
    const char  *prefix = reader->config->redis.prefix;

    activities->next_ms = skd_now_ms() + SKD_REFRESH_MS;

    len = sk_key_global(key, prefix, strlen(prefix), "activities", strlen("activities"));
    reply = skb_redis_command(reader->redis, "SMEMBERS %b", key, len);

    if (skb_redis_class(reply) == SKB_REDIS_FINE && reply->type == REDIS_REPLY_ARRAY) {
        rc = skd_activities_merge(activities, reader, reply);

    } else {
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}
