/*
 * A seckillctl of version 0.1.0 knows nothing of the tables that came after it, and
 * the files of sql/ run once: so its epochs get their terms here.
 */

#include <inttypes.h>
#include <stdio.h>

#include "ctl_backend.h"
#include "ctl_schema_fill.h"
#include "ctl_units.h"
#include "skb_terms.h"


/* Other folders of files, and older ones, are without it. */
static int
ctl_schema_has(ctl_t *ctl, const char *table, int *has)
{
    int         rc;
    MYSQL_RES  *res;

    rc = ctl_sql(ctl, &res, "SELECT 1 FROM information_schema.tables "
                 "WHERE table_schema = DATABASE() AND table_name = '%s'", table);
    if (rc != CTL_FINE) {
        return rc;
    }

    *has = mysql_num_rows(res) > 0;
    mysql_free_result(res);

    return CTL_FINE;
}


static int
ctl_schema_terms(ctl_t *ctl)
{
    int       rc, has;
    char      error[CTL_MESSAGE_MAX / 2];
    uint64_t  rows;

    rc = ctl_schema_has(ctl, "seckill_terms", &has);

    if (rc != CTL_FINE || !has) {
        return rc;
    }

    if (skb_terms_fill(ctl_mysql(ctl), &rows, error, sizeof(error)) != SKB_TERMS_DONE) {
        return ctl_fail(ctl, CTL_REFUSED, "%s; the terms of some epochs are missing: run it "
                        "again", error);
    }

    if (rows > 0) {
        ctl_warn("%" PRIu64 " epochs had no terms: those of their activities' rows are theirs "
                 "from now on", rows);
    }

    return CTL_FINE;
}


static int
ctl_schema_units(ctl_t *ctl)
{
    int         rc, bites;
    MYSQL_RES  *res;

    rc = ctl_sql(ctl, &res, "SELECT 1 FROM information_schema.columns "
                 "WHERE table_schema = DATABASE() AND table_name = 'seckill_activities' "
                 "AND column_name = 'reserved'");
    if (rc != CTL_FINE) {
        return rc;
    }

    bites = mysql_num_rows(res) > 0;
    mysql_free_result(res);

    if (!bites) {
        return CTL_FINE;
    }

    rc = ctl_units_check(ctl, &bites);

    if (rc == CTL_FINE && !bites) {
        /* the look at the tables that follows makes it the exit code */
        ctl_warn("CHECK ck_units of seckill_activities is not in force: MySQL 8.0.16 or newer, "
                 "or MariaDB, is needed");
    }

    return rc == CTL_FINE ? ctl_units_take_over(ctl) : rc;
}


int
ctl_schema_fill(ctl_t *ctl)
{
    int  rc;

    rc = ctl_schema_terms(ctl);

    return rc == CTL_FINE ? ctl_schema_units(ctl) : rc;
}
