/*
 * status: the sales as Redis and MySQL hold them.  What cannot be known is
 * printed as unknown, never as 0.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl_activities.h"
#include "ctl_json.h"
#include "ctl_lost.h"
#include "ctl_sale.h"
#include "ctl_terms.h"
#include "ctl_text.h"
#include "sk_id.h"

typedef struct {
    ctl_activities_t  activities;
    size_t            missing;          /* neither in Redis nor in MySQL */
    size_t            lost;             /* Redis lost it, or data of it */
    int               one;              /* asked for by id */
    int               mysql;            /* CTL_FINE while MySQL answers */
    ctl_control_t     control;
    ctl_json_t        json;
} ctl_status_t;

typedef struct {
    ctl_live_t  live;
    ctl_row_t   row;
    int64_t     orders;                 /* -1 while MySQL does not answer */
    int64_t     units;
    ctl_promise_t  promise;
    int         opened;                 /* it was in Redis, by MySQL's ledger, and is not settled */
} ctl_view_t;


/* MySQL down still leaves what Redis says worth seeing */
static int
ctl_status_view(ctl_t *ctl, ctl_status_t *status, uint64_t activity, ctl_view_t *view)
{
    int       rc;
    uint64_t  orders, units;

    memset(view, 0, sizeof(*view));
    view->orders = view->units = -1;

    rc = ctl_live_read(ctl, activity, &view->live);

    if (rc != CTL_FINE || status->mysql != CTL_FINE) {
        return rc;
    }

    status->mysql = ctl_row_read(ctl, activity, 0, &view->row);

    if (status->mysql == CTL_FINE) {
        status->mysql = ctl_orders_count(ctl, activity, &orders, &units);
    }

    if (status->mysql == CTL_FINE && view->row.status != 2) {
        status->mysql = ctl_activity_opened(ctl, activity, &view->opened);
    }

    if (status->mysql == CTL_FINE) {
        status->mysql = ctl_promise_read(ctl, &view->live, &view->row, &view->promise);
    }

    if (status->mysql == CTL_FINE) {
        view->orders = (int64_t) orders;
        view->units = (int64_t) units;
    }

    return CTL_FINE;
}


/* What the sale is in, as a word; a sale that MySQL opened and Redis lost is no new one. */
static const char *
ctl_status_phase(const ctl_view_t *view)
{
    return !view->live.exists && view->opened ? "lost" : ctl_live_phase(&view->live);
}


/* Redis lost data of it: nothing is sold before somebody does something */
static int
ctl_status_lost(const ctl_view_t *view)
{
    const char  *phase;

    phase = ctl_status_phase(view);

    return view->row.status != 2 && (strcmp(phase, "lost") == 0 || strcmp(phase, "paused") == 0);
}


static void
ctl_status_json(ctl_json_t *json, const ctl_view_t *view)
{
    const ctl_live_t  *live;

    live = &view->live;

    ctl_json_map(json, NULL);
    ctl_json_id(json, "activity", live->activity);
    ctl_json_text(json, "phase", ctl_status_phase(view));

    if (live->exists) {
        ctl_json_map(json, "facts");
        ctl_json_id(json, "product_id", live->product_id);
        ctl_json_text(json, "price", live->price);
        ctl_json_count(json, "stock_limit", live->stock_limit);
        ctl_json_count(json, "start_ms", (uint64_t) live->start_ms);
        ctl_json_count(json, "end_ms", (uint64_t) live->end_ms);
        ctl_json_text(json, "state", live->state);
        ctl_json_count(json, "max_quantity", live->max_quantity);
        ctl_json_bool(json, "by_registration", live->by_registration);
        ctl_json_count(json, "epoch", live->epoch);
        ctl_json_count(json, "rev", live->rev);
        ctl_json_count(json, "seq", live->seq);
        ctl_limit_json(json, "limit", &live->limit);
        ctl_json_map_end(json);
    } else {
        ctl_json_text(json, "facts", NULL);
    }

    ctl_json_known(json, "stock", live->stock);
    ctl_json_known(json, "buyers", live->buyers);
    ctl_json_known(json, "stream", live->stream);
    ctl_json_known(json, "unread", live->unread);
    ctl_json_known(json, "pending", live->pending);
    ctl_json_known(json, "dead", live->dead);
    ctl_json_known(json, "orders", view->orders);
    ctl_json_known(json, "units_ordered", view->units);
    ctl_json_known(json, "mysql_sold", view->row.exists ? (int64_t) view->row.sold : -1);
    ctl_json_known(json, "mysql_status", view->row.exists ? view->row.status : -1);
    ctl_json_text(json, "terms", view->row.exists ? ctl_promise_word(&view->promise) : NULL);
    ctl_json_text(json, "edited", view->promise.edits[0] ? view->promise.edits : NULL);
    ctl_json_count(json, "redis_time_ms", (uint64_t) live->now_ms);
    ctl_json_map_end(json);
}


