/*
 * Purchases that MySQL refused for a reason of their own and that wait for
 * another attempt.  They stay pending; a restart begins their count anew.
 */

#ifndef _SKD_RETRY_H_INCLUDED_
#define _SKD_RETRY_H_INCLUDED_

#include "skd_batch.h"
#include "skd_clock.h"
#include "skd_stream.h"

#define SKD_RETRIES_MAX  256            /* of one worker; with more the activity waits */

typedef struct {
    uint64_t       activity;
    char           id[SKD_STREAM_ID_MAX];
    unsigned       attempts;            /* that failed */
    char           first_error[SKD_ERROR_MAX];
    char           last_error[SKD_ERROR_MAX];
    int64_t        first_ms;            /* of skd_now_ms() */
    skd_backoff_t  backoff;
    int            asked;               /* due: the stream is read again for it */
} skd_retry_t;

typedef struct {
    skd_retry_t  *all;
    size_t        count;
} skd_retries_t;

/* Returns 0, or -1: no memory. */
int skd_retries_init(skd_retries_t *retries);
void skd_retries_done(skd_retries_t *retries);

/* NULL when it does not wait. */
skd_retry_t *skd_retry_find(skd_retries_t *retries, uint64_t activity, const char *id);

/* The next attempt waits for first_ms, then twice that, at most cap_ms; NULL: no room. */
skd_retry_t *skd_retry_add(skd_retries_t *retries, uint64_t activity, const char *id,
    const char *error, uint32_t first_ms, uint32_t cap_ms);

/* Puts the history into the entry. */
void skd_retry_load(const skd_retry_t *retry, skd_entry_t *entry);

void skd_retry_remove(skd_retries_t *retries, skd_retry_t *retry);

/* One that is due and was not asked for; it counts as asked for now. */
const skd_retry_t *skd_retry_due(skd_retries_t *retries);

/* All pending ones of the activity were read: those asked for and not seen are gone. */
void skd_retry_swept(skd_retries_t *retries, uint64_t activity);

#endif /* _SKD_RETRY_H_INCLUDED_ */
