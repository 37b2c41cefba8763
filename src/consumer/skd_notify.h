/*
 * Tells the service manager how the daemon is.
 */

#ifndef _SKD_NOTIFY_H_INCLUDED_
#define _SKD_NOTIFY_H_INCLUDED_

#include <stdint.h>

/*
 * Sends "READY=1" and the like to $NOTIFY_SOCKET; does nothing when there is
 * none.  What cannot be sent is a warning in the log.
 */
void skd_notify(const char *state);

/*
 * Microseconds within which the service manager wants to hear "WATCHDOG=1", 0
 * when it does not.
 */
uint64_t skd_notify_watchdog(void);

#endif /* _SKD_NOTIFY_H_INCLUDED_ */
