
/*
 * The body of a purchase.
 */


#include "unit.h"
#include "sk_purchase.h"


static int
parse_len(sk_purchase_t *purchase, const char *body, size_t len)
{
    int    rc;
    char  *copy;

    copy = unit_copy(body, len);
    rc = sk_purchase_parse(purchase, copy, len);
    free(copy);

    return rc;
}


static void
good(void **state)
{
    size_t         i;
    sk_purchase_t  purchase;

    static const struct {
        const char  *body;
        uint32_t     quantity;
        const char  *ext;
    } cases[] = {
        { "", 1, "" },
        { " \t\r\n", 1, "" },
        { "{}", 1, "" },
        { " { } ", 1, "" },
        { "{\"quantity\":1}", 1, "" },
        { "{\"quantity\": 2, \"ext\": \"sku-9\"}", 2, "sku-9" },
        { "{\"quantity\":1000000}", 1000000, "" },
        { "{\"ext\":\"\"}", 1, "" },
        { "{\"ext\":\"红色\"}", 1, "红色" },
        { "{\"ext\":\"\\u7ea2\\ud83c\\udf81\"}", 1, "红🎁" },
        { "{\"ext\":\"a\\\"b\\\\c\\n\"}", 1, "a\"b\\c\n" },
        { "{\"Quantity\":0,\"qty\":[],\"x\":{\"quantity\":0},\"quantity\":3}", 3, "" },
        { "{\"x\":null,\"x\":null}", 1, "" },
        { "{\"activity\":\"2\",\"user\":\"3\"}", 1, "" }
    };

    (void) state;

    for (i = 0; i < unit_count(cases); i++) {
        memset(&purchase, 0x5a, sizeof(purchase));

        if (parse_len(&purchase, cases[i].body, strlen(cases[i].body)) != 0) {
            fail_msg("%s was refused", cases[i].body);
        }

        assert_int_equal(purchase.quantity, cases[i].quantity);
        assert_int_equal(purchase.ext_len, strlen(cases[i].ext));
        assert_memory_equal(purchase.ext, cases[i].ext, purchase.ext_len);
    }

    assert_int_equal(sk_purchase_parse(&purchase, NULL, 0), 0);
}


static void
bad(void **state)
{
    size_t         i;
    sk_purchase_t  purchase;

    static const char *const  bodies[] = {
        "x", "[]", "1", "null", "\"\"", "{", "{\"quantity\":", "{\"quantity\":1", "{}x", "{} {}",
        "{\"quantity\":0}", "{\"quantity\":-1}", "{\"quantity\":-0}", "{\"quantity\":1.0}",
        "{\"quantity\":1e0}", "{\"quantity\":1E0}", "{\"quantity\":\"1\"}", "{\"quantity\":null}",
        "{\"quantity\":true}", "{\"quantity\":[1]}", "{\"quantity\":{}}", "{\"quantity\":01}",
        "{\"quantity\":1000001}", "{\"quantity\":4294967297}",
        "{\"quantity\":18446744073709551617}", "{\"quantity\":99999999999999999999999999}",
        "{\"quantity\":1,\"quantity\":1}", "{\"quantity\":1,\"quantity\":2}",
        "{\"quantity\":1,\"\\u0071uantity\":2}", "{\"ext\":\"a\",\"ext\":\"a\"}",
        "{\"ext\":1}", "{\"ext\":null}", "{\"ext\":[\"a\"]}", "{\"ext\":{}}",
        "{\"ext\":\"\\u0000\"}", "{\"ext\":\"a\\u0000b\"}", "{\"ext\":\"\xff\"}",
        "{\"ext\":\"\xc0\xaf\"}", "{\"ext\":\"\\ud83c\"}", "{\"other\":\"\xff\"}",
        "quantity=1", "{\"quantity\":1}\n{\"quantity\":2}", "{\"quantity\":1}//"
    };

    (void) state;

    for (i = 0; i < unit_count(bodies); i++) {
        if (parse_len(&purchase, bodies[i], strlen(bodies[i])) != -1) {
            fail_msg("%s was taken", bodies[i]);
        }
    }

    assert_int_equal(parse_len(&purchase, "\0", 1), -1);
    assert_int_equal(parse_len(&purchase, "{}\0", 3), -1);
}


