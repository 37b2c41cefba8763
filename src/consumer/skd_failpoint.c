/*
 * See the header; one point at a time.
 */

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "skd_failpoint.h"

static const char *const  skd_failpoint_names[SKD_FAILPOINTS] = {
    "after_read", "after_begin", "after_insert", "after_commit", "after_settle"
};

static int         skd_failpoint_armed = -1;    /* a skd_failpoint_e, -1: none */
static unsigned    skd_failpoint_pause_ms;      /* 0: die */
static atomic_int  skd_failpoint_left;          /* visits until it acts */


int
skd_failpoint_init(void)
{
    char         name[32];
    int          n, visits = 1;
    unsigned     pause_ms = 0;
    const char  *text = getenv("SECKILLD_FAILPOINT");

    if (text == NULL || *text == '\0') {
        return 0;
    }

    n = sscanf(text, "%31[a-z_]:%d:%u", name, &visits, &pause_ms);

    if (n < 1 || visits < 1 || pause_ms > 600000) {
        return -1;
    }

    for (int i = 0; i < SKD_FAILPOINTS; i++) {
        if (strcmp(name, skd_failpoint_names[i]) == 0) {
            skd_failpoint_armed = i;
            skd_failpoint_pause_ms = pause_ms;
            atomic_store(&skd_failpoint_left, visits);
            return 0;
        }
    }

    return -1;
}


void
skd_failpoint(skd_failpoint_e point)
{
    struct timespec  pause;

    if (skd_failpoint_armed != (int) point
        || atomic_fetch_sub(&skd_failpoint_left, 1) != 1)
    {
        return;
    }

    if (skd_failpoint_pause_ms == 0) {
        raise(SIGKILL);
    }

    pause.tv_sec = (time_t) (skd_failpoint_pause_ms / 1000);
    pause.tv_nsec = (long) (skd_failpoint_pause_ms % 1000) * 1000000;
    nanosleep(&pause, NULL);
}
