/*
 * Orders that nobody paid: cancelled by a conditional update, so that of a late
 * payment and the cancel one wins, whoever of several daemons does it.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sk_order_no.h"
#include "skb_log.h"
#include "skd_clocks.h"
#include "skd_keeper.h"
#include "skd_pause.h"
#include "skd_rows.h"
#include "skd_units.h"

#define SKD_UNPAID_MAX    500           /* orders of one transaction */
#define SKD_UNPAID_TURNS  20            /* transactions of one tick */
#define SKD_UNPAID_BAD    8             /* orders that fail, until the activity is put aside */
#define SKD_UNPAID_TIME   15            /* digits of an order_no that are its time */
#define SKD_UNPAID_REF    "order:"      /* of the ledger, before the order_no */

/* Cancelled ones of one activity. */
typedef struct {
    uint64_t     activity;
    uint64_t     ids[SKD_UNPAID_MAX];
    size_t       count;

    /* from its row, locked */
    uint64_t     product;
    uint64_t     epoch;
    const char  *target;                /* of the ledger */

    /* still unpaid under the lock */
    uint64_t     units;
    uint64_t     quantities[SKD_UNPAID_MAX];
    char         refs[SKD_UNPAID_MAX][48];      /* of the ledger */
} skd_unpaid_t;


static void
skd_unpaid_ids(skd_sql_t *sql, const skd_unpaid_t *unpaid)
{
    for (size_t i = 0; i < unpaid->count; i++) {
        skd_sql_text(sql, i > 0 ? "," : "");
        skd_sql_u64(sql, unpaid->ids[i]);
    }
}


/* What failed a moment ago is left alone for a while, so that it can't hide the rest. */
static void
skd_unpaid_leave_out(skd_sql_t *sql)
{
    size_t         n, activities = 0, orders = 0;
    int64_t        now = skd_now_ms();
    skd_trouble_t  troubles[SKD_TROUBLES_MAX];

    n = skd_troubles_get(troubles);

    for (size_t i = 0; i < n; i++) {
        if (troubles[i].duty == SKD_DUTY_UNPAID && troubles[i].order == 0
            && troubles[i].activity != 0 && troubles[i].next_ms > now)
        {
            skd_sql_text(sql, activities++ == 0 ? " AND activity_id NOT IN (" : ",");
            skd_sql_u64(sql, troubles[i].activity);
        }
    }

    skd_sql_text(sql, activities > 0 ? ")" : "");

    for (size_t i = 0; i < n; i++) {
        if (troubles[i].duty == SKD_DUTY_UNPAID && troubles[i].order != 0
            && troubles[i].next_ms > now)
        {
            skd_sql_text(sql, orders++ == 0 ? " AND id NOT IN (" : ",");
            skd_sql_u64(sql, troubles[i].order);
        }
    }

    skd_sql_text(sql, orders > 0 ? ")" : "");
}


/*
 * An order is as old as the smaller of two ages: that of created_at, by MySQL's
 * clock, and that of its number, which begins with Redis' time.  Both are held
 * against what the clocks said at the tick, so that a step behind it cancels nothing.
 */
static void
skd_unpaid_age(skd_keeper_t *keeper, skd_sql_t *sql)
{
    char           text[32], digits[SK_ORDER_NO_LEN];
    uint64_t       timeout_ms = keeper->config->consumer.pay_timeout_ms;
    sk_order_no_t  no;

    snprintf(text, sizeof(text), "%" PRIu64 ".%03u", (keeper->mysql_ms - timeout_ms) / 1000,
             (unsigned) ((keeper->mysql_ms - timeout_ms) % 1000));
    skd_sql_text(sql, "created_at < FROM_UNIXTIME(");
    skd_sql_text(sql, text);

    memset(&no, 0, sizeof(no));
    no.accepted_ms = keeper->now_ms - timeout_ms;
    sk_order_no_format(digits, &no);
    skd_sql_text(sql, ") AND (LENGTH(order_no) <> 32 OR order_no < '");
    skd_sql_bytes(sql, digits, SKD_UNPAID_TIME);
    skd_sql_text(sql, "')");
}


