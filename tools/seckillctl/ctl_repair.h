/*
 * Repairs of what the books found.  Each acts once, whatever runs again or at
 * the same time: the caller holds the activity's lock and made the findings
 * under it, MySQL is written first and under the activity's row lock, and
 * nobody who is in flight is among the findings.
 */

#ifndef _CTL_REPAIR_H_INCLUDED_
#define _CTL_REPAIR_H_INCLUDED_

#include "ctl_findings.h"

typedef enum {
    CTL_TO_PRODUCT,                     /* released units go to products.stock */
    CTL_TO_REDIS                        /* ... or back on sale */
} ctl_target_e;

typedef struct {
    const ctl_books_t  *books;
    ctl_findings_t     *findings;
    uint64_t            user;           /* this one alone; 0: everybody */
    ctl_target_e        target;

    /* what was done */
    uint64_t            members;        /* put back into order_users */
    uint64_t            mended;
    uint64_t            queued;
    uint64_t            released;       /* users */
    uint64_t            units;          /* ... and what they gave back */
    uint64_t            already;        /* were released before */
    int                 replays;        /* not a release */
    uint64_t            left;           /* could not be repaired, see the findings */
} ctl_repair_t;

/* All return CTL_FINE, or another code after reporting; findings tell who was repaired. */

/* Membership and results, where MySQL is sure. */
int ctl_repair_mend(ctl_t *ctl, ctl_repair_t *repair);

/* Once, after all of it: nodes load the buyers again, when some were put back. */
int ctl_repair_told(ctl_t *ctl, const ctl_repair_t *repair);

/* Buyers without an order, back into the queue. */
int ctl_repair_replay(ctl_t *ctl, ctl_repair_t *repair);

/*
 * Buyers without an order, given up; also finishes a run that was cut off after
 * MySQL: units that the ledger put on sale and Redis does not have.
 */
int ctl_repair_release(ctl_t *ctl, ctl_repair_t *repair);

#endif /* _CTL_REPAIR_H_INCLUDED_ */
