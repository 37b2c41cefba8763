/*
 * hiredis makes each part of a reply through a table of functions.  Ours look
 * before its own make it, and what is not whole yet is looked at in the buffer:
 * a string is refused when it is announced.
 */


#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sk_reader.h"


/* digits of a length and the line end behind them */
#define SK_READER_HEADER     24

/* elements of an array that hiredis' own functions read */
#define SK_READER_UNWATCHED  1048576


#if HIREDIS_MAJOR >= 1
typedef size_t  sk_reader_count_t;
#else
typedef int     sk_reader_count_t;
#endif


static void  sk_reader_make_functions(void);
static void *sk_reader_array(const redisReadTask *task, sk_reader_count_t count);
static void *sk_reader_string(const redisReadTask *task, char *text, size_t len);
static void  sk_reader_begin(const redisReadTask *task);
static int   sk_reader_pending(const redisReader *reader, sk_reader_t *state);


static pthread_once_t             sk_reader_once = PTHREAD_ONCE_INIT;
static redisReplyObjectFunctions  sk_reader_theirs;     /* hiredis' own */
static redisReplyObjectFunctions  sk_reader_ours;
static int                        sk_reader_made;


/* hiredis gives its own table to nobody but a reader */

static void
sk_reader_make_functions(void)
{
    redisReader  *reader;

    reader = redisReaderCreate();
    if (reader == NULL) {
        return;
    }

    sk_reader_theirs = *reader->fn;
    redisReaderFree(reader);

    sk_reader_ours = sk_reader_theirs;
    sk_reader_ours.createArray = sk_reader_array;
    sk_reader_ours.createString = sk_reader_string;
    sk_reader_made = 1;
}


redisReader *
sk_reader_create(sk_reader_t *state, const sk_reader_limits_t *limits)
{
    redisReader  *reader;

    if (pthread_once(&sk_reader_once, sk_reader_make_functions) != 0 || !sk_reader_made) {
        return NULL;
    }

    reader = redisReaderCreateWithFunctions(&sk_reader_ours);

    if (reader != NULL) {
        sk_reader_watch(reader, state, limits);
    }

    return reader;
}


void
sk_reader_watch(redisReader *reader, sk_reader_t *state, const sk_reader_limits_t *limits)
{
    memset(state, 0, sizeof(sk_reader_t));
    state->limits = limits;
    reader->privdata = state;
}


/* a reply begins: what was counted is of the last one */

static void
sk_reader_begin(const redisReadTask *task)
{
    sk_reader_t  *state = task->privdata;

    if (state != NULL && task->parent == NULL) {
        state->bytes = 0;
        state->elements = 0;
    }
}


static void *
sk_reader_array(const redisReadTask *task, sk_reader_count_t count)
{
    unsigned              depth = 1;
    sk_reader_t          *state = task->privdata;
    const redisReadTask  *parent;

    sk_reader_begin(task);

    if (state == NULL) {
        return (size_t) count > SK_READER_UNWATCHED ? NULL : sk_reader_theirs.createArray(task, count);
    }

    for (parent = task->parent; parent != NULL; parent = parent->parent) {
        depth++;
    }

    if (depth > state->limits->depth) {
        snprintf(state->refused, sizeof(state->refused), "refused: arrays nested %u deep", depth);
        return NULL;
    }

    /* a negative one of hiredis 0.14 is more than any limit as well */
    if ((size_t) count > state->limits->elements - state->elements) {
        snprintf(state->refused, sizeof(state->refused), "refused: a reply of %lld elements",
                 (long long) count + (long long) state->elements);
        return NULL;
    }

    state->elements += (size_t) count;

    return sk_reader_theirs.createArray(task, count);
}


static void *
sk_reader_string(const redisReadTask *task, char *text, size_t len)
{
    sk_reader_t  *state = task->privdata;

    sk_reader_begin(task);

    if (state == NULL) {
        return sk_reader_theirs.createString(task, text, len);
    }

    if (len > state->limits->bytes - state->bytes) {
        snprintf(state->refused, sizeof(state->refused), "refused: a reply of more than %zu bytes",
                 state->limits->bytes);
        return NULL;
    }

    state->bytes += len;

    return sk_reader_theirs.createString(task, text, len);
}


/*
 * What the reader could not use yet: the begin of a line, without its end, or
 * "LENGTH\r\n" and the begin of a string.
 */

static int
sk_reader_pending(const redisReader *reader, sk_reader_t *state)
{
    size_t       i, len, size;
    const char  *p;

    p = reader->buf + reader->pos;
    len = reader->len - reader->pos;
    size = 0;

    for (i = 0; i < len && i < SK_READER_HEADER && p[i] >= '0' && p[i] <= '9'; i++) {
        size = (i < 18) ? size * 10 + (size_t) (p[i] - '0') : (size_t) -1;
    }

    /* a line that has its end was used up: this is the length of a string */

    if (i > 0 && i + 1 < len && p[i] == '\r' && p[i + 1] == '\n') {

        if (size > state->limits->string) {
            snprintf(state->refused, sizeof(state->refused), "refused: a string of %.*s bytes",
                     (int) i, p);
            return REDIS_ERR;
        }

        return REDIS_OK;
    }

    if (len > state->limits->line) {
        snprintf(state->refused, sizeof(state->refused), "refused: a line of more than %zu bytes",
                 state->limits->line);
        return REDIS_ERR;
    }

    return REDIS_OK;
}


int
sk_reader_reply(redisReader *reader, void **reply)
{
    sk_reader_t  *state = reader->privdata;

    *reply = NULL;

    if (state->refused[0] != '\0' || redisReaderGetReply(reader, reply) != REDIS_OK) {
        return REDIS_ERR;
    }

    return *reply != NULL ? REDIS_OK : sk_reader_pending(reader, state);
}


const char *
sk_reader_error(const redisReader *reader)
{
    const sk_reader_t  *state = reader->privdata;

    if (state->refused[0] != '\0') {
        return state->refused;
    }

    return reader->err == REDIS_ERR_OOM ? "out of memory" : "not the Redis protocol";
}
