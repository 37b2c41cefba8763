/*
 * The orders stream of one activity: whose turn it is, what is read next, and
 * how much of it may be deleted.
 */

#ifndef _SKD_STREAM_H_INCLUDED_
#define _SKD_STREAM_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#include "sk_key.h"
#include "skb_config.h"
#include "skb_redis.h"
#include "skd_batch.h"
#include "skd_clock.h"
#include "skd_frozen.h"

#define SKD_STREAM_ID_MAX  48           /* "ms-seq", NUL included */
#define SKD_MISSING_MAX    48           /* names of what a sale misses, NUL included */

/* What the keeper knows of the activity; the workers have no part in it. */
typedef struct {
    int       unread;                   /* the facts could not be read: what follows is old */
    int       has_facts;                /* in Redis */
    char      state[12];
    uint64_t  epoch;
    uint64_t  seq;
    uint64_t  end_ms;                   /* epoch milliseconds */
    uint64_t  expire_ms;                /* of a settled sale: when its other keys go */
    char      missing[SKD_MISSING_MAX]; /* what pause.lua misses, "" for nothing */

    int       has_row;                  /* in MySQL */
    int       ended;                    /* status 2 */
    int       sold;                     /* it has orders */
    int       opened;                   /* the ledger says that it was in Redis */
    uint64_t  row_epoch;
    uint64_t  seq_seen;

    int       judged;                   /* the sale has begun: row and terms were compared */
    unsigned  edits;                    /* what of the row is not as promised: said so */
    int       unpromised;               /* no terms: said so */

    char      lost[SKD_MISSING_MAX];    /* the alarm that was raised says this */
    int       surplus;                  /* more buyers than counted: said so */
    int       settled;                  /* nothing is left to do */
    int       refused;                  /* to settle it: said so */
    uint64_t  absent;                   /* buyers without an order keep it from that: said so */
    int64_t   settle_ms;                /* not before */
    int       released;                 /* cancelled units are on sale again */
} skd_care_t;

struct skd_stream_s {
    uint64_t       activity;
    char           key[SK_KEY_MAX + 1];         /* the orders stream */
    int            listed;              /* still registered, used while refreshing */

    int            pending;             /* own unacknowledged entries come first */
    char           cursor[SKD_STREAM_ID_MAX];   /* the last of them that was seen */
    int            swept;               /* all of them were seen: the worker takes note */
    int64_t        claim_ms;            /* the next look for consumers that are gone */
    char           claim_cursor[SKD_STREAM_ID_MAX];
    int64_t        next_ms;             /* nothing to do before */
    skd_backoff_t  backoff;             /* of this activity alone */
    int            blocked;             /* said so in the log */

    int64_t        tend_ms;             /* facts and trimming are due */
    uint64_t       start_ms;            /* epoch milliseconds, 0: not known */
    int            begun;               /* MySQL has status 1 or more */

    int64_t        frozen_ms;           /* the next look at what is never idle */
    skd_frozen_t  *frozen;              /* what was seen so, or NULL */

    skd_care_t     care;
};

/* Who reads: the connection and the names. */
struct skd_reader_s {
    redisContext        *redis;         /* NULL: not connected */
    const skb_config_t  *config;
    char                 name[SKB_NAME_MAX + 12];       /* the consumer */
    char                 error[SKD_ERROR_MAX];          /* of the last failure */
    skb_redis_class_e    class;
};

void skd_stream_init(skd_stream_t *stream, const char *prefix, uint64_t activity);

/* Own pending entries are read again from the first one. */
void skd_stream_rewind(skd_stream_t *stream);

/*
 * The next entries, without waiting: pending ones, then new ones.  A missing
 * group is made from the stream's begin, where there is a stream.
 * Returns SKD_OK with batch->count, SKD_REDIS_LOST, or SKD_BLOCKED.
 */
skd_rc_e skd_stream_read(skd_stream_t *stream, skd_reader_t *reader, skd_batch_t *batch);

/*
 * When it is time: takes over what a consumer was given and has not handled
 * for "claim_idle", and rewinds to it; *claimed is how many entries.
 */
skd_rc_e skd_stream_claim(skd_stream_t *stream, skd_reader_t *reader, uint64_t *claimed);

/* Takes over one entry that is gone from the stream: it leaves a letter. */
skd_rc_e skd_stream_bury(skd_stream_t *stream, skd_reader_t *reader, const char *id);

/* Says to the group that the range is still worked on. */
skd_rc_e skd_stream_hold(const skd_stream_t *stream, skd_reader_t *reader,
    const skd_range_t *range);

/* All of the batch is settled: go on behind it. */
void skd_stream_advance(skd_stream_t *stream, const skd_batch_t *batch);

/*
 * Deletes entries that are acknowledged, older than "retain" and behind every
 * pending or unread one of any group.  now_ms is Redis' own time.
 */
skd_rc_e skd_stream_trim(skd_stream_t *stream, skd_reader_t *reader, uint64_t now_ms);

/* Redis' time and the activity's start, in epoch milliseconds; start is 0 when not known. */
skd_rc_e skd_stream_times(skd_stream_t *stream, skd_reader_t *reader, uint64_t *now_ms);

/* Keeps why a call failed; returns what to do about it. */
skd_rc_e skd_reader_failed(skd_reader_t *reader, const redisReply *reply);

#endif /* _SKD_STREAM_H_INCLUDED_ */
