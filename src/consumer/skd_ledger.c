/*
 * The rows beside the orders: every buyer's record, and units that became no
 * order; and the search for a free order_no, which is as rare.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "skd_rows.h"
#include "skd_units.h"

#define SKD_NUMBER_SEQ      21          /* where order_no has its 7 digits of seq */
#define SKD_NUMBER_SEQ_LEN  7
#define SKD_NUMBER_TRIES    1000

#define SKD_EXTRAS          16          /* lines of the ledger at once */


/* Adds "(user, activity, status), ..." for new records; returns how many. */
static size_t
skd_add_records(skd_writer_t *writer, const skd_activity_t *activity, skd_range_t *range)
{
    size_t              n = 0;
    const skd_entry_t  *entry;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->owner != i || entry->verdict == SKD_RECORD_NONE
            || entry->record != SKD_RECORD_NONE)
        {
            continue;
        }

        skd_sql_text(&writer->sql, n++ > 0 ? ",(" : "(");
        skd_sql_u64(&writer->sql, entry->message.user);
        skd_sql_text(&writer->sql, ",");
        skd_sql_u64(&writer->sql, activity->id);
        skd_sql_text(&writer->sql, entry->verdict == SKD_RECORD_SUCCESS ? ",1)" : ",2)");
    }

    return n;
}


/* Records that are there with another status: one statement for each new status. */
static skd_rc_e
skd_change_records(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range, skd_record_e verdict)
{
    size_t              n = 0;
    const skd_entry_t  *entry;

    skd_sql_begin(&writer->sql, "UPDATE seckill_records SET status = ");
    skd_sql_u64(&writer->sql, (uint64_t) verdict);
    skd_sql_text(&writer->sql, " WHERE activity_id = ");
    skd_sql_u64(&writer->sql, activity->id);
    skd_sql_text(&writer->sql, " AND user_id IN (");

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->owner == i && entry->verdict == verdict
            && entry->record != SKD_RECORD_NONE)
        {
            skd_sql_text(&writer->sql, n++ > 0 ? "," : "");
            skd_sql_u64(&writer->sql, entry->message.user);
        }
    }

    skd_sql_text(&writer->sql, ")");

    return n > 0 ? skd_rows_run(writer, NULL) : SKD_OK;
}


skd_rc_e
skd_rows_write_records(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range)
{
    skd_rc_e  rc = SKD_OK;

    skd_sql_begin(&writer->sql,
                  "INSERT INTO seckill_records (user_id, activity_id, status) VALUES ");

    if (skd_add_records(writer, activity, range) > 0) {
        rc = skd_rows_run(writer, NULL);
    }

    if (rc == SKD_OK) {
        rc = skd_change_records(writer, activity, range, SKD_RECORD_SUCCESS);
    }

    if (rc == SKD_OK) {
        rc = skd_change_records(writer, activity, range, SKD_RECORD_FAILED);
    }

    return rc;
}


skd_rc_e
skd_rows_write_extras(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range)
{
    char                refs[SKD_EXTRAS][24], notes[SKD_EXTRAS][64];
    size_t              n = 0;
    skd_rc_e            rc = SKD_OK;
    skb_movement_t      extras[SKD_EXTRAS];
    const skd_entry_t  *entry;
    const skd_terms_t  *terms;

    /*
     * Redis took them, no order will: the activity's units, not the product's
     * stock, which gets what is unsold when the sale is settled.
     */
    for (size_t i = range->first; rc == SKD_OK && i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->outcome != SKD_EXTRA) {
            continue;
        }

        terms = skd_activity_terms(activity, entry->message.epoch);
        snprintf(refs[n], sizeof(refs[n]), "%" PRIu64, entry->message.seq);
        snprintf(notes[n], sizeof(notes[n]), "user %" PRIu64 " has an order already",
                 entry->message.user);
        extras[n] = (skb_movement_t) {
            activity->id, terms != NULL ? terms->product : 0, entry->message.epoch, "extra", refs[n],
            (int64_t) entry->message.quantity, NULL, "seckilld", notes[n]
        };

        if (++n == SKD_EXTRAS) {
            rc = skd_units_move(writer, extras, n);
            n = 0;
        }
    }

    return rc == SKD_OK ? skd_units_move(writer, extras, n) : rc;
}


/* 1 when another entry before i wants the same number. */
static int
skd_number_wanted(const skd_range_t *range, size_t i)
{
    const skd_entry_t  *entries = range->batch->entries;

    for (size_t k = range->first; k < i; k++) {
        if (entries[k].fault == NULL
            && memcmp(entries[k].number, entries[i].number, SK_ORDER_NO_LEN) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* *held: the number belongs to the order of another purchase. */
static skd_rc_e
skd_number_held(skd_writer_t *writer, const skd_activity_t *activity,
    const skd_entry_t *entry, int *held)
{
    skd_rc_e    rc;
    MYSQL_RES  *res;
    skd_sql_t  *sql = &writer->sql;

    skd_sql_begin(sql, "SELECT id FROM seckill_orders WHERE order_no = '");
    skd_sql_bytes(sql, entry->number, SK_ORDER_NO_LEN);
    skd_sql_text(sql, "' AND NOT (activity_id = ");
    skd_sql_u64(sql, activity->id);
    skd_sql_text(sql, " AND epoch = ");
    skd_sql_u64(sql, entry->message.epoch);
    skd_sql_text(sql, " AND seq = ");
    skd_sql_u64(sql, entry->message.seq);
    skd_sql_text(sql, ")");

    rc = skd_rows_run(writer, &res);

    if (rc == SKD_OK) {
        *held = mysql_num_rows(res) > 0;
        mysql_free_result(res);
    }

    return rc;
}


/* The next number of the same layout: seq's digits plus one, around at the end. */
static void
skd_number_next(char *number)
{
    char  *digit = number + SKD_NUMBER_SEQ + SKD_NUMBER_SEQ_LEN;

    while (digit-- > number + SKD_NUMBER_SEQ) {
        if (*digit != '9') {
            (*digit)++;
            return;
        }

        *digit = '0';
    }
}


skd_rc_e
skd_rows_renumber(skd_writer_t *writer, const skd_activity_t *activity, skd_range_t *range)
{
    int           held;
    skd_rc_e      rc;
    skd_entry_t  *entry;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->fault != NULL) {
            continue;
        }

        for (int tries = 0; ; tries++) {
            held = skd_number_wanted(range, i);
            rc = held ? SKD_OK : skd_number_held(writer, activity, entry, &held);

            if (rc != SKD_OK) {
                return rc;
            }

            if (!held) {
                break;
            }

            if (tries == SKD_NUMBER_TRIES) {
                skd_entry_fail(entry, "order_no", "no order_no is free");
                break;
            }

            skd_number_next(entry->number);
        }
    }

    return SKD_OK;
}
