/*
 * Redis first closes the sale, in one step with the proof that nothing of it is
 * on its way: from then on no purchase can appear that MySQL does not know.
 * Then the money, in one transaction.  Then the expiry, the facts' own last: a
 * sale whose facts expire is settled whole.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "sk_key.h"
#include "sk_scripts.h"
#include "skb_control.h"
#include "skb_redis.h"
#include "skb_settle_private.h"

#define SKB_KEEP_MS      ((uint64_t) 24 * 3600 * 1000)  /* keys stay for this after the settle */
#define SKB_FACTS_MS     ((uint64_t) 30 * 24 * 3600 * 1000)     /* the facts say that it is over */
#define SKB_SPREAD_MS    300000                 /* plus less than this, not all at once */
#define SKB_PAGE         "1000"                 /* buyers of one SSCAN */


static skb_settle_e
skb_settle_redis_failed(skb_settling_t *s, const redisReply *reply)
{
    snprintf(s->out->error, sizeof(s->out->error), "Redis: %s",
             skb_redis_reason(s->redis, reply));

    return skb_redis_class(reply) == SKB_REDIS_ERROR ? SKB_SETTLE_REFUSED
                                                     : SKB_SETTLE_REDIS_LOST;
}


static void
skb_settle_key(skb_settling_t *s, char *buf, sk_key_e key, uint64_t user)
{
    const char  *prefix = s->config->redis.prefix;

    buf[sk_key(buf, prefix, strlen(prefix), key, s->activity, user)] = '\0';
}


/* { status, rev, expire_ms, buyers } of lua/close_out.lua; how is "look" or "close" */
static skb_settle_e
skb_settle_close(skb_settling_t *s, const char *how, char *status, size_t size)
{
    char          keys[4][SK_KEY_MAX + 1], number[3][24];
    uint16_t      random;
    redisReply   *reply;
    skb_settle_e  rc;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t) sizeof(random)) {
        return skb_settle_refuse(s, "the system gives no random number");
    }

    snprintf(number[0], sizeof(number[0]), "%" PRIu64,
             s->now_ms + SKB_KEEP_MS + (uint64_t) random * SKB_SPREAD_MS / 65536);
    snprintf(number[1], sizeof(number[1]), "%" PRIu64, s->epoch);
    snprintf(number[2], sizeof(number[2]), "%" PRIu64, s->seq_seen);
    skb_settle_key(s, keys[0], SK_KEY_ACTIVITY, 0);
    skb_settle_key(s, keys[1], SK_KEY_ORDERS, 0);
    skb_settle_key(s, keys[2], SK_KEY_DEAD, 0);
    skb_settle_key(s, keys[3], SK_KEY_BUYERS, 0);

    reply = skb_redis_script(s->redis, SK_SCRIPT_CLOSE_OUT, 4, 8, (const char *[]) {
                                 keys[0], keys[1], keys[2], keys[3], number[0], number[1],
                                 number[2], how
                             }, NULL);

    if (skb_redis_class(reply) != SKB_REDIS_FINE || reply->type != REDIS_REPLY_ARRAY
        || reply->elements != 4 || skb_redis_at(reply, 0)->type != REDIS_REPLY_STRING)
    {
        rc = skb_settle_redis_failed(s, reply);

    } else {
        snprintf(status, size, "%s", skb_redis_text(reply, 0));
        s->out->expire_ms = (uint64_t) skb_redis_at(reply, 2)->integer;
        s->buyers = (uint64_t) skb_redis_at(reply, 3)->integer;
        rc = SKB_SETTLE_DONE;
    }

    freeReplyObject(reply);

    return rc;
}


/*
 * Buyers of whom MySQL knows nothing: purchases that were lost on their way, or whose
 * entries somebody deleted.  Settled, nobody would look for them any more.
 */
static skb_settle_e
skb_settle_buyers(skb_settling_t *s)
{
    uint64_t      known;
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_settle_e  rc;

    rc = skb_settle_sql(s, &res, "SELECT (SELECT COUNT(*) FROM seckill_orders WHERE activity_id = %"
                        PRIu64 ") + (SELECT COUNT(*) FROM seckill_records r WHERE r.activity_id = %"
                        PRIu64 " AND r.status = 2 AND NOT EXISTS (SELECT 1 FROM seckill_orders o "
                        "WHERE o.activity_id = r.activity_id AND o.user_id = r.user_id))",
                        s->activity, s->activity);
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    known = column ? skb_settle_column(column[0]) : 0;
    mysql_free_result(res);

    if (s->buyers > known) {
        s->out->missing = s->buyers - known;
        s->out->why = "missing";
        return SKB_SETTLE_WAIT;
    }

    return SKB_SETTLE_DONE;
}


