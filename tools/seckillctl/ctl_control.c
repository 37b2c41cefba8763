/*
 * Limits and the control hash: reading and telling.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_control.h"


void
ctl_limit_take(ctl_limit_t *limit, const redisReply *rate, const redisReply *burst)
{
    memset(limit, 0, sizeof(*limit));

    if (rate->type == REDIS_REPLY_STRING) {
        snprintf(limit->rate, sizeof(limit->rate), "%s", rate->str);
        limit->burst = ctl_reply_u64(burst);
    }
}


void
ctl_limit_text(char *buf, const ctl_limit_t *limit)
{
    if (limit->rate[0] == '\0') {
        snprintf(buf, CTL_LIMIT_TEXT, "as configured");

    } else if (strcmp(limit->rate, "off") == 0) {
        snprintf(buf, CTL_LIMIT_TEXT, "off");

    } else {
        snprintf(buf, CTL_LIMIT_TEXT, "%s burst=%" PRIu64, limit->rate, limit->burst);
    }
}


void
ctl_limit_json(ctl_json_t *json, const char *key, const ctl_limit_t *limit)
{
    if (limit->rate[0] == '\0') {
        ctl_json_text(json, key, NULL);
        return;
    }

    ctl_json_map(json, key);
    ctl_json_text(json, "rate", limit->rate);
    ctl_json_count(json, "burst", limit->burst);
    ctl_json_map_end(json);
}


int
ctl_control_read(ctl_t *ctl, ctl_control_t *control)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    memset(control, 0, sizeof(*control));

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_key_global(ctl, key, "control");

    rc = ctl_redis(ctl, &reply, "HMGET %s rev state limit limit_burst", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->elements == 4 && skb_redis_at(reply, 0)->type == REDIS_REPLY_STRING) {
        control->exists = 1;
        control->closed = skb_redis_at(reply, 1)->type == REDIS_REPLY_STRING
                          && strcmp(skb_redis_text(reply, 1), "closed") == 0;
        ctl_limit_take(&control->limit, skb_redis_at(reply, 2), skb_redis_at(reply, 3));
    }

    freeReplyObject(reply);

    return CTL_FINE;
}
