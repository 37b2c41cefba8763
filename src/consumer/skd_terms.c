/*
 * The terms by which a transaction writes orders.  They are read in each
 * transaction: a failover may have lost what an earlier one saw.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skd_rows.h"


const skd_terms_t *
skd_activity_terms(const skd_activity_t *activity, uint64_t epoch)
{
    for (size_t i = 0; i < activity->terms_n; i++) {
        if (activity->terms[i].epoch == epoch) {
            return &activity->terms[i];
        }
    }

    return NULL;
}


/* Returns 0, or -1: there is no room for one more epoch. */
static int
skd_terms_list(skd_activity_t *activity, const skd_range_t *range)
{
    uint64_t            epoch;
    const skd_entry_t  *entry;

    activity->terms_n = 0;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];
        epoch = entry->message.epoch;

        /* what has a fault becomes no order, and its message may not be whole */
        if (entry->fault != NULL || skd_activity_terms(activity, epoch) != NULL) {
            continue;
        }

        if (activity->terms_n == SKD_TERMS_MAX) {
            return -1;
        }

        activity->terms[activity->terms_n++] = (skd_terms_t) { .epoch = epoch };
    }

    return 0;
}


static void
skd_terms_take(skd_activity_t *activity, MYSQL_ROW row)
{
    uint64_t      epoch = row[0] != NULL ? strtoull(row[0], NULL, 10) : 0;
    skd_terms_t  *terms = (skd_terms_t *) skd_activity_terms(activity, epoch);

    /* the price goes back unquoted: nothing but a decimal may pass */
    if (terms == NULL || row[1] == NULL || row[2] == NULL || row[3] == NULL
        || strlen(row[2]) >= SKB_PRICE_MAX || strspn(row[2], "0123456789.") != strlen(row[2]))
    {
        return;
    }

    terms->found = 1;
    terms->product = strtoull(row[1], NULL, 10);
    terms->max_quantity = strtoull(row[3], NULL, 10);
    strcpy(terms->price, row[2]);
}


skd_rc_e
skd_rows_read_terms(skd_writer_t *writer, skd_activity_t *activity, const skd_range_t *range)
{
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    if (skd_terms_list(activity, range) != 0) {
        snprintf(writer->error, sizeof(writer->error), "too many epochs in one transaction");
        writer->class = SKB_MYSQL_TOO_LARGE;
        return SKD_SPLIT;
    }

    if (activity->terms_n == 0) {
        return SKD_OK;
    }

    skd_sql_begin(&writer->sql, "SELECT epoch, product_id, price, max_quantity "
                                "FROM seckill_terms WHERE activity_id = ");
    skd_sql_u64(&writer->sql, activity->id);

    for (size_t i = 0; i < activity->terms_n; i++) {
        skd_sql_text(&writer->sql, i == 0 ? " AND epoch IN (" : ",");
        skd_sql_u64(&writer->sql, activity->terms[i].epoch);
    }

    skd_sql_text(&writer->sql, ")");
    rc = skd_rows_run(writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        skd_terms_take(activity, row);
    }

    mysql_free_result(res);

    return SKD_OK;
}
