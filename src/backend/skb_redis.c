/*
 * hiredis, used blocking: one caller, one thread per connection.
 */

#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sk_reader.h"
#include "skb_redis.h"

/*
 * Line, string, strings together, elements, depth.  The largest we ask for is a
 * batch of 10,000 entries; a string that long is nobody's, and is refused rather
 * than gathered.
 */
static const sk_reader_limits_t  skb_redis_limits =
    { 65536, 16 * 1024 * 1024, 128 * 1024 * 1024, 1024 * 1024, 7 };


typedef struct {
    const char         *word;           /* an error reply begins with it */
    skb_redis_class_e   class;
} skb_redis_word_t;

static const skb_redis_word_t  skb_redis_words[] = {
    { "LOADING",     SKB_REDIS_OUTAGE },
    { "READONLY",    SKB_REDIS_OUTAGE },
    { "OOM",         SKB_REDIS_OUTAGE },
    { "MISCONF",     SKB_REDIS_OUTAGE },
    { "BUSY",        SKB_REDIS_OUTAGE },
    { "MASTERDOWN",  SKB_REDIS_OUTAGE },
    { "NOREPLICAS",  SKB_REDIS_OUTAGE },
    { "CLUSTERDOWN", SKB_REDIS_OUTAGE },
    { "TRYAGAIN",    SKB_REDIS_OUTAGE },
    { "MOVED",       SKB_REDIS_OUTAGE },
    { "ASK",         SKB_REDIS_OUTAGE },
    { "UNBLOCKED",   SKB_REDIS_OUTAGE },
    { "EXECABORT",   SKB_REDIS_OUTAGE },
    { "NOAUTH",      SKB_REDIS_DENIED },
    { "WRONGPASS",   SKB_REDIS_DENIED },
    { "NOPERM",      SKB_REDIS_DENIED },
    { "NOGROUP",     SKB_REDIS_NOGROUP },
};


static int
skb_redis_starts(const char *text, const char *word)
{
    size_t  len = strlen(word);

    return strncmp(text, word, len) == 0 && (text[len] == ' ' || text[len] == '\0');
}


skb_redis_class_e
skb_redis_class(const redisReply *reply)
{
    if (reply == NULL) {
        return SKB_REDIS_LOST;
    }

    if (reply->type != REDIS_REPLY_ERROR) {
        return SKB_REDIS_FINE;
    }

    for (size_t i = 0; i < sizeof(skb_redis_words) / sizeof(skb_redis_words[0]); i++) {
        if (skb_redis_starts(reply->str, skb_redis_words[i].word)) {
            return skb_redis_words[i].class;
        }
    }

    /* "max number of clients reached" has no word of its own */
    if (strstr(reply->str, "max number of clients") != NULL) {
        return SKB_REDIS_OUTAGE;
    }

    return SKB_REDIS_ERROR;
}


const char *
skb_redis_reason(const redisContext *redis, const redisReply *reply)
{
    if (reply != NULL) {
        return reply->type == REDIS_REPLY_ERROR ? reply->str : "unexpected reply";
    }

    /* what a socket's timeout is called */
    if (redis != NULL && strcmp(redis->errstr, strerror(EAGAIN)) == 0) {
        return "timed out";
    }

    return redis != NULL && redis->err ? redis->errstr : "no reply";
}


/*
 * Blocks until a reply is whole or refused.  The reader's state is ours only
 * meanwhile, as hiredis owns the reader and frees it with the connection.
 */
int
skb_redis_reply(redisContext *redis, void **reply)
{
    int          rc, done = 0;
    sk_reader_t  state;

    sk_reader_watch(redis->reader, &state, &skb_redis_limits);

    rc = sk_reader_reply(redis->reader, reply);

    while (rc == REDIS_OK && *reply == NULL && !done) {
        rc = redisBufferWrite(redis, &done);
    }

    while (rc == REDIS_OK && *reply == NULL) {
        rc = redisBufferRead(redis);

        if (rc == REDIS_OK) {
            rc = sk_reader_reply(redis->reader, reply);
        }
    }

    if (rc != REDIS_OK && redis->err == 0) {
        redis->err = REDIS_ERR_PROTOCOL;
        snprintf(redis->errstr, sizeof(redis->errstr), "%s", sk_reader_error(redis->reader));
    }

    redis->reader->privdata = NULL;

    return rc;
}


