/*
 * The statements of one transaction.  Every function runs inside it, mostly
 * under the lock of the activity's row; all are one round trip per 500 entries or
 * less.  On failure the writer's class and error tell why.
 */

#ifndef _SKD_ROWS_H_INCLUDED_
#define _SKD_ROWS_H_INCLUDED_

#include "skb_terms.h"
#include "skd_writer.h"

#define SKD_TERMS_MAX  8                /* epochs of one transaction */

/* What buyers of an epoch were promised; the price stays the text that the server sent. */
typedef struct {
    uint64_t  epoch;
    int       found;                    /* MySQL has them */
    uint64_t  product;
    uint64_t  max_quantity;
    char      price[SKB_PRICE_MAX];
} skd_terms_t;

/* The activity's row, and the terms of every epoch of the range. */
typedef struct {
    uint64_t     id;
    uint64_t     stock_limit;           /* units */
    uint64_t     sold;                  /* units */
    uint64_t     returned;              /* units that products.stock has again */
    int          has_reserved;          /* 0: not known, not judged */
    uint64_t     reserved;              /* units that the ledger took from the product */
    uint64_t     epoch;
    skd_terms_t  terms[SKD_TERMS_MAX];
    size_t       terms_n;
} skd_activity_t;

/* Runs the statement in writer->sql; res may be NULL, else free the rows. */
skd_rc_e skd_rows_run(skd_writer_t *writer, MYSQL_RES **res);

/* What the failure of the last statement means; sets class and error. */
skd_rc_e skd_rows_failed(skd_writer_t *writer);

/* A statement that is a constant. */
skd_rc_e skd_rows_exec(skd_writer_t *writer, const char *text);

/* Reads the row, and maybe locks it; SKD_BLOCKED when there is none. */
skd_rc_e skd_rows_read_activity(skd_writer_t *writer, skd_activity_t *activity, int lock);

/*
 * Reads the terms of all epochs that entries of the range have; an epoch without
 * any is not found, which is no failure.  SKD_SPLIT: more than SKD_TERMS_MAX epochs.
 */
skd_rc_e skd_rows_read_terms(skd_writer_t *writer, skd_activity_t *activity,
    const skd_range_t *range);

/* Those of one epoch of the range, found or not. */
const skd_terms_t *skd_activity_terms(const skd_activity_t *activity, uint64_t epoch);

/* What the owners' users have: order and record. */
skd_rc_e skd_rows_find_orders(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range);
skd_rc_e skd_rows_find_records(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range);

/* Marks entries whose (epoch, seq) belongs to another user's order. */
skd_rc_e skd_rows_find_taken(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range);

/* Gives entries whose order_no belongs to another purchase a free one. */
skd_rc_e skd_rows_renumber(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range);

/* Those with outcome SKD_INSERT: write them, then find their ids, the first one known. */
skd_rc_e skd_rows_insert_orders(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range, uint64_t *first_id);
skd_rc_e skd_rows_find_ids(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range, uint64_t first_id);

/* The owners' verdicts: new rows, then changed ones. */
skd_rc_e skd_rows_write_records(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range);

/* Units of SKD_EXTRA entries, to the ledger, each once. */
skd_rc_e skd_rows_write_extras(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range);

/*
 * Adds to "sold", which locks the row, and remembers the seq; the first order
 * also begins the sale.  SKD_DUPLICATE: they do not fit, or the row is of another
 * epoch than what was read, and nothing was added.
 */
skd_rc_e skd_rows_add_sold(skd_writer_t *writer, const skd_activity_t *activity,
    const skd_range_t *range, uint64_t units);

#endif /* _SKD_ROWS_H_INCLUDED_ */
