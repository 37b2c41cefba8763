/*
 * A turn: both servers connected, the activities known, then one batch of each
 * activity that is due.  A worker waits in one place only, skd_stop_wait().
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "skb_log.h"
#include "skd_clocks.h"
#include "skd_failpoint.h"
#include "skd_notify.h"
#include "skd_stats.h"
#include "skd_store.h"
#include "skd_worker.h"

#define SKD_TEND_MS         5000        /* between trims of one stream */
#define SKD_START_MS        1000        /* between looks at a sale that has not begun */
#define SKD_BLOCK_FIRST_MS  200
#define SKD_BLOCK_CAP_MS    5000
#define SKD_SUMMARY_MS      10000


/*
 * A connection that broke is whole again once it is made; a refusal is not, nor
 * is an answer that we refused.
 */
static void
skd_worker_redis_lost(skd_worker_t *worker)
{
    skb_redis_class_e    class = worker->reader.class;
    const redisContext  *redis = worker->reader.redis;
    int                  broken = class == SKB_REDIS_LOST
                                  && (redis == NULL || redis->err != REDIS_ERR_PROTOCOL);

    skd_count(SKD_COUNT_REDIS_LOST, worker->redis_link.state != SKD_LINK_DOWN);
    skd_server_down(SKD_SERVER_REDIS, worker->number, 1);

    skd_link_lost(&worker->redis_link,
                  broken ? SKD_LINK_CONNECTED : worker->step,
                  class == SKB_REDIS_DENIED, worker->reader.error);

    if (worker->reader.redis != NULL) {
        redisFree(worker->reader.redis);
        worker->reader.redis = NULL;
    }

    skd_activities_rewind(&worker->activities);
}


static void
skd_worker_mysql_lost(skd_worker_t *worker, skd_link_proof_e proof)
{
    skd_count(SKD_COUNT_MYSQL_LOST, worker->mysql_link.state != SKD_LINK_DOWN);
    skd_server_down(SKD_SERVER_MYSQL, worker->number, 1);
    skd_link_lost(&worker->mysql_link, proof,
                  worker->writer.class == SKB_MYSQL_DENIED, worker->writer.error);
    skd_writer_close(&worker->writer);
}


/* The activity can't go on, the others can. */
static void
skd_worker_blocked(skd_worker_t *worker, skd_stream_t *stream, const char *error)
{
    char  quoted[SKD_ERROR_MAX];

    if (!stream->blocked) {
        stream->blocked = 1;
        skb_log(SKB_ERROR, "activity is blocked, waiting",
                "activity=%" PRIu64 " worker=%u error=%s", stream->activity, worker->number,
                skb_log_quote(quoted, sizeof(quoted), error));
    }

    skd_backoff_grow(&stream->backoff, SKD_BLOCK_FIRST_MS, SKD_BLOCK_CAP_MS);
    stream->next_ms = stream->backoff.next_ms;
}


static void
skd_worker_unblocked(skd_stream_t *stream)
{
    if (stream->blocked) {
        stream->blocked = 0;
        skb_log(SKB_NOTICE, "activity goes on", "activity=%" PRIu64, stream->activity);
    }

    skd_backoff_reset(&stream->backoff);
}


/* Returns 1 when both servers are there, else 0 and in *wait_ms when to try again. */
static int
skd_worker_connect(skd_worker_t *worker, uint32_t *wait_ms)
{
    skd_reader_t  *reader = &worker->reader;

    if (reader->redis == NULL) {
        *wait_ms = skd_backoff_left(&worker->redis_link.backoff);

        if (*wait_ms > 0) {
            return 0;
        }

        reader->class = SKB_REDIS_LOST;
        worker->step = SKD_LINK_CONNECTED;
        reader->redis = skb_redis_connect(worker->config, reader->error,
                                          sizeof(reader->error));

        if (reader->redis == NULL) {
            if (strncmp(reader->error, "AUTH:", 5) == 0) {
                reader->class = SKB_REDIS_DENIED;
            }

            skd_worker_redis_lost(worker);
            *wait_ms = skd_backoff_left(&worker->redis_link.backoff);
            return 0;
        }

        skd_link_good(&worker->redis_link, SKD_LINK_CONNECTED);
    }

    if (worker->writer.mysql == NULL) {
        *wait_ms = skd_backoff_left(&worker->mysql_link.backoff);

        if (*wait_ms > 0) {
            return 0;
        }
    }

    if (skd_writer_connect(&worker->writer, worker->config) != SKD_OK) {
        skd_worker_mysql_lost(worker, SKD_LINK_CONNECTED);
        *wait_ms = skd_backoff_left(&worker->mysql_link.backoff);
        return 0;
    }

    skd_link_good(&worker->mysql_link, SKD_LINK_CONNECTED);

    return 1;
}


