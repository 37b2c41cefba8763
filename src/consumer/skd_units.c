/*
 * A seckillctl of version 0.1.0 raises and lowers a limit and does not write
 * "reserved": whoever meets such a row takes it over from the ledger, and says so.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_clock.h"
#include "skd_keeper.h"
#include "skd_stats.h"
#include "skd_trouble.h"
#include "skd_units.h"

#define SKD_UNITS_EVERY_MS  10000
#define SKD_UNITS_MAX       100         /* rows of one round */


static skd_rc_e
skd_units_result(skd_writer_t *writer, skb_ledger_e rc)
{
    switch (rc) {

    case SKB_LEDGER_FAILED:
        return skd_rows_failed(writer);

    case SKB_LEDGER_REFUSED:
        return SKD_BLOCKED;

    default:
        writer->used_ms = skd_now_ms();
        return SKD_OK;
    }
}


skd_rc_e
skd_units_move(skd_writer_t *writer, const skb_movement_t *movements, size_t n)
{
    int64_t  units;

    if (n == 0) {
        return SKD_OK;
    }

    return skd_units_result(writer, skb_ledger_add_all(writer->mysql, movements, n, &units,
                                                       writer->error));
}


/* Under the row's lock; *units is the row as it was before. */
static skd_rc_e
skd_units_take_over(skd_writer_t *writer, uint64_t activity, skb_units_t *units)
{
    char          was[24] = "unknown";
    skb_ledger_e  rc;

    rc = skb_ledger_take_over(writer->mysql, activity, units, writer->error);

    if (rc == SKB_LEDGER_ADDED) {
        if (units->has_reserved) {
            snprintf(was, sizeof(was), "%" PRIu64, units->reserved);
        }

        skb_log(SKB_NOTICE, "reserved units are taken over from the ledger",
                "activity=%" PRIu64 " reserved=%" PRId64 " was=%s", activity, units->taken, was);
    }

    return skd_units_result(writer, rc);
}


skd_rc_e
skd_units_prove(skd_writer_t *writer, skd_activity_t *activity, uint64_t units, int locked)
{
    skd_rc_e     rc;
    uint64_t     wanted = activity->sold + activity->returned + units;
    skb_units_t  row;

    if (units == 0 || !activity->has_reserved || wanted <= activity->reserved) {
        return SKD_OK;
    }

    if (!locked) {
        return SKD_DUPLICATE;
    }

    rc = skd_units_take_over(writer, activity->id, &row);

    if (rc == SKD_OK && row.lines > 0 && (int64_t) wanted > row.taken) {
        snprintf(writer->error, sizeof(writer->error), "%" PRIu64 " units would be sold or "
                 "returned, the ledger reserved %" PRId64, wanted, row.taken);
        rc = SKD_BLOCKED;
    }

    if (rc == SKD_BLOCKED) {
        skd_count(SKD_COUNT_UNITS_WRONG, 1);
    }

    return rc;
}


/* Activities whose reserved units are not those of the limit, from one id on. */
static skd_rc_e
skd_units_find(skd_keeper_t *keeper, uint64_t *ids, size_t *n)
{
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;
    skd_sql_t  *sql = &keeper->writer.sql;

    skd_sql_begin(sql, "SELECT id FROM seckill_activities WHERE status <> 2 AND epoch > 0 "
                       "AND (reserved IS NULL OR reserved <> stock_limit) AND id > ");
    skd_sql_u64(sql, keeper->units_after);
    skd_sql_text(sql, " ORDER BY id LIMIT ");
    skd_sql_u64(sql, SKD_UNITS_MAX);

    *n = 0;
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        ids[(*n)++] = strtoull(row[0], NULL, 10);
    }

    mysql_free_result(res);
    keeper->units_after = *n == SKD_UNITS_MAX ? ids[*n - 1] : 0;

    return SKD_OK;
}


static skd_rc_e
skd_units_one(skd_keeper_t *keeper, uint64_t activity)
{
    skd_rc_e     rc;
    skb_units_t  units;

    rc = skd_rows_exec(&keeper->writer, "START TRANSACTION");

    if (rc == SKD_OK) {
        rc = skd_units_take_over(&keeper->writer, activity, &units);
    }

    if (rc == SKD_OK) {
        rc = skd_rows_exec(&keeper->writer, "COMMIT");
    }

    if (rc != SKD_OK && rc != SKD_MYSQL_LOST && mysql_rollback(keeper->writer.mysql)) {
        rc = SKD_MYSQL_LOST;
    }

    return rc;
}


skd_rc_e
skd_keeper_units(skd_keeper_t *keeper)
{
    size_t    n;
    skd_rc_e  rc;
    uint64_t  ids[SKD_UNITS_MAX];

    if (skd_now_ms() < keeper->units_ms) {
        return SKD_OK;
    }

    rc = skd_units_find(keeper, ids, &n);

    /* a ledger that does not add up is its activity's own trouble */
    for (size_t i = 0; rc == SKD_OK && i < n; i++) {
        if (!skd_trouble_aside(SKD_DUTY_UNITS, ids[i])) {
            rc = skd_units_one(keeper, ids[i]);
            rc = skd_keeper_failed(keeper, SKD_DUTY_UNITS, ids[i], rc);
        }
    }

    if (rc == SKD_OK) {
        keeper->units_ms = skd_now_ms() + SKD_UNITS_EVERY_MS;
    }

    return rc;
}
