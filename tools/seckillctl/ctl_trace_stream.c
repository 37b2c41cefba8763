/*
 * trace, Redis' streams: the newest entries, so many and no more.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_activities.h"
#include "ctl_trace.h"

#define CTL_SCAN_PAGE  500


/* how far the group is with an entry of the stream */
static int
ctl_story_way(ctl_story_t *story, uint64_t activity, const char *id)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    ctl_entry_t  entry;
    ctl_books_t  books;
    redisReply  *reply;
    const redisReply  *one;

    memset(&books, 0, sizeof(books));
    books.activity = activity;

    if ((rc = ctl_books_open(story->ctl, &books)) != CTL_FINE) {
        return rc;
    }

    if (ctl_entry_parse(&entry, id) == 0 && ctl_entry_cmp(&entry, &books.delivered) > 0) {
        ctl_story_tell(story, "way", "entry %s is unread: no consumer has it yet", id);
        ctl_books_free(&books);
        return CTL_FINE;
    }

    ctl_books_free(&books);
    ctl_key(story->ctl, key, SK_KEY_ORDERS, activity, 0);

    rc = ctl_redis_try(story->ctl, &reply, "XPENDING %s " CTL_GROUP " %s %s 1", key, id, id);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type == REDIS_REPLY_ERROR) {
        ctl_story_tell(story, "way", "entry %s: %s", id, reply->str);

    } else if (reply->elements == 1 && skb_redis_at(reply, 0)->elements == 4) {
        one = skb_redis_at(reply, 0);
        ctl_story_tell(story, "way", "entry %s is pending: with %s since %lld ms, delivered %lld "
                       "times", id, skb_redis_text(one, 1), skb_redis_at(one, 2)->integer,
                       skb_redis_at(one, 3)->integer);

    } else {
        ctl_story_tell(story, "way", "entry %s is acknowledged", id);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


/* one entry of a stream: [id, fields] */
static int
ctl_story_entry(ctl_story_t *story, uint64_t activity, sk_key_e stream, const redisReply *entry)
{
    char               when[CTL_TIME_MAX];
    const char        *reason, *error;
    size_t             i;
    sk_message_t       message;
    ctl_bought_one_t   bought, *known;
    const redisReply  *fields;

    fields = skb_redis_at(entry, 1);

    if (ctl_message_read(fields, &message) != 2
        || strcmp(story->numbered ? message.order_no : message.request_id, story->what) != 0)
    {
        return CTL_FINE;
    }

    memset(&bought, 0, sizeof(bought));
    bought.activity = activity;
    bought.user = message.user;
    bought.epoch = message.epoch;
    bought.seq = message.seq;
    snprintf(bought.order_no, sizeof(bought.order_no), "%s", message.order_no);
    known = ctl_story_add(story, &bought);

    if (known && stream == SK_KEY_DEAD) {
        snprintf(known->letter, sizeof(known->letter), "%s", skb_redis_text(entry, 0));
    }

    reason = error = NULL;

    for (i = 0; i + 1 < fields->elements; i += 2) {
        if (strcmp(skb_redis_text(fields, i), "reason") == 0) {
            reason = skb_redis_text(fields, i + 1);

        } else if (strcmp(skb_redis_text(fields, i), "last_error") == 0) {
            error = skb_redis_text(fields, i + 1);
        }
    }

    ctl_time_utc(when, (int64_t) message.accepted_ms);
    ctl_story_tell(story, stream == SK_KEY_DEAD ? "dead letter" : "stream", "activity %" PRIu64 ", entry %s: user %" PRIu64 ", %" PRIu32
                   " units, epoch %" PRIu64 " seq %" PRIu64 ", order_no %s, request_id %s, "
                   "accepted %s%s%s%s%s", activity, skb_redis_text(entry, 0), message.user,
                   message.quantity, message.epoch, message.seq, message.order_no,
                   message.request_id, when, reason ? ", " : "", reason ? reason : "",
                   error ? ": " : "", error ? error : "");

    return stream == SK_KEY_DEAD ? CTL_FINE
                                 : ctl_story_way(story, activity, skb_redis_text(entry, 0));
}


static int
ctl_story_stream(ctl_story_t *story, uint64_t activity, sk_key_e stream)
{
    int          rc;
    char         key[SK_KEY_MAX + 1], end[CTL_ENTRY_MAX + 1];
    size_t       i, n;
    uint64_t     seen;
    redisReply  *reply;

    ctl_key(story->ctl, key, stream, activity, 0);
    strcpy(end, "+");

    for (seen = 0; seen < story->scan; seen += n) {
        rc = ctl_redis(story->ctl, &reply, "XREVRANGE %s %s - COUNT %d", key, end, CTL_SCAN_PAGE);
        if (rc != CTL_FINE) {
            return rc;
        }

        n = reply->elements;

        for (i = 0; rc == CTL_FINE && i < n; i++) {
            rc = ctl_story_entry(story, activity, stream, skb_redis_at(reply, i));
        }

        if (n > 0) {
            snprintf(end, sizeof(end), "(%s", skb_redis_text(skb_redis_at(reply, n - 1), 0));
        }

        freeReplyObject(reply);

        if (rc != CTL_FINE || n < CTL_SCAN_PAGE) {
            return rc;
        }
    }

    story->cut = 1;

    return CTL_FINE;
}


int
ctl_story_streams(ctl_story_t *story)
{
    int                rc;
    size_t             i;
    ctl_activities_t   all;

    rc = ctl_activities_read(story->ctl, &all);

    for (i = 0; rc == CTL_FINE && i < all.n; i++) {
        if ((story->numbered && all.ids[i] % 1000000 != story->remainder)
            || (story->activity && all.ids[i] != story->activity))
        {
            continue;
        }

        rc = ctl_story_stream(story, all.ids[i], SK_KEY_ORDERS);

        if (rc == CTL_FINE) {
            rc = ctl_story_stream(story, all.ids[i], SK_KEY_DEAD);
        }
    }

    ctl_activities_free(&all);

    return rc;
}
