/*
 * Whether Redis has every key of a sale, with all that it must hold.
 */

#ifndef _CTL_WHOLE_H_INCLUDED_
#define _CTL_WHOLE_H_INCLUDED_

#include <stdint.h>

#include "ctl.h"

#define CTL_WHOLE_MAX  64               /* NUL included */

/*
 * status: what lua/facts.lua says, "whole" or the first thing that is missing; ""
 * when Redis does not tell, and why has its words then.  CTL_FINE, or another code
 * after reporting.
 */
int ctl_whole_read(ctl_t *ctl, uint64_t activity, char status[CTL_WHOLE_MAX],
    char why[CTL_WHOLE_MAX]);

#endif /* _CTL_WHOLE_H_INCLUDED_ */
