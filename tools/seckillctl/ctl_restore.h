/*
 * A restore on its way: what MySQL says of the sale, and what Redis gets.
 */

#ifndef _CTL_RESTORE_H_INCLUDED_
#define _CTL_RESTORE_H_INCLUDED_

#include "ctl_findings.h"
#include "skb_terms.h"

#define CTL_MARK_MAX  256

typedef struct {
    uint64_t     activity;
    ctl_books_t  books;                 /* the rows, and dead letters that Redis still has */
    char         state[CTL_STATE_MAX];  /* from now on: open or closed */
    char         mark[CTL_MARK_MAX];    /* of what was looked at in Redis */
    int          cleared;               /* what was left in Redis is gone */
    skb_terms_t  terms;                 /* what buyers were promised, with the new epoch */
    uint64_t     live_epoch;            /* of the facts, 0: they are lost */
    uint64_t     epoch;                 /* the new one */
    uint64_t     last_ms;               /* in the ids of entries that are known to have been */
    uint64_t     old_rev;
    uint64_t     rev;
    uint64_t     buyers;
    int64_t      stock;
} ctl_restore_t;

/* All return CTL_FINE, or another code after reporting. */

/*
 * Looks whether what is left in Redis may be taken down, and writes nothing;
 * CTL_REFUSED when nothing is missing, or something of it is on its way.
 */
int ctl_restore_look(ctl_t *ctl, ctl_restore_t *restore);

/* Takes it down, if it is still what was looked at. */
int ctl_restore_clear(ctl_t *ctl, ctl_restore_t *restore);

/* Writes everything; the facts come last, and with them the sale opens. */
int ctl_restore_write(ctl_t *ctl, ctl_restore_t *restore);

/* ctl_restore_lost.c: what the journals say of what can't be brought back. */
void ctl_lost_print(const ctl_books_t *books, const ctl_findings_t *findings,
    const ctl_journals_t *journals);
void ctl_lost_json(const ctl_books_t *books, const ctl_findings_t *findings,
    const ctl_journals_t *journals, ctl_json_t *json);
void ctl_lost_json_olds(const ctl_books_t *books, ctl_json_t *json);

#endif /* _CTL_RESTORE_H_INCLUDED_ */
