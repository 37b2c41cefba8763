/*
 * See the header; one point at a time.
 */

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "skd_failpoint.h"

static const char *const  skd_failpoint_names[SKD_FAILPOINTS] = {
    "after_read", "after_begin", "after_insert", "after_commit", "in_settle", "after_settle"
};

static int         skd_failpoint_armed = -1;    /* a skd_failpoint_e, -1: none */
static unsigned    skd_failpoint_pause_ms;      /* 0: die */
static atomic_int  skd_failpoint_left;          /* visits until it acts */


/* ":N" at *text, or nothing; moves *text behind it.  Returns 0 or -1. */
static int
skd_failpoint_number(const char **text, unsigned long min, unsigned long max,
    unsigned long *number)
{
    char  *end;

    if (**text == '\0') {
        return 0;
    }

    if (**text != ':' || (*text)[1] < '0' || (*text)[1] > '9') {
        return -1;
    }

    *number = strtoul(*text + 1, &end, 10);
    *text = end;

    return *number < min || *number > max ? -1 : 0;
}


int
skd_failpoint_init(void)
{
    size_t          len;
    const char     *text = getenv("SECKILLD_FAILPOINT");
    unsigned long   visits = 1, pause_ms = 0;

    if (text == NULL || *text == '\0') {
        return 0;
    }

    len = strcspn(text, ":");

    for (int i = 0; i < SKD_FAILPOINTS; i++) {
        if (strlen(skd_failpoint_names[i]) == len
            && memcmp(text, skd_failpoint_names[i], len) == 0)
        {
            skd_failpoint_armed = i;
        }
    }

    text += len;

    if (skd_failpoint_armed == -1 || skd_failpoint_number(&text, 1, 1000000, &visits) != 0
        || skd_failpoint_number(&text, 1, 600000, &pause_ms) != 0 || *text != '\0')
    {
        return -1;
    }

    skd_failpoint_pause_ms = (unsigned) pause_ms;
    atomic_store(&skd_failpoint_left, (int) visits);

    return 0;
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
