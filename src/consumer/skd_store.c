/*
 * See the header.
 */

#include <inttypes.h>
#include <string.h>

#include "skb_log.h"
#include "skd_failpoint.h"
#include "skd_held.h"
#include "skd_pause.h"
#include "skd_stats.h"
#include "skd_store.h"

#define SKD_CONFLICT_FIRST_MS  10
#define SKD_CONFLICT_CAP_MS    1000
#define SKD_DUPLICATE_TRIES    5        /* against writers that hold no lock */


static skd_rc_e skd_store_range(skd_worker_t *worker, skd_stream_t *stream,
    skd_range_t range);


/*
 * Numbers that came a second time: Redis forgot who had them first, and has sold
 * on past what the keeper compares.  The sale stops until it is restored.
 */
static skd_rc_e
skd_store_lost(skd_worker_t *worker, const skd_stream_t *stream, const skd_range_t *range)
{
    skd_rc_e            rc;
    skd_seen_t          seen;
    skd_paused_t        paused;
    const skd_entry_t  *entry = NULL;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        if (range->batch->entries[i].taken) {
            entry = &range->batch->entries[i];
            break;
        }
    }

    if (entry == NULL) {
        return SKD_OK;
    }

    seen.epoch = entry->message.epoch;
    seen.seq = SKD_SEQ_MAX;
    seen.has_orders = 0;
    rc = skd_pause(&worker->reader, stream->activity, &seen, &paused);

    if (rc == SKD_OK && strcmp(paused.status, "paused") == 0) {
        rc = skd_pause_raise(&worker->reader);
        skd_count(SKD_COUNT_PAUSED, 1);
        skb_log(SKB_ERROR, "Redis lost data of a sale, restore it",
                "activity=%" PRIu64 " state=paused epoch=%" PRIu64 " twice=%" PRIu64
                " seq=%" PRIu64,
                stream->activity, entry->message.epoch, entry->message.seq, paused.seq);
    }

    return rc;
}


static skd_rc_e
skd_store_settle(skd_worker_t *worker, skd_stream_t *stream, const skd_range_t *range)
{
    size_t               dead;
    skd_rc_e             rc;
    uint64_t             counts[SKD_DEAD + 1] = { 0 };

    /* first: what is settled is not looked at again */
    rc = skd_store_lost(worker, stream, range);

    if (rc == SKD_OK) {
        rc = skd_settle_range(worker->settle, &worker->reader, stream, range, &dead);
    }

    if (rc == SKD_OK) {
        skd_failpoint(SKD_AFTER_SETTLE);
        skd_link_good(&worker->redis_link, SKD_LINK_WORKED);
        worker->stored += range->count;
        worker->dead += dead;

        for (size_t i = range->first; i < range->first + range->count; i++) {
            counts[range->batch->entries[i].outcome]++;
        }

        skd_count(SKD_COUNT_ORDERS, counts[SKD_INSERT]);
        skd_count(SKD_COUNT_SAME, counts[SKD_SAME]);
        skd_count(SKD_COUNT_EXTRA, counts[SKD_EXTRA]);
        skd_succeeded();
    }

    return rc;
}


/*
 * The one entry that can't be stored waits for its next attempt.  Returns
 * SKD_BLOCKED when too many wait.
 */
static skd_rc_e
skd_store_later(skd_worker_t *worker, skd_stream_t *stream, const skd_range_t *range)
{
    char                          quoted[SKD_ERROR_MAX];
    skd_rc_e                      rc;
    skd_retry_t                  *retry;
    const skd_entry_t            *entry = &range->batch->entries[range->first];
    const skb_config_consumer_t  *conf = &worker->config->consumer;

    retry = skd_retry_add(&worker->retries, stream->activity, entry->id,
                          worker->writer.error, conf->retry_ms, conf->claim_idle_ms / 2);

    if (retry == NULL) {
        return SKD_BLOCKED;
    }

    skd_count(SKD_COUNT_DATA, 1);

    if (retry->attempts == 1) {
        skb_log(SKB_WARN, "purchase can't be stored, trying again",
                "activity=%" PRIu64 " entry=%s user=%" PRIu64 " error=%s", stream->activity,
                entry->id, entry->message.user,
                skb_log_quote(quoted, sizeof(quoted), worker->writer.error));
    }

    rc = skd_writer_queueing(&worker->writer, stream->activity, entry->message.user);

    /* its record is no more than news: only a lost server stops us */
    if (rc == SKD_MYSQL_LOST) {
        return rc;
    }

    return skd_stream_hold(stream, &worker->reader, range);
}


