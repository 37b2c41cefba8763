/*
 * Whether Redis' clock and MySQL's are to be believed, for acts that can't be
 * taken back: settling a sale, cancelling an order, letting keys expire.  The one
 * judge of it, for the daemon and for seckillctl.  Judged against
 * CLOCK_BOOTTIME, which nobody sets and which goes on while a machine sleeps.
 */

#ifndef _SKB_CLOCK_TRUST_H_INCLUDED_
#define _SKB_CLOCK_TRUST_H_INCLUDED_

#include <hiredis/hiredis.h>
#include <mysql.h>
#include <stddef.h>
#include <stdint.h>

#include "skb_mysql.h"
#include "skb_redis.h"

#define SKB_CLOCK_TRIP_MS   500         /* a reading that took so long does not count */
#define SKB_CLOCK_JUMP_MS   1500        /* more than this against our own clock is a jump */
#define SKB_CLOCK_SKEW_MS   2000        /* more than this between the two is skew */
#define SKB_CLOCK_AGAIN_MS  1000        /* between the two looks of seckillctl */

typedef enum {
    SKB_CLOCK_REDIS,
    SKB_CLOCK_MYSQL,
    SKB_CLOCKS
} skb_clock_e;

/* One look at one clock; all 0: it was not looked at. */
typedef struct {
    int64_t  ms;                        /* what it said, epoch milliseconds; 0: nothing */
    int64_t  asked_ms;                  /* CLOCK_BOOTTIME before and after */
    int64_t  told_ms;
} skb_clock_reading_t;

typedef enum {
    SKB_CLOCKS_FINE,
    SKB_CLOCKS_FAILED,                  /* a server does not tell */
    SKB_CLOCKS_UNREAD,                  /* one of them was not read, or too slowly */
    SKB_CLOCKS_SKEW,                    /* they differ */
    SKB_CLOCKS_JUMPED,                  /* one was set, not long enough ago */
    SKB_CLOCKS_NEW                      /* not looked at for long enough */
} skb_clocks_e;

/* What was seen of one clock. */
typedef struct {
    int      known;
    int      fresh;                     /* the last look counted */
    int64_t  ahead_ms;                  /* of CLOCK_BOOTTIME, at the last look that counted */
    int64_t  anchor_ms;                 /* the same, following drift but no step */
    int64_t  read_ms;                   /* CLOCK_BOOTTIME of that look */
    int64_t  jump_ms;                   /* by how much it jumped at the last look, 0: not */
} skb_clock_t;

/* All 0 at first. */
typedef struct {
    skb_clock_t  clock[SKB_CLOCKS];
    int64_t      began_ms;              /* CLOCK_BOOTTIME when both were known, 0: not yet */
    int64_t      jumped_ms;             /* the same of the last jump, 0: none */
    int64_t      skew_ms;               /* Redis' less MySQL's, when both are known */
    int          skewed;                /* more than they may differ */
} skb_clocks_t;

/* Milliseconds of CLOCK_BOOTTIME. */
int64_t skb_boot_ms(void);

/*
 * Looks at a server's clock.  On failure reading->ms is 0, error says why, and
 * the class of the failure is returned.
 */
skb_redis_class_e skb_clock_read_redis(redisContext *redis, skb_clock_reading_t *reading,
    char *error, size_t size);
skb_mysql_class_e skb_clock_read_mysql(MYSQL *mysql, skb_clock_reading_t *reading, char *error,
    size_t size);

/* Takes note of a look at both. */
void skb_clocks_note(skb_clocks_t *clocks, const skb_clock_reading_t readings[SKB_CLOCKS]);

/*
 * The verdict at now_ms of CLOCK_BOOTTIME: the last look counted, both agree,
 * none jumped within jump_wait_ms, and they are known for new_wait_ms.
 */
skb_clocks_e skb_clocks_judge(const skb_clocks_t *clocks, int64_t now_ms, int64_t jump_wait_ms,
    int64_t new_wait_ms);

/* What a clock says at now_ms, going by its last look that counted; 0: not known. */
int64_t skb_clocks_now(const skb_clocks_t *clocks, skb_clock_e which, int64_t now_ms);

/*
 * seckillctl's way, which has no past to go by: two looks a second apart.
 * Returns the verdict, with its reason in why; *now_ms is Redis' time, 0 when
 * it did not answer.
 */
skb_clocks_e skb_clocks_ask(redisContext *redis, MYSQL *mysql, int64_t *now_ms, char *why,
    size_t size);

#endif /* _SKB_CLOCK_TRUST_H_INCLUDED_ */
