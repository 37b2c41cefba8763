/*
 * Dead letters: after their tombstones are committed, in calls of lua/dead.lua
 * of bounded size.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "skb_log.h"
#include "skd_alarm.h"
#include "skd_settle.h"
#include "skd_stats.h"

#define SKD_DEAD_CALL    64             /* letters of one call */
#define SKD_DEAD_FIELDS  4096           /* names and values of a letter, at most */
#define SKD_DEAD_PER     10             /* key and arguments before the fields */
#define SKD_DEAD_AGAIN   '2'            /* it has its letter, and was told of */

typedef struct {
    char  attempts[12];
    char  age[24];
    char  fields[12];
} skd_dead_numbers_t;


static size_t
skd_dead_fields(const skd_entry_t *entry)
{
    size_t  n = entry->fields != NULL ? entry->fields->elements : 0;

    /* names and values, whatever somebody put there */
    return n > SKD_DEAD_FIELDS ? SKD_DEAD_FIELDS : n - n % 2;
}


/* Collects the next letters from *at on; returns how many. */
static size_t
skd_dead_collect(const skd_range_t *range, size_t *at, const skd_entry_t **letters)
{
    size_t              n = 0, args = 4;
    const skd_entry_t  *entry;

    for ( ; *at < range->first + range->count && n < SKD_DEAD_CALL; (*at)++) {
        entry = &range->batch->entries[*at];

        if (entry->outcome != SKD_DEAD) {
            continue;
        }

        args += SKD_DEAD_PER + skd_dead_fields(entry);

        if (args > SKD_SETTLE_ARGS) {
            break;
        }

        letters[n++] = entry;
    }

    return n;
}


static void
skd_dead_letter(skd_settle_t *settle, const skd_entry_t *entry, const skd_answer_t *answer,
    skd_dead_numbers_t *numbers)
{
    size_t  n = skd_dead_fields(entry);

    snprintf(numbers->attempts, sizeof(numbers->attempts), "%u", entry->attempts + 1);
    snprintf(numbers->age, sizeof(numbers->age), "%" PRIu64, entry->age_ms);
    snprintf(numbers->fields, sizeof(numbers->fields), "%zu", n);

    skd_settle_text(settle, entry->id);
    skd_settle_arg(settle, answer->user, entry->has_user ? answer->user_len : 0);
    skd_settle_arg(settle, answer->result, entry->has_user ? answer->result_len : 0);
    skd_settle_text(settle, entry->reason);
    skd_settle_text(settle, numbers->attempts);
    skd_settle_text(settle, entry->error);
    skd_settle_text(settle, entry->last_error[0] != '\0' ? entry->last_error : entry->error);
    skd_settle_text(settle, numbers->age);
    skd_settle_text(settle, numbers->fields);

    for (size_t i = 0; i < n; i++) {
        skd_settle_arg(settle, entry->fields->element[i]->str, entry->fields->element[i]->len);
    }
}


static skd_rc_e
skd_dead_call(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range, const skd_entry_t **letters, size_t n, char *verdicts)
{
    char                 key[SK_KEY_MAX];
    size_t               key_len;
    skd_rc_e             rc = SKD_OK;
    redisReply          *reply;
    const char          *prefix = reader->config->redis.prefix;
    skd_answer_t        *answer;
    skd_dead_numbers_t   numbers[SKD_DEAD_CALL];

    key_len = sk_key(key, prefix, strlen(prefix), SK_KEY_DEAD, stream->activity, 0);

    settle->argc = 0;
    skd_settle_text(settle, stream->key);
    skd_settle_arg(settle, key, key_len);

    for (size_t i = 0; i < n; i++) {
        answer = &settle->answers[i];

        if (letters[i]->has_user) {
            skd_answer_make(answer, prefix, stream->activity, letters[i],
                            &range->batch->entries[letters[i]->owner]);
            skd_settle_arg(settle, answer->key, answer->key_len);

        } else {
            skd_settle_arg(settle, key, key_len);
        }
    }

    skd_settle_text(settle, SKD_GROUP);
    skd_settle_arg(settle, settle->channel, settle->channel_len);

    for (size_t i = 0; i < n; i++) {
        skd_dead_letter(settle, letters[i], &settle->answers[i], &numbers[i]);
    }

    reply = skb_redis_script(reader->redis, SK_SCRIPT_DEAD, (int) n + 2, settle->argc,
                             settle->argv, settle->lens);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(reader, reply);

    } else if (reply->type != REDIS_REPLY_STRING || reply->len != n) {
        snprintf(reader->error, sizeof(reader->error), "unexpected reply to dead.lua");
        rc = SKD_BLOCKED;

    } else {
        memcpy(verdicts, reply->str, n);
    }

    freeReplyObject(reply);

    return rc;
}


/* One line each: somebody has to look. */
static void
skd_dead_tell(const skd_stream_t *stream, const skd_entry_t *entry)
{
    char  error[SKD_ERROR_MAX];

    skb_log(SKB_ERROR, "dead letter",
            "activity=%" PRIu64 " entry=%s user=%" PRIu64 " reason=%s attempts=%u error=%s",
            stream->activity, entry->id, entry->has_user ? entry->message.user : 0,
            entry->reason, entry->attempts + 1,
            skb_log_quote(error, sizeof(error), entry->error));

    skd_count(SKD_COUNT_DEAD, 1);
    skd_alarm_raise(stream->activity, entry->has_user ? entry->message.user : 0, entry->id);
}


skd_rc_e
skd_dead_range(skd_settle_t *settle, skd_reader_t *reader, const skd_stream_t *stream,
    const skd_range_t *range, size_t *dead)
{
    char                verdicts[SKD_DEAD_CALL] = { 0 };
    size_t              n, at = range->first;
    skd_rc_e            rc;
    const skd_entry_t  *letters[SKD_DEAD_CALL];

    *dead = 0;

    while ((n = skd_dead_collect(range, &at, letters)) > 0) {
        rc = skd_dead_call(settle, reader, stream, range, letters, n, verdicts);

        if (rc != SKD_OK) {
            return rc;
        }

        for (size_t i = 0; i < n; i++) {
            if (verdicts[i] != SKD_DEAD_AGAIN) {
                skd_dead_tell(stream, letters[i]);
            }
        }

        *dead += n;
    }

    return SKD_OK;
}
