
/*
 * The walk over a stranger's object, and its arena.
 */


#include "unit.h"
#include "sk_json.h"


typedef struct {
    size_t          calls;
    sk_json_type_e  type[2];
    char            text[2][32];
    size_t          len[2];
    size_t          refuse;             /* this key, when < 2 */
} seen_t;


static const sk_json_key_t  keys[] = {
    sk_json_key("a"),
    sk_json_key("long name")
};


static int
value(void *data, size_t key, const sk_json_value_t *found)
{
    seen_t  *seen = data;

    seen->calls++;
    seen->type[key] = found->type;
    seen->len[key] = found->len;

    if (found->len < sizeof(seen->text[key])) {
        memcpy(seen->text[key], found->text, found->len);
        seen->text[key][found->len] = '\0';
    }

    return key == seen->refuse ? -1 : 0;
}


static int
walk_len(seen_t *seen, const char *text, size_t len)
{
    int    rc;
    char  *copy;

    memset(seen, 0, sizeof(*seen));
    seen->refuse = 2;

    copy = unit_copy(text, len);
    rc = sk_json_walk(copy, len, keys, unit_count(keys), value, seen);
    free(copy);

    return rc;
}


static int
walk(seen_t *seen, const char *text)
{
    return walk_len(seen, text, strlen(text));
}


static void
values(void **state)
{
    size_t  i;
    seen_t  seen;

    static const struct {
        const char      *text;
        sk_json_type_e   type;
        const char      *value;
    } cases[] = {
        { "{\"a\":null}", SK_JSON_NULL, "null" },
        { "{\"a\":true}", SK_JSON_BOOL, "true" },
        { "{\"a\":false}", SK_JSON_BOOL, "false" },
        { "{\"a\":0}", SK_JSON_NUMBER, "0" },
        { "{\"a\":-12.5e+3}", SK_JSON_NUMBER, "-12.5e+3" },
        { "{\"a\":123456789012345678901234567890}", SK_JSON_NUMBER,
          "123456789012345678901234567890" },
        { "{\"a\":\"\"}", SK_JSON_TEXT, "" },
        { "{\"a\":\"b\"}", SK_JSON_TEXT, "b" },
        { "{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}", SK_JSON_TEXT, "\"\\/\b\f\n\r\t" },
        { "{\"a\":\"\\u4E2d\\ud83c\\udf81\"}", SK_JSON_TEXT, "中🎁" },
        { "{\"a\":\"中🎁\"}", SK_JSON_TEXT, "中🎁" },
        { "{\"a\":\"}\"}", SK_JSON_TEXT, "}" },
        { "{\"a\":\"\\\\\"}", SK_JSON_TEXT, "\\" },
        { "{\"a\":\"\\\"}\"}", SK_JSON_TEXT, "\"}" },
        { "{\"a\":{}}", SK_JSON_OBJECT, "" },
        { "{\"a\":{\"a\":1,\"a\":2}}", SK_JSON_OBJECT, "" },
        { "{\"a\":[]}", SK_JSON_ARRAY, "" },
        { "{\"a\":[1,{\"a\":2},\"x\"]}", SK_JSON_ARRAY, "" },
        { " \t\r\n{\"\\u0061\" : \"x\"} \t\r\n", SK_JSON_TEXT, "x" },
        { "{\"x\":{\"a\":1},\"a\":2,\"y\":[{\"a\":3}]}", SK_JSON_NUMBER, "2" },
        { "{\"x\":1,\"x\":2,\"a\":3}", SK_JSON_NUMBER, "3" },
        { "{\"a\\u0000\":1,\"a\":\"\\u0041\"}", SK_JSON_TEXT, "A" }
    };

    (void) state;

    for (i = 0; i < unit_count(cases); i++) {
        if (walk(&seen, cases[i].text) != 0) {
            fail_msg("%s was refused", cases[i].text);
        }

        assert_int_equal(seen.calls, 1);
        assert_int_equal(seen.type[0], cases[i].type);
        assert_int_equal(seen.len[0], strlen(cases[i].value));
        assert_string_equal(seen.text[0], cases[i].value);
    }

    assert_int_equal(walk(&seen, "{}"), 0);
    assert_int_equal(seen.calls, 0);
    assert_int_equal(walk(&seen, "{\"long name\":1,\"a\":2}"), 0);
    assert_int_equal(seen.calls, 2);
}


