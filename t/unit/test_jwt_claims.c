
/*
 * Tokens whose signature is right: the claims, the times, and how large they may be.
 */


#include "unit.h"
#include "unit_jwt.h"


typedef struct {
    const char  *payload;
    sk_jwt_e     rc;
} payload_case_t;


static void
check_payloads(const payload_case_t *cases, size_t n)
{
    size_t    i;
    sk_jwt_e  rc;

    for (i = 0; i < n; i++) {
        rc = verify_payload(cases[i].payload);

        if (rc != cases[i].rc) {
            fail_msg("%s: %s", cases[i].payload, sk_jwt_reason(rc));
        }
    }
}


/* Case E3: the claim. */

static void
user_claim(void **state)
{
    static const payload_case_t  cases[] = {
        { "{\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{}", SK_JWT_CLAIM },
        { "[]", SK_JWT_MALFORMED },
        { "1", SK_JWT_MALFORMED },
        { "\"x\"", SK_JWT_MALFORMED },
        { "", SK_JWT_MALFORMED },
        { "null", SK_JWT_MALFORMED },
        { "{\"sub\":null,\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":7,\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":[\"7\"],\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":{\"sub\":\"7\"},\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":true,\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"0\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"07\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"+7\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\" 7\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"7e0\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"alice\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"7\\u0000\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"\\u00007\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"18446744073709551616\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"Sub\":\"7\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"x\":{\"sub\":\"7\"},\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\\u0000\":\"7\",\"exp\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"7\",\"sub\":\"7\",\"exp\":1900000000}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1900000000,\"sub\":\"8\"}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"s\\u0075b\":\"8\",\"exp\":1900000000}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1,\"exp\":1900000000}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1900000000,\"nbf\":1,\"nbf\":1}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1900000000,\"iat\":1,\"iat\":1}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1900000000} x", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1900000000", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1900000000,\"n\":\"\xff\"}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1900000000,\"x\":1,\"x\":{\"sub\":\"9\",\"exp\":0}}", SK_JWT_OK },
        { "\n{ \"sub\" : \"\\u0037\" , \"exp\" : 1900000000 }\t", SK_JWT_OK }
    };

    (void) state;

    check_payloads(cases, unit_count(cases));
    assert_true(jwt.user == 7);

    rules.claim = "uid";
    assert_int_equal(verify_payload("{\"sub\":\"7\",\"exp\":1900000000}"), SK_JWT_CLAIM);
    assert_int_equal(verify_payload("{\"sub\":7,\"uid\":\"8\",\"exp\":1900000000}"), SK_JWT_OK);
    assert_true(jwt.user == 8 && jwt.expires == 1900000000);

    rules.claim = "exp";                /* nonsense, but no crash and nobody let in */
    assert_int_equal(verify_payload("{\"exp\":\"7\"}"), SK_JWT_EXPIRED);
}


/* Case E3, E6, E7: the times, without a leeway. */

static void
times(void **state)
{
    static const payload_case_t  cases[] = {
        { "{\"sub\":\"7\"}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":null}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":\"1900000000\"}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":1900000000.0}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":19e8}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":[1900000000]}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":{}}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":true}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":0}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":-1}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":-0}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":01900000000}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":+1900000000}", SK_JWT_MALFORMED },
        { "{\"sub\":\"7\",\"exp\":1799999999}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":1800000000}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":1800000001}", SK_JWT_OK },
        { "{\"sub\":\"7\",\"exp\":9223372036854775807}", SK_JWT_OK },
        { "{\"sub\":\"7\",\"exp\":9223372036854775808}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":99999999999999999999999}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":-9223372036854775808}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":-9223372036854775809}", SK_JWT_EXPIRED },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"nbf\":1800000000}", SK_JWT_OK },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"nbf\":1800000001}", SK_JWT_NOT_YET },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"nbf\":\"1\"}", SK_JWT_NOT_YET },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"nbf\":1.5}", SK_JWT_NOT_YET },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"nbf\":null}", SK_JWT_NOT_YET },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"nbf\":-9223372036854775808}", SK_JWT_OK },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"nbf\":9223372036854775807}", SK_JWT_NOT_YET },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"iat\":1800000000}", SK_JWT_OK },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"iat\":1800000001}", SK_JWT_NOT_YET },
        { "{\"sub\":\"7\",\"exp\":1800000001,\"iat\":{}}", SK_JWT_NOT_YET },
        { "{\"exp\":1,\"nbf\":1900000000}", SK_JWT_CLAIM },
        { "{\"sub\":\"7\",\"exp\":1,\"nbf\":1900000000}", SK_JWT_EXPIRED }
    };

    (void) state;

    check_payloads(cases, unit_count(cases));
}


/* Case E6: one rule for the three of them. */