/* Reads without a lock: the oldest ones, and of them those of the first one's activity. */
static skd_rc_e
skd_unpaid_find(skd_keeper_t *keeper, skd_unpaid_t *unpaid)
{
    uint64_t    activity;
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;
    skd_sql_t  *sql = &keeper->writer.sql;

    skd_sql_begin(sql, "SELECT id, activity_id, order_no FROM seckill_orders "
                       "WHERE status = 1 AND ");
    skd_unpaid_age(keeper, sql);
    skd_unpaid_leave_out(sql);
    skd_sql_text(sql, " ORDER BY created_at LIMIT ");
    skd_sql_u64(sql, SKD_UNPAID_MAX);

    unpaid->count = 0;
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        activity = strtoull(row[1], NULL, 10);

        if (unpaid->count == 0) {
            unpaid->activity = activity;
        }

        if (activity == unpaid->activity) {
            snprintf(unpaid->refs[unpaid->count], sizeof(unpaid->refs[0]), SKD_UNPAID_REF "%s",
                     row[2]);
            unpaid->ids[unpaid->count++] = strtoull(row[0], NULL, 10);
        }
    }

    mysql_free_result(res);

    return SKD_OK;
}


/* The product that the units came from, whatever the row says by now. */
static skd_rc_e
skd_unpaid_product(skd_keeper_t *keeper, skd_unpaid_t *unpaid)
{
    skd_writer_t  *writer = &keeper->writer;

    return skb_ledger_product(writer->mysql, unpaid->activity, unpaid->product,
                              &unpaid->product, writer->error) == SKB_LEDGER_ADDED
           ? SKD_OK : skd_rows_failed(writer);
}


/* Locks the activity; a settled sale's units can go to the product only. */
static skd_rc_e
skd_unpaid_lock(skd_keeper_t *keeper, skd_unpaid_t *unpaid)
{
    int         ended;
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;
    skd_sql_t  *sql = &keeper->writer.sql;

    skd_sql_begin(sql, "SELECT product_id, epoch, status FROM seckill_activities WHERE id = ");
    skd_sql_u64(sql, unpaid->activity);
    skd_sql_text(sql, " FOR UPDATE");
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    row = mysql_fetch_row(res);
    unpaid->target = "";

    if (row != NULL) {
        unpaid->product = strtoull(row[0], NULL, 10);
        unpaid->epoch = strtoull(row[1], NULL, 10);
        ended = row[2][0] == '2';

        if (keeper->config->consumer.cancelled_units == SKB_CANCELLED_ACTIVITY && !ended) {
            unpaid->target = "redis";

        } else if (keeper->config->consumer.cancelled_units != SKB_CANCELLED_NONE) {
            unpaid->target = "product";
        }
    }

    mysql_free_result(res);

    return skd_unpaid_product(keeper, unpaid);
}


/* Those that are unpaid to this moment, under their locks. */
static skd_rc_e
skd_unpaid_still(skd_keeper_t *keeper, skd_unpaid_t *unpaid)
{
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;
    skd_sql_t  *sql = &keeper->writer.sql;

    skd_sql_begin(sql, "SELECT id, order_no, quantity FROM seckill_orders WHERE id IN (");
    skd_unpaid_ids(sql, unpaid);
    skd_sql_text(sql, ") AND status = 1 FOR UPDATE");
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    unpaid->count = 0;
    unpaid->units = 0;

    while ((row = mysql_fetch_row(res)) != NULL) {
        snprintf(unpaid->refs[unpaid->count], sizeof(unpaid->refs[0]), SKD_UNPAID_REF "%s",
                 row[1]);
        unpaid->quantities[unpaid->count] = strtoull(row[2], NULL, 10);
        unpaid->units += unpaid->quantities[unpaid->count];
        unpaid->ids[unpaid->count++] = strtoull(row[0], NULL, 10);
    }

    mysql_free_result(res);

    return SKD_OK;
}


/* The ledger's lines about them, and with these the units. */
static skd_rc_e
skd_unpaid_book(skd_keeper_t *keeper, const skd_unpaid_t *unpaid)
{
    skb_movement_t  moved[SKD_UNPAID_MAX];

    for (size_t i = 0; i < unpaid->count; i++) {
        moved[i] = (skb_movement_t) {
            unpaid->activity, unpaid->product, unpaid->epoch, "cancel", unpaid->refs[i],
            (int64_t) unpaid->quantities[i], unpaid->target, "seckilld", "not paid in time"
        };
    }

    return skd_units_move(&keeper->writer, moved, unpaid->count);
}


