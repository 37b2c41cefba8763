/*
 * Names of the Redis keys.  Those of one activity carry the hash tag {id}, so
 * that they share a slot: "seckill:stock:{1}", "seckill:result:7:{1}".
 */

#ifndef _SK_KEY_H_INCLUDED_
#define _SK_KEY_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SK_PREFIX_MAX  32               /* longest accepted prefix */
#define SK_KEY_MAX     128              /* room for any key, no final NUL */

typedef enum {
    SK_KEY_ACTIVITY,                    /* hash: the facts */
    SK_KEY_STOCK,                       /* string: units left */
    SK_KEY_BUYERS,                      /* "order_users", set */
    SK_KEY_ORDERS,                      /* stream of accepted purchases */
    SK_KEY_DEAD,                        /* stream of dead letters */
    SK_KEY_ELIGIBLE,                    /* set, optional */
    SK_KEY_LOOKUP,                      /* set: results to look up in MySQL */
    SK_KEY_RESULTS,                     /* pub/sub channel of the activity's results */
    SK_KEY_RESULT,                      /* string, per user */
    SK_KEY_LIMIT,                       /* string, per user */
    SK_KEYS
} sk_key_e;

/*
 * Key of one activity ("user" is used by SK_KEY_RESULT and SK_KEY_LIMIT).
 * Returns its length, or 0 when the prefix is longer than SK_PREFIX_MAX.
 */
size_t sk_key(char *buf, const char *prefix, size_t prefix_len, sk_key_e key,
    uint64_t activity, uint64_t user);

/*
 * Key of no activity: "<prefix>:<name>", name "control", "activities" or
 * "session:<hash>".  Returns its length, or 0 when it would not fit.
 */
size_t sk_key_global(char *buf, const char *prefix, size_t prefix_len,
    const char *name, size_t name_len);

#endif /* _SK_KEY_H_INCLUDED_ */