static void
refused(void **state)
{
    size_t  i;
    seen_t  seen;

    static const char *const  bad[] = {
        "", " ", "{", "}", "[]", "1", "\"a\"", "null", "true", "[{}]", "{}{}", "{},", "{}x",
        "{} {}", "x{}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{\"a\" 1}", "{a:1}",
        "{'a':1}", "{\"a\":'x'}", "{\"a\":01}", "{\"a\":+1}", "{\"a\":.5}", "{\"a\":1.}",
        "{\"a\":1e}", "{\"a\":-}", "{\"a\":0x1}", "{\"a\":NaN}", "{\"a\":Infinity}",
        "{\"a\":tru}", "{\"a\":True}", "{\"a\":nul}", "{\"a\":\"x}", "{\"a\":\"x\\\"}",
        "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":\"\\U0041\"}",
        "{\"a\":\"\n\"}", "{\"a\":\"\t\"}", "{\"a\":\"\x1f\"}", "{\v}", "{\f}", "\v{}", "{}\f",
        "{\"a\":1}\v", "// c\n{}", "{}// c", "{/**/}", "\xef\xbb\xbf{}", "{\xc2\xa0}",
        "{\"a\":\"\xff\"}", "{\"a\":\"\xc0\x80\"}", "{\"a\":\"\xe4\xb8\"}",
        "{\"a\":\"\xed\xa0\x80\"}", "{\"a\":\"\xf5\x80\x80\x80\"}", "{\"\xff\":1}",
        "{\"a\":\"\\ud800\"}", "{\"a\":\"\\udc00\"}", "{\"a\":\"\\ud800x\"}",
        "{\"a\":\"\\ud800\\n\"}", "{\"a\":\"\\ud800\\u0041\"}", "{\"a\":\"\\udf81\\ud83c\"}",
        "{\"\\ud800\":1}", "{\"x\":[\"\\udfff\"]}", "{\"a\":\"\\ud800\\ud800\"}",
        "{\"a\":\"\\uD83C\\uDF8\"}",
        "{\"a\":1,\"a\":1}", "{\"a\":1,\"\\u0061\":2}", "{\"a\":{},\"a\":[]}",
        "{\"long name\":1,\"a\":1,\"long name\":1}", "{\"a\":[}", "{\"a\":]}", "{\"a\":{]}}",
        "{\"a\":[1,]}", "{\"a\":[1 2]}", "\\", "{\\}", "{\"a\":\\n}"
    };

    (void) state;

    for (i = 0; i < unit_count(bad); i++) {
        if (walk(&seen, bad[i]) != -1) {
            fail_msg("%s was taken", bad[i]);
        }
    }

    assert_int_equal(walk_len(&seen, "{}\0", 3), -1);
    assert_int_equal(walk_len(&seen, "{\"a\":\"\0\"}", 9), -1);
    assert_int_equal(walk_len(&seen, "\0{}", 3), -1);
}


static void
cut_anywhere(void **state)
{
    size_t  i;
    seen_t  seen;

    static const char  text[] =
        "{\"a\":\"x\\u4e2d\\ud83c\\udf81\",\"b\":[1,-2.5e3,{\"c\":null}],\"long name\":true}";

    (void) state;

    assert_int_equal(walk(&seen, text), 0);

    for (i = 0; i < sizeof(text) - 1; i++) {
        assert_int_equal(walk_len(&seen, text, i), -1);
    }
}


static void
told_to_stop(void **state)
{
    seen_t  seen;

    (void) state;

    memset(&seen, 0, sizeof(seen));
    seen.refuse = 0;
    assert_int_equal(sk_json_walk("{\"a\":1,\"long name\":2}", 21, keys, 2, value, &seen), -1);
    assert_int_equal(seen.calls, 1);

    assert_int_equal(sk_json_walk("{}", 2, keys, SK_JSON_KEYS_MAX + 1, value, &seen), -1);
}


