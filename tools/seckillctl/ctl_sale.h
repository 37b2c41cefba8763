/*
 * A sale as Redis and MySQL hold it at this moment: read only.
 */

#ifndef _CTL_SALE_H_INCLUDED_
#define _CTL_SALE_H_INCLUDED_

#include "ctl_backend.h"
#include "ctl_control.h"

#define CTL_PRICE_MAX  16               /* DECIMAL(10,2) as text, NUL included */
#define CTL_STATE_MAX  16

/* Numbers of -1 are not known: the key is missing, or Redis cannot tell. */
typedef struct {
    uint64_t  activity;
    int       exists;                   /* the facts; without them those below are empty */
    uint64_t  product_id;
    char      price[CTL_PRICE_MAX];
    uint64_t  stock_limit;
    int64_t   start_ms;
    int64_t   end_ms;
    char      state[CTL_STATE_MAX];
    uint64_t  max_quantity;
    int       by_registration;
    uint64_t  epoch;
    uint64_t  rev;
    uint64_t  seq;
    ctl_limit_t  limit;                 /* of its own */

    int64_t   now_ms;                   /* Redis TIME */
    int64_t   stock;
    int64_t   buyers;
    int64_t   stream;
    int64_t   unread;
    int64_t   pending;
    int64_t   dead;
} ctl_live_t;

/* The row of seckill_activities and what was sold. */
typedef struct {
    int       exists;
    uint64_t  product_id;
    char      price[CTL_PRICE_MAX];
    uint64_t  stock_limit;
    int64_t   start_ms;
    int64_t   end_ms;
    int       status;
    uint64_t  sold;
    uint64_t  max_quantity;
    int       by_registration;
    uint64_t  epoch;
    uint64_t  returned;                 /* units that products.stock has again */
    uint64_t  seq_seen;
} ctl_row_t;

/* Both return CTL_FINE, or another code after reporting. */
int ctl_live_read(ctl_t *ctl, uint64_t activity, ctl_live_t *live);

/* lock: FOR UPDATE, inside the caller's transaction. */
int ctl_row_read(ctl_t *ctl, uint64_t activity, int lock, ctl_row_t *row);

/* Orders and their units, cancelled ones too: taking part is once for ever. */
int ctl_orders_count(ctl_t *ctl, uint64_t activity, uint64_t *orders, uint64_t *units);

/* "not_started", "running", "ended", or the operator's word; static text. */
const char *ctl_live_phase(const ctl_live_t *live);

#endif /* _CTL_SALE_H_INCLUDED_ */
