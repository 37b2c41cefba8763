/*
 * A flag under a mutex with a condition on the monotonic clock.
 */

#include <errno.h>
#include <time.h>

#include "skd_stop.h"


int
skd_stop_init(skd_stop_t *stop)
{
    int                 rc;
    pthread_condattr_t  attr;

    stop->stopping = 0;

    rc = pthread_condattr_init(&attr);

    if (rc != 0) {
        return rc;
    }

    rc = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);

    if (rc == 0) {
        rc = pthread_cond_init(&stop->wish, &attr);
    }

    pthread_condattr_destroy(&attr);

    if (rc == 0) {
        rc = pthread_mutex_init(&stop->mutex, NULL);
    }

    return rc;
}


void
skd_stop_done(skd_stop_t *stop)
{
    pthread_cond_destroy(&stop->wish);
    pthread_mutex_destroy(&stop->mutex);
}


void
skd_stop_all(skd_stop_t *stop)
{
    pthread_mutex_lock(&stop->mutex);
    stop->stopping = 1;
    pthread_cond_broadcast(&stop->wish);
    pthread_mutex_unlock(&stop->mutex);
}


int
skd_stopping(skd_stop_t *stop)
{
    int  stopping;

    pthread_mutex_lock(&stop->mutex);
    stopping = stop->stopping;
    pthread_mutex_unlock(&stop->mutex);

    return stopping;
}


int
skd_stop_wait(skd_stop_t *stop, uint32_t ms)
{
    int              stopping, rc = 0;
    struct timespec  until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long) (ms % 1000) * 1000000;

    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }

    pthread_mutex_lock(&stop->mutex);

    while (!stop->stopping && rc == 0) {
        rc = pthread_cond_timedwait(&stop->wish, &stop->mutex, &until);
    }

    stopping = stop->stopping;
    pthread_mutex_unlock(&stop->mutex);

    return stopping;
}
