/*
 * close, open: the entry of a sale, or of all of them.  lua/switch.lua changes
 * the state; then rev of the control hash tells every node, each of which looks
 * at it once per seckill_refresh.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl_backend.h"
#include "ctl_json.h"
#include "sk_id.h"

typedef struct {
    const char  *want;                  /* "open" or "closed" */
    int          all;
    uint64_t     activity;
    int          switched;              /* 0: it was so already */
    uint64_t     rev;
    char         was[32];
} ctl_switch_t;


static int
ctl_switch_refused(ctl_t *ctl, const ctl_switch_t *sw, const char *status)
{
    if (strcmp(status, "missing") != 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is %s, which is no switch: %s",
                        sw->activity, sw->was, strcmp(sw->was, "paused") == 0
                        ? "Redis lost data, \"restore\" it" : "it is over for good");
    }

    if (sw->all) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis has no control hash, nothing is sold: "
                        "preheat, or restore what was lost");
    }

    return ctl_fail(ctl, CTL_NO, "activity %" PRIu64 " is not in Redis: preheat it",
                    sw->activity);
}


/* { status, rev, state } */
static int
ctl_switch_answer(ctl_t *ctl, ctl_switch_t *sw, const redisReply *reply)
{
    const char  *status;

    if (reply->type == REDIS_REPLY_ERROR) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis: %s", reply->str);
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3
        || reply->element[0]->type != REDIS_REPLY_STRING
        || reply->element[2]->type != REDIS_REPLY_STRING)
    {
        return ctl_fail(ctl, CTL_REFUSED, "lua/switch.lua gave an answer of another version");
    }

    status = reply->element[0]->str;
    sw->rev = ctl_reply_u64(reply->element[1]);
    snprintf(sw->was, sizeof(sw->was), "%s", reply->element[2]->str);
    sw->switched = strcmp(status, "switched") == 0;

    return sw->switched || strcmp(status, "unchanged") == 0 ? CTL_FINE
                                                            : ctl_switch_refused(ctl, sw, status);
}


static int
ctl_switch_redis(ctl_t *ctl, ctl_switch_t *sw)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (sw->all) {
        ctl_key_global(ctl, key, "control");
    } else {
        ctl_key(ctl, key, SK_KEY_ACTIVITY, sw->activity, 0);
    }

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_SWITCH, 1,
                        (const char *[]) { key, sw->all ? "control" : "activity", sw->want }, 2);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_switch_answer(ctl, sw, reply);
    freeReplyObject(reply);

    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_failpoint("after_switch");

    /* also when nothing changed: the run that changed it may not have come so far */
    if (ctl_nodes_tell(ctl) != CTL_FINE) {
        ctl_warn("the nodes were not told: run it again");
        return CTL_PARTLY;
    }

    return CTL_FINE;
}


static int
ctl_switch_tell(ctl_t *ctl, const ctl_switch_t *sw)
{
    char        when[CTL_TIME_MAX], actor[CTL_ACTOR_MAX];
    int64_t     now_ms;
    ctl_json_t  json;

    now_ms = (int64_t) time(NULL) * 1000;
    ctl_time_utc(when, now_ms);
    ctl_actor(actor, sizeof(actor));

    if (!ctl->json) {
        if (sw->all) {
            printf("%s %s: all activities: ", when, actor);
        } else {
            printf("%s %s: activity %" PRIu64 ", rev %" PRIu64 ": ", when, actor, sw->activity,
                   sw->rev);
        }

        printf("%s%s\n", sw->want, sw->switched ? "" : ", as it was before");

        return CTL_FINE;
    }

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);

    if (sw->all) {
        ctl_json_text(&json, "activity", NULL);
    } else {
        ctl_json_id(&json, "activity", sw->activity);
        ctl_json_count(&json, "rev", sw->rev);
    }

    ctl_json_text(&json, "state", sw->want);
    ctl_json_text(&json, "was", sw->was);
    ctl_json_text(&json, "actor", actor);
    ctl_json_count(&json, "time_ms", (uint64_t) now_ms);
    ctl_json_map_end(&json);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


static int
ctl_switch(ctl_t *ctl, int argc, char **argv, const char *want)
{
    int           opt, rc;
    ctl_switch_t  sw;

    static const struct option  options[] = {
        { "all", no_argument, NULL, CTL_OPT },
        CTL_OPTIONS
    };

    memset(&sw, 0, sizeof(sw));
    sw.want = want;

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        sw.all = 1;
    }

    if (argc - optind != !sw.all) {
        return ctl_usage(ctl, "one activity is wanted, or --all");
    }

    if (!sw.all && sk_id_parse(argv[optind], strlen(argv[optind]), &sw.activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[optind]);
    }

    rc = ctl_switch_redis(ctl, &sw);

    return rc == CTL_FINE ? ctl_switch_tell(ctl, &sw) : rc;
}


static int
ctl_switch_close(ctl_t *ctl, int argc, char **argv)
{
    return ctl_switch(ctl, argc, argv, "closed");
}


static int
ctl_switch_open(ctl_t *ctl, int argc, char **argv)
{
    return ctl_switch(ctl, argc, argv, "open");
}


const ctl_verb_t  ctl_close_verb = {
    "close",
    "ID|--all",
    "shut the entry of a sale, or of all of them",
    "Purchases are answered 50303 on every node within seckill_refresh; results are\n"
    "served on.  Closing twice changes nothing.  Prints who did it and when.  Refused\n"
    "(exit 4) for a sale that is paused or settled.\n"
    "\n"
    "      --all          the switch of all sales, beside their own ones\n",
    ctl_switch_close
};


const ctl_verb_t  ctl_open_verb = {
    "open",
    "ID|--all",
    "open the entry again",
    "Takes back \"close\": within seckill_refresh purchases are taken by every node.\n"
    "--all opens the switch of all sales; a sale closed by its id stays closed.\n"
    "Refused (exit 4) for a sale that is paused (\"restore\" opens it) or settled.\n"
    "\n"
    "      --all          the switch of all sales, beside their own ones\n",
    ctl_switch_open
};
