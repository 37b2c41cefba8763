
/*
 * Rates, bursts and limits as text.
 */


#include "unit.h"
#include "sk_limit.h"


static const struct {
    const char  *rate;
    const char  *burst;
    uint32_t     interval_ms;
    uint32_t     n;
} good[] = {
    { "1r/s", "0", 1000, 0 },
    { "3r/s", "1", 333, 1 },
    { "1000r/s", "1000", 1, 1000 },
    { "1r/m", "5", 60000, 5 },
    { "7r/m", "0", 8571, 0 },
    { "1000r/m", "0", 60, 0 },
    { "off", "0", 0, 0 }
};


static const char *const  bad_rates[] = {
    "", "r/s", "1", "1r", "1r/", "1/s", "1r/h", "1r/ss", "0r/s", "0r/m", "1001r/s", "1001r/m",
    "-1r/s", "+1r/s", "1.5r/s", " 1r/s", "1r/s ", "1R/s", "4294967297r/s", "18446744073709551617r/s",
    "of", "OFF", "offr/s", "default"
};


static const char *const  bad_bursts[] = {
    "", "x", "-1", "+1", "1001", "1 ", " 1", "4294967296", "18446744073709551616", "1.0"
};


static int
parse(const char *rate, const char *burst, sk_limit_t *limit)
{
    int     rc;
    char   *r, *b;
    size_t  rate_len, burst_len;

    rate_len = strlen(rate);
    burst_len = strlen(burst);

    r = unit_copy(rate, rate_len);
    b = unit_copy(burst, burst_len);
    rc = sk_limit_parse(limit, r, rate_len, b, burst_len);
    free(r);
    free(b);

    return rc;
}


static void
good_limits(void **state)
{
    size_t      i;
    sk_limit_t  limit;

    (void) state;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(parse(good[i].rate, good[i].burst, &limit), 0);
        assert_int_equal(limit.interval_ms, good[i].interval_ms);
        assert_int_equal(limit.burst, good[i].n);
    }
}


static void
bad_limits(void **state)
{
    size_t      i;
    sk_limit_t  limit;

    (void) state;

    for (i = 0; i < sizeof(bad_rates) / sizeof(bad_rates[0]); i++) {
        if (parse(bad_rates[i], "0", &limit) == 0) {
            fail_msg("rate \"%s\" was taken", bad_rates[i]);
        }
    }

    for (i = 0; i < sizeof(bad_bursts) / sizeof(bad_bursts[0]); i++) {
        if (parse("1r/s", bad_bursts[i], &limit) == 0) {
            fail_msg("burst \"%s\" was taken", bad_bursts[i]);
        }
    }

    assert_int_equal(parse("off", "1", &limit), -1);
}


/* a rate alone is never "off" */
static void
rates(void **state)
{
    uint32_t  interval_ms;

    (void) state;

    assert_int_equal(sk_rate_parse("5r/s", 4, &interval_ms), 0);
    assert_int_equal(interval_ms, 200);
    assert_int_equal(sk_rate_parse("off", 3, &interval_ms), -1);
    assert_int_equal(sk_rate_parse("55r/s", 4, &interval_ms), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(good_limits),
        cmocka_unit_test(bad_limits),
        cmocka_unit_test(rates)
    };

    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