/* The slow care for a stream, by the first worker. */
static skd_rc_e
skd_worker_tend(skd_worker_t *worker, skd_stream_t *stream)
{
    skd_rc_e  rc;
    uint64_t  now_ms;

    if (worker->number != 1 || skd_now_ms() < stream->tend_ms) {
        return SKD_OK;
    }

    rc = skd_stream_times(stream, &worker->reader, &now_ms);

    if (rc == SKD_OK && !stream->begun && stream->start_ms != 0
        && now_ms >= stream->start_ms)
    {
        rc = skd_writer_begin_sale(&worker->writer, stream->activity);
        stream->begun = rc == SKD_OK;

        if (rc == SKD_OK) {
            skd_link_good(&worker->mysql_link, SKD_LINK_WORKED);

        } else if (rc == SKD_CONFLICT) {
            rc = SKD_OK;                /* somebody holds the row: next time */
        }
    }

    /* what is deleted is gone: not by a clock that is not to be believed */
    now_ms = rc == SKD_OK ? skd_clocks_redis_ms(worker->config) : 0;

    if (now_ms > 0) {
        rc = skd_stream_trim(stream, &worker->reader, now_ms);
    }

    stream->tend_ms = skd_now_ms() + (stream->begun ? SKD_TEND_MS : SKD_START_MS);

    return rc;
}


static skd_rc_e
skd_worker_claim(skd_worker_t *worker, skd_stream_t *stream)
{
    skd_rc_e  rc;
    uint64_t  claimed;

    claimed = 0;
    rc = worker->number == 1 ? skd_frozen_look(stream, &worker->reader) : SKD_OK;

    if (rc == SKD_OK) {
        rc = skd_stream_claim(stream, &worker->reader, &claimed);
    }

    if (rc == SKD_OK && claimed > 0) {
        skd_count(SKD_COUNT_CLAIMED, claimed);
        skb_log(SKB_NOTICE, "purchases taken over from a silent consumer",
                "activity=%" PRIu64 " worker=%u entries=%" PRIu64, stream->activity,
                worker->number, claimed);
    }

    return rc;
}


/* Streams with purchases whose next attempt is due are read from their begin. */
static void
skd_worker_recall(skd_worker_t *worker)
{
    skd_stream_t       *stream;
    const skd_retry_t  *retry;

    while ((retry = skd_retry_due(&worker->retries)) != NULL) {
        stream = skd_activities_find(&worker->activities, retry->activity);

        if (stream != NULL) {
            skd_stream_rewind(stream);
            stream->next_ms = 0;
        }
    }
}


/* One batch of one activity.  *busy: there was one. */
static skd_rc_e
skd_worker_batch(skd_worker_t *worker, skd_stream_t *stream, int *busy)
{
    skd_rc_e      rc;
    skd_batch_t  *batch = &worker->batch;

    worker->step = SKD_LINK_READ;
    rc = skd_worker_tend(worker, stream);

    if (rc == SKD_OK) {
        rc = skd_worker_claim(worker, stream);
    }

    if (rc == SKD_OK) {
        rc = skd_stream_read(stream, &worker->reader, batch);
    }

    if (rc != SKD_OK) {
        return rc;
    }

    if (stream->swept) {
        stream->swept = 0;
        skd_retry_swept(&worker->retries, stream->activity);
    }

    skd_link_good(&worker->redis_link, SKD_LINK_READ);
    worker->step = SKD_LINK_WORKED;

    if (batch->count == 0) {
        if (stream->next_ms <= skd_now_ms()) {
            stream->next_ms = skd_now_ms() + worker->config->consumer.idle_ms;
        }

        skd_worker_unblocked(stream);
        return SKD_OK;
    }

    *busy = 1;
    skd_failpoint(SKD_AFTER_READ);

    rc = skd_store_batch(worker, stream);

    if (rc == SKD_OK) {
        skd_stream_advance(stream, batch);
        skd_worker_unblocked(stream);
    }

    return rc;
}


/* What a failed batch means for its stream and the connections; 0: the turn is over. */
static int
skd_worker_after(skd_worker_t *worker, skd_stream_t *stream, skd_rc_e rc)
{
    if (rc == SKD_OK) {
        return 1;
    }

    /* whatever was delivered is pending now */
    skd_stream_rewind(stream);

    switch (rc) {

    case SKD_REDIS_LOST:
        skd_worker_redis_lost(worker);
        return 0;

    case SKD_MYSQL_LOST:
        skd_worker_mysql_lost(worker, SKD_LINK_WORKED);
        return 0;

    case SKD_STOPPED:
        return 0;

    default:
        skd_worker_blocked(worker, stream, worker->reader.error[0] != '\0'
                           ? worker->reader.error : worker->writer.error);
        return 1;
    }
}


static void
skd_worker_summary(skd_worker_t *worker)
{
    if (worker->stored + worker->conflicts == 0 || skd_now_ms() < worker->summary_ms) {
        return;
    }

    skb_log(SKB_INFO, "purchases settled",
            "worker=%u entries=%" PRIu64 " dead=%" PRIu64 " conflicts=%" PRIu64,
            worker->number, worker->stored, worker->dead, worker->conflicts);

    worker->stored = 0;
    worker->dead = 0;
    worker->conflicts = 0;
    worker->summary_ms = skd_now_ms() + SKD_SUMMARY_MS;
}


