/*
 * See the header.  Arguments point into buffers that are made once.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sk_id.h"
#include "sk_result.h"
#include "skb_log.h"
#include "skd_settle.h"

#define SKD_DEAD_HEAD    9              /* XADD key * and three pairs of ours */
#define SKD_DEAD_FIELDS  4096           /* names and values of a letter, at most */

typedef struct {
    char    key[SK_KEY_MAX];            /* of the result */
    char    user[SK_ID_MAX];
    char    result[SK_RESULT_MAX];
    size_t  key_len;
    size_t  user_len;
    size_t  result_len;
} skd_answer_t;

struct skd_settle_s {
    skd_answer_t   *answers;
    const char    **argv;
    size_t         *lens;
    int             argc;
    char            channel[SK_KEY_MAX];
    size_t          channel_len;
    char            dead_key[SK_KEY_MAX];
    size_t          dead_key_len;
};


skd_settle_t *
skd_settle_create(size_t size)
{
    size_t         args = size * 4 + 8 > SKD_DEAD_HEAD + SKD_DEAD_FIELDS
                          ? size * 4 + 8 : SKD_DEAD_HEAD + SKD_DEAD_FIELDS;
    skd_settle_t  *settle = calloc(1, sizeof(skd_settle_t));

    if (settle == NULL) {
        return NULL;
    }

    settle->answers = calloc(size, sizeof(skd_answer_t));
    settle->argv = calloc(args, sizeof(char *));
    settle->lens = calloc(args, sizeof(size_t));

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


static void
skd_settle_arg(skd_settle_t *settle, const char *data, size_t len)
{
    settle->argv[settle->argc] = data;
    settle->lens[settle->argc] = len;
    settle->argc++;
}


static void
skd_settle_text(skd_settle_t *settle, const char *text)
{
    skd_settle_arg(settle, text, strlen(text));
}


/* What the buyer hears: the order when there is one, whatever this entry was. */
static void
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


/* KEYS and ARGV of settle.lua for the entries of the range that are dead or are not. */
static int
skd_settle_args(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range, int dead)
{
    size_t              n = 0;
    skd_answer_t       *answer;
    const skd_entry_t  *entry, *entries = range->batch->entries;

    skd_settle_text(settle, stream->key);

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &entries[i];

        if (entry->has_user && dead == (entry->outcome == SKD_DEAD)) {
            answer = &settle->answers[n++];
            skd_answer_make(answer, reader->config->redis.prefix, stream->activity, entry,
                            &entries[entry->owner]);
            skd_settle_arg(settle, answer->key, answer->key_len);
        }
    }

    skd_settle_text(settle, SKD_GROUP);
    skd_settle_arg(settle, settle->channel, settle->channel_len);
    n = 0;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &entries[i];

        if (entry->has_user && dead == (entry->outcome == SKD_DEAD)) {
            answer = &settle->answers[n++];
            skd_settle_text(settle, entry->id);
            skd_settle_arg(settle, answer->user, answer->user_len);
            skd_settle_arg(settle, answer->result, answer->result_len);
        }
    }

    return (int) n;
}


