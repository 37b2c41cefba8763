
/*
 * Entries of the orders stream.
 */


#include "unit.h"
#include "sk_message.h"


#define PAIRS  10
#define NO     "26112901020345655161574099310007"


static const char *const  good[PAIRS][2] = {
    { "v", "1" },
    { "user", "18446744073709551615" },
    { "activity", "9007199254740993" },
    { "quantity", "1000000" },
    { "epoch", "3" },
    { "seq", "123456789" },
    { "order_no", NO },
    { "accepted_ms", "1795914123456" },
    { "request_id", "Req-1._" },
    { "ext", "红色" }
};


static void
fill(sk_text_t *fields)
{
    size_t  i;

    for (i = 0; i < PAIRS; i++) {
        fields[2 * i].data = good[i][0];
        fields[2 * i].len = strlen(good[i][0]);
        fields[2 * i + 1].data = good[i][1];
        fields[2 * i + 1].len = strlen(good[i][1]);
    }
}


static void
whole(void **state)
{
    size_t        i;
    sk_text_t     fields[2 * PAIRS], turned[2 * PAIRS];
    sk_message_t  message;

    (void) state;

    fill(fields);

    for (i = 0; i < PAIRS; i++) {       /* the order does not matter */
        turned[2 * i] = fields[2 * (PAIRS - 1 - i)];
        turned[2 * i + 1] = fields[2 * (PAIRS - 1 - i) + 1];
    }

    for (i = 0; i < 2; i++) {
        memset(&message, 0x5a, sizeof(message));
        assert_null(sk_message_parse(&message, i == 0 ? fields : turned, 2 * PAIRS));

        assert_true(message.user == UINT64_MAX);
        assert_true(message.activity == UINT64_C(9007199254740993));
        assert_int_equal(message.quantity, 1000000);
        assert_int_equal(message.epoch, 3);
        assert_int_equal(message.seq, 123456789);
        assert_true(message.accepted_ms == UINT64_C(1795914123456));
        assert_string_equal(message.order_no, NO);
        assert_string_equal(message.request_id, "Req-1._");
        assert_int_equal(message.ext_len, strlen("红色"));
        assert_string_equal(message.ext, "红色");
    }
}


static void
missing_and_repeated(void **state)
{
    char          want[64];
    size_t        i, n;
    sk_text_t     fields[2 * PAIRS + 2], some[2 * PAIRS];
    sk_message_t  message;

    (void) state;

    fill(fields);

    for (i = 0; i < PAIRS; i++) {
        n = 2 * i;
        memcpy(some, fields, n * sizeof(sk_text_t));
        memcpy(some + n, fields + n + 2, (2 * PAIRS - n - 2) * sizeof(sk_text_t));
        (void) snprintf(want, sizeof(want), "field %s is missing", good[i][0]);
        assert_string_equal(sk_message_parse(&message, some, 2 * PAIRS - 2), want);

        fields[2 * PAIRS] = fields[n];
        fields[2 * PAIRS + 1] = fields[n + 1];
        (void) snprintf(want, sizeof(want), "field %s is given twice", good[i][0]);
        assert_string_equal(sk_message_parse(&message, fields, 2 * PAIRS + 2), want);
    }

    for (n = 0; n <= 2 * PAIRS; n++) {
        if (n % 2 != 0) {
            assert_string_equal(sk_message_parse(&message, fields, n), "fields are not pairs");
        } else {
            assert_true((sk_message_parse(&message, fields, n) == NULL) == (n == 2 * PAIRS));
        }
    }

    assert_string_equal(sk_message_parse(&message, NULL, 0), "field v is missing");
}


static void
others_are_ignored(void **state)
{
    sk_text_t     fields[2 * PAIRS + 6];
    sk_message_t  message;

    static const sk_text_t  others[6] = {
        { "price", 5 }, { "1", 1 }, { "", 0 }, { "", 0 }, { "use", 3 }, { "9", 1 }
    };

    (void) state;

    fill(fields);
    memcpy(fields + 2 * PAIRS, others, sizeof(others));
    assert_null(sk_message_parse(&message, fields, 2 * PAIRS + 6));
}


