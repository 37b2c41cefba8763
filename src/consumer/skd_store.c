/*
 * See the header.
 */

#include <inttypes.h>

#include "skb_log.h"
#include "skd_failpoint.h"
#include "skd_store.h"

#define SKD_CONFLICT_FIRST_MS  10
#define SKD_CONFLICT_CAP_MS    1000
#define SKD_DUPLICATE_TRIES    5        /* against writers that hold no lock */


static skd_rc_e
skd_store_settle(skd_worker_t *worker, skd_stream_t *stream, const skd_range_t *range)
{
    size_t    dead;
    skd_rc_e  rc;

    rc = skd_settle_range(worker->settle, &worker->reader, stream, range, &dead);

    if (rc == SKD_OK) {
        skd_failpoint(SKD_AFTER_SETTLE);
        skd_link_good(&worker->redis_link, SKD_LINK_WORKED);
        worker->stored += range->count;
        worker->dead += dead;
    }

    return rc;
}


/* The one entry that can't be stored: its tombstone can. */
static skd_rc_e
skd_store_single(skd_worker_t *worker, skd_stream_t *stream, skd_range_t *range)
{
    skd_rc_e      rc;
    skd_entry_t  *entry = &range->batch->entries[range->first];

    if (entry->fault != NULL) {
        return SKD_BLOCKED;
    }

    skd_entry_fail(entry, worker->writer.class == SKB_MYSQL_TOO_LARGE
                          ? "too_large" : "data_error", worker->writer.error);

    rc = skd_writer_store(&worker->writer, stream->activity, range, 1);

    if (rc == SKD_OK) {
        rc = skd_store_settle(worker, stream, range);
    }

    return rc == SKD_SPLIT || rc == SKD_DUPLICATE ? SKD_BLOCKED : rc;
}


static skd_rc_e
skd_store_split(skd_worker_t *worker, skd_stream_t *stream, skd_range_t range)
{
    skd_rc_e     rc;
    skd_range_t  half = range;

    if (range.count == 1) {
        return skd_store_single(worker, stream, &range);
    }

    half.count = range.count / 2;
    rc = skd_store_range(worker, stream, half);

    if (rc != SKD_OK) {
        return rc;
    }

    half.first += half.count;
    half.count = range.count - half.count;

    return skd_store_range(worker, stream, half);
}


static void
skd_store_conflict(skd_worker_t *worker, skd_stream_t *stream, int first)
{
    char  quoted[SKD_ERROR_MAX];

    worker->conflicts++;

    if (first) {
        skb_log(SKB_WARN, "transaction is run again",
                "activity=%" PRIu64 " worker=%u error=%s", stream->activity, worker->number,
                skb_log_quote(quoted, sizeof(quoted), worker->writer.error));
    }
}


skd_rc_e
skd_store_range(skd_worker_t *worker, skd_stream_t *stream, skd_range_t range)
{
    int            look = stream->pending, tries = 0;
    skd_rc_e       rc;
    skd_backoff_t  backoff = { 0, 0 };

    /* what is delivered again was maybe stored before */

    for ( ;; ) {
        rc = skd_writer_store(&worker->writer, stream->activity, &range, look);

        switch (rc) {

        case SKD_OK:
            skd_link_good(&worker->mysql_link, SKD_LINK_WORKED);
            return skd_store_settle(worker, stream, &range);

        case SKD_CONFLICT:
            skd_store_conflict(worker, stream, backoff.delay_ms == 0);
            skd_backoff_grow(&backoff, SKD_CONFLICT_FIRST_MS, SKD_CONFLICT_CAP_MS);

            if (skd_stop_wait(worker->stop, skd_backoff_left(&backoff))) {
                return SKD_STOPPED;
            }

            break;

        case SKD_DUPLICATE:
            if (tries++ == SKD_DUPLICATE_TRIES) {
                return skd_store_split(worker, stream, range);
            }

            look = 1;
            break;

        case SKD_SPLIT:
            return skd_store_split(worker, stream, range);

        default:
            return rc;
        }

        if (skd_stopping(worker->stop)) {
            return SKD_STOPPED;
        }
    }
}
