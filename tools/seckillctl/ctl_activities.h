/*
 * The registered activities, as Redis lists them.
 */

#ifndef _CTL_ACTIVITIES_H_INCLUDED_
#define _CTL_ACTIVITIES_H_INCLUDED_

#include "ctl_backend.h"

#define CTL_ACTIVITIES_MAX  100000

typedef struct {
    uint64_t  *ids;                     /* in the order of their numbers */
    size_t     n;
} ctl_activities_t;

/*
 * CTL_FINE, or another code after reporting; a member that is no id is warned
 * of.  ctl_activities_free() is right after both.
 */
int ctl_activities_read(ctl_t *ctl, ctl_activities_t *activities);
void ctl_activities_free(ctl_activities_t *activities);

#endif /* _CTL_ACTIVITIES_H_INCLUDED_ */
