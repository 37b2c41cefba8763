/*
 * The registered activities, as streams in the order of their ids.
 */

#ifndef _SKD_ACTIVITIES_H_INCLUDED_
#define _SKD_ACTIVITIES_H_INCLUDED_

#include "skd_stream.h"

#define SKD_ACTIVITIES_MAX  100000      /* more are refused, with a line in the log */

typedef struct {
    skd_stream_t  *streams;
    size_t         count;
    size_t         size;
    int64_t        next_ms;             /* the next look at Redis is due */
    int            quiet;               /* another thread tells what comes and goes */
    int            complained;          /* about members that are no ids */
} skd_activities_t;

void skd_activities_done(skd_activities_t *activities);

/*
 * Reads the set: streams of known activities stay as they are, new ones begin
 * with their pending entries, those not registered any more go.  Returns
 * SKD_OK, SKD_REDIS_LOST or SKD_BLOCKED.
 */
skd_rc_e skd_activities_refresh(skd_activities_t *activities, skd_reader_t *reader);

/* The stream of a registered activity, or NULL. */
skd_stream_t *skd_activities_find(skd_activities_t *activities, uint64_t activity);

/* After a lost connection, maybe to another server: own pending entries first, everywhere. */
void skd_activities_rewind(skd_activities_t *activities);

#endif /* _SKD_ACTIVITIES_H_INCLUDED_ */
