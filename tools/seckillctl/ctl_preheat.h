/*
 * A preheat on its way, and the questions it must answer before the first write.
 */

#ifndef _CTL_PREHEAT_H_INCLUDED_
#define _CTL_PREHEAT_H_INCLUDED_

#include "ctl_reserve.h"
#include "ctl_terms.h"

/* How far it came: what is told when the next step fails. */
typedef enum {
    CTL_PREHEAT_NOTHING,
    CTL_PREHEAT_PROMISED,               /* MySQL has the terms and the units */
    CTL_PREHEAT_ASKED,                  /* Redis was asked to take them, and did not say */
    CTL_PREHEAT_LIVE                    /* Redis has them */
} ctl_preheat_step_e;

typedef struct {
    uint64_t       activity;
    int            late;
    int            dry_run;
    int            allow_eviction;
    ctl_live_t     live;                /* before */
    ctl_row_t      row;
    ctl_reserve_t  reserve;
    skb_terms_t    terms;               /* of the epoch that Redis shall have */
    int            fresh;               /* no terms were the same: they are another epoch */
    int            resumed;             /* it has started, only the row was behind */
    char           status[16];          /* created, unchanged, updated or finished */
    uint64_t       rev;
    int64_t        stock;

    ctl_preheat_step_e  step;
} ctl_preheat_t;

/*
 * All of it: questions, then the three steps.  MySQL has terms and more units
 * first; then Redis has facts and epoch; then MySQL has the epoch, and fewer units.
 * Whatever was cut off is finished by the next run.
 */
int ctl_preheat_work(ctl_t *ctl, ctl_preheat_t *preheat);

/* All return CTL_FINE, or another code after reporting; they change nothing. */

/* Redis must not evict (maxmemory-policy noeviction). */
int ctl_preheat_eviction(ctl_t *ctl, const ctl_preheat_t *preheat);

/* The row makes sense, and its end is to come. */
int ctl_preheat_check_row(ctl_t *ctl, const ctl_preheat_t *preheat);

/*
 * The sale is in Redis: only before its start, and only this generation.  After the
 * start the row may be behind (preheat->resumed); edits of it are named.
 */
int ctl_preheat_check_present(ctl_t *ctl, ctl_preheat_t *preheat);

/* The registered users' key can be looked at; warns when there are none. */
int ctl_preheat_check_eligible(ctl_t *ctl, const ctl_preheat_t *preheat);

/* The sale is not in Redis: it must never have been, or not yet have sold. */
int ctl_preheat_check_absent(ctl_t *ctl, const ctl_preheat_t *preheat);

#endif /* _CTL_PREHEAT_H_INCLUDED_ */
