/*
 * What reconcile says, as text and as JSON.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_reconcile.h"
#include "ctl_text.h"


int
ctl_reconcile_unfinished(const ctl_books_t *books)
{
    return books->live.exists && books->resold > books->released;
}


const char *
ctl_reconcile_limit(const ctl_books_t *books)
{
    if (!books->live.exists || !books->row.exists) {
        return NULL;
    }

    if (books->reserved >= 0 && books->reserved > (int64_t) books->live.stock_limit
        && books->row.stock_limit > books->live.stock_limit)
    {
        return "a restock is not finished in Redis: run \"restock ID --finish\"";
    }

    if (books->row.stock_limit != books->live.stock_limit) {
        return "stock_limit in MySQL was changed by hand";
    }

    return books->reserved >= 0 && books->reserved != (int64_t) books->row.stock_limit
           ? "the ledger reserved another number of units than stock_limit" : NULL;
}


/* it sells nothing before it is restored, whatever the books say */
static int
ctl_reconcile_stopped(const ctl_books_t *books)
{
    return strcmp(books->live.state, "paused") == 0 || strcmp(books->live.state, "lost") == 0;
}


/* what Redis lost of a sale that has its facts; NULL: nothing, as far as is known */
static const char *
ctl_reconcile_missing(const ctl_books_t *books)
{
    return books->whole[0] != '\0' && strcmp(books->whole, "whole") != 0 ? books->whole : NULL;
}


int
ctl_reconcile_wrong(const ctl_books_t *books, const ctl_findings_t *findings)
{
    return !books->live.exists || !books->row.exists || books->live.stock < 0
           || books->promise.state != CTL_TERMS_KEPT
           || ctl_reconcile_stopped(books) || ctl_reconcile_missing(books) != NULL
           || findings->wrong > 0 || ctl_sums_wrong(&books->sums) > 0
           || books->missing != 0 || ctl_books_behind(books) || ctl_reconcile_unfinished(books)
           || ctl_reconcile_limit(books) != NULL;
}


static void
ctl_reconcile_print_sums(const ctl_sums_t *sums)
{
    int  i;

    for (i = 0; i < CTL_SUMS; i++) {
        if (ctl_sum_note(sums, i)) {
            printf("  %s: it is %" PRId64 ", %s%" PRId64 " was expected\n",
                   ctl_sum_note(sums, i), sums->sums[i].is,
                   i == CTL_SUM_SEQ_SEEN ? "at least " : "", sums->sums[i].should_be);
        }
    }
}


static void
ctl_reconcile_print_olds(const ctl_books_t *books)
{
    size_t  i;

    for (i = 0; i < books->nolds; i++) {
        printf("  unsigned: user %" PRIu64 ", %" PRIu64 " units, epoch %" PRIu64 " seq %" PRIu64
               ", order_no %s: anybody may have written this line\n", books->olds[i].user,
               books->olds[i].quantity, books->olds[i].epoch, books->olds[i].seq,
               books->olds[i].order_no);
    }
}


void
ctl_reconcile_print(const ctl_books_t *books, const ctl_findings_t *findings)
{
    size_t                i;
    const ctl_finding_t  *finding;

    const struct {
        const char  *name;
        int64_t      units;
    } terms[] = {
        { "limit",     (int64_t) books->live.stock_limit },
        { "remaining", books->live.stock },
        { "orders",    books->orders },
        { "unread",    books->unread },
        { "pending",   books->pending },
        { "dead",      books->dead },
        { "released",  books->booked - books->released },
        { "missing",   books->missing }
    };

    printf("activity %" PRIu64 ": %s, epoch %" PRIu64 "\n", books->activity,
           books->live.exists ? ctl_shown(books->live.state) : "Redis has no facts of it",
           books->live.epoch);

    for (i = 0; books->live.exists && i < sizeof(terms) / sizeof(terms[0]); i++) {
        printf("  %-10s %8" PRId64 "\n", terms[i].name, terms[i].units);
    }

    if (ctl_reconcile_stopped(books)) {
        printf("  Redis lost data of it, nothing is sold: \"seckillctl restore %" PRIu64 "\"\n",
               books->activity);
    }

    if (ctl_reconcile_missing(books)) {
        printf("  Redis lost data of it (%s), nothing is sold: %s\n", ctl_reconcile_missing(books),
               strcmp(ctl_reconcile_missing(books), "eligible") == 0
               ? "load the registered users again" : "restore the sale");
    }

    if (ctl_books_behind(books)) {
        puts("  Redis is behind MySQL: it lost data, restore the sale");
    }

    if (ctl_reconcile_unfinished(books)) {
        printf("  %" PRId64 " released units are not back on sale: repeat \"--repair release\"\n",
               books->resold - books->released);
    }

    if (ctl_reconcile_limit(books)) {
        printf("  %s\n", ctl_reconcile_limit(books));
    }

    if (books->promise.state == CTL_TERMS_EDITED) {
        printf("  its row was edited: %s; buyers get what was promised\n",
               ctl_shown(books->promise.edits));

    } else if (books->promise.state == CTL_TERMS_SHOWN) {
        printf("  Redis shows something else than its terms: %s; orders are by the first\n",
               ctl_shown(books->promise.edits));

    } else if (books->promise.state == CTL_TERMS_MISSING) {
        puts("  it has no terms, orders wait: run \"schema apply\", or \"preheat\"");
    }

    ctl_reconcile_print_sums(&books->sums);

    ctl_reconcile_print_olds(books);

    for (i = 0; i < findings->n; i++) {
        finding = &findings->all[i];

        if (i == 0 || finding->kind != findings->all[i - 1].kind) {
            printf("  %s: %s\n", ctl_finding_word(finding->kind),
                   ctl_finding_meaning(finding->kind));
        }

        printf("    user %" PRIu64, finding->user);

        if (finding->units || finding->seq) {
            printf(", %" PRIu64 " units, epoch %" PRIu64 " seq %" PRIu64, finding->units,
                   finding->epoch, finding->seq);
        }

        printf("%s%s%s%s\n", finding->note[0] ? ", " : "", ctl_shown(finding->note),
               finding->done[0] ? " -> " : "", finding->done);
    }
}


