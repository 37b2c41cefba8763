/*
 * A crowd of buyers: many HTTP requests over a fixed number of kept connections,
 * each answer told to the caller.  It knows nothing of stock or orders; what an
 * answer means for the sale is the caller's business.
 */

#ifndef _CTL_CROWD_H_INCLUDED_
#define _CTL_CROWD_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#include "sk_hmac.h"
#include "sk_verdict.h"

#define CTL_CROWD_USERS_MAX        1000000
#define CTL_CROWD_REQUESTS_MAX    10000000
#define CTL_CROWD_CONCURRENCY_MAX    20000

/* Users first .. first + n - 1, each with the header line that carries the token. */
typedef struct {
    uint64_t   first;
    uint32_t   n;
    char      *lines;                   /* "Authorization: Bearer ...", NUL after each */
    size_t    *at;                      /* n offsets into lines */
} ctl_users_t;

typedef enum {
    CTL_ANSWERED,
    CTL_NOT_CONNECTED,                  /* nothing was sent */
    CTL_TIMED_OUT,                      /* may have run */
    CTL_CUT                             /* connection broke; may have run */
} ctl_outcome_e;

typedef struct {
    uint32_t       user;                /* index, 0 is users->first */
    ctl_outcome_e  outcome;
    int            status;              /* HTTP, 0 unless answered */
    int            code;                /* of the body, -1: not a body of ours */
    sk_verdict_e   verdict;             /* by code, SK_VERDICTS when none has it */
    uint32_t       usec;                /* from sending to the end of the answer */
} ctl_answer_t;

typedef void (*ctl_answer_pt)(void *data, const ctl_answer_t *answer);

typedef struct {
    const char         *url;            /* the whole address, http or https */
    const char         *unix_socket;    /* connect there instead, or NULL */
    const char         *cacert;         /* PEM file for https, or NULL for the system's */
    int                 insecure;       /* do not verify the certificate */
    int                 post;           /* POST, else GET */
    const char         *body;           /* of a POST; "" for none */
    const ctl_users_t  *users;
    const uint32_t     *plan;           /* whose request comes when: indexes of users */
    size_t              n;              /* entries of plan */
    unsigned            concurrency;
    long                timeout_ms;     /* of one request */
    ctl_answer_pt       answer;
    void               *data;           /* of answer */
    const char         *progress;       /* label of a bar on stderr, or NULL */
} ctl_crowd_t;

typedef struct {
    double     seconds;                 /* from the first request to the last answer */
    size_t     answered;
    uint32_t   p50, p90, p99, max;      /* usec, of the answered ones */
} ctl_crowd_stats_t;

/* Mints a token for each user; expires is epoch seconds.  Returns 0, or -1: memory or OpenSSL. */
int ctl_users_create(ctl_users_t *users, uint64_t first, uint32_t n, sk_hmac_t *key,
    sk_hmac_alg_e alg, const char *claim, int64_t now, int64_t expires);
void ctl_users_free(ctl_users_t *users);

/*
 * A plan of n requests for the given number of users: every user once before
 * anyone twice, then shuffled by seed.  Returns NULL when memory fails, or for
 * no users.
 */
uint32_t *ctl_crowd_plan(size_t n, uint32_t users, uint64_t seed);

/* Runs it.  Returns NULL, or what kept it from running as a static text. */
const char *ctl_crowd_run(const ctl_crowd_t *crowd, ctl_crowd_stats_t *stats);

#endif /* _CTL_CROWD_H_INCLUDED_ */
