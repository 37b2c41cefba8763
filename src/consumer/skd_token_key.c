/*
 * The key of the queue tokens: MySQL keeps it, so that a total loss of Redis
 * neither turns buyers away nor makes the journals unreadable.
 */

#include <stdio.h>

#include "skb_log.h"
#include "skb_token_key.h"
#include "skd_keeper.h"

#define SKD_TOKEN_KEY_EVERY_MS  10000


/* once per change: the same trouble is not told again and again */
static void
skd_token_key_trouble(skd_keeper_t *keeper, skb_token_key_e what, const char *error)
{
    char  quoted[SKD_ERROR_MAX];

    if (keeper->token_key_said == (int) what) {
        return;
    }

    keeper->token_key_said = (int) what;
    skb_log(SKB_WARN, what == SKB_TOKEN_KEY_NO_TABLE
                      ? "token key is not kept in MySQL: run seckillctl schema apply"
                      : "token key is not kept in MySQL",
            "error=%s", skb_log_quote(quoted, sizeof(quoted), error));
}


skd_rc_e
skd_keeper_token_key(skd_keeper_t *keeper)
{
    char             error[SKD_ERROR_MAX];
    skb_token_key_e  what;

    if (skd_now_ms() < keeper->token_key_ms) {
        return SKD_OK;
    }

    keeper->token_key_ms = skd_now_ms() + SKD_TOKEN_KEY_EVERY_MS;
    what = skb_token_key_sync(keeper->writer.mysql, keeper->reader.redis,
                              keeper->config->redis.prefix, error, sizeof(error));

    switch (what) {

    case SKB_TOKEN_KEY_NO_TABLE:
        skd_token_key_trouble(keeper, what, error);
        return SKD_OK;

    case SKB_TOKEN_KEY_NO_REDIS:
        skd_token_key_trouble(keeper, what, error);
        return keeper->reader.redis->err ? SKD_REDIS_LOST : SKD_OK;

    case SKB_TOKEN_KEY_NO_MYSQL:
        skd_token_key_trouble(keeper, what, error);
        return skb_mysql_class(keeper->writer.mysql) == SKB_MYSQL_OUTAGE ? SKD_MYSQL_LOST : SKD_OK;

    case SKB_TOKEN_KEY_KEPT:
        skb_log(SKB_NOTICE, "token key is kept in MySQL from now on", "prefix=%s",
                keeper->config->redis.prefix);
        break;

    case SKB_TOKEN_KEY_BACK:
        skb_log(SKB_NOTICE, "Redis has its token key again, from MySQL", "prefix=%s",
                keeper->config->redis.prefix);
        break;

    case SKB_TOKEN_KEY_REPLACED:
        skb_log(SKB_ERROR, "Redis had another token key than MySQL, and has MySQL's again",
                "prefix=%s", keeper->config->redis.prefix);
        break;

    default:
        break;
    }

    keeper->token_key_said = 0;

    return SKD_OK;
}
