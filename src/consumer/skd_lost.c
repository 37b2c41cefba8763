/*
 * Sales that Redis lost whole: it has no facts of them, and maybe does not even
 * list them, so they are looked for in MySQL.  Each gets facts that say "lost";
 * only then may anybody make the control hash anew.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "skb_control.h"
#include "skb_log.h"
#include "skb_sales.h"
#include "skb_token_key.h"
#include "skd_keeper.h"
#include "skd_pause.h"
#include "skd_rows.h"

#define SKD_LOST_EVERY_MS  5000


/* An EXISTS each tick: without it the nodes refuse everybody. */
static skd_rc_e
skd_lost_control(skd_keeper_t *keeper, int *there)
{
    char         key[SK_KEY_MAX + 1];
    skd_rc_e     rc = SKD_OK;
    const char  *prefix = keeper->config->redis.prefix;
    redisReply  *reply;

    key[sk_key_global(key, prefix, strlen(prefix), "control", strlen("control"))] = '\0';
    reply = skb_redis_command(keeper->reader.redis, "HEXISTS %s rev", key);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(&keeper->reader, reply);

    } else {
        *there = reply->integer == 1;
    }

    freeReplyObject(reply);

    return rc;
}


static skd_rc_e
skd_lost_rows(skd_keeper_t *keeper, skb_sales_t *sales)
{
    skd_rc_e       rc;
    MYSQL_RES     *res;
    skd_stream_t  *stream;

    skd_sql_begin(&keeper->writer.sql, SKB_SALES_SQL);
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    if (skb_sales_take(sales, res) != 0) {
        snprintf(keeper->writer.error, sizeof(keeper->writer.error), "out of memory");
        rc = SKD_BLOCKED;
    }

    mysql_free_result(res);

    for (size_t i = 0; rc == SKD_OK && i < sales->n; i++) {
        stream = skd_activities_find(&keeper->activities, sales->all[i].activity);

        if (stream != NULL) {
            stream->care.opened = 1;
            sales->all[i].known = stream->care.has_facts
                                  && strcmp(stream->care.state, "lost") != 0;
        }
    }

    return rc;
}


static skd_rc_e
skd_lost_mark(skd_keeper_t *keeper, skb_sales_t *sales, size_t *lost)
{
    int          marked = 0;
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply = NULL;

    if (skb_sales_mark(keeper->reader.redis, keeper->config, sales, &reply) != 0) {
        rc = skd_reader_failed(&keeper->reader, reply);
        freeReplyObject(reply);
    }

    for (size_t i = 0; i < sales->n; i++) {
        *lost += sales->all[i].lost && sales->all[i].begun;

        if (sales->all[i].marked) {
            marked = 1;
            skb_log(SKB_NOTICE, "facts of a sale say that Redis lost it", "activity=%" PRIu64,
                    sales->all[i].activity);
        }
    }

    /* the watch finds them listed, and raises the alarm */
    keeper->activities.next_ms = marked ? 0 : keeper->activities.next_ms;

    return rc == SKD_OK && marked ? skd_pause_raise(&keeper->reader) : rc;
}


/* None is lost: whoever finds the hash hears the truth about every sale. */
static skd_rc_e
skd_lost_make(skd_keeper_t *keeper)
{
    char              hex[SKB_TOKEN_KEY_HEX + 1];
    skd_rc_e          rc = SKD_OK;
    redisReply       *reply;
    skb_token_key_e   got;

    got = skb_token_key_use(keeper->writer.mysql, keeper->reader.redis,
                            keeper->config->redis.prefix, hex, keeper->writer.error,
                            sizeof(keeper->writer.error));

    if (got == SKB_TOKEN_KEY_NO_REDIS) {
        snprintf(keeper->reader.error, sizeof(keeper->reader.error), "%.200s",
                 keeper->writer.error);
        return keeper->reader.redis->err ? SKD_REDIS_LOST : SKD_BLOCKED;
    }

    /* without the table a preheat says what to do */
    if (got >= SKB_TOKEN_KEY_NO_TABLE) {
        return SKD_OK;
    }

    reply = skb_control_make(keeper->reader.redis, keeper->config, hex);
    explicit_bzero(hex, sizeof(hex));

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(&keeper->reader, reply);

    } else {
        keeper->control_gone = 0;
        skb_log(SKB_NOTICE, "control hash is made, no sale is lost", "prefix=%s",
                keeper->config->redis.prefix);
    }

    freeReplyObject(reply);

    return rc;
}


skd_rc_e
skd_keeper_lost(skd_keeper_t *keeper)
{
    int          there = 0;
    size_t       lost = 0;
    skd_rc_e     rc;
    skb_sales_t  sales = { NULL, 0 };

    rc = skd_lost_control(keeper, &there);

    if (rc != SKD_OK || (there && skd_now_ms() < keeper->lost_ms)) {
        return rc;
    }

    keeper->lost_ms = skd_now_ms() + SKD_LOST_EVERY_MS;
    rc = skd_lost_rows(keeper, &sales);

    if (rc == SKD_OK) {
        rc = skd_lost_mark(keeper, &sales, &lost);
    }

    skb_sales_free(&sales);

    if (rc != SKD_OK || there) {
        return rc;
    }

    if (lost == 0) {
        return skd_lost_make(keeper);
    }

    if (!keeper->control_gone) {
        keeper->control_gone = 1;
        skb_log(SKB_ERROR, "Redis lost the control hash, nothing is sold: restore the lost sales",
                "prefix=%s lost=%zu", keeper->config->redis.prefix, lost);
    }

    return SKD_OK;
}
