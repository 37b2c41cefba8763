/*
 * See the header.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_target.h"
#include "sk_id.h"


int
ctl_target_activity(ctl_t *ctl, ctl_target_t *target, const char *word)
{
    return sk_id_parse(word, strlen(word), &target->activity) == 0
           ? CTL_FINE : ctl_usage(ctl, "not an activity: \"%s\"", word);
}


int
ctl_target_eval(ctl_t *ctl, const ctl_target_t *target, redisReply **reply,
    sk_script_e script, const char **args)
{
    int          n, rc;
    char         key[SK_KEY_MAX + 1];
    const char  *all[2 + CTL_TARGET_ARGS] = { key, target->all ? "control" : "activity" };

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (target->all) {
        ctl_key_global(ctl, key, "control");
    } else {
        ctl_key(ctl, key, SK_KEY_ACTIVITY, target->activity, 0);
    }

    for (n = 0; n < CTL_TARGET_ARGS && args[n] != NULL; n++) {
        all[2 + n] = args[n];
    }

    return ctl_redis_eval(ctl, reply, script, 1, all, 1 + n);
}


int
ctl_target_missing(ctl_t *ctl, const ctl_target_t *target)
{
    if (target->all) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis has no control hash, nothing is sold: "
                        "preheat, or restore what was lost");
    }

    return ctl_fail(ctl, CTL_NO, "activity %" PRIu64 " is not in Redis: preheat it",
                    target->activity);
}


int
ctl_target_told(ctl_t *ctl)
{
    if (ctl_nodes_tell(ctl) != CTL_FINE) {
        ctl_warn("the nodes were not told: run it again");
        return CTL_PARTLY;
    }

    return CTL_FINE;
}


void
ctl_target_print(const ctl_target_t *target, const char *when, const char *actor)
{
    if (target->all) {
        printf("%s %s: all activities: ", when, actor);
    } else {
        printf("%s %s: activity %" PRIu64 ", rev %" PRIu64 ": ", when, actor, target->activity,
               target->rev);
    }
}


void
ctl_target_json(ctl_json_t *json, const ctl_target_t *target)
{
    if (target->all) {
        ctl_json_text(json, "activity", NULL);
    } else {
        ctl_json_id(json, "activity", target->activity);
        ctl_json_count(json, "rev", target->rev);
    }
}
