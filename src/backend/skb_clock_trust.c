/*
 * See the header.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "skb_clock_trust.h"

#define SKB_CLOCK_DRIFT  1000           /* a clock is slewed by a part in so many, at most */

static const char *const  skb_clock_names[SKB_CLOCKS] = { "Redis'", "MySQL's" };


int64_t
skb_boot_ms(void)
{
    struct timespec  now;

    clock_gettime(CLOCK_BOOTTIME, &now);

    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}


/* Digits of a time in range, else 0. */
static int64_t
skb_clock_number(const char *text, int64_t max)
{
    char       *end;
    long long   n;

    if (text == NULL || text[0] < '0' || text[0] > '9') {
        return 0;
    }

    n = strtoll(text, &end, 10);

    return *end == '\0' && n <= max ? n : 0;
}


skb_redis_class_e
skb_clock_read_redis(redisContext *redis, skb_clock_reading_t *reading, char *error,
    size_t size)
{
    int64_t            seconds, us;
    redisReply        *reply;
    skb_redis_class_e  class;

    memset(reading, 0, sizeof(skb_clock_reading_t));
    reading->asked_ms = skb_boot_ms();
    reply = skb_redis_command(redis, "TIME");
    reading->told_ms = skb_boot_ms();
    class = skb_redis_class(reply);

    if (class == SKB_REDIS_FINE && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2
        && reply->element[0]->type == REDIS_REPLY_STRING
        && reply->element[1]->type == REDIS_REPLY_STRING)
    {
        seconds = skb_clock_number(reply->element[0]->str, INT64_C(99999999999));
        us = skb_clock_number(reply->element[1]->str, 999999);
        reading->ms = seconds > 0 ? seconds * 1000 + us / 1000 : 0;
    }

    if (class != SKB_REDIS_FINE) {
        snprintf(error, size, "%s", skb_redis_reason(redis, reply));

    } else if (reading->ms == 0) {
        snprintf(error, size, "unexpected reply to TIME");
        class = SKB_REDIS_ERROR;
    }

    freeReplyObject(reply);

    return class;
}


skb_mysql_class_e
skb_clock_read_mysql(MYSQL *mysql, skb_clock_reading_t *reading, char *error, size_t size)
{
    int          failed;
    MYSQL_ROW    row;
    MYSQL_RES   *res = NULL;
    static const char  sql[] = "SELECT FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000)";

    memset(reading, 0, sizeof(skb_clock_reading_t));
    reading->asked_ms = skb_boot_ms();
    failed = mysql_real_query(mysql, sql, sizeof(sql) - 1);

    if (!failed) {
        res = mysql_store_result(mysql);
    }

    reading->told_ms = skb_boot_ms();

    if (res == NULL) {
        snprintf(error, size, "%u %.200s", mysql_errno(mysql), mysql_error(mysql));
        return mysql_errno(mysql) != 0 ? skb_mysql_class(mysql) : SKB_MYSQL_OUTAGE;
    }

    row = mysql_fetch_row(res);
    reading->ms = row != NULL ? skb_clock_number(row[0], INT64_C(99999999999999)) : 0;
    mysql_free_result(res);

    if (reading->ms == 0) {
        snprintf(error, size, "unexpected answer to NOW()");
        return SKB_MYSQL_OUTAGE;
    }

    return SKB_MYSQL_FINE;
}


/* The anchor follows what a clock drifts, so that small steps add up to a jump. */
static void
skb_clock_note(skb_clock_t *clock, const skb_clock_reading_t *reading)
{
    int64_t  ahead, moved, drift, middle;

    clock->jump_ms = 0;
    clock->fresh = reading->ms > 0
                   && reading->told_ms - reading->asked_ms < SKB_CLOCK_TRIP_MS;

    if (!clock->fresh) {
        return;
    }

    middle = reading->asked_ms + (reading->told_ms - reading->asked_ms) / 2;
    ahead = reading->ms - middle;

    if (!clock->known) {
        clock->known = 1;
        clock->anchor_ms = ahead;

    } else {
        moved = ahead - clock->anchor_ms;
        drift = (middle - clock->read_ms) / SKB_CLOCK_DRIFT;

        if (llabs(moved) > SKB_CLOCK_JUMP_MS) {
            clock->jump_ms = moved;
            clock->anchor_ms = ahead;

        } else {
            clock->anchor_ms += moved > drift ? drift : moved < -drift ? -drift : moved;
        }
    }

    clock->ahead_ms = ahead;
    clock->read_ms = middle;
}


