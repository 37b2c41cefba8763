/*
 * Reserved units: that the table's CHECK on them is in force, and that each row
 * has what its ledger says.
 */

#ifndef _CTL_UNITS_H_INCLUDED_
#define _CTL_UNITS_H_INCLUDED_

#include "ctl_ledger.h"

/*
 * *bites: a row that has sold more than was reserved is refused.  Tried on a row,
 * in a transaction that is rolled back; without any row the catalogue is asked.
 * CTL_FINE, or a code after reporting.
 */
int ctl_units_check(ctl_t *ctl, int *bites);

/*
 * Takes reserved over from the ledger, row by row: CTL_FINE, or CTL_PARTLY after
 * naming each activity whose ledger does not add up, with all others done.
 */
int ctl_units_take_over(ctl_t *ctl);

#endif /* _CTL_UNITS_H_INCLUDED_ */