/* The one entry that can't be stored: its tombstone can, after the last attempt. */
static skd_rc_e
skd_store_single(skd_worker_t *worker, skd_stream_t *stream, skd_range_t *range)
{
    skd_rc_e      rc;
    skd_entry_t  *entry = &range->batch->entries[range->first];

    if (entry->fault != NULL) {
        return SKD_BLOCKED;
    }

    if (entry->attempts + 1 < worker->config->consumer.attempts) {
        return skd_store_later(worker, stream, range);
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

    skd_count(SKD_COUNT_SPLIT, 1);

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
skd_store_conflict(skd_worker_t *worker, const skd_stream_t *stream, int first)
{
    char  quoted[SKD_ERROR_MAX];

    worker->conflicts++;
    skd_count(SKD_COUNT_CONFLICT, 1);

    if (first) {
        skb_log(SKB_WARN, "transaction is run again",
                "activity=%" PRIu64 " worker=%u error=%s", stream->activity, worker->number,
                skb_log_quote(quoted, sizeof(quoted), worker->writer.error));
    }
}


/* Runs of those that Redis holds; what it forgot is told, and not written. */
static skd_rc_e
skd_store_held(skd_worker_t *worker, skd_stream_t *stream, const skd_range_t *range)
{
    size_t        i, first, end = range->first + range->count;
    skd_rc_e      rc;
    skd_range_t   run = *range;
    skd_entry_t  *entries = range->batch->entries;

    rc = skd_held_tell(&worker->writer, stream->activity, range);

    for (i = range->first; rc == SKD_OK && i < end; i = first) {
        for (first = i; first < end && entries[first].forgotten == entries[i].forgotten; ) {
            first++;
        }

        if (!entries[i].forgotten) {
            run.first = i;
            run.count = first - i;
            rc = skd_store_range(worker, stream, run);
        }
    }

    return rc;
}


/* After SKD_OK all of the range is settled or waits; after others maybe a first part of it. */
static skd_rc_e
skd_store_range(skd_worker_t *worker, skd_stream_t *stream, skd_range_t range)
{
    int            look = stream->pending, tries = 0;
    size_t         forgotten;
    skd_rc_e       rc;
    int64_t        hold_ms = skd_now_ms() + worker->config->consumer.claim_idle_ms / 4;
    skd_backoff_t  backoff = { 0, 0 };

    /* what is delivered again was maybe stored before */

    for ( ;; ) {
        skd_worker_beat(worker);
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

            if (skd_now_ms() >= hold_ms) {
                hold_ms = skd_now_ms() + worker->config->consumer.claim_idle_ms / 4;
                rc = skd_stream_hold(stream, &worker->reader, &range);

                if (rc != SKD_OK) {
                    return rc;
                }
            }

            break;

        case SKD_DUPLICATE:
            skd_count(SKD_COUNT_DUPLICATE, 1);

            if (tries++ == SKD_DUPLICATE_TRIES) {
                return skd_store_split(worker, stream, range);
            }

            look = 1;
            break;

        case SKD_OLDER:
            rc = skd_held_ask(stream, &worker->reader, &range, &forgotten);

            if (rc != SKD_OK) {
                return rc;
            }

            if (forgotten > 0) {
                return skd_store_held(worker, stream, &range);
            }

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


/* From first to here nothing waits: all of it together. */
static skd_rc_e
skd_store_run(skd_worker_t *worker, skd_stream_t *stream, size_t first, size_t end)
{
    if (first == end) {
        return SKD_OK;
    }

    return skd_store_range(worker, stream,
                           (skd_range_t) { &worker->batch, first, end - first, 0 });
}


/* The next attempt at one that waited. */
static skd_rc_e
skd_store_again(skd_worker_t *worker, skd_stream_t *stream, size_t i)
{
    skd_rc_e      rc;
    unsigned      attempts;
    skd_entry_t  *entry = &worker->batch.entries[i];
    skd_retry_t  *retry = skd_retry_find(&worker->retries, stream->activity, entry->id);

    skd_retry_load(retry, entry);
    attempts = entry->attempts;

    rc = skd_store_range(worker, stream, (skd_range_t) { &worker->batch, i, 1, 0 });

    if (rc == SKD_OK && retry->attempts == attempts) {
        skd_retry_remove(&worker->retries, retry);
    }

    return rc;
}


skd_rc_e
skd_store_batch(skd_worker_t *worker, skd_stream_t *stream)
{
    size_t        first = 0;
    int64_t       began_us = skd_now_us();
    skd_rc_e      rc = SKD_OK;
    skd_retry_t  *retry;
    skd_batch_t  *batch = &worker->batch;

    for (size_t i = 0; i < batch->count && worker->retries.count > 0; i++) {
        retry = skd_retry_find(&worker->retries, stream->activity, batch->entries[i].id);

        if (retry == NULL) {
            continue;
        }

        rc = skd_store_run(worker, stream, first, i);

        if (rc == SKD_OK && retry->backoff.next_ms <= skd_now_ms()) {
            rc = skd_store_again(worker, stream, i);
        }

        if (rc != SKD_OK) {
            return rc;
        }

        first = i + 1;
    }

    rc = skd_store_run(worker, stream, first, batch->count);

    if (rc == SKD_OK) {
        skd_took(SKD_TIME_BATCH, began_us);
    }

    return rc;
}
