/*
 * The checks of a verification, and how they are told.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_json.h"
#include "ctl_verify.h"
#include "ctl_text.h"

#define CTL_NAMES_MAX  5                /* users named in a note */


static ctl_check_t *
ctl_check(ctl_verify_t *verify, const char *name, int pass, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static ctl_check_t *
ctl_check(ctl_verify_t *verify, const char *name, int pass, const char *fmt, ...)
{
    va_list       args;
    ctl_check_t  *check;

    check = &verify->checks[verify->nchecks++];
    check->name = name;
    check->result = pass ? CTL_PASS : CTL_FAIL;

    va_start(args, fmt);
    vsnprintf(check->note, sizeof(check->note), fmt, args);
    va_end(args);

    return check;
}


/* adds a user to a note, the first few by name */
static void
ctl_check_name(ctl_check_t *check, size_t nth, uint64_t user)
{
    size_t  len;

    if (nth > CTL_NAMES_MAX) {
        return;
    }

    len = strlen(check->note);
    snprintf(check->note + len, sizeof(check->note) - len,
             nth == CTL_NAMES_MAX ? " ..." : " %" PRIu64, user);
}


int
ctl_verify_is_buyer(const ctl_verify_t *verify, size_t user)
{
    return !(verify->heard[user] & CTL_WAS_BUYER)
           && (verify->heard[user] & (CTL_HEARD_ACCEPT | CTL_HEARD_REPEAT));
}


/* index of the crowd's user, or -1: somebody else */
static int64_t
ctl_verify_index(const ctl_verify_t *verify, uint64_t user)
{
    return user >= verify->first_user && user - verify->first_user < verify->users.n
           ? (int64_t) (user - verify->first_user) : -1;
}


/* units the crowd should have got, each purchase taking all of its units or none */
static uint64_t
ctl_verify_expected(const ctl_verify_t *verify)
{
    size_t    i;
    uint64_t  fresh, lots;

    fresh = 0;

    for (i = 0; i < verify->users.n; i++) {
        fresh += (verify->heard[i] & (CTL_ASKED | CTL_WAS_BUYER)) == CTL_ASKED;
    }

    lots = (uint64_t) verify->before.stock / verify->quantity;

    return (fresh < lots ? fresh : lots) * verify->quantity;
}


static void
ctl_check_answers(ctl_verify_t *verify)
{
    size_t        i, twice, lost;
    ctl_check_t  *check;

    lost = verify->outcomes[CTL_NOT_CONNECTED] + verify->outcomes[CTL_TIMED_OUT]
           + verify->outcomes[CTL_CUT];

    ctl_check(verify, "every request was answered", lost == 0, "%zu without an answer", lost);
    ctl_check(verify, "no 5xx", verify->status_5xx == 0, "%zu answers", verify->status_5xx);

    twice = 0;

    for (i = 0; i < verify->users.n; i++) {
        twice += (verify->heard[i] & CTL_HEARD_TWICE) != 0;
    }

    check = ctl_check(verify, "nobody was accepted twice", twice == 0, "%zu users%s", twice,
                      twice ? ":" : "");
    twice = 0;

    for (i = 0; i < verify->users.n; i++) {
        if (verify->heard[i] & CTL_HEARD_TWICE) {
            ctl_check_name(check, twice++, verify->first_user + i);
        }
    }
}


static void
ctl_check_stock(ctl_verify_t *verify, uint64_t expected)
{
    int64_t  left;

    left = verify->before.stock - (int64_t) expected;

    ctl_check(verify, left == 0 ? "Redis stock is 0" : "Redis stock is what nobody wanted",
              verify->after.stock == left, "%" PRId64 " before, %" PRId64 " after, %" PRId64
              " expected", verify->before.stock, verify->after.stock, left);
}


/* users with an order more than once, anybody's */
static void
ctl_check_one_each(ctl_verify_t *verify)
{
    size_t        i, n;
    ctl_check_t  *check;

    check = ctl_check(verify, "one order per user", 1, "%zu orders", verify->nbought);
    n = 0;

    for (i = 1; i < verify->nbought; i++) {
        if (verify->bought[i].user == verify->bought[i - 1].user) {

            if (n == 0) {
                check->result = CTL_FAIL;
                snprintf(check->note, sizeof(check->note), "more than one:");
            }

            ctl_check_name(check, n++, verify->bought[i].user);
        }
    }
}


/* compares who was accepted with who has an order; both run by rising user */
static void
ctl_check_buyers(ctl_verify_t *verify, uint64_t expected)
{
    size_t        i, k, missing, foreign, buyers;
    int64_t       index;
    uint64_t      units;
    ctl_check_t  *orders, *each, *others;

    orders = ctl_check(verify, expected == (uint64_t) verify->before.stock
                               ? "orders == initial stock" : "orders == demand", 1, "%s", "");
    each = ctl_check(verify, "every accepted buyer has exactly one order", 1, "%s", "");
    others = ctl_check(verify, "no order of anybody else", 1, "%s", "");

    missing = foreign = buyers = 0;
    units = 0;
    k = 0;

    snprintf(each->note, sizeof(each->note), "without one:");
    snprintf(others->note, sizeof(others->note), "not accepted:");

    for (i = 0; i < verify->users.n; i++) {

        if (!ctl_verify_is_buyer(verify, i)) {
            continue;
        }

        buyers++;

        while (k < verify->nbought && verify->bought[k].user < verify->first_user + i) {
            k++;
        }

        if (k == verify->nbought || verify->bought[k].user != verify->first_user + i
            || (k + 1 < verify->nbought && verify->bought[k + 1].user == verify->bought[k].user))
        {
            ctl_check_name(each, missing++, verify->first_user + i);
        }
    }

    for (k = 0; k < verify->nbought; k++) {
        if (bsearch(&verify->bought[k].user, verify->old, verify->nold, sizeof(uint64_t),
                    ctl_id_cmp))
        {
            continue;                   /* bought before the crowd came */
        }

        index = ctl_verify_index(verify, verify->bought[k].user);

        units += verify->bought[k].units;

        if (index < 0
            || !(verify->heard[index]
                 & (CTL_HEARD_ACCEPT | CTL_HEARD_REPEAT | CTL_HEARD_NOTHING)))
        {
            ctl_check_name(others, foreign++, verify->bought[k].user);
        }
    }

    orders->result = units == expected ? CTL_PASS : CTL_FAIL;
    snprintf(orders->note, sizeof(orders->note), "%" PRIu64 " units ordered, %" PRIu64
             " expected", units, expected);

    if (missing == 0) {
        snprintf(each->note, sizeof(each->note), "%zu buyers", buyers);
    } else {
        each->result = CTL_FAIL;
    }

    if (foreign == 0) {
        snprintf(others->note, sizeof(others->note), "0 orders");
    } else {
        others->result = CTL_FAIL;
    }
}


static void
ctl_check_results(ctl_verify_t *verify)
{
    size_t        i, n, buyers;
    ctl_check_t  *check;

    check = ctl_check(verify, "every accepted buyer reads success", 1, "without it:");
    n = buyers = 0;

    for (i = 0; i < verify->users.n; i++) {
        if (ctl_verify_is_buyer(verify, i)) {
            buyers++;

            if (!(verify->heard[i] & CTL_HEARD_SUCCESS)) {
                ctl_check_name(check, n++, verify->first_user + i);
            }
        }
    }

    if (n == 0) {
        snprintf(check->note, sizeof(check->note), "%zu buyers", buyers);
    } else {
        check->result = CTL_FAIL;
    }
}


void
ctl_verify_check(ctl_verify_t *verify)
{
    size_t    i, first;
    uint64_t  expected;

    expected = ctl_verify_expected(verify);

    ctl_check_answers(verify);
    ctl_check_stock(verify, expected);

    first = verify->nchecks;

    if (!verify->no_wait) {
        ctl_check(verify, "seckilld is done in time", verify->settled,
                  "%.2f s, unread %" PRId64 ", pending %" PRId64,
                  (double) verify->waited_ms / 1000, verify->after.unread,
                  verify->after.pending);
    }

    ctl_check_one_each(verify);
    ctl_check_buyers(verify, expected);
    ctl_check_results(verify);

    for (i = first; verify->no_wait && i < verify->nchecks; i++) {
        verify->checks[i].result = CTL_SKIP;
        snprintf(verify->checks[i].note, CTL_NOTE_MAX, "--no-wait");
    }
}


static const char *const  ctl_check_words[] = { "ok", "FAILED", "skipped" };
static const char *const  ctl_outcome_words[] = {
    "answered", "not_connected", "timed_out", "cut"
};


static void
ctl_verify_table(const ctl_verify_t *verify)
{
    size_t                    i;
    const ctl_crowd_stats_t  *stats;

    stats = &verify->stats;

    printf("activity %" PRIu64 ": %" PRIu64 " users, %" PRIu64 " requests, %" PRIu64
           " connections, seed %" PRIu64 "\n\n", verify->activity, verify->nusers,
           verify->requests, verify->concurrency, verify->seed);

    printf("  requests/s  %.0f (%zu answers in %.3f s)\n",
           stats->seconds > 0 ? (double) stats->answered / stats->seconds : 0,
           stats->answered, stats->seconds);
    printf("  latency ms  p50 %.2f   p90 %.2f   p99 %.2f   max %.2f\n\n", stats->p50 / 1e3,
           stats->p90 / 1e3, stats->p99 / 1e3, stats->max / 1e3);

    printf("  %-18s %6s %10s\n", "verdict", "code", "answers");

    for (i = 0; i < SK_VERDICTS; i++) {
        if (verify->verdicts[i] > 0) {
            printf("  %-18s %6d %10zu\n", sk_verdicts[i].word, sk_verdicts[i].code,
                   verify->verdicts[i]);
        }
    }

    if (verify->verdicts[SK_VERDICTS] > 0) {
        printf("  %-18s %6s %10zu\n", "other", "-", verify->verdicts[SK_VERDICTS]);
    }

    for (i = CTL_NOT_CONNECTED; i <= CTL_CUT; i++) {
        if (verify->outcomes[i] > 0) {
            printf("  %-18s %6s %10zu\n", ctl_outcome_words[i], "-", verify->outcomes[i]);
        }
    }

    putchar('\n');

    for (i = 0; i < verify->nchecks; i++) {
        printf("  %-8s %-44s %s\n", ctl_check_words[verify->checks[i].result],
               verify->checks[i].name, ctl_shown(verify->checks[i].note));
    }
}


static int
ctl_verify_json(ctl_t *ctl, const ctl_verify_t *verify)
{
    int         failed;
    size_t      i;
    ctl_json_t  json;

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);
    ctl_json_id(&json, "activity", verify->activity);
    ctl_json_count(&json, "users", verify->nusers);
    ctl_json_count(&json, "requests", verify->requests);
    ctl_json_count(&json, "concurrency", verify->concurrency);
    ctl_json_id(&json, "seed", verify->seed);
    ctl_json_real(&json, "seconds", verify->stats.seconds, 6);
    ctl_json_real(&json, "requests_per_second", verify->stats.seconds > 0
                  ? (double) verify->stats.answered / verify->stats.seconds : 0, 1);
    ctl_json_real(&json, "p50_ms", verify->stats.p50 / 1e3, 3);
    ctl_json_real(&json, "p90_ms", verify->stats.p90 / 1e3, 3);
    ctl_json_real(&json, "p99_ms", verify->stats.p99 / 1e3, 3);
    ctl_json_real(&json, "max_ms", verify->stats.max / 1e3, 3);
    ctl_json_count(&json, "http_5xx", verify->status_5xx);

    ctl_json_map(&json, "verdicts");
    for (i = 0; i < SK_VERDICTS; i++) {
        if (verify->verdicts[i] > 0) {
            ctl_json_count(&json, sk_verdicts[i].word, verify->verdicts[i]);
        }
    }
    ctl_json_count(&json, "other", verify->verdicts[SK_VERDICTS]);
    ctl_json_map_end(&json);

    ctl_json_map(&json, "outcomes");
    for (i = CTL_ANSWERED; i <= CTL_CUT; i++) {
        ctl_json_count(&json, ctl_outcome_words[i], verify->outcomes[i]);
    }
    ctl_json_map_end(&json);

    failed = 0;

    ctl_json_array(&json, "checks");
    for (i = 0; i < verify->nchecks; i++) {
        failed += verify->checks[i].result == CTL_FAIL;
        ctl_json_map(&json, NULL);
        ctl_json_text(&json, "name", verify->checks[i].name);
        ctl_json_text(&json, "result", ctl_check_words[verify->checks[i].result]);
        ctl_json_text(&json, "note", verify->checks[i].note);
        ctl_json_map_end(&json);
    }
    ctl_json_array_end(&json);

    ctl_json_bool(&json, "passed", failed == 0);
    ctl_json_map_end(&json);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


int
ctl_verify_print(ctl_t *ctl, const ctl_verify_t *verify)
{
    if (ctl->json) {
        return ctl_verify_json(ctl, verify);
    }

    ctl_verify_table(verify);

    return CTL_FINE;
}
