/*
 * The two ways to close a dead letter without giving its units back.
 *
 * retry takes the tombstone away, on record, and queues the purchase again: the
 * only way back from failed.  drop forgets the letter.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_dead.h"
#include "ctl_ledger.h"

typedef struct {
    ctl_dead_t    *dead;
    ctl_letter_t  *letter;
    const char    *refused;             /* by the transaction, or NULL */
    int            fresh;               /* its number is another order's */
    int            take;                /* no unit is kept for it: it takes one that is left */
} ctl_close_t;


/* the letter with this id, or NULL: gone */
static ctl_letter_t *
ctl_dead_find(ctl_dead_t *dead, const char *id)
{
    size_t  i;

    for (i = 0; i < dead->books.nletters; i++) {
        if (strcmp(dead->books.letters[i].id, id) == 0) {
            return &dead->books.letters[i];
        }
    }

    return NULL;
}


/* one row is there */
static int
ctl_dead_has(ctl_t *ctl, int *has, const char *table, const char *where, uint64_t activity)
{
    int        rc;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT id FROM %s WHERE activity_id = %" PRIu64 " AND %s LIMIT 1",
                 table, activity, where);

    if (rc == CTL_FINE) {
        *has = mysql_num_rows(res) > 0;
        mysql_free_result(res);
    }

    return rc;
}


/* units of this letter went somewhere: by its user, or as a second purchase */
static int
ctl_dead_released(ctl_t *ctl, const ctl_close_t *close, int *released)
{
    char                 where[256];
    const ctl_letter_t  *letter;

    letter = close->letter;

    snprintf(where, sizeof(where), "((kind = 'release' AND ref = 'user:%" PRIu64 "') "
             "OR (kind IN ('surplus', 'drop') AND ref = 'seq:%" PRIu64 ":%" PRIu64 "'))",
             letter->user, letter->epoch, letter->seq);

    return ctl_dead_has(ctl, released, "seckill_stock_log", where, close->dead->activity);
}


static int
ctl_dead_log(ctl_t *ctl, const ctl_close_t *close, const char *kind, const char *ref,
    uint64_t units)
{
    char            note[CTL_ENTRY_MAX + 32];
    skb_movement_t  movement;

    snprintf(note, sizeof(note), "user %" PRIu64 ", %s", close->letter->user, close->letter->id);

    memset(&movement, 0, sizeof(movement));
    movement.activity = close->dead->activity;
    movement.product = close->dead->row.product_id;
    movement.epoch = close->dead->row.epoch;
    movement.kind = kind;
    movement.ref = ref;
    movement.units = (int64_t) units;
    movement.note = note;

    return ctl_ledger_add(ctl, &movement, NULL);
}


/* before the first write; sets what the purchase needs to be queued */
static const char *
ctl_retry_refusal(ctl_close_t *close)
{
    const ctl_books_t  *books;

    books = &close->dead->books;

    if (!close->letter->whole) {
        return "refused: it does not hold a whole purchase";
    }

    if (!books->live.exists || books->live.stock < 0) {
        return "refused: the sale is not whole in Redis, restore it first";
    }

    if (strcmp(books->live.state, "settled") == 0) {
        return "refused: the sale is settled";
    }

    /* Redis has put the units of letters on sale once more */
    close->take = books->missing < 0;

    return close->take && (int64_t) close->letter->quantity > books->live.stock
           ? "refused: no units are left for it" : NULL;
}


