/*
 * Reading: XREADGROUP without BLOCK, so that one slow stream keeps none of the
 * others waiting.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_stream.h"


void
skd_stream_init(skd_stream_t *stream, const char *prefix, uint64_t activity)
{
    size_t  len;

    memset(stream, 0, sizeof(skd_stream_t));

    stream->activity = activity;
    len = sk_key(stream->key, prefix, strlen(prefix), SK_KEY_ORDERS, activity, 0);
    stream->key[len] = '\0';

    strcpy(stream->claim_cursor, "0-0");
    skd_stream_rewind(stream);
}


void
skd_stream_rewind(skd_stream_t *stream)
{
    stream->pending = 1;
    strcpy(stream->cursor, "0-0");
}


skd_rc_e
skd_reader_failed(skd_reader_t *reader, const redisReply *reply)
{
    reader->class = skb_redis_class(reply);
    snprintf(reader->error, sizeof(reader->error), "%s",
             skb_redis_reason(reader->redis, reply));

    switch (reader->class) {
    case SKB_REDIS_LOST:
    case SKB_REDIS_OUTAGE:
    case SKB_REDIS_DENIED:
        return SKD_REDIS_LOST;
    default:
        return SKD_BLOCKED;
    }
}


/*
 * The group is ours to make again; the stream is not: preheat and restore make it,
 * and one that is missing is a loss, which an empty one would hide.
 */
static skd_rc_e
skd_stream_group(skd_stream_t *stream, skd_reader_t *reader)
{
    skd_rc_e     rc = SKD_OK;
    uint32_t     wait_ms = 100;
    redisReply  *reply;

    /* from 0: what was sold before the group existed is sold all the same */
    reply = skb_redis_command(reader->redis, "XGROUP CREATE %s %s 0", stream->key, SKD_GROUP);

    if (skb_redis_class(reply) == SKB_REDIS_FINE) {
        skb_log(SKB_NOTICE, "consumer group created", "activity=%llu",
                (unsigned long long) stream->activity);

    } else if (skb_redis_class(reply) == SKB_REDIS_ERROR
               && strstr(reply->str, "requires the key to exist") != NULL)
    {
        wait_ms = 500;

    } else if (skb_redis_class(reply) != SKB_REDIS_ERROR
               || strncmp(reply->str, "BUSYGROUP", 9) != 0)
    {
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    /* it may vanish again and again: no faster than this */
    stream->next_ms = skd_now_ms() + skd_jitter(wait_ms);
    skd_stream_rewind(stream);

    return rc;
}


static skd_rc_e
skd_stream_fetch(skd_stream_t *stream, skd_reader_t *reader, skd_batch_t *batch)
{
    skd_rc_e     rc;
    redisReply  *reply;

    batch->count = 0;

    reply = skb_redis_command(reader->redis, "XREADGROUP GROUP %s %s COUNT %u STREAMS %s %s",
                         SKD_GROUP, reader->name, (unsigned) batch->size, stream->key,
                         stream->pending ? stream->cursor : ">");

    switch (skb_redis_class(reply)) {

    case SKB_REDIS_FINE:
        if (skd_batch_fill(batch, reply, stream->activity) == 0) {
            return SKD_OK;
        }

        snprintf(reader->error, sizeof(reader->error), "unexpected reply to XREADGROUP");
        return SKD_BLOCKED;

    case SKB_REDIS_NOGROUP:
        rc = skd_stream_group(stream, reader);
        break;

    default:
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


skd_rc_e
skd_stream_read(skd_stream_t *stream, skd_reader_t *reader, skd_batch_t *batch)
{
    int       pending = stream->pending;
    skd_rc_e  rc;

    rc = skd_stream_fetch(stream, reader, batch);

    if (rc != SKD_OK || batch->count > 0 || !pending || stream->next_ms > skd_now_ms()) {
        return rc;
    }

    stream->pending = 0;
    stream->swept = 1;

    return skd_stream_fetch(stream, reader, batch);
}


void
skd_stream_advance(skd_stream_t *stream, const skd_batch_t *batch)
{
    if (stream->pending && batch->count > 0) {
        snprintf(stream->cursor, sizeof(stream->cursor), "%s",
                 batch->entries[batch->count - 1].id);
    }
}
