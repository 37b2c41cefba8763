/*
 * Whether a line of a journal may become a purchase again.  Its signature proves
 * that a node of ours wrote it, and with that registration and window; that it is
 * possible is proved here.
 */

#ifndef _CTL_REPLAY_CHECK_H_INCLUDED_
#define _CTL_REPLAY_CHECK_H_INCLUDED_

#include "ctl_repair.h"

/*
 * *why is NULL when it may, else a reason that begins with "not queued".  *fresh is
 * set when its seq can't be used again, as the sale has not come to it.
 */
int ctl_replay_check(ctl_t *ctl, const ctl_repair_t *repair, const ctl_finding_t *finding,
    int *fresh, const char **why);

#endif /* _CTL_REPLAY_CHECK_H_INCLUDED_ */
