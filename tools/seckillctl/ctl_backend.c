/*
 * The two servers.
 */

#include <errmsg.h>
#include <inttypes.h>
#include <mysqld_error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_backend.h"
#include "sk_id.h"
#include "skb_control.h"
#include "skb_mysql.h"
#include "skb_redis.h"
#include "skb_token_key.h"

struct ctl_backend_s {
    skb_config_t   conf;
    redisContext  *redis;
    MYSQL         *mysql;
};


int
ctl_settings(ctl_t *ctl)
{
    char  error[SKB_ERROR_MAX];

    if (ctl->backend) {
        return CTL_FINE;
    }

    ctl->backend = calloc(1, sizeof(*ctl->backend));
    if (ctl->backend == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    if (skb_config_load(&ctl->backend->conf, ctl->conf_path, error, sizeof(error)) != 0) {
        ctl_close(ctl);
        return ctl_fail(ctl, CTL_USAGE, "%s", error);
    }

    if (ctl->backend->conf.warning[0] != '\0') {
        ctl_warn("%s", ctl->backend->conf.warning);
    }

    return CTL_FINE;
}


int
ctl_open_redis(ctl_t *ctl)
{
    int   rc;
    char  error[SKB_ERROR_MAX];

    rc = ctl_settings(ctl);

    if (rc != CTL_FINE || ctl->backend->redis) {
        return rc;
    }

    ctl->backend->redis = skb_redis_connect(&ctl->backend->conf, error, sizeof(error));

    return ctl->backend->redis ? CTL_FINE
                               : ctl_fail(ctl, CTL_UNREACHABLE, "Redis: %s", error);
}


int
ctl_open_mysql(ctl_t *ctl)
{
    int   rc;
    char  error[SKB_ERROR_MAX];

    rc = ctl_settings(ctl);

    if (rc != CTL_FINE || ctl->backend->mysql) {
        return rc;
    }

    ctl->backend->mysql = skb_mysql_connect(&ctl->backend->conf, NULL, error, sizeof(error));

    return ctl->backend->mysql ? CTL_FINE
                               : ctl_fail(ctl, CTL_UNREACHABLE, "MySQL: %s", error);
}


int
ctl_reopen_mysql(ctl_t *ctl)
{
    if (ctl->backend->mysql) {
        mysql_close(ctl->backend->mysql);
        ctl->backend->mysql = NULL;
    }

    return ctl_open_mysql(ctl);
}


void
ctl_close(ctl_t *ctl)
{
    if (ctl->backend == NULL) {
        return;
    }

    if (ctl->backend->redis) {
        redisFree(ctl->backend->redis);
    }

    if (ctl->backend->mysql) {
        mysql_close(ctl->backend->mysql);
        mysql_library_end();
    }

    free(ctl->backend);
    ctl->backend = NULL;
}


/* takes what hiredis gave: no reply is the end of the connection */
static int
ctl_redis_reply(ctl_t *ctl, redisReply *reply)
{
    int  rc;

    if (reply) {
        return CTL_FINE;
    }

    rc = ctl_fail(ctl, CTL_UNREACHABLE, "Redis: %s",
                  skb_redis_reason(ctl->backend->redis, NULL));

    redisFree(ctl->backend->redis);
    ctl->backend->redis = NULL;

    return rc;
}


static int
ctl_redis_vtry(ctl_t *ctl, redisReply **reply, const char *fmt, va_list args)
{
    int  rc;

    *reply = NULL;

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    *reply = skb_redis_vcommand(ctl->backend->redis, fmt, args);

    return ctl_redis_reply(ctl, *reply);
}


int
ctl_redis_try(ctl_t *ctl, redisReply **reply, const char *fmt, ...)
{
    int      rc;
    va_list  args;

    va_start(args, fmt);
    rc = ctl_redis_vtry(ctl, reply, fmt, args);
    va_end(args);

    return rc;
}


int
ctl_redis(ctl_t *ctl, redisReply **reply, const char *fmt, ...)
{
    int                rc;
    va_list            args;
    skb_redis_class_e  class;

    va_start(args, fmt);
    rc = ctl_redis_vtry(ctl, reply, fmt, args);
    va_end(args);

    if (rc != CTL_FINE) {
        return rc;
    }

    class = skb_redis_class(*reply);

    if (class == SKB_REDIS_FINE) {
        return CTL_FINE;
    }

    rc = ctl_fail(ctl, class == SKB_REDIS_OUTAGE ? CTL_UNREACHABLE : CTL_REFUSED, "Redis: %s",
                  skb_redis_reason(ctl->backend->redis, *reply));
    freeReplyObject(*reply);
    *reply = NULL;

    return rc;
}


int
ctl_redis_refused(ctl_t *ctl, const redisReply *reply)
{
    return ctl_fail(ctl, CTL_REFUSED, "Redis: %s", skb_redis_reason(ctl->backend->redis, reply));
}


int
ctl_redis_eval(ctl_t *ctl, redisReply **reply, sk_script_e script, int nkeys,
    const char **args, int nargs)
{
    int  rc;

    *reply = NULL;

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    *reply = skb_redis_script(ctl->backend->redis, script, nkeys, nkeys + nargs, args, NULL);

    return ctl_redis_reply(ctl, *reply);
}


void
ctl_key(const ctl_t *ctl, char *buf, sk_key_e key, uint64_t activity, uint64_t user)
{
    const char  *prefix;

    prefix = ctl->backend->conf.redis.prefix;
    buf[sk_key(buf, prefix, strlen(prefix), key, activity, user)] = '\0';
}


void
ctl_key_global(const ctl_t *ctl, char *buf, const char *name)
{
    const char  *prefix;

    prefix = ctl->backend->conf.redis.prefix;
    buf[sk_key_global(buf, prefix, strlen(prefix), name, strlen(name))] = '\0';
}


int
ctl_sql_failed(ctl_t *ctl)
{
    unsigned     number;
    const char  *hint;

    number = mysql_errno(ctl->backend->mysql);
    hint = "";

    if (number == ER_NO_SUCH_TABLE || number == ER_BAD_FIELD_ERROR) {
        hint = "; is \"seckillctl schema apply\" done?";

    } else if (skb_mysql_class_of(number) == SKB_MYSQL_CONFLICT) {
        hint = "; nothing was changed, run it again";
    }

    /* the client's own errors: there is no server at the other end any more */
    return ctl_fail(ctl, number >= CR_MIN_ERROR && number <= CR_MAX_ERROR
                         ? CTL_UNREACHABLE : CTL_REFUSED, "MySQL: %s (%u)%s",
                    mysql_error(ctl->backend->mysql), number, hint);
}


/* a column, a key or a constraint; the last one's numbers are of MariaDB and of MySQL */
static int
ctl_sql_is_there(unsigned number)
{
    return number == ER_DUP_FIELDNAME || number == ER_DUP_KEYNAME || number == 1826
           || number == 3822;
}


static int
ctl_sql_run(ctl_t *ctl, const char *statement, int again)
{
    MYSQL      *mysql;
    unsigned    number;
    MYSQL_RES  *res;

    mysql = ctl->backend->mysql;

    if (mysql_real_query(mysql, statement, (unsigned long) strlen(statement)) != 0) {
        number = mysql_errno(mysql);
        return again && ctl_sql_is_there(number)
               ? CTL_FINE : ctl_sql_failed(ctl);
    }

    /* rows nobody asked for must be taken off the line all the same */
    res = mysql_store_result(mysql);

    if (res) {
        mysql_free_result(res);
    }

    return mysql_errno(mysql) ? ctl_sql_failed(ctl) : CTL_FINE;
}


int
ctl_sql_text(ctl_t *ctl, const char *statement)
{
    return ctl_sql_run(ctl, statement, 0);
}


int
ctl_sql_again(ctl_t *ctl, const char *statement)
{
    return ctl_sql_run(ctl, statement, 1);
}


int
ctl_sql_asked(ctl_t *ctl, int (*work)(ctl_t *ctl, void *data), void *data, int *unsure)
{
    int  rc;

    *unsure = 0;

    rc = ctl_sql(ctl, NULL, "START TRANSACTION");
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = work(ctl, data);

    if (rc == CTL_FINE) {
        ctl_failpoint("before_commit");
        rc = ctl_sql(ctl, NULL, "COMMIT");

        if (rc == CTL_FINE) {
            ctl_failpoint("after_commit");
            return CTL_FINE;
        }

        *unsure = rc == CTL_UNREACHABLE;
    }

    /* the first failure is the one to tell; without a connection there is nothing to undo */
    (void) mysql_rollback(ctl->backend->mysql);

    return rc;
}


int
ctl_sql_transaction(ctl_t *ctl, int (*work)(ctl_t *ctl, void *data), void *data)
{
    int  rc, unsure;

    rc = ctl_sql_asked(ctl, work, data, &unsure);

    if (!unsure) {
        return rc;
    }

    ctl_warn("MySQL did not say whether it has done this: run the same again, which adds "
             "nothing twice");

    return CTL_PARTLY;
}


int
ctl_sql(ctl_t *ctl, MYSQL_RES **res, const char *fmt, ...)
{
    int      rc, n;
    char     statement[CTL_SQL_MAX];
    va_list  args;

    rc = ctl_open_mysql(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    va_start(args, fmt);
    n = vsnprintf(statement, sizeof(statement), fmt, args);
    va_end(args);

    if (n < 0 || (size_t) n >= sizeof(statement)) {
        return ctl_fail(ctl, CTL_PARTLY, "a statement is too long");
    }

    if (res == NULL) {
        return ctl_sql_text(ctl, statement);
    }

    if (mysql_real_query(ctl->backend->mysql, statement, (unsigned long) n) != 0) {
        return ctl_sql_failed(ctl);
    }

    *res = mysql_store_result(ctl->backend->mysql);

    return *res ? CTL_FINE : ctl_sql_failed(ctl);
}


void
ctl_sql_quote(ctl_t *ctl, char *buf, const char *text)
{
    size_t  len;

    len = strnlen(text, 128);

    buf[0] = '\'';
    len = mysql_real_escape_string(ctl->backend->mysql, buf + 1, text, len);
    buf[len + 1] = '\'';
    buf[len + 2] = '\0';
}


uint64_t
ctl_reply_u64(const redisReply *reply)
{
    uint64_t  n;

    switch (reply->type) {

    case REDIS_REPLY_INTEGER:
        return reply->integer > 0 ? (uint64_t) reply->integer : 0;

    case REDIS_REPLY_STRING:
        return sk_id_parse(reply->str, (size_t) reply->len, &n) == 0 ? n : 0;

    default:
        return 0;
    }
}


uint64_t
ctl_column_u64(const char *text)
{
    return text ? strtoull(text, NULL, 10) : 0;
}


int64_t
ctl_column_i64(const char *text)
{
    return text ? strtoll(text, NULL, 10) : 0;
}


int
ctl_nodes_tell(ctl_t *ctl)
{
    int          rc;
    redisReply  *reply;

    rc = ctl_open_redis(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    reply = skb_control_raise(ctl->backend->redis, &ctl->backend->conf, 0);
    rc = ctl_redis_reply(ctl, reply);

    if (rc == CTL_FINE && skb_redis_class(reply) != SKB_REDIS_FINE) {
        rc = ctl_redis_refused(ctl, reply);
    }

    freeReplyObject(reply);

    return rc;
}


int
ctl_token_key(ctl_t *ctl, char *hex)
{
    int              rc;
    char             error[SKB_ERROR_MAX];
    skb_token_key_e  got;

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE || (rc = ctl_open_redis(ctl)) != CTL_FINE) {
        return rc;
    }

    got = skb_token_key_use(ctl->backend->mysql, ctl->backend->redis,
                            ctl->backend->conf.redis.prefix, hex, error, sizeof(error));

    switch (got) {

    case SKB_TOKEN_KEY_NO_TABLE:
        return ctl_fail(ctl, CTL_REFUSED, "MySQL: %s; is \"seckillctl schema apply\" done?",
                        error);

    case SKB_TOKEN_KEY_NO_MYSQL:
        return ctl_fail(ctl, CTL_UNREACHABLE, "MySQL: %s", error);

    case SKB_TOKEN_KEY_NO_REDIS:
        return ctl_fail(ctl, CTL_UNREACHABLE, "Redis: %s", error);

    case SKB_TOKEN_KEY_REPLACED:
        ctl_warn("Redis had another token key than MySQL, and has MySQL's again");
        return CTL_FINE;

    default:
        return CTL_FINE;
    }
}


redisContext *
ctl_redis_context(const ctl_t *ctl)
{
    return ctl->backend->redis;
}


MYSQL *
ctl_mysql(const ctl_t *ctl)
{
    return ctl->backend->mysql;
}


const skb_config_t *
ctl_config(const ctl_t *ctl)
{
    return &ctl->backend->conf;
}
