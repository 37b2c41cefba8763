/*
 * doctor, Redis: what would lose accepted purchases, and the switch of all.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"

#define CTL_VALUE_MAX  64


/* "name:value\r\n" of INFO; "" when it is not there */
static void
ctl_doctor_field(const char *info, const char *name, char *value)
{
    size_t       len;
    const char  *line;

    len = strlen(name);
    value[0] = '\0';

    for (line = info; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, len) == 0 && line[len] == ':') {
            snprintf(value, CTL_VALUE_MAX, "%.*s", (int) strcspn(line + len + 1, "\r\n"),
                     line + len + 1);
            return;
        }
    }
}


static void
ctl_doctor_info(ctl_doctor_t *doctor, const char *info)
{
    char  value[CTL_VALUE_MAX], status[CTL_VALUE_MAX];

    ctl_doctor_field(info, "maxmemory_policy", value);
    ctl_doctor_tell(doctor, strcmp(value, "noeviction") ? CTL_IS_WRONG : CTL_IS_OK, "eviction",
                    "CONFIG SET maxmemory-policy noeviction, and in redis.conf",
                    "maxmemory-policy is %s", value[0] ? value : "not known");

    ctl_doctor_field(info, "aof_enabled", value);
    ctl_doctor_field(info, "aof_last_write_status", status);

    if (strcmp(value, "1") != 0) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "append only file", "appendonly yes: without it a "
                        "crash loses accepted purchases", "it is off");
    } else {
        ctl_doctor_tell(doctor, strcmp(status, "ok") ? CTL_IS_WRONG : CTL_IS_OK,
                        "append only file", "look at Redis' log and at the disk",
                        "it is on, the last write was %s", status);
    }

    ctl_doctor_field(info, "connected_clients", status);
    ctl_doctor_field(info, "maxclients", value);

    if (value[0]) {
        ctl_doctor_used(doctor, "CONFIG SET maxclients, in redis.conf, and Redis' limit of open "
                        "files", strtoull(status, NULL, 10), strtoull(value, NULL, 10));
    }

    ctl_doctor_field(info, "role", value);
    ctl_doctor_tell(doctor, strcmp(value, "master") ? CTL_IS_WRONG : CTL_IS_OK, "role",
                    "set [redis] address to the master", "%s", value);
}


static int
ctl_doctor_fsync(ctl_doctor_t *doctor)
{
    int          rc, bad;
    redisReply  *reply;

    rc = ctl_redis_try(doctor->ctl, &reply, "CONFIG GET appendfsync");
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2
        || skb_redis_at(reply, 1)->type != REDIS_REPLY_STRING)
    {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "appendfsync", "look into redis.conf: always or "
                        "everysec", "only who may CONFIG GET, and so read Redis' passwords, is "
                        "told");
    } else {
        bad = strcmp(skb_redis_text(reply, 1), "no") == 0;
        ctl_doctor_tell(doctor, bad ? CTL_IS_WRONG : CTL_IS_OK, "appendfsync",
                        "always, or everysec which may lose a second", "%s",
                        skb_redis_text(reply, 1));
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


static int
ctl_doctor_control(ctl_doctor_t *doctor)
{
    int            rc;
    char           key[SK_KEY_MAX + 1];
    redisReply    *reply;
    ctl_control_t  control;

    ctl_key_global(doctor->ctl, key, "control");

    rc = ctl_control_read(doctor->ctl, &control);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (!control.exists) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "control", "preheat; after a loss, restore",
                        "\"%s\" is missing: nothing is sold", key);
    } else {
        ctl_doctor_tell(doctor, control.closed ? CTL_IS_WARNING : CTL_IS_OK, "control",
                        "seckillctl open --all", "the entry of all sales is %s",
                        control.closed ? "closed" : "open");
        ctl_doctor_limit(doctor, &control.limit, "seckillctl limit --all default");
    }

    rc = ctl_redis(doctor->ctl, &reply, "PTTL %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->integer >= 0) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "control", "PERSIST it", "\"%s\" expires in %lld ms",
                        key, reply->integer);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


void
ctl_doctor_limit(ctl_doctor_t *doctor, const ctl_limit_t *limit, const char *cure)
{
    char        text[CTL_LIMIT_TEXT];
    uint32_t    interval_ms;
    const char  *rate;

    rate = limit->rate;

    if (rate[0] == '\0') {
        return;
    }

    ctl_limit_text(text, limit);

    if (strcmp(rate, "off") != 0 && sk_rate_parse(rate, strlen(rate), &interval_ms) != 0) {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "user limit", cure,
                        "%s is no limit, nginx does without it", text);
    } else {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "user limit", cure,
                        "%s, in place of nginx' own", text);
    }
}


int
ctl_doctor_redis(ctl_doctor_t *doctor)
{
    int          rc;
    int64_t      began, ended;
    redisReply  *reply;

    if ((rc = ctl_open_redis(doctor->ctl)) != CTL_FINE) {
        return rc;
    }

    began = ctl_doctor_now();

    rc = ctl_redis(doctor->ctl, &reply, "TIME");
    if (rc != CTL_FINE) {
        return rc;
    }

    ended = ctl_doctor_now();
    ctl_doctor_clock(doctor, "clock", began, ended,
                     (int64_t) (ctl_reply_u64(skb_redis_at(reply, 0)) * 1000
                                + ctl_reply_u64(skb_redis_at(reply, 1)) / 1000));
    freeReplyObject(reply);

    rc = ctl_redis_try(doctor->ctl, &reply, "INFO");
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type == REDIS_REPLY_STRING) {
        ctl_doctor_info(doctor, reply->str);
    } else {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "eviction", "use settings (-c) of a user with "
                        "+info, see README.md", "Redis does not tell: %s", reply->str);
    }

    freeReplyObject(reply);

    if ((rc = ctl_doctor_fsync(doctor)) != CTL_FINE
        || (rc = ctl_doctor_redis_rights(doctor)) != CTL_FINE)
    {
        return rc;
    }

    return ctl_doctor_control(doctor);
}
