/*
 * limit: how often a user may buy, of one sale or of all, in place of what nginx
 * is configured with.  lua/limit.lua writes it; then rev of the control hash tells
 * every node, as for ctl_switch.c.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "ctl_control.h"
#include "ctl_target.h"
#include "ctl_text.h"

typedef struct {
    ctl_target_t  target;
    ctl_limit_t   now;                  /* none: "default" was said */
    ctl_limit_t   was;
    int           changed;              /* 0: it was so already */
} ctl_limit_run_t;


/* { status, rev, rate, burst } */
static int
ctl_limit_answer(ctl_t *ctl, ctl_limit_run_t *run, const redisReply *reply)
{
    const char  *status;

    if (reply->type == REDIS_REPLY_ERROR) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis: %s", reply->str);
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4
        || skb_redis_at(reply, 0)->type != REDIS_REPLY_STRING)
    {
        return ctl_fail(ctl, CTL_REFUSED, "lua/limit.lua gave an answer of another version");
    }

    status = skb_redis_text(reply, 0);
    run->target.rev = ctl_reply_u64(skb_redis_at(reply, 1));
    ctl_limit_take(&run->was, skb_redis_at(reply, 2), skb_redis_at(reply, 3));
    run->changed = strcmp(status, "set") == 0;

    if (strcmp(status, "missing") == 0) {
        return ctl_target_missing(ctl, &run->target);
    }

    return run->changed || strcmp(status, "unchanged") == 0
           ? CTL_FINE
           : ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is settled, it is over for good",
                      run->target.activity);
}


static int
ctl_limit_redis(ctl_t *ctl, ctl_limit_run_t *run)
{
    int          rc;
    char         burst[24];
    redisReply  *reply;

    snprintf(burst, sizeof(burst), "%" PRIu64, run->now.burst);

    rc = ctl_target_eval(ctl, &run->target, &reply, SK_SCRIPT_LIMIT,
                         (const char *[]) { run->now.rate[0] ? run->now.rate : "default", burst,
                                            NULL });
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_limit_answer(ctl, run, reply);
    freeReplyObject(reply);

    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_failpoint("after_limit");

    return ctl_target_told(ctl);
}


static void
ctl_limit_print(const ctl_limit_run_t *run, const char *when, const char *actor)
{
    char  text[CTL_LIMIT_TEXT], was[CTL_LIMIT_TEXT];

    ctl_target_print(&run->target, when, actor);
    ctl_limit_text(text, &run->now);
    ctl_limit_text(was, &run->was);
    printf("limit of a user %s, ", ctl_shown(text));

    if (run->changed) {
        printf("before that %s\n", ctl_shown(was));
    } else {
        puts("as it was before");
    }
}


static int
ctl_limit_tell(ctl_t *ctl, const ctl_limit_run_t *run)
{
    char        when[CTL_TIME_MAX], actor[CTL_ACTOR_MAX];
    int64_t     now_ms;
    ctl_json_t  json;

    now_ms = (int64_t) time(NULL) * 1000;
    ctl_time_utc(when, now_ms);
    ctl_actor(actor, sizeof(actor));

    if (!ctl->json) {
        ctl_limit_print(run, when, actor);
        return CTL_FINE;
    }

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);
    ctl_target_json(&json, &run->target);
    ctl_limit_json(&json, "limit", &run->now);
    ctl_limit_json(&json, "was", &run->was);
    ctl_json_text(&json, "actor", actor);
    ctl_json_count(&json, "time_ms", (uint64_t) now_ms);
    ctl_json_map_end(&json);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


/* RATE [burst=N] */
static int
ctl_limit_words(ctl_t *ctl, int argc, char **argv, ctl_limit_run_t *run)
{
    uint32_t     interval_ms, n;
    const char  *rate, *burst;

    if (argc < 1 || argc > 2) {
        return ctl_usage(ctl, "one activity or --all, a rate, and perhaps burst=N are wanted");
    }

    rate = argv[0];
    burst = argc == 2 ? argv[1] : "burst=0";

    if (strcmp(rate, "off") != 0 && strcmp(rate, "default") != 0) {

        if (rate[0] == '0' || sk_rate_parse(rate, strlen(rate), &interval_ms) != 0) {
            return ctl_usage(ctl, "a rate is 1r/s..1000r/s, 1r/m..1000r/m, off or default, "
                             "not \"%s\"", rate);
        }

    } else if (argc == 2) {
        return ctl_usage(ctl, "\"%s\" has no burst", rate);
    }

    if (strncmp(burst, "burst=", 6) != 0
        || sk_burst_parse(burst + 6, strlen(burst + 6), &n) != 0)
    {
        return ctl_usage(ctl, "burst=0..1000 is wanted, not \"%s\"", burst);
    }

    if (strcmp(rate, "default") != 0) {
        snprintf(run->now.rate, sizeof(run->now.rate), "%s", rate);
        run->now.burst = n;
    }

    return CTL_FINE;
}


static int
ctl_limit(ctl_t *ctl, int argc, char **argv)
{
    int              opt, rc;
    ctl_limit_run_t  run;

    static const struct option  options[] = {
        { "all", no_argument, NULL, CTL_OPT },
        CTL_OPTIONS
    };

    memset(&run, 0, sizeof(run));

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        run.target.all = 1;
    }

    if (!run.target.all) {
        if (optind == argc) {
            return ctl_usage(ctl, "one activity is wanted, or --all");
        }

        rc = ctl_target_activity(ctl, &run.target, argv[optind++]);
        if (rc != CTL_FINE) {
            return rc;
        }
    }

    rc = ctl_limit_words(ctl, argc - optind, argv + optind, &run);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_limit_redis(ctl, &run);

    return rc == CTL_FINE ? ctl_limit_tell(ctl, &run) : rc;
}


const ctl_verb_t  ctl_limit_verb = {
    "limit",
    "ID|--all RATE|off|default [burst=N]",
    "how often a user may buy, while the sale runs",
    "Takes the place of nginx' \"seckill_limit\" on every node within seckill_refresh;\n"
    "scope and dry_run stay as configured, and so does the limit of polls.  The limit of\n"
    "a sale beats that of all sales, which beats nginx' own.  Prints who set it and when.\n"
    "It is kept over preheat and restock, and over restore unless Redis lost it.\n"
    "Refused (exit 4) for a sale that is settled.\n"
    "\n"
    "      RATE           1r/s..1000r/s or 1r/m..1000r/m\n"
    "      off            no limit\n"
    "      default        takes it back: the next one in line is in force\n"
    "      burst=N        so many more at once, 0..1000\n"
    "      --all          the limit of all sales that have none of their own\n",
    ctl_limit
};
