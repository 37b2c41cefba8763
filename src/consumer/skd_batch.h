/*
 * The entries of one read, what each of them says and what became of it.  Owns
 * the reply they came in, until the next read.
 */

#ifndef _SKD_BATCH_H_INCLUDED_
#define _SKD_BATCH_H_INCLUDED_

#include <hiredis/hiredis.h>
#include <stddef.h>
#include <stdint.h>

#include "sk_message.h"
#include "skd.h"

#define SKD_ENTRY_DELETED  "the entry was deleted from the stream"

typedef enum {
    SKD_OPEN,                           /* not decided */
    SKD_INSERT,                         /* becomes an order */
    SKD_SAME,                           /* this purchase is an order already */
    SKD_EXTRA,                          /* the user has the order of another purchase */
    SKD_DEAD                            /* will not become an order: see reason */
} skd_outcome_e;

typedef enum {
    SKD_RECORD_NONE = -1,
    SKD_RECORD_QUEUEING = 0,            /* as in seckill_records.status */
    SKD_RECORD_SUCCESS = 1,
    SKD_RECORD_FAILED = 2
} skd_record_e;

/* A user's order of the activity; id 0: it is not written yet. */
typedef struct {
    int       exists;
    uint64_t  id;
    uint64_t  epoch;
    uint64_t  seq;
    char      number[SK_ORDER_NO_LEN + 1];
} skd_order_t;

typedef struct {
    const char        *id;              /* of the stream entry, NUL-terminated */
    const redisReply  *fields;          /* as read; NULL when the entry was deleted */
    int                has_user;        /* message.user is good, even with a fault */
    sk_message_t       message;         /* whole when there is no fault */

    /* stays through every attempt */
    const char        *fault;           /* can't be stored: the reason, or NULL */
    char               error[SKD_ERROR_MAX];            /* the first error's text */
    char               last_error[SKD_ERROR_MAX];       /* of a later attempt, or "" */
    unsigned           attempts;                        /* those that failed before */
    uint64_t           age_ms;                          /* since the first of them */
    char               number[SK_ORDER_NO_LEN + 1];     /* order_no to write, maybe renumbered */

    uint64_t           held_epoch;      /* Redis holds it, asked when the row had this epoch */
    int                forgotten;       /* Redis does not, and a restore has not counted it */

    /* of the current attempt */
    skd_outcome_e      outcome;
    const char        *reason;          /* of SKD_DEAD */
    size_t             owner;           /* the first entry of the range with this user */
    int                taken;           /* (epoch, seq) belongs to somebody else's order */

    /* of the current attempt, used in the owner only: about its user */
    skd_order_t        order;
    skd_record_e       record;          /* as found */
    skd_record_e       verdict;         /* as it shall be; NONE: leave it */
} skd_entry_t;

typedef struct {
    redisReply   *reply;
    skd_entry_t  *entries;
    size_t        count;
    size_t        size;                 /* entries there is room for */
    size_t       *by_user;              /* of the range: indexes, those with a user, by user */
    size_t        users;                /* how many they are */
    size_t       *inserted;             /* of the range: indexes, those to insert */
    size_t        inserts;              /* how many they are */
} skd_batch_t;

/* A part of a batch: what one transaction stores. */
typedef struct {
    skd_batch_t  *batch;
    size_t        first;
    size_t        count;
    uint64_t      epoch;                /* of the activity's row, as it was read last */
} skd_range_t;

/* Returns 0, or -1: no memory. */
int skd_batch_init(skd_batch_t *batch, size_t size);
void skd_batch_done(skd_batch_t *batch);

/*
 * Takes over the reply of XREADGROUP on one stream and parses its entries; at
 * most size of them, the rest stays pending.  Returns 0, or -1 when it is no
 * such reply.
 */
int skd_batch_fill(skd_batch_t *batch, redisReply *reply, uint64_t activity);

/* Sets the fault of an entry, unless it has one; error is cut to fit. */
void skd_entry_fail(skd_entry_t *entry, const char *fault, const char *error);

/* Begins an attempt: clears what the last one found, sorts by user, finds owners. */
void skd_range_begin(skd_range_t *range);

/* The owner of a user in the range, or NULL. */
skd_entry_t *skd_range_owner(const skd_range_t *range, uint64_t user);

/* Makes batch->inserted of those with outcome SKD_INSERT: in stream order, or by epoch and seq. */
void skd_range_list_inserts(skd_range_t *range);
void skd_range_sort_inserts(skd_range_t *range);

#endif /* _SKD_BATCH_H_INCLUDED_ */
