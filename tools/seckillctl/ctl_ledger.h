/*
 * The tool's way to the ledger's one writer, src/backend/skb_ledger.c.
 */

#ifndef _CTL_LEDGER_H_INCLUDED_
#define _CTL_LEDGER_H_INCLUDED_

#include "ctl_backend.h"
#include "skb_ledger.h"

/*
 * Adds a movement, with its units; actor NULL is who runs this.  *fresh (may be
 * NULL) is 0 when its line was there, which changes nothing.  CTL_FINE, or a code
 * after reporting: the caller's transaction can only be rolled back then.
 */
int ctl_ledger_add(ctl_t *ctl, const skb_movement_t *movement, int *fresh);

/* The product that the activity's units came from; fallback when none ever did. */
int ctl_ledger_product(ctl_t *ctl, uint64_t activity, uint64_t fallback, uint64_t *product);

/* The row beside its ledger, locked, inside the caller's transaction. */
int ctl_ledger_units(ctl_t *ctl, uint64_t activity, skb_units_t *units);

#endif /* _CTL_LEDGER_H_INCLUDED_ */
