/*
 * hiredis' reader with limits: what a server announces is not believed.  One
 * set-up for nginx, seckilld and seckillctl.
 *
 * Left alone the reader reserves what an array announces ("*2147483647": 16 GiB,
 * walked for seconds) and gathers a string as long as it is said to be.
 */

#ifndef _SK_READER_H_INCLUDED_
#define _SK_READER_H_INCLUDED_

#include <hiredis/hiredis.h>
#include <stddef.h>

/* Of one reply.  All are far above what Redis gives for what we ask. */
typedef struct {
    size_t    line;             /* bytes of a status, an error, a number */
    size_t    string;           /* bytes of one string */
    size_t    bytes;            /* of all strings together */
    size_t    elements;         /* of all arrays together */
    unsigned  depth;            /* arrays within arrays */
} sk_reader_limits_t;

/* The reply that is being read; owned by whoever owns the connection. */
typedef struct {
    const sk_reader_limits_t  *limits;
    size_t                     bytes;
    size_t                     elements;
    char                       refused[80];     /* why, or "" */
} sk_reader_t;

/*
 * Returns a reader, or NULL without memory; free it with redisReaderFree().
 * state must outlive it or the next sk_reader_watch().
 */
redisReader *sk_reader_create(sk_reader_t *state, const sk_reader_limits_t *limits);

/* Other limits, or another owner's state, from the next reply on. */
void sk_reader_watch(redisReader *reader, sk_reader_t *state, const sk_reader_limits_t *limits);

/*
 * As redisReaderGetReply(): to be called after each redisReaderFeed() until
 * *reply is NULL, or what is gathered has no limit.  After REDIS_ERR the
 * connection can only be closed; sk_reader_error() tells what was refused.
 */
int sk_reader_reply(redisReader *reader, void **reply);

const char *sk_reader_error(const redisReader *reader);

#endif /* _SK_READER_H_INCLUDED_ */
