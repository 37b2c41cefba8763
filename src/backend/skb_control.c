/*
 * See the header.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sk_key.h"
#include "skb_control.h"
#include "skb_redis.h"


static redisReply *
skb_control_run(redisContext *redis, const skb_config_t *config, const char *how,
    const char *token_key, uint64_t least)
{
    char         key[SK_KEY_MAX + 1], number[24];
    const char  *prefix = config->redis.prefix;

    key[sk_key_global(key, prefix, strlen(prefix), "control", strlen("control"))] = '\0';
    snprintf(number, sizeof(number), "%" PRIu64, least);

    return skb_redis_script(redis, SK_SCRIPT_CONTROL_KEEP, 1, 4,
                            (const char *[]) { key, how, token_key, number }, NULL);
}


redisReply *
skb_control_raise(redisContext *redis, const skb_config_t *config, uint64_t least)
{
    return skb_control_run(redis, config, "raise", "", least);
}


redisReply *
skb_control_make(redisContext *redis, const skb_config_t *config, const char *token_key)
{
    return skb_control_run(redis, config, "make", token_key, 0);
}
