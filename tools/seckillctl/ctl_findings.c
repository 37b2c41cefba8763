/*
 * The verdict about every user.
 */

#include <stdlib.h>
#include <string.h>

#include "ctl_findings.h"

static const char *const  ctl_finding_words[CTL_FINDINGS][2] = {
#define CTL_FINDING(name, word, meaning)  { word, meaning },
#include "ctl_findings_x.h"
#undef CTL_FINDING
};

typedef struct {
    ctl_t              *ctl;
    const ctl_books_t  *books;
    ctl_findings_t     *findings;
    int                 rc;
} ctl_finder_t;


const char *
ctl_finding_word(ctl_finding_e kind)
{
    return ctl_finding_words[kind][0];
}


const char *
ctl_finding_meaning(ctl_finding_e kind)
{
    return ctl_finding_words[kind][1];
}


static ctl_finding_t *
ctl_find(ctl_finder_t *finder, ctl_finding_e kind, uint64_t user, const char *note)
{
    void                  *room;
    ctl_finding_t         *finding;
    ctl_findings_t        *findings;
    static ctl_finding_t   nowhere;

    findings = finder->findings;

    room = ctl_books_room(finder->ctl, findings->all, findings->n, &findings->room,
                          sizeof(ctl_finding_t), CTL_TRACES_MAX);
    if (room == NULL) {
        finder->rc = CTL_REFUSED;
        return &nowhere;
    }

    findings->all = room;
    finding = &findings->all[findings->n++];
    memset(finding, 0, sizeof(*finding));
    finding->kind = kind;
    finding->user = user;
    finding->trace = -1;
    finding->letter = -1;
    finding->note = note;
    finding->done = "";

    findings->wrong += kind != CTL_IS_LETTER && kind != CTL_IS_MAYBE;

    return finding;
}


/* units of a purchase that nobody counted: with one unit each there is no doubt */
static uint64_t
ctl_find_units(const ctl_books_t *books, uint64_t quantity)
{
    return quantity ? quantity : books->live.max_quantity == 1;
}


/* how much a trace says: an entry more than a journal, and that more than a question */
static int
ctl_find_rank(const ctl_trace_t *trace)
{
    if (trace->kind == CTL_MAYBE) {
        return 1;
    }

    return trace->epoch == 0 ? 0 : trace->kind == CTL_JOURNAL ? 2 : 3;
}


/* the purchase behind a finding */
static void
ctl_find_trace(const ctl_books_t *books, ctl_finding_t *finding, const ctl_person_t *person)
{
    uint32_t            at;
    const ctl_trace_t  *trace, *best;

    best = NULL;

    for (at = person->trace; at; at = trace->next) {
        trace = &books->traces[at - 1];

        if (ctl_find_rank(trace) > (best ? ctl_find_rank(best) : 0)) {
            best = trace;
        }
    }

    if (best) {
        finding->trace = best - books->traces;
        finding->epoch = best->epoch;
        finding->seq = best->seq;
    }

    finding->units = ctl_find_units(books, best ? best->quantity : 0);
}


/* Redis knows that this user bought: by the set, or by an entry that is still there */
static int
ctl_find_in_redis(const ctl_books_t *books, const ctl_person_t *person)
{
    uint32_t  at;

    if (person->flags & CTL_MEMBER) {
        return 1;
    }

    for (at = person->trace; at; at = books->traces[at - 1].next) {
        if (books->traces[at - 1].kind != CTL_JOURNAL && books->traces[at - 1].kind != CTL_MAYBE) {
            return 1;
        }
    }

    return 0;
}


/* a line says that Redis took it, or only that a node asked for it */
static ctl_finding_e
ctl_find_vanished(const ctl_books_t *books, const ctl_person_t *person)
{
    uint32_t  at;

    for (at = person->trace; at; at = books->traces[at - 1].next) {
        if (books->traces[at - 1].kind != CTL_MAYBE) {
            return CTL_IS_VANISHED;
        }
    }

    return CTL_IS_MAYBE;
}


/* acknowledged entries of a user whose order is that of another purchase */
static void
ctl_find_second(ctl_finder_t *finder, const ctl_person_t *person)
{
    uint32_t            at;
    ctl_finding_t      *finding;
    const ctl_trace_t  *trace;
    const ctl_books_t  *books;

    books = finder->books;

    for (at = person->trace; at; at = trace->next) {
        trace = &books->traces[at - 1];

        if (trace->kind != CTL_ACKED || trace->epoch == 0
            || (trace->epoch == person->epoch && trace->seq == person->seq)
            || trace->epoch != books->live.epoch
            || ctl_books_extra(books, trace->epoch, trace->seq)
            || (person->flags & CTL_LETTER))
        {
            continue;
        }

        finding = ctl_find(finder, CTL_IS_SECOND, person->user, "");
        finding->trace = trace - books->traces;
        finding->epoch = trace->epoch;
        finding->seq = trace->seq;
        finding->units = trace->quantity;
    }
}


static void
ctl_find_ordered(ctl_finder_t *finder, const ctl_person_t *person)
{
    uint32_t  flags;

    flags = person->flags;

    if (flags & CTL_LATE) {
        return;
    }

    if (!(flags & CTL_MEMBER)) {
        ctl_find(finder, CTL_IS_NOT_MEMBER, person->user, "has an order");
    }

    if (flags & CTL_TOMB) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user, "has an order, and failed too");
    }

    if (flags & CTL_RELEASED) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user,
                 "has an order, and the units were given back");
    }

    if (flags & CTL_UNITS_ODD) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user,
                 "the order has another number of units than the purchase");
    }

    if (flags & CTL_TERMS_ODD) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user,
                 "the order's price, product or units are not by the terms of its epoch");
    }

    if (flags & CTL_TOLD_NO) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user, "has an order, was told failed");

    } else if (flags & CTL_TOLD_ODD) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user, "has an order, was told another one");

    } else if (!(flags & (CTL_TOLD_OK | CTL_UNACKED))) {
        ctl_find(finder, CTL_IS_NO_RESULT, person->user, "has an order");
    }

    ctl_find_second(finder, person);
}