/* ext is measured in bytes after its escapes are undone. */

static void
ext_length(void **state)
{
    char           body[8192];
    size_t         i, n, len;
    sk_purchase_t  purchase;

    static const struct {
        const char  *text;
        size_t       bytes;
    } fills[] = {
        { "x", 1 }, { "\\u0041", 1 }, { "\\n", 1 }, { "\xe4\xb8\xad", 3 }, { "\\u4e2d", 3 },
        { "\\ud83c\\udf81", 4 }
    };

    (void) state;

    for (i = 0; i < unit_count(fills); i++) {
        for (n = 1; n < 400; n++) {
            size_t  k;

            len = (size_t) sprintf(body, "{\"ext\":\"");

            for (k = 0; k < n; k++) {
                memcpy(body + len, fills[i].text, strlen(fills[i].text));
                len += strlen(fills[i].text);
            }

            len += (size_t) sprintf(body + len, "\"}");

            if (n * fills[i].bytes <= SK_EXT_MAX) {
                assert_int_equal(parse_len(&purchase, body, len), 0);
                assert_int_equal(purchase.ext_len, n * fills[i].bytes);
            } else {
                assert_int_equal(parse_len(&purchase, body, len), -1);
            }
        }
    }
}


static void
nesting(void **state)
{
    char           body[4096];
    size_t         depth, len;
    sk_purchase_t  purchase;

    (void) state;

    for (depth = 1; depth < 1000; depth = depth * 5 / 4 + 1) {
        len = (size_t) sprintf(body, "{\"x\":");
        memset(body + len, '[', depth);
        memset(body + len + depth, ']', depth);
        len += 2 * depth;
        body[len++] = '}';
        assert_int_equal(parse_len(&purchase, body, len), depth < 16 ? 0 : -1);
    }
}


static void
large_bodies(void **state)
{
    char           *body;
    size_t          len, i;
    sk_purchase_t   purchase;

    (void) state;

    body = malloc(1024 * 1024);
    assert_non_null(body);

    len = (size_t) sprintf(body, "{\"quantity\":2");
    for (i = 0; len < 1000000; i++) {
        len += (size_t) sprintf(body + len, ",\"k%zu\":\"\\u4e2d\"", i);
    }
    body[len++] = '}';
    assert_int_equal(parse_len(&purchase, body, len), 0);
    assert_int_equal(purchase.quantity, 2);

    memset(body, ' ', 1000000);
    assert_int_equal(parse_len(&purchase, body, 1000000), 0);
    memset(body, '[', 1000000);
    assert_int_equal(parse_len(&purchase, body, 1000000), -1);
    memset(body, '{', 1000000);
    assert_int_equal(parse_len(&purchase, body, 1000000), -1);

    free(body);
}


static void
request_ids(void **state)
{
    int   byte;
    char  text[SK_REQUEST_ID_MAX + 2];

    (void) state;

    memset(text, 'a', sizeof(text));

    assert_false(sk_request_id_ok(text, 0));
    assert_true(sk_request_id_ok(text, 1));
    assert_true(sk_request_id_ok(text, SK_REQUEST_ID_MAX));
    assert_false(sk_request_id_ok(text, SK_REQUEST_ID_MAX + 1));
    assert_true(sk_request_id_ok("Az09._-", 7));

    for (byte = 0; byte < 256; byte++) {
        text[1] = (char) byte;
        assert_int_equal(sk_request_id_ok(text, 3),
                         byte != 0 && strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                             "0123456789._-", byte) != NULL);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(good),
        cmocka_unit_test(bad),
        cmocka_unit_test(ext_length),
        cmocka_unit_test(nesting),
        cmocka_unit_test(large_bodies),
        cmocka_unit_test(request_ids)
    };

    return cmocka_run_group_tests_name("purchase", tests, NULL, NULL);
}
