/*
 * Redis that evicts keys under pressure could drop stock, buyers or purchases of
 * a sale: an alarm when it may, whoever changed that and whenever.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_keeper.h"

#define SKD_POLICY_EVERY_MS  5000
#define SKD_POLICY_FIELD     "\nmaxmemory_policy:"
#define SKD_POLICY_SAFE      "noeviction"


static void
skd_policy_say(skd_keeper_t *keeper, const char *policy, int len)
{
    int  evicts = strncmp(policy, SKD_POLICY_SAFE, strlen(SKD_POLICY_SAFE)) != 0;

    if (evicts == keeper->evicts) {
        return;
    }

    keeper->evicts = evicts;

    if (evicts) {
        skb_log(SKB_ERROR, "Redis may evict the keys of a sale", "maxmemory_policy=%.*s", len,
                policy);

    } else {
        skb_log(SKB_NOTICE, "Redis evicts nothing any more", "maxmemory_policy=%.*s", len,
                policy);
    }
}


skd_rc_e
skd_keeper_policy(skd_keeper_t *keeper)
{
    skd_rc_e     rc = SKD_OK;
    redisReply  *reply;
    const char  *at;

    if (skd_now_ms() < keeper->policy_ms) {
        return SKD_OK;
    }

    keeper->policy_ms = skd_now_ms() + SKD_POLICY_EVERY_MS;
    reply = skb_redis_command(keeper->reader.redis, "INFO memory");

    switch (skb_redis_class(reply)) {

    case SKB_REDIS_FINE:
        at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, SKD_POLICY_FIELD) : NULL;

        if (at != NULL) {
            at += strlen(SKD_POLICY_FIELD);
            skd_policy_say(keeper, at, (int) strcspn(at, "\r\n"));
        }

        break;

    case SKB_REDIS_DENIED:
    case SKB_REDIS_ERROR:
        keeper->policy_ms = INT64_MAX;      /* this user may not know: seckillctl asks, too */
        break;

    default:
        rc = skd_reader_failed(&keeper->reader, reply);
    }

    freeReplyObject(reply);

    return rc;
}
