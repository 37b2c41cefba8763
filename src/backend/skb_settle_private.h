/*
 * A settle at work, for its two halves: Redis' in skb_settle.c, MySQL's in
 * skb_settle_money.c.
 */

#ifndef _SKB_SETTLE_PRIVATE_H_INCLUDED_
#define _SKB_SETTLE_PRIVATE_H_INCLUDED_

#include "skb_settle.h"

typedef struct {
    redisContext        *redis;
    MYSQL               *mysql;
    const skb_config_t  *config;
    const char          *actor;
    uint64_t             activity;
    uint64_t             now_ms;        /* Redis' time */
    uint64_t             buyers;        /* in Redis */
    skb_settle_t        *out;

    /* the row */
    int                  ended;
    uint64_t             epoch;
    uint64_t             seq_seen;
    uint64_t             product;
    uint64_t             sold;
    uint64_t             returned;
} skb_settling_t;

/* Says why in out->error; returns SKB_SETTLE_REFUSED. */
skb_settle_e skb_settle_refuse(skb_settling_t *s, const char *why);

/* One statement; res NULL: no rows are wanted. */
skb_settle_e skb_settle_sql(skb_settling_t *s, MYSQL_RES **res, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A decimal column; NULL is 0. */
uint64_t skb_settle_column(const char *text);

/* Reads the row; without lock also what its orders prove to be seen. */
skb_settle_e skb_settle_row(skb_settling_t *s, int lock);

/* Before the first write: the units of a sale that has not ended in MySQL add up. */
skb_settle_e skb_settle_prove(skb_settling_t *s);

/* The transaction: unsold units go back, and the row has ended. */
skb_settle_e skb_settle_mysql(skb_settling_t *s);

#endif /* _SKB_SETTLE_PRIVATE_H_INCLUDED_ */
