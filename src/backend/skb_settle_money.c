/*
 * The half of a settle that is MySQL's: the row and its ledger, one transaction.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_ledger.h"
#include "skb_settle_private.h"

#define SKB_STATEMENT  1024


skb_settle_e
skb_settle_refuse(skb_settling_t *s, const char *why)
{
    snprintf(s->out->error, sizeof(s->out->error), "%s", why);

    return SKB_SETTLE_REFUSED;
}


skb_settle_e
skb_settle_sql(skb_settling_t *s, MYSQL_RES **res, const char *fmt, ...)
{
    int         n;
    char        statement[SKB_STATEMENT];
    va_list     args;
    MYSQL_RES  *rows;

    va_start(args, fmt);
    n = vsnprintf(statement, sizeof(statement), fmt, args);
    va_end(args);

    if (n < 0 || (size_t) n >= sizeof(statement)) {
        return skb_settle_refuse(s, "a statement is too long");
    }

    if (mysql_real_query(s->mysql, statement, (unsigned long) n) == 0) {
        rows = mysql_store_result(s->mysql);

        if (rows && res) {
            *res = rows;
            return SKB_SETTLE_DONE;
        }

        if (rows) {
            mysql_free_result(rows);
        }

        if (mysql_errno(s->mysql) == 0 && res == NULL) {
            return SKB_SETTLE_DONE;
        }
    }

    snprintf(s->out->error, sizeof(s->out->error), "MySQL: %u %.200s", mysql_errno(s->mysql),
             mysql_error(s->mysql));
    s->out->class = skb_mysql_class(s->mysql);

    return SKB_SETTLE_MYSQL_LOST;
}


uint64_t
skb_settle_column(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}


/* an order is a proof of its seq, whatever was written down */
static skb_settle_e
skb_settle_seen(skb_settling_t *s)
{
    uint64_t      seq;
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_settle_e  rc;

    rc = skb_settle_sql(s, &res, "SELECT MAX(seq) FROM seckill_orders WHERE activity_id = %"
                        PRIu64 " AND epoch = %" PRIu64, s->activity, s->epoch);
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    seq = column ? skb_settle_column(column[0]) : 0;
    mysql_free_result(res);

    if (seq > s->seq_seen) {
        s->seq_seen = seq;
    }

    return SKB_SETTLE_DONE;
}


skb_settle_e
skb_settle_row(skb_settling_t *s, int lock)
{
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_settle_e  rc;

    rc = skb_settle_sql(s, &res, "SELECT status, epoch, seq_seen, product_id, sold, returned "
                        "FROM seckill_activities WHERE id = %" PRIu64 "%s", s->activity,
                        lock ? " FOR UPDATE" : "");
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column) {
        s->ended = skb_settle_column(column[0]) == 2;
        s->epoch = skb_settle_column(column[1]);
        s->seq_seen = skb_settle_column(column[2]);
        s->product = skb_settle_column(column[3]);
        s->sold = skb_settle_column(column[4]);
        s->returned = skb_settle_column(column[5]);
    }

    mysql_free_result(res);

    s->out->sold = s->sold;

    if (column && !lock) {
        rc = skb_settle_seen(s);
    }

    return column ? rc
                  : skb_settle_refuse(s, "the activity is not in seckill_activities");
}


static skb_settle_e
skb_settle_ledger(skb_settling_t *s, skb_ledger_e rc)
{
    switch (rc) {

    case SKB_LEDGER_FAILED:
        s->out->class = skb_mysql_class(s->mysql);
        return skb_ledger_broken(s->mysql) ? SKB_SETTLE_REFUSED : SKB_SETTLE_MYSQL_LOST;

    case SKB_LEDGER_REFUSED:
        return SKB_SETTLE_REFUSED;

    default:
        return SKB_SETTLE_DONE;
    }
}


/* Units that an earlier settle gave back. */
static skb_settle_e
skb_settle_before(skb_settling_t *s)
{
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_settle_e  rc;

    rc = skb_settle_sql(s, &res, "SELECT SUM(units) FROM seckill_stock_log WHERE activity_id = %"
                        PRIu64 " AND kind = 'settle'", s->activity);
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    s->out->unsold = column ? skb_settle_column(column[0]) : 0;
    mysql_free_result(res);
    return SKB_SETTLE_ALREADY;
}