/* takes the tombstone away; inside the transaction */
static int
ctl_retry_mysql(ctl_t *ctl, void *data)
{
    int           rc, has;
    char          where[96];
    ctl_close_t  *close;

    close = data;
    snprintf(where, sizeof(where), "user_id = %" PRIu64, close->letter->user);

    if ((rc = ctl_row_read(ctl, close->dead->activity, 1, &close->dead->row)) != CTL_FINE
        || (rc = ctl_dead_released(ctl, close, &has)) != CTL_FINE)
    {
        return rc;
    }

    if (close->dead->row.status == 2) {
        close->refused = "refused: the sale is settled";
        return CTL_FINE;
    }

    if (has) {
        close->refused = "refused: its units were given back";
        return CTL_FINE;
    }

    rc = ctl_dead_has(ctl, &has, "seckill_orders", where, close->dead->activity);

    if (rc != CTL_FINE || has) {
        close->refused = has ? "refused: the user has an order, drop the letter" : NULL;
        return rc;
    }

    snprintf(where, sizeof(where), "epoch = %" PRIu64 " AND seq = %" PRIu64,
             close->letter->epoch, close->letter->seq);

    rc = ctl_dead_has(ctl, &close->fresh, "seckill_orders", where, close->dead->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_sql(ctl, NULL, "DELETE FROM seckill_records WHERE user_id = %" PRIu64
                 " AND activity_id = %" PRIu64 " AND status = 2", close->letter->user,
                 close->dead->activity);

    return rc == CTL_FINE ? ctl_dead_log(ctl, close, "retry", close->letter->id, 0) : rc;
}


static int
ctl_retry_redis(ctl_t *ctl, const ctl_close_t *close, const char **done)
{
    int          rc;
    char         keys[6][SK_KEY_MAX + 1], user[24];
    size_t       i;
    redisReply  *reply;

    static const sk_key_e  which[6] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_ORDERS, SK_KEY_DEAD, SK_KEY_RESULT
    };

    for (i = 0; i < 6; i++) {
        ctl_key(ctl, keys[i], which[i], close->dead->activity,
                which[i] == SK_KEY_RESULT ? close->letter->user : 0);
    }

    snprintf(user, sizeof(user), "%" PRIu64, close->letter->user);

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_DEAD_RETRY, 6, (const char *[]) {
                            keys[0], keys[1], keys[2], keys[3], keys[4], keys[5],
                            close->letter->id, user, close->fresh ? "1" : "0",
                            close->take ? "1" : "0"
                        }, 4);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2
        && skb_redis_at(reply, 0)->type == REDIS_REPLY_STRING)
    {
        *done = strcmp(skb_redis_text(reply, 0), "queued") == 0 ? "queued"
                : strcmp(skb_redis_text(reply, 0), "none") == 0 ? NULL : "already done";
    } else {
        rc = ctl_redis_refused(ctl, reply);
    }

    freeReplyObject(reply);

    return rc;
}


/* the last unit went to somebody else meanwhile: the tombstone goes back to its place */
static int
ctl_retry_undo(ctl_t *ctl, const ctl_close_t *close)
{
    return ctl_sql(ctl, NULL, "INSERT INTO seckill_records (user_id, activity_id, status) "
                   "VALUES (%" PRIu64 ", %" PRIu64 ", 2) ON DUPLICATE KEY UPDATE "
                   "status = IF(status = 1, 1, 2)", close->letter->user, close->dead->activity);
}


static int
ctl_retry_one(ctl_t *ctl, ctl_close_t *close, ctl_closing_t *closing)
{
    int  rc;

    close->refused = ctl_retry_refusal(close);

    if (!close->refused) {
        rc = ctl_sql_transaction(ctl, ctl_retry_mysql, close);
        if (rc != CTL_FINE) {
            return rc;
        }
    }

    if (close->refused) {
        closing->done = close->refused;
        closing->failed = 1;
        return CTL_FINE;
    }

    rc = ctl_retry_redis(ctl, close, &closing->done);

    if (rc == CTL_FINE && closing->done == NULL) {
        closing->done = "refused: no units are left for it";
        closing->failed = 1;
        rc = ctl_retry_undo(ctl, close);
    }

    if (rc != CTL_FINE) {
        closing->done = "its tombstone is gone, it is not queued: retry it again";
        closing->failed = 1;
        return CTL_PARTLY;
    }

    if (close->take && !closing->failed) {
        close->dead->books.missing += close->letter->quantity;
        close->dead->books.live.stock -= close->letter->quantity;
    }

    return CTL_FINE;
}


