/*
 * Locks of this database, held by the connection.  Giving one back is the last
 * thing of a run: whatever comes of it, the work is done, and the connection's end
 * gives it back as well.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"


/* GET_LOCK() names count for the whole server: the database is part of ours */
static int
ctl_sql_named(ctl_t *ctl, const char *call, const char *name, const char *rest, int *yes)
{
    int        rc;
    char       quoted[CTL_QUOTE_MAX];
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_open_mysql(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_sql_quote(ctl, quoted, name);

    rc = ctl_sql(ctl, &res, "SELECT %s(CONCAT('seckill:', LEFT(SHA1(DATABASE()), 16), ':', "
                 "LEFT(%s, 32))%s)", call, quoted, rest);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *yes = column && column[0] && strcmp(column[0], "1") == 0;
    mysql_free_result(res);

    return CTL_FINE;
}


int
ctl_sql_lock(ctl_t *ctl, const char *name)
{
    int       rc, yes;
    char      rest[32];
    unsigned  seconds;

    rc = ctl_open_mysql(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    /* shorter than the client waits for an answer */
    seconds = ctl_config(ctl)->mysql.timeout_ms / 2000;
    snprintf(rest, sizeof(rest), ", %u", seconds > 10 ? 10 : seconds > 0 ? seconds : 1);

    rc = ctl_sql_named(ctl, "GET_LOCK", name, rest, &yes);

    if (rc == CTL_FINE && !yes) {
        return ctl_fail(ctl, CTL_REFUSED, "another seckillctl is at the same work (%s)", name);
    }

    return rc;
}


void
ctl_sql_unlock(ctl_t *ctl, const char *name)
{
    char        quoted[CTL_QUOTE_MAX], statement[CTL_QUOTE_MAX + 128];
    int         n;
    MYSQL      *mysql;
    MYSQL_RES  *res;

    mysql = ctl_mysql(ctl);
    ctl_sql_quote(ctl, quoted, name);
    n = snprintf(statement, sizeof(statement), "SELECT RELEASE_LOCK(CONCAT('seckill:', "
                 "LEFT(SHA1(DATABASE()), 16), ':', LEFT(%s, 32)))", quoted);
    res = mysql_real_query(mysql, statement, (unsigned long) n) == 0 ? mysql_store_result(mysql)
                                                                     : NULL;

    if (res == NULL) {
        ctl_warn("all is done; only the lock \"%s\" ends with the connection: %s", name,
                 mysql_error(mysql));
    }

    mysql_free_result(res);
}


int
ctl_activity_lock(ctl_t *ctl, uint64_t activity)
{
    char  name[40];

    snprintf(name, sizeof(name), "activity:%" PRIu64, activity);

    return ctl_sql_lock(ctl, name);
}


void
ctl_activity_unlock(ctl_t *ctl, uint64_t activity)
{
    char  name[40];

    snprintf(name, sizeof(name), "activity:%" PRIu64, activity);
    ctl_sql_unlock(ctl, name);
}
