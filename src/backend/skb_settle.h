/*
 * The end of a sale: unsold units go back to products.stock, the activity is
 * ended in MySQL, and only then its keys in Redis get their expiry.  The daemon
 * and seckillctl call the same function.
 */

#ifndef _SKB_SETTLE_H_INCLUDED_
#define _SKB_SETTLE_H_INCLUDED_

#include <hiredis/hiredis.h>
#include <mysql.h>
#include <stdint.h>

#include "skb_config.h"
#include "skb_mysql.h"

typedef enum {
    SKB_SETTLE_DONE,                    /* all of it, or the rest that was missing */
    SKB_SETTLE_ALREADY,                 /* was settled before, nothing was missing */
    SKB_SETTLE_WAIT,                    /* not yet, see why: nothing was changed */
    SKB_SETTLE_REFUSED,                 /* never by itself, see error: somebody has to look */
    SKB_SETTLE_REDIS_LOST,              /* run it again once Redis is there */
    SKB_SETTLE_MYSQL_LOST               /* the same; a COMMIT may have happened */
} skb_settle_e;

typedef struct {
    const char  *why;                   /* of WAIT: "running" "unread" "pending" "dead" "missing" */
    uint64_t     missing;               /* buyers in Redis of whom MySQL knows nothing */
    uint64_t     sold;                  /* units in orders */
    uint64_t     unsold;                /* units that products.stock got back, now or before */
    int          booked;                /* MySQL has it, now or before */
    uint64_t     expire_ms;             /* when the keys but the facts go, 0: they are gone */
    char         error[256];            /* of REFUSED and the lost ones */
    skb_mysql_class_e  class;           /* of MYSQL_LOST: whether it is this sale's own trouble */
} skb_settle_t;

/*
 * Settles an activity that has ended by Redis' clock, with nothing unread,
 * pending or dead, and, unless missing_ok, every buyer in Redis with an order or a
 * tombstone in MySQL.  A run that was cut off is finished by the next one, each
 * step happens once.  actor goes to the ledger.  now_ms is Redis' time, which the
 * caller believes (skb_clock_trust.h): the keys expire a day after it, the facts
 * 30 days after it.  Call it outside transactions.
 */
skb_settle_e skb_settle(redisContext *redis, MYSQL *mysql, const skb_config_t *config,
    uint64_t activity, const char *actor, uint64_t now_ms, int missing_ok, skb_settle_t *settle);

#endif /* _SKB_SETTLE_H_INCLUDED_ */
