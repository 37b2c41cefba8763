/*
 * The thread and its rounds.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_keeper.h"

#define SKD_KEEPER_ROUND_MS  100        /* between looks for lost results */
#define SKD_KEEPER_TICK_MS   1000       /* between all other duties */
#define SKD_KEEPER_FIRST_MS  50
#define SKD_KEEPER_CAP_MS    2000
#define SKD_KEEPER_WARN_MS   60000

typedef skd_rc_e (*skd_duty_pt)(skd_keeper_t *keeper);


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

    skd_backoff_grow(&keeper->redis_backoff, SKD_KEEPER_FIRST_MS, SKD_KEEPER_CAP_MS);
}


static void
skd_keeper_mysql_lost(skd_keeper_t *keeper)
{
    char  quoted[SKD_ERROR_MAX];

    skb_log(SKB_DEBUG, "keeper has no MySQL", "error=%s",
            skb_log_quote(quoted, sizeof(quoted), keeper->writer.error));

    skd_writer_close(&keeper->writer);
    skd_backoff_grow(&keeper->mysql_backoff, SKD_KEEPER_FIRST_MS, SKD_KEEPER_CAP_MS);
}


/* Returns 1 when both servers are there. */
static int
skd_keeper_connect(skd_keeper_t *keeper)
{
    skd_reader_t  *reader = &keeper->reader;

    if (reader->redis == NULL) {
        if (skd_backoff_left(&keeper->redis_backoff) > 0) {
            return 0;
        }

        reader->redis = skb_redis_connect(keeper->config, reader->error,
                                          sizeof(reader->error));

        if (reader->redis == NULL) {
            skd_keeper_redis_lost(keeper);
            return 0;
        }

        keeper->activities.next_ms = 0;
        keeper->policy_ms = 0;
        keeper->token_key_ms = 0;
    }

    if (keeper->writer.mysql == NULL && skd_backoff_left(&keeper->mysql_backoff) > 0) {
        return 0;
    }

    if (skd_writer_connect(&keeper->writer, keeper->config) != SKD_OK) {
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


/* Returns 0 when the round is over. */
static int
skd_keeper_do(skd_keeper_t *keeper, skd_duty_pt duty)
{
    char  quoted[SKD_ERROR_MAX];

    if (skd_stopping(keeper->stop)) {
        return 0;
    }

    keeper->reader.error[0] = '\0';
    keeper->writer.error[0] = '\0';

    switch (duty(keeper)) {

    case SKD_OK:
        return 1;

    case SKD_REDIS_LOST:
        skd_keeper_redis_lost(keeper);
        return 0;

    case SKD_MYSQL_LOST:
        skd_keeper_mysql_lost(keeper);
        return 0;

    case SKD_CONFLICT:
    case SKD_STOPPED:
        return 1;                       /* somebody holds the row: next time */

    default:
        if (keeper->warned_ms != 0 && skd_now_ms() - keeper->warned_ms < SKD_KEEPER_WARN_MS) {
            return 1;
        }

        keeper->warned_ms = skd_now_ms();
        skb_log(SKB_WARN, "keeper can't do its duty", "error=%s",
                skb_log_quote(quoted, sizeof(quoted), keeper->reader.error[0] != '\0'
                              ? keeper->reader.error : keeper->writer.error));
        return 1;
    }
}


static void
skd_keeper_round(skd_keeper_t *keeper)
{
    static const skd_duty_pt  duties[] = {
        skd_keeper_policy, skd_keeper_schema, skd_keeper_token_key, skd_keeper_watch,
        skd_keeper_units, skd_keeper_promise, skd_keeper_settle, skd_keeper_unpaid,
        skd_keeper_backlog
    };

    if (!skd_keeper_connect(keeper) || !skd_keeper_do(keeper, skd_keeper_registered)
        || !skd_keeper_do(keeper, skd_keeper_lookup) || skd_now_ms() < keeper->tick_ms)
    {
        return;
    }

    /* thousands of activities are looked at less often */
    keeper->tick_ms = skd_now_ms() + SKD_KEEPER_TICK_MS + (int64_t) keeper->activities.count;

    for (size_t i = 0; i < sizeof(duties) / sizeof(duties[0]); i++) {
        if (!skd_keeper_do(keeper, duties[i])) {
            return;
        }
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
