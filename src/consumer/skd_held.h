/*
 * Purchases that a daemon still holds while the sale was restored: read before it,
 * from a Redis that lost them since, or that is another server now.  The restore
 * counted none of them, and their units are on sale again: they are not written, but
 * named.  The nodes' journals have them, "reconcile --repair replay" queues them
 * again with units of their own; then Redis holds them.
 */

#ifndef _SKD_HELD_H_INCLUDED_
#define _SKD_HELD_H_INCLUDED_

#include "skd_stream.h"
#include "skd_writer.h"

/*
 * Asks Redis for those of the range whose epoch is before range->epoch.  It must be
 * asked after the row was seen with that epoch: by then the restore had proved that
 * nothing was pending.  Sets held_epoch or forgotten of each; *forgotten: how many.
 */
skd_rc_e skd_held_ask(const skd_stream_t *stream, skd_reader_t *reader, skd_range_t *range,
    size_t *forgotten);

/* Says which of them are no orders: an error line for each. */
skd_rc_e skd_held_tell(skd_writer_t *writer, uint64_t activity, const skd_range_t *range);

#endif /* _SKD_HELD_H_INCLUDED_ */
