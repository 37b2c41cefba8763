/*
 * Everybody who appears in the books of one activity, found by user id, with all
 * that Redis, MySQL and the journals say of them.
 */

#ifndef _CTL_PEOPLE_H_INCLUDED_
#define _CTL_PEOPLE_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#include "sk_order_no.h"

#define CTL_PEOPLE_MAX  4000000         /* users of one activity that fit in memory */

/* What is known of a user. */
#define CTL_MEMBER    0x0001            /* in order_users */
#define CTL_ORDERED   0x0002            /* an order in MySQL */
#define CTL_LATE      0x0004            /* ... made after the books were opened */
#define CTL_TOMB      0x0008            /* a record with status 2 */
#define CTL_RECORDED  0x0010            /* a record with status 1 */
#define CTL_RELEASED  0x0020            /* the ledger gave the units back */
#define CTL_KEPT      0x0040            /* a letter was dropped, its units with it */
#define CTL_LETTER    0x0080            /* an open dead letter */
#define CTL_FLIGHT    0x0100            /* a purchase is unread, pending or very young */
#define CTL_UNACKED   0x0200            /* an entry is unread or pending, stored or not */
#define CTL_TOLD_OK   0x0400            /* the result says success ... */
#define CTL_TOLD_NO   0x0800            /* ... or failed */
#define CTL_TOLD_ODD  0x1000            /* the result names another order, or is no result */
#define CTL_UNITS_ODD 0x2000            /* the purchase was of another number of units */
#define CTL_TERMS_ODD 0x4000            /* the order is not by the terms of its epoch */

typedef struct {
    uint64_t  user;
    uint64_t  order_id;
    uint64_t  epoch;                    /* of the order; of the released purchase, 0: not known */
    uint64_t  seq;
    uint32_t  units;                    /* of the order */
    uint32_t  flags;
    uint32_t  trace;                    /* the first one's index plus 1, 0: none */
    char      order_no[SK_ORDER_NO_LEN + 1];
    char      told_no[SK_ORDER_NO_LEN + 1];     /* the order that the result names */
} ctl_person_t;

typedef struct {
    ctl_person_t  *all;                 /* in the order they appeared; moves when it grows */
    size_t         n;
    size_t         room;
    uint32_t      *slots;               /* index plus 1, by hash */
    size_t         mask;
    int            full;                /* somebody was left out: too many, or no memory */
} ctl_people_t;

/* The user, made when create is set; NULL when not there, or people->full. */
ctl_person_t *ctl_person(ctl_people_t *people, uint64_t user, int create);

void ctl_people_free(ctl_people_t *people);

#endif /* _CTL_PEOPLE_H_INCLUDED_ */