static void
depth(void **state)
{
    char    text[512];
    size_t  n, i, len;
    seen_t  seen;

    (void) state;

    for (n = 1; n <= 60; n++) {         /* n objects, one in the other */
        for (len = 0, i = 0; i < n; i++) {
            len += (size_t) sprintf(text + len, i + 1 < n ? "{\"a\":" : "{");
        }

        memset(text + len, '}', n);
        len += n;
        assert_int_equal(walk_len(&seen, text, len), n <= SK_JSON_DEPTH_MAX ? 0 : -1);
    }
}


/* Up to the limits nothing may run out; past them it is refused, never a crash. */

static void
limits(void **state)
{
    char    *text;
    size_t   i, k, n, len, max;
    seen_t   seen;

    static const char *const  fills[] = { "x", "\\n", "\\u0041", "\\\\" };

    (void) state;

    max = 40000;
    text = malloc(max + 64);
    assert_non_null(text);

    for (i = 0; i < unit_count(fills); i++) {
        for (n = 1; n < max; n = n * 3 / 2 + 1) {
            for (k = 0; k < 3; k++) {
                size_t  bytes = (k == 0) ? n : (k == 1) ? SK_JSON_TEXT_MAX - n % 5
                                                        : SK_JSON_TEXT_MAX + 1 + n % 5;
                size_t  used = 0;

                len = (size_t) sprintf(text, "{\"long name\":\"\\\\\",\"a\":\"");

                while (used + strlen(fills[i]) <= bytes) {
                    memcpy(text + len, fills[i], strlen(fills[i]));
                    len += strlen(fills[i]);
                    used += strlen(fills[i]);
                }

                while (used < bytes) {
                    text[len++] = 'y';
                    used++;
                }

                len += (size_t) sprintf(text + len, "\",\"z\":\"\\t\"}");
                assert_int_equal(walk_len(&seen, text, len), bytes <= SK_JSON_TEXT_MAX ? 0 : -1);
            }
        }
    }

    /* a number of any length is never copied, a long array neither */

    len = (size_t) sprintf(text, "{\"a\":");
    memset(text + len, '9', max);
    len += max;
    text[len] = '}';
    assert_int_equal(walk_len(&seen, text, len + 1), 0);
    assert_int_equal(walk_len(&seen, text, len), -1);
    assert_int_equal(seen.calls, 0);

    len = (size_t) sprintf(text, "{\"a\":[");
    for (n = 0; n < max / 2; n++) {
        text[len++] = '1';
        text[len++] = ',';
    }
    len += (size_t) sprintf(text + len, "1]}");
    assert_int_equal(walk_len(&seen, text, len), 0);

    free(text);
}


static void
integers(void **state)
{
    size_t           i;
    int64_t          n;
    sk_json_value_t  v;

    static const struct {
        const char  *text;
        int          rc;
        int64_t      n;
    } cases[] = {
        { "0", 0, 0 }, { "-0", 0, 0 }, { "1", 0, 1 }, { "-1", 0, -1 },
        { "1900000000", 0, 1900000000 },
        { "9223372036854775807", 0, INT64_MAX }, { "9223372036854775808", -1, 0 },
        { "-9223372036854775808", 0, INT64_MIN }, { "-9223372036854775809", -1, 0 },
        { "9223372036854775810", -1, 0 }, { "18446744073709551616", -1, 0 },
        { "100000000000000000000000", -1, 0 }, { "1.0", -1, 0 }, { "1e3", -1, 0 }, { "1E3", -1, 0 },
        { "-1.5", -1, 0 }
    };

    (void) state;

    for (i = 0; i < unit_count(cases); i++) {
        v.type = SK_JSON_NUMBER;
        v.text = cases[i].text;
        v.len = strlen(v.text);
        assert_int_equal(sk_json_integer(&v, &n), cases[i].rc);
        assert_true(cases[i].rc != 0 || n == cases[i].n);

        v.type = SK_JSON_TEXT;
        assert_int_equal(sk_json_integer(&v, &n), -1);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(values),
        cmocka_unit_test(refused),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(told_to_stop),
        cmocka_unit_test(depth),
        cmocka_unit_test(limits),
        cmocka_unit_test(integers)
    };

    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
