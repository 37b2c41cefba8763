/*
 * A preheat on its way, and the questions it must answer before the first write.
 */

#ifndef _CTL_PREHEAT_H_INCLUDED_
#define _CTL_PREHEAT_H_INCLUDED_

#include "ctl_reserve.h"

typedef struct {
    uint64_t       activity;
    int            late;
    int            dry_run;
    int            allow_eviction;
    ctl_live_t     live;                /* before */
    ctl_row_t      row;
    ctl_reserve_t  reserve;
    char           status[16];          /* created, unchanged or updated */
    uint64_t       rev;
    int64_t        stock;
} ctl_preheat_t;

/* All return CTL_FINE, or another code after reporting; they change nothing. */

/* Redis must not evict (maxmemory-policy noeviction). */
int ctl_preheat_eviction(ctl_t *ctl, const ctl_preheat_t *preheat);

/* The row makes sense, and its end is to come. */
int ctl_preheat_check_row(ctl_t *ctl, const ctl_preheat_t *preheat);

/* The sale is in Redis: only before its start, and only this generation. */
int ctl_preheat_check_present(ctl_t *ctl, const ctl_preheat_t *preheat);

/* The sale is not in Redis: it must never have been, or not yet have sold. */
int ctl_preheat_check_absent(ctl_t *ctl, const ctl_preheat_t *preheat);

#endif /* _CTL_PREHEAT_H_INCLUDED_ */
