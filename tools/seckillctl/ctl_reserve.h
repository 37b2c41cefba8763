/*
 * The MySQL half of a preheat: units move from products.stock to the activity,
 * each movement written to the ledger once.
 */

#ifndef _CTL_RESERVE_H_INCLUDED_
#define _CTL_RESERVE_H_INCLUDED_

#include "ctl_sale.h"

typedef struct {
    uint64_t  epoch;                    /* of the activity from now on */
    int64_t   moved;                    /* change of products.stock by this run */
    int64_t   back;                     /* to be given back once Redis sells less */
    int64_t   left;                     /* products.stock of the activity's product */
    int       opened;                   /* the ledger says that Redis had this epoch before */
    int       settled;                  /* ... and that the sale was settled once */
    uint64_t  orders;                   /* rows in seckill_orders and seckill_records */
} ctl_reserve_t;

/* What the ledger and the orders say; inside the transaction that locked the row. */
int ctl_reserve_read(ctl_t *ctl, uint64_t activity, const ctl_row_t *row,
    ctl_reserve_t *reserve);

/*
 * Brings the reserved units to row->stock_limit of row->product_id, whatever was
 * reserved before: take() what is missing, before Redis sells more; give() back what
 * is too much, after Redis sells less.  take() also proves that give() can.  Running
 * either again moves nothing.  CTL_REFUSED when products.stock has too few.  The
 * caller commits.
 */
int ctl_reserve_take(ctl_t *ctl, uint64_t activity, const ctl_row_t *row,
    ctl_reserve_t *reserve);
int ctl_reserve_give(ctl_t *ctl, uint64_t activity, const ctl_row_t *row,
    ctl_reserve_t *reserve);

/* Records that Redis holds this epoch: from here missing facts are lost facts. */
int ctl_reserve_opened(ctl_t *ctl, uint64_t activity, const ctl_row_t *row, uint64_t epoch);

#endif /* _CTL_RESERVE_H_INCLUDED_ */
