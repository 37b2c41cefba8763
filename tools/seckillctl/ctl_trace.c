/*
 * trace: the story of one purchase, by request_id or order_no: order rows, the
 * streams (newest entries first, so many and no more), and then what both
 * servers hold of that buyer in that sale.  Read only.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl_activities.h"
#include "ctl_books.h"
#include "ctl_json.h"
#include "sk_id.h"

#define CTL_SCAN         100000         /* entries of a stream, unless --scan */
#define CTL_SCAN_MAX     10000000
#define CTL_SCAN_PAGE    500
#define CTL_STORIES_MAX  16             /* purchases that carry the same request_id */

typedef struct {
    ctl_t       *ctl;
    ctl_json_t   json;
    const char  *what;
    int          numbered;              /* what is an order_no */
    uint64_t     remainder;             /* its activity, mod 10^6 */
    uint64_t     scan;
    size_t       n;                     /* purchases found */
    uint64_t     activities[CTL_STORIES_MAX];
    uint64_t     users[CTL_STORIES_MAX];
    int          cut;                   /* a stream was not read to its end */
} ctl_story_t;


static void __attribute__((format(printf, 3, 4)))
ctl_story_tell(ctl_story_t *story, const char *where, const char *fmt, ...)
{
    char     text[2 * CTL_MESSAGE_MAX];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    if (!story->ctl->json) {
        printf("  %-12s %s\n", where, text);
        return;
    }

    ctl_json_map(&story->json, NULL);
    ctl_json_text(&story->json, "where", where);
    ctl_json_text(&story->json, "what", text);
    ctl_json_map_end(&story->json);
}


static void
ctl_story_add(ctl_story_t *story, uint64_t activity, uint64_t user)
{
    size_t  i;

    for (i = 0; i < story->n; i++) {
        if (story->activities[i] == activity && story->users[i] == user) {
            return;
        }
    }

    if (story->n == CTL_STORIES_MAX) {
        story->cut = 1;
        return;
    }

    story->activities[story->n] = activity;
    story->users[story->n++] = user;
}


/* one entry of a stream: [id, fields] */
static void
ctl_story_entry(ctl_story_t *story, uint64_t activity, const char *stream, const redisReply *entry)
{
    char               when[CTL_TIME_MAX];
    const char        *reason, *error;
    size_t             i;
    sk_message_t       message;
    const redisReply  *fields;

    fields = entry->element[1];

    if (ctl_message_read(fields, &message) != 2
        || strcmp(story->numbered ? message.order_no : message.request_id, story->what) != 0)
    {
        return;
    }

    reason = error = NULL;

    for (i = 0; i + 1 < fields->elements; i += 2) {
        if (strcmp(fields->element[i]->str, "reason") == 0) {
            reason = fields->element[i + 1]->str;

        } else if (strcmp(fields->element[i]->str, "last_error") == 0) {
            error = fields->element[i + 1]->str;
        }
    }

    ctl_time_utc(when, (int64_t) message.accepted_ms);
    ctl_story_add(story, activity, message.user);
    ctl_story_tell(story, stream, "activity %" PRIu64 ", entry %s: user %" PRIu64 ", %" PRIu32
                   " units, epoch %" PRIu64 " seq %" PRIu64 ", order_no %s, request_id %s, "
                   "accepted %s%s%s%s%s", activity, entry->element[0]->str, message.user,
                   message.quantity, message.epoch, message.seq, message.order_no,
                   message.request_id, when, reason ? ", " : "", reason ? reason : "",
                   error ? ": " : "", error ? error : "");
}


static int
ctl_story_stream(ctl_story_t *story, uint64_t activity, sk_key_e name, const char *stream)
{
    int          rc;
    char         key[SK_KEY_MAX + 1], end[CTL_ENTRY_MAX + 1];
    size_t       i, n;
    uint64_t     seen;
    redisReply  *reply;

    ctl_key(story->ctl, key, name, activity, 0);
    strcpy(end, "+");

    for (seen = 0; seen < story->scan; seen += n) {
        rc = ctl_redis(story->ctl, &reply, "XREVRANGE %s %s - COUNT %d", key, end, CTL_SCAN_PAGE);
        if (rc != CTL_FINE) {
            return rc;
        }

        n = reply->elements;

        for (i = 0; i < n; i++) {
            ctl_story_entry(story, activity, stream, reply->element[i]);
        }

        if (n > 0) {
            snprintf(end, sizeof(end), "(%s", reply->element[n - 1]->element[0]->str);
        }

        freeReplyObject(reply);

        if (n < CTL_SCAN_PAGE) {
            return CTL_FINE;
        }
    }

    story->cut = 1;

    return CTL_FINE;
}