static skd_rc_e
skd_unpaid_write(skd_keeper_t *keeper, skd_unpaid_t *unpaid)
{
    skd_rc_e    rc;
    skd_sql_t  *sql = &keeper->writer.sql;

    skd_sql_begin(sql, "UPDATE seckill_orders SET status = 3 WHERE id IN (");
    skd_unpaid_ids(sql, unpaid);
    skd_sql_text(sql, ") AND status = 1");
    rc = skd_rows_run(&keeper->writer, NULL);

    return rc == SKD_OK ? skd_unpaid_book(keeper, unpaid) : rc;
}


static skd_rc_e
skd_unpaid_cancel(skd_keeper_t *keeper, skd_unpaid_t *unpaid)
{
    skd_rc_e  rc;

    rc = skd_rows_exec(&keeper->writer, "START TRANSACTION");

    if (rc == SKD_OK) {
        rc = skd_unpaid_lock(keeper, unpaid);
    }

    if (rc == SKD_OK) {
        rc = skd_unpaid_still(keeper, unpaid);
    }

    if (rc == SKD_OK && unpaid->count > 0) {
        rc = skd_unpaid_write(keeper, unpaid);
    }

    if (rc == SKD_OK) {
        rc = skd_rows_exec(&keeper->writer, "COMMIT");
    }

    if (rc == SKD_OK) {
        return SKD_OK;
    }

    if (rc != SKD_MYSQL_LOST && mysql_rollback(keeper->writer.mysql)) {
        rc = SKD_MYSQL_LOST;
    }

    return rc;
}


/* Units that the ledger ever put back on sale. */
static skd_rc_e
skd_unpaid_total(skd_keeper_t *keeper, uint64_t activity, char *total, size_t size)
{
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;
    skd_sql_t  *sql = &keeper->writer.sql;

    skd_sql_begin(sql, "SELECT COALESCE(SUM(units), 0) FROM seckill_stock_log "
                       "WHERE target = 'redis' AND activity_id = ");
    skd_sql_u64(sql, activity);
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc == SKD_OK) {
        row = mysql_fetch_row(res);
        snprintf(total, size, "%s", row != NULL && row[0] != NULL ? row[0] : "0");
        mysql_free_result(res);
    }

    return rc;
}


/* Redis takes the total, so that a repeat adds nothing and a lost step is made up for. */
static skd_rc_e
skd_unpaid_release(skd_keeper_t *keeper, skd_stream_t *stream)
{
    char         keys[4][SK_KEY_MAX + 1], channel[SK_KEY_MAX + 1], epoch[24], total[24];
    size_t       n = strlen(keeper->config->redis.prefix);
    skd_rc_e     rc;
    long long    added = 0;
    const char  *prefix = keeper->config->redis.prefix;
    redisReply  *reply;

    static const sk_key_e  which[] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_DEAD
    };

    rc = skd_unpaid_total(keeper, stream->activity, total, sizeof(total));

    if (rc != SKD_OK) {
        return rc;
    }

    for (int i = 0; i < 4; i++) {
        keys[i][sk_key(keys[i], prefix, n, which[i], stream->activity, 0)] = '\0';
    }

    channel[sk_key(channel, prefix, n, SK_KEY_RESULTS, stream->activity, 0)] = '\0';
    snprintf(epoch, sizeof(epoch), "%" PRIu64, stream->care.row_epoch);

    reply = skb_redis_script(keeper->reader.redis, SK_SCRIPT_RELEASE, 4, 8, (const char *[]) {
                                 keys[0], keys[1], keys[2], keys[3], epoch, total, channel,
                                 "{\"success\":false,\"reason\":\"cancelled\"}"
                             }, NULL);

    if (skb_redis_class(reply) != SKB_REDIS_FINE || reply->elements < 1) {
        rc = skd_reader_failed(&keeper->reader, reply);

    } else {
        added = skb_redis_at(reply, 0)->integer;
        stream->care.released = 1;
    }

    freeReplyObject(reply);

    if (rc != SKD_OK || added == 0) {
        return rc;
    }

    skb_log(SKB_NOTICE, "cancelled units are on sale again",
            "activity=%" PRIu64 " units=%lld", stream->activity, added);

    return skd_pause_raise(&keeper->reader);
}


