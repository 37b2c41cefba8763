/*
 * The story of one purchase: what trace has found of it so far, and who tells
 * which part.
 */

#ifndef _CTL_TRACE_H_INCLUDED_
#define _CTL_TRACE_H_INCLUDED_

#include "ctl_books.h"
#include "ctl_json.h"

#define CTL_STORIES_MAX  16             /* purchases that carry the same request_id */

typedef struct {
    uint64_t  activity;
    uint64_t  user;
    uint64_t  epoch;
    uint64_t  seq;
    char      order_no[SK_ORDER_NO_LEN + 1];
    char      letter[CTL_ENTRY_MAX];    /* of its dead letter, or "" */
} ctl_bought_one_t;

typedef struct {
    ctl_t       *ctl;
    ctl_json_t   json;
    const char  *what;
    int          numbered;              /* what is an order_no */
    uint64_t     remainder;             /* its activity, mod 10^6 */
    uint64_t     activity;              /* this sale alone; 0: all */
    uint64_t     scan;
    size_t       n;                     /* purchases found */
    ctl_bought_one_t  bought[CTL_STORIES_MAX];
    int          cut;                   /* not everything was read to its end */
} ctl_story_t;

/* A line of the story. */
void ctl_story_tell(ctl_story_t *story, const char *where, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The purchase among those found; NULL when there are too many. */
ctl_bought_one_t *ctl_story_add(ctl_story_t *story, const ctl_bought_one_t *bought);

/* All return CTL_FINE, or another code after reporting. */

/* Entries of the streams and dead letters, and how far they are. */
int ctl_story_streams(ctl_story_t *story);

/* What both servers hold of the buyer in that sale. */
int ctl_story_buyer(ctl_story_t *story, const ctl_bought_one_t *one);

/* Movements of the purchase; buyer: and those of its buyer. */
int ctl_story_ledger(ctl_story_t *story, const ctl_bought_one_t *one, int buyer);

#endif /* _CTL_TRACE_H_INCLUDED_ */
