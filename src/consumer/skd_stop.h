/*
 * The wish to stop, and every wait of a worker: it ends at once with the wish.
 */

#ifndef _SKD_STOP_H_INCLUDED_
#define _SKD_STOP_H_INCLUDED_

#include <pthread.h>
#include <stdint.h>

typedef struct {
    pthread_mutex_t  mutex;
    pthread_cond_t   wish;
    int              stopping;
} skd_stop_t;

/* Returns 0, or an error number. */
int skd_stop_init(skd_stop_t *stop);
void skd_stop_done(skd_stop_t *stop);

/* From now on skd_stopping() is true and no wait lasts. */
void skd_stop_all(skd_stop_t *stop);

int skd_stopping(skd_stop_t *stop);

/* Waits ms milliseconds, or less when told to stop; returns skd_stopping(). */
int skd_stop_wait(skd_stop_t *stop, uint32_t ms);

#endif /* _SKD_STOP_H_INCLUDED_ */
