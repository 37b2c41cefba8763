/*
 * Pending entries that Redis calls never idle, because they were delivered while
 * its clock was ahead: our own clock knows how long they have not moved.
 */

#ifndef _SKD_FROZEN_H_INCLUDED_
#define _SKD_FROZEN_H_INCLUDED_

#include <stdint.h>

#include "skd.h"

typedef struct skd_frozen_s  skd_frozen_t;
typedef struct skd_stream_s  skd_stream_t;
typedef struct skd_reader_s  skd_reader_t;

/*
 * When it is time: looks at what other consumers hold.  What has not moved for
 * "claim_idle" by our clock becomes idle by Redis', for skd_stream_claim() to take
 * over; a consumer that lives and says so (skd_stream_hold) has moved.
 */
skd_rc_e skd_frozen_look(skd_stream_t *stream, skd_reader_t *reader);

/* NULL is fine. */
void skd_frozen_free(skd_frozen_t *frozen);

#endif /* _SKD_FROZEN_H_INCLUDED_ */
