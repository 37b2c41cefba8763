/*
 * close, open: the entry of a sale, or of all of them.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl_target.h"

typedef struct {
    ctl_target_t  target;
    const char   *want;                 /* "open" or "closed" */
    int           switched;             /* 0: it was so already */
    char          was[32];
} ctl_switch_t;


static int
ctl_switch_refused(ctl_t *ctl, const ctl_switch_t *sw, const char *status)
{
    if (strcmp(status, "missing") == 0) {
        return ctl_target_missing(ctl, &sw->target);
    }

    return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is %s, which is no switch: %s",
                    sw->target.activity, sw->was, strcmp(sw->was, "paused") == 0
                    ? "Redis lost data, \"restore\" it" : "it is over for good");
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
        || skb_redis_at(reply, 0)->type != REDIS_REPLY_STRING
        || skb_redis_at(reply, 2)->type != REDIS_REPLY_STRING)
    {
        return ctl_fail(ctl, CTL_REFUSED, "lua/switch.lua gave an answer of another version");
    }

    status = skb_redis_text(reply, 0);
    sw->target.rev = ctl_reply_u64(skb_redis_at(reply, 1));
    snprintf(sw->was, sizeof(sw->was), "%s", skb_redis_text(reply, 2));
    sw->switched = strcmp(status, "switched") == 0;

    return sw->switched || strcmp(status, "unchanged") == 0 ? CTL_FINE
                                                            : ctl_switch_refused(ctl, sw, status);
}


static int
ctl_switch_redis(ctl_t *ctl, ctl_switch_t *sw)
{
    int          rc;
    redisReply  *reply;

    rc = ctl_target_eval(ctl, &sw->target, &reply, SK_SCRIPT_SWITCH,
                         (const char *[]) { sw->want, NULL });
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_switch_answer(ctl, sw, reply);
    freeReplyObject(reply);

    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_failpoint("after_switch");

    return ctl_target_told(ctl);
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
        ctl_target_print(&sw->target, when, actor);
        printf("%s%s\n", sw->want, sw->switched ? "" : ", as it was before");

        return CTL_FINE;
    }

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);
    ctl_target_json(&json, &sw->target);
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

        sw.target.all = 1;
    }

    if (argc - optind != !sw.target.all) {
        return ctl_usage(ctl, "one activity is wanted, or --all");
    }

    if (!sw.target.all) {
        rc = ctl_target_activity(ctl, &sw.target, argv[optind]);
        if (rc != CTL_FINE) {
            return rc;
        }
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