static skd_rc_e
skd_settle_orders(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range)
{
    int          n;
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;

    settle->argc = 0;
    n = skd_settle_args(settle, reader, stream, range, 0);

    if (n == 0) {
        return SKD_OK;
    }

    reply = skb_redis_script(reader->redis, SK_SCRIPT_SETTLE, n + 1, settle->argc,
                             settle->argv, settle->lens);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


/* The letter: original id, reason and first error, then the fields as they came. */
static int
skd_dead_letter(skd_settle_t *settle, skd_reader_t *reader, const skd_entry_t *entry)
{
    const redisReply  *fields = entry->fields;

    settle->argc = 0;
    skd_settle_text(settle, "XADD");
    skd_settle_arg(settle, settle->dead_key, settle->dead_key_len);
    skd_settle_text(settle, "*");
    skd_settle_text(settle, "entry");
    skd_settle_text(settle, entry->id);
    skd_settle_text(settle, "reason");
    skd_settle_text(settle, entry->reason);
    skd_settle_text(settle, "error");
    skd_settle_text(settle, entry->error);

    for (size_t i = 0; fields != NULL && i < fields->elements && i < SKD_DEAD_FIELDS; i++) {
        skd_settle_arg(settle, fields->element[i]->str, fields->element[i]->len);
    }

    return redisAppendCommandArgv(reader->redis, settle->argc, settle->argv, settle->lens);
}


/*
 * The script by its text: a NOSCRIPT inside of MULTI would come when the
 * letters are written already.
 */
static int
skd_dead_results(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range)
{
    int                 n;
    char                count[16];
    const sk_script_t  *script = &sk_scripts[SK_SCRIPT_SETTLE];

    settle->argc = 0;
    skd_settle_text(settle, "EVAL");
    skd_settle_arg(settle, script->text, script->len);
    skd_settle_arg(settle, count, 0);                   /* not known yet */

    n = skd_settle_args(settle, reader, stream, range, 1);

    snprintf(count, sizeof(count), "%d", n + 1);
    settle->lens[2] = strlen(count);

    return redisAppendCommandArgv(reader->redis, settle->argc, settle->argv, settle->lens);
}


/* Queues all commands of the MULTI; returns how many replies will come, or -1. */
static int
skd_dead_queue(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range)
{
    int                 rc, replies = 2, users = 0;
    const skd_entry_t  *entry;

    rc = redisAppendCommand(reader->redis, "MULTI");

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->outcome != SKD_DEAD) {
            continue;
        }

        rc |= skd_dead_letter(settle, reader, entry);
        replies++;

        if (entry->has_user) {
            users++;

        } else {
            rc |= redisAppendCommand(reader->redis, "XACK %s %s %s", stream->key, SKD_GROUP,
                                     entry->id);
            replies++;
        }
    }

    if (users > 0) {
        rc |= skd_dead_results(settle, reader, stream, range);
        replies++;
    }

    rc |= redisAppendCommand(reader->redis, "EXEC");

    return rc == REDIS_OK ? replies : -1;
}


/* The last reply is EXEC's: every command's own in a list. */
static skd_rc_e
skd_dead_exec(skd_reader_t *reader, const redisReply *reply)
{
    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        return skd_reader_failed(reader, reply);
    }

    for (size_t i = 0; i < reply->elements; i++) {
        if (reply->element[i]->type == REDIS_REPLY_ERROR) {
            return skd_reader_failed(reader, reply->element[i]);
        }
    }

    return SKD_OK;
}


static skd_rc_e
skd_settle_dead(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range)
{
    int       replies;
    void     *reply;
    skd_rc_e  rc = SKD_OK, refused = SKD_OK;

    replies = skd_dead_queue(settle, reader, stream, range);

    if (replies < 0) {
        return skd_reader_failed(reader, NULL);
    }

    for (int i = 0; i < replies; i++) {
        if (redisGetReply(reader->redis, &reply) != REDIS_OK) {
            return skd_reader_failed(reader, NULL);
        }

        if (i + 1 == replies) {
            rc = refused != SKD_OK ? refused : skd_dead_exec(reader, reply);

        } else if (refused == SKD_OK && skb_redis_class(reply) != SKB_REDIS_FINE) {
            refused = skd_reader_failed(reader, reply);
        }

        freeReplyObject(reply);
    }

    return rc;
}


static size_t
skd_settle_count_dead(const skd_range_t *range)
{
    size_t  n = 0;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        n += range->batch->entries[i].outcome == SKD_DEAD;
    }

    return n;
}


/* One line each: somebody has to look. */
static void
skd_settle_alarm(const skd_stream_t *stream, const skd_range_t *range)
{
    char                error[SKD_ERROR_MAX];
    const skd_entry_t  *entry;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->outcome == SKD_DEAD) {
            skb_log(SKB_ERROR, "dead letter",
                    "activity=%" PRIu64 " entry=%s user=%" PRIu64 " reason=%s error=%s",
                    stream->activity, entry->id, entry->has_user ? entry->message.user : 0,
                    entry->reason, skb_log_quote(error, sizeof(error), entry->error));
        }
    }
}


skd_rc_e
skd_settle_range(skd_settle_t *settle, skd_reader_t *reader, skd_stream_t *stream,
    const skd_range_t *range, size_t *dead)
{
    skd_rc_e     rc;
    const char  *prefix = reader->config->redis.prefix;

    settle->channel_len = sk_key(settle->channel, prefix, strlen(prefix), SK_KEY_RESULTS,
                                 stream->activity, 0);
    settle->dead_key_len = sk_key(settle->dead_key, prefix, strlen(prefix), SK_KEY_DEAD,
                                  stream->activity, 0);

    *dead = skd_settle_count_dead(range);
    rc = skd_settle_orders(settle, reader, stream, range);

    if (rc == SKD_OK && *dead > 0) {
        rc = skd_settle_dead(settle, reader, stream, range);

        if (rc == SKD_OK) {
            skd_settle_alarm(stream, range);
        }
    }

    return rc;
}