static void
ctl_find_failed(ctl_finder_t *finder, const ctl_person_t *person)
{
    uint32_t        flags;
    ctl_finding_t  *finding;

    flags = person->flags;

    if (!(flags & CTL_MEMBER)) {
        ctl_find(finder, CTL_IS_NOT_MEMBER, person->user, "failed");
    }

    if (flags & CTL_TOLD_OK) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user, "failed, was told success");

    } else if (!(flags & (CTL_TOLD_NO | CTL_UNACKED))) {
        ctl_find(finder, CTL_IS_NO_RESULT, person->user, "failed");
    }

    /* failed in an earlier life of the sale: a restore has put the units back on sale */
    if (finder->books->missing > 0 && !(flags & (CTL_LETTER | CTL_RELEASED | CTL_KEPT))) {
        finding = ctl_find(finder, CTL_IS_UNBOOKED, person->user, "");
        ctl_find_trace(finder->books, finding, person);
    }
}


static void
ctl_find_person(ctl_finder_t *finder, const ctl_person_t *person)
{
    int                 known;
    uint32_t            flags;
    ctl_finding_t      *finding;
    const ctl_books_t  *books;

    flags = person->flags;
    books = finder->books;

    if (flags & CTL_FLIGHT) {
        finder->findings->skipped++;

        if (!(flags & CTL_MEMBER)) {
            ctl_find(finder, CTL_IS_NOT_MEMBER, person->user, "the purchase is on its way");
        }

        return;
    }

    if (flags & CTL_ORDERED) {
        ctl_find_ordered(finder, person);
        return;
    }

    if (flags & CTL_RECORDED) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user, "the record says success, no order");
    }

    if (flags & CTL_TOMB) {
        ctl_find_failed(finder, person);
        return;
    }

    if (flags & CTL_RELEASED) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user, "given back, but may still buy");
        return;
    }

    if (flags & CTL_LETTER) {
        ctl_find(finder, CTL_IS_CONTRADICTION, person->user, "a dead letter, but no failed record");
        return;
    }

    known = ctl_find_in_redis(books, person);

    if (!known && person->trace == 0) {
        return;                         /* only a result, or a record that waits */
    }

    finding = ctl_find(finder, known ? CTL_IS_LOST : ctl_find_vanished(books, person),
                       person->user, flags & CTL_TOLD_OK ? "was told success" : "");
    ctl_find_trace(books, finding, person);
}


static void
ctl_find_letters(ctl_finder_t *finder)
{
    size_t               i;
    ctl_finding_t       *finding;
    const ctl_letter_t  *letter;

    for (i = 0; i < finder->books->nletters; i++) {
        letter = &finder->books->letters[i];

        finding = ctl_find(finder, letter->closed ? CTL_IS_CLOSED : CTL_IS_LETTER, letter->user,
                           letter->reason);
        finding->letter = (int64_t) i;
        finding->epoch = letter->epoch;
        finding->seq = letter->seq;
        finding->units = letter->closed ? 0 : letter->quantity;
    }
}


static int
ctl_finding_cmp(const void *a, const void *b)
{
    const ctl_finding_t  *x = a, *y = b;

    if (x->kind != y->kind) {
        return x->kind < y->kind ? -1 : 1;
    }

    if (x->user != y->user) {
        return x->user < y->user ? -1 : 1;
    }

    return (x->seq > y->seq) - (x->seq < y->seq);
}


int
ctl_findings_make(ctl_t *ctl, const ctl_books_t *books, ctl_findings_t *findings)
{
    size_t         i;
    ctl_finder_t   finder = { ctl, books, findings, CTL_FINE };

    for (i = 0; i < books->people.n; i++) {
        if (books->live.exists) {
            ctl_find_person(&finder, &books->people.all[i]);

        } else if (books->people.all[i].trace
                   && !(books->people.all[i].flags & (CTL_ORDERED | CTL_TOMB)))
        {
            ctl_find_trace(books, ctl_find(&finder,
                                           ctl_find_vanished(books, &books->people.all[i]),
                                           books->people.all[i].user, ""), &books->people.all[i]);
        }
    }

    if (books->live.exists) {
        ctl_find_letters(&finder);
    }

    if (findings->n > 0) {
        qsort(findings->all, findings->n, sizeof(ctl_finding_t), ctl_finding_cmp);
    }

    return finder.rc;
}


int
ctl_findings_read(ctl_t *ctl, uint64_t activity, const ctl_journals_t *journals,
    uint64_t grace_ms, ctl_books_t *books, ctl_findings_t *findings)
{
    int     rc;
    size_t  i;

    memset(books, 0, sizeof(*books));
    memset(findings, 0, sizeof(*findings));
    books->grace_ms = grace_ms;

    rc = ctl_books_read(ctl, books, activity);

    for (i = 0; i < journals->n && rc == CTL_FINE; i++) {
        rc = ctl_books_journal(ctl, books, journals, i);
    }

    if (rc == CTL_FINE) {
        rc = ctl_books_results(ctl, books);
    }

    if (rc == CTL_FINE) {
        ctl_books_judge(books);
        rc = ctl_findings_make(ctl, books, findings);
    }

    return rc;
}


void
ctl_findings_free(ctl_findings_t *findings)
{
    free(findings->all);
    memset(findings, 0, sizeof(*findings));
}
