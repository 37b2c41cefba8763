/*
 * Stopping a sale of which Redis lost data.
 */

#ifndef _SKD_PAUSE_H_INCLUDED_
#define _SKD_PAUSE_H_INCLUDED_

#include "skd_stream.h"

#define SKD_SEQ_MAX  999999999999999    /* no purchase has it: what a script can count */

/* What pause.lua says of a sale. */
typedef struct {
    char       status[12];              /* fine, paused, stopped, waiting, missing */
    char       lost[SKD_MISSING_MAX];     /* "stock,orders": what is missing, "" for nothing */
    char       state[12];               /* of the facts, "" without any */
    uint64_t   epoch;                   /* what Redis has, 0: nothing */
    uint64_t   seq;
    uint64_t   end_ms;
    uint64_t   expire_ms;               /* of a settled sale: when its other keys go */
    long long  surplus;                 /* buyers beyond those that were counted */
} skd_paused_t;

/* What was seen of a sale before. */
typedef struct {
    uint64_t   epoch;
    uint64_t   seq;
    int        has_orders;              /* in MySQL */
} skd_seen_t;

/*
 * Asks Redis whether the sale is whole, and to stop it otherwise: when a key of it
 * is missing, or its epoch, or its seq within the epoch, is behind what was seen of
 * it; one step, so it is right whatever happens meanwhile.  After "paused" the caller
 * tells the nodes with skd_pause_raise().  Returns SKD_OK with *paused, or what to do
 * about the connection; SKD_BLOCKED when the sale's data is damaged.
 */
skd_rc_e skd_pause(skd_reader_t *reader, uint64_t activity, const skd_seen_t *seen,
    skd_paused_t *paused);

/*
 * The same for many in one write: first ask for each, then take the answers in the
 * same order.  The server must know the script.
 */
skd_rc_e skd_pause_ask(skd_reader_t *reader, uint64_t activity, const skd_seen_t *seen);
skd_rc_e skd_pause_take(skd_reader_t *reader, skd_paused_t *paused);

/* Raises "rev" of the control hash, if it is there: the nodes read their facts again. */
skd_rc_e skd_pause_raise(skd_reader_t *reader);

#endif /* _SKD_PAUSE_H_INCLUDED_ */
