/*
 * See the header.  A new setting is a row here, and nowhere else.
 */

#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "skb_session.h"

#define SKB_ISOLATION_HARM  "transactions of other programs read what may be rolled back"

/*
 * The isolation has two names, and a statement of its own that all servers share.
 *
 * innodb_snapshot_isolation: with it a server runs transactions again that need
 * it not.  What the writer decides by, it reads under the lock of the activity's
 * row, in a snapshot that begins after the lock was given.
 */
const skb_session_row_t  skb_session_rows[] = {
    { "transaction_isolation", NULL, 0, "REPEATABLE-READ READ-COMMITTED SERIALIZABLE",
      SKB_ISOLATION_HARM },
    { "tx_isolation", NULL, 0, "REPEATABLE-READ READ-COMMITTED SERIALIZABLE",
      SKB_ISOLATION_HARM },

    { "sql_mode", "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'", 0,
      "STRICT_ALL_TABLES STRICT_TRANS_TABLES", "other programs store values cut short" },
    { "time_zone", "'+00:00'", 0, NULL, NULL },
    { "autocommit", "1", 0, "ON 1", "changes of other programs are undone when they leave" },
    { "completion_type", "0", 0, "NO_CHAIN 0",
      "a commit of other programs opens the next transaction, or ends the session" },
    { "foreign_key_checks", "1", 0, "ON 1", "other programs break foreign keys" },
    { "unique_checks", "1", 0, "ON 1", "other programs may double what is unique" },
    { "sql_safe_updates", "0", 0, NULL, NULL },
    { "sql_select_limit", "18446744073709551615", 0, NULL, NULL },

    { "check_constraint_checks", "1", 1, "ON 1", "other programs break CHECK constraints" },
    { "innodb_snapshot_isolation", "0", 1, NULL, NULL },
    { "max_statement_time", "0", 1, NULL, NULL },
    { "max_execution_time", "0", 1, NULL, NULL },
};

const size_t  skb_session_rows_count = sizeof(skb_session_rows) / sizeof(skb_session_rows[0]);


/* Settings that only one kind of server has go one by one: the other refuses the name. */
static int
skb_session_rare(MYSQL *mysql, const skb_session_row_t *row)
{
    int   n;
    char  sql[128];

    n = snprintf(sql, sizeof(sql), "SET SESSION %s = %s", row->name, row->value);

    if (mysql_real_query(mysql, sql, (unsigned long) n) == 0
        || mysql_errno(mysql) == ER_UNKNOWN_SYSTEM_VARIABLE)
    {
        return 0;
    }

    return -1;
}


int
skb_session_set(MYSQL *mysql, const skb_config_mysql_t *conf)
{
    int       n;
    char      sql[512];
    unsigned  lock_wait = conf->timeout_ms / 2000;

    static const char  isolation[] = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ, "
                                     "READ WRITE";

    /* the read timeout must not cut a statement that waits for a lock */
    n = snprintf(sql, sizeof(sql), "SET SESSION innodb_lock_wait_timeout = %u",
                 lock_wait ? lock_wait : 1);

    for (size_t i = 0; i < skb_session_rows_count; i++) {
        if (skb_session_rows[i].value != NULL && !skb_session_rows[i].rare) {
            n += snprintf(sql + n, sizeof(sql) - (size_t) n, ", %s = %s",
                          skb_session_rows[i].name, skb_session_rows[i].value);
        }
    }

    if (mysql_real_query(mysql, sql, (unsigned long) n)
        || mysql_real_query(mysql, isolation, sizeof(isolation) - 1))
    {
        return -1;
    }

    for (size_t i = 0; i < skb_session_rows_count; i++) {
        if (skb_session_rows[i].rare && skb_session_rare(mysql, &skb_session_rows[i]) != 0) {
            return -1;
        }
    }

    return mysql_set_character_set(mysql, "utf8mb4") ? -1 : 0;
}


/* sql_mode is a list: one good word of it is enough. */
int
skb_session_harmful(const skb_session_row_t *row, const char *value)
{
    size_t       len, n;
    const char  *word, *p;

    if (row->good == NULL) {
        return 0;
    }

    for (word = row->good; *word != '\0'; word += len + strspn(word + len, " ")) {
        len = strcspn(word, " ");

        for (p = value; *p != '\0'; p += n + strspn(p + n, ",")) {
            n = strcspn(p, ",");

            if (n == len && strncasecmp(p, word, len) == 0) {
                return 0;
            }
        }
    }

    return 1;
}