static void
ctl_reconcile_json_units(ctl_json_t *json, const ctl_books_t *books)
{
    if (!books->live.exists) {
        ctl_json_text(json, "units", NULL);
        return;
    }

    ctl_json_map(json, "units");
    ctl_json_count(json, "limit", books->live.stock_limit);
    ctl_json_known(json, "remaining", books->live.stock);
    ctl_json_count(json, "orders", (uint64_t) books->orders);
    ctl_json_count(json, "unread", (uint64_t) books->unread);
    ctl_json_count(json, "pending", (uint64_t) books->pending);
    ctl_json_count(json, "dead", (uint64_t) books->dead);
    ctl_json_signed(json, "released", books->booked - books->released);
    ctl_json_signed(json, "missing", books->missing);
    ctl_json_map_end(json);
}


static void
ctl_reconcile_json_sums(ctl_json_t *json, const ctl_sums_t *sums)
{
    int  i;

    ctl_json_array(json, "sums");

    for (i = 0; i < CTL_SUMS; i++) {
        if (ctl_sum_note(sums, i)) {
            ctl_json_map(json, NULL);
            ctl_json_text(json, "name", ctl_sum_name(i));
            ctl_json_signed(json, "is", sums->sums[i].is);
            ctl_json_signed(json, "expected", sums->sums[i].should_be);
            ctl_json_text(json, "note", ctl_sum_note(sums, i));
            ctl_json_map_end(json);
        }
    }

    ctl_json_array_end(json);
}


void
ctl_reconcile_json(ctl_json_t *json, const ctl_books_t *books, const ctl_findings_t *findings,
    const ctl_repair_t *repair)
{
    size_t                i;
    const ctl_finding_t  *finding;

    ctl_json_map(json, NULL);
    ctl_json_id(json, "activity", books->activity);
    ctl_json_text(json, "state", books->live.exists ? books->live.state : NULL);
    ctl_json_count(json, "epoch", books->live.epoch);
    ctl_reconcile_json_units(json, books);
    ctl_json_count(json, "in_flight", findings->skipped);
    ctl_json_count(json, "wrong", findings->wrong);
    ctl_json_bool(json, "behind", ctl_books_behind(books));
    ctl_json_text(json, "lost_key", ctl_reconcile_missing(books));
    ctl_json_bool(json, "unfinished", ctl_reconcile_unfinished(books));
    ctl_json_text(json, "limit_note", ctl_reconcile_limit(books));
    ctl_json_text(json, "terms", ctl_promise_word(&books->promise));
    ctl_json_text(json, "edited", books->promise.edits[0] ? books->promise.edits : NULL);
    ctl_reconcile_json_sums(json, &books->sums);
    ctl_json_array(json, "findings");

    for (i = 0; i < findings->n; i++) {
        finding = &findings->all[i];
        ctl_json_map(json, NULL);
        ctl_json_text(json, "kind", ctl_finding_word(finding->kind));
        ctl_json_id(json, "user", finding->user);
        ctl_json_count(json, "units", finding->units);
        ctl_json_count(json, "epoch", finding->epoch);
        ctl_json_count(json, "seq", finding->seq);
        ctl_json_text(json, "letter", finding->letter >= 0 ? books->letters[finding->letter].id
                                                           : NULL);
        ctl_json_text(json, "note", finding->note);
        ctl_json_text(json, "done", finding->done[0] ? finding->done : NULL);
        ctl_json_map_end(json);
    }

    ctl_json_array_end(json);

    if (repair) {
        ctl_json_map(json, "repair");
        ctl_json_count(json, "mended", repair->mended);
        ctl_json_count(json, "queued", repair->queued);
        ctl_json_count(json, "released", repair->released);
        ctl_json_count(json, "units", repair->units);
        ctl_json_count(json, "already", repair->already);
        ctl_json_count(json, "left", repair->left);
        ctl_json_map_end(json);
    }

    ctl_json_map_end(json);
}
