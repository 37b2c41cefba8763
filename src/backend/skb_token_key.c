/*
 * MySQL's copy of the token key.  The unique key of the table decides who was
 * first: every maker inserts, and then reads what is there.
 */

#include <mysqld_error.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "sk_scripts.h"
#include "skb_redis.h"
#include "skb_token_key.h"

#define SKB_TOKEN_KEY_SQL  512

typedef struct {
    MYSQL         *mysql;
    redisContext  *redis;
    const char    *prefix;
    char          *error;
    size_t         size;
    char           control[SK_KEY_MAX + 1];
} skb_token_keys_t;


static int
skb_token_key_ok(const char *hex, size_t len)
{
    return len == SKB_TOKEN_KEY_HEX && strspn(hex, "0123456789abcdef") == len;
}


/* Returns 0, or -1: the text is no key. */
static int
skb_token_key_bytes(const char *hex, unsigned char *bytes)
{
    size_t  n;

    return skb_token_key_ok(hex, strlen(hex))
           && OPENSSL_hexstr2buf_ex(bytes, SKB_TOKEN_KEY_BYTES, &n, hex, '\0') == 1
           && n == SKB_TOKEN_KEY_BYTES ? 0 : -1;
}


/* The name under which MySQL keeps the key for good; returns 0 or -1. */
static int
skb_token_key_name(const char *hex, char *name, size_t size)
{
    int               rc;
    unsigned char     bytes[SKB_TOKEN_KEY_BYTES];
    sk_journal_key_t  key;

    if (skb_token_key_bytes(hex, bytes) != 0) {
        return -1;
    }

    rc = sk_journal_key_init(&key, bytes, sizeof(bytes));
    explicit_bzero(bytes, sizeof(bytes));

    if (rc == 0) {
        snprintf(name, size, "token_key:%.*s", SK_JOURNAL_ID, key.id);
    }

    sk_journal_key_done(&key);

    return rc;
}


static skb_token_key_e
skb_token_key_failed(const skb_token_keys_t *keys)
{
    unsigned  number = mysql_errno(keys->mysql);

    snprintf(keys->error, keys->size, "%s", mysql_error(keys->mysql));

    return number == ER_NO_SUCH_TABLE ? SKB_TOKEN_KEY_NO_TABLE : SKB_TOKEN_KEY_NO_MYSQL;
}


/* hex is "" when MySQL has none */
static skb_token_key_e
skb_token_key_select(const skb_token_keys_t *keys, char *hex)
{
    char            sql[SKB_TOKEN_KEY_SQL], prefix[2 * SK_PREFIX_MAX + 1];
    MYSQL_ROW       row;
    MYSQL_RES      *res;
    unsigned long   n;

    hex[0] = '\0';
    (void) mysql_real_escape_string(keys->mysql, prefix, keys->prefix, strlen(keys->prefix));

    n = (unsigned long) snprintf(sql, sizeof(sql), "SELECT value FROM seckill_settings "
                                 "WHERE prefix = '%s' AND name = 'token_key'", prefix);

    if (mysql_real_query(keys->mysql, sql, n) != 0
        || (res = mysql_store_result(keys->mysql)) == NULL)
    {
        return skb_token_key_failed(keys);
    }

    row = mysql_fetch_row(res);

    if (row != NULL && row[0] != NULL && skb_token_key_ok(row[0], strlen(row[0]))) {
        memcpy(hex, row[0], SKB_TOKEN_KEY_HEX + 1);

    } else if (row != NULL) {
        mysql_free_result(res);
        snprintf(keys->error, keys->size, "token_key in seckill_settings is not 64 hex digits");
        return SKB_TOKEN_KEY_NO_MYSQL;
    }

    mysql_free_result(res);

    return SKB_TOKEN_KEY_SAME;
}


