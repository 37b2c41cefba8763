/*
 * Connections to MySQL or MariaDB: every one begins with the same session,
 * and none reconnects by itself.  Tells what an error means for the writer.
 */

#ifndef _SKB_MYSQL_H_INCLUDED_
#define _SKB_MYSQL_H_INCLUDED_

#include <mysql.h>
#include <stddef.h>

#include "skb_config.h"

typedef enum {
    SKB_MYSQL_FINE,
    SKB_MYSQL_OUTAGE,                   /* server, link, schema or disk: wait, nobody's fault */
    SKB_MYSQL_DENIED,                   /* user, password, database or a right */
    SKB_MYSQL_CONFLICT,                 /* deadlock or lock wait: roll back, run it all again */
    SKB_MYSQL_DUPLICATE,                /* a unique key */
    SKB_MYSQL_TOO_LARGE,                /* more than max_allowed_packet */
    SKB_MYSQL_DATA                      /* the statement's own fault */
} skb_mysql_class_e;

/*
 * Connects and sets up the session (skb_session.h); affected rows are those
 * found, and no server gets a file of ours.  Returns NULL and the reason, with
 * the class in *class (may be NULL); free the result with mysql_close().  A
 * thread calls mysql_thread_init() before.
 */
MYSQL *skb_mysql_connect(const skb_config_t *config, skb_mysql_class_e *class,
    char *error, size_t size);

/* Class of the last call's failure. */
skb_mysql_class_e skb_mysql_class(MYSQL *mysql);

/* The same for an error number of the server (ER_*) or the client (CR_*). */
skb_mysql_class_e skb_mysql_class_of(unsigned number);

#endif /* _SKB_MYSQL_H_INCLUDED_ */
