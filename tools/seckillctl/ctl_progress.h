/*
 * A bar on stderr, only when that is a terminal and only ten times a second.
 */

#ifndef _CTL_PROGRESS_H_INCLUDED_
#define _CTL_PROGRESS_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char  *label;                 /* NULL: silent */
    size_t       total;
    uint64_t     next;                  /* msec of the next drawing */
} ctl_progress_t;

/* label NULL, or stderr no terminal: every later call does nothing. */
void ctl_progress_init(ctl_progress_t *progress, const char *label, size_t total);
void ctl_progress(ctl_progress_t *progress, size_t done);

/* Wipes the bar. */
void ctl_progress_end(ctl_progress_t *progress);

#endif /* _CTL_PROGRESS_H_INCLUDED_ */
