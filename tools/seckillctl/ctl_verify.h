/*
 * A verification on its way: what was asked, what the crowd heard, what Redis
 * and MySQL hold before and after, and the checks that follow from all of it.
 */

#ifndef _CTL_VERIFY_H_INCLUDED_
#define _CTL_VERIFY_H_INCLUDED_

#include "ctl_crowd.h"
#include "ctl_sale.h"
#include "ctl_token.h"

#define CTL_CHECKS_MAX  12
#define CTL_NOTE_MAX    256

/* what a user heard, or was before */
#define CTL_WAS_BUYER      1            /* before the crowd came */
#define CTL_HEARD_ACCEPT   2
#define CTL_HEARD_TWICE    4            /* accepted again */
#define CTL_HEARD_REPEAT   8
#define CTL_HEARD_NOTHING  16           /* no answer, or "unknown": may have bought */
#define CTL_HEARD_SUCCESS  32           /* polling */
#define CTL_ASKED          64

typedef enum {
    CTL_PASS,
    CTL_FAIL,
    CTL_SKIP
} ctl_check_e;

typedef struct {
    const char   *name;
    ctl_check_e   result;
    char          note[CTL_NOTE_MAX];   /* "" for none */
} ctl_check_t;

typedef struct {
    uint64_t  user;
    uint64_t  units;
} ctl_bought_t;

typedef struct {
    uint64_t            activity;
    char                url[1024];      /* of the purchase, without the activity */
    char                socket[128];    /* unix socket, "" for none */
    const char         *cacert;
    int                 insecure;
    uint64_t            first_user;
    uint64_t            nusers;
    uint64_t            requests;
    uint64_t            concurrency;
    uint64_t            quantity;
    uint64_t            seed;
    uint64_t            timeout_ms;     /* of the waiting for orders */
    int                 no_wait;

    ctl_minter_t        minter;
    ctl_users_t         users;
    uint8_t            *heard;          /* per user */
    uint64_t           *old;            /* who bought before the crowd came, sorted */
    size_t              nold;
    ctl_live_t          before;
    ctl_live_t          after;

    ctl_crowd_stats_t   stats;
    size_t              verdicts[SK_VERDICTS + 1];      /* the last: none of ours */
    size_t              outcomes[CTL_CUT + 1];
    size_t              status_5xx;

    int                 settled;        /* the waiting ended in time */
    uint64_t            waited_ms;
    ctl_bought_t       *bought;         /* every order of the activity, by user */
    size_t              nbought;

    ctl_check_t         checks[CTL_CHECKS_MAX];
    size_t              nchecks;
} ctl_verify_t;

/* Reads the command line.  Returns 0, or -1: stop and return ctl->exit. */
int ctl_verify_options(ctl_t *ctl, ctl_verify_t *verify, int argc, char **argv);

/* The users' indexes that must have an order: accepted, or told "repeat" without being one before. */
int ctl_verify_is_buyer(const ctl_verify_t *verify, size_t user);

/* Fills verify->checks. */
void ctl_verify_check(ctl_verify_t *verify);

/* The table, or JSON.  Returns CTL_FINE, or CTL_PARTLY when it could not be written. */
int ctl_verify_print(ctl_t *ctl, const ctl_verify_t *verify);

#endif /* _CTL_VERIFY_H_INCLUDED_ */
