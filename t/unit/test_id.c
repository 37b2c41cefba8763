
/*
 * Ids: one spelling each.
 */


#include "unit.h"
#include "sk_id.h"


static const struct {
    const char  *text;
    uint64_t     id;
} good[] = {
    { "1", 1 },
    { "9", 9 },
    { "10", 10 },
    { "42", 42 },
    { "9007199254740992", UINT64_C(9007199254740992) },
    { "9007199254740993", UINT64_C(9007199254740993) },
    { "9223372036854775807", INT64_MAX },
    { "9223372036854775808", UINT64_C(9223372036854775808) },
    { "9999999999999999999", UINT64_C(9999999999999999999) },
    { "10000000000000000000", UINT64_C(10000000000000000000) },
    { "18446744073709551609", UINT64_MAX - 6 },
    { "18446744073709551615", UINT64_MAX }
};


static const char *const  bad[] = {
    "", "0", "00", "01", "042", "+42", "-42", "42abc", "0x2A", "4.2e1", "42.0", "4e1",
    " 42", "42 ", "42\n", "\t42", "4 2", "18446744073709551616", "18446744073709551620",
    "18446744073709551700", "19000000000000000000", "28446744073709551615",
    "99999999999999999999", "100000000000000000000", "184467440737095516150",
    "9999999999999999999999999999999999999999", "４２", "４", "\xff", "1,000", "1_000", "a",
    ":", "/"
};


static int
parse(const char *text, size_t len, uint64_t *id)
{
    int    rc;
    char  *copy;

    copy = unit_copy(text, len);
    rc = sk_id_parse(copy, len, id);
    free(copy);

    return rc;
}


static void
good_ids(void **state)
{
    char      buf[SK_ID_MAX];
    size_t    i, len;
    uint64_t  id;

    (void) state;

    for (i = 0; i < unit_count(good); i++) {
        assert_int_equal(parse(good[i].text, strlen(good[i].text), &id), 0);
        assert_true(id == good[i].id);

        len = sk_id_format(buf, good[i].id);
        assert_int_equal(len, strlen(good[i].text));
        assert_memory_equal(buf, good[i].text, len);
    }
}


static void
bad_ids(void **state)
{
    size_t    i;
    uint64_t  id;

    (void) state;

    for (i = 0; i < unit_count(bad); i++) {
        id = 77;
        if (parse(bad[i], strlen(bad[i]), &id) != -1) {
            fail_msg("\"%s\" was taken for an id", bad[i]);
        }
        assert_true(id == 77);
    }

    assert_int_equal(parse("42\0", 3, &id), -1);
    assert_int_equal(parse("\0", 1, &id), -1);
    assert_int_equal(parse("4\0002", 3, &id), -1);
}


static void
every_byte(void **state)
{
    int       byte;
    char      text[2] = "1";
    uint64_t  id;

    (void) state;

    for (byte = 0; byte < 256; byte++) {
        text[1] = (char) byte;

        if (byte >= '0' && byte <= '9') {
            assert_int_equal(sk_id_parse(text, 2, &id), 0);
            assert_int_equal(id, 10 + byte - '0');
        } else {
            assert_int_equal(sk_id_parse(text, 2, &id), -1);
        }
    }
}


static void
round_trip(void **state)
{
    char      buf[SK_ID_MAX];
    int       shift;
    uint64_t  n, id;
    int       delta;

    (void) state;

    for (shift = 1; shift < 64; shift++) {
        for (delta = -1; delta <= 1; delta++) {
            n = (UINT64_C(1) << shift) + (uint64_t) (int64_t) delta;
            assert_int_equal(sk_id_parse(buf, sk_id_format(buf, n), &id), 0);
            assert_true(id == n);
        }
    }

    assert_int_equal(sk_id_format(buf, 0), 1);      /* for counters; no id */
    assert_int_equal(buf[0], '0');
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(good_ids),
        cmocka_unit_test(bad_ids),
        cmocka_unit_test(every_byte),
        cmocka_unit_test(round_trip)
    };

    return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
