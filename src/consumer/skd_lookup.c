/*
 * Lost results: buyers wait in a set of each activity, MySQL knows what became
 * of them, and the answer goes the way of every result.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sk_id.h"
#include "sk_result.h"
#include "skb_log.h"
#include "skd_keeper.h"
#include "skd_rows.h"

#define SKD_LOOKUP_USERS  100           /* of one activity in one round */
#define SKD_LOOKUP_PIPE   256           /* activities asked in one write */

/* One buyer who asks. */
typedef struct {
    uint64_t     user;
    int          known;                 /* there is an answer */
    sk_result_t  result;
} skd_asker_t;

typedef struct {
    uint64_t     activity;
    skd_asker_t  all[SKD_LOOKUP_USERS];
    size_t       count;
} skd_askers_t;

typedef void (*skd_found_pt)(skd_asker_t *asker, MYSQL_ROW row);


static void
skd_lookup_order(skd_asker_t *asker, MYSQL_ROW row)
{
    asker->known = 1;
    asker->result.success = 1;
    asker->result.order_id = strtoull(row[1], NULL, 10);
    snprintf(asker->result.order_no, sizeof(asker->result.order_no), "%s", row[2]);
}


/* A tombstone; the reason is with the dead letter. */
static void
skd_lookup_record(skd_asker_t *asker, MYSQL_ROW row)
{
    if (!asker->known && strcmp(row[1], "2") == 0) {
        asker->known = 1;
        strcpy(asker->result.reason, "failed");
    }
}


static skd_rc_e
skd_lookup_select(skd_keeper_t *keeper, skd_askers_t *askers, const char *head,
    skd_found_pt found)
{
    skd_rc_e    rc;
    uint64_t    user;
    MYSQL_ROW   row;
    MYSQL_RES  *res;
    skd_sql_t  *sql = &keeper->writer.sql;

    skd_sql_begin(sql, head);
    skd_sql_u64(sql, askers->activity);
    skd_sql_text(sql, " AND user_id IN (");

    for (size_t i = 0; i < askers->count; i++) {
        skd_sql_text(sql, i > 0 ? "," : "");
        skd_sql_u64(sql, askers->all[i].user);
    }

    skd_sql_text(sql, ")");
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        user = strtoull(row[0], NULL, 10);

        for (size_t i = 0; i < askers->count; i++) {
            if (askers->all[i].user == user) {
                found(&askers->all[i], row);
            }
        }
    }

    mysql_free_result(res);

    return SKD_OK;
}


/* A settled sale's keys have their expiry: what is written anew needs it too. */
static skd_rc_e
skd_lookup_expire(skd_keeper_t *keeper, uint64_t activity, const char *result_key)
{
    char         facts[SK_KEY_MAX + 1];
    size_t       len;
    skd_rc_e     rc = SKD_OK;
    const char  *prefix = keeper->config->redis.prefix;
    redisReply  *reply;

    len = sk_key(facts, prefix, strlen(prefix), SK_KEY_ACTIVITY, activity, 0);
    facts[len] = '\0';

    reply = skb_redis_command(keeper->reader.redis, "HGET %s expire_ms", facts);

    if (skb_redis_class(reply) == SKB_REDIS_FINE && reply->type == REDIS_REPLY_STRING) {
        char  *when = reply->str;
        void  *done = skb_redis_command(keeper->reader.redis, "PEXPIREAT %s %s", result_key, when);

        if (skb_redis_class(done) != SKB_REDIS_FINE) {
            rc = skd_reader_failed(&keeper->reader, done);
        }

        freeReplyObject(done);

    } else if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(&keeper->reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}


/* lua/settle.lua without an entry: it acknowledges nothing, and keeps a success. */
static skd_rc_e
skd_lookup_tell(skd_keeper_t *keeper, uint64_t activity, const skd_asker_t *asker)
{
    char          orders[SK_KEY_MAX + 1], key[SK_KEY_MAX + 1], channel[SK_KEY_MAX + 1];
    char          user[SK_ID_MAX + 1], result[SK_RESULT_MAX + 1];
    skd_rc_e      rc = SKD_OK;
    const char   *prefix = keeper->config->redis.prefix;
    size_t        n = strlen(prefix);
    redisReply   *reply;

    orders[sk_key(orders, prefix, n, SK_KEY_ORDERS, activity, 0)] = '\0';
    key[sk_key(key, prefix, n, SK_KEY_RESULT, activity, asker->user)] = '\0';
    channel[sk_key(channel, prefix, n, SK_KEY_RESULTS, activity, 0)] = '\0';
    user[sk_id_format(user, asker->user)] = '\0';
    result[sk_result_format(result, &asker->result)] = '\0';

    reply = skb_redis_script(keeper->reader.redis, SK_SCRIPT_SETTLE, 2, 7, (const char *[]) {
                                 orders, key, SKD_GROUP, channel, "0-0", user, result
                             }, NULL);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skd_reader_failed(&keeper->reader, reply);
    }

    freeReplyObject(reply);

    return rc == SKD_OK ? skd_lookup_expire(keeper, activity, key) : rc;
}


