/*
 * The two servers as the verbs see them: opened on first use, closed at exit,
 * every failure reported once with the server's own words.
 */

#ifndef _CTL_BACKEND_H_INCLUDED_
#define _CTL_BACKEND_H_INCLUDED_

#include <mysql.h>

#include "ctl.h"
#include "sk_key.h"
#include "sk_scripts.h"
#include "skb_config.h"
#include "skb_redis.h"

#define CTL_SQL_MAX  8192               /* bytes of one statement */

/*
 * Read the settings and connect; a second call does nothing.  Return CTL_FINE,
 * or CTL_USAGE (settings) or CTL_UNREACHABLE after reporting.
 */
int ctl_open_redis(ctl_t *ctl);
int ctl_open_mysql(ctl_t *ctl);
void ctl_close(ctl_t *ctl);

/* Another connection instead of one that broke; locks of the old one are gone. */
int ctl_reopen_mysql(ctl_t *ctl);

/* Reads the settings alone, for ctl_config(); CTL_FINE, or CTL_USAGE after reporting. */
int ctl_settings(ctl_t *ctl);

/*
 * One command.  CTL_FINE and *reply, which the caller frees; or after reporting
 * CTL_UNREACHABLE (no answer) or CTL_REFUSED (an error reply).
 */
int ctl_redis(ctl_t *ctl, redisReply **reply, const char *fmt, ...);

/* As ctl_redis(), but an error reply is CTL_FINE too: the caller looks at its type. */
int ctl_redis_try(ctl_t *ctl, redisReply **reply, const char *fmt, ...);

/* Reports a reply that is an error, or none that was expected; returns CTL_REFUSED. */
int ctl_redis_refused(ctl_t *ctl, const redisReply *reply);

/* Runs a script by text; keys first, then arguments.  As ctl_redis_try(). */
int ctl_redis_eval(ctl_t *ctl, redisReply **reply, sk_script_e script, int nkeys,
    const char **args, int nargs);

/* A key of the activity, or one of no activity, with a final NUL: buf has SK_KEY_MAX + 1 bytes. */
void ctl_key(const ctl_t *ctl, char *buf, sk_key_e key, uint64_t activity, uint64_t user);
void ctl_key_global(const ctl_t *ctl, char *buf, const char *name);

/*
 * One statement, its text made as by printf() (numbers; text only through
 * ctl_sql_quote()).  CTL_FINE and, when res is not NULL, the rows, which the
 * caller frees; or after reporting CTL_UNREACHABLE (the server went away) or
 * CTL_REFUSED (it said no).
 */
int ctl_sql(ctl_t *ctl, MYSQL_RES **res, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports the error of the last statement; returns CTL_UNREACHABLE or CTL_REFUSED. */
int ctl_sql_failed(ctl_t *ctl);

/* One statement of any length that yields no rows; as ctl_sql(). */
int ctl_sql_text(ctl_t *ctl, const char *statement);

/* The same; columns, keys and constraints that it adds and that are there are fine. */
int ctl_sql_again(ctl_t *ctl, const char *statement);

/*
 * BEGIN, what work() does, COMMIT; or ROLLBACK when work() does not return
 * CTL_FINE.  Returns its code, or that of the end; CTL_PARTLY, with a word about it,
 * when nobody knows whether the COMMIT was done.
 */
int ctl_sql_transaction(ctl_t *ctl, int (*work)(ctl_t *ctl, void *data), void *data);

/* The same without that word, for who asks once more: then *unsure is set. */
int ctl_sql_asked(ctl_t *ctl, int (*work)(ctl_t *ctl, void *data), void *data, int *unsure);

/* text as a quoted literal, cut to 128 bytes; buf has CTL_QUOTE_MAX bytes. */
#define CTL_QUOTE_MAX  (2 * 128 + 3)
void ctl_sql_quote(ctl_t *ctl, char *buf, const char *text);

/*
 * A lock of this database held by the connection until ctl_sql_unlock() or its
 * end: no two runs of the same work at once.  CTL_REFUSED when another run
 * keeps it for some seconds.  Giving it back never fails the run: all is done then.
 */
int ctl_sql_lock(ctl_t *ctl, const char *name);
void ctl_sql_unlock(ctl_t *ctl, const char *name);

/* The lock of all work on an activity's stock: preheat, restock, release, restore ... */
int ctl_activity_lock(ctl_t *ctl, uint64_t activity);
void ctl_activity_unlock(ctl_t *ctl, uint64_t activity);

/*
 * Raises rev of the control hash: every node drops what it remembers.  Where there is
 * no such hash nothing is sold, and nothing is made: see ctl_lost.h.
 */
int ctl_nodes_tell(ctl_t *ctl);

/*
 * The key that "control" gets when it is made: that of MySQL, which is made when
 * there is none.  hex has SKB_TOKEN_KEY_HEX + 1 bytes: wipe it after use.
 */
int ctl_token_key(ctl_t *ctl, char *hex);

/* For code of src/backend, once the server was opened; the settings, once they were read. */
redisContext *ctl_redis_context(const ctl_t *ctl);
MYSQL *ctl_mysql(const ctl_t *ctl);
const skb_config_t *ctl_config(const ctl_t *ctl);

/* A number of a script's answer, integer or text; others are 0. */
uint64_t ctl_reply_u64(const redisReply *reply);

/* A decimal column; NULL is 0. */
uint64_t ctl_column_u64(const char *text);
int64_t ctl_column_i64(const char *text);

#endif /* _CTL_BACKEND_H_INCLUDED_ */