/* What is there already stays; current: it is also the key in force, unless there is one. */
static skb_token_key_e
skb_token_key_insert(const skb_token_keys_t *keys, const char *hex, int current)
{
    int             rc;
    char            sql[SKB_TOKEN_KEY_SQL], prefix[2 * SK_PREFIX_MAX + 1], name[64], row[256];
    unsigned long   n;

    if (skb_token_key_name(hex, name, sizeof(name)) != 0) {
        snprintf(keys->error, keys->size, "out of memory");
        return SKB_TOKEN_KEY_NO_MYSQL;
    }

    (void) mysql_real_escape_string(keys->mysql, prefix, keys->prefix, strlen(keys->prefix));
    snprintf(row, sizeof(row), "('%s', 'token_key', '%s'), ", prefix, hex);

    n = (unsigned long) snprintf(sql, sizeof(sql), "INSERT INTO seckill_settings (prefix, name, "
                                 "value) VALUES %s('%s', '%s', '%s') ON DUPLICATE KEY UPDATE "
                                 "name = seckill_settings.name", current ? row : "", prefix,
                                 name, hex);

    rc = n < sizeof(sql) ? mysql_real_query(keys->mysql, sql, n) : -1;
    explicit_bzero(sql, sizeof(sql));
    explicit_bzero(row, sizeof(row));

    return rc == 0 ? SKB_TOKEN_KEY_SAME : skb_token_key_failed(keys);
}


static skb_token_key_e
skb_token_key_no_redis(const skb_token_keys_t *keys, redisReply *reply)
{
    snprintf(keys->error, keys->size, "%s", skb_redis_reason(keys->redis, reply));
    freeReplyObject(reply);

    return SKB_TOKEN_KEY_NO_REDIS;
}


/* seen is what "control" holds, whatever it is, cut to a byte more than a key has */
static skb_token_key_e
skb_token_key_seen(const skb_token_keys_t *keys, char *seen, int *there)
{
    redisReply  *reply;

    seen[0] = '\0';
    reply = skb_redis_command(keys->redis, "HMGET %s token_key rev", keys->control);

    if (skb_redis_class(reply) != SKB_REDIS_FINE || reply->type != REDIS_REPLY_ARRAY
        || reply->elements != 2)
    {
        return skb_token_key_no_redis(keys, reply);
    }

    *there = reply->element[0]->type == REDIS_REPLY_STRING
             || reply->element[1]->type == REDIS_REPLY_STRING;

    if (reply->element[0]->type == REDIS_REPLY_STRING) {
        snprintf(seen, SKB_TOKEN_KEY_HEX + 2, "%s", reply->element[0]->str);
        explicit_bzero(reply->element[0]->str, reply->element[0]->len);
    }

    freeReplyObject(reply);

    return SKB_TOKEN_KEY_SAME;
}


/* Returns 1 when Redis has got it, 0 when control is another one meanwhile. */
static skb_token_key_e
skb_token_key_restore(const skb_token_keys_t *keys, const char *seen, const char *hex, int *done)
{
    redisReply  *reply;

    reply = skb_redis_script(keys->redis, SK_SCRIPT_TOKEN_KEY, 1, 3,
                             (const char *[]) { keys->control, seen, hex }, NULL);

    if (skb_redis_class(reply) != SKB_REDIS_FINE || reply->type != REDIS_REPLY_STRING) {
        return skb_token_key_no_redis(keys, reply);
    }

    *done = strcmp(reply->str, "1") == 0;
    freeReplyObject(reply);

    return SKB_TOKEN_KEY_SAME;
}


