/*
 * See the header.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_lost.h"
#include "skb_control.h"
#include "skb_redis.h"
#include "skb_sales.h"
#include "skb_token_key.h"


static int
ctl_lost_read(ctl_t *ctl, skb_sales_t *sales)
{
    int        rc;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "%s", SKB_SALES_SQL);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (skb_sales_take(sales, res) != 0) {
        rc = ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    mysql_free_result(res);

    return rc;
}


static int
ctl_lost_mark(ctl_t *ctl)
{
    int           rc;
    size_t        i;
    redisReply   *reply;
    skb_sales_t   sales = { NULL, 0 };

    rc = ctl_lost_read(ctl, &sales);

    if (rc == CTL_FINE
        && skb_sales_mark(ctl_redis_context(ctl), ctl_config(ctl), &sales, &reply) != 0)
    {
        rc = ctl_fail(ctl, CTL_UNREACHABLE, "Redis: %s",
                      skb_redis_reason(ctl_redis_context(ctl), reply));
        freeReplyObject(reply);
    }

    for (i = 0; rc == CTL_FINE && i < sales.n; i++) {
        if (sales.all[i].lost && sales.all[i].begun) {
            ctl_warn("Redis lost activity %" PRIu64 ": restore it", sales.all[i].activity);
        }
    }

    skb_sales_free(&sales);

    return rc;
}


int
ctl_control_ready(ctl_t *ctl)
{
    int          rc, there;
    char         key[SK_KEY_MAX + 1], hex[SKB_TOKEN_KEY_HEX + 1];
    redisReply  *reply;

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE || (rc = ctl_open_redis(ctl)) != CTL_FINE) {
        return rc;
    }

    ctl_key_global(ctl, key, "control");

    rc = ctl_redis(ctl, &reply, "HEXISTS %s rev", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    there = reply->integer == 1;
    freeReplyObject(reply);

    if ((!there && (rc = ctl_lost_mark(ctl)) != CTL_FINE)
        || (rc = ctl_token_key(ctl, hex)) != CTL_FINE)
    {
        return rc;
    }

    reply = skb_control_make(ctl_redis_context(ctl), ctl_config(ctl), hex);
    explicit_bzero(hex, sizeof(hex));

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = reply ? ctl_redis_refused(ctl, reply)
                   : ctl_fail(ctl, CTL_UNREACHABLE, "Redis: %s",
                              skb_redis_reason(ctl_redis_context(ctl), NULL));
    }

    freeReplyObject(reply);

    return rc;
}


int
ctl_register(ctl_t *ctl, uint64_t activity)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    rc = ctl_control_ready(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_key_global(ctl, key, "activities");

    rc = ctl_redis(ctl, &reply, "SADD %s %" PRIu64, key, activity);

    if (rc == CTL_FINE) {
        freeReplyObject(reply);
    }

    return rc;
}


int
ctl_activities_opened(ctl_t *ctl, ctl_activities_t *activities)
{
    int          rc;
    void        *ids;
    size_t       i, listed;
    skb_sales_t  sales = { NULL, 0 };

    rc = ctl_lost_read(ctl, &sales);

    if (rc == CTL_FINE) {
        listed = activities->n;
        ids = realloc(activities->ids, (listed + sales.n + 1) * sizeof(uint64_t));

        if (ids == NULL) {
            rc = ctl_fail(ctl, CTL_PARTLY, "out of memory");

        } else {
            activities->ids = ids;

            for (i = 0; i < sales.n; i++) {
                if (bsearch(&sales.all[i].activity, activities->ids, listed, sizeof(uint64_t),
                            ctl_id_cmp) == NULL)
                {
                    activities->ids[activities->n++] = sales.all[i].activity;
                }
            }

            qsort(activities->ids, activities->n, sizeof(uint64_t), ctl_id_cmp);
        }
    }

    skb_sales_free(&sales);

    return rc;
}


int
ctl_activity_opened(ctl_t *ctl, uint64_t activity, int *opened)
{
    int        rc;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT 1 FROM seckill_stock_log WHERE activity_id = %" PRIu64
                 " AND kind IN ('open', 'restore') LIMIT 1", activity);

    if (rc == CTL_FINE) {
        *opened = mysql_num_rows(res) > 0;
        mysql_free_result(res);
    }

    return rc;
}
