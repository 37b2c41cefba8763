/*
 * The list of activities.
 */

#include <stdlib.h>
#include <string.h>

#include "ctl_activities.h"
#include "sk_id.h"


int
ctl_activities_read(ctl_t *ctl, ctl_activities_t *activities)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    size_t       i;
    redisReply  *reply;
    const redisReply  *id;

    memset(activities, 0, sizeof(*activities));

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_key_global(ctl, key, "activities");

    rc = ctl_redis(ctl, &reply, "SMEMBERS %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    activities->ids = reply->elements <= CTL_ACTIVITIES_MAX
                      ? calloc(reply->elements + 1, sizeof(uint64_t)) : NULL;

    if (activities->ids == NULL) {
        freeReplyObject(reply);
        return ctl_fail(ctl, CTL_PARTLY, "too many activities to list");
    }

    for (i = 0; i < reply->elements; i++) {
        id = skb_redis_at(reply, i);

        if (sk_id_parse(id->str, id->len, &activities->ids[activities->n]) == 0) {
            activities->n++;
        } else {
            ctl_warn("\"%s\" holds \"%.40s\", which is no activity", key,
                     skb_redis_text(reply, i));
        }
    }

    freeReplyObject(reply);
    qsort(activities->ids, activities->n, sizeof(uint64_t), ctl_id_cmp);

    return CTL_FINE;
}


void
ctl_activities_free(ctl_activities_t *activities)
{
    free(activities->ids);
    memset(activities, 0, sizeof(*activities));
}
