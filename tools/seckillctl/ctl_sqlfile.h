/*
 * Files of SQL, taken apart into statements.
 */

#ifndef _CTL_SQLFILE_H_INCLUDED_
#define _CTL_SQLFILE_H_INCLUDED_

#include <stddef.h>

#define CTL_SQLFILES_MAX      999
#define CTL_SQLFILE_SIZE_MAX  262144
#define CTL_SQLFILE_NAME_MAX  96

typedef struct {
    unsigned  version;                  /* 1 of "0001_sale.sql" */
    char      name[CTL_SQLFILE_NAME_MAX];
} ctl_sqlfile_t;

/*
 * The files NNNN_name.sql of dir by rising version; others are not looked at.
 * The caller frees *files.  Returns NULL, or why not as a static text (errno
 * tells more when it is not 0).
 */
const char *ctl_sqlfiles(const char *dir, ctl_sqlfile_t **files, size_t *n);

/* The text of one file with a final NUL, which the caller frees; NULL: errno tells. */
char *ctl_sqlfile_text(const char *dir, const char *name);

/*
 * Cuts the next statement off *text: NUL-terminated, without its semicolon.
 * Knows quotes and the comments "-- " and slash-star.  NULL after the last.
 */
char *ctl_sql_statement(char **text);

#endif /* _CTL_SQLFILE_H_INCLUDED_ */