static int
ctl_story_streams(ctl_story_t *story)
{
    int                rc;
    size_t             i;
    ctl_activities_t   all;

    rc = ctl_activities_read(story->ctl, &all);

    for (i = 0; rc == CTL_FINE && i < all.n; i++) {
        if (story->numbered && all.ids[i] % 1000000 != story->remainder) {
            continue;
        }

        rc = ctl_story_stream(story, all.ids[i], SK_KEY_ORDERS, "stream");

        if (rc == CTL_FINE) {
            rc = ctl_story_stream(story, all.ids[i], SK_KEY_DEAD, "dead letter");
        }
    }

    ctl_activities_free(&all);

    return rc;
}


static int
ctl_story_orders(ctl_story_t *story)
{
    int         rc;
    char        quoted[CTL_QUOTE_MAX];
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    static const char *const  statuses[] = { "?", "created", "paid", "cancelled" };

    if ((rc = ctl_open_mysql(story->ctl)) != CTL_FINE) {
        return rc;
    }

    ctl_sql_quote(story->ctl, quoted, story->what);

    rc = ctl_sql(story->ctl, &res, "SELECT id, activity_id, user_id, order_no, request_id, quantity, "
                 "epoch, seq, status, created_at FROM seckill_orders WHERE %s = %s "
                 "ORDER BY id LIMIT %d", story->numbered ? "order_no" : "request_id", quoted,
                 CTL_STORIES_MAX);
    if (rc != CTL_FINE) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        ctl_story_add(story, ctl_column_u64(row[1]), ctl_column_u64(row[2]));
        ctl_story_tell(story, "order", "id %s: activity %s, user %s, order_no %s, request_id %s, "
                       "%s units, epoch %s seq %s, %s, written %s UTC", row[0], row[1], row[2],
                       row[3], row[4], row[5], row[6], row[7],
                       statuses[ctl_column_u64(row[8]) & 3], row[9] ? row[9] : "?");
    }

    mysql_free_result(res);

    return CTL_FINE;
}


static int
ctl_story_buyer_redis(ctl_story_t *story, uint64_t activity, uint64_t user)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    ctl_key(story->ctl, key, SK_KEY_BUYERS, activity, 0);

    rc = ctl_redis(story->ctl, &reply, "SISMEMBER %s %" PRIu64, key, user);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_story_tell(story, "order_users", "user %" PRIu64 " is %s the buyers of activity %" PRIu64,
                   user, reply->integer ? "among" : "not among", activity);
    freeReplyObject(reply);

    ctl_key(story->ctl, key, SK_KEY_RESULT, activity, user);

    rc = ctl_redis(story->ctl, &reply, "GET %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_story_tell(story, "result", "%s", reply->type == REDIS_REPLY_STRING ? reply->str
                   : "none: the buyer is told \"queueing\"");
    freeReplyObject(reply);

    return CTL_FINE;
}


