/*
 * Tells the buyers and acknowledges: after the commit, never before.  Orders
 * in one call of lua/settle.lua; dead letters in one MULTI, so that letter,
 * result and acknowledgement come together or not at all.
 */

#ifndef _SKD_SETTLE_H_INCLUDED_
#define _SKD_SETTLE_H_INCLUDED_

#include "skd_stream.h"

typedef struct skd_settle_s  skd_settle_t;

/* Room for batches of size entries; NULL: no memory. */
skd_settle_t *skd_settle_create(size_t size);
void skd_settle_free(skd_settle_t *settle);

/* *dead is how many letters were written.  Returns SKD_OK, SKD_REDIS_LOST or SKD_BLOCKED. */
skd_rc_e skd_settle_range(skd_settle_t *settle, skd_reader_t *reader, skd_stream_t *stream,
    const skd_range_t *range, size_t *dead);

#endif /* _SKD_SETTLE_H_INCLUDED_ */
