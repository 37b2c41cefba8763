/*
 * The only writer of seckill_stock_log: a line of the ledger, the product's stock
 * and what the activity's row counts change together, or not at all.
 *
 *   reserved   units that preheats and restocks took from the product
 *   sold       units in orders, less those that a cancel gave back
 *   returned   units that the product has again
 *
 * sold + returned is never above reserved: proved here under the lock of the
 * row, and once more by the table's CHECK ck_units.
 */

#ifndef _SKB_LEDGER_H_INCLUDED_
#define _SKB_LEDGER_H_INCLUDED_

#include <mysql.h>
#include <stddef.h>
#include <stdint.h>

#define SKB_LEDGER_ERROR_MAX  256

/*
 * What moves.  By its kind:
 *
 *   preheat, restock   from the product to the activity: units is negative, or
 *                      positive when a lowered limit gives some back
 *   settle             what is unsold, to the product
 *   release, surplus   units that became no order, to the target
 *   cancel             units of a cancelled order, to the target
 *   all others         a note: no unit moves, whatever units says
 *
 * target "product" is products.stock; "redis" is back on sale; "" is nowhere.
 */
typedef struct {
    uint64_t     activity;
    uint64_t     product;               /* give-backs: see skb_ledger_product() */
    uint64_t     epoch;
    const char  *kind;
    const char  *ref;                   /* tells movements of one kind and epoch apart */
    int64_t      units;                 /* seen from products.stock */
    const char  *target;                /* NULL is "" */
    const char  *actor;
    const char  *note;                  /* NULL is "" */
} skb_movement_t;

typedef enum {
    SKB_LEDGER_ADDED,
    SKB_LEDGER_THERE,                   /* the line was there: nothing was changed */
    SKB_LEDGER_REFUSED,                 /* it does not add up, see error: roll back */
    SKB_LEDGER_FAILED                   /* mysql_errno() tells: roll back */
} skb_ledger_e;

/*
 * Adds one movement.  Call it inside a transaction that holds the lock of the
 * activity's row, unless the kind is a note; the caller ends the transaction.
 * error has SKB_LEDGER_ERROR_MAX bytes, and is set by REFUSED and FAILED.
 */
skb_ledger_e skb_ledger_add(MYSQL *mysql, const skb_movement_t *movement, char *error);

/*
 * The same for many of one activity and product.  Those whose line was there are
 * left out, *units is the sum of the others: ADDED, or THERE when none was new.
 */
skb_ledger_e skb_ledger_add_all(MYSQL *mysql, const skb_movement_t *movements, size_t n,
    int64_t *units, char *error);

/* The row of an activity beside its ledger. */
typedef struct {
    int       has_reserved;             /* the column is not NULL */
    uint64_t  reserved;                 /* of the row */
    uint64_t  sold;
    uint64_t  returned;
    uint64_t  lines;                    /* of the ledger that reserve units */
    int64_t   taken;                    /* by the ledger: what reserved should be */
    int64_t   given;                    /* by the ledger: what returned should be */
    int64_t   cancelled;                /* ... and cancelled to the product, of that */
} skb_units_t;

/* Reads and locks both, inside a transaction: ADDED, or REFUSED: there is no such row. */
skb_ledger_e skb_ledger_units(MYSQL *mysql, uint64_t activity, skb_units_t *units, char *error);

/* The same as it is at this moment, without a lock. */
skb_ledger_e skb_ledger_look(MYSQL *mysql, uint64_t activity, skb_units_t *units, char *error);

/*
 * The product that the activity's units were taken from, which is the one that
 * gets them back, whatever the row says by now: the one the ledger owes most.
 * Stays fallback when the ledger never reserved any.
 */
skb_ledger_e skb_ledger_product(MYSQL *mysql, uint64_t activity, uint64_t fallback,
    uint64_t *product, char *error);

/*
 * Takes reserved over from the ledger, and returned with what 0.1.0 cancelled to
 * the product but counted as sold.  Inside a transaction that the caller ends:
 * ADDED when something changed, THERE when all was so, REFUSED when the row's
 * ledger does not add up, which changes nothing.
 */
skb_ledger_e skb_ledger_take_over(MYSQL *mysql, uint64_t activity, skb_units_t *units,
    char *error);

/*
 * The ids of activities whose rows are behind their ledgers, ascending; the caller
 * frees them.  Returns 0, or -1: mysql_errno() tells.
 */
int skb_ledger_behind(MYSQL *mysql, MYSQL_RES **res);

/* 1 when the last statement failed because of CHECK ck_units. */
int skb_ledger_broken(MYSQL *mysql);

#endif /* _SKB_LEDGER_H_INCLUDED_ */
