/*
 * Turns purchases into orders: one MySQL connection, one transaction per range
 * of a batch.  Nothing is committed without the lock of the activity's row, where
 * "sold" guards the limit (DESIGN promise P1).  Knows nothing of Redis.
 */

#ifndef _SKD_WRITER_H_INCLUDED_
#define _SKD_WRITER_H_INCLUDED_

#include <mysql.h>
#include <stdatomic.h>
#include <stdint.h>

#include "skb_config.h"
#include "skb_mysql.h"
#include "skd_batch.h"
#include "skd_sql.h"

typedef struct {
    MYSQL              *mysql;          /* NULL: not connected */
    skd_sql_t           sql;
    int64_t             used_ms;        /* when the connection last answered */
    atomic_int_least64_t  *beat_ms;     /* the same, for who watches the thread, or NULL */
    skb_mysql_class_e   class;          /* of the last failure */
    char                error[SKD_ERROR_MAX];
} skd_writer_t;

/*
 * Connects when there is no connection, and proves one that was idle for long.
 * Returns SKD_OK, or SKD_MYSQL_LOST with class and error set; a server that is
 * read-only counts as lost.
 */
skd_rc_e skd_writer_connect(skd_writer_t *writer, const skb_config_t *config);

/* Closes the connection; the transaction is rolled back by the server. */
void skd_writer_close(skd_writer_t *writer);

/* Gives everything back. */
void skd_writer_done(skd_writer_t *writer);

/*
 * Stores the range in one transaction: after SKD_OK every entry has its
 * outcome, orders have their ids, and the failed their tombstones.
 *
 * look: first lock the row, then read what the users have.  Without it all
 * entries must be new, which the unique keys check as they are written, and fit,
 * which the row checks when "sold" grows: SKD_DUPLICATE says that they do not, and
 * nothing was done.  That is the way of nearly every batch: the row is locked
 * from its last statement on, so workers write side by side.  Whoever decides
 * under the lock that a buyer has no order must leave a tombstone in
 * seckill_records, which the batch then runs into.
 *
 * SKD_OLDER: ask Redis with skd_held_ask(), for the epoch in range->epoch, and store
 * those that it holds.  The epoch is the same until the COMMIT: it is read under the
 * row's lock, or is part of the guard when "sold" grows.
 *
 * Any other result has changed nothing either, except that after
 * SKD_MYSQL_LOST the COMMIT may have happened: storing the range again, with a
 * look, finds out, as the same purchase is success.
 */
skd_rc_e skd_writer_store(skd_writer_t *writer, uint64_t activity, skd_range_t *range,
    int look);

/* The user's purchase is tried again: a record with status 0, unless there is a record. */
skd_rc_e skd_writer_queueing(skd_writer_t *writer, uint64_t activity, uint64_t user);

/* Sets status 1 of an activity that has begun; SKD_OK also when it was set. */
skd_rc_e skd_writer_begin_sale(skd_writer_t *writer, uint64_t activity);

#endif /* _SKD_WRITER_H_INCLUDED_ */