/* Whoever could not be served stays in the set. */
static void
skd_lookup_put_back(skd_keeper_t *keeper, const skd_askers_t *askers)
{
    char         key[SK_KEY_MAX + 1];
    const char  *prefix = keeper->config->redis.prefix;

    key[sk_key(key, prefix, strlen(prefix), SK_KEY_LOOKUP, askers->activity, 0)] = '\0';

    for (size_t i = 0; i < askers->count && keeper->reader.redis->err == 0; i++) {
        freeReplyObject(skb_redis_command(keeper->reader.redis, "SADD %s %llu", key,
                                     (unsigned long long) askers->all[i].user));
    }
}


static skd_rc_e
skd_lookup_serve(skd_keeper_t *keeper, skd_askers_t *askers)
{
    skd_rc_e     rc;
    skd_asker_t  *asker;

    rc = skd_lookup_select(keeper, askers, "SELECT user_id, id, order_no FROM seckill_orders "
                           "WHERE activity_id = ", skd_lookup_order);

    if (rc == SKD_OK) {
        rc = skd_lookup_select(keeper, askers, "SELECT user_id, status FROM seckill_records "
                               "WHERE activity_id = ", skd_lookup_record);
    }

    for (size_t i = 0; i < askers->count && rc == SKD_OK; i++) {
        asker = &askers->all[i];

        if (!asker->known) {
            skd_count(SKD_COUNT_LOOKUP_NONE, 1);
            continue;
        }

        rc = skd_lookup_tell(keeper, askers->activity, asker);

        if (rc == SKD_OK) {
            skd_count(asker->result.success ? SKD_COUNT_LOOKUP_SUCCESS
                                            : SKD_COUNT_LOOKUP_FAILED, 1);
        }
    }

    if (rc != SKD_OK) {
        skd_lookup_put_back(keeper, askers);
    }

    return rc;
}


static void
skd_lookup_take(skd_askers_t *askers, uint64_t activity, const redisReply *reply)
{
    skd_asker_t  *asker;

    memset(askers, 0, sizeof(skd_askers_t));
    askers->activity = activity;

    for (size_t i = 0; i < reply->elements && askers->count < SKD_LOOKUP_USERS; i++) {
        asker = &askers->all[askers->count];

        if (sk_id_parse(reply->element[i]->str, reply->element[i]->len, &asker->user) == 0) {
            askers->count++;
        }
    }
}


/* Who asks about activities first to end - 1; each answer is served after all are read. */
static skd_rc_e
skd_lookup_pipe(skd_keeper_t *keeper, size_t first, size_t end)
{
    char           key[SK_KEY_MAX + 1];
    void          *replies[SKD_LOOKUP_PIPE];
    size_t         i, n = 0;
    skd_rc_e       rc = SKD_OK, served;
    const char    *prefix = keeper->config->redis.prefix;
    skd_askers_t   askers;
    skd_stream_t  *streams = keeper->activities.streams;

    for (i = first; i < end; i++) {
        key[sk_key(key, prefix, strlen(prefix), SK_KEY_LOOKUP, streams[i].activity, 0)] = '\0';

        if (redisAppendCommand(keeper->reader.redis, "SPOP %s %d", key, SKD_LOOKUP_USERS)
            != REDIS_OK)
        {
            return skd_reader_failed(&keeper->reader, NULL);
        }
    }

    for (i = first; i < end; i++) {
        if (skb_redis_reply(keeper->reader.redis, &replies[n]) != REDIS_OK) {
            rc = skd_reader_failed(&keeper->reader, NULL);
            break;
        }

        n++;
    }

    for (i = 0; i < n; i++) {
        const redisReply  *reply = replies[i];

        served = SKD_OK;

        if (skb_redis_class(reply) != SKB_REDIS_FINE) {
            served = skd_reader_failed(&keeper->reader, reply);

        } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 0
                   && keeper->reader.redis->err == 0)
        {
            skd_lookup_take(&askers, streams[first + i].activity, reply);
            served = askers.count > 0 ? skd_lookup_serve(keeper, &askers) : SKD_OK;
        }

        served = skd_keeper_failed(keeper, SKD_DUTY_LOOKUP, streams[first + i].activity, served);
        rc = served != SKD_OK ? served : rc;

        freeReplyObject(replies[i]);
    }

    return rc;
}


skd_rc_e
skd_keeper_lookup(skd_keeper_t *keeper)
{
    size_t    end;
    skd_rc_e  rc = SKD_OK;

    for (size_t i = 0; rc == SKD_OK && i < keeper->activities.count; i = end) {
        end = i + SKD_LOOKUP_PIPE < keeper->activities.count ? i + SKD_LOOKUP_PIPE
                                                              : keeper->activities.count;
        rc = skd_lookup_pipe(keeper, i, end);
    }

    return rc;
}
