/*
 * settle: the end of a sale, as the daemon does it by itself.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_json.h"
#include "sk_id.h"
#include "skb_clock_trust.h"
#include "skb_settle.h"

enum {
    CTL_OPT_CLOCK_OK = CTL_OPT + 1,
    CTL_OPT_MISSING_OK
};


static int
ctl_settle_failed(ctl_t *ctl, uint64_t activity, skb_settle_e how, const skb_settle_t *settle)
{
    if (how == SKB_SETTLE_WAIT && strcmp(settle->why, "missing") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "%" PRIu64 " buyers of activity %" PRIu64 " have no "
                        "order: \"reconcile %" PRIu64 "\" names them; or --missing-ok",
                        settle->missing, activity, activity);
    }

    if (how == SKB_SETTLE_WAIT) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " cannot be settled yet: %s",
                        activity, strcmp(settle->why, "running") == 0 ? "it has not ended"
                        : strcmp(settle->why, "dead") == 0 ? "dead letters wait for a decision"
                        : "purchases are not written yet");
    }

    if (settle->booked) {
        return ctl_fail(ctl, CTL_PARTLY, "%s; MySQL has settled the sale, %" PRIu64 " units went "
                        "back to the product; not done: the keys' expiry in Redis, run it again",
                        settle->error, settle->unsold);
    }

    return ctl_fail(ctl, how == SKB_SETTLE_REFUSED ? CTL_REFUSED
                    : settle->expire_ms ? CTL_PARTLY : CTL_UNREACHABLE, "%s%s%s", settle->error,
                    how != SKB_SETTLE_REFUSED && settle->expire_ms
                    ? "; Redis has closed the sale, what MySQL did is not known" : "",
                    how == SKB_SETTLE_REFUSED ? "" : "; run it again");
}


static int
ctl_settle_tell(ctl_t *ctl, uint64_t activity, skb_settle_e how, const skb_settle_t *settle)
{
    char        when[CTL_TIME_MAX];
    ctl_json_t  json;

    ctl_time_utc(when, (int64_t) settle->expire_ms);

    if (!ctl->json) {
        printf("activity %" PRIu64 ": %s\n", activity,
               how == SKB_SETTLE_DONE ? "settled" : "was settled before");
        printf("  sold     %" PRIu64 " units, %" PRIu64 " went back to products.stock\n",
               settle->sold, settle->unsold);
        printf("  keys     %s%s\n", settle->expire_ms ? "expire at " : "are gone",
               settle->expire_ms ? when : "");

        return CTL_FINE;
    }

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);
    ctl_json_id(&json, "activity", activity);
    ctl_json_bool(&json, "already", how == SKB_SETTLE_ALREADY);
    ctl_json_count(&json, "sold", settle->sold);
    ctl_json_count(&json, "unsold", settle->unsold);
    ctl_json_known(&json, "expire_ms", settle->expire_ms ? (int64_t) settle->expire_ms : -1);
    ctl_json_map_end(&json);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


/* Both clocks must be to be believed, for this can't be taken back; or somebody says so. */
static int
ctl_settle_clocks(ctl_t *ctl, int clock_ok, uint64_t *now_ms)
{
    char                 why[CTL_MESSAGE_MAX];
    int64_t              ms = 0;
    redisContext        *redis = ctl_redis_context(ctl);
    skb_clocks_e         verdict = SKB_CLOCKS_FINE;
    skb_clock_reading_t  reading;

    why[0] = '\0';

    if (!clock_ok) {
        verdict = skb_clocks_ask(redis, ctl_mysql(ctl), &ms, why, sizeof(why));

    } else if (skb_clock_read_redis(redis, &reading, why, sizeof(why)) == SKB_REDIS_FINE) {
        ms = reading.ms;

    } else {
        verdict = SKB_CLOCKS_FAILED;
    }

    *now_ms = (uint64_t) ms;

    if (verdict == SKB_CLOCKS_FAILED) {
        return ctl_fail(ctl, CTL_UNREACHABLE, "the clocks can't be read: %s", why);
    }

    return verdict == SKB_CLOCKS_FINE
           ? CTL_FINE
           : ctl_fail(ctl, CTL_REFUSED, "%s: let NTP set them, then run it again; or --clock-ok "
                      "when the sale has really ended", why);
}


static int
ctl_settle_run(ctl_t *ctl, int argc, char **argv)
{
    int           opt, rc, yes, clock_ok, missing_ok;
    char          actor[CTL_ACTOR_MAX];
    uint64_t      activity, now_ms;
    skb_settle_e  how;
    skb_settle_t  settle;

    static const struct option  options[] = {
        { "yes",      no_argument, NULL, CTL_OPT },
        { "clock-ok", no_argument, NULL, CTL_OPT_CLOCK_OK },
        { "missing-ok", no_argument, NULL, CTL_OPT_MISSING_OK },
        CTL_OPTIONS
    };

    yes = 0;
    clock_ok = 0;
    missing_ok = 0;

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        if (opt == CTL_OPT_CLOCK_OK) {
            clock_ok = 1;
        } else if (opt == CTL_OPT_MISSING_OK) {
            missing_ok = 1;
        } else {
            yes = 1;
        }
    }

    if (argc - optind != 1) {
        return ctl_usage(ctl, "one activity is wanted");
    }

    if (sk_id_parse(argv[optind], strlen(argv[optind]), &activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[optind]);
    }

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE
        || (rc = ctl_open_redis(ctl)) != CTL_FINE
        || (rc = ctl_confirm(ctl, yes, activity, "The sale is closed for good")) != CTL_FINE
        || (rc = ctl_activity_lock(ctl, activity)) != CTL_FINE
        || (rc = ctl_settle_clocks(ctl, clock_ok, &now_ms)) != CTL_FINE)
    {
        return rc;
    }

    ctl_actor(actor, sizeof(actor));
    how = skb_settle(ctl_redis_context(ctl), ctl_mysql(ctl), ctl_config(ctl), activity, actor,
                     now_ms, missing_ok, &settle);

    return how == SKB_SETTLE_DONE || how == SKB_SETTLE_ALREADY
           ? ctl_settle_tell(ctl, activity, how, &settle)
           : ctl_settle_failed(ctl, activity, how, &settle);
}


const ctl_verb_t  ctl_settle_verb = {
    "settle",
    "ID [--yes] [--clock-ok] [--missing-ok]",
    "close a sale for good after its end",
    "Gives unsold units back to products.stock, sets status 2, and lets the keys in\n"
    "Redis expire after a day.  seckilld does it by itself.  Refused (exit 4) before the\n"
    "end, while purchases are unread, pending or dead letters, while buyers in Redis have\n"
    "no order, and while the clocks of Redis and MySQL are not to be believed: both are\n"
    "read twice, a second apart.\n"
    "\n"
    "      --yes          do not ask\n"
    "      --clock-ok     by Redis' clock, whatever MySQL's says\n"
    "      --missing-ok   buyers without an order are given up without a word to them\n",
    ctl_settle_run
};
