/*
 * When the clocks of Redis and MySQL are believed.  F-F1.
 */

#include "unit.h"
#include "skb_clock_trust.h"

#define WAIT   600000                   /* after a jump */
#define START  10000                    /* after the first look */

static int64_t  boot;                   /* CLOCK_BOOTTIME of the next look */


/* A look at both clocks, so far from what they were at first, each taking a trip. */
static void
look(skb_clocks_t *clocks, int64_t redis, int64_t mysql, int64_t trip)
{
    skb_clock_reading_t  readings[SKB_CLOCKS];

    for (int i = 0; i < SKB_CLOCKS; i++) {
        readings[i].asked_ms = boot;
        readings[i].told_ms = boot + trip;
        readings[i].ms = INT64_C(1796000000000) + boot + trip / 2
                         + (i == SKB_CLOCK_REDIS ? redis : mysql);
    }

    skb_clocks_note(clocks, readings);
    boot += 1000;
}


static skb_clocks_e
judge(const skb_clocks_t *clocks)
{
    return skb_clocks_judge(clocks, boot, WAIT, START);
}


static void
begin(skb_clocks_t *clocks)
{
    memset(clocks, 0, sizeof(*clocks));
    boot = 5000000;

    for (int i = 0; i < 20; i++) {
        look(clocks, 0, 0, 2);
    }

    assert_int_equal(judge(clocks), SKB_CLOCKS_FINE);
}


static void
first_looks(void **state)
{
    skb_clocks_t  clocks;

    (void) state;

    memset(&clocks, 0, sizeof(clocks));
    boot = 5000000;
    assert_int_equal(judge(&clocks), SKB_CLOCKS_UNREAD);
    assert_int_equal(skb_clocks_now(&clocks, SKB_CLOCK_REDIS, boot), 0);

    look(&clocks, 0, 0, 2);
    assert_int_equal(judge(&clocks), SKB_CLOCKS_NEW);
    boot += START;
    assert_int_equal(judge(&clocks), SKB_CLOCKS_FINE);
    assert_true(skb_clocks_now(&clocks, SKB_CLOCK_REDIS, boot)
                == INT64_C(1796000000000) + boot);
}


static void
jumps(void **state)
{
    skb_clocks_t  clocks;

    static const int64_t  steps[] = { 1501, -1501, 7200000, -7200000, 1200000 };

    (void) state;

    for (size_t i = 0; i < unit_count(steps); i++) {
        for (int both = 0; both < 2; both++) {
            begin(&clocks);
            look(&clocks, steps[i], both ? steps[i] : 0, 2);
            assert_true(clocks.clock[SKB_CLOCK_REDIS].jump_ms == steps[i]);
            assert_int_equal(judge(&clocks), both || llabs(steps[i]) <= SKB_CLOCK_SKEW_MS
                             ? SKB_CLOCKS_JUMPED : SKB_CLOCKS_SKEW);

            /* and back: the wait begins again */
            boot += WAIT - 5000;
            look(&clocks, 0, 0, 2);
            assert_int_equal(judge(&clocks), SKB_CLOCKS_JUMPED);
            boot += WAIT - 2000;
            assert_int_equal(judge(&clocks), SKB_CLOCKS_JUMPED);
            boot += 2000;
            assert_int_equal(judge(&clocks), SKB_CLOCKS_FINE);
        }
    }

    /* MySQL's alone */
    begin(&clocks);
    look(&clocks, 0, 1600, 2);
    assert_true(clocks.clock[SKB_CLOCK_REDIS].jump_ms == 0);
    assert_int_equal(judge(&clocks), SKB_CLOCKS_JUMPED);
}


/* What NTP does is no jump; many small steps are one. */

static void
drift(void **state)
{
    int64_t       away = 0;
    skb_clocks_t  clocks;

    (void) state;

    begin(&clocks);

    for (int i = 0; i < 20000; i++) {
        away += i % 2;
        look(&clocks, away, away, 2);
        assert_int_equal(judge(&clocks), SKB_CLOCKS_FINE);
    }

    begin(&clocks);

    for (int i = 1; i < 10 && clocks.jumped_ms == 0; i++) {
        look(&clocks, i * 500, i * 500, 2);
    }

    assert_int_equal(judge(&clocks), SKB_CLOCKS_JUMPED);

    begin(&clocks);

    for (int i = 0; i < 100; i++) {
        look(&clocks, i % 2 ? 1400 : -50, 0, 2);
        assert_int_equal(judge(&clocks), SKB_CLOCKS_FINE);
    }
}


static void
skew(void **state)
{
    skb_clocks_t  clocks;

    (void) state;

    /* from the first look on: no jump, and yet no trust */
    memset(&clocks, 0, sizeof(clocks));
    boot = 5000000;

    for (int i = 0; i < 2000; i++) {
        look(&clocks, 2100, 0, 2);
    }

    assert_int_equal(judge(&clocks), SKB_CLOCKS_SKEW);
    assert_true(clocks.skew_ms == 2100);

    look(&clocks, 1900, 0, 2);
    assert_int_equal(judge(&clocks), SKB_CLOCKS_FINE);

    look(&clocks, 1900, 4000, 2);
    assert_int_equal(judge(&clocks), SKB_CLOCKS_SKEW);
    assert_true(clocks.skew_ms == -2100);
}


/* A slow answer says nothing of the clock: neither a jump nor a proof. */

static void
slow(void **state)
{
    skb_clocks_t  clocks;

    (void) state;

    begin(&clocks);
    look(&clocks, 7200000, 0, SKB_CLOCK_TRIP_MS);
    assert_int_equal(judge(&clocks), SKB_CLOCKS_UNREAD);
    assert_int_equal(clocks.jumped_ms, 0);
    look(&clocks, 0, 0, SKB_CLOCK_TRIP_MS - 1);
    assert_int_equal(judge(&clocks), SKB_CLOCKS_FINE);

    /* away for an hour, and stepped meanwhile */
    for (int i = 0; i < 3600; i++) {
        look(&clocks, 0, 0, 900);
    }

    look(&clocks, -1600, -1600, 2);
    assert_int_equal(judge(&clocks), SKB_CLOCKS_JUMPED);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(first_looks),
        cmocka_unit_test(jumps),
        cmocka_unit_test(drift),
        cmocka_unit_test(skew),
        cmocka_unit_test(slow)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
