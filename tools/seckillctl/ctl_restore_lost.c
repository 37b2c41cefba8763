/*
 * What a restore can't bring back, as the journals tell it: who bought, who may
 * have bought, and what nobody can know.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_restore.h"
#include "ctl_text.h"


static const ctl_trace_t *
ctl_lost_trace(const ctl_books_t *books, const ctl_finding_t *finding, ctl_finding_e kind)
{
    return finding->kind == kind && finding->trace >= 0 ? &books->traces[finding->trace] : NULL;
}


static void
ctl_lost_print_olds(const ctl_books_t *books)
{
    size_t                 i;
    const ctl_old_line_t  *old;

    for (i = 0; i < books->nolds; i++) {
        old = &books->olds[i];
        printf("  unsigned user %" PRIu64 ", %" PRIu64 " units, epoch %" PRIu64 " seq %" PRIu64
               ", order_no %s: anybody may have written this line\n", old->user, old->quantity,
               old->epoch, old->seq, old->order_no);
    }
}


void
ctl_lost_print(const ctl_books_t *books, const ctl_findings_t *findings,
    const ctl_journals_t *journals)
{
    char                when[CTL_TIME_MAX];
    size_t              i, lost, maybe;
    const ctl_trace_t  *trace;

    lost = maybe = 0;

    for (i = 0; i < findings->n; i++) {
        trace = ctl_lost_trace(books, &findings->all[i], CTL_IS_VANISHED);

        if (trace) {
            ctl_time_utc(when, (int64_t) trace->accepted_ms);
            printf("  lost     user %" PRIu64 ", %" PRIu64 " units, epoch %" PRIu64 " seq %" PRIu64
                   ", order_no %s, accepted %s\n", findings->all[i].user, findings->all[i].units,
                   findings->all[i].epoch, findings->all[i].seq, trace->order_no, when);
            lost++;
        }
    }

    printf("  lost     %zu accepted purchases\n", lost);

    for (i = 0; i < findings->n; i++) {
        trace = ctl_lost_trace(books, &findings->all[i], CTL_IS_MAYBE);

        if (trace) {
            ctl_time_utc(when, (int64_t) trace->accepted_ms);
            printf("  maybe    user %" PRIu64 ", %" PRIu64 " units, epoch %" PRIu64
                   ", request_id %s, not answered at %s\n", findings->all[i].user,
                   findings->all[i].units, findings->all[i].epoch, ctl_shown(trace->words), when);
            maybe++;
        }
    }

    if (maybe > 0) {
        printf("  maybe    %zu users may have bought: replay takes them by --user only\n", maybe);
    }

    ctl_lost_print_olds(books);
    ctl_journals_print(journals);
}


void
ctl_lost_json_olds(const ctl_books_t *books, ctl_json_t *json)
{
    size_t  i;

    ctl_json_array(json, "unsigned");

    for (i = 0; i < books->nolds; i++) {
        ctl_json_map(json, NULL);
        ctl_json_id(json, "user", books->olds[i].user);
        ctl_json_count(json, "units", books->olds[i].quantity);
        ctl_json_count(json, "epoch", books->olds[i].epoch);
        ctl_json_count(json, "seq", books->olds[i].seq);
        ctl_json_text(json, "order_no", books->olds[i].order_no);
        ctl_json_map_end(json);
    }

    ctl_json_array_end(json);
}


void
ctl_lost_json(const ctl_books_t *books, const ctl_findings_t *findings,
    const ctl_journals_t *journals, ctl_json_t *json)
{
    size_t                i;
    const ctl_trace_t    *trace;
    const ctl_finding_t  *finding;

    ctl_json_array(json, "lost");

    for (i = 0; i < findings->n; i++) {
        finding = &findings->all[i];
        trace = ctl_lost_trace(books, finding, CTL_IS_VANISHED);

        if (trace) {
            ctl_json_map(json, NULL);
            ctl_json_id(json, "user", finding->user);
            ctl_json_count(json, "units", finding->units);
            ctl_json_count(json, "epoch", finding->epoch);
            ctl_json_count(json, "seq", finding->seq);
            ctl_json_text(json, "order_no", trace->order_no);
            ctl_json_count(json, "accepted_ms", trace->accepted_ms);
            ctl_json_map_end(json);
        }
    }

    ctl_json_array_end(json);
    ctl_json_array(json, "maybe");

    for (i = 0; i < findings->n; i++) {
        finding = &findings->all[i];
        trace = ctl_lost_trace(books, finding, CTL_IS_MAYBE);

        if (trace) {
            ctl_json_map(json, NULL);
            ctl_json_id(json, "user", finding->user);
            ctl_json_count(json, "units", finding->units);
            ctl_json_count(json, "epoch", finding->epoch);
            ctl_json_text(json, "request_id", trace->words);
            ctl_json_count(json, "asked_ms", trace->accepted_ms);
            ctl_json_map_end(json);
        }
    }

    ctl_json_array_end(json);
    ctl_lost_json_olds(books, json);
    ctl_journals_json(journals, json);
}
