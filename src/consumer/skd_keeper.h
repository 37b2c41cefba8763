/*
 * The keeper: a thread with connections of its own for everything that is not
 * the queue, so that no order waits for it.  Lost results, lost data, unpaid
 * orders, sales that have ended, and the picture of the backlog.  Says nothing
 * about servers that are down: the workers do.
 */

#ifndef _SKD_KEEPER_H_INCLUDED_
#define _SKD_KEEPER_H_INCLUDED_

#include <pthread.h>

#include "skd_activities.h"
#include "skd_stats.h"
#include "skd_stop.h"
#include "skd_trouble.h"
#include "skd_writer.h"

typedef struct {
    pthread_t            thread;
    const skb_config_t  *config;
    skd_stop_t          *stop;

    skd_reader_t         reader;
    skd_writer_t         writer;
    skd_backoff_t        redis_backoff;
    skd_backoff_t        mysql_backoff;

    skd_backoff_t        duties[SKD_DUTIES];    /* that cost us a connection */

    skd_activities_t     activities;
    skd_backlog_t       *backlogs;      /* SKD_BACKLOGS_MAX of them */
    int64_t              tick_ms;       /* the slow part is due */
    uint64_t             now_ms;        /* Redis' clock at the tick, epoch milliseconds */
    uint64_t             mysql_ms;      /* MySQL's */
    int                  tell;          /* a sale was paused: the nodes must hear */
    int64_t              lost_ms;       /* MySQL's list of sales is due */
    int                  control_gone;  /* Redis has no control hash: said so */
    int64_t              policy_ms;     /* Redis' eviction policy is looked at */
    int64_t              units_ms;      /* reserved units are compared with the ledger */
    uint64_t             units_after;   /* activities up to this one were compared */
    int                  evicts;        /* it may evict: said so */
    int64_t              schema_ms;     /* the tables are looked at */
    uint64_t             schema_seen;   /* a sum of what was told of them, 0: all is well */
    int64_t              token_key_ms;  /* MySQL's and Redis' token key are compared */
    int                  token_key_said;        /* why they can't be: skb_token_key_e */
} skd_keeper_t;

/* Starts the thread.  Returns 0, or an error number. */
int skd_keeper_start(skd_keeper_t *keeper, const skb_config_t *config, skd_stop_t *stop);

/* Waits for its end, which the wish to stop brings, and gives all back. */
void skd_keeper_join(skd_keeper_t *keeper);

/*
 * Its duties; each returns SKD_OK, or what to do about the connections.  What
 * concerns one activity alone is put aside with skd_trouble(), so that the others
 * go on.  Those of the first group need Redis alone.
 */

/* Says when Redis may evict keys. */
skd_rc_e skd_keeper_policy(skd_keeper_t *keeper);

/* Draws the picture of the backlog. */
skd_rc_e skd_keeper_backlog(skd_keeper_t *keeper);

/* Looks at the clocks of both servers. */
skd_rc_e skd_keeper_clocks(skd_keeper_t *keeper);

/* Answers buyers whose result is not in Redis any more. */
skd_rc_e skd_keeper_lookup(skd_keeper_t *keeper);

/* Reads facts and rows, remembers each seq, and pauses a sale that lost data. */
skd_rc_e skd_keeper_watch(skd_keeper_t *keeper);

/* Finishes preheats that were cut off; says whose rows are not as was promised. */
skd_rc_e skd_keeper_promise(skd_keeper_t *keeper);

/* Finds, from MySQL's side, sales that Redis lost; makes the control hash when none is. */
skd_rc_e skd_keeper_lost(skd_keeper_t *keeper);

/* Says what is other than sql/ makes it, in MySQL. */
skd_rc_e skd_keeper_schema(skd_keeper_t *keeper);

/* Keeps the key of the queue tokens and the journals in MySQL. */
skd_rc_e skd_keeper_token_key(skd_keeper_t *keeper);

/* Settles sales that have ended. */
skd_rc_e skd_keeper_settle(skd_keeper_t *keeper);

/* Takes reserved units over from the ledger where the row is behind it. */
skd_rc_e skd_keeper_units(skd_keeper_t *keeper);

/* Cancels orders that nobody paid. */
skd_rc_e skd_keeper_unpaid(skd_keeper_t *keeper);

/* It failed for one activity; returns what the round makes of it: SKD_OK to go on. */
skd_rc_e skd_keeper_failed(skd_keeper_t *keeper, skd_duty_e duty, uint64_t activity,
    skd_rc_e rc);

#endif /* _SKD_KEEPER_H_INCLUDED_ */
