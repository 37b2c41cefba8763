/*
 * What buyers of a sale were promised, beside what its row says by now.
 */

#ifndef _CTL_TERMS_H_INCLUDED_
#define _CTL_TERMS_H_INCLUDED_

#include "ctl_sale.h"
#include "skb_terms.h"

#define CTL_EDITS_MAX  384              /* bytes of the names of what differs */

typedef enum {
    CTL_TERMS_KEPT,                     /* or none of them are promised yet, or it is settled */
    CTL_TERMS_EDITED,                   /* the row was edited after the start, see edits */
    CTL_TERMS_SHOWN,                    /* Redis shows buyers something else, see edits */
    CTL_TERMS_MISSING                   /* the sale began without terms: its orders wait */
} ctl_terms_e;

typedef struct {
    ctl_terms_e  state;
    uint64_t     epoch;                 /* the one in force */
    char         edits[CTL_EDITS_MAX];  /* "price 9.90, now 99.00; ..." */
} ctl_promise_t;

/* The terms of an epoch; *found 0: there are none.  CTL_FINE, or another code after reporting. */
int ctl_terms_read(ctl_t *ctl, uint64_t activity, uint64_t epoch, skb_terms_t *terms,
    int *found);

/* 1 when the row, or what Redis shows, is as the terms; else what differs, as text for people. */
int ctl_terms_same(const skb_terms_t *terms, const ctl_row_t *row, char edits[CTL_EDITS_MAX]);
int ctl_terms_shown(const skb_terms_t *terms, const ctl_live_t *live, char edits[CTL_EDITS_MAX]);

/* "kept", "edited", "shown" or "missing"; static text. */
const char *ctl_promise_word(const ctl_promise_t *promise);

/* The terms that a row makes, for an epoch. */
void ctl_terms_of_row(const ctl_row_t *row, uint64_t epoch, skb_terms_t *terms);

/*
 * Compares what Redis shows with the terms in force, and once the sale has begun the
 * row too: before, a preheat takes edits.  live and row as they were read.
 */
int ctl_promise_read(ctl_t *ctl, const ctl_live_t *live, const ctl_row_t *row,
    ctl_promise_t *promise);

#endif /* _CTL_TERMS_H_INCLUDED_ */