static void
ctl_print_known(const char *label, int64_t n)
{
    if (n < 0) {
        printf("  %-12s unknown\n", label);
    } else {
        printf("  %-12s %" PRId64 "\n", label, n);
    }
}


/* what is in force, and whose it is */
static void
ctl_print_limit(const ctl_limit_t *own, const ctl_limit_t *all)
{
    char  text[CTL_LIMIT_TEXT];

    ctl_limit_text(text, own->rate[0] ? own : all);
    printf("  %-12s %s%s\n", "user limit", ctl_shown(text),
           own->rate[0] ? ", its own" : all->rate[0] ? ", that of all" : " in nginx");
}


static void
ctl_status_print(const ctl_control_t *control, const ctl_view_t *view)
{
    char               utc[CTL_TIME_MAX], local[CTL_TIME_MAX];
    const ctl_live_t  *live;

    live = &view->live;

    printf("activity %" PRIu64 ": %s\n", live->activity, ctl_shown(ctl_live_phase(live)));

    if (control->closed) {
        printf("  %-12s closed for all sales\n", "entry");
    }

    if (live->exists) {
        printf("  %-12s %" PRIu64 " at %s, at most %" PRIu64 " each%s\n", "product",
               live->product_id, ctl_shown(live->price), live->max_quantity,
               live->by_registration ? ", registered users only" : "");

        ctl_time_utc(utc, live->start_ms);
        ctl_time_local(local, live->start_ms);
        printf("  %-12s %s, here %s\n", "start", utc, local);

        ctl_time_utc(utc, live->end_ms);
        ctl_time_local(local, live->end_ms);
        printf("  %-12s %s, here %s\n", "end", utc, local);

        printf("  %-12s epoch %" PRIu64 ", rev %" PRIu64 ", seq %" PRIu64 "\n", "generation",
               live->epoch, live->rev, live->seq);
        printf("  %-12s %" PRIu64 "\n", "limit", live->stock_limit);
        ctl_print_limit(&live->limit, &control->limit);
    }

    ctl_print_known("stock", live->stock);
    ctl_print_known("buyers", live->buyers);
    ctl_print_known("stream", live->stream);
    ctl_print_known("unread", live->unread);
    ctl_print_known("pending", live->pending);
    ctl_print_known("dead", live->dead);
    ctl_print_known("orders", view->orders);
    ctl_print_known("ordered", view->units);

    if (view->promise.state == CTL_TERMS_EDITED) {
        printf("  %-12s %s; buyers get what was promised\n", "edited",
               ctl_shown(view->promise.edits));

    } else if (view->promise.state == CTL_TERMS_SHOWN) {
        printf("  %-12s in Redis: %s; orders are by the first\n", "edited",
               ctl_shown(view->promise.edits));

    } else if (view->promise.state == CTL_TERMS_MISSING) {
        printf("  %-12s missing, orders wait: seckillctl schema apply, or preheat\n", "terms");
    }
}


/* null: Redis has no such hash, or did not answer */
static void
ctl_status_control(ctl_json_t *json, const ctl_control_t *control)
{
    if (!control->exists) {
        ctl_json_text(json, "control", NULL);
        return;
    }

    ctl_json_map(json, "control");
    ctl_json_text(json, "state", control->closed ? "closed" : "open");
    ctl_limit_json(json, "limit", &control->limit);
    ctl_json_map_end(json);
}