/* Returns the milliseconds until something is due, 0: at once. */
static uint32_t
skd_worker_turn(skd_worker_t *worker)
{
    int            busy = 0;
    int64_t        now;
    uint32_t       wait_ms;
    skd_rc_e       rc;
    skd_stream_t  *stream;

    if (!skd_worker_connect(worker, &wait_ms)) {
        return wait_ms;
    }

    if (skd_now_ms() >= worker->activities.next_ms) {
        rc = skd_activities_refresh(&worker->activities, &worker->reader);

        if (rc != SKD_OK) {
            skd_worker_redis_lost(worker);
            return 0;
        }
    }

    skd_worker_recall(worker);

    for (size_t i = 0; i < worker->activities.count; i++) {
        stream = &worker->activities.streams[i];

        if (skd_now_ms() < stream->next_ms) {
            continue;
        }

        skd_worker_beat(worker);

        if (skd_stopping(worker->stop)) {
            return 0;
        }

        worker->reader.error[0] = '\0';
        worker->writer.error[0] = '\0';
        rc = skd_worker_batch(worker, stream, &busy);

        if (!skd_worker_after(worker, stream, rc)) {
            return 0;
        }
    }

    skd_server_down(SKD_SERVER_REDIS, worker->number,
                    worker->redis_link.state == SKD_LINK_DOWN);
    skd_server_down(SKD_SERVER_MYSQL, worker->number,
                    worker->mysql_link.state == SKD_LINK_DOWN);
    skd_worker_summary(worker);

    if (busy) {
        return 0;
    }

    now = skd_now_ms();
    wait_ms = worker->config->consumer.idle_ms;

    for (size_t i = 0; i < worker->activities.count; i++) {
        stream = &worker->activities.streams[i];

        if (stream->next_ms - now < (int64_t) wait_ms) {
            wait_ms = stream->next_ms > now ? (uint32_t) (stream->next_ms - now) : 0;
        }
    }

    return wait_ms;
}


void
skd_worker_beat(skd_worker_t *worker)
{
    atomic_store_explicit(&worker->beat_ms, skd_now_ms(), memory_order_relaxed);
}


int64_t
skd_worker_silence(skd_worker_t *worker)
{
    return skd_now_ms() - atomic_load_explicit(&worker->beat_ms, memory_order_relaxed);
}


static void *
skd_worker_run(void *data)
{
    uint32_t       wait_ms;
    skd_worker_t  *worker = data;

    mysql_thread_init();

    while (!skd_stopping(worker->stop)) {
        skd_worker_beat(worker);
        wait_ms = skd_worker_turn(worker);

        if (wait_ms > 0) {
            skd_stop_wait(worker->stop, wait_ms);
        }
    }

    worker->summary_ms = 0;
    skd_worker_summary(worker);

    if (worker->reader.redis != NULL) {
        redisFree(worker->reader.redis);
        worker->reader.redis = NULL;
    }

    skd_writer_done(&worker->writer);
    mysql_thread_end();

    return NULL;
}


static void
skd_worker_free(skd_worker_t *worker)
{
    skd_activities_done(&worker->activities);
    skd_batch_done(&worker->batch);
    skd_settle_free(worker->settle);
    worker->settle = NULL;
    skd_retries_done(&worker->retries);
}


int
skd_worker_start(skd_worker_t *worker, unsigned number, const skb_config_t *config,
    skd_stop_t *stop)
{
    int  rc;

    memset(worker, 0, sizeof(skd_worker_t));

    worker->number = number;
    worker->config = config;
    worker->stop = stop;
    worker->reader.config = config;

    snprintf(worker->reader.name, sizeof(worker->reader.name), "%s-%u",
             config->consumer.name, number);

    worker->writer.beat_ms = &worker->beat_ms;
    skd_worker_beat(worker);
    skd_link_init(&worker->redis_link, "redis", number);
    skd_link_init(&worker->mysql_link, "mysql", number);

    worker->settle = skd_settle_create();

    if (worker->settle == NULL || skd_retries_init(&worker->retries) != 0
        || skd_batch_init(&worker->batch, config->consumer.batch) != 0)
    {
        skd_worker_free(worker);
        return ENOMEM;
    }

    rc = pthread_create(&worker->thread, NULL, skd_worker_run, worker);

    if (rc != 0) {
        skd_worker_free(worker);
    }

    return rc;
}


void
skd_worker_join(skd_worker_t *worker)
{
    struct timespec  until;

    /* a long statement is no hang: the service manager hears of us meanwhile */
    do {
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;

        if (skd_notify_watchdog() > 0) {
            skd_notify("WATCHDOG=1");
        }
    } while (pthread_timedjoin_np(worker->thread, NULL, &until) == ETIMEDOUT);

    skd_worker_free(worker);
}