void
skb_clocks_note(skb_clocks_t *clocks, const skb_clock_reading_t readings[SKB_CLOCKS])
{
    const skb_clock_t  *redis = &clocks->clock[SKB_CLOCK_REDIS];
    const skb_clock_t  *mysql = &clocks->clock[SKB_CLOCK_MYSQL];

    for (int i = 0; i < SKB_CLOCKS; i++) {
        skb_clock_note(&clocks->clock[i], &readings[i]);

        if (clocks->clock[i].jump_ms != 0) {
            clocks->jumped_ms = clocks->clock[i].read_ms;
        }
    }

    if (!redis->fresh || !mysql->fresh) {
        return;
    }

    clocks->skew_ms = redis->ahead_ms - mysql->ahead_ms;
    clocks->skewed = llabs(clocks->skew_ms) > SKB_CLOCK_SKEW_MS;

    if (clocks->began_ms == 0) {
        clocks->began_ms = redis->read_ms;
    }
}


skb_clocks_e
skb_clocks_judge(const skb_clocks_t *clocks, int64_t now_ms, int64_t jump_wait_ms,
    int64_t new_wait_ms)
{
    if (!clocks->clock[SKB_CLOCK_REDIS].fresh || !clocks->clock[SKB_CLOCK_MYSQL].fresh) {
        return SKB_CLOCKS_UNREAD;
    }

    if (clocks->skewed) {
        return SKB_CLOCKS_SKEW;
    }

    if (clocks->jumped_ms != 0 && now_ms - clocks->jumped_ms < jump_wait_ms) {
        return SKB_CLOCKS_JUMPED;
    }

    return now_ms - clocks->began_ms < new_wait_ms ? SKB_CLOCKS_NEW : SKB_CLOCKS_FINE;
}


int64_t
skb_clocks_now(const skb_clocks_t *clocks, skb_clock_e which, int64_t now_ms)
{
    return clocks->clock[which].known ? clocks->clock[which].ahead_ms + now_ms : 0;
}


/* The reason in words. */
static void
skb_clocks_say(const skb_clocks_t *clocks, skb_clocks_e verdict, char *why, size_t size)
{
    why[0] = '\0';

    if (verdict == SKB_CLOCKS_SKEW) {
        snprintf(why, size, "the clocks of Redis and MySQL differ by %+" PRId64 " ms",
                 clocks->skew_ms);
        return;
    }

    for (int i = 0; i < SKB_CLOCKS; i++) {
        if (verdict == SKB_CLOCKS_UNREAD && !clocks->clock[i].fresh) {
            snprintf(why, size, "%s clock took more than %d ms to be read", skb_clock_names[i],
                     SKB_CLOCK_TRIP_MS);
        }

        if (verdict == SKB_CLOCKS_JUMPED && clocks->clock[i].jump_ms != 0) {
            snprintf(why, size, "%s clock was set by %+" PRId64 " ms at this moment",
                     skb_clock_names[i], clocks->clock[i].jump_ms);
        }
    }
}


skb_clocks_e
skb_clocks_ask(redisContext *redis, MYSQL *mysql, int64_t *now_ms, char *why, size_t size)
{
    skb_clocks_e         verdict;
    skb_clocks_t         clocks;
    skb_clock_reading_t  readings[SKB_CLOCKS];
    struct timespec      wait = { SKB_CLOCK_AGAIN_MS / 1000, SKB_CLOCK_AGAIN_MS % 1000 * 1000000 };

    memset(&clocks, 0, sizeof(clocks));
    *now_ms = 0;

    for (int look = 0; look < 2; look++) {
        if (look > 0) {
            nanosleep(&wait, NULL);
        }

        if (skb_clock_read_redis(redis, &readings[SKB_CLOCK_REDIS], why, size)
            != SKB_REDIS_FINE
            || skb_clock_read_mysql(mysql, &readings[SKB_CLOCK_MYSQL], why, size)
               != SKB_MYSQL_FINE)
        {
            return SKB_CLOCKS_FAILED;
        }

        skb_clocks_note(&clocks, readings);
        verdict = skb_clocks_judge(&clocks, skb_boot_ms(), SKB_CLOCK_AGAIN_MS, 0);

        if (verdict != SKB_CLOCKS_FINE) {
            skb_clocks_say(&clocks, verdict, why, size);
            return verdict;
        }
    }

    *now_ms = readings[SKB_CLOCK_REDIS].ms;

    return SKB_CLOCKS_FINE;
}