/* what is returned can't be sold any more, whatever still comes */
static skb_settle_e
skb_settle_write(skb_settling_t *s, int64_t unsold)
{
    skb_settle_e    rc;
    skb_movement_t  movement = { s->activity, 0, s->epoch, "settle", "settle", unsold, NULL,
                                 s->actor, NULL };

    rc = skb_settle_ledger(s, skb_ledger_product(s->mysql, s->activity, s->product,
                                                 &movement.product, s->out->error));
    if (rc == SKB_SETTLE_DONE) {
        rc = skb_settle_ledger(s, skb_ledger_add(s->mysql, &movement, s->out->error));
    }

    if (rc == SKB_SETTLE_DONE) {
        rc = skb_settle_sql(s, NULL, "UPDATE seckill_activities SET status = 2 WHERE id = %"
                            PRIu64, s->activity);
    }

    return rc;
}


/* what the product gets: units that were never taken from it don't go back */
static skb_settle_e
skb_settle_unsold(skb_settling_t *s, const skb_units_t *units, int64_t *unsold)
{
    *unsold = units->lines == 0
              ? 0 : units->taken - (int64_t) units->sold - (int64_t) units->returned;

    return *unsold >= 0 ? SKB_SETTLE_DONE
           : skb_settle_refuse(s, "MySQL has sold and returned more units than the ledger "
                               "reserved; nothing was changed");
}


/* the product that the units came from is there, and has room for them */
static skb_settle_e
skb_settle_room(skb_settling_t *s, int64_t unsold)
{
    int           fits;
    uint64_t      product;
    MYSQL_RES    *res;
    skb_settle_e  rc;

    rc = skb_settle_ledger(s, skb_ledger_product(s->mysql, s->activity, s->product, &product,
                                                 s->out->error));
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    rc = skb_settle_sql(s, &res, "SELECT id FROM products WHERE id = %" PRIu64
                        " AND CAST(stock AS SIGNED) + %" PRId64 " <= 4294967295", product, unsold);
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    fits = mysql_num_rows(res) > 0;
    mysql_free_result(res);

    if (!fits) {
        snprintf(s->out->error, sizeof(s->out->error), "product %" PRIu64 " is not in products, "
                 "or has no room for %" PRId64 " units; nothing was changed", product, unsold);
    }

    return fits ? SKB_SETTLE_DONE : SKB_SETTLE_REFUSED;
}


/* before the first write, which is to Redis */
skb_settle_e
skb_settle_prove(skb_settling_t *s)
{
    int64_t       unsold = 0;
    skb_units_t   units;
    skb_settle_e  rc;

    if (s->ended) {
        return SKB_SETTLE_DONE;
    }

    rc = skb_settle_ledger(s, skb_ledger_look(s->mysql, s->activity, &units, s->out->error));

    if (rc == SKB_SETTLE_DONE) {
        rc = skb_settle_unsold(s, &units, &unsold);
    }

    return rc == SKB_SETTLE_DONE && unsold > 0 ? skb_settle_room(s, unsold) : rc;
}


/* inside the transaction */
static skb_settle_e
skb_settle_money(skb_settling_t *s)
{
    int64_t       unsold;
    skb_units_t   units;
    skb_settle_e  rc;

    if ((rc = skb_settle_row(s, 1)) != SKB_SETTLE_DONE) {
        return rc;
    }

    if (s->ended) {
        return skb_settle_before(s);
    }

    rc = skb_settle_ledger(s, skb_ledger_units(s->mysql, s->activity, &units, s->out->error));
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    rc = skb_settle_unsold(s, &units, &unsold);
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    s->out->unsold = (uint64_t) unsold;

    return skb_settle_write(s, unsold);
}


skb_settle_e
skb_settle_mysql(skb_settling_t *s)
{
    skb_settle_e  rc;

    rc = skb_settle_sql(s, NULL, "START TRANSACTION");
    if (rc != SKB_SETTLE_DONE) {
        return rc;
    }

    rc = skb_settle_money(s);

    if (rc == SKB_SETTLE_DONE) {
        return skb_settle_sql(s, NULL, "COMMIT");
    }

    if (mysql_rollback(s->mysql) != 0 && rc == SKB_SETTLE_ALREADY) {
        return SKB_SETTLE_MYSQL_LOST;
    }

    return rc;
}
