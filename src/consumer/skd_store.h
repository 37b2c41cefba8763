/*
 * From a batch that was read to one that is settled: transaction, results,
 * acknowledgement; retries of what is nobody's fault, and splitting until what
 * can't be stored stands alone.
 */

#ifndef _SKD_STORE_H_INCLUDED_
#define _SKD_STORE_H_INCLUDED_

#include "skd_worker.h"

/*
 * The worker's batch, but for what waits for its next attempt.  After SKD_OK
 * the rest is settled, or waits from now on.
 */
skd_rc_e skd_store_batch(skd_worker_t *worker, skd_stream_t *stream);

/* After SKD_OK all of the range is settled; after others maybe a first part of it. */
skd_rc_e skd_store_range(skd_worker_t *worker, skd_stream_t *stream, skd_range_t range);

#endif /* _SKD_STORE_H_INCLUDED_ */