/* The result keys of one page of buyers, in one write. */
static skb_settle_e
skb_settle_expire_page(skb_settling_t *s, const redisReply *users)
{
    char          key[SK_KEY_MAX + 1];
    void         *reply;
    skb_settle_e  rc = SKB_SETTLE_DONE;

    for (size_t i = 0; i < users->elements; i++) {
        skb_settle_key(s, key, SK_KEY_RESULT, strtoull(skb_redis_text(users, i), NULL, 10));

        if (redisAppendCommand(s->redis, "PEXPIREAT %s %" PRIu64, key, s->out->expire_ms)
            != REDIS_OK)
        {
            return skb_settle_redis_failed(s, NULL);
        }
    }

    for (size_t i = 0; i < users->elements; i++) {
        if (skb_redis_reply(s->redis, &reply) != REDIS_OK) {
            return skb_settle_redis_failed(s, NULL);
        }

        if (rc == SKB_SETTLE_DONE && skb_redis_class(reply) != SKB_REDIS_FINE) {
            rc = skb_settle_redis_failed(s, reply);
        }

        freeReplyObject(reply);
    }

    return rc;
}


static skb_settle_e
skb_settle_expire_results(skb_settling_t *s)
{
    char          key[SK_KEY_MAX + 1], cursor[24] = "0";
    redisReply   *reply;
    skb_settle_e  rc;

    skb_settle_key(s, key, SK_KEY_BUYERS, 0);

    do {
        reply = skb_redis_command(s->redis, "SSCAN %s %s COUNT " SKB_PAGE, key, cursor);

        if (skb_redis_class(reply) != SKB_REDIS_FINE
            || skb_redis_part(reply, 0, REDIS_REPLY_STRING) == NULL)
        {
            rc = skb_settle_redis_failed(s, reply);

        } else {
            snprintf(cursor, sizeof(cursor), "%s", skb_redis_text(reply, 0));
            rc = skb_settle_expire_page(s, skb_redis_at(reply, 1));
        }

        freeReplyObject(reply);

    } while (rc == SKB_SETTLE_DONE && strcmp(cursor, "0") != 0);

    return rc;
}


static skb_settle_e
skb_settle_expire(skb_settling_t *s)
{
    char          keys[7][SK_KEY_MAX + 1], when[24], facts[24];
    const char   *argv[9];
    redisReply   *reply;
    skb_settle_e  rc;

    static const sk_key_e  which[7] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_ORDERS, SK_KEY_DEAD,
        SK_KEY_ELIGIBLE, SK_KEY_LOOKUP
    };

    rc = skb_settle_expire_results(s);
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    for (size_t i = 0; i < 7; i++) {
        skb_settle_key(s, keys[i], which[i], 0);
        argv[i] = keys[i];
    }

    snprintf(when, sizeof(when), "%" PRIu64, s->out->expire_ms);
    snprintf(facts, sizeof(facts), "%" PRIu64, s->out->expire_ms - SKB_KEEP_MS + SKB_FACTS_MS);
    argv[7] = when;
    argv[8] = facts;

    reply = skb_redis_script(s->redis, SK_SCRIPT_EXPIRE, 7, 9, argv, NULL);
    rc = skb_redis_class(reply) == SKB_REDIS_FINE ? SKB_SETTLE_DONE
                                                  : skb_settle_redis_failed(s, reply);
    freeReplyObject(reply);

    return rc;
}


/* It is read and watched no more. */
static skb_settle_e
skb_settle_leave(skb_settling_t *s)
{
    char          key[SK_KEY_MAX + 1];
    redisReply   *reply;
    const char   *prefix = s->config->redis.prefix;
    skb_settle_e  rc;

    key[sk_key_global(key, prefix, strlen(prefix), "activities", strlen("activities"))] = '\0';

    reply = skb_redis_command(s->redis, "SREM %s %" PRIu64, key, s->activity);
    rc = skb_redis_class(reply) == SKB_REDIS_FINE ? SKB_SETTLE_DONE
                                                  : skb_settle_redis_failed(s, reply);
    freeReplyObject(reply);

    return rc;
}


