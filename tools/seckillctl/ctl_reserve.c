/*
 * Reserving units in MySQL.
 *
 * What is reserved is the sum of the ledger, never a column of its own: after
 * the shop edits stock_limit or product_id before the start, the difference
 * between ledger and row is what has to move.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_ledger.h"
#include "ctl_reserve.h"

#define CTL_PRODUCTS_MAX  16            /* products one activity ever reserved from */

typedef struct {
    uint64_t  product;
    int64_t   reserved;                 /* by the ledger */
} ctl_share_t;

typedef struct {
    ctl_share_t  shares[CTL_PRODUCTS_MAX];
    size_t       n;
    uint64_t     rows;                  /* behind the shares */
} ctl_ledger_t;


static int
ctl_count(ctl_t *ctl, const char *table, uint64_t activity, const char *and_that, uint64_t *n)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT COUNT(*) FROM %s WHERE activity_id = %" PRIu64 "%s", table,
                 activity, and_that);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *n = column ? ctl_column_u64(column[0]) : 0;
    mysql_free_result(res);

    return CTL_FINE;
}


int
ctl_reserve_read(ctl_t *ctl, uint64_t activity, const ctl_row_t *row, ctl_reserve_t *reserve)
{
    int       rc;
    char      opened[96];
    uint64_t  n;

    memset(reserve, 0, sizeof(*reserve));
    reserve->epoch = row->epoch;

    snprintf(opened, sizeof(opened), " AND kind = 'open' AND epoch = %" PRIu64, row->epoch);

    if ((rc = ctl_count(ctl, "seckill_stock_log", activity, opened, &n)) != CTL_FINE) {
        return rc;
    }

    reserve->opened = n > 0;

    if ((rc = ctl_count(ctl, "seckill_stock_log", activity, " AND kind = 'settle'", &n))
        != CTL_FINE)
    {
        return rc;
    }

    reserve->settled = n > 0;

    if ((rc = ctl_count(ctl, "seckill_orders", activity, "", &reserve->orders)) != CTL_FINE
        || (rc = ctl_count(ctl, "seckill_records", activity, "", &n)) != CTL_FINE)
    {
        return rc;
    }

    reserve->orders += n;

    return CTL_FINE;
}


static int
ctl_ledger_read(ctl_t *ctl, uint64_t activity, ctl_ledger_t *ledger)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    memset(ledger, 0, sizeof(*ledger));

    rc = ctl_sql(ctl, &res, "SELECT product_id, -SUM(units), COUNT(*) FROM seckill_stock_log "
                 "WHERE activity_id = %" PRIu64 " AND kind IN ('preheat', 'restock') "
                 "GROUP BY product_id ORDER BY product_id", activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    while ((column = mysql_fetch_row(res)) != NULL) {

        if (ledger->n == CTL_PRODUCTS_MAX - 1) {        /* one place stays for the new one */
            mysql_free_result(res);
            return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " changed its product too "
                            "often", activity);
        }

        ledger->shares[ledger->n].product = ctl_column_u64(column[0]);
        ledger->shares[ledger->n].reserved = ctl_column_i64(column[1]);
        ledger->rows += ctl_column_u64(column[2]);
        ledger->n++;
    }

    mysql_free_result(res);

    return CTL_FINE;
}


static int
ctl_product_stock(ctl_t *ctl, uint64_t product, int64_t *stock)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT stock FROM products WHERE id = %" PRIu64 " FOR UPDATE",
                 product);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *stock = column ? ctl_column_i64(column[0]) : -1;
    mysql_free_result(res);

    return CTL_FINE;
}


/* takes units (negative: gives them back) from the product's stock */
static int
ctl_reserve_move(ctl_t *ctl, uint64_t activity, uint64_t product, int64_t units,
    uint64_t number, ctl_reserve_t *reserve)
{
    int             rc;
    char            ref[32];
    int64_t         stock;
    skb_movement_t  movement;

    rc = ctl_product_stock(ctl, product, &stock);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (stock < 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is of product %" PRIu64
                        ", which is not in products", activity, product);
    }

    if (units > stock) {
        return ctl_fail(ctl, CTL_REFUSED, "product %" PRIu64 " has %" PRId64 " units, activity %"
                        PRIu64 " needs %" PRId64 " more", product, stock, activity, units);
    }

    if (number == 0) {
        snprintf(ref, sizeof(ref), "reserve");
    } else {
        snprintf(ref, sizeof(ref), "change-%" PRIu64, number);
    }

    reserve->moved -= units;

    memset(&movement, 0, sizeof(movement));
    movement.activity = activity;
    movement.product = product;
    movement.epoch = reserve->epoch;
    movement.kind = "preheat";
    movement.ref = ref;
    movement.units = -units;

    return ctl_ledger_add(ctl, &movement, NULL);
}


