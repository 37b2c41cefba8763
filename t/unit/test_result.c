
/*
 * Results: written, read back, and what is none.
 */


#include "unit.h"
#include "sk_result.h"


#define NO  "26112901020345655161574099310007"


static int
parse(sk_result_t *result, const char *text)
{
    int    rc;
    char  *copy;

    copy = unit_copy(text, strlen(text));
    rc = sk_result_parse(result, copy, strlen(text));
    free(copy);

    return rc;
}


static void
success(void **state)
{
    char         buf[SK_RESULT_MAX];
    size_t       len;
    sk_result_t  result, back;

    static const char  text[] =
        "{\"success\":true,\"order_id\":18446744073709551615,\"order_no\":\"" NO "\"}";

    (void) state;

    memset(&result, 0, sizeof(result));
    result.success = 1;
    result.order_id = UINT64_MAX;
    memcpy(result.order_no, NO, 33);

    len = sk_result_format(buf, &result);
    assert_int_equal(len, sizeof(text) - 1);
    assert_memory_equal(buf, text, len);

    memset(&back, 0x5a, sizeof(back));
    assert_int_equal(sk_result_parse(&back, buf, len), 0);
    assert_int_equal(back.success, 1);
    assert_true(back.order_id == UINT64_MAX);
    assert_string_equal(back.order_no, NO);
    assert_string_equal(back.reason, "");
}


static void
failure(void **state)
{
    char         buf[SK_RESULT_MAX];
    size_t       len;
    sk_result_t  result, back;

    (void) state;

    memset(&result, 0, sizeof(result));
    memcpy(result.reason, "over_limit", 11);

    len = sk_result_format(buf, &result);
    assert_int_equal(len, strlen("{\"success\":false,\"reason\":\"over_limit\"}"));
    assert_memory_equal(buf, "{\"success\":false,\"reason\":\"over_limit\"}", len);

    memset(&back, 0x5a, sizeof(back));
    assert_int_equal(sk_result_parse(&back, buf, len), 0);
    assert_int_equal(back.success, 0);
    assert_true(back.order_id == 0);
    assert_string_equal(back.order_no, "");
    assert_string_equal(back.reason, "over_limit");

    /* the longest, and one that lost its end */
    memset(&result, 'z', sizeof(result));
    result.success = 0;
    len = sk_result_format(buf, &result);
    assert_true(len <= SK_RESULT_MAX);
    assert_int_equal(sk_result_parse(&back, buf, len), 0);
    assert_int_equal(strlen(back.reason), SK_REASON_MAX);
}


static void
tolerant(void **state)
{
    sk_result_t  result;

    (void) state;

    assert_int_equal(parse(&result, " {\"order_no\": \"" NO "\", \"later\": [1, {}],"
                           " \"order_id\": 7, \"success\": true} "), 0);
    assert_true(result.success && result.order_id == 7);

    /* a failure keeps nothing of an order */
    assert_int_equal(parse(&result, "{\"order_no\":\"" NO "\",\"order_id\":7,\"success\":false,"
                           "\"reason\":\"dead\"}"), 0);
    assert_true(!result.success && result.order_id == 0 && result.order_no[0] == '\0');

    assert_int_equal(parse(&result, "{\"order_no\":\"" NO "\",\"order_id\":7,\"success\":true,"
                           "\"reason\":\"dead\"}"), 0);
    assert_string_equal(result.reason, "");
}


static void
bad(void **state)
{
    size_t       i;
    sk_result_t  result;

    static const char *const  texts[] = {
        "", " ", "{}", "[]", "null", "true", "success", "{\"success\":true}", "{\"success\":false}",
        "{\"success\":true,\"order_id\":7}", "{\"success\":true,\"order_no\":\"" NO "\"}",
        "{\"order_id\":7,\"order_no\":\"" NO "\"}", "{\"reason\":\"dead\"}",
        "{\"success\":1,\"order_id\":7,\"order_no\":\"" NO "\"}",
        "{\"success\":\"true\",\"order_id\":7,\"order_no\":\"" NO "\"}",
        "{\"success\":null,\"reason\":\"dead\"}",
        "{\"success\":[],\"reason\":\"dead\"}",
        "{\"success\":{},\"reason\":\"dead\"}",
        "{\"success\":true,\"order_id\":\"7\",\"order_no\":\"" NO "\"}",
        "{\"success\":true,\"order_id\":0,\"order_no\":\"" NO "\"}",
        "{\"success\":true,\"order_id\":-7,\"order_no\":\"" NO "\"}",
        "{\"success\":true,\"order_id\":7.0,\"order_no\":\"" NO "\"}",
        "{\"success\":true,\"order_id\":7e0,\"order_no\":\"" NO "\"}",
        "{\"success\":true,\"order_id\":18446744073709551616,\"order_no\":\"" NO "\"}",
        "{\"success\":true,\"order_id\":7,\"order_no\":\"" NO "1\"}",
        "{\"success\":true,\"order_id\":7,\"order_no\":\"\"}",
        "{\"success\":true,\"order_id\":7,\"order_no\":\"26x\"}",
        "{\"success\":true,\"order_id\":7,\"order_no\":\"26\\u0000\"}",
        "{\"success\":true,\"order_id\":7,\"order_no\":26}",
        "{\"success\":true,\"success\":true,\"order_id\":7,\"order_no\":\"" NO "\"}",
        "{\"success\":true,\"order_id\":7,\"order_id\":8,\"order_no\":\"" NO "\"}",
        "{\"success\":false,\"success\":true,\"order_id\":7,\"order_no\":\"" NO "\"}",
        "{\"success\":false,\"reason\":\"\"}", "{\"success\":false,\"reason\":\"Dead\"}",
        "{\"success\":false,\"reason\":\"a b\"}", "{\"success\":false,\"reason\":7}",
        "{\"success\":false,\"reason\":\"\\u0000\"}",
        "{\"success\":false,\"reason\":\"a\\\"}\"}",
        "{\"success\":false,\"reason\":\"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz\"}",
        "{\"success\":false,\"reason\":\"dead\"", "{\"success\":false,\"reason\":\"dead\"}x"
    };

    (void) state;

    for (i = 0; i < unit_count(texts); i++) {
        if (parse(&result, texts[i]) != -1) {
            fail_msg("%s was taken", texts[i]);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(success),
        cmocka_unit_test(failure),
        cmocka_unit_test(tolerant),
        cmocka_unit_test(bad)
    };

    return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
