/*
 * The state of the way to one server: when to try again, and one log line per
 * change of state, with a reminder each minute while it lasts.
 */

#ifndef _SKD_LINK_H_INCLUDED_
#define _SKD_LINK_H_INCLUDED_

#include "skd.h"
#include "skd_clock.h"

typedef enum {
    SKD_LINK_NEW,                       /* not tried yet */
    SKD_LINK_UP,
    SKD_LINK_DOWN
} skd_link_state_e;

/*
 * How much was proved.  A refusal is over only when as much succeeds again: a
 * server that is read-only or full lets us connect all the same.
 */
typedef enum {
    SKD_LINK_CONNECTED,
    SKD_LINK_READ,
    SKD_LINK_WORKED
} skd_link_proof_e;

typedef struct {
    const char        *name;            /* "redis", "mysql" */
    unsigned           worker;
    skd_link_state_e   state;
    skd_link_proof_e   wanted;          /* what ends the outage */
    int64_t            since_ms;
    int64_t            said_ms;         /* the last line about it */
    unsigned           tries;
    skd_backoff_t      backoff;
} skd_link_t;

void skd_link_init(skd_link_t *link, const char *name, unsigned worker);

/*
 * It failed; proof is what was tried.  denied: the server refuses us by user,
 * password or right, so that trying often is of no use.
 */
void skd_link_lost(skd_link_t *link, skd_link_proof_e proof, int denied, const char *reason);

/* It works, as far as proof says. */
void skd_link_good(skd_link_t *link, skd_link_proof_e proof);

#endif /* _SKD_LINK_H_INCLUDED_ */
