/*
 * The thread and its rounds.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_clocks.h"
#include "skd_keeper.h"
#include "skd_rows.h"

#define SKD_KEEPER_ROUND_MS  100        /* between looks for lost results */
#define SKD_KEEPER_TICK_MS   1000       /* between all other duties */
#define SKD_KEEPER_FIRST_MS  50
#define SKD_KEEPER_CAP_MS    2000

/* a row that somebody holds keeps the rest waiting for no longer than this */
#define SKD_KEEPER_LOCK_WAIT "SET SESSION innodb_lock_wait_timeout = 1"

/* a duty that costs us a connection again and again leaves the others a turn */
#define SKD_KEEPER_DUTY_MS      1000
#define SKD_KEEPER_DUTY_CAP_MS  30000

typedef struct {
    skd_duty_e  duty;
    int         needed;                 /* by those behind it: these wait for it */
    skd_rc_e  (*run)(skd_keeper_t *keeper);
} skd_keeper_duty_t;


/* A server that does not answer has no clock to believe. */
static void
skd_keeper_no_clock(void)
{
    skb_clock_reading_t  none[SKB_CLOCKS];

    memset(none, 0, sizeof(none));
    skd_clocks_note(none);
}


static void
skd_keeper_redis_lost(skd_keeper_t *keeper)
{
    char  quoted[SKD_ERROR_MAX];

    skb_log(SKB_DEBUG, "keeper has no Redis", "error=%s",
            skb_log_quote(quoted, sizeof(quoted), keeper->reader.error));

    if (keeper->reader.redis != NULL) {
        redisFree(keeper->reader.redis);
        keeper->reader.redis = NULL;
    }

    /* what it told is not known any more */
    skd_backlogs_forget();
    skd_misses_set(NULL);
    skd_keeper_no_clock();
    skd_backoff_grow(&keeper->redis_backoff, SKD_KEEPER_FIRST_MS, SKD_KEEPER_CAP_MS);
}


static void
skd_keeper_mysql_lost(skd_keeper_t *keeper)
{
    char  quoted[SKD_ERROR_MAX];

    skb_log(SKB_DEBUG, "keeper has no MySQL", "error=%s",
            skb_log_quote(quoted, sizeof(quoted), keeper->writer.error));

    skd_misses_set(NULL);
    skd_writer_close(&keeper->writer);
    skd_keeper_no_clock();
    skd_backoff_grow(&keeper->mysql_backoff, SKD_KEEPER_FIRST_MS, SKD_KEEPER_CAP_MS);
}


/* Returns 1 when Redis is there. */
static int
skd_keeper_redis(skd_keeper_t *keeper)
{
    skd_reader_t  *reader = &keeper->reader;

    if (reader->redis != NULL) {
        return 1;
    }

    if (skd_backoff_left(&keeper->redis_backoff) > 0) {
        return 0;
    }

    reader->redis = skb_redis_connect(keeper->config, reader->error, sizeof(reader->error));

    if (reader->redis == NULL) {
        skd_keeper_redis_lost(keeper);
        return 0;
    }

    keeper->activities.next_ms = 0;
    keeper->policy_ms = 0;
    keeper->token_key_ms = 0;
    keeper->lost_ms = 0;

    return 1;
}


/* Returns 1 when MySQL is there. */
static int
skd_keeper_mysql(skd_keeper_t *keeper)
{
    const MYSQL  *before = keeper->writer.mysql;

    if (before == NULL && skd_backoff_left(&keeper->mysql_backoff) > 0) {
        return 0;
    }

    if (skd_writer_connect(&keeper->writer, keeper->config) != SKD_OK
        || (keeper->writer.mysql != before
            && skd_rows_exec(&keeper->writer, SKD_KEEPER_LOCK_WAIT) != SKD_OK))
    {
        skd_keeper_mysql_lost(keeper);
        return 0;
    }

    return 1;
}


