/*
 * What every session of ours sets by itself, right after it was opened: the
 * server's defaults belong to somebody else and may change at any time.
 */

#ifndef _SKB_SESSION_H_INCLUDED_
#define _SKB_SESSION_H_INCLUDED_

#include <mysql.h>
#include <stddef.h>

#include "skb_config.h"

typedef struct {
    const char  *name;                  /* of the variable */
    const char  *value;                 /* what ours have, as SQL; NULL: set in another way */
    int          rare;                  /* 1: not every server knows it */
    const char  *good;                  /* defaults that harm nobody, NULL: any */
    const char  *harm;                  /* what another default does to other programs */
} skb_session_row_t;

extern const skb_session_row_t  skb_session_rows[];
extern const size_t             skb_session_rows_count;

/*
 * Repeatable reads, no chained transactions, autocommit, strict mode, UTC,
 * every check switched on, a lock wait of half the timeout, utf8mb4.  Returns
 * 0, or -1 and mysql_error() has the reason: such a session must not be used.
 */
int skb_session_set(MYSQL *mysql, const skb_config_mysql_t *conf);

/* 1 when a server's default, as SHOW VARIABLES tells it, harms other programs. */
int skb_session_harmful(const skb_session_row_t *row, const char *value);

#endif /* _SKB_SESSION_H_INCLUDED_ */
