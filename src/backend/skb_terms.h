/*
 * The terms of an activity's epochs, in MySQL: what buyers were promised when the
 * sale was put up.  A row is written once and never changed, so an epoch that was
 * seen by anybody keeps its promise; other terms are another epoch.
 *
 * Facts that go to Redis, and orders, are made of these, never of the row in
 * seckill_activities, which the shop may edit at any time.
 */

#ifndef _SKB_TERMS_H_INCLUDED_
#define _SKB_TERMS_H_INCLUDED_

#include <mysql.h>
#include <stddef.h>
#include <stdint.h>

#define SKB_PRICE_MAX  16               /* bytes of DECIMAL(10,2) as text, NUL included */

#define SKB_TERMS_PREHEAT    "preheat"
#define SKB_TERMS_RESTORE    "restore"
#define SKB_TERMS_MIGRATION  "migration"

typedef struct {
    uint64_t  epoch;
    uint64_t  product;
    char      price[SKB_PRICE_MAX];     /* digits and one dot, nothing else */
    uint64_t  max_quantity;
    int       by_registration;
    int64_t   start_ms;
    int64_t   end_ms;
    char      kind[17];
} skb_terms_t;

typedef enum {
    SKB_TERMS_DONE,
    SKB_TERMS_NONE,                     /* there are no such terms; nothing was changed */
    SKB_TERMS_FAILED                    /* MySQL said no, or nothing: see error */
} skb_terms_e;

/* All of them run inside the caller's transaction, if there is one; error has size bytes. */

/* The terms of one epoch, or (epoch 0) those of the largest epoch that has any. */
skb_terms_e skb_terms_read(MYSQL *mysql, uint64_t activity, uint64_t epoch,
    skb_terms_t *terms, char *error, size_t size);

/* Writes a row of kind "kind" for terms->epoch; SKB_TERMS_FAILED also when there is one. */
skb_terms_e skb_terms_write(MYSQL *mysql, uint64_t activity, const skb_terms_t *terms,
    const char *kind, char *error, size_t size);

/*
 * For a restore, under the lock of the activity's row: the terms in force go on in
 * the epoch that the restore begins.  row_epoch is that of the row, live_epoch that of
 * Redis' facts or 0 when they are lost.  In force are the largest of both and of the
 * orders that has terms.  The new epoch is above all that have terms, also above
 * those of a preheat that was cut off before Redis had them.
 *
 * SKB_TERMS_DONE: terms are what the facts must be made of, terms->epoch is the new
 * epoch.  SKB_TERMS_NONE: "seckillctl schema apply" has to run first.
 */
skb_terms_e skb_terms_copy(MYSQL *mysql, uint64_t activity, uint64_t row_epoch,
    uint64_t live_epoch, skb_terms_t *terms, char *error, size_t size);

/*
 * Writes terms for every epoch that has none, by the row as it is today; *rows is
 * how many.  For epochs that version 0.1.0 made.
 */
skb_terms_e skb_terms_fill(MYSQL *mysql, uint64_t *rows, char *error, size_t size);

/*
 * The last step of a preheat: Redis has this epoch, its terms are there, and the row
 * is behind.  SKB_TERMS_NONE: there is nothing to do, or the row's epoch has sold.
 */
skb_terms_e skb_terms_finish(MYSQL *mysql, uint64_t activity, uint64_t epoch, char *error,
    size_t size);

#endif /* _SKB_TERMS_H_INCLUDED_ */
