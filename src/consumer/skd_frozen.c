/*
 * XPENDING says 0 of an entry whose time of delivery is in the future, and no
 * consumer that works on one keeps it at 0 for long: it acknowledges, or holds it
 * anew, which sets its time.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_stream.h"

#define SKD_FROZEN_MAX     1000         /* of one stream at a time, the oldest first */
#define SKD_FROZEN_MIN_MS  50           /* between looks */
#define SKD_FROZEN_CAP_MS  15000
#define SKD_FROZEN_ARGS    4            /* before the entries: key, group, idle, count */

typedef struct {
    uint64_t  id;                       /* hashes: compared only */
    uint64_t  consumer;
    int64_t   deliveries;
    int64_t   since_ms;                 /* of skd_now_ms(): the first look that saw it so */
} skd_frozen_entry_t;

struct skd_frozen_s {
    size_t              count;
    skd_frozen_entry_t  entries[SKD_FROZEN_MAX];        /* in the order of the stream */
};


void
skd_frozen_free(skd_frozen_t *frozen)
{
    free(frozen);
}


static uint64_t
skd_frozen_hash(const redisReply *text)
{
    uint64_t  hash = 14695981039346656037u;

    for (size_t i = 0; i < text->len; i++) {
        hash = (hash ^ (unsigned char) text->str[i]) * 1099511628211u;
    }

    return hash;
}


/* A row of XPENDING that looks frozen: id, consumer, idle, deliveries. */
static int
skd_frozen_row(const redisReply *row, const char *own, skd_frozen_entry_t *entry)
{
    if (row->type != REDIS_REPLY_ARRAY || row->elements != 4
        || skb_redis_at(row, 0)->type != REDIS_REPLY_STRING
        || skb_redis_at(row, 1)->type != REDIS_REPLY_STRING
        || skb_redis_at(row, 2)->type != REDIS_REPLY_INTEGER || skb_redis_at(row, 2)->integer != 0
        || skb_redis_at(row, 3)->type != REDIS_REPLY_INTEGER
        || strcmp(skb_redis_text(row, 1), own) == 0)
    {
        return 0;
    }

    entry->id = skd_frozen_hash(skb_redis_at(row, 0));
    entry->consumer = skd_frozen_hash(skb_redis_at(row, 1));
    entry->deliveries = skb_redis_at(row, 3)->integer;

    return 1;
}


/* When it was seen so first; *at goes on from where the last one was found. */
static int64_t
skd_frozen_since(const skd_frozen_t *old, size_t *at, const skd_frozen_entry_t *entry)
{
    for (size_t i = *at; old != NULL && i < old->count; i++) {
        if (old->entries[i].id == entry->id) {
            *at = i + 1;

            return old->entries[i].consumer == entry->consumer
                   && old->entries[i].deliveries == entry->deliveries
                   ? old->entries[i].since_ms : skd_now_ms();
        }
    }

    return skd_now_ms();
}


/* What is gone from the stream has its letter from claim.lua, as of any other consumer. */
static skd_rc_e
skd_frozen_thaw(skd_stream_t *stream, skd_reader_t *reader, const char **argv, int argc)
{
    char         idle[12], count[12];
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;

    snprintf(idle, sizeof(idle), "%u", reader->config->consumer.claim_idle_ms);
    snprintf(count, sizeof(count), "%d", (argc - SKD_FROZEN_ARGS) / 3);
    argv[0] = stream->key;
    argv[1] = SKD_GROUP;
    argv[2] = idle;
    argv[3] = count;

    reply = skb_redis_script(reader->redis, SK_SCRIPT_THAW, 1, argc, argv, NULL);

    if (skb_redis_class(reply) != SKB_REDIS_FINE || reply->type != REDIS_REPLY_ARRAY
        || reply->elements != 2 || skb_redis_at(reply, 0)->type != REDIS_REPLY_INTEGER
        || skb_redis_at(reply, 1)->type != REDIS_REPLY_ARRAY)
    {
        rc = skd_reader_failed(reader, reply);
        goto done;
    }

    if (skb_redis_at(reply, 0)->integer > 0) {
        skb_log(SKB_NOTICE, "purchases that were delivered in the future are taken over",
                "activity=%" PRIu64 " entries=%lld", stream->activity,
                skb_redis_at(reply, 0)->integer);
        stream->claim_ms = 0;
    }

    for (size_t i = 0; rc == SKD_OK && i < skb_redis_at(reply, 1)->elements; i++) {
        rc = skd_stream_bury(stream, reader, skb_redis_text(skb_redis_at(reply, 1), i));
    }

done:

    freeReplyObject(reply);

    return rc;
}


