/*
 * doctor, one sale: every key of it is there, and holds what it must.
 */

#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"

#define CTL_FACTS_KEYS  5


/* what lua/facts.lua says: "whole", or the first thing that is missing */
int
ctl_doctor_whole(ctl_doctor_t *doctor, const ctl_live_t *live)
{
    int          rc;
    char         keys[CTL_FACTS_KEYS][SK_KEY_MAX + 1];
    size_t       i;
    const char  *argv[CTL_FACTS_KEYS], *status;
    redisReply  *reply;

    static const sk_key_e  which[CTL_FACTS_KEYS] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_ORDERS, SK_KEY_ELIGIBLE
    };

    for (i = 0; i < CTL_FACTS_KEYS; i++) {
        ctl_key(doctor->ctl, keys[i], which[i], live->activity, 0);
        argv[i] = keys[i];
    }

    rc = ctl_redis_eval(doctor->ctl, &reply, SK_SCRIPT_FACTS, CTL_FACTS_KEYS, argv, 0);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 1
        || reply->element[0]->type != REDIS_REPLY_STRING)
    {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "whole", "look at the rights of the tool's user",
                        "not known, %s", reply->type == REDIS_REPLY_ERROR ? reply->str
                        : "no answer");
        freeReplyObject(reply);
        return CTL_FINE;
    }

    status = reply->element[0]->str;

    if (strcmp(status, "whole") == 0) {
        ctl_doctor_tell(doctor, CTL_IS_OK, "whole", "", "stock, buyers and stream are there");

    } else {
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "whole", strcmp(status, "eligible") == 0
                        ? "load the registered users again: until then nothing is sold"
                        : "seckillctl restore ID", "Redis lost data of the sale: %s", status);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}
