
/*
 * Names of the Redis keys.
 */


#include "unit.h"
#include "sk_key.h"


static const struct {
    sk_key_e     key;
    const char  *text;
} keys[] = {
    { SK_KEY_ACTIVITY, "seckill:activity:{1}" },
    { SK_KEY_STOCK, "seckill:stock:{1}" },
    { SK_KEY_BUYERS, "seckill:order_users:{1}" },
    { SK_KEY_ORDERS, "seckill:orders:{1}" },
    { SK_KEY_DEAD, "seckill:dead:{1}" },
    { SK_KEY_ELIGIBLE, "seckill:eligible:{1}" },
    { SK_KEY_LOOKUP, "seckill:lookup:{1}" },
    { SK_KEY_RESULTS, "seckill:results:{1}" },
    { SK_KEY_RESULT, "seckill:result:7:{1}" },
    { SK_KEY_LIMIT, "seckill:limit:7:{1}" }
};


static void
of_an_activity(void **state)
{
    char    buf[SK_KEY_MAX];
    size_t  i, len;

    (void) state;

    assert_int_equal(unit_count(keys), SK_KEYS);

    for (i = 0; i < unit_count(keys); i++) {
        len = sk_key(buf, "seckill", 7, keys[i].key, 1, 7);
        assert_int_equal(len, strlen(keys[i].text));
        assert_memory_equal(buf, keys[i].text, len);
    }
}


static void
longest_fit(void **state)
{
    char    *buf, prefix[SK_PREFIX_MAX + 1];
    size_t   i, len;

    (void) state;

    memset(prefix, 'p', sizeof(prefix));
    buf = malloc(SK_KEY_MAX);           /* ASan watches its end */
    assert_non_null(buf);

    for (i = 0; i < SK_KEYS; i++) {
        len = sk_key(buf, prefix, SK_PREFIX_MAX, (sk_key_e) i, UINT64_MAX, UINT64_MAX);
        assert_true(len > 0 && len <= SK_KEY_MAX);
        assert_memory_equal(buf + len - 22, "{18446744073709551615}", 22);

        assert_int_equal(sk_key(buf, prefix, SK_PREFIX_MAX + 1, (sk_key_e) i, 1, 1), 0);
    }

    assert_int_equal(sk_key(buf, prefix, 1, SK_KEYS, 1, 1), 0);
    assert_int_equal(sk_key_global(buf, prefix, SK_PREFIX_MAX + 1, "control", 7), 0);
    assert_int_equal(sk_key_global(buf, prefix, SK_PREFIX_MAX, prefix, 200), 0);

    free(buf);
}


static void
of_no_activity(void **state)
{
    char    buf[SK_KEY_MAX];
    size_t  len;

    static const char  session[] =
        "session:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    (void) state;

    len = sk_key_global(buf, "seckill", 7, "control", 7);
    assert_int_equal(len, 15);
    assert_memory_equal(buf, "seckill:control", 15);

    len = sk_key_global(buf, "s", 1, "activities", 10);
    assert_int_equal(len, 12);
    assert_memory_equal(buf, "s:activities", 12);

    len = sk_key_global(buf, "seckill", 7, session, sizeof(session) - 1);
    assert_int_equal(len, 80);
    assert_memory_equal(buf + 8, session, 72);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(of_an_activity),
        cmocka_unit_test(longest_fit),
        cmocka_unit_test(of_no_activity)
    };

    return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
