/*
 * One worker: a thread with its own connections, batch and consumer name.  A
 * loop of rounds over the registered activities; everything that may fail ends
 * in "not acknowledged", and so is read again.
 */

#ifndef _SKD_WORKER_H_INCLUDED_
#define _SKD_WORKER_H_INCLUDED_

#include <pthread.h>
#include <stdatomic.h>

#include "skd_activities.h"
#include "skd_link.h"
#include "skd_retry.h"
#include "skd_settle.h"
#include "skd_stop.h"
#include "skd_writer.h"

typedef struct {
    unsigned             number;        /* from 1 */
    pthread_t            thread;
    const skb_config_t  *config;
    skd_stop_t          *stop;

    skd_reader_t         reader;
    skd_link_t           redis_link;
    skd_link_proof_e     step;          /* what Redis is asked for at the moment */
    skd_writer_t         writer;
    skd_link_t           mysql_link;

    skd_activities_t     activities;
    skd_batch_t          batch;
    skd_settle_t        *settle;
    skd_retries_t        retries;
    atomic_int_least64_t  beat_ms;      /* the last sign of life, of skd_now_ms() */

    /* since the last summary in the log */
    uint64_t             stored;        /* entries settled */
    uint64_t             dead;          /* of them, dead letters */
    uint64_t             conflicts;     /* transactions run again */
    int64_t              summary_ms;
} skd_worker_t;

/* Starts the thread; number and config are set by this.  Returns 0, or an error number. */
int skd_worker_start(skd_worker_t *worker, unsigned number, const skb_config_t *config,
    skd_stop_t *stop);

/* It lives: called wherever the work goes on, read by the watchdog. */
void skd_worker_beat(skd_worker_t *worker);

/* Milliseconds since then. */
int64_t skd_worker_silence(skd_worker_t *worker);

/* Waits for its end, which the wish to stop brings, and gives all back. */
void skd_worker_join(skd_worker_t *worker);

#endif /* _SKD_WORKER_H_INCLUDED_ */
