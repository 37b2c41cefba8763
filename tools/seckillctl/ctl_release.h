/*
 * Which findings a release acts on, and how many of their units exist.
 */

#ifndef _CTL_RELEASE_H_INCLUDED_
#define _CTL_RELEASE_H_INCLUDED_

#include "ctl_repair.h"

/* The finding is about a buyer without an order, and among those that were asked for. */
int ctl_release_is_candidate(const ctl_repair_t *repair, const ctl_finding_t *finding);

/* NULL: it can be released; else why not. */
const char *ctl_release_refusal(const ctl_repair_t *repair, const ctl_finding_t *finding);

/*
 * Units without a dead letter are believed only as far as the books miss them.
 * Open letters hold units unless the books have too many: Redis has sold somebody's
 * units once more then, and they exist once.  *real is how many of all open letters'
 * units exist.  CTL_REFUSED after reporting: nothing is to be changed.
 */
int ctl_release_prove(ctl_t *ctl, const ctl_repair_t *repair, int64_t *real);

#endif /* _CTL_RELEASE_H_INCLUDED_ */
