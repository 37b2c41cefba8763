/*
 * Dead letters: purchases that could not become orders.
 */

#ifndef _CTL_DEAD_H_INCLUDED_
#define _CTL_DEAD_H_INCLUDED_

#include "ctl_books.h"

/* What retry or drop did with one letter; static text. */
typedef struct {
    const char  *id;                    /* as asked for */
    const char  *done;
    int          failed;                /* the answer is no */
} ctl_closing_t;

typedef struct {
    uint64_t        activity;
    int             keep_units;
    int             all;
    ctl_books_t     books;
    ctl_row_t       row;
    char          **ids;                /* operands; none with all */
    size_t          nids;
    ctl_closing_t  *closings;
    size_t          nclosings;
} ctl_dead_t;

/*
 * Both work through the letters one by one, under the activity's lock; what
 * became of each is in closings.  CTL_FINE also when some were refused.
 */
int ctl_dead_retry(ctl_t *ctl, ctl_dead_t *dead);
int ctl_dead_drop(ctl_t *ctl, ctl_dead_t *dead);

#endif /* _CTL_DEAD_H_INCLUDED_ */
