/*
 * The order of things in a transaction, and the decision about every entry.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skd_clock.h"
#include "skd_failpoint.h"
#include "skd_rows.h"
#include "skd_stats.h"
#include "skd_units.h"
#include "skd_writer.h"

#define SKD_PING_AFTER_MS   10000       /* idle for longer: prove the connection */
#define SKD_STATEMENT_MAX   (8 << 20)   /* bytes, whatever the server would take */
#define SKD_PACKET_SPARE    64          /* the protocol's own bytes in a packet */


static void
skd_writer_say(skd_writer_t *writer, skb_mysql_class_e class, const char *error)
{
    writer->class = class;
    snprintf(writer->error, sizeof(writer->error), "%s", error);
}


/* A demoted server would refuse each batch: see it before reading any. */
static skd_rc_e
skd_writer_greet(skd_writer_t *writer)
{
    size_t      limit;
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    if (skd_sql_init(&writer->sql, 1024) != 0) {
        skd_writer_say(writer, SKB_MYSQL_OUTAGE, "out of memory");
        return SKD_MYSQL_LOST;
    }

    skd_sql_begin(&writer->sql, "SELECT @@global.read_only, @@session.max_allowed_packet");
    rc = skd_rows_run(writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    row = mysql_fetch_row(res);

    if (row == NULL || row[0] == NULL || row[1] == NULL || strcmp(row[0], "0") != 0) {
        skd_writer_say(writer, SKB_MYSQL_OUTAGE, "the server is read-only");
        mysql_free_result(res);
        return SKD_MYSQL_LOST;
    }

    limit = strtoul(row[1], NULL, 10);
    mysql_free_result(res);

    limit = limit < SKD_STATEMENT_MAX ? limit - SKD_PACKET_SPARE : SKD_STATEMENT_MAX;

    if (skd_sql_init(&writer->sql, limit) != 0) {
        skd_writer_say(writer, SKB_MYSQL_OUTAGE, "out of memory");
        return SKD_MYSQL_LOST;
    }

    return SKD_OK;
}


skd_rc_e
skd_writer_connect(skd_writer_t *writer, const skb_config_t *config)
{
    /* a server ends idle connections; finding out is no outage */
    if (writer->mysql != NULL && skd_now_ms() - writer->used_ms > SKD_PING_AFTER_MS) {
        if (mysql_ping(writer->mysql) == 0) {
            writer->used_ms = skd_now_ms();

        } else {
            skd_writer_close(writer);
        }
    }

    if (writer->mysql != NULL) {
        return SKD_OK;
    }

    writer->mysql = skb_mysql_connect(config, &writer->class, writer->error,
                                      sizeof(writer->error));

    if (writer->mysql == NULL) {
        return SKD_MYSQL_LOST;
    }

    if (skd_writer_greet(writer) != SKD_OK) {
        skd_writer_close(writer);
        return SKD_MYSQL_LOST;
    }

    return SKD_OK;
}


void
skd_writer_close(skd_writer_t *writer)
{
    if (writer->mysql != NULL) {
        mysql_close(writer->mysql);
        writer->mysql = NULL;
    }
}


void
skd_writer_done(skd_writer_t *writer)
{
    skd_writer_close(writer);
    skd_sql_done(&writer->sql);
}


static void
skd_writer_kill(skd_entry_t *entry, const char *reason, const char *error)
{
    entry->outcome = SKD_DEAD;
    entry->reason = reason;

    if (entry->fault == NULL) {
        snprintf(entry->last_error, sizeof(entry->last_error), "%s", error);

        if (entry->attempts == 0) {
            snprintf(entry->error, sizeof(entry->error), "%s", error);
        }
    }
}


/* Returns 1 when this purchase gets no order, and says why. */
static int
skd_writer_refuse(skd_entry_t *entry, const skd_entry_t *owner,
    const skd_activity_t *activity, uint64_t units)
{
    char                error[SKD_ERROR_MAX];
    const skd_terms_t  *terms = skd_activity_terms(activity, entry->message.epoch);

    if (entry->fault != NULL) {
        skd_writer_kill(entry, entry->fault, entry->error);
        return 1;
    }

    if (owner->record == SKD_RECORD_FAILED) {
        skd_writer_kill(entry, "failed_before", "a purchase of this user failed before");
        return 1;
    }

    if (entry->message.quantity > terms->max_quantity) {
        snprintf(error, sizeof(error), "quantity %" PRIu32 " is above the %" PRIu64 " that epoch %"
                 PRIu64 " allows", entry->message.quantity, terms->max_quantity, terms->epoch);
        skd_writer_kill(entry, "data_error", error);
        return 1;
    }

    if (activity->sold + activity->returned + units + entry->message.quantity
        > activity->stock_limit)
    {
        skd_writer_kill(entry, "over_limit", "more units than stock_limit leaves");
        return 1;
    }

    if (entry->taken) {
        skd_writer_kill(entry, "seq_conflict", "epoch and seq are those of another order");
        return 1;
    }

    return 0;
}


/* 1 when nobody can say yet what this buyer was promised: nothing is decided. */
static int
skd_writer_waits(const skd_entry_t *entry, const skd_entry_t *owner,
    const skd_activity_t *activity)
{
    return entry->fault == NULL && owner->record != SKD_RECORD_FAILED
           && !skd_activity_terms(activity, entry->message.epoch)->found;
}


/*
 * In stream order: who came first is served first.  Returns the units of new orders,
 * and in *waits how many entries have an epoch without terms.
 */
static uint64_t
skd_writer_decide(const skd_activity_t *activity, skd_range_t *range, size_t *waits)
{
    uint64_t      units = 0;
    skd_entry_t  *entry, *owner;

    *waits = 0;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];
        owner = &range->batch->entries[entry->owner];

        if (entry->fault == NULL && owner->order.exists) {
            entry->outcome = owner->order.epoch == entry->message.epoch
                             && owner->order.seq == entry->message.seq ? SKD_SAME : SKD_EXTRA;
            continue;
        }

        if (skd_writer_waits(entry, owner, activity)) {
            ++*waits;
            continue;
        }

        if (skd_writer_refuse(entry, owner, activity, units)) {
            continue;
        }

        entry->outcome = SKD_INSERT;
        units += entry->message.quantity;

        owner->order.exists = 1;
        owner->order.id = 0;
        owner->order.epoch = entry->message.epoch;
        owner->order.seq = entry->message.seq;
        memcpy(owner->order.number, entry->number, sizeof(owner->order.number));
    }

    return units;
}


