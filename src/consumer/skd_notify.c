/*
 * sd_notify(3), with its failures in the log.
 */

#include <string.h>
#include <systemd/sd-daemon.h>

#include "skb_log.h"
#include "skd_notify.h"


void
skd_notify(const char *state)
{
    int  rc = sd_notify(0, state);

    if (rc < 0) {
        skb_log(SKB_WARN, "cannot notify the service manager", "error=\"%s\"", strerror(-rc));
    }
}


uint64_t
skd_notify_watchdog(void)
{
    int       rc;
    uint64_t  us = 0;

    rc = sd_watchdog_enabled(0, &us);

    return rc > 0 ? us : 0;
}