/* books what the letter held as given up, unless that is done or was never asked for */
static int
ctl_drop_mysql(ctl_t *ctl, void *data)
{
    int           rc, released, ordered;
    char          text[128];
    ctl_close_t  *close;

    close = data;

    if ((rc = ctl_row_read(ctl, close->dead->activity, 1, &close->dead->row)) != CTL_FINE
        || (rc = ctl_dead_released(ctl, close, &released)) != CTL_FINE)
    {
        return rc;
    }

    snprintf(text, sizeof(text), "user_id = %" PRIu64 " AND epoch = %" PRIu64 " AND seq = %"
             PRIu64, close->letter->user, close->letter->epoch, close->letter->seq);

    rc = ctl_dead_has(ctl, &ordered, "seckill_orders", text, close->dead->activity);

    if (rc != CTL_FINE || released || ordered) {
        return rc;
    }

    if (!close->dead->keep_units) {
        close->refused = "refused: its units were not given back, release it or say --keep-units";
        return CTL_FINE;
    }

    if (close->letter->whole) {
        snprintf(text, sizeof(text), "seq:%" PRIu64 ":%" PRIu64, close->letter->epoch,
                 close->letter->seq);
    } else {
        snprintf(text, sizeof(text), "letter:%s", close->letter->id);
    }

    return ctl_dead_log(ctl, close, "drop", text, close->letter->quantity);
}


static int
ctl_drop_one(ctl_t *ctl, ctl_close_t *close, ctl_closing_t *closing)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    rc = ctl_sql_transaction(ctl, ctl_drop_mysql, close);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (close->refused) {
        closing->done = close->refused;
        closing->failed = 1;
        return CTL_FINE;
    }

    ctl_key(ctl, key, SK_KEY_DEAD, close->dead->activity, 0);

    rc = ctl_redis(ctl, &reply, "XDEL %s %s", key, close->letter->id);

    if (rc != CTL_FINE) {
        closing->done = "its units are booked, the letter is still there: drop it again";
        closing->failed = 1;
        return CTL_PARTLY;
    }

    closing->done = reply->integer == 1 ? "dropped" : "already done";
    freeReplyObject(reply);

    return CTL_FINE;
}


/* Nothing is said of a letter that was not come to, and what was done is told. */
static int
ctl_dead_stopped(ctl_dead_t *dead, size_t at, int rc)
{
    size_t  i;

    for (i = at; i < dead->nclosings; i++) {
        dead->closings[i].id = dead->all ? dead->books.letters[i].id : dead->ids[i];

        if (dead->closings[i].done == NULL) {
            dead->closings[i].done = i > at ? "not done: run it again"
                                     : rc == CTL_PARTLY ? "not known: run it again"
                                                        : "not done";
        }

        dead->closings[i].failed = 1;
    }

    for (i = 0; i < at; i++) {
        rc = dead->closings[i].failed ? rc : CTL_PARTLY;
    }

    return rc;
}


static int
ctl_dead_each(ctl_t *ctl, ctl_dead_t *dead,
    int (*one)(ctl_t *ctl, ctl_close_t *close, ctl_closing_t *closing))
{
    int             rc;
    size_t          i;
    ctl_close_t     close;
    ctl_closing_t  *closing;

    for (i = 0; i < dead->nclosings; i++) {
        closing = &dead->closings[i];
        closing->id = dead->all ? dead->books.letters[i].id : dead->ids[i];

        close.dead = dead;
        close.letter = ctl_dead_find(dead, closing->id);
        close.refused = NULL;
        close.fresh = close.take = 0;

        if (close.letter == NULL) {
            closing->done = "not there: it was queued, dropped or released before";
            continue;
        }

        rc = one(ctl, &close, closing);
        if (rc != CTL_FINE) {
            return ctl_dead_stopped(dead, i, rc);
        }
    }

    return CTL_FINE;
}


int
ctl_dead_retry(ctl_t *ctl, ctl_dead_t *dead)
{
    return ctl_dead_each(ctl, dead, ctl_retry_one);
}


int
ctl_dead_drop(ctl_t *ctl, ctl_dead_t *dead)
{
    return ctl_dead_each(ctl, dead, ctl_drop_one);
}
