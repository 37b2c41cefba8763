/*
 * The tables as they are in MySQL, held against what sql/ makes.  Looks, and
 * changes nothing.
 */

#ifndef _SKB_SCHEMA_H_INCLUDED_
#define _SKB_SCHEMA_H_INCLUDED_

#include <mysql.h>
#include <stddef.h>

#define SKB_SCHEMA_TEXT_MAX  256        /* of what is told */

/* Takes a difference: what is wrong, in words. */
typedef void (*skb_schema_tell_pt)(void *data, const char *wrong);

/*
 * Names each table, column, unique key and CHECK that is missing, narrower or
 * other than ours, and each foreign column that our INSERTs can't fill; of tables
 * that are there only, when "present" is set.  Returns how many were told, or -1:
 * the server did not answer, mysql_error() tells why.
 */
int skb_schema_look(MYSQL *mysql, int present, skb_schema_tell_pt tell, void *data);

#endif /* _SKB_SCHEMA_H_INCLUDED_ */
