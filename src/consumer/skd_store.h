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

#endif /* _SKD_STORE_H_INCLUDED_ */