/* A buyer with an order has succeeded, whatever else was in the stream. */
static void
skd_writer_judge(skd_range_t *range)
{
    skd_record_e  verdict;
    skd_entry_t  *entry, *owner;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (!entry->has_user) {
            continue;
        }

        owner = &range->batch->entries[entry->owner];
        verdict = owner->order.exists ? SKD_RECORD_SUCCESS : SKD_RECORD_FAILED;

        owner->verdict = owner->record == verdict ? SKD_RECORD_NONE : verdict;
    }
}


static skd_rc_e
skd_writer_look(skd_writer_t *writer, const skd_activity_t *activity, skd_range_t *range)
{
    skd_rc_e  rc;

    /*
     * Plain reads, and yet the latest: their snapshot begins with the first of
     * them, after the lock was given.
     */
    rc = skd_rows_find_orders(writer, activity, range);

    if (rc == SKD_OK) {
        rc = skd_rows_find_records(writer, activity, range);
    }

    if (rc == SKD_OK) {
        rc = skd_rows_find_taken(writer, activity, range);
    }

    if (rc == SKD_OK) {
        rc = skd_rows_renumber(writer, activity, range);
    }

    return rc;
}


/* Nobody looked: good only when all become orders, which the unique keys prove. */
static skd_rc_e
skd_writer_all_new(const skd_range_t *range)
{
    for (size_t i = range->first; i < range->first + range->count; i++) {
        if (range->batch->entries[i].outcome != SKD_INSERT) {
            return SKD_DUPLICATE;
        }
    }

    return SKD_OK;
}


/*
 * Some have no terms.  The others are stored by themselves; where none is left, the
 * activity waits, and the buyers' attempts are not counted.
 */
static skd_rc_e
skd_writer_missing(skd_writer_t *writer, const skd_activity_t *activity,
    const skd_range_t *range, size_t waits)
{
    uint64_t  epoch = 0;

    for (size_t i = 0; i < activity->terms_n; i++) {
        if (!activity->terms[i].found) {
            epoch = activity->terms[i].epoch;
        }
    }

    snprintf(writer->error, sizeof(writer->error), "MySQL has no terms of activity %" PRIu64
             " epoch %" PRIu64 ", run seckillctl schema apply", activity->id, epoch);
    writer->class = SKB_MYSQL_FINE;

    return waits < range->count ? SKD_SPLIT : SKD_BLOCKED;
}