static void
bad_values(void **state)
{
    char          want[64], *copy;
    size_t        i, k;
    sk_text_t     fields[2 * PAIRS];
    sk_message_t  message;

    static const struct {
        size_t      field;
        const char  *value;
        size_t       len;
    } cases[] = {
        { 0, "", 0 }, { 0, "0", 1 }, { 0, "2", 1 }, { 0, "1\0", 2 }, { 0, "01", 2 },
        { 1, "", 0 }, { 1, "0", 1 }, { 1, "07", 2 }, { 1, "x", 1 },
        { 1, "18446744073709551616", 20 },
        { 2, "", 0 }, { 2, "0", 1 }, { 2, "+1", 2 }, { 2, "1e3", 3 },
        { 3, "", 0 }, { 3, "0", 1 }, { 3, "1000001", 7 }, { 3, "4294967297", 10 }, { 3, "1.0", 3 },
        { 4, "", 0 }, { 4, "0", 1 }, { 4, "-1", 2 },
        { 5, "", 0 }, { 5, "0", 1 }, { 5, "1e+15", 5 },
        { 6, "", 0 }, { 6, NO, 31 }, { 6, "26133901020345655161574099310007", 32 },
        { 6, "2611290102034565516157409931000x", 32 },
        { 7, "", 0 }, { 7, "0", 1 }, { 7, "1.795914123456e+12", 18 },
        { 8, "a b", 3 }, { 8, "a\0", 2 }, { 8, "\xe4\xb8\xad", 3 },
        { 9, "\xff", 1 }, { 9, "a\0b", 3 }, { 9, "\xe4\xb8", 2 }
    };

    (void) state;

    for (i = 0; i < unit_count(cases); i++) {
        fill(fields);
        k = cases[i].field;
        copy = unit_copy(cases[i].value, cases[i].len);
        fields[2 * k + 1].data = copy;
        fields[2 * k + 1].len = cases[i].len;

        if (k == 0) {
            (void) snprintf(want, sizeof(want), "unknown version");
        } else {
            (void) snprintf(want, sizeof(want), "field %s is bad", good[k][0]);
        }

        assert_string_equal(sk_message_parse(&message, fields, 2 * PAIRS), want);
        free(copy);
    }
}


static void
lengths(void **state)
{
    char          text[512];
    size_t        len;
    sk_text_t     fields[2 * PAIRS];
    sk_message_t  message;

    (void) state;

    fill(fields);
    memset(text, 'a', sizeof(text));

    for (len = 0; len < sizeof(text); len++) {
        fields[17].data = text;
        fields[17].len = len;
        assert_true((sk_message_parse(&message, fields, 2 * PAIRS) == NULL)
                    == (len <= SK_REQUEST_ID_MAX));
    }

    for (len = 0; len < sizeof(text); len++) {
        fields[17].len = 1;
        fields[19].data = text;
        fields[19].len = len;

        if (len <= SK_EXT_MAX) {
            assert_null(sk_message_parse(&message, fields, 2 * PAIRS));
            assert_int_equal(message.ext_len, len);
            assert_int_equal(strlen(message.ext), len);
        } else {
            assert_string_equal(sk_message_parse(&message, fields, 2 * PAIRS), "field ext is bad");
        }
    }

    fields[17].data = NULL;             /* an empty reply may have no data */
    fields[17].len = 0;
    fields[19].data = NULL;
    fields[19].len = 0;
    assert_null(sk_message_parse(&message, fields, 2 * PAIRS));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(missing_and_repeated),
        cmocka_unit_test(others_are_ignored),
        cmocka_unit_test(bad_values),
        cmocka_unit_test(lengths)
    };

    return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
