/*
 * doctor, MySQL: its clock, what a commit is worth, its connections, and the rights of our user.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"
#include "ctl_units.h"
#include "skb_mysql.h"


static int
ctl_doctor_settings(ctl_doctor_t *doctor)
{
    int         rc;
    int64_t     began, ended;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    began = ctl_doctor_now();

    rc = ctl_sql(doctor->ctl, &res, "SELECT FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000), "
                 "@@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog, @@read_only");
    if (rc != CTL_FINE) {
        return rc;
    }

    ended = ctl_doctor_now();
    row = mysql_fetch_row(res);

    if (row == NULL) {
        mysql_free_result(res);
        return ctl_fail(doctor->ctl, CTL_UNREACHABLE, "MySQL does not tell its settings");
    }

    ctl_doctor_clock(doctor, "clock", began, ended, ctl_column_i64(row[0]));

    ctl_doctor_tell(doctor, ctl_column_u64(row[1]) == 1 ? CTL_IS_OK : CTL_IS_WRONG, "flush",
                    "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in my.cnf: else a crash "
                    "loses committed orders", "innodb_flush_log_at_trx_commit is %s", row[1]);

    if (ctl_column_u64(row[2])) {
        ctl_doctor_tell(doctor, ctl_column_u64(row[3]) == 1 ? CTL_IS_OK : CTL_IS_WARNING, "binlog",
                        "SET GLOBAL sync_binlog = 1: else a crash loses what replicas miss",
                        "sync_binlog is %s", row[3]);
    } else {
        ctl_doctor_tell(doctor, CTL_IS_OK, "binlog", "", "it is off");
    }

    ctl_doctor_tell(doctor, row[4] && row[4][0] != '0' ? CTL_IS_WRONG : CTL_IS_OK, "writable",
                    "set [mysql] to the primary", "read_only is %s", row[4] ? row[4] : "unknown");

    mysql_free_result(res);

    return CTL_FINE;
}


/* what goes over a network, and whether anybody proved whose it is */
static void
ctl_doctor_tls(ctl_doctor_t *doctor)
{
    const char                *cipher;
    const skb_config_mysql_t  *conf;

    conf = &ctl_config(doctor->ctl)->mysql;

    if (conf->socket[0]) {
        return;
    }

    cipher = mysql_get_ssl_cipher(ctl_mysql(doctor->ctl));

    if (conf->ssl) {
        ctl_doctor_tell(doctor, CTL_IS_OK, "tls", "", "%s, the certificate is that of \"%s\"",
                        cipher ? cipher : "on", conf->host);
        return;
    }

    ctl_doctor_tell(doctor, strcmp(conf->host, "localhost") == 0 || strcmp(conf->host, "::1") == 0
                    || strncmp(conf->host, "127.", 4) == 0 ? CTL_IS_OK : CTL_IS_WARNING, "tls",
                    "[mysql] ssl = on, with ca", "\"ssl\" is off: nobody proves that \"%s\" is "
                    "the server", conf->host);
}


static int
ctl_doctor_threads(ctl_doctor_t *doctor)
{
    int         rc;
    uint64_t    used, max;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    rc = ctl_sql(doctor->ctl, &res, "SHOW GLOBAL STATUS LIKE 'Threads_connected'");
    if (rc != CTL_FINE) {
        return rc;
    }

    row = mysql_fetch_row(res);
    used = row ? ctl_column_u64(row[1]) : 0;
    mysql_free_result(res);

    rc = ctl_sql(doctor->ctl, &res, "SELECT @@max_connections");
    if (rc != CTL_FINE) {
        return rc;
    }

    row = mysql_fetch_row(res);
    max = row ? ctl_column_u64(row[0]) : 0;
    mysql_free_result(res);

    ctl_doctor_used(doctor, "SET GLOBAL max_connections, and in my.cnf", used, max);

    return CTL_FINE;
}


/* the last word against units that do not exist */
static int
ctl_doctor_check(ctl_doctor_t *doctor)
{
    int  rc, bites;

    rc = ctl_units_check(doctor->ctl, &bites);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_doctor_tell(doctor, bites ? CTL_IS_OK : CTL_IS_WRONG, "units",
                    "MySQL 8.0.16 or newer, or MariaDB; then the ADD CONSTRAINT of "
                    "sql/0006_reserved.sql",
                    bites ? "CHECK ck_units refuses units that were never reserved"
                          : "CHECK ck_units of seckill_activities is not in force");

    return CTL_FINE;
}


/* a statement that touches no row is refused all the same without the right */
static int
ctl_doctor_rights(ctl_doctor_t *doctor)
{
    size_t             i, wrong;
    MYSQL             *mysql;
    skb_mysql_class_e  class;

    static const char  *const statements[] = {
        "UPDATE products SET stock = stock WHERE 1 = 0",
        "UPDATE seckill_activities SET sold = sold WHERE 1 = 0",
        "INSERT INTO seckill_orders SELECT * FROM seckill_orders WHERE 1 = 0",
        "UPDATE seckill_orders SET status = status WHERE 1 = 0",
        "INSERT INTO seckill_records SELECT * FROM seckill_records WHERE 1 = 0",
        "UPDATE seckill_records SET status = status WHERE 1 = 0",
        "INSERT INTO seckill_stock_log SELECT * FROM seckill_stock_log WHERE 1 = 0",
        "INSERT INTO seckill_terms SELECT * FROM seckill_terms WHERE 1 = 0"
    };

    mysql = ctl_mysql(doctor->ctl);
    wrong = 0;

    for (i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        if (mysql_query(mysql, statements[i]) == 0) {
            continue;
        }

        class = skb_mysql_class(mysql);

        if (class == SKB_MYSQL_OUTAGE && mysql_ping(mysql) != 0) {
            return ctl_fail(doctor->ctl, CTL_UNREACHABLE, "MySQL: %s", mysql_error(mysql));
        }

        wrong++;
        ctl_doctor_tell(doctor, CTL_IS_WRONG, "rights", class == SKB_MYSQL_DENIED
                        ? "GRANT SELECT, INSERT, UPDATE, DELETE on the database to the user"
                        : "seckillctl schema apply", "%s", mysql_error(mysql));
    }

    if (wrong == 0) {
        ctl_doctor_tell(doctor, CTL_IS_OK, "rights", "", "the user may write all tables");
    }

    return CTL_FINE;
}


int
ctl_doctor_mysql(ctl_doctor_t *doctor)
{
    int  rc;

    if ((rc = ctl_open_mysql(doctor->ctl)) != CTL_FINE
        || (rc = ctl_doctor_settings(doctor)) != CTL_FINE)
    {
        return rc;
    }

    ctl_doctor_tls(doctor);

    if ((rc = ctl_doctor_threads(doctor)) != CTL_FINE
        || (rc = ctl_doctor_defaults(doctor)) != CTL_FINE
        || (rc = ctl_doctor_schema(doctor)) != CTL_FINE
        || (rc = ctl_doctor_check(doctor)) != CTL_FINE)
    {
        return rc;
    }

    return ctl_doctor_rights(doctor);
}
