/*
 * A page of the nodes or of seckilld, fetched once, and the figures on it.
 */

#ifndef _CTL_PAGE_H_INCLUDED_
#define _CTL_PAGE_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define CTL_PAGE_MAX     (4 * 1024 * 1024)      /* bytes that are kept */
#define CTL_ADDRESS_MAX  64

typedef struct {
    long     status;                    /* of HTTP */
    char    *text;
    size_t   len;
    int64_t  began_ms;                  /* of this host's clock */
    int64_t  ended_ms;
    int64_t  date_ms;                   /* the header Date, whole seconds; -1: there is none */
    char     address[CTL_ADDRESS_MAX];  /* that answered */
    char     error[256];
} ctl_page_t;

/*
 * GET without proxy and redirects, for two seconds at most; at: an address to
 * connect to in place of the URL's, or NULL.  Returns 0, or -1 and error when
 * nothing answered.  ctl_page_free() after either.
 */
int ctl_page_get(ctl_page_t *page, const char *url, const char *at);
void ctl_page_free(ctl_page_t *page);

/*
 * A figure of Prometheus' format, by its name with labels, or of JSON by its
 * path of two names at most ("zone", "size"; the second may be NULL).  Returns
 * 0, or -1: the page does not have it.
 */
int ctl_page_figure(const ctl_page_t *page, const char *name, const char *path,
    const char *path2, double *value);

#endif /* _CTL_PAGE_H_INCLUDED_ */
