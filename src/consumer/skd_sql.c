/*
 * See the header.
 */

#include <stdlib.h>
#include <string.h>

#include "sk_id.h"
#include "skd_sql.h"


int
skd_sql_init(skd_sql_t *sql, size_t limit)
{
    skd_sql_done(sql);

    /* one byte more: mysql_real_escape_string() ends with NUL */
    sql->text = malloc(limit + 1);
    sql->limit = limit;

    return sql->text == NULL ? -1 : 0;
}


void
skd_sql_done(skd_sql_t *sql)
{
    free(sql->text);
    memset(sql, 0, sizeof(skd_sql_t));
}


void
skd_sql_begin(skd_sql_t *sql, const char *text)
{
    sql->len = 0;
    sql->overflow = 0;
    skd_sql_text(sql, text);
}


void
skd_sql_bytes(skd_sql_t *sql, const char *data, size_t len)
{
    if (sql->overflow || len > sql->limit - sql->len) {
        sql->overflow = 1;
        return;
    }

    memcpy(sql->text + sql->len, data, len);
    sql->len += len;
}


void
skd_sql_text(skd_sql_t *sql, const char *text)
{
    skd_sql_bytes(sql, text, strlen(text));
}


void
skd_sql_u64(skd_sql_t *sql, uint64_t number)
{
    char  digits[SK_ID_MAX], *p = digits + SK_ID_MAX;

    do {
        *--p = (char) ('0' + number % 10);
        number /= 10;
    } while (number != 0);

    skd_sql_bytes(sql, p, (size_t) (digits + SK_ID_MAX - p));
}


void
skd_sql_quote(skd_sql_t *sql, MYSQL *mysql, const char *data, size_t len)
{
    unsigned long  n;

    if (len == 0) {
        skd_sql_bytes(sql, "''", 2);
        return;
    }

    if (sql->overflow || 2 * len + 2 > sql->limit - sql->len) {
        sql->overflow = 1;
        return;
    }

    sql->text[sql->len++] = '\'';
    n = mysql_real_escape_string(mysql, sql->text + sql->len, data, (unsigned long) len);

    if (n == (unsigned long) -1) {
        sql->overflow = 1;
        return;
    }

    sql->len += n;
    sql->text[sql->len++] = '\'';
}
