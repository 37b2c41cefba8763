/*
 * Units in MySQL, for the daemon: movements through the ledger's one writer, and
 * what a row may sell at most.
 */

#ifndef _SKD_UNITS_H_INCLUDED_
#define _SKD_UNITS_H_INCLUDED_

#include "skb_ledger.h"
#include "skd_rows.h"

/*
 * Movements of one activity and product, under the row's lock, each once.
 * SKD_BLOCKED: they do not add up, and the transaction can only be rolled back.
 */
skd_rc_e skd_units_move(skd_writer_t *writer, const skb_movement_t *movements, size_t n);

/*
 * So many more fit into what the ledger reserved.  Without the row's lock: SKD_OK, or
 * SKD_DUPLICATE, look.  With it: SKD_OK, after a look into the ledger where the row
 * is behind it; SKD_BLOCKED: they were never reserved, and are nobody's fault.
 */
skd_rc_e skd_units_prove(skd_writer_t *writer, skd_activity_t *activity, uint64_t units,
    int locked);

#endif /* _SKD_UNITS_H_INCLUDED_ */
