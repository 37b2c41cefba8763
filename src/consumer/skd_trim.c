/*
 * What may be deleted from a stream, and when a sale begins: the slow care for
 * an activity, every few seconds.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_stream.h"

#define SKD_TRIM_LIMIT  10000           /* entries deleted by one call: Redis is not kept */
#define SKD_TRIM_CALLS  20

typedef struct {
    uint64_t  ms;
    uint64_t  seq;
} skd_entry_id_t;


static int
skd_entry_id_parse(skd_entry_id_t *id, const redisReply *reply)
{
    char  *end;

    if (reply->type != REDIS_REPLY_STRING) {
        return -1;
    }

    id->ms = strtoull(reply->str, &end, 10);

    if (*end != '-') {
        return -1;
    }

    id->seq = strtoull(end + 1, &end, 10);

    return *end == '\0' ? 0 : -1;
}


static int
skd_entry_id_less(const skd_entry_id_t *left, const skd_entry_id_t *right)
{
    return left->ms != right->ms ? left->ms < right->ms : left->seq < right->seq;
}


/* The first id behind this one. */
static void
skd_entry_id_next(skd_entry_id_t *id)
{
    if (++id->seq == 0) {
        id->ms++;
    }
}


/* A field of XINFO's flat list of names and values, or NULL. */
static const redisReply *
skd_info_field(const redisReply *info, const char *name)
{
    for (size_t i = 0; i + 1 < info->elements; i += 2) {
        if (skb_redis_at(info, i)->type == REDIS_REPLY_STRING
            && strcmp(skb_redis_text(info, i), name) == 0)
        {
            return skb_redis_at(info, i + 1);
        }
    }

    return NULL;
}


/* Lowers *keep to the first entry that a group still needs. */
static skd_rc_e
skd_trim_group(skd_stream_t *stream, skd_reader_t *reader, const redisReply *info,
    skd_entry_id_t *keep)
{
    skd_rc_e           rc = SKD_OK;
    redisReply        *reply;
    skd_entry_id_t     first;
    const redisReply  *name = skd_info_field(info, "name");
    const redisReply  *pending = skd_info_field(info, "pending");
    const redisReply  *last = skd_info_field(info, "last-delivered-id");

    if (name == NULL || pending == NULL || last == NULL
        || skd_entry_id_parse(&first, last) != 0)
    {
        snprintf(reader->error, sizeof(reader->error), "unexpected reply to XINFO GROUPS");
        return SKD_BLOCKED;
    }

    skd_entry_id_next(&first);

    if (skd_entry_id_less(&first, keep)) {
        *keep = first;
    }

    if (pending->integer == 0) {
        return SKD_OK;
    }

    /* asked after the last delivered id: later deliveries have larger ids */
    reply = skb_redis_command(reader->redis, "XPENDING %s %b", stream->key, name->str, name->len);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(reader, reply);

    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 4
               && skd_entry_id_parse(&first, skb_redis_at(reply, 1)) == 0
               && skd_entry_id_less(&first, keep))
    {
        *keep = first;
    }

    freeReplyObject(reply);

    return rc;
}


/* One XTRIM; *deleted is what it took. */
static skd_rc_e
skd_trim_call(skd_stream_t *stream, skd_reader_t *reader, const char *keep, int exact,
    long long *deleted)
{
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;

    if (exact) {
        reply = skb_redis_command(reader->redis, "XTRIM %s MINID = %s", stream->key, keep);

    } else {
        reply = skb_redis_command(reader->redis, "XTRIM %s MINID ~ %s LIMIT %d", stream->key, keep,
                             SKD_TRIM_LIMIT);
    }

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(reader, reply);

    } else {
        *deleted = reply->integer;
    }

    freeReplyObject(reply);

    return rc;
}


/* Whole nodes first, in bounded steps; then the few that are left of the last one. */
static skd_rc_e
skd_trim_below(skd_stream_t *stream, skd_reader_t *reader, const skd_entry_id_t *keep)
{
    char       id[SKD_STREAM_ID_MAX];
    skd_rc_e   rc;
    long long  deleted = 0, sum = 0;

    snprintf(id, sizeof(id), "%" PRIu64 "-%" PRIu64, keep->ms, keep->seq);

    for (int i = 0; i < SKD_TRIM_CALLS; i++) {
        rc = skd_trim_call(stream, reader, id, 0, &deleted);

        if (rc != SKD_OK) {
            return rc;
        }

        sum += deleted;

        if (deleted == 0) {
            rc = skd_trim_call(stream, reader, id, 1, &deleted);
            sum += deleted;
            break;
        }
    }

    if (sum > 0) {
        skb_log(SKB_DEBUG, "stream trimmed", "activity=%" PRIu64 " entries=%lld",
                stream->activity, sum);
    }

    return rc;
}


skd_rc_e
skd_stream_trim(skd_stream_t *stream, skd_reader_t *reader, uint64_t now_ms)
{
    skd_rc_e        rc = SKD_OK;
    redisReply     *reply;
    skd_entry_id_t  keep;
    uint64_t        retain_ms = reader->config->consumer.retain_ms;

    if (now_ms <= retain_ms) {
        return SKD_OK;
    }

    keep.ms = now_ms - retain_ms;
    keep.seq = 0;

    reply = skb_redis_command(reader->redis, "XINFO GROUPS %s", stream->key);

    switch (skb_redis_class(reply)) {

    case SKB_REDIS_FINE:
        for (size_t i = 0; rc == SKD_OK && i < reply->elements; i++) {
            rc = skd_trim_group(stream, reader, skb_redis_at(reply, i), &keep);
        }

        if (rc == SKD_OK && reply->elements > 0) {
            rc = skd_trim_below(stream, reader, &keep);
        }

        break;

    case SKB_REDIS_ERROR:
        /* no stream, nothing to trim */
        break;

    default:
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


skd_rc_e
skd_stream_times(skd_stream_t *stream, skd_reader_t *reader, uint64_t *now_ms)
{
    char         facts[SK_KEY_MAX + 1];
    size_t       len;
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;
    const char  *prefix = reader->config->redis.prefix;

    reply = skb_redis_command(reader->redis, "TIME");

    if (skb_redis_class(reply) != SKB_REDIS_FINE || reply->elements != 2) {
        rc = skd_reader_failed(reader, reply);
        goto done;
    }

    *now_ms = strtoull(skb_redis_text(reply, 0), NULL, 10) * 1000
              + strtoull(skb_redis_text(reply, 1), NULL, 10) / 1000;

    if (stream->begun) {
        goto done;
    }

    freeReplyObject(reply);

    len = sk_key(facts, prefix, strlen(prefix), SK_KEY_ACTIVITY, stream->activity, 0);
    facts[len] = '\0';

    reply = skb_redis_command(reader->redis, "HGET %s start_ms", facts);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(reader, reply);
        goto done;
    }

    stream->start_ms = reply->type == REDIS_REPLY_STRING
                       ? strtoull(reply->str, NULL, 10) : 0;

done:

    freeReplyObject(reply);

    return rc;
}
