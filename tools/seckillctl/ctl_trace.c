/*
 * trace: the story of one purchase, by request_id or order_no: the streams and
 * the orders (the newest first, so many and no more), where its entry is on its
 * way, and then what both servers hold of that buyer in that sale.  Read only.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl_trace.h"
#include "ctl_text.h"
#include "sk_id.h"

#define CTL_SCAN         100000         /* entries of a stream, unless --scan */
#define CTL_SCAN_MAX     10000000

enum {
    CTL_OPT_SCAN = CTL_OPT,
    CTL_OPT_ACTIVITY
};

void
ctl_story_tell(ctl_story_t *story, const char *where, const char *fmt, ...)
{
    char     text[2 * CTL_MESSAGE_MAX];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    if (!story->ctl->json) {
        printf("  %-12s %s\n", where, ctl_shown(text));
        return;
    }

    ctl_json_map(&story->json, NULL);
    ctl_json_text(&story->json, "where", where);
    ctl_json_text(&story->json, "what", text);
    ctl_json_map_end(&story->json);
}


ctl_bought_one_t *
ctl_story_add(ctl_story_t *story, const ctl_bought_one_t *bought)
{
    size_t             i;
    ctl_bought_one_t  *one;

    for (i = 0; i < story->n; i++) {
        one = &story->bought[i];

        if (one->activity == bought->activity && one->user == bought->user
            && one->epoch == bought->epoch && one->seq == bought->seq)
        {
            return one;
        }
    }

    if (story->n == CTL_STORIES_MAX) {
        story->cut = 1;
        return NULL;
    }

    story->bought[story->n] = *bought;

    return &story->bought[story->n++];
}


/*
 * Where to look for the order.  request_id has no index, which every order would
 * pay for: the newest ones are read, or those of one activity.
 */
static int
ctl_story_where(ctl_story_t *story, char *where, size_t size)
{
    int         rc;
    char        quoted[CTL_QUOTE_MAX];
    uint64_t    last, from;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    ctl_sql_quote(story->ctl, quoted, story->what);

    if (story->numbered) {
        snprintf(where, size, "order_no = %s", quoted);
        return CTL_FINE;
    }

    if (story->activity) {
        snprintf(where, size, "activity_id = %" PRIu64 " AND request_id = %s", story->activity,
                 quoted);
        return CTL_FINE;
    }

    rc = ctl_sql(story->ctl, &res, "SELECT MAX(id) FROM seckill_orders");
    if (rc != CTL_FINE) {
        return rc;
    }

    row = mysql_fetch_row(res);
    last = row ? ctl_column_u64(row[0]) : 0;
    mysql_free_result(res);

    from = last > story->scan ? last - story->scan : 0;
    story->cut |= from > 0;
    snprintf(where, size, "id > %" PRIu64 " AND request_id = %s", from, quoted);

    return CTL_FINE;
}


static int
ctl_story_orders(ctl_story_t *story)
{
    int               rc;
    char              where[CTL_QUOTE_MAX + 64];
    MYSQL_ROW         row;
    MYSQL_RES        *res;
    ctl_bought_one_t  bought;

    static const char *const  statuses[] = { "?", "created", "paid", "cancelled" };

    if ((rc = ctl_open_mysql(story->ctl)) != CTL_FINE
        || (rc = ctl_story_where(story, where, sizeof(where))) != CTL_FINE)
    {
        return rc;
    }

    rc = ctl_sql(story->ctl, &res, "SELECT id, activity_id, user_id, order_no, request_id, quantity, "
                 "epoch, seq, status, created_at FROM seckill_orders WHERE %s ORDER BY id LIMIT %d",
                 where, CTL_STORIES_MAX);
    if (rc != CTL_FINE) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        memset(&bought, 0, sizeof(bought));
        bought.activity = ctl_column_u64(row[1]);
        bought.user = ctl_column_u64(row[2]);
        bought.epoch = ctl_column_u64(row[6]);
        bought.seq = ctl_column_u64(row[7]);
        snprintf(bought.order_no, sizeof(bought.order_no), "%s", row[3]);
        (void) ctl_story_add(story, &bought);

        ctl_story_tell(story, "order", "id %s: activity %s, user %s, order_no %s, request_id %s, "
                       "%s units, epoch %s seq %s, %s, written %s UTC", row[0], row[1], row[2],
                       row[3], row[4], row[5], row[6], row[7],
                       statuses[ctl_column_u64(row[8]) & 3], row[9] ? row[9] : "?");
    }

    mysql_free_result(res);

    return CTL_FINE;
}


/* what is held of a buyer is told once, however many purchases there are */
static int
ctl_story_again(const ctl_story_t *story, size_t i)
{
    size_t  k;

    for (k = 0; k < i; k++) {
        if (story->bought[k].activity == story->bought[i].activity
            && story->bought[k].user == story->bought[i].user)
        {
            return 1;
        }
    }

    return 0;
}


static int
ctl_story_all(ctl_story_t *story)
{
    int                      rc, again;
    size_t                   i;
    const ctl_bought_one_t  *one;

    if ((rc = ctl_story_streams(story)) != CTL_FINE || (rc = ctl_story_orders(story)) != CTL_FINE) {
        return rc;
    }

    for (i = 0; rc == CTL_FINE && i < story->n; i++) {
        one = &story->bought[i];
        again = ctl_story_again(story, i);

        rc = again ? CTL_FINE : ctl_story_buyer(story, one);

        rc = rc == CTL_FINE ? ctl_story_ledger(story, one, !again) : rc;
    }

    if (rc != CTL_FINE) {
        return rc;
    }

    if (story->n == 0) {
        return ctl_fail(story->ctl, CTL_NO, "no trace of \"%s\"%s", story->what, story->cut
                        ? " among what was looked at, see --scan and --activity" : "");
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
        { "scan",     required_argument, NULL, CTL_OPT_SCAN },
        { "activity", required_argument, NULL, CTL_OPT_ACTIVITY },
        CTL_OPTIONS
    };

    memset(&story, 0, sizeof(story));
    story.ctl = ctl;
    story.scan = CTL_SCAN;

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        if (opt == CTL_OPT_ACTIVITY) {
            if (sk_id_parse(optarg, strlen(optarg), &story.activity) != 0) {
                return ctl_usage(ctl, "not an activity: \"%s\"", optarg);
            }

        } else if (ctl_number(optarg, 1, CTL_SCAN_MAX, &story.scan) != 0) {
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
    "REQUEST_ID|ORDER_NO [--activity ID] [--scan N]",
    "the story of one purchase, from the stream to the order",
    "Looks through the newest entries of the streams and the dead letters and says how\n"
    "far they are, then through the orders, and tells what is known of the buyer and what\n"
    "the ledger has.  seckilld deletes stored entries after \"retain\"; the order stays.\n"
    "An order_no is found at once.  A request_id has no index: the newest orders are\n"
    "read, or with --activity all of that sale.  Exit 1 when there is no trace.\n"
    "\n"
    "      --activity ID  look at this sale alone\n"
    "      --scan N       entries of each stream, and orders, to look at, 100000\n",
    ctl_trace_run
};