static skd_rc_e
skd_keeper_registered(skd_keeper_t *keeper)
{
    if (skd_now_ms() < keeper->activities.next_ms) {
        return SKD_OK;
    }

    return skd_activities_refresh(&keeper->activities, &keeper->reader);
}


skd_rc_e
skd_keeper_clocks(skd_keeper_t *keeper)
{
    skb_redis_class_e     redis;
    skb_clock_reading_t   readings[SKB_CLOCKS];
    skd_reader_t         *reader = &keeper->reader;
    skd_writer_t         *writer = &keeper->writer;

    memset(readings, 0, sizeof(readings));
    redis = skb_clock_read_redis(reader->redis, &readings[SKB_CLOCK_REDIS], reader->error,
                                 sizeof(reader->error));

    if (redis != SKB_REDIS_FINE) {
        reader->class = redis;
        return SKD_REDIS_LOST;
    }

    writer->class = skb_clock_read_mysql(writer->mysql, &readings[SKB_CLOCK_MYSQL],
                                         writer->error, sizeof(writer->error));

    if (writer->class != SKB_MYSQL_FINE) {
        return SKD_MYSQL_LOST;
    }

    keeper->now_ms = (uint64_t) readings[SKB_CLOCK_REDIS].ms;
    keeper->mysql_ms = (uint64_t) readings[SKB_CLOCK_MYSQL].ms;
    skd_clocks_note(readings);

    return SKD_OK;
}


/* The words of the last failure: a duty talks to both servers. */
static const char *
skd_keeper_error(const skd_keeper_t *keeper)
{
    return keeper->reader.error[0] != '\0' ? keeper->reader.error : keeper->writer.error;
}


skd_rc_e
skd_keeper_failed(skd_keeper_t *keeper, skd_duty_e duty, uint64_t activity, skd_rc_e rc)
{
    if (rc == SKD_OK) {
        skd_trouble_over(duty, activity, 0);
        return SKD_OK;
    }

    if (rc == SKD_STOPPED) {
        return SKD_OK;
    }

    skd_trouble(duty, activity, 0, NULL, rc != SKD_BLOCKED && rc != SKD_SPLIT
                && rc != SKD_DUPLICATE, skd_keeper_error(keeper));

    keeper->reader.error[0] = '\0';
    keeper->writer.error[0] = '\0';

    /* put aside before: should it be what costs us the connection, the others come first */
    return rc == SKD_REDIS_LOST || rc == SKD_MYSQL_LOST ? rc : SKD_OK;
}


/* Returns 0 when the round is over. */
static int
skd_keeper_do(skd_keeper_t *keeper, const skd_keeper_duty_t *duty)
{
    skd_rc_e        rc;
    skd_backoff_t  *backoff = &keeper->duties[duty->duty];

    if (skd_stopping(keeper->stop)) {
        return 0;
    }

    if (skd_backoff_left(backoff) > 0) {
        return 1;
    }

    keeper->reader.error[0] = '\0';
    keeper->writer.error[0] = '\0';
    rc = duty->run(keeper);

    if (rc != SKD_REDIS_LOST && rc != SKD_MYSQL_LOST) {
        skd_backoff_reset(backoff);

    } else if (!duty->needed) {
        skd_backoff_grow(backoff, SKD_KEEPER_DUTY_MS, SKD_KEEPER_DUTY_CAP_MS);
    }

    switch (rc) {

    case SKD_REDIS_LOST:
        skd_trouble(duty->duty, 0, 0, NULL, 1, skd_keeper_error(keeper));
        skd_keeper_redis_lost(keeper);
        return 0;

    case SKD_MYSQL_LOST:
        skd_trouble(duty->duty, 0, 0, NULL, 1, skd_keeper_error(keeper));
        skd_keeper_mysql_lost(keeper);
        return 0;

    default:
        (void) skd_keeper_failed(keeper, duty->duty, 0, rc);
        return 1;
    }
}


