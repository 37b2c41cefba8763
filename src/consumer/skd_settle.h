/*
 * Tells the buyers and acknowledges: after the commit, never before.  Orders
 * in calls of lua/settle.lua, then dead letters in calls of lua/dead.lua, so
 * that letter, result and acknowledgement come together or not at all.
 */

#ifndef _SKD_SETTLE_H_INCLUDED_
#define _SKD_SETTLE_H_INCLUDED_

#include "sk_id.h"
#include "sk_result.h"
#include "skd_stream.h"

/* Entries of one settle.lua: a buyer's own call waits for no more than these. */
#define SKD_SETTLE_CALL  250

#define SKD_SETTLE_ARGS  16384          /* keys and arguments of one call, at most */

typedef struct {
    char    key[SK_KEY_MAX];            /* of the result */
    char    user[SK_ID_MAX];
    char    result[SK_RESULT_MAX];
    size_t  key_len;
    size_t  user_len;
    size_t  result_len;
} skd_answer_t;

/* The arguments of one call at a time; they point into buffers that are made once. */
typedef struct {
    skd_answer_t   *answers;            /* one per entry of a call */
    const char    **argv;
    size_t         *lens;
    int             argc;
    char            channel[SK_KEY_MAX];
    size_t          channel_len;
} skd_settle_t;

/* NULL: no memory. */
skd_settle_t *skd_settle_create(void);
void skd_settle_free(skd_settle_t *settle);

/* *dead is how many letters were written.  Returns SKD_OK, SKD_REDIS_LOST or SKD_BLOCKED. */
skd_rc_e skd_settle_range(skd_settle_t *settle, skd_reader_t *reader, skd_stream_t *stream,
    const skd_range_t *range, size_t *dead);

/* The dead ones of the range alone. */
skd_rc_e skd_dead_range(skd_settle_t *settle, skd_reader_t *reader,
    const skd_stream_t *stream, const skd_range_t *range, size_t *dead);

/* One more argument; data stays the caller's. */
void skd_settle_arg(skd_settle_t *settle, const char *data, size_t len);
void skd_settle_text(skd_settle_t *settle, const char *text);

/* What the buyer hears: the order when there is one, whatever this entry was. */
void skd_answer_make(skd_answer_t *answer, const char *prefix, uint64_t activity,
    const skd_entry_t *entry, const skd_entry_t *owner);

#endif /* _SKD_SETTLE_H_INCLUDED_ */