/* The ledger's shares and the row's product among them, in the order of ids. */
static int
ctl_reserve_shares(ctl_t *ctl, uint64_t activity, const ctl_row_t *row, ctl_ledger_t *ledger)
{
    int     rc;
    size_t  i;

    rc = ctl_ledger_read(ctl, activity, ledger);
    if (rc != CTL_FINE) {
        return rc;
    }

    /* two preheats never lock crosswise */
    for (i = 0; i < ledger->n && ledger->shares[i].product < row->product_id; i++) { /* void */ }

    if (i == ledger->n || ledger->shares[i].product != row->product_id) {
        memmove(&ledger->shares[i + 1], &ledger->shares[i],
                (ledger->n - i) * sizeof(ctl_share_t));
        ledger->shares[i].product = row->product_id;
        ledger->shares[i].reserved = 0;
        ledger->n++;
    }

    return CTL_FINE;
}


/* What the share should be, less what it is. */
static int64_t
ctl_share_wants(const ctl_share_t *share, const ctl_row_t *row)
{
    return (share->product == row->product_id ? (int64_t) row->stock_limit : 0) - share->reserved;
}


/* Later, when Redis sells less: so it must not fail then. */
static int
ctl_reserve_proves(ctl_t *ctl, uint64_t activity, uint64_t product, int64_t units)
{
    int      rc;
    int64_t  stock;

    rc = ctl_product_stock(ctl, product, &stock);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (stock < 0 || stock + units > (int64_t) UINT32_MAX) {
        return ctl_fail(ctl, CTL_REFUSED, "%" PRId64 " units of activity %" PRIu64 " can't go "
                        "back to product %" PRIu64 ", which %s", units, activity, product,
                        stock < 0 ? "is not in products" : "has no room for them");
    }

    return CTL_FINE;
}


int
ctl_reserve_take(ctl_t *ctl, uint64_t activity, const ctl_row_t *row, ctl_reserve_t *reserve)
{
    int           rc, first;
    size_t        i;
    int64_t       wants;
    ctl_ledger_t  ledger;

    rc = ctl_reserve_shares(ctl, activity, row, &ledger);
    if (rc != CTL_FINE) {
        return rc;
    }

    for (i = 0; i < ledger.n; i++) {
        wants = ctl_share_wants(&ledger.shares[i], row);

        if (wants < 0) {
            rc = ctl_reserve_proves(ctl, activity, ledger.shares[i].product, -wants);
            reserve->back -= wants;
        }

        /* a limit of 0 has its line too: settling asks whether units were reserved */
        first = row->epoch == 0 && ledger.rows == 0
                && ledger.shares[i].product == row->product_id;

        if (wants > 0 || first) {
            rc = ctl_reserve_move(ctl, activity, ledger.shares[i].product, wants, ledger.rows,
                                  reserve);
            ledger.rows++;
        }

        if (rc != CTL_FINE) {
            return rc;
        }
    }

    return ctl_product_stock(ctl, row->product_id, &reserve->left);
}


int
ctl_reserve_give(ctl_t *ctl, uint64_t activity, const ctl_row_t *row, ctl_reserve_t *reserve)
{
    int           rc;
    size_t        i;
    int64_t       wants;
    ctl_ledger_t  ledger;

    rc = ctl_reserve_shares(ctl, activity, row, &ledger);
    if (rc != CTL_FINE) {
        return rc;
    }

    for (i = 0; i < ledger.n; i++) {
        wants = ctl_share_wants(&ledger.shares[i], row);

        if (wants >= 0) {
            continue;
        }

        rc = ctl_reserve_move(ctl, activity, ledger.shares[i].product, wants, ledger.rows,
                              reserve);
        if (rc != CTL_FINE) {
            return rc;
        }

        ledger.rows++;
    }

    return ctl_product_stock(ctl, row->product_id, &reserve->left);
}


int
ctl_reserve_opened(ctl_t *ctl, uint64_t activity, const ctl_row_t *row, uint64_t epoch)
{
    skb_movement_t  movement;

    memset(&movement, 0, sizeof(movement));
    movement.activity = activity;
    movement.product = row->product_id;
    movement.epoch = epoch;
    movement.kind = "open";
    movement.ref = "redis";

    return ctl_ledger_add(ctl, &movement, NULL);
}
