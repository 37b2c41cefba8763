/*
 * The command of "on_dead", run for each dead letter with the activity, the
 * user and the entry's id as its arguments.  A thread of its own runs one at a
 * time: whatever the command does, no order waits for it.
 */

#ifndef _SKD_ALARM_H_INCLUDED_
#define _SKD_ALARM_H_INCLUDED_

#include <stdint.h>

#include "skd_stop.h"

/* command: an absolute path, or "" for none.  Returns 0, or an error number. */
int skd_alarm_start(const char *command, skd_stop_t *stop);

/* Waits for the thread's end, which the wish to stop brings. */
void skd_alarm_join(void);

/* Never waits: when too many commands are due this one is dropped, and counted. */
void skd_alarm_raise(uint64_t activity, uint64_t user, const char *entry);

#endif /* _SKD_ALARM_H_INCLUDED_ */
