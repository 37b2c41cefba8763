/*
 * Numbers that MySQL keeps beside the rows they are made of: what each is, and
 * what it should be.  They are read in the snapshot of the books, so nothing that
 * happens meanwhile makes them differ.
 */

#ifndef _CTL_BOOKS_SUMS_H_INCLUDED_
#define _CTL_BOOKS_SUMS_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#include "ctl_backend.h"

typedef enum {
    CTL_SUM_SOLD,                       /* of the activity: units in orders, not given back */
    CTL_SUM_RETURNED,                   /* of the activity: units given back to the product */
    CTL_SUM_RESERVED,                   /* of the activity: units taken from the product */
    CTL_SUM_SEQ_SEEN,                   /* of the activity: at least that of every order */
    CTL_SUM_STOCK,                      /* of the product the units were taken from */
    CTL_SUMS
} ctl_sum_e;

typedef struct {
    int      known;                     /* 0: not judged, as this version did not make it */
    int64_t  is;
    int64_t  should_be;
} ctl_sum_t;

typedef struct {
    ctl_sum_t  sums[CTL_SUMS];
    int        shop_stock;              /* products.stock is the shop's too: only told */
} ctl_sums_t;

/* Reads them inside the caller's transaction.  CTL_FINE, or a code after reporting. */
int ctl_sums_read(ctl_t *ctl, uint64_t activity, ctl_sums_t *sums);

/* What is wrong with one of them as a sentence without its numbers; NULL: nothing. */
const char *ctl_sum_note(const ctl_sums_t *sums, ctl_sum_e which);

/* "sold", as JSON calls it. */
const char *ctl_sum_name(ctl_sum_e which);

/* How many are wrong. */
size_t ctl_sums_wrong(const ctl_sums_t *sums);

#endif /* _CTL_BOOKS_SUMS_H_INCLUDED_ */
