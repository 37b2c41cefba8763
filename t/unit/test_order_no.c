
/*
 * Order numbers against libc's calendar.
 */


#include <time.h>

#include "unit.h"
#include "sk_order_no.h"


#define DATE_LEN  15
#define DAY_MS    UINT64_C(86400000)
#define Y2000     UINT64_C(946684800000)
#define Y2100     UINT64_C(4102444800000)


static void
known(void **state)
{
    char           buf[SK_ORDER_NO_LEN];
    sk_order_no_t  no, back;

    (void) state;

    no.accepted_ms = UINT64_C(1795914123456);       /* 2026-11-29 01:02:03.456 */
    no.activity = UINT64_C(18446744073709551615);
    no.seq = UINT64_C(90071992547409931);
    no.user = 7;

    sk_order_no_format(buf, &no);
    assert_memory_equal(buf, "261129010203456" "551615" "7409931" "0007", SK_ORDER_NO_LEN);

    assert_int_equal(sk_order_no_parse(buf, SK_ORDER_NO_LEN, &back), 0);
    assert_true(back.accepted_ms == no.accepted_ms);
    assert_int_equal(back.activity, 551615);
    assert_int_equal(back.seq, 7409931);
    assert_int_equal(back.user, 7);
}


static void
every_day(void **state)
{
    char           buf[SK_ORDER_NO_LEN], date[16];
    time_t         t;
    uint64_t       ms;
    struct tm      tm;
    sk_order_no_t  no, back;

    (void) state;

    memset(&no, 0, sizeof(no));

    for (ms = Y2000; ms < Y2100; ms += DAY_MS) {
        no.accepted_ms = ms + ms / DAY_MS * 7919 % DAY_MS;      /* some time of the day */
        sk_order_no_format(buf, &no);

        t = (time_t) (no.accepted_ms / 1000);
        assert_non_null(gmtime_r(&t, &tm));
        assert_int_equal(strftime(date, sizeof(date), "%y%m%d%H%M%S", &tm), 12);
        assert_memory_equal(buf, date, 12);

        assert_int_equal(sk_order_no_parse(buf, SK_ORDER_NO_LEN, &back), 0);
        assert_true(back.accepted_ms == no.accepted_ms);
    }
}


static void
edges_of_time(void **state)
{
    char           buf[SK_ORDER_NO_LEN];
    size_t         i;
    sk_order_no_t  no;

    static const struct {
        uint64_t     ms;
        const char  *text;
    } edges[] = {
        { Y2000, "000101000000000" },
        { Y2100 - 1, "991231235959999" },
        { UINT64_C(951782400000) - 1, "000228235959999" },
        { UINT64_C(951782400000), "000229000000000" },
        { UINT64_C(1709164799999), "240228235959999" },
        { UINT64_C(1709164800000), "240229000000000" },
        { UINT64_C(1709251200000), "240301000000000" }
    };

    (void) state;

    memset(&no, 0, sizeof(no));

    for (i = 0; i < unit_count(edges); i++) {
        no.accepted_ms = edges[i].ms;
        sk_order_no_format(buf, &no);
        assert_memory_equal(buf, edges[i].text, DATE_LEN);
    }

    no.accepted_ms = UINT64_MAX;        /* no date, but no harm either */
    sk_order_no_format(buf, &no);
}


static void
bad_numbers(void **state)
{
    char           buf[SK_ORDER_NO_LEN];
    size_t         i, k;
    sk_order_no_t  no;

    static const char *const  dates[] = {
        "260001000000000", "261301000000000", "260100000000000", "260132000000000",
        "260229000000000", "240230000000000", "260431000000000", "261131000000000",
        "260101240000000", "260101006000000", "260101000060000", "990229000000000"
    };

    static const char  good[SK_ORDER_NO_LEN + 2] = "240229000000000" "000042" "0000001" "0007" "0";

    (void) state;

    memset(buf, '0', sizeof(buf));

    for (i = 0; i < unit_count(dates); i++) {
        memcpy(buf, dates[i], DATE_LEN);
        assert_int_equal(sk_order_no_parse(buf, SK_ORDER_NO_LEN, &no), -1);
    }

    for (k = 0; k < SK_ORDER_NO_LEN; k++) {
        memcpy(buf, good, SK_ORDER_NO_LEN);
        assert_int_equal(sk_order_no_parse(buf, SK_ORDER_NO_LEN, &no), 0);
        assert_int_equal(sk_order_no_parse(buf, k, &no), -1);

        buf[k] = "x/: -+\0\xff"[k % 8];
        assert_int_equal(sk_order_no_parse(buf, SK_ORDER_NO_LEN, &no), -1);
    }

    assert_int_equal(sk_order_no_parse(good, SK_ORDER_NO_LEN + 1, &no), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(known),
        cmocka_unit_test(every_day),
        cmocka_unit_test(edges_of_time),
        cmocka_unit_test(bad_numbers)
    };

    return cmocka_run_group_tests_name("order_no", tests, NULL, NULL);
}