redisReply *
skb_redis_vcommand(redisContext *redis, const char *format, va_list args)
{
    void  *reply;

    return redisvAppendCommand(redis, format, args) == REDIS_OK
           && skb_redis_reply(redis, &reply) == REDIS_OK ? reply : NULL;
}


redisReply *
skb_redis_command(redisContext *redis, const char *format, ...)
{
    va_list      args;
    redisReply  *reply;

    va_start(args, format);
    reply = skb_redis_vcommand(redis, format, args);
    va_end(args);

    return reply;
}


redisReply *
skb_redis_command_argv(redisContext *redis, int argc, const char **argv, const size_t *argvlen)
{
    void  *reply;

    return redisAppendCommandArgv(redis, argc, argv, argvlen) == REDIS_OK
           && skb_redis_reply(redis, &reply) == REDIS_OK ? reply : NULL;
}


const redisReply *
skb_redis_part(const redisReply *reply, size_t n, int type)
{
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || n >= reply->elements
        || reply->element[n] == NULL || reply->element[n]->type != type)
    {
        return NULL;
    }

    return reply->element[n];
}


const redisReply *
skb_redis_at(const redisReply *reply, size_t n)
{
    static const redisReply  nil = { .type = REDIS_REPLY_NIL };

    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY || n >= reply->elements
        || reply->element[n] == NULL)
    {
        return &nil;
    }

    return reply->element[n];
}


const char *
skb_redis_text(const redisReply *reply, size_t n)
{
    const redisReply  *part = skb_redis_at(reply, n);

    return part->type == REDIS_REPLY_STRING || part->type == REDIS_REPLY_STATUS ? part->str : "";
}


int64_t
skb_redis_number(const redisReply *reply)
{
    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER) {
        return reply->integer >= 0 && reply->integer <= SKB_REDIS_NUMBER_MAX ? reply->integer : -1;
    }

    return reply != NULL && reply->type == REDIS_REPLY_STRING
           && strlen(reply->str) == (size_t) reply->len ? skb_redis_decimal(reply->str) : -1;
}


int64_t
skb_redis_decimal(const char *text)
{
    size_t    len = strspn(text, "0123456789");
    int64_t   n = 0;

    if (len == 0 || len > 15 || text[len] != '\0') {
        return -1;
    }

    while (*text != '\0') {
        n = n * 10 + (*text++ - '0');
    }

    return n;
}


/* Its reader becomes one with limits, before anything is read. */
static int
skb_redis_bound(redisContext *redis)
{
    sk_reader_t   state;
    redisReader  *reader;

    reader = sk_reader_create(&state, &skb_redis_limits);
    if (reader == NULL) {
        return -1;
    }

    reader->privdata = NULL;
    redisReaderFree(redis->reader);
    redis->reader = reader;

    return 0;
}


/* One command of the greeting; argv may hold the password and is never logged. */
static int
skb_redis_hello(redisContext *redis, int argc, const char **argv, char *error, size_t size)
{
    int          rc = 0;
    redisReply  *reply;

    reply = skb_redis_command_argv(redis, argc, argv, NULL);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        snprintf(error, size, "%s: %s", argv[0], skb_redis_reason(redis, reply));
        rc = -1;
    }

    freeReplyObject(reply);

    return rc;
}


static int
skb_redis_login(redisContext *redis, const skb_config_redis_t *conf, char *error, size_t size)
{
    int          rc, argc = 0;
    char         password[SKB_PASSWORD_MAX];
    const char  *argv[3];

    if (conf->password_file[0] == '\0') {
        return 0;
    }

    if (skb_config_password(conf->password_file, password, error, size) != 0) {
        return -1;
    }

    argv[argc++] = "AUTH";

    if (conf->user[0] != '\0') {
        argv[argc++] = conf->user;
    }

    argv[argc++] = password;

    rc = skb_redis_hello(redis, argc, argv, error, size);
    explicit_bzero(password, sizeof(password));

    return rc;
}


static int
skb_redis_greet(redisContext *redis, const skb_config_redis_t *conf, char *error, size_t size)
{
    char         db[16];
    const char  *argv[2];

    if (skb_redis_login(redis, conf, error, size) != 0) {
        return -1;
    }

    if (conf->db != 0) {
        snprintf(db, sizeof(db), "%u", conf->db);
        argv[0] = "SELECT";
        argv[1] = db;

        if (skb_redis_hello(redis, 2, argv, error, size) != 0) {
            return -1;
        }
    }

    /* connecting proves nothing: with maxclients reached it succeeds */
    argv[0] = "PING";

    return skb_redis_hello(redis, 1, argv, error, size);
}


