/*
 * What "schema apply" adds to the tables each time it runs: rows that programs of an
 * earlier version do not write.
 */

#ifndef _CTL_SCHEMA_FILL_H_INCLUDED_
#define _CTL_SCHEMA_FILL_H_INCLUDED_

#include "ctl.h"

/* Under the lock of the schema, after its files.  CTL_FINE, or another code after reporting. */
int ctl_schema_fill(ctl_t *ctl);

#endif /* _CTL_SCHEMA_FILL_H_INCLUDED_ */
