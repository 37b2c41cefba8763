/*
 * One statement as text, built piece by piece in a buffer that the server's
 * max_allowed_packet bounds.  What does not fit is remembered, not written.
 */

#ifndef _SKD_SQL_H_INCLUDED_
#define _SKD_SQL_H_INCLUDED_

#include <mysql.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char    *text;
    size_t   len;
    size_t   limit;                     /* bytes of a statement, at most */
    int      overflow;                  /* 1: the statement is not whole */
} skd_sql_t;

/* Room for limit bytes; what an earlier call took is given back.  Returns 0, or -1: no memory. */
int skd_sql_init(skd_sql_t *sql, size_t limit);
void skd_sql_done(skd_sql_t *sql);

/* Begins a new statement. */
void skd_sql_begin(skd_sql_t *sql, const char *text);

void skd_sql_text(skd_sql_t *sql, const char *text);
void skd_sql_bytes(skd_sql_t *sql, const char *data, size_t len);
void skd_sql_u64(skd_sql_t *sql, uint64_t number);

/* In quotes, escaped for the connection's character set. */
void skd_sql_quote(skd_sql_t *sql, MYSQL *mysql, const char *data, size_t len);

#endif /* _SKD_SQL_H_INCLUDED_ */