static int
ctl_status_all(ctl_t *ctl, ctl_status_t *status)
{
    int         rc;
    size_t      i;
    ctl_view_t  view;

    rc = ctl_control_read(ctl, &status->control);
    if (rc != CTL_FINE) {
        return rc;
    }

    for (i = 0; i < status->activities.n; i++) {

        rc = ctl_status_view(ctl, status, status->activities.ids[i], &view);
        if (rc != CTL_FINE) {
            return rc;
        }

        if (!view.live.exists && !view.row.exists && view.live.stock < 0
            && status->mysql == CTL_FINE)
        {
            status->missing++;
        }

        status->lost += ctl_status_lost(&view);

        if (ctl->json) {
            ctl_status_json(&status->json, &view);
        } else {
            ctl_status_print(&status->control, &view);
        }
    }

    if (status->activities.n == 0 && !ctl->json) {
        puts("no activity is registered");
    }

    return (status->one && status->missing) || status->lost ? CTL_NO : CTL_FINE;
}


/* one look; id 0: at all of them */
static int
ctl_status_look(ctl_t *ctl, uint64_t id)
{
    int           rc;
    ctl_status_t  status;

    memset(&status, 0, sizeof(status));
    status.one = id != 0;
    if (status.one) {
        status.activities.ids = &id;
        status.activities.n = 1;
        rc = CTL_FINE;
    } else {
        rc = ctl_activities_read(ctl, &status.activities);

        /* what Redis lost is not in its list; MySQL down still leaves what Redis says */
        if (rc == CTL_FINE) {
            status.mysql = ctl_activities_opened(ctl, &status.activities);
        }
    }

    if (rc == CTL_FINE && ctl->json) {
        ctl_json_begin(ctl, &status.json);
        ctl_json_map(&status.json, NULL);
        ctl_json_array(&status.json, "activities");
    }

    if (rc == CTL_FINE) {
        rc = ctl_status_all(ctl, &status);
    }

    if (status.json.gen) {
        ctl_json_array_end(&status.json);
        ctl_status_control(&status.json, &status.control);
        ctl_json_error(&status.json, ctl);
        ctl_json_map_end(&status.json);

        if (ctl_json_end(&status.json) != 0) {
            rc = CTL_PARTLY;
        }
    }

    if (!status.one) {
        ctl_activities_free(&status.activities);
    }

    return rc == CTL_FINE ? status.mysql : rc;
}


/* for a terminal: connects anew each time, so an outage is seen and seen to end */
static int
ctl_status_watch(ctl_t *ctl, uint64_t id, unsigned seconds)
{
    char  when[CTL_TIME_MAX];

    for ( ;; ) {
        if (!ctl->json) {
            ctl_time_local(when, (int64_t) time(NULL) * 1000);
            printf("%s%s\n", isatty(STDOUT_FILENO) ? "\033[H\033[2J" : "", when);
        }

        (void) ctl_status_look(ctl, id);
        ctl_close(ctl);
        ctl->failed = 0;
        ctl->message[0] = '\0';

        if (fflush(stdout) != 0) {
            return CTL_PARTLY;
        }

        sleep(seconds);
    }
}


static int
ctl_status_run(ctl_t *ctl, int argc, char **argv)
{
    int       opt;
    uint64_t  id, seconds;

    static const struct option  options[] = {
        { "watch", optional_argument, NULL, CTL_OPT },
        CTL_OPTIONS
    };

    id = seconds = 0;

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        if (ctl_number(optarg ? optarg : "2", 1, 3600, &seconds) != 0) {
            return ctl_usage(ctl, "--watch takes 1 to 3600 seconds, not \"%s\"", optarg);
        }
    }

    if (argc - optind > 1) {
        return ctl_usage(ctl, "one activity, or none for all of them");
    }

    if (argc - optind == 1 && sk_id_parse(argv[optind], strlen(argv[optind]), &id) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[optind]);
    }

    return seconds ? ctl_status_watch(ctl, id, (unsigned) seconds) : ctl_status_look(ctl, id);
}


const ctl_verb_t  ctl_status_verb = {
    "status",
    "[ID] [--watch[=SECONDS]]",
    "show a sale, or all of them, as Redis and MySQL hold it",
    "Shows facts, switch, limit of a user, stock, buyers, the stream with what seckilld\n"
    "has not read (unread) and not finished (pending), dead letters and orders.  What a\n"
    "server cannot tell is \"unknown\" (null in JSON).  Exit 1 when ID is nowhere, or Redis\n"
    "lost data of a sale, also of one that it does not list any more; 3 when MySQL or\n"
    "Redis does not answer; what Redis said is shown all the same.  A row that was edited\n"
    "after the start is named: buyers get what was promised.\n"
    "\n"
    "      --watch[=SECONDS]  again and again, every 2 seconds, until it is stopped\n",
    ctl_status_run
};
