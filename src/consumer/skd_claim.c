/*
 * Whose entries they are: taking over from consumers that are gone, and keeping
 * what takes long.  Only the owner changes; the entries then come as own
 * pending ones.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_alarm.h"
#include "skd_stats.h"
#include "skd_stream.h"

#define SKD_CLAIM_MIN_MS  50            /* between looks */
#define SKD_CLAIM_MAX_MS  15000
#define SKD_HOLD_IDS      1000          /* of one command */
#define SKD_CLAIM_KEYS    2
#define SKD_CLAIM_ARGS    8             /* keys included */


/* Their letters are written; who bought them is not known any more. */
static void
skd_claim_deleted(const skd_stream_t *stream, const redisReply *ids)
{
    for (size_t i = 0; i < ids->elements; i++) {
        if (skb_redis_part(ids, i, REDIS_REPLY_STRING) == NULL) {
            continue;
        }

        skb_log(SKB_ERROR, "dead letter",
                "activity=%" PRIu64 " entry=%s user=0 reason=deleted attempts=1 error=\"%s\"",
                stream->activity, ids->element[i]->str, SKD_ENTRY_DELETED);

        skd_count(SKD_COUNT_DEAD, 1);
        skd_alarm_raise(stream->activity, 0, ids->element[i]->str);
    }
}


/* [next cursor, how many, [deleted id, ...]], and what went wrong if something did */
static skd_rc_e
skd_claim_reply(skd_stream_t *stream, skd_reader_t *reader, const redisReply *reply,
    uint64_t *claimed)
{
    char               error[SKD_ERROR_MAX];
    const redisReply  *cursor = skb_redis_part(reply, 0, REDIS_REPLY_STRING);
    const redisReply  *count = skb_redis_part(reply, 1, REDIS_REPLY_INTEGER);
    const redisReply  *deleted = skb_redis_part(reply, 2, REDIS_REPLY_ARRAY);
    const redisReply  *trouble = skb_redis_part(reply, 3, REDIS_REPLY_STRING);

    if (cursor == NULL || cursor->len >= SKD_STREAM_ID_MAX || count == NULL || count->integer < 0
        || deleted == NULL)
    {
        snprintf(reader->error, sizeof(reader->error), "unexpected reply to claim.lua");
        return SKD_BLOCKED;
    }

    if (trouble != NULL) {
        skb_log(SKB_ERROR, "pending purchases can't be taken over or buried",
                "activity=%" PRIu64 " error=%s", stream->activity,
                skb_log_quote(error, sizeof(error), trouble->str));
    }

    strcpy(stream->claim_cursor, cursor->str);
    *claimed = (uint64_t) count->integer;

    if (*claimed > 0) {
        skd_stream_rewind(stream);
    }

    skd_claim_deleted(stream, deleted);

    /* there may be more: look again soon */
    if (strcmp(stream->claim_cursor, "0-0") != 0) {
        stream->claim_ms = skd_now_ms() + SKD_CLAIM_MIN_MS;
    }

    return SKD_OK;
}


static redisReply *
skd_claim_call(const skd_stream_t *stream, skd_reader_t *reader, uint32_t idle_ms,
    const char *cursor, uint32_t n)
{
    char         dead[SK_KEY_MAX + 1], idle[12], count[12];
    size_t       len, lens[SKD_CLAIM_ARGS];
    const char  *prefix = reader->config->redis.prefix;
    const char  *argv[SKD_CLAIM_ARGS];

    len = sk_key(dead, prefix, strlen(prefix), SK_KEY_DEAD, stream->activity, 0);
    dead[len] = '\0';
    snprintf(idle, sizeof(idle), "%u", idle_ms);
    snprintf(count, sizeof(count), "%u", n);

    argv[0] = stream->key;
    argv[1] = dead;
    argv[2] = SKD_GROUP;
    argv[3] = reader->name;
    argv[4] = idle;
    argv[5] = cursor;
    argv[6] = count;
    argv[7] = SKD_ENTRY_DELETED;

    for (size_t i = 0; i < SKD_CLAIM_ARGS; i++) {
        lens[i] = strlen(argv[i]);
    }

    return skb_redis_script(reader->redis, SK_SCRIPT_CLAIM, SKD_CLAIM_KEYS, SKD_CLAIM_ARGS, argv,
                            lens);
}


skd_rc_e
skd_stream_claim(skd_stream_t *stream, skd_reader_t *reader, uint64_t *claimed)
{
    skd_rc_e     rc;
    uint32_t     idle_ms = reader->config->consumer.claim_idle_ms, every_ms = idle_ms / 4;
    redisReply  *reply;

    *claimed = 0;

    if (stream->pending || skd_now_ms() < stream->claim_ms) {
        return SKD_OK;
    }

    every_ms = every_ms < SKD_CLAIM_MIN_MS ? SKD_CLAIM_MIN_MS : every_ms;
    every_ms = every_ms > SKD_CLAIM_MAX_MS ? SKD_CLAIM_MAX_MS : every_ms;
    stream->claim_ms = skd_now_ms() + skd_jitter(every_ms);

    reply = skd_claim_call(stream, reader, idle_ms, stream->claim_cursor,
                           reader->config->consumer.batch);

    switch (skb_redis_class(reply)) {

    case SKB_REDIS_FINE:
        rc = skd_claim_reply(stream, reader, reply, claimed);
        break;

    case SKB_REDIS_NOGROUP:
    case SKB_REDIS_ERROR:
        /* no stream, no group: reading it says what is wrong */
        rc = SKD_OK;
        break;

    default:
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


/* The cursor is where the scan begins, and one is all that it takes. */
skd_rc_e
skd_stream_bury(skd_stream_t *stream, skd_reader_t *reader, const char *id)
{
    skd_rc_e     rc;
    uint64_t     claimed;
    redisReply  *reply = skd_claim_call(stream, reader, 0, id, 1);

    rc = skb_redis_class(reply) == SKB_REDIS_FINE
         ? skd_claim_reply(stream, reader, reply, &claimed) : skd_reader_failed(reader, reply);

    freeReplyObject(reply);

    /* the next look begins at the stream's first one */
    strcpy(stream->claim_cursor, "0-0");

    return rc;
}


skd_rc_e
skd_stream_hold(const skd_stream_t *stream, skd_reader_t *reader, const skd_range_t *range)
{
    int           argc;
    size_t        i = range->first, end = range->first + range->count;
    skd_rc_e      rc = SKD_OK;
    redisReply   *reply;
    const char   *argv[SKD_HOLD_IDS + 6];

    while (rc == SKD_OK && i < end) {
        argv[0] = "XCLAIM";
        argv[1] = stream->key;
        argv[2] = SKD_GROUP;
        argv[3] = reader->name;
        argv[4] = "0";

        for (argc = 5; i < end && argc < SKD_HOLD_IDS + 5; i++) {
            argv[argc++] = range->batch->entries[i].id;
        }

        argv[argc++] = "JUSTID";
        reply = skb_redis_command_argv(reader->redis, argc, argv, NULL);

        if (skb_redis_class(reply) != SKB_REDIS_FINE
            && skb_redis_class(reply) != SKB_REDIS_NOGROUP)
        {
            rc = skd_reader_failed(reader, reply);
        }

        freeReplyObject(reply);
    }

    return rc;
}
