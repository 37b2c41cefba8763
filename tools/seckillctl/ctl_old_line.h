/*
 * Lines of an access log that version 0.1.0 used as its journal.  Anybody could
 * write into them: they are listed for people, and nothing is done by them.
 */

#ifndef _CTL_OLD_LINE_H_INCLUDED_
#define _CTL_OLD_LINE_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#include "sk_order_no.h"

typedef struct {
    uint64_t  activity;
    uint64_t  user;
    uint64_t  seq;
    uint64_t  epoch;
    uint64_t  quantity;
    uint64_t  time_ms;
    char      order_no[SK_ORDER_NO_LEN + 1];
} ctl_old_line_t;

/* Returns 0, or -1: it is no such line. */
int ctl_old_line_parse(ctl_old_line_t *line, const char *text, size_t len);

#endif /* _CTL_OLD_LINE_H_INCLUDED_ */
