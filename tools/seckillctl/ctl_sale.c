/*
 * Reading a sale.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_sale.h"
#include "sk_id.h"

/* the consumer group of seckilld */
#define CTL_GROUP  "seckilld"


static void
ctl_copy(char *dst, size_t size, const char *src)
{
    snprintf(dst, size, "%s", src ? src : "");
}


static int
ctl_live_facts(ctl_t *ctl, ctl_live_t *live)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    size_t       i;
    uint64_t     n[9];
    int64_t      number;
    redisReply  *reply;

    ctl_key(ctl, key, SK_KEY_ACTIVITY, live->activity, 0);

    rc = ctl_redis(ctl, &reply, "HMGET %s product_id stock_limit start_ms end_ms "
                   "max_quantity eligible epoch rev seq price state limit limit_burst", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    for (i = 0; i < 9; i++) {
        number = skb_redis_number(skb_redis_at(reply, i));
        n[i] = number > 0 ? (uint64_t) number : 0;
    }

    if (reply->elements == 13 && skb_redis_at(reply, 10)->type == REDIS_REPLY_STRING) {
        live->exists = 1;
        (void) sk_id_parse(skb_redis_text(reply, 0), strlen(skb_redis_text(reply, 0)),
                           &live->product_id);
        live->stock_limit = n[1];
        live->start_ms = (int64_t) n[2];
        live->end_ms = (int64_t) n[3];
        live->max_quantity = n[4];
        live->by_registration = n[5] == 1;
        live->epoch = n[6];
        live->rev = n[7];
        live->seq = n[8];
        ctl_copy(live->price, sizeof(live->price), skb_redis_text(reply, 9));
        ctl_copy(live->state, sizeof(live->state), skb_redis_text(reply, 10));
        ctl_limit_take(&live->limit, skb_redis_at(reply, 11), skb_redis_at(reply, 12));
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


/*
 * Unread and pending of the group.  Redis says null for what it cannot count
 * (entries were deleted in between), and versions before 7 say nothing: that
 * stays unknown and never becomes 0.
 */
static int
ctl_live_group(ctl_t *ctl, ctl_live_t *live)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    size_t       i, k, found;
    redisReply  *reply;
    const redisReply  *group;

    ctl_key(ctl, key, SK_KEY_ORDERS, live->activity, 0);

    /* no stream yet is an error reply, and nothing known */
    rc = ctl_redis_try(ctl, &reply, "XINFO GROUPS %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    for (i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        group = skb_redis_at(reply, i);
        found = 0;

        for (k = 0; k + 1 < group->elements; k += 2) {
            if (strcmp(skb_redis_text(group, k), "name") == 0
                && strcmp(skb_redis_text(group, k + 1), CTL_GROUP) == 0)
            {
                found = 1;
            }
        }

        for (k = 0; found && k + 1 < group->elements; k += 2) {
            if (strcmp(skb_redis_text(group, k), "pending") == 0) {
                live->pending = skb_redis_number(skb_redis_at(group, k + 1));

            } else if (strcmp(skb_redis_text(group, k), "lag") == 0) {
                live->unread = skb_redis_number(skb_redis_at(group, k + 1));
            }
        }
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


static int
ctl_live_number(ctl_t *ctl, const char *command, sk_key_e which, uint64_t activity,
    int64_t *number)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    ctl_key(ctl, key, which, activity, 0);

    rc = ctl_redis(ctl, &reply, "%s %s", command, key);
    if (rc != CTL_FINE) {
        return rc;
    }

    *number = skb_redis_number(reply);
    freeReplyObject(reply);

    return CTL_FINE;
}


int
ctl_live_read(ctl_t *ctl, uint64_t activity, ctl_live_t *live)
{
    int          rc;
    redisReply  *reply;

    memset(live, 0, sizeof(*live));
    live->activity = activity;
    live->stock = live->buyers = live->stream = -1;
    live->unread = live->pending = live->dead = -1;

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_redis(ctl, &reply, "TIME");
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->elements == 2) {
        live->now_ms = strtoll(skb_redis_text(reply, 0), NULL, 10) * 1000
                       + strtoll(skb_redis_text(reply, 1), NULL, 10) / 1000;
    }

    freeReplyObject(reply);

    if ((rc = ctl_live_facts(ctl, live)) != CTL_FINE
        || (rc = ctl_live_number(ctl, "GET", SK_KEY_STOCK, activity, &live->stock)) != CTL_FINE
        || (rc = ctl_live_number(ctl, "SCARD", SK_KEY_BUYERS, activity, &live->buyers))
           != CTL_FINE
        || (rc = ctl_live_number(ctl, "XLEN", SK_KEY_ORDERS, activity, &live->stream))
           != CTL_FINE
        || (rc = ctl_live_number(ctl, "XLEN", SK_KEY_DEAD, activity, &live->dead)) != CTL_FINE)
    {
        return rc;
    }

    return ctl_live_group(ctl, live);
}


const char *
ctl_live_phase(const ctl_live_t *live)
{
    if (!live->exists) {
        return "not_preheated";
    }

    if (strcmp(live->state, "open") != 0) {
        return live->state;
    }

    if (live->now_ms < live->start_ms) {
        return "not_started";
    }

    return live->now_ms < live->end_ms ? "running" : "ended";
}


int
ctl_row_read(ctl_t *ctl, uint64_t activity, int lock, ctl_row_t *row)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    memset(row, 0, sizeof(*row));

    rc = ctl_open_mysql(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    /* the columns are UTC; the difference does not ask any zone */
    rc = ctl_sql(ctl, &res,
                 "SELECT product_id, seckill_price, stock_limit, "
                 "TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', start_time) * 1000, "
                 "TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', end_time) * 1000, "
                 "status, sold, max_quantity, by_registration, epoch, returned, seq_seen "
                 "FROM seckill_activities WHERE id = %" PRIu64 "%s",
                 activity, lock ? " FOR UPDATE" : "");
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column) {
        row->exists = 1;
        row->product_id = ctl_column_u64(column[0]);
        ctl_copy(row->price, sizeof(row->price), column[1]);
        row->stock_limit = ctl_column_u64(column[2]);
        row->start_ms = ctl_column_i64(column[3]);
        row->end_ms = ctl_column_i64(column[4]);
        row->status = (int) ctl_column_i64(column[5]);
        row->sold = ctl_column_u64(column[6]);
        row->max_quantity = ctl_column_u64(column[7]);
        row->by_registration = ctl_column_u64(column[8]) != 0;
        row->epoch = ctl_column_u64(column[9]);
        row->returned = ctl_column_u64(column[10]);
        row->seq_seen = ctl_column_u64(column[11]);
    }

    mysql_free_result(res);

    return CTL_FINE;
}


int
ctl_orders_count(ctl_t *ctl, uint64_t activity, uint64_t *orders, uint64_t *units)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_open_mysql(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_sql(ctl, &res, "SELECT COUNT(*), COALESCE(SUM(quantity), 0) FROM seckill_orders "
                 "WHERE activity_id = %" PRIu64, activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *orders = column ? ctl_column_u64(column[0]) : 0;
    *units = column ? ctl_column_u64(column[1]) : 0;
    mysql_free_result(res);

    return CTL_FINE;
}
