/*
 * All threads of the daemon as one thing that starts and stops; a reload is a
 * stop and a start with other settings, between two batches.
 */

#ifndef _SKD_SERVICE_H_INCLUDED_
#define _SKD_SERVICE_H_INCLUDED_

#include "skb_config.h"

/*
 * Starts workers, keeper, alarms and metrics.  config stays the caller's and
 * stays as it is until the stop.  Returns 0, or -1 after a line in the log, and
 * then nothing runs.
 */
int skd_service_start(const skb_config_t *config);

/* Lets every worker finish its batch and waits for all threads. */
void skd_service_stop(void);

/* 1 when every worker has shown life within what its timeouts allow. */
int skd_service_healthy(void);

#endif /* _SKD_SERVICE_H_INCLUDED_ */
