/*
 * See the header.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_held.h"
#include "skd_rows.h"
#include "skd_stats.h"

#define SKD_HELD_ARGS  4                /* of one entry */

typedef struct {
    char  user[24];
    char  epoch[24];
    char  seq[24];
} skd_held_text_t;


static int
skd_held_wanted(const skd_entry_t *entry, uint64_t epoch)
{
    return entry->fault == NULL && entry->message.epoch < epoch && entry->held_epoch != epoch;
}


/* The arguments of lua/held.lua; returns how many entries are asked for. */
static size_t
skd_held_args(const skd_range_t *range, skd_held_text_t *text, const char **argv)
{
    size_t              n = 0;
    const skd_entry_t  *entry;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (!skd_held_wanted(entry, range->epoch)) {
            continue;
        }

        snprintf(text[n].user, sizeof(text[n].user), "%" PRIu64, entry->message.user);
        snprintf(text[n].epoch, sizeof(text[n].epoch), "%" PRIu64, entry->message.epoch);
        snprintf(text[n].seq, sizeof(text[n].seq), "%" PRIu64, entry->message.seq);
        argv[SKD_HELD_ARGS * n] = entry->id;
        argv[SKD_HELD_ARGS * n + 1] = text[n].user;
        argv[SKD_HELD_ARGS * n + 2] = text[n].epoch;
        argv[SKD_HELD_ARGS * n + 3] = text[n].seq;
        n++;
    }

    return n;
}


/* yes: a digit for each that was asked for, or "" when the group itself is gone */
static void
skd_held_mark(skd_range_t *range, const char *yes, size_t *forgotten)
{
    skd_entry_t  *entry;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (!skd_held_wanted(entry, range->epoch)) {
            continue;
        }

        if (*yes == '1') {
            entry->held_epoch = range->epoch;

        } else {
            entry->forgotten = 1;
            (*forgotten)++;
        }

        yes += *yes != '\0';
    }
}


static skd_rc_e
skd_held_call(skd_reader_t *reader, skd_range_t *range,
    const char **argv, size_t n, size_t *forgotten)
{
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;

    reply = skb_redis_script(reader->redis, SK_SCRIPT_HELD, 1,
                             (int) (2 + SKD_HELD_ARGS * n), argv, NULL);

    switch (skb_redis_class(reply)) {

    case SKB_REDIS_FINE:
        if (reply->type == REDIS_REPLY_STRING && reply->len == n) {
            skd_held_mark(range, reply->str, forgotten);
            break;
        }

        snprintf(reader->error, sizeof(reader->error), "unexpected reply to held.lua");
        rc = SKD_BLOCKED;
        break;

    case SKB_REDIS_NOGROUP:
        skd_held_mark(range, "", forgotten);
        break;

    default:
        /* in a script NOGROUP comes with words of the script before it */
        if (reply != NULL && reply->type == REDIS_REPLY_ERROR
            && strstr(reply->str, "NOGROUP") != NULL)
        {
            skd_held_mark(range, "", forgotten);
            break;
        }

        rc = skd_reader_failed(reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


skd_rc_e
skd_held_ask(const skd_stream_t *stream, skd_reader_t *reader, skd_range_t *range,
    size_t *forgotten)
{
    size_t            n;
    skd_rc_e          rc;
    const char      **argv;
    skd_held_text_t  *text;

    *forgotten = 0;
    argv = malloc((2 + SKD_HELD_ARGS * range->count) * sizeof(char *));
    text = malloc(range->count * sizeof(skd_held_text_t));

    if (argv == NULL || text == NULL) {
        snprintf(reader->error, sizeof(reader->error), "out of memory");
        rc = SKD_BLOCKED;

    } else {
        argv[0] = stream->key;
        argv[1] = SKD_GROUP;
        n = skd_held_args(range, text, argv + 2);
        rc = n > 0 ? skd_held_call(reader, range, argv, n, forgotten) : SKD_OK;
    }

    free(argv);
    free(text);

    return rc;
}


skd_rc_e
skd_held_tell(skd_writer_t *writer, uint64_t id, const skd_range_t *range)
{
    skd_rc_e             rc;
    skd_range_t          all = *range;
    skd_activity_t       activity;
    const skd_entry_t   *entry, *owner;

    /* those that were committed before the restore are counted by it */
    memset(&activity, 0, sizeof(activity));
    activity.id = id;
    skd_range_begin(&all);
    rc = skd_rows_find_orders(writer, &activity, &all);

    for (size_t i = range->first; rc == SKD_OK && i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];
        owner = &range->batch->entries[entry->owner];

        if (!entry->forgotten || (owner->order.exists && owner->order.seq == entry->message.seq
                                  && owner->order.epoch == entry->message.epoch))
        {
            continue;
        }

        skd_count(SKD_COUNT_FORGOTTEN, 1);
        skb_log(SKB_ERROR, "purchase is older than the restore and Redis forgot it, not written",
                "activity=%" PRIu64 " user=%" PRIu64 " quantity=%" PRIu32 " epoch=%" PRIu64
                " seq=%" PRIu64 " order_no=%s entry=%s cure=\"seckillctl reconcile %" PRIu64
                " --journal FILE --repair replay\"", id, entry->message.user,
                entry->message.quantity, entry->message.epoch, entry->message.seq,
                entry->message.order_no, entry->id, id);
    }

    return rc;
}