/* Takes note of what is frozen now, and thaws what is so for long enough. */
static skd_rc_e
skd_frozen_rows(skd_stream_t *stream, skd_reader_t *reader, const redisReply *rows)
{
    int                  argc = SKD_FROZEN_ARGS;
    char               (*counts)[24];
    size_t               at = 0;
    skd_rc_e             rc = SKD_OK;
    const char         **argv;
    skd_frozen_t        *now;
    skd_frozen_entry_t  *entry;

    now = calloc(1, sizeof(skd_frozen_t));
    argv = calloc(SKD_FROZEN_ARGS + 3 * rows->elements, sizeof(char *));
    counts = calloc(rows->elements, sizeof(*counts));

    if (now == NULL || argv == NULL || counts == NULL) {
        goto done;
    }

    for (size_t i = 0; i < rows->elements && now->count < SKD_FROZEN_MAX; i++) {
        const redisReply  *row = skb_redis_at(rows, i);

        entry = &now->entries[now->count];

        if (!skd_frozen_row(row, reader->name, entry)) {
            continue;
        }

        entry->since_ms = skd_frozen_since(stream->frozen, &at, entry);
        now->count++;

        if (skd_now_ms() - entry->since_ms >= (int64_t) reader->config->consumer.claim_idle_ms) {
            snprintf(counts[i], sizeof(counts[i]), "%lld", skb_redis_at(row, 3)->integer);
            argv[argc++] = skb_redis_text(row, 0);
            argv[argc++] = skb_redis_text(row, 1);
            argv[argc++] = counts[i];
        }
    }

    skd_frozen_free(stream->frozen);
    stream->frozen = now;
    now = NULL;

    if (argc > SKD_FROZEN_ARGS) {
        rc = skd_frozen_thaw(stream, reader, argv, argc);
    }

done:

    free(now);
    free(argv);
    free(counts);

    return rc;
}


skd_rc_e
skd_frozen_look(skd_stream_t *stream, skd_reader_t *reader)
{
    skd_rc_e     rc = SKD_OK;
    uint32_t     every_ms = reader->config->consumer.claim_idle_ms / 4;
    redisReply  *reply;

    if (skd_now_ms() < stream->frozen_ms) {
        return SKD_OK;
    }

    every_ms = every_ms < SKD_FROZEN_MIN_MS ? SKD_FROZEN_MIN_MS : every_ms;
    every_ms = every_ms > SKD_FROZEN_CAP_MS ? SKD_FROZEN_CAP_MS : every_ms;
    stream->frozen_ms = skd_now_ms() + skd_jitter(every_ms);

    reply = skb_redis_command(reader->redis, "XPENDING %s %s - + %d", stream->key, SKD_GROUP,
                         SKD_FROZEN_MAX);

    switch (skb_redis_class(reply)) {

    case SKB_REDIS_FINE:
        if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0) {
            rc = skd_frozen_rows(stream, reader, reply);

        } else {
            skd_frozen_free(stream->frozen);
            stream->frozen = NULL;
        }

        break;

    case SKB_REDIS_NOGROUP:
    case SKB_REDIS_ERROR:
        break;                          /* no stream, no group: reading it says what is wrong */

    default:
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}
