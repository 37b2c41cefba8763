/*
 * A restore on its way: what MySQL says of the sale, and what Redis gets.
 */

#ifndef _CTL_RESTORE_H_INCLUDED_
#define _CTL_RESTORE_H_INCLUDED_

#include "ctl_books.h"

typedef struct {
    uint64_t     activity;
    ctl_books_t  books;                 /* the rows, and dead letters that Redis still has */
    char         state[CTL_STATE_MAX];  /* from now on: open or closed */
    uint64_t     epoch;                 /* the new one */
    uint64_t     old_rev;
    uint64_t     rev;
    uint64_t     buyers;
    int64_t      stock;
} ctl_restore_t;

/* All return CTL_FINE, or another code after reporting. */

/* Takes down what is left in Redis; CTL_REFUSED while something of it is on its way. */
int ctl_restore_clear(ctl_t *ctl, ctl_restore_t *restore);

/* Writes everything; the facts come last, and with them the sale opens. */
int ctl_restore_write(ctl_t *ctl, ctl_restore_t *restore);

#endif /* _CTL_RESTORE_H_INCLUDED_ */
