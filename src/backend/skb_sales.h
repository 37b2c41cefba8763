/*
 * The sales that Redis must know by what MySQL says: those that were opened and
 * are not settled.  One of them without facts in Redis is lost.  A preheat that
 * was cut off before its sale was opened is none of them.
 */

#ifndef _SKB_SALES_H_INCLUDED_
#define _SKB_SALES_H_INCLUDED_

#include <hiredis/hiredis.h>
#include <mysql.h>
#include <stdint.h>

#include "skb_config.h"

/*
 * For skb_sales_take(); "begun": it has started, or sold before.  What was promised
 * is shown, not what the row says by now; version 0.1.0 wrote no terms.
 */
#define SKB_SALES_SQL                                                         \
    "SELECT a.id, COALESCE(t.product_id, a.product_id), "                     \
    "COALESCE(t.price, a.seckill_price), a.stock_limit, "                     \
    "TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', "                           \
    "COALESCE(t.start_time, a.start_time)) * 1000, "                          \
    "TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', "                           \
    "COALESCE(t.end_time, a.end_time)) * 1000, "                              \
    "COALESCE(t.max_quantity, a.max_quantity), "                              \
    "COALESCE(t.by_registration, a.by_registration), a.epoch, "               \
    "(COALESCE(t.start_time, a.start_time) <= UTC_TIMESTAMP() "               \
    "OR a.sold > 0 OR a.seq_seen > 0) "                                       \
    "FROM seckill_activities a LEFT JOIN seckill_terms t "                    \
    "ON t.activity_id = a.id AND t.epoch = a.epoch "                          \
    "WHERE a.status <> 2 AND EXISTS "                                         \
    "(SELECT 1 FROM seckill_stock_log l WHERE l.activity_id = a.id "          \
    "AND l.kind IN ('open', 'restore')) ORDER BY a.id"

#define SKB_SALE_FACTS  8               /* arguments of lua/lost.lua */

typedef struct {
    uint64_t  activity;
    int       begun;
    char      facts[SKB_SALE_FACTS][24];
    int       known;                    /* by the caller: Redis has facts, don't ask */

    /* from Redis */
    int       lost;                     /* its facts are missing, or say "lost" */
    int       marked;                   /* they say so since now */
} skb_sale_t;

typedef struct {
    skb_sale_t  *all;                   /* in the order of their ids */
    size_t       n;
} skb_sales_t;

/* Takes the rows of SKB_SALES_SQL.  Returns 0, or -1: no memory.  Free it in both cases. */
int skb_sales_take(skb_sales_t *sales, MYSQL_RES *res);
void skb_sales_free(skb_sales_t *sales);

/*
 * Asks Redis for each sale that is not known, and gives one that has begun and
 * is lost facts that say so, and its place in the list of activities.  Returns 0;
 * or -1 and in *reply why, to be freed, NULL when the connection failed.
 */
int skb_sales_mark(redisContext *redis, const skb_config_t *config, skb_sales_t *sales,
    redisReply **reply);

#endif /* _SKB_SALES_H_INCLUDED_ */
