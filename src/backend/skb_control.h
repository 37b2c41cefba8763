/*
 * The control hash of all sales.  It is made in one place only: whoever finds it
 * believes that a sale without facts has not begun, so first every sale that
 * Redis lost must have its facts (skb_sales.h).
 */

#ifndef _SKB_CONTROL_H_INCLUDED_
#define _SKB_CONTROL_H_INCLUDED_

#include <hiredis/hiredis.h>
#include <stdint.h>

#include "skb_config.h"

/*
 * Both return the reply of lua/control_keep.lua, to be looked at with
 * skb_redis_class() and freed, or NULL when the connection failed.
 */

/* Raises rev, to least at least; does nothing where there is no such hash. */
redisReply *skb_control_raise(redisContext *redis, const skb_config_t *config,
    uint64_t least);

/*
 * Makes the hash unless it is there, and gives it the key unless it has one; the
 * key is that of skb_token_key_use().
 */
redisReply *skb_control_make(redisContext *redis, const skb_config_t *config,
    const char *token_key);

#endif /* _SKB_CONTROL_H_INCLUDED_ */