static int
ctl_story_buyer_mysql(ctl_story_t *story, uint64_t activity, uint64_t user)
{
    int         rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    static const char *const  statuses[] = { "queueing", "success", "failed", "?" };

    rc = ctl_sql(story->ctl, &res, "SELECT status, updated_at FROM seckill_records WHERE user_id = %"
                 PRIu64 " AND activity_id = %" PRIu64, user, activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    row = mysql_fetch_row(res);
    ctl_story_tell(story, "record", "%s%s%s", row ? statuses[ctl_column_u64(row[0]) & 3] : "none",
                   row && row[1] ? ", since " : "", row && row[1] ? row[1] : "");
    mysql_free_result(res);

    rc = ctl_sql(story->ctl, &res, "SELECT l.kind, l.ref, l.units, l.target, l.actor, l.note, "
                 "l.created_at FROM seckill_stock_log l LEFT JOIN seckill_orders o "
                 "ON o.user_id = %" PRIu64 " AND o.activity_id = l.activity_id "
                 "WHERE l.activity_id = %" PRIu64 " AND (l.ref IN ('user:%" PRIu64
                 "', CONCAT('order:', o.order_no))) ORDER BY l.id LIMIT 100", user, activity, user);
    if (rc != CTL_FINE) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        ctl_story_tell(story, "ledger", "%s %s: %s units%s%s, by %s%s%s, %s UTC", row[0], row[1],
                       row[2], row[3][0] ? " to " : "", row[3], row[4], row[5][0] ? ", " : "",
                       row[5], row[6] ? row[6] : "?");
    }

    mysql_free_result(res);

    return CTL_FINE;
}


static int
ctl_story_all(ctl_story_t *story)
{
    int     rc;
    size_t  i;

    if ((rc = ctl_story_streams(story)) != CTL_FINE || (rc = ctl_story_orders(story)) != CTL_FINE) {
        return rc;
    }

    for (i = 0; i < story->n; i++) {
        if ((rc = ctl_story_buyer_redis(story, story->activities[i], story->users[i])) != CTL_FINE
            || (rc = ctl_story_buyer_mysql(story, story->activities[i], story->users[i]))
               != CTL_FINE)
        {
            return rc;
        }
    }

    if (story->n == 0) {
        return ctl_fail(story->ctl, CTL_NO, "no trace of \"%s\"%s", story->what, story->cut
                        ? " among the entries that were looked at, see --scan" : "");
    }

    return CTL_FINE;
}


static int
ctl_trace_run(ctl_t *ctl, int argc, char **argv)
{
    int            opt, rc;
    size_t         len;
    ctl_story_t    story;
    sk_order_no_t  no;

    static const struct option  options[] = {
        { "scan", required_argument, NULL, CTL_OPT },
        CTL_OPTIONS
    };

    memset(&story, 0, sizeof(story));
    story.ctl = ctl;
    story.scan = CTL_SCAN;

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        if (ctl_number(optarg, 1, CTL_SCAN_MAX, &story.scan) != 0) {
            return ctl_usage(ctl, "--scan takes 1 to %d entries, not \"%s\"", CTL_SCAN_MAX, optarg);
        }
    }

    if (argc - optind != 1) {
        return ctl_usage(ctl, "one request_id or order_no is wanted");
    }

    story.what = argv[optind];
    len = strlen(story.what);
    story.numbered = sk_order_no_parse(story.what, len, &no) == 0;

    if (story.numbered) {
        story.remainder = no.activity;

    } else if (len == 0 || len > SK_REQUEST_ID_MAX) {
        return ctl_usage(ctl, "neither a request_id nor an order_no: \"%s\"", story.what);
    }

    if (ctl->json) {
        ctl_json_begin(ctl, &story.json);
        ctl_json_map(&story.json, NULL);
        ctl_json_array(&story.json, "story");
    }

    rc = ctl_story_all(&story);

    if (ctl->json) {
        ctl_json_array_end(&story.json);
        ctl_json_count(&story.json, "purchases", story.n);
        ctl_json_bool(&story.json, "cut", story.cut);
        ctl_json_error(&story.json, ctl);
        ctl_json_map_end(&story.json);
        rc = ctl_json_end(&story.json) != 0 && rc == CTL_FINE ? CTL_PARTLY : rc;
    }

    return rc;
}


const ctl_verb_t  ctl_trace_verb = {
    "trace",
    "REQUEST_ID|ORDER_NO [--scan N]",
    "the story of one purchase, from the stream to the order",
    "Looks through the newest entries of the streams and the dead letters, the orders,\n"
    "and what is known of the buyer.  seckilld deletes stored entries after \"retain\"; the\n"
    "order stays.  Exit 1 when there is no trace.\n"
    "\n"
    "      --scan N       entries of each stream to look at, 100000\n",
    ctl_trace_run
};