static skd_rc_e
skd_unpaid_release_all(skd_keeper_t *keeper)
{
    skd_rc_e       rc = SKD_OK;
    skd_stream_t  *stream;

    for (size_t i = 0; rc == SKD_OK && i < keeper->activities.count; i++) {
        stream = &keeper->activities.streams[i];

        if (stream->care.released || !stream->care.has_facts || !stream->care.has_row
            || stream->care.epoch != stream->care.row_epoch
            || stream->care.unread || strcmp(stream->care.state, "settled") == 0
            || skd_trouble_aside(SKD_DUTY_RELEASE, stream->activity))
        {
            continue;
        }

        rc = skd_unpaid_release(keeper, stream);
        rc = skd_keeper_failed(keeper, SKD_DUTY_RELEASE, stream->activity, rc);
    }

    return rc;
}


static void
skd_unpaid_done(skd_keeper_t *keeper, const skd_unpaid_t *unpaid)
{
    skd_stream_t  *stream;

    if (unpaid->count > 0) {
        skd_count(SKD_COUNT_CANCELLED, unpaid->count);
        skb_log(SKB_INFO, "unpaid orders cancelled",
                "activity=%" PRIu64 " orders=%zu units=%" PRIu64 " to=%s",
                unpaid->activity, unpaid->count, unpaid->units,
                unpaid->target[0] != '\0' ? unpaid->target : "none");
    }

    for (size_t i = 0; i < unpaid->count; i++) {
        skd_trouble_over(SKD_DUTY_UNPAID, unpaid->activity, unpaid->ids[i]);
    }

    stream = skd_activities_find(&keeper->activities, unpaid->activity);

    if (stream != NULL && unpaid->target[0] == 'r') {
        stream->care.released = 0;
    }
}


/* n of all from first on; halves, until an order that can't be cancelled stands alone. */
static skd_rc_e
skd_unpaid_some(skd_keeper_t *keeper, const skd_unpaid_t *all, size_t first, size_t n,
    unsigned *bad)
{
    skd_rc_e      rc;
    skd_unpaid_t  some;

    memset(&some, 0, sizeof(some));
    some.activity = all->activity;
    some.count = n;
    memcpy(some.ids, &all->ids[first], n * sizeof(some.ids[0]));

    rc = skd_unpaid_cancel(keeper, &some);

    if (rc == SKD_OK) {
        skd_unpaid_done(keeper, &some);
        return SKD_OK;
    }

    if (rc != SKD_SPLIT && rc != SKD_DUPLICATE) {
        return rc;
    }

    if (n == 1) {
        skd_trouble(SKD_DUTY_UNPAID, all->activity, all->ids[first],
                    all->refs[first] + strlen(SKD_UNPAID_REF), 0, keeper->writer.error);
        return ++*bad < SKD_UNPAID_BAD ? SKD_OK : SKD_BLOCKED;
    }

    rc = skd_unpaid_some(keeper, all, first, n / 2, bad);

    return rc == SKD_OK ? skd_unpaid_some(keeper, all, first + n / 2, n - n / 2, bad) : rc;
}


/* Of the oldest activity that has some; *more: there may be others. */
static skd_rc_e
skd_unpaid_turn(skd_keeper_t *keeper, int *more)
{
    skd_rc_e      rc;
    unsigned      bad = 0;
    skd_unpaid_t  unpaid;

    *more = 0;
    memset(&unpaid, 0, sizeof(unpaid));
    rc = skd_unpaid_find(keeper, &unpaid);

    if (rc != SKD_OK || unpaid.count == 0) {
        return rc;
    }

    rc = skd_unpaid_some(keeper, &unpaid, 0, unpaid.count, &bad);
    rc = skd_keeper_failed(keeper, SKD_DUTY_UNPAID, unpaid.activity, rc);

    /* a table of troubles that is full puts nothing aside: no more in this tick */
    *more = skd_trouble_room();

    return rc;
}


skd_rc_e
skd_keeper_unpaid(skd_keeper_t *keeper)
{
    int             more = 1;
    skd_rc_e        rc = SKD_OK;
    const uint64_t  timeout_ms = keeper->config->consumer.pay_timeout_ms;

    if (timeout_ms == 0) {
        return SKD_OK;
    }

    if (skd_clocks_may_cancel(keeper->config) && keeper->now_ms > timeout_ms
        && keeper->mysql_ms > timeout_ms)
    {
        for (int turn = 0; rc == SKD_OK && more && turn < SKD_UNPAID_TURNS
                           && !skd_stopping(keeper->stop); turn++)
        {
            rc = skd_unpaid_turn(keeper, &more);
        }
    }

    if (rc == SKD_OK && keeper->config->consumer.cancelled_units == SKB_CANCELLED_ACTIVITY) {
        rc = skd_unpaid_release_all(keeper);
    }

    return rc;
}
