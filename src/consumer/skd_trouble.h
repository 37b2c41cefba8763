/*
 * What the keeper could not do for one activity or one order: put aside for a
 * growing while, so that it keeps nothing else waiting; named in the log, counted,
 * and shown by /metrics and /healthz until it works.
 */

#ifndef _SKD_TROUBLE_H_INCLUDED_
#define _SKD_TROUBLE_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SKD_TROUBLES_MAX  256           /* at a time; what comes later is only counted */

typedef enum {
#define SKD_DUTY(name, label, help)  SKD_DUTY_##name,
#include "skd_duties_x.h"
#undef SKD_DUTY
    SKD_DUTIES
} skd_duty_e;

/* order 0: of the whole activity; activity 0: of all. */
typedef struct {
    skd_duty_e  duty;
    uint64_t    activity;
    uint64_t    order;                  /* the order's id */
    uint32_t    tries;
    uint32_t    delay_ms;
    int64_t     next_ms;                /* put aside until then, on skd_now_ms() */
    int64_t     said_ms;                /* the last line in the log, 0: none yet */
} skd_trouble_t;

/* "unpaid" and so on. */
const char *skd_duty_name(skd_duty_e duty);

/*
 * It failed.  busy: somebody holds a row, which is worth a line only when it lasts.
 * order_no may be NULL.
 */
void skd_trouble(skd_duty_e duty, uint64_t activity, uint64_t order, const char *order_no,
    int busy, const char *error);

/* 1 when it is put aside at the moment. */
int skd_trouble_aside(skd_duty_e duty, uint64_t activity);

/* 1 while one more can be put aside. */
int skd_trouble_room(void);

/* It worked. */
void skd_trouble_over(skd_duty_e duty, uint64_t activity, uint64_t order);

/* Forgets what was due for a while and did not fail again: somebody has mended it. */
void skd_troubles_sweep(void);

/* A copy of all; returns how many, at most SKD_TROUBLES_MAX. */
size_t skd_troubles_get(skd_trouble_t *troubles);

/* The same of those that were worth a line in the log. */
size_t skd_troubles_told(skd_trouble_t *troubles);

#endif /* _SKD_TROUBLE_H_INCLUDED_ */
