/*
 * Sales that MySQL has and Redis lost, and the control hash, which nobody may make
 * before each of them has facts that say so.
 */

#ifndef _CTL_LOST_H_INCLUDED_
#define _CTL_LOST_H_INCLUDED_

#include "ctl_activities.h"
#include "ctl_backend.h"

/* Makes the control hash, once every lost sale has its facts; CTL_FINE also when it is there. */
int ctl_control_ready(ctl_t *ctl);

/* The same, and registers the activity. */
int ctl_register(ctl_t *ctl, uint64_t activity);

/*
 * Adds to the list those that were opened and are not settled by MySQL, whatever
 * Redis lists.  CTL_FINE, or another code after reporting.
 */
int ctl_activities_opened(ctl_t *ctl, ctl_activities_t *activities);

/* *opened: the ledger says that the activity was in Redis. */
int ctl_activity_opened(ctl_t *ctl, uint64_t activity, int *opened);

#endif /* _CTL_LOST_H_INCLUDED_ */
