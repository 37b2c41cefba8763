/*
 * See the header.
 */

#include <string.h>

#include "skb_log.h"
#include "skd_alarm.h"
#include "skd_http.h"
#include "skd_keeper.h"
#include "skd_service.h"
#include "skd_stats.h"
#include "skd_worker.h"

#define SKD_SILENCE_SPARE_MS  1000      /* beside the timeouts */

static struct {
    const skb_config_t  *config;
    skd_stop_t           stop;
    unsigned             workers;       /* that run */
    int                  keeps;
    skd_keeper_t         keeper;
    skd_http_t          *http;
} skd_service;

static skd_worker_t  skd_workers[SKB_WORKERS_MAX];


int
skd_service_healthy(void)
{
    int64_t              limit;
    const skb_config_t  *config = skd_service.config;

    /* life is shown between statements, and each of them has its timeout */
    limit = 2 * (int64_t) config->mysql.timeout_ms + 2 * (int64_t) config->redis.timeout_ms
            + SKD_SILENCE_SPARE_MS;

    for (unsigned i = 0; i < skd_service.workers; i++) {
        if (skd_worker_silence(&skd_workers[i]) > limit) {
            return 0;
        }
    }

    return 1;
}


static int
skd_service_workers(const skb_config_t *config)
{
    int  rc = 0;

    for (unsigned n = 0; n < config->consumer.workers && rc == 0; n++) {
        rc = skd_worker_start(&skd_workers[n], n + 1, config, &skd_service.stop);

        if (rc == 0) {
            skd_service.workers++;
        }
    }

    return rc;
}


int
skd_service_start(const skb_config_t *config)
{
    int  rc;

    memset(&skd_service, 0, sizeof(skd_service));
    skd_service.config = config;
    skd_servers_forget();

    rc = skd_stop_init(&skd_service.stop);

    if (rc == 0) {
        rc = skd_alarm_start(config->consumer.on_dead, &skd_service.stop);

        if (rc == 0) {
            rc = skd_service_workers(config);
        }

        if (rc == 0) {
            rc = skd_keeper_start(&skd_service.keeper, config, &skd_service.stop);
            skd_service.keeps = rc == 0;
        }

        if (rc != 0) {
            skd_service_stop();
        }
    }

    if (rc != 0) {
        skb_log(SKB_ERROR, "threads can't start", "error=\"%s\"", strerror(rc));
        return -1;
    }

    skd_service.http = skd_http_start(config, skd_service_healthy);

    return 0;
}


void
skd_service_stop(void)
{
    skd_stop_all(&skd_service.stop);
    skd_http_stop(skd_service.http);
    skd_service.http = NULL;

    while (skd_service.workers > 0) {
        skd_worker_join(&skd_workers[--skd_service.workers]);
    }

    if (skd_service.keeps) {
        skd_keeper_join(&skd_service.keeper);
    }

    skd_alarm_join();
    skd_stop_done(&skd_service.stop);
}
