/*
 * Files of SQL.
 */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_sqlfile.h"


/* 1 for "0001_sale.sql": four digits, not 0000 */
static int
ctl_sqlfile_is(const char *name, unsigned *version)
{
    size_t  len;

    len = strlen(name);

    if (len >= CTL_SQLFILE_NAME_MAX || len < sizeof("0001_x.sql") - 1
        || strspn(name, "0123456789") != 4 || name[4] != '_'
        || strcmp(name + len - 4, ".sql") != 0)
    {
        return 0;
    }

    *version = (unsigned) strtoul(name, NULL, 10);

    return *version > 0;
}


static int
ctl_sqlfile_cmp(const void *a, const void *b)
{
    const ctl_sqlfile_t  *x = a, *y = b;

    return (x->version > y->version) - (x->version < y->version);
}


const char *
ctl_sqlfiles(const char *dir, ctl_sqlfile_t **files, size_t *n)
{
    DIR            *d;
    size_t          i;
    unsigned        version;
    const char     *error;
    struct dirent  *entry;

    *n = 0;
    *files = calloc(CTL_SQLFILES_MAX, sizeof(ctl_sqlfile_t));
    d = *files ? opendir(dir) : NULL;

    if (d == NULL) {
        return "cannot be read";
    }

    error = NULL;

    while ((entry = readdir(d)) != NULL) {

        if (!ctl_sqlfile_is(entry->d_name, &version)) {
            continue;
        }

        if (*n == CTL_SQLFILES_MAX) {
            error = "holds too many files";
            break;
        }

        (*files)[*n].version = version;
        snprintf((*files)[*n].name, CTL_SQLFILE_NAME_MAX, "%s", entry->d_name);
        (*n)++;
    }

    closedir(d);
    errno = 0;

    if (error == NULL && *n == 0) {
        error = "holds no file like 0001_name.sql";
    }

    qsort(*files, *n, sizeof(ctl_sqlfile_t), ctl_sqlfile_cmp);

    for (i = 1; i < *n; i++) {
        if ((*files)[i].version == (*files)[i - 1].version) {
            error = "holds two files of one number";
        }
    }

    return error;
}


char *
ctl_sqlfile_text(const char *dir, const char *name)
{
    char    path[4096], *text;
    FILE   *file;
    size_t  len;

    if ((size_t) snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path)) {
        errno = ENAMETOOLONG;
        return NULL;
    }

    file = fopen(path, "re");
    if (file == NULL) {
        return NULL;
    }

    text = malloc(CTL_SQLFILE_SIZE_MAX + 1);
    len = text ? fread(text, 1, CTL_SQLFILE_SIZE_MAX + 1, file) : 0;

    if (text && (ferror(file) || len > CTL_SQLFILE_SIZE_MAX || memchr(text, '\0', len))) {
        errno = ferror(file) ? EIO : len > CTL_SQLFILE_SIZE_MAX ? EFBIG : EINVAL;
        free(text);
        text = NULL;
    }

    if (text) {
        text[len] = '\0';
    }

    fclose(file);

    return text;
}


/* p is at the opening quote; returns the place after the closing one */
static char *
ctl_sql_skip_quoted(char *p)
{
    char  quote;

    quote = *p++;

    while (*p && *p != quote) {
        p += (*p == '\\' && quote != '`' && p[1]) ? 2 : 1;
    }

    return *p ? p + 1 : p;
}


/* the place after a comment that begins at p, or NULL when none does */
static char *
ctl_sql_skip_comment(char *p)
{
    char  *end;

    if (p[0] == '-' && p[1] == '-' && (p[2] == '\0' || isspace((unsigned char) p[2]))) {
        end = strchr(p, '\n');

    } else if (p[0] == '/' && p[1] == '*') {
        end = strstr(p + 2, "*/");
        end = end ? end + 1 : NULL;

    } else {
        return NULL;
    }

    return end ? end + 1 : p + strlen(p);
}


char *
ctl_sql_statement(char **text)
{
    char  *p, *start, *after;

    p = *text;
    start = NULL;

    while (*p && !(start && *p == ';')) {

        after = ctl_sql_skip_comment(p);
        if (after) {
            p = after;
            continue;
        }

        if (start == NULL && !isspace((unsigned char) *p) && *p != ';') {
            start = p;
        }

        p = (*p == '\'' || *p == '"' || *p == '`') ? ctl_sql_skip_quoted(p) : p + 1;
    }

    if (*p == ';') {
        *p++ = '\0';
    }

    *text = p;

    return start;
}