static int
skd_keeper_do_all(skd_keeper_t *keeper, const skd_keeper_duty_t *duties, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!skd_keeper_do(keeper, &duties[i])) {
            return 0;
        }
    }

    return 1;
}


/* What Redis alone can tell is told while MySQL is away, too. */
static void
skd_keeper_round(skd_keeper_t *keeper)
{
    int  due = skd_now_ms() >= keeper->tick_ms;

    static const skd_keeper_duty_t  often[] = {
        { SKD_DUTY_LOOKUP, 0, skd_keeper_lookup }
    };
    static const skd_keeper_duty_t  registry[] = {
        { SKD_DUTY_REGISTRY, 1, skd_keeper_registered }
    };
    static const skd_keeper_duty_t  redis[] = {
        { SKD_DUTY_POLICY, 0, skd_keeper_policy },
        { SKD_DUTY_BACKLOG, 0, skd_keeper_backlog }
    };
    static const skd_keeper_duty_t  both[] = {
        { SKD_DUTY_SCHEMA, 0, skd_keeper_schema },
        { SKD_DUTY_TOKEN_KEY, 0, skd_keeper_token_key },
        { SKD_DUTY_CLOCKS, 1, skd_keeper_clocks },
        { SKD_DUTY_WATCH, 1, skd_keeper_watch },
        { SKD_DUTY_LOST, 0, skd_keeper_lost },
        { SKD_DUTY_UNITS, 0, skd_keeper_units },
        { SKD_DUTY_PROMISE, 0, skd_keeper_promise },
        { SKD_DUTY_SETTLE, 0, skd_keeper_settle },
        { SKD_DUTY_UNPAID, 0, skd_keeper_unpaid }
    };

    if (!skd_keeper_redis(keeper) || !skd_keeper_do_all(keeper, registry, 1)) {
        return;
    }

    if (due) {
        /* thousands of activities are looked at less often */
        keeper->tick_ms = skd_now_ms() + SKD_KEEPER_TICK_MS + (int64_t) keeper->activities.count;
        skd_troubles_sweep();

        if (!skd_keeper_do_all(keeper, redis, sizeof(redis) / sizeof(redis[0]))) {
            return;
        }
    }

    if (!skd_keeper_mysql(keeper) || !skd_keeper_do_all(keeper, often, 1) || !due
        || !skd_keeper_do_all(keeper, both, sizeof(both) / sizeof(both[0])))
    {
        return;
    }

    skd_backoff_reset(&keeper->redis_backoff);
    skd_backoff_reset(&keeper->mysql_backoff);
}


static void *
skd_keeper_run(void *data)
{
    skd_keeper_t  *keeper = data;

    mysql_thread_init();

    do {
        skd_keeper_round(keeper);
    } while (!skd_stop_wait(keeper->stop, SKD_KEEPER_ROUND_MS
                                          + (uint32_t) keeper->activities.count));

    if (keeper->reader.redis != NULL) {
        redisFree(keeper->reader.redis);
        keeper->reader.redis = NULL;
    }

    skd_writer_done(&keeper->writer);
    mysql_thread_end();

    return NULL;
}


int
skd_keeper_start(skd_keeper_t *keeper, const skb_config_t *config, skd_stop_t *stop)
{
    int  rc;

    memset(keeper, 0, sizeof(skd_keeper_t));

    keeper->config = config;
    keeper->stop = stop;
    keeper->reader.config = config;
    keeper->activities.quiet = 1;
    keeper->backlogs = calloc(SKD_BACKLOGS_MAX, sizeof(skd_backlog_t));

    if (keeper->backlogs == NULL) {
        return ENOMEM;
    }

    rc = pthread_create(&keeper->thread, NULL, skd_keeper_run, keeper);

    if (rc != 0) {
        free(keeper->backlogs);
    }

    return rc;
}


void
skd_keeper_join(skd_keeper_t *keeper)
{
    pthread_join(keeper->thread, NULL);
    skd_activities_done(&keeper->activities);
    free(keeper->backlogs);
}