/* The nodes drop what they remember. */
static skb_settle_e
skb_settle_nodes(skb_settling_t *s)
{
    redisReply   *reply;
    skb_settle_e  rc;

    reply = skb_control_raise(s->redis, s->config, 0);
    rc = skb_redis_class(reply) == SKB_REDIS_FINE ? SKB_SETTLE_DONE
                                                  : skb_settle_redis_failed(s, reply);
    freeReplyObject(reply);

    return rc;
}


/* 1 when the facts have their expiry: the last step of a settle is done */
static skb_settle_e
skb_settle_whole(skb_settling_t *s, int *whole)
{
    char          key[SK_KEY_MAX + 1];
    redisReply   *reply;
    skb_settle_e  rc = SKB_SETTLE_DONE;

    skb_settle_key(s, key, SK_KEY_ACTIVITY, 0);
    reply = skb_redis_command(s->redis, "PTTL %s", key);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = skb_settle_redis_failed(s, reply);
    } else {
        *whole = reply->integer >= 0;
    }

    freeReplyObject(reply);

    return rc;
}


/* The facts are gone: with the settled sale's other keys, or lost. */
static skb_settle_e
skb_settle_missing(skb_settling_t *s)
{
    skb_settle_e  rc;

    if (!s->ended) {
        return skb_settle_refuse(s, "Redis has no facts of the activity: restore it first, "
                                 "or it was never preheated");
    }

    rc = skb_settle_leave(s);

    return rc == SKB_SETTLE_DONE ? SKB_SETTLE_ALREADY : rc;
}


/* What stands between close_out's status and the money: DONE when nothing does. */
static skb_settle_e
skb_settle_status(skb_settling_t *s, const char *status)
{
    static const char *const  waits[] = { "running", "unread", "pending", "dead" };

    if (strcmp(status, "missing") == 0) {
        return skb_settle_missing(s);
    }

    if (strcmp(status, "lost") == 0) {
        return skb_settle_refuse(s, "Redis lost data of the sale: restore it first");
    }

    for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
        if (strcmp(status, waits[i]) == 0) {
            s->out->why = waits[i];
            return SKB_SETTLE_WAIT;
        }
    }

    return SKB_SETTLE_DONE;
}


skb_settle_e
skb_settle(redisContext *redis, MYSQL *mysql, const skb_config_t *config, uint64_t activity,
    const char *actor, uint64_t now_ms, int missing_ok, skb_settle_t *settle)
{
    int             whole = 0;
    char            status[16];
    skb_settle_e    rc, money;
    skb_settling_t  s = { redis, mysql, config, actor, activity, now_ms, 0, settle,
                          0, 0, 0, 0, 0, 0 };

    memset(settle, 0, sizeof(*settle));

    if ((rc = skb_settle_row(&s, 0)) != SKB_SETTLE_DONE
        || (rc = skb_settle_close(&s, "look", status, sizeof(status))) != SKB_SETTLE_DONE
        || (rc = skb_settle_status(&s, status)) != SKB_SETTLE_DONE)
    {
        return rc;
    }

    /* ended, and nothing on its way: no buyer comes after this look */
    if (strcmp(status, "ready") == 0
        && ((rc = skb_settle_prove(&s)) != SKB_SETTLE_DONE
            || (!missing_ok && (rc = skb_settle_buyers(&s)) != SKB_SETTLE_DONE)
            || (rc = skb_settle_close(&s, "close", status, sizeof(status))) != SKB_SETTLE_DONE
            || (rc = skb_settle_status(&s, status)) != SKB_SETTLE_DONE))
    {
        return rc;
    }

    money = skb_settle_mysql(&s);

    if (money != SKB_SETTLE_DONE && money != SKB_SETTLE_ALREADY) {
        return money;
    }

    settle->booked = 1;

    rc = skb_settle_whole(&s, &whole);

    if (rc == SKB_SETTLE_DONE && whole) {
        return money;
    }

    if (rc == SKB_SETTLE_DONE) {
        rc = skb_settle_expire(&s);
    }

    /* last: the nodes drop what they remember */
    return rc == SKB_SETTLE_DONE ? skb_settle_nodes(&s) : rc;
}
