/*
 * See the header.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_units.h"


/* MySQL before 8.0.16 reads a CHECK and forgets it */
static int
ctl_units_catalogue(ctl_t *ctl, int *bites)
{
    int         rc;
    MYSQL_RES  *res;

    rc = ctl_sql(ctl, &res, "SELECT 1 FROM information_schema.check_constraints "
                 "WHERE constraint_schema = DATABASE() AND constraint_name = 'ck_units'");
    if (rc != CTL_FINE) {
        return rc;
    }

    *bites = mysql_num_rows(res) > 0;
    mysql_free_result(res);

    return CTL_FINE;
}


/* one that does not sell at this moment, if there is one; 0: there is none at all */
static int
ctl_units_row(ctl_t *ctl, uint64_t *activity)
{
    int         rc;
    MYSQL_ROW   column;
    MYSQL_RES  *res;

    rc = ctl_sql(ctl, &res, "SELECT id FROM seckill_activities ORDER BY status = 1, id LIMIT 1");
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *activity = column ? ctl_column_u64(column[0]) : 0;
    mysql_free_result(res);

    return CTL_FINE;
}


int
ctl_units_check(ctl_t *ctl, int *bites)
{
    int        rc, n, tried;
    char       statement[160];
    MYSQL     *mysql;
    uint64_t   activity;

    if ((rc = ctl_units_row(ctl, &activity)) != CTL_FINE
        || activity == 0)
    {
        return rc == CTL_FINE ? ctl_units_catalogue(ctl, bites) : rc;
    }

    rc = ctl_sql(ctl, NULL, "START TRANSACTION");
    if (rc != CTL_FINE) {
        return rc;
    }

    mysql = ctl_mysql(ctl);
    n = snprintf(statement, sizeof(statement), "UPDATE seckill_activities SET sold = 1, "
                 "returned = 0, reserved = 0, stock_limit = 0 WHERE id = %" PRIu64, activity);
    tried = mysql_real_query(mysql, statement, (unsigned long) n);

    *bites = tried != 0 && skb_ledger_broken(mysql);

    if (mysql_rollback(mysql) != 0) {
        return ctl_sql_failed(ctl);
    }

    /* read-only, the row is at work, or the columns are missing: others tell of that */
    return tried != 0 && !*bites ? ctl_units_catalogue(ctl, bites) : CTL_FINE;
}


typedef struct {
    uint64_t      activity;
    skb_units_t   units;
    skb_ledger_e  rc;
    char          error[SKB_LEDGER_ERROR_MAX];
} ctl_units_t;


/* inside the transaction */
static int
ctl_units_one(ctl_t *ctl, void *data)
{
    ctl_units_t  *row;

    row = data;
    row->rc = skb_ledger_take_over(ctl_mysql(ctl), row->activity, &row->units, row->error);

    return row->rc == SKB_LEDGER_FAILED ? ctl_sql_failed(ctl) : CTL_FINE;
}


static void
ctl_units_tell(const ctl_units_t *row)
{
    char  was[24];

    if (row->rc == SKB_LEDGER_REFUSED) {
        ctl_warn("%s: it is not judged until that is mended", row->error);
        return;
    }

    snprintf(was, sizeof(was), "%" PRIu64, row->units.reserved);
    ctl_warn("activity %" PRIu64 ": reserved is %" PRId64 " by its ledger, was %s",
             row->activity, row->units.taken, row->units.has_reserved ? was : "not known");
}


int
ctl_units_take_over(ctl_t *ctl)
{
    int          rc, wrong;
    MYSQL_ROW    column;
    MYSQL_RES   *res;
    ctl_units_t  row;

    rc = skb_ledger_behind(ctl_mysql(ctl), &res) == 0 ? CTL_FINE : ctl_sql_failed(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    wrong = 0;

    while (rc == CTL_FINE && (column = mysql_fetch_row(res)) != NULL) {
        row.activity = ctl_column_u64(column[0]);
        rc = ctl_sql_transaction(ctl, ctl_units_one, &row);

        if (rc == CTL_FINE && row.rc != SKB_LEDGER_THERE) {
            ctl_units_tell(&row);
            wrong += row.rc == SKB_LEDGER_REFUSED;
        }
    }

    mysql_free_result(res);

    if (rc == CTL_FINE && wrong > 0) {
        rc = ctl_fail(ctl, CTL_PARTLY, "the ledgers of %d activities do not add up, all others "
                      "are done: see docs/books.md", wrong);
    }

    return rc;
}