static skb_token_key_e
skb_token_key_bring(const skb_token_keys_t *keys, char *hex)
{
    int              there, done;
    char             seen[SKB_TOKEN_KEY_HEX + 2];
    skb_token_key_e  rc, kept;

    if ((rc = skb_token_key_select(keys, hex)) != SKB_TOKEN_KEY_SAME
        || (rc = skb_token_key_seen(keys, seen, &there)) != SKB_TOKEN_KEY_SAME)
    {
        return rc;
    }

    kept = SKB_TOKEN_KEY_SAME;

    if (skb_token_key_ok(seen, strlen(seen)) && strcmp(seen, hex) != 0) {
        /* nodes may have signed with it: it stays known, whoever wins */
        if ((rc = skb_token_key_insert(keys, seen, hex[0] == '\0')) != SKB_TOKEN_KEY_SAME
            || (rc = skb_token_key_select(keys, hex)) != SKB_TOKEN_KEY_SAME)
        {
            return rc;
        }

        kept = SKB_TOKEN_KEY_KEPT;
    }

    if (hex[0] == '\0' || !there) {
        rc = hex[0] == '\0' ? SKB_TOKEN_KEY_NONE : SKB_TOKEN_KEY_SAME;

    } else if (strcmp(seen, hex) == 0) {
        rc = kept;

    } else {
        rc = skb_token_key_restore(keys, seen, hex, &done);

        if (rc == SKB_TOKEN_KEY_SAME && done) {
            rc = seen[0] != '\0' ? SKB_TOKEN_KEY_REPLACED : SKB_TOKEN_KEY_BACK;
        }
    }

    explicit_bzero(seen, sizeof(seen));

    return rc;
}


static void
skb_token_keys_init(skb_token_keys_t *keys, MYSQL *mysql, redisContext *redis,
    const char *prefix, char *error, size_t size)
{
    keys->mysql = mysql;
    keys->redis = redis;
    keys->prefix = prefix;
    keys->error = error;
    keys->size = size;
    keys->control[sk_key_global(keys->control, prefix, strlen(prefix), "control", 7)] = '\0';
    error[0] = '\0';
}


skb_token_key_e
skb_token_key_sync(MYSQL *mysql, redisContext *redis, const char *prefix, char *error,
    size_t size)
{
    char              hex[SKB_TOKEN_KEY_HEX + 1];
    skb_token_key_e   rc;
    skb_token_keys_t  keys;

    skb_token_keys_init(&keys, mysql, redis, prefix, error, size);
    rc = skb_token_key_bring(&keys, hex);
    explicit_bzero(hex, sizeof(hex));

    return rc;
}


skb_token_key_e
skb_token_key_use(MYSQL *mysql, redisContext *redis, const char *prefix, char *hex, char *error,
    size_t size)
{
    unsigned char     random[SKB_TOKEN_KEY_BYTES];
    skb_token_key_e   rc;
    skb_token_keys_t  keys;

    skb_token_keys_init(&keys, mysql, redis, prefix, error, size);
    rc = skb_token_key_bring(&keys, hex);

    if (rc == SKB_TOKEN_KEY_NONE) {
        if (getrandom(random, sizeof(random), 0) != (ssize_t) sizeof(random)) {
            snprintf(error, size, "the kernel gives no random bytes");
            return SKB_TOKEN_KEY_NO_MYSQL;
        }

        for (size_t i = 0; i < sizeof(random); i++) {
            snprintf(hex + 2 * i, 3, "%02x", random[i]);
        }

        explicit_bzero(random, sizeof(random));

        /* another run may have been first: then its key is the one */
        rc = skb_token_key_insert(&keys, hex, 1);

        if (rc == SKB_TOKEN_KEY_SAME) {
            rc = skb_token_key_select(&keys, hex);
        }

        rc = rc == SKB_TOKEN_KEY_SAME ? SKB_TOKEN_KEY_MADE : rc;
    }

    if (rc >= SKB_TOKEN_KEY_NO_TABLE) {
        explicit_bzero(hex, SKB_TOKEN_KEY_HEX + 1);
    }

    return rc;
}


/* The same key twice is one. */
static int
skb_journal_keys_add(skb_journal_keys_t *keys, const unsigned char *bytes, size_t len)
{
    if (keys->n == SKB_JOURNAL_KEYS
        || sk_journal_key_init(&keys->keys[keys->n], bytes, len) != 0)
    {
        return -1;
    }

    if (skb_journal_key(keys, keys->keys[keys->n].id) != NULL) {
        sk_journal_key_done(&keys->keys[keys->n]);
        return 0;
    }

    keys->n++;

    return 0;
}


