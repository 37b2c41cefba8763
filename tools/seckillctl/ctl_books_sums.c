/*
 * See the header.
 */

#include <inttypes.h>
#include <string.h>

#include "ctl_books_sums.h"

static const char *const  ctl_sum_words[CTL_SUMS][2] = {
    { "sold",     "seckill_activities.sold is not what the orders hold" },
    { "returned", "seckill_activities.returned is not what the ledger gave back" },
    { "reserved", "seckill_activities.reserved is not what the ledger took" },
    { "seq_seen", "seckill_activities.seq_seen is behind the orders" },
    { "products_stock", "products.stock was changed by somebody else than the ledger" }
};


const char *
ctl_sum_name(ctl_sum_e which)
{
    return ctl_sum_words[which][0];
}


const char *
ctl_sum_note(const ctl_sums_t *sums, ctl_sum_e which)
{
    int               differs;
    const ctl_sum_t  *sum;

    sum = &sums->sums[which];
    differs = which == CTL_SUM_SEQ_SEEN ? sum->is < sum->should_be : sum->is != sum->should_be;

    return sum->known && differs ? ctl_sum_words[which][1] : NULL;
}


size_t
ctl_sums_wrong(const ctl_sums_t *sums)
{
    size_t  n;
    int     i;

    n = 0;

    for (i = 0; i < CTL_SUMS; i++) {
        n += ctl_sum_note(sums, i) != NULL && !(i == CTL_SUM_STOCK && sums->shop_stock);
    }

    return n;
}


/* the columns of one row as numbers; *there: the row is there and has no NULL */
static int
ctl_sums_row(ctl_t *ctl, const char *select, uint64_t id, const char *tail, int64_t *numbers,
    unsigned n, int *there)
{
    int        rc;
    unsigned   i;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "%s%" PRIu64 "%s", select, id, tail);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *there = column != NULL;

    for (i = 0; i < n; i++) {
        *there = *there && column[i] != NULL;
        numbers[i] = *there ? ctl_column_i64(column[i]) : 0;
    }

    mysql_free_result(res);

    return CTL_FINE;
}


static void
ctl_sum_set(ctl_sums_t *sums, ctl_sum_e which, int known, int64_t is, int64_t should_be)
{
    sums->sums[which].known = known;
    sums->sums[which].is = is;
    sums->sums[which].should_be = should_be;
}


/* The product that the ledger took units from last, and its stock. */
static int
ctl_sums_stock(ctl_t *ctl, uint64_t activity, ctl_sums_t *sums)
{
    int      rc, there;
    int64_t  product = 0, base[2] = { 0 }, moved = 0;

    rc = ctl_sums_row(ctl, "SELECT product_id FROM seckill_stock_log WHERE kind IN ('preheat', "
                      "'restock') AND units < 0 AND activity_id = ", activity,
                      " ORDER BY id DESC LIMIT 1", &product, 1, &there);

    if (rc != CTL_FINE || !there) {
        return rc;
    }

    rc = ctl_sums_row(ctl, "SELECT p.stock, b.base FROM products p JOIN seckill_stock_base b "
                      "ON b.product_id = p.id WHERE p.id = ", (uint64_t) product, "", base,
                      2, &there);

    if (rc != CTL_FINE || !there) {
        return rc;
    }

    rc = ctl_sums_row(ctl, "SELECT COALESCE(SUM(units), 0) FROM seckill_stock_log "
                      "WHERE (kind IN ('preheat', 'restock', 'settle') OR target = 'product') "
                      "AND product_id = ", (uint64_t) product, "", &moved, 1,
                      &there);

    if (rc == CTL_FINE) {
        ctl_sum_set(sums, CTL_SUM_STOCK, there, base[0], base[1] + moved);
    }

    return rc;
}


int
ctl_sums_read(ctl_t *ctl, uint64_t activity, ctl_sums_t *sums)
{
    int      rc, migrated, there;
    int64_t  row[4] = { 0 }, orders = 0, ledger[3] = { 0 }, seq = 0;

    memset(sums, 0, sizeof(*sums));

    /* 0.1.0 counted a cancel in another way: a row of its is not judged */
    rc = ctl_sums_row(ctl, "SELECT sold, returned, seq_seen, reserved FROM seckill_activities "
                      "WHERE id = ", activity, "", row, 4, &migrated);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_sums_row(ctl, "SELECT COALESCE(SUM(quantity), 0) FROM seckill_orders "
                      "WHERE activity_id = ", activity, "", &orders, 1, &there);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_sums_row(ctl, "SELECT "
                      "COALESCE(SUM(IF(kind = 'cancel' AND target <> '', units, 0)), 0), "
                      "COALESCE(SUM(IF(kind = 'settle' OR target = 'product', units, 0)), 0), "
                      "COALESCE(-SUM(IF(kind IN ('preheat', 'restock'), units, 0)), 0) "
                      "FROM seckill_stock_log WHERE activity_id = ", activity, "", ledger, 3,
                      &there);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_sum_set(sums, CTL_SUM_SOLD, migrated, row[0], orders - ledger[0]);
    ctl_sum_set(sums, CTL_SUM_RETURNED, migrated, row[1], ledger[1]);
    ctl_sum_set(sums, CTL_SUM_RESERVED, migrated, row[3], ledger[2]);

    rc = ctl_sums_row(ctl, "SELECT COALESCE(MAX(o.seq), 0) FROM seckill_orders o "
                      "JOIN seckill_activities a ON a.id = o.activity_id AND a.epoch = o.epoch "
                      "WHERE a.id = ", activity, "", &seq, 1, &there);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_sum_set(sums, CTL_SUM_SEQ_SEEN, migrated, row[2], seq);

    return ctl_sums_stock(ctl, activity, sums);
}
