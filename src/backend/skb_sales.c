/*
 * See the header.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sk_key.h"
#include "skb_redis.h"
#include "skb_sales.h"


int
skb_sales_take(skb_sales_t *sales, MYSQL_RES *res)
{
    uint64_t     rows;
    MYSQL_ROW    column;
    skb_sale_t  *sale;

    rows = mysql_num_rows(res);
    sales->n = 0;
    sales->all = calloc(rows + 1, sizeof(skb_sale_t));

    if (sales->all == NULL) {
        return -1;
    }

    while (sales->n < rows && (column = mysql_fetch_row(res)) != NULL) {
        sale = &sales->all[sales->n++];
        sale->activity = strtoull(column[0], NULL, 10);
        sale->begun = column[9] != NULL && column[9][0] == '1';

        for (size_t i = 0; i < SKB_SALE_FACTS; i++) {
            snprintf(sale->facts[i], sizeof(sale->facts[i]), "%s",
                     column[1 + i] != NULL ? column[1 + i] : "0");
        }
    }

    return 0;
}


void
skb_sales_free(skb_sales_t *sales)
{
    free(sales->all);
    memset(sales, 0, sizeof(*sales));
}


/* NULL when all is well, else the reply that is not */
static redisReply *
skb_sales_one(redisContext *redis, const skb_config_t *config, skb_sale_t *sale, int *lost)
{
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;
    const char  *argv[1 + SKB_SALE_FACTS], *prefix = config->redis.prefix;

    key[sk_key(key, prefix, strlen(prefix), SK_KEY_ACTIVITY, sale->activity, 0)] = '\0';
    argv[0] = key;

    for (size_t i = 0; i < SKB_SALE_FACTS; i++) {
        argv[1 + i] = sale->facts[i];
    }

    /* one that has not begun is put there again by a preheat: nobody bought */
    reply = sale->begun ? skb_redis_script(redis, SK_SCRIPT_LOST, 1, 1 + SKB_SALE_FACTS, argv,
                                           NULL)
                        : skb_redis_command(redis, "HEXISTS %s state", key);

    if (skb_redis_class(reply) != SKB_REDIS_FINE) {
        return reply;
    }

    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2
        && reply->element[0]->type == REDIS_REPLY_STRING
        && reply->element[1]->type == REDIS_REPLY_STRING)
    {
        sale->marked = strcmp(reply->element[0]->str, "lost") == 0;
        sale->lost = strcmp(reply->element[1]->str, "lost") == 0;

    } else {
        sale->lost = reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
    }

    freeReplyObject(reply);
    *lost = sale->lost;

    return NULL;
}


int
skb_sales_mark(redisContext *redis, const skb_config_t *config, skb_sales_t *sales,
    redisReply **reply)
{
    int          lost;
    char         key[SK_KEY_MAX + 1];
    const char  *prefix = config->redis.prefix;

    key[sk_key_global(key, prefix, strlen(prefix), "activities", strlen("activities"))] = '\0';

    for (size_t i = 0; i < sales->n; i++) {
        if (sales->all[i].known) {
            continue;
        }

        lost = 0;
        *reply = skb_sales_one(redis, config, &sales->all[i], &lost);

        if (*reply != NULL || redis->err) {
            return -1;
        }

        /* it is looked after by its place in this set, which may be lost alone */
        *reply = skb_redis_command(redis, "SADD %s %llu", key,
                              (unsigned long long) sales->all[i].activity);

        if (skb_redis_class(*reply) != SKB_REDIS_FINE) {
            return -1;
        }

        freeReplyObject(*reply);
        *reply = NULL;
    }

    return 0;
}