static int
skb_journal_keys_hex(skb_journal_keys_t *keys, const char *hex)
{
    int            rc;
    unsigned char  bytes[SKB_TOKEN_KEY_BYTES];

    if (skb_token_key_bytes(hex, bytes) != 0) {
        return 0;
    }

    rc = skb_journal_keys_add(keys, bytes, sizeof(bytes));
    explicit_bzero(bytes, sizeof(bytes));

    return rc;
}


/* The youngest first, so that what does not fit is old. */
static int
skb_journal_keys_mysql(skb_journal_keys_t *keys, const skb_token_keys_t *place)
{
    int             rc = 0;
    char            sql[SKB_TOKEN_KEY_SQL], prefix[2 * SK_PREFIX_MAX + 1];
    MYSQL_ROW       row;
    MYSQL_RES      *res;
    unsigned long   n;

    (void) mysql_real_escape_string(place->mysql, prefix, place->prefix, strlen(place->prefix));

    n = (unsigned long) snprintf(sql, sizeof(sql), "SELECT value FROM seckill_settings WHERE "
                                 "prefix = '%s' AND name LIKE 'token\\_key%%' ORDER BY "
                                 "created_at DESC LIMIT %d", prefix, SKB_JOURNAL_KEYS / 2);

    if (mysql_real_query(place->mysql, sql, n) != 0
        || (res = mysql_store_result(place->mysql)) == NULL)
    {
        (void) skb_token_key_failed(place);
        return -1;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        if (row[0] != NULL && skb_journal_keys_hex(keys, row[0]) != 0) {
            rc = -1;
        }
    }

    mysql_free_result(res);

    return rc;
}


int
skb_journal_keys_read(skb_journal_keys_t *keys, MYSQL *mysql, redisContext *redis,
    const skb_config_t *config, char *error, size_t size)
{
    int               rc, there;
    char              seen[SKB_TOKEN_KEY_HEX + 2];
    const char       *path = config->redis.queue_token_key_file;
    sk_secret_t       file;
    skb_token_keys_t  place;

    keys->n = 0;
    skb_token_keys_init(&place, mysql, redis, config->redis.prefix, error, size);

    if (skb_journal_keys_mysql(keys, &place) != 0) {
        if (error[0] == '\0') {
            snprintf(error, size, "out of memory");
        }

        return -1;
    }

    if (redis != NULL) {
        if (skb_token_key_seen(&place, seen, &there) != SKB_TOKEN_KEY_SAME) {
            return -1;
        }

        rc = skb_journal_keys_hex(keys, seen);
        explicit_bzero(seen, sizeof(seen));

        if (rc != 0) {
            snprintf(error, size, "out of memory");
            return -1;
        }
    }

    if (path[0] == '\0') {
        return 0;
    }

    if (sk_secret_read(&file, path, SK_SECRET_KEY) != 0) {
        snprintf(error, size, "key file \"%s\": %s", path, file.error);
        return -1;
    }

    rc = skb_journal_keys_add(keys, (const unsigned char *) file.text, file.len);
    sk_secret_wipe(&file);

    if (rc != 0) {
        snprintf(error, size, "out of memory");
    }

    return rc;
}


void
skb_journal_keys_free(skb_journal_keys_t *keys)
{
    while (keys->n > 0) {
        sk_journal_key_done(&keys->keys[--keys->n]);
    }
}


const sk_journal_key_t *
skb_journal_key(const skb_journal_keys_t *keys, const char *id)
{
    for (size_t i = 0; i < keys->n; i++) {
        if (memcmp(keys->keys[i].id, id, SK_JOURNAL_ID) == 0) {
            return &keys->keys[i];
        }
    }

    return NULL;
}
