/*
 * Blocking connections to Redis through hiredis: connect, log in, select, run
 * the scripts, and tell an outage from an answer.  Knows the settings, not
 * what is sent.
 */

#ifndef _SKB_REDIS_H_INCLUDED_
#define _SKB_REDIS_H_INCLUDED_

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "sk_scripts.h"
#include "skb_config.h"

/* A number of ours in Redis: what a double of Lua holds exactly, and our scripts take. */
#define SKB_REDIS_NUMBER_MAX  INT64_C(999999999999999)

/* What an answer, or the lack of one, means for the next step. */
typedef enum {
    SKB_REDIS_FINE,                     /* not an error reply */
    SKB_REDIS_LOST,                     /* no reply: close, connect again, the call may have run */
    SKB_REDIS_OUTAGE,                   /* the server can't now: LOADING READONLY OOM BUSY ... */
    SKB_REDIS_DENIED,                   /* it won't for us: NOAUTH WRONGPASS NOPERM */
    SKB_REDIS_NOGROUP,
    SKB_REDIS_ERROR                     /* any other: WRONGTYPE, ERR, SECKILL ... */
} skb_redis_class_e;

/*
 * Connects within the timeout, logs in with user and password file, selects
 * the database and asks PING.  Returns NULL and the reason; free the result
 * with redisFree().  After a call that returned NULL, or with ->err set, the
 * connection can only be freed.
 */
redisContext *skb_redis_connect(const skb_config_t *config, char *error, size_t size);

/*
 * Runs a script by its SHA-1; when the server does not know it, loads it and
 * runs it once more, which is safe as it has not run.  argv holds nkeys keys
 * and then the arguments, argc of both together; argvlen may be NULL when all
 * are NUL-terminated.  Returns NULL when the connection failed, else a reply,
 * maybe an error, to free with freeReplyObject().
 */
redisReply *skb_redis_script(redisContext *redis, sk_script_e script, int nkeys,
    int argc, const char **argv, const size_t *argvlen);

/*
 * As redisCommand(), redisCommandArgv() and redisGetReply(), with limits on the
 * reply: nothing in this project reads one in another way.  NULL, or not
 * REDIS_OK, and ->err and ->errstr set: the connection can only be freed.
 */
redisReply *skb_redis_command(redisContext *redis, const char *format, ...);
redisReply *skb_redis_vcommand(redisContext *redis, const char *format, va_list args);
redisReply *skb_redis_command_argv(redisContext *redis, int argc, const char **argv,
    const size_t *argvlen);
int skb_redis_reply(redisContext *redis, void **reply);

/* The n-th part of a reply, when it is an array with one of that type; or NULL. */
const redisReply *skb_redis_part(const redisReply *reply, size_t n, int type);

/*
 * The same for who looks at it further on: never NULL.  What is not there is nil,
 * and what is no text is "".
 */
const redisReply *skb_redis_at(const redisReply *reply, size_t n);
const char *skb_redis_text(const redisReply *reply, size_t n);

/* The largest id of a stream: Redis refuses a range that begins behind it. */
#define SKB_REDIS_LAST_ID  "18446744073709551615-18446744073709551615"

/* An integer, or a plain decimal, up to SKB_REDIS_NUMBER_MAX; -1 for all else. */
int64_t skb_redis_number(const redisReply *reply);
int64_t skb_redis_decimal(const char *text);

/* reply may be NULL. */
skb_redis_class_e skb_redis_class(const redisReply *reply);

/* Why there is no good reply: the error reply's text or the connection's. */
const char *skb_redis_reason(const redisContext *redis, const redisReply *reply);

#endif /* _SKB_REDIS_H_INCLUDED_ */
