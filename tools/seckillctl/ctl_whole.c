/*
 * See the header.
 */

#include <stdio.h>

#include "ctl_backend.h"
#include "ctl_whole.h"

#define CTL_WHOLE_KEYS  5


int
ctl_whole_read(ctl_t *ctl, uint64_t activity, char status[CTL_WHOLE_MAX],
    char why[CTL_WHOLE_MAX])
{
    int          rc;
    char         keys[CTL_WHOLE_KEYS][SK_KEY_MAX + 1];
    size_t       i;
    const char  *argv[CTL_WHOLE_KEYS];
    redisReply  *reply;

    static const sk_key_e  which[CTL_WHOLE_KEYS] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_ORDERS, SK_KEY_ELIGIBLE
    };

    status[0] = why[0] = '\0';

    for (i = 0; i < CTL_WHOLE_KEYS; i++) {
        ctl_key(ctl, keys[i], which[i], activity, 0);
        argv[i] = keys[i];
    }

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_FACTS, CTL_WHOLE_KEYS, argv, 0);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 1
        || reply->element[0]->type != REDIS_REPLY_STRING)
    {
        snprintf(why, CTL_WHOLE_MAX, "%s", reply->type == REDIS_REPLY_ERROR ? reply->str
                 : "no answer");
    } else {
        snprintf(status, CTL_WHOLE_MAX, "%s", reply->element[0]->str);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}
