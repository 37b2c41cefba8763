/*
 * Statements about seckill_terms.  Nothing here begins or ends a transaction.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_terms.h"

#define SKB_TERMS_STATEMENT  1536
#define SKB_EPOCH_MAX        1000000000000      /* above it Redis' word is no epoch */

#define SKB_TERMS_COLUMNS                                                     \
    "activity_id, epoch, product_id, price, max_quantity, by_registration, "  \
    "start_time, end_time, kind"


/* res NULL: no rows are wanted */
static skb_terms_e skb_terms_sql(MYSQL *mysql, MYSQL_RES **res, char *error, size_t size,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

static skb_terms_e
skb_terms_sql(MYSQL *mysql, MYSQL_RES **res, char *error, size_t size, const char *fmt, ...)
{
    int         n;
    char        statement[SKB_TERMS_STATEMENT];
    va_list     args;
    MYSQL_RES  *rows;

    va_start(args, fmt);
    n = vsnprintf(statement, sizeof(statement), fmt, args);
    va_end(args);

    if (n < 0 || (size_t) n >= sizeof(statement)) {
        snprintf(error, size, "a statement is too long");
        return SKB_TERMS_FAILED;
    }

    if (mysql_real_query(mysql, statement, (unsigned long) n) == 0) {
        rows = mysql_store_result(mysql);

        if (rows && res) {
            *res = rows;
            return SKB_TERMS_DONE;
        }

        mysql_free_result(rows);

        if (mysql_errno(mysql) == 0 && res == NULL) {
            return SKB_TERMS_DONE;
        }
    }

    snprintf(error, size, "MySQL: %u %.200s", mysql_errno(mysql), mysql_error(mysql));

    return SKB_TERMS_FAILED;
}


static uint64_t
skb_terms_column(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}


skb_terms_e
skb_terms_read(MYSQL *mysql, uint64_t activity, uint64_t epoch, skb_terms_t *terms,
    char *error, size_t size)
{
    char          which[48] = "ORDER BY epoch DESC LIMIT 1";
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_terms_e   rc;

    memset(terms, 0, sizeof(*terms));

    if (epoch != 0) {
        snprintf(which, sizeof(which), "AND epoch = %" PRIu64, epoch);
    }

    /* the columns are UTC; the difference does not ask any zone */
    rc = skb_terms_sql(mysql, &res, error, size,
                       "SELECT epoch, product_id, price, max_quantity, by_registration, "
                       "TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', start_time) * 1000, "
                       "TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', end_time) * 1000, kind "
                       "FROM seckill_terms WHERE activity_id = %" PRIu64 " %s", activity,
                       which);
    if (rc != SKB_TERMS_DONE) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column == NULL) {
        mysql_free_result(res);
        return SKB_TERMS_NONE;
    }

    terms->epoch = skb_terms_column(column[0]);
    terms->product = skb_terms_column(column[1]);
    snprintf(terms->price, sizeof(terms->price), "%s", column[2] ? column[2] : "");
    terms->max_quantity = skb_terms_column(column[3]);
    terms->by_registration = skb_terms_column(column[4]) != 0;
    terms->start_ms = (int64_t) skb_terms_column(column[5]);
    terms->end_ms = (int64_t) skb_terms_column(column[6]);
    snprintf(terms->kind, sizeof(terms->kind), "%s", column[7] ? column[7] : "");

    mysql_free_result(res);

    return SKB_TERMS_DONE;
}


skb_terms_e
skb_terms_write(MYSQL *mysql, uint64_t activity, const skb_terms_t *terms, const char *kind,
    char *error, size_t size)
{
    if (terms->price[0] == '\0' || strspn(terms->price, "0123456789.") != strlen(terms->price)) {
        snprintf(error, size, "the price is not an amount");
        return SKB_TERMS_FAILED;
    }

    return skb_terms_sql(mysql, NULL, error, size,
                         "INSERT INTO seckill_terms (" SKB_TERMS_COLUMNS ") VALUES (%" PRIu64
                         ", %" PRIu64 ", %" PRIu64 ", %s, %" PRIu64 ", %d, "
                         "'1970-01-01 00:00:00' + INTERVAL %" PRId64 " SECOND, "
                         "'1970-01-01 00:00:00' + INTERVAL %" PRId64 " SECOND, '%s')", activity,
                         terms->epoch, terms->product, terms->price, terms->max_quantity,
                         terms->by_registration, terms->start_ms / 1000, terms->end_ms / 1000,
                         kind);
}


