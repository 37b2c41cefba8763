/*
 * How the books and the findings are told, and when they are not in order.
 */

#ifndef _CTL_RECONCILE_H_INCLUDED_
#define _CTL_RECONCILE_H_INCLUDED_

#include "ctl_json.h"
#include "ctl_repair.h"

/* A run before booked units for the sale in MySQL that Redis does not have yet. */
int ctl_reconcile_unfinished(const ctl_books_t *books);

/* Facts, row and ledger disagree about the limit: in what way, or NULL. */
const char *ctl_reconcile_limit(const ctl_books_t *books);

/* Anything at all is not in order. */
int ctl_reconcile_wrong(const ctl_books_t *books, const ctl_findings_t *findings);

/* One activity; repair NULL: nothing was to be repaired. */
void ctl_reconcile_print(const ctl_books_t *books, const ctl_findings_t *findings);
void ctl_reconcile_json(ctl_json_t *json, const ctl_books_t *books,
    const ctl_findings_t *findings, const ctl_repair_t *repair);

#endif /* _CTL_RECONCILE_H_INCLUDED_ */
