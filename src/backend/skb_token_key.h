/*
 * The key of the queue tokens, which also signs the journals.  MySQL keeps it,
 * in seckill_settings; Redis has the working copy, in the hash "control".  Every
 * key that Redis was seen with stays known under its id, so that lines which it
 * signed can be read.
 *
 * A key is wiped by whoever got it, and is in no error text.
 */

#ifndef _SKB_TOKEN_KEY_H_INCLUDED_
#define _SKB_TOKEN_KEY_H_INCLUDED_

#include <hiredis/hiredis.h>
#include <mysql.h>
#include <stddef.h>

#include "sk_journal.h"
#include "skb_config.h"

#define SKB_TOKEN_KEY_BYTES  32
#define SKB_TOKEN_KEY_HEX    (2 * SKB_TOKEN_KEY_BYTES)
#define SKB_JOURNAL_KEYS     64         /* keys of one prefix that are looked at */

typedef enum {
    SKB_TOKEN_KEY_SAME,                 /* both had it */
    SKB_TOKEN_KEY_NONE,                 /* neither has one */
    SKB_TOKEN_KEY_KEPT,                 /* MySQL has got the one of Redis */
    SKB_TOKEN_KEY_MADE,                 /* neither had one: MySQL has a new one */
    SKB_TOKEN_KEY_BACK,                 /* Redis' control had lost it, and has it again */
    SKB_TOKEN_KEY_REPLACED,             /* Redis had another one: an alarm */
    SKB_TOKEN_KEY_NO_TABLE,             /* "seckillctl schema apply" is not done */
    SKB_TOKEN_KEY_NO_REDIS,             /* it failed: see the error */
    SKB_TOKEN_KEY_NO_MYSQL
} skb_token_key_e;

/*
 * Brings both together.  MySQL's key wins and is written into the hash "control"
 * of Redis, when that hash is there.  What it does once, a second call finds done.
 */
skb_token_key_e skb_token_key_sync(MYSQL *mysql, redisContext *redis, const char *prefix,
    char *error, size_t size);

/*
 * For making "control" anew: syncs, and makes a key in MySQL when there is none.
 * Then hex holds SKB_TOKEN_KEY_HEX digits and a NUL; after NO_TABLE, NO_REDIS and
 * NO_MYSQL it is "".
 */
skb_token_key_e skb_token_key_use(MYSQL *mysql, redisContext *redis, const char *prefix,
    char *hex, char *error, size_t size);

/* Keys that may have signed a journal of this prefix. */
typedef struct {
    sk_journal_key_t  keys[SKB_JOURNAL_KEYS];
    size_t            n;
} skb_journal_keys_t;

/*
 * All keys of MySQL, the one in Redis when redis is not NULL, and that of
 * "queue_token_key_file".  Returns 0, or -1 with the reason.  Free them either way.
 */
int skb_journal_keys_read(skb_journal_keys_t *keys, MYSQL *mysql, redisContext *redis,
    const skb_config_t *config, char *error, size_t size);
void skb_journal_keys_free(skb_journal_keys_t *keys);

/* The key of this id, or NULL. */
const sk_journal_key_t *skb_journal_key(const skb_journal_keys_t *keys, const char *id);

#endif /* _SKB_TOKEN_KEY_H_INCLUDED_ */
