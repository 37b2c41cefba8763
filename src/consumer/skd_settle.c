/*
 * See the header.  Arguments point into buffers that are made once.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sk_id.h"
#include "sk_result.h"
#include "skd_failpoint.h"
#include "skd_settle.h"


skd_settle_t *
skd_settle_create(void)
{
    skd_settle_t  *settle = calloc(1, sizeof(skd_settle_t));

    if (settle == NULL) {
        return NULL;
    }

    settle->answers = calloc(SKD_SETTLE_CALL, sizeof(skd_answer_t));
    settle->argv = calloc(SKD_SETTLE_ARGS, sizeof(char *));
    settle->lens = calloc(SKD_SETTLE_ARGS, sizeof(size_t));

    if (settle->answers == NULL || settle->argv == NULL || settle->lens == NULL) {
        skd_settle_free(settle);
        return NULL;
    }

    return settle;
}


void
skd_settle_free(skd_settle_t *settle)
{
    if (settle != NULL) {
        free(settle->answers);
        free(settle->argv);
        free(settle->lens);
        free(settle);
    }
}


void
skd_settle_arg(skd_settle_t *settle, const char *data, size_t len)
{
    settle->argv[settle->argc] = data;
    settle->lens[settle->argc] = len;
    settle->argc++;
}


void
skd_settle_text(skd_settle_t *settle, const char *text)
{
    skd_settle_arg(settle, text, strlen(text));
}


void
skd_answer_make(skd_answer_t *answer, const char *prefix, uint64_t activity,
    const skd_entry_t *entry, const skd_entry_t *owner)
{
    sk_result_t  result;

    memset(&result, 0, sizeof(result));
    result.success = owner->order.exists;

    if (result.success) {
        result.order_id = owner->order.id;
        memcpy(result.order_no, owner->order.number, sizeof(result.order_no));

    } else {
        snprintf(result.reason, sizeof(result.reason), "%s", entry->reason);
    }

    answer->key_len = sk_key(answer->key, prefix, strlen(prefix), SK_KEY_RESULT, activity,
                             entry->message.user);
    answer->user_len = sk_id_format(answer->user, entry->message.user);
    answer->result_len = sk_result_format(answer->result, &result);
}


/* Collects the next entries that are not dead, from *at on; returns how many. */
static size_t
skd_settle_collect(const skd_range_t *range, size_t *at, const skd_entry_t **told)
{
    size_t              n = 0;
    const skd_entry_t  *entry;

    for ( ; *at < range->first + range->count && n < SKD_SETTLE_CALL; (*at)++) {
        entry = &range->batch->entries[*at];

        if (entry->outcome != SKD_DEAD) {
            told[n++] = entry;
        }
    }

    return n;
}


static skd_rc_e
skd_settle_call(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range, const skd_entry_t **told, size_t n)
{
    skd_rc_e       rc = SKD_OK;
    redisReply    *reply;
    skd_answer_t  *answer;

    settle->argc = 0;
    skd_settle_text(settle, stream->key);

    for (size_t i = 0; i < n; i++) {
        answer = &settle->answers[i];
        skd_answer_make(answer, reader->config->redis.prefix, stream->activity, told[i],
                        &range->batch->entries[told[i]->owner]);
        skd_settle_arg(settle, answer->key, answer->key_len);
    }

    skd_settle_text(settle, SKD_GROUP);
    skd_settle_arg(settle, settle->channel, settle->channel_len);

    for (size_t i = 0; i < n; i++) {
        answer = &settle->answers[i];
        skd_settle_text(settle, told[i]->id);
        skd_settle_arg(settle, answer->user, answer->user_len);
        skd_settle_arg(settle, answer->result, answer->result_len);
    }

    reply = skb_redis_script(reader->redis, SK_SCRIPT_SETTLE, (int) n + 1, settle->argc,
                             settle->argv, settle->lens);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(reader, reply);

    } else {
        skd_failpoint(SKD_IN_SETTLE);
    }

    freeReplyObject(reply);

    return rc;
}


/* One after the other, not piped: between two calls Redis serves the buyers. */
static skd_rc_e
skd_settle_orders(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range)
{
    size_t              n, at = range->first;
    skd_rc_e            rc = SKD_OK;
    const skd_entry_t  *told[SKD_SETTLE_CALL];

    while (rc == SKD_OK && (n = skd_settle_collect(range, &at, told)) > 0) {
        rc = skd_settle_call(settle, reader, stream, range, told, n);
    }

    return rc;
}


skd_rc_e
skd_settle_range(skd_settle_t *settle, skd_reader_t *reader, skd_stream_t *stream,
    const skd_range_t *range, size_t *dead)
{
    skd_rc_e     rc;
    const char  *prefix = reader->config->redis.prefix;

    settle->channel_len = sk_key(settle->channel, prefix, strlen(prefix), SK_KEY_RESULTS,
                                 stream->activity, 0);

    rc = skd_settle_orders(settle, reader, stream, range);

    return rc == SKD_OK ? skd_dead_range(settle, reader, stream, range, dead) : rc;
}