/* The largest epoch with terms that was in force, and the largest that has any; 0: none. */
static skb_terms_e
skb_terms_epochs(MYSQL *mysql, uint64_t activity, uint64_t row_epoch, uint64_t live_epoch,
    uint64_t *in_force, uint64_t *last, char *error, size_t size)
{
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_terms_e   rc;

    rc = skb_terms_sql(mysql, &res, error, size,
                       "SELECT MAX(t.epoch), MAX(IF(t.epoch IN (%" PRIu64 ", %" PRIu64 ") OR "
                       "t.epoch = o.epoch, t.epoch, 0)) FROM seckill_terms AS t, "
                       "(SELECT MAX(epoch) AS epoch FROM seckill_orders WHERE activity_id = %"
                       PRIu64 ") AS o WHERE t.activity_id = %" PRIu64, row_epoch, live_epoch,
                       activity, activity);
    if (rc != SKB_TERMS_DONE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *last = column ? skb_terms_column(column[0]) : 0;
    *in_force = column ? skb_terms_column(column[1]) : 0;
    mysql_free_result(res);

    return SKB_TERMS_DONE;
}


skb_terms_e
skb_terms_copy(MYSQL *mysql, uint64_t activity, uint64_t row_epoch, uint64_t live_epoch,
    skb_terms_t *terms, char *error, size_t size)
{
    uint64_t     in_force, last;
    skb_terms_e  rc;

    memset(terms, 0, sizeof(*terms));

    rc = skb_terms_epochs(mysql, activity, row_epoch, live_epoch, &in_force, &last, error, size);

    if (rc == SKB_TERMS_DONE && in_force == 0) {
        rc = SKB_TERMS_NONE;
    }

    if (rc == SKB_TERMS_DONE) {
        rc = skb_terms_read(mysql, activity, in_force, terms, error, size);
    }

    if (rc != SKB_TERMS_DONE) {
        return rc;
    }

    terms->epoch = last;

    if (row_epoch > terms->epoch) {
        terms->epoch = row_epoch;
    }

    if (live_epoch > terms->epoch && live_epoch < SKB_EPOCH_MAX) {
        terms->epoch = live_epoch;
    }

    terms->epoch++;

    return skb_terms_write(mysql, activity, terms, SKB_TERMS_RESTORE, error, size);
}


/* What has no terms: epochs of rows, orders and ledger; as in sql/0005_terms.sql. */
#define SKB_TERMS_MISSING                                                     \
    "FROM seckill_activities AS a "                                           \
    "JOIN (SELECT id AS activity_id, epoch FROM seckill_activities "          \
    "UNION SELECT DISTINCT activity_id, epoch FROM seckill_orders "           \
    "UNION SELECT DISTINCT activity_id, epoch FROM seckill_stock_log) AS e "  \
    "ON e.activity_id = a.id LEFT JOIN seckill_terms AS t "                   \
    "ON t.activity_id = a.id AND t.epoch = e.epoch "                          \
    "WHERE e.epoch > 0 AND t.epoch IS NULL"


skb_terms_e
skb_terms_fill(MYSQL *mysql, uint64_t *rows, char *error, size_t size)
{
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_terms_e   rc;

    *rows = 0;

    /* a plain read locks nothing; INSERT ... SELECT holds up the orders it reads */
    rc = skb_terms_sql(mysql, &res, error, size, "SELECT COUNT(*) " SKB_TERMS_MISSING);
    if (rc != SKB_TERMS_DONE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *rows = column ? skb_terms_column(column[0]) : 0;
    mysql_free_result(res);

    if (*rows == 0) {
        return SKB_TERMS_DONE;
    }

    return skb_terms_sql(mysql, NULL, error, size,
                         "INSERT INTO seckill_terms (" SKB_TERMS_COLUMNS ") "
                         "SELECT a.id, e.epoch, a.product_id, a.seckill_price, "
                         "a.max_quantity, a.by_registration <> 0, a.start_time, a.end_time, '"
                         SKB_TERMS_MIGRATION "' " SKB_TERMS_MISSING
                         " ON DUPLICATE KEY UPDATE kind = seckill_terms.kind");
}


skb_terms_e
skb_terms_finish(MYSQL *mysql, uint64_t activity, uint64_t epoch, char *error, size_t size)
{
    skb_terms_e  rc;

    /* seq_seen belongs to an epoch: the row's own must not have sold anything */
    rc = skb_terms_sql(mysql, NULL, error, size,
                       "UPDATE seckill_activities SET epoch = %" PRIu64 " WHERE id = %" PRIu64
                       " AND epoch < %" PRIu64 " AND seq_seen = 0 AND status <> 2 AND EXISTS "
                       "(SELECT 1 FROM seckill_terms WHERE activity_id = %" PRIu64
                       " AND epoch = %" PRIu64 ")", epoch, activity, epoch, activity, epoch);
    if (rc != SKB_TERMS_DONE) {
        return rc;
    }

    return mysql_affected_rows(mysql) > 0 ? SKB_TERMS_DONE : SKB_TERMS_NONE;
}