static void
leeway(void **state)
{
    int      by;
    char     text[128];
    size_t   i;
    int64_t  leeways[] = { 0, 30 };

    (void) state;

    for (i = 0; i < unit_count(leeways); i++) {
        rules.leeway = leeways[i];

        for (by = -32; by <= 32; by++) {
            (void) snprintf(text, sizeof(text), "{\"sub\":\"7\",\"exp\":%lld}",
                            (long long) NOW + by);
            assert_int_equal(verify_payload(text), by > -leeways[i] ? SK_JWT_OK
                                                                    : SK_JWT_EXPIRED);

            (void) snprintf(text, sizeof(text), "{\"sub\":\"7\",\"exp\":1900000000,\"nbf\":%lld}",
                            (long long) NOW + by);
            assert_int_equal(verify_payload(text), by <= leeways[i] ? SK_JWT_OK
                                                                    : SK_JWT_NOT_YET);

            (void) snprintf(text, sizeof(text), "{\"sub\":\"7\",\"exp\":1900000000,\"iat\":%lld}",
                            (long long) NOW + by);
            assert_int_equal(verify_payload(text), by <= leeways[i] ? SK_JWT_OK
                                                                    : SK_JWT_NOT_YET);
        }
    }

    rules.leeway = INT64_MAX;           /* sums that would overflow */
    assert_int_equal(verify_payload("{\"sub\":\"7\",\"exp\":9223372036854775807}"), SK_JWT_OK);
    assert_int_equal(verify_payload("{\"sub\":\"7\",\"exp\":1,\"nbf\":9223372036854775807}"),
                     SK_JWT_OK);
    rules.leeway = INT64_MIN;
    assert_int_equal(verify_payload("{\"sub\":\"7\",\"exp\":-9223372036854775808}"),
                     SK_JWT_EXPIRED);
}


/* Case E8, and the arena of sk_json.c: the largest strings, each with an escape. */

static void
large(void **state)
{
    char    *payload;
    size_t   i, n, len, total, longest;

    static const char *const  fills[] = { "x", "\\n", "\\u4e2d", "\\ud83c\\udf81", "\xe4\xb8\xad" };

    (void) state;

    payload = malloc(UNIT_TOKEN_MAX);
    assert_non_null(payload);

    for (i = 0; i < unit_count(fills); i++) {
        longest = 0;

        for (n = 1; n < 11000; n += n < 5000 ? 97 : 1) {
            len = (size_t) sprintf(payload, "{\"exp\":1900000000,\"sub\":\"7\",\"name\":\"\\n");

            while (len < n) {
                memcpy(payload + len, fills[i], strlen(fills[i]));
                len += strlen(fills[i]);
            }

            len += (size_t) sprintf(payload + len, "\"}");
            total = unit_token(token, key, UNIT_HS256, payload, len);

            if (total <= SK_JWT_MAX) {
                assert_int_equal(verify(token, total), SK_JWT_OK);
                longest = total;
            } else {
                assert_int_equal(verify(token, total), SK_JWT_MALFORMED);
                n += 1000;
            }
        }

        assert_true(longest > SK_JWT_MAX - 40);
    }

    /* 10 KiB of claim */
    len = (size_t) sprintf(payload, "{\"sub\":\"");
    memset(payload + len, '7', 10240);
    len += 10240;
    len += (size_t) sprintf(payload + len, "\"}");
    assert_int_equal(verify_payload_len(payload, len), SK_JWT_MALFORMED);

    /* 5 KiB of it */
    len = (size_t) sprintf(payload, "{\"sub\":\"");
    memset(payload + len, '7', 5120);
    len += 5120;
    len += (size_t) sprintf(payload + len, "\"}");
    assert_int_equal(verify_payload_len(payload, len), SK_JWT_CLAIM);

    free(payload);
}


static void
nesting(void **state)
{
    char    payload[4096];
    size_t  depth, len;

    (void) state;

    for (depth = 1; depth < 200; depth++) {
        len = (size_t) sprintf(payload, "{\"sub\":\"7\",\"exp\":1900000000,\"x\":");
        memset(payload + len, '[', depth);
        memset(payload + len + depth, ']', depth);
        len += 2 * depth;
        payload[len++] = '}';

        assert_int_equal(verify_payload_len(payload, len), depth < 16 ? SK_JWT_OK
                                                                      : SK_JWT_MALFORMED);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(user_claim, unit_jwt_fresh),
        cmocka_unit_test_setup(times, unit_jwt_fresh),
        cmocka_unit_test_setup(leeway, unit_jwt_fresh),
        cmocka_unit_test_setup(large, unit_jwt_fresh),
        cmocka_unit_test_setup(nesting, unit_jwt_fresh)
    };

    return cmocka_run_group_tests_name("jwt claims", tests, unit_jwt_setup, unit_jwt_teardown);
}