/*
 * Purchases of an epoch before the row's: either they were queued again since the
 * restore, with their units, or the restore knew nothing of them.  Redis tells.
 */
static skd_rc_e
skd_writer_older(const skd_activity_t *activity, skd_range_t *range)
{
    const skd_entry_t  *entry;

    range->epoch = activity->epoch;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->fault == NULL && entry->message.epoch < activity->epoch
            && entry->held_epoch != activity->epoch)
        {
            return SKD_OLDER;
        }
    }

    return SKD_OK;
}


static skd_rc_e
skd_writer_write(skd_writer_t *writer, const skd_activity_t *activity, skd_range_t *range,
    uint64_t units)
{
    skd_rc_e  rc = SKD_OK;
    uint64_t  first_id;

    if (units > 0) {
        rc = skd_rows_insert_orders(writer, activity, range, &first_id);

        if (rc == SKD_OK) {
            rc = skd_rows_find_ids(writer, activity, range, first_id);
        }
    }

    if (rc == SKD_OK) {
        rc = skd_rows_write_records(writer, activity, range);
    }

    if (rc == SKD_OK) {
        rc = skd_rows_write_extras(writer, activity, range);
    }

    /* last: where the row is not locked yet, it is from here */
    if (rc == SKD_OK && units > 0) {
        rc = skd_rows_add_sold(writer, activity, range, units);
    }

    return rc;
}


skd_rc_e
skd_writer_store(skd_writer_t *writer, uint64_t id, skd_range_t *range, int look)
{
    int64_t         began_us;
    skd_rc_e        rc;
    size_t          waits = 0;
    uint64_t        units = 0;
    skd_activity_t  activity;

    memset(&activity, 0, sizeof(activity));
    activity.id = id;

    skd_range_begin(range);

    rc = skd_rows_exec(writer, "START TRANSACTION");

    if (rc == SKD_OK) {
        rc = skd_rows_read_activity(writer, &activity, look);
    }

    if (rc == SKD_OK) {
        rc = skd_writer_older(&activity, range);
    }

    if (rc == SKD_OK) {
        skd_failpoint(SKD_AFTER_BEGIN);
        rc = skd_rows_read_terms(writer, &activity, range);
    }

    if (rc == SKD_OK && look) {
        rc = skd_writer_look(writer, &activity, range);
    }

    if (rc == SKD_OK) {
        units = skd_writer_decide(&activity, range, &waits);
        rc = look ? SKD_OK : skd_writer_all_new(range);
    }

    if (rc == SKD_OK && waits > 0) {
        rc = skd_writer_missing(writer, &activity, range, waits);
    }

    if (rc == SKD_OK) {
        rc = skd_units_prove(writer, &activity, units, look);
    }

    if (rc == SKD_OK) {
        skd_writer_judge(range);
        rc = skd_writer_write(writer, &activity, range, units);
    }

    if (rc == SKD_OK) {
        skd_failpoint(SKD_AFTER_INSERT);
        began_us = skd_now_us();
        rc = skd_rows_exec(writer, "COMMIT");

        if (rc == SKD_OK) {
            skd_took(SKD_TIME_COMMIT, began_us);
            skd_failpoint(SKD_AFTER_COMMIT);
            return SKD_OK;
        }
    }

    /* a lock wait that ran out has undone one statement only; what fails here is worse */
    if (rc != SKD_MYSQL_LOST && mysql_rollback(writer->mysql)) {
        skd_writer_say(writer, SKB_MYSQL_OUTAGE, mysql_error(writer->mysql));
        rc = SKD_MYSQL_LOST;
    }

    return rc;
}


skd_rc_e
skd_writer_begin_sale(skd_writer_t *writer, uint64_t activity)
{
    skd_sql_begin(&writer->sql, "UPDATE seckill_activities SET status = 1 WHERE id = ");
    skd_sql_u64(&writer->sql, activity);
    skd_sql_text(&writer->sql, " AND status = 0");

    return skd_rows_run(writer, NULL);
}


skd_rc_e
skd_writer_queueing(skd_writer_t *writer, uint64_t activity, uint64_t user)
{
    skd_sql_begin(&writer->sql,
                  "INSERT INTO seckill_records (user_id, activity_id, status) VALUES (");
    skd_sql_u64(&writer->sql, user);
    skd_sql_text(&writer->sql, ",");
    skd_sql_u64(&writer->sql, activity);
    skd_sql_text(&writer->sql, ",0) ON DUPLICATE KEY UPDATE id = id");

    return skd_rows_run(writer, NULL);
}
