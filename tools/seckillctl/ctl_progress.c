/*
 * The progress bar.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl_progress.h"

#define CTL_BAR  40                     /* columns */


void
ctl_progress_init(ctl_progress_t *progress, const char *label, size_t total)
{
    progress->label = isatty(STDERR_FILENO) ? label : NULL;
    progress->total = total;
    progress->next = 0;
}


void
ctl_progress(ctl_progress_t *progress, size_t done)
{
    char             bar[CTL_BAR + 1];
    size_t           filled;
    uint64_t         now;
    struct timespec  ts;

    if (progress->label == NULL || progress->total == 0) {
        return;
    }

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    now = (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;

    if (now < progress->next) {
        return;
    }

    progress->next = now + 100;

    filled = done >= progress->total ? CTL_BAR : done * CTL_BAR / progress->total;
    memset(bar, '#', filled);
    memset(bar + filled, '.', CTL_BAR - filled);
    bar[CTL_BAR] = '\0';

    fprintf(stderr, "\r%s [%s] %zu/%zu", progress->label, bar, done, progress->total);
    fflush(stderr);
}


void
ctl_progress_end(ctl_progress_t *progress)
{
    if (progress->label == NULL) {
        return;
    }

    fprintf(stderr, "\r\033[K");
    fflush(stderr);
}