/* Who may not use the socket is what the operator has to know. */
static void
skb_redis_refused(const redisContext *redis, const skb_config_redis_t *conf, char *error,
    size_t size)
{
    char            space[1024];
    struct passwd   entry, *user = NULL;

    if (conf->socket[0] == '\0' || strcmp(redis->errstr, strerror(EACCES)) != 0) {
        snprintf(error, size, "connect: %s", redis->errstr);
        return;
    }

    (void) getpwuid_r(geteuid(), &entry, space, sizeof(space), &user);

    snprintf(error, size, "connect: user %s may not use %s: %s",
             user != NULL ? user->pw_name : "without a name", conf->socket, redis->errstr);
}


redisContext *
skb_redis_connect(const skb_config_t *config, char *error, size_t size)
{
    redisContext              *redis;
    struct timeval             timeout;
    const skb_config_redis_t  *conf = &config->redis;

    timeout.tv_sec = (time_t) (conf->timeout_ms / 1000);
    timeout.tv_usec = (suseconds_t) (conf->timeout_ms % 1000) * 1000;

    if (conf->socket[0] != '\0') {
        redis = redisConnectUnixWithTimeout(conf->socket, timeout);

    } else {
        redis = redisConnectWithTimeout(conf->host, conf->port, timeout);
    }

    if (redis == NULL) {
        snprintf(error, size, "out of memory");
        return NULL;
    }

    if (redis->err) {
        skb_redis_refused(redis, conf, error, size);
        redisFree(redis);
        return NULL;
    }

    if (skb_redis_bound(redis) != 0) {
        snprintf(error, size, "out of memory");
        redisFree(redis);
        return NULL;
    }

    if (redisSetTimeout(redis, timeout) != REDIS_OK) {
        snprintf(error, size, "set timeout: %s", redis->errstr);
        redisFree(redis);
        return NULL;
    }

    if (conf->socket[0] == '\0' && redisEnableKeepAlive(redis) != REDIS_OK) {
        snprintf(error, size, "set keepalive: %s", redis->errstr);
        redisFree(redis);
        return NULL;
    }

    if (skb_redis_greet(redis, conf, error, size) != 0) {
        redisFree(redis);
        return NULL;
    }

    return redis;
}


static redisReply *
skb_redis_load(redisContext *redis, const sk_script_t *script)
{
    const char  *argv[3] = { "SCRIPT", "LOAD", script->text };
    size_t       argvlen[3] = { 6, 4, script->len };

    return skb_redis_command_argv(redis, 3, argv, argvlen);
}


redisReply *
skb_redis_script(redisContext *redis, sk_script_e script, int nkeys, int argc,
    const char **argv, const size_t *argvlen)
{
    char          count[16];
    size_t       *lens;
    redisReply   *reply = NULL;
    const char  **args;

    args = malloc(sizeof(char *) * ((size_t) argc + 3));
    lens = malloc(sizeof(size_t) * ((size_t) argc + 3));

    if (args == NULL || lens == NULL) {
        goto done;
    }

    snprintf(count, sizeof(count), "%d", nkeys);

    args[0] = "EVALSHA";
    args[1] = sk_scripts[script].sha1;
    args[2] = count;

    for (int i = 0; i < 3; i++) {
        lens[i] = strlen(args[i]);
    }

    for (int i = 0; i < argc; i++) {
        args[3 + i] = argv[i];
        lens[3 + i] = argvlen != NULL ? argvlen[i] : strlen(argv[i]);
    }

    reply = skb_redis_command_argv(redis, argc + 3, args, lens);

    if (reply == NULL || reply->type != REDIS_REPLY_ERROR
        || !skb_redis_starts(reply->str, "NOSCRIPT"))
    {
        goto done;
    }

    freeReplyObject(reply);
    reply = skb_redis_load(redis, &sk_scripts[script]);

    if (skb_redis_class(reply) == SKB_REDIS_FINE) {
        freeReplyObject(reply);
        reply = skb_redis_command_argv(redis, argc + 3, args, lens);
    }

done:

    free(args);
    free(lens);

    return reply;
}
