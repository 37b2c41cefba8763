/*
 * Stopping a sale of which Redis lost data.
 */

#ifndef _SKD_PAUSE_H_INCLUDED_
#define _SKD_PAUSE_H_INCLUDED_

#include "skd_stream.h"

#define SKD_SEQ_MAX  999999999999999    /* no purchase has it: what a script can count */

typedef struct {
    char       status[12];              /* of pause.lua */
    long long  seq;                     /* what Redis has, 0: nothing */
} skd_paused_t;

/*
 * Asks Redis to stop the sale when its epoch, or its seq within the epoch, is
 * behind what was seen of it; one step, so it is right whatever happens
 * meanwhile.  A stopped sale is told to the nodes.  Returns SKD_OK with *paused,
 * or what to do about the connection.
 */
skd_rc_e skd_pause(skd_reader_t *reader, uint64_t activity, uint64_t epoch, uint64_t seq,
    skd_paused_t *paused);

/* Raises "rev" of the control hash: the nodes read their facts again. */
skd_rc_e skd_pause_raise(skd_reader_t *reader);

#endif /* _SKD_PAUSE_H_INCLUDED_ */
