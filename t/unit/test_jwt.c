
/*
 * Tokens: header, signature, and what is no token at all.
 */


#include "unit.h"
#include "unit_jwt.h"


static sk_jwt_e
verify_header(const char *header)
{
    return verify(token, unit_token(token, key, header, USER_7, strlen(USER_7)));
}


static size_t
good_token(void)
{
    long  len;

    len = sk_jwt_mint(token, SK_JWT_MINT, key, SK_HS256, "sub",
                      UINT64_C(9007199254740993), NOW - 10, NOW + 600);
    assert_true(len > 0);

    return (size_t) len;
}


static void
minted(void **state)
{
    int         alg;
    long        len;
    char        claim[SK_JWT_CLAIM_MAX + 2];
    sk_hmac_t  *hmac;

    (void) state;

    memset(claim, 'c', sizeof(claim));
    claim[SK_JWT_CLAIM_MAX] = '\0';

    for (alg = SK_HS256; alg <= SK_HS512; alg++) {
        hmac = sk_hmac_create((sk_hmac_alg_e) alg, (const uint8_t *) KEY, 32);
        assert_non_null(hmac);

        rules.keys = &hmac;
        rules.alg = (sk_hmac_alg_e) alg;
        rules.claim = claim;
        rules.claim_len = strlen(claim);

        len = sk_jwt_mint(token, SK_JWT_MINT, hmac, rules.alg, claim, UINT64_MAX,
                          INT64_MIN, INT64_MAX);
        assert_true(len > 0 && len <= SK_JWT_MINT);
        assert_int_equal(verify(token, (size_t) len), SK_JWT_OK);
        assert_true(jwt.user == UINT64_MAX && jwt.expires == INT64_MAX);

        assert_int_equal(sk_jwt_mint(token, SK_JWT_MINT, hmac, (sk_hmac_alg_e) ((alg + 1) % 3),
                                     "sub", 1, 1, 2), -1);
        sk_hmac_free(hmac);
    }

    claim[SK_JWT_CLAIM_MAX] = 'c';
    claim[SK_JWT_CLAIM_MAX + 1] = '\0';
    assert_int_equal(sk_jwt_mint(token, 512, key, SK_HS256, claim, 1, 1, 2), -1);
    assert_int_equal(sk_jwt_mint(token, 511, key, SK_HS256, "sub", 1, 1, 2), -1);
    assert_int_equal(sk_jwt_mint(token, 512, key, SK_HS256, "", 1, 1, 2), -1);
    assert_int_equal(sk_jwt_mint(token, 512, key, SK_HS256, "exp", 1, 1, 2), -1);
    assert_int_equal(sk_jwt_mint(token, 512, key, SK_HS256, "a\"b", 1, 1, 2), -1);
    assert_int_equal(sk_jwt_mint(token, 512, key, SK_HS256, "a\\b", 1, 1, 2), -1);
    assert_int_equal(sk_jwt_mint(token, 512, key, SK_HS256, "a\nb", 1, 1, 2), -1);
}


/* The example of RFC 7515, A.1: key, blanks and line ends as they stand there. */

static void
rfc_7515(void **state)
{
    uint8_t     secret[64];
    sk_hmac_t  *hmac;

    static const char  k[] =
        "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";

    static const char  text[] =
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9."
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"
        "cGxlLmNvbS9pc19yb290Ijp0cnVlfQ."
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

    (void) state;

    assert_int_equal(sk_base64url_decode(secret, k, sizeof(k) - 1), 64);
    hmac = sk_hmac_create(SK_HS256, secret, 64);
    assert_non_null(hmac);
    rules.keys = &hmac;
    rules.claim = "iss";

    /* its signature is right, and its "iss" no id */
    assert_int_equal(verify(text, sizeof(text) - 1), SK_JWT_CLAIM);

    rules.keys = &key;
    assert_int_equal(verify(text, sizeof(text) - 1), SK_JWT_SIGNATURE);
    sk_hmac_free(hmac);
}


/* Case E1, E2: the token does not choose the algorithm. */

static void
algorithm(void **state)
{
    char    bare[UNIT_TOKEN_MAX];
    size_t  i, len;

    static const char *const  headers[] = {
        "{\"alg\":\"none\"}", "{\"alg\":\"None\"}", "{\"alg\":\"nOnE\"}", "{\"alg\":\"NONE\"}",
        "{\"alg\":\"\"}", "{}", "{\"typ\":\"JWT\"}", "{\"alg\":null}", "{\"alg\":256}",
        "{\"alg\":[\"HS256\"]}", "{\"alg\":{\"alg\":\"HS256\"}}", "{\"alg\":true}",
        "{\"alg\":\"hs256\"}", "{\"alg\":\"HS256 \"}", "{\"alg\":\"HS2567\"}",
        "{\"alg\":\"HS256\\u0000\"}", "{\"alg\":\"HS384\"}", "{\"alg\":\"HS512\"}",
        "{\"alg\":\"RS256\"}", "{\"alg\":\"ES256\"}", "{\"ALG\":\"HS256\"}",
        "{\"alg\":\"HS384\",\"typ\":\"JWT\"}", "{\"typ\":\"JWT\",\"alg\":\"HS512\"}",
        "{\"x\":{\"alg\":\"HS256\"}}",
        "{\"alg\":\"HS256\",\"crit\":[\"exp\"]}", "{\"crit\":null,\"alg\":\"HS256\"}",
        "{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}"
    };

    (void) state;

    for (i = 0; i < unit_count(headers); i++) {
        if (verify_header(headers[i]) != SK_JWT_ALGORITHM) {
            fail_msg("%s was accepted", headers[i]);
        }

        /* the same with an empty, a short, and no signature */

        len = unit_token(token, key, headers[i], USER_7, strlen(USER_7));
        len -= 43;
        assert_int_equal(token[len - 1], '.');
        memcpy(bare, token, len + 10);

        assert_int_equal(verify(bare, len), SK_JWT_ALGORITHM);
        assert_int_equal(verify(bare, len + 10), SK_JWT_ALGORITHM);
        assert_int_equal(verify(bare, len - 1), SK_JWT_MALFORMED);
    }
}


static void
good_headers(void **state)
{
    int     alg;
    char    header[64];
    size_t  i;

    static const char *const  headers[] = {
        UNIT_HS256, "{\"typ\":\"JWT\",\"alg\":\"HS256\"}", "{\"alg\":\"HS256\"}",
        " { \"kid\" : \"1\",\r\n\t\"alg\" : \"HS256\" } ", "{\"\\u0061lg\":\"\\u0048S256\"}",
        "{\"alg\":\"HS256\",\"x5c\":[[],{\"alg\":\"none\",\"crit\":[]}]}"
    };

    (void) state;

    for (i = 0; i < unit_count(headers); i++) {
        if (verify_header(headers[i]) != SK_JWT_OK) {
            fail_msg("%s was refused", headers[i]);
        }
    }

    /* the common spellings are known without a parser: each to its own alg only */

    for (alg = SK_HS256; alg <= SK_HS512; alg++) {
        for (i = 0; i < 2; i++) {
            (void) snprintf(header, sizeof(header), i == 0 ? "{\"alg\":\"%s\",\"typ\":\"JWT\"}"
                            : "{\"typ\":\"JWT\",\"alg\":\"%s\"}",
                            sk_hmac_alg_name((sk_hmac_alg_e) alg));
            assert_int_equal(verify_header(header),
                             alg == SK_HS256 ? SK_JWT_OK : SK_JWT_ALGORITHM);
        }
    }
}


static void
bad_headers(void **state)
{
    size_t  i;

    static const char *const  headers[] = {
        "", "[]", "1", "\"x\"", "null", "{", "}", "{\"alg\":\"HS256\"", "{\"alg\":\"HS256\"}x",
        "{\"alg\":\"HS256\",\"alg\":\"HS256\"}", "{\"alg\":\"none\",\"alg\":\"HS256\"}",
        "{\"alg\":\"HS256\",\"\\u0061lg\":\"none\"}", "{\"alg\":\"HS256\",}",
        "{\"alg\":\"HS256\"}{}", "{\"alg\":\"HS256\" /* */}", "{'alg':'HS256'}",
        "\xef\xbb\xbf{\"alg\":\"HS256\"}", "{\"alg\":\"HS256\",\"kid\":\"\xff\"}",
        "{\"alg\":\"HS256\",\"kid\":\"\xc0\xaf\"}", "{\"alg\":\"HS256\",\"kid\":\"\\ud800\"}",
        "{\"alg\":\"HS256\"}\v"
    };

    (void) state;

    for (i = 0; i < unit_count(headers); i++) {
        if (verify_header(headers[i]) != SK_JWT_MALFORMED) {
            fail_msg("%s was taken", headers[i]);
        }
    }
}


/* Case E4: a token cut at each position, each bit of each byte turned. */

static void
damaged(void **state)
{
    int       byte;
    char      bad[SK_JWT_MINT];
    size_t    i, len, same;

    (void) state;

    len = good_token();
    assert_int_equal(verify(token, len), SK_JWT_OK);
    assert_true(jwt.user == UINT64_C(9007199254740993) && jwt.expires == NOW + 600);

    for (i = 0; i < len; i++) {
        assert_int_not_equal(verify(token, i), SK_JWT_OK);
        assert_int_not_equal(verify(token + i + 1, len - i - 1), SK_JWT_OK);

        same = 0;

        for (byte = 0; byte < 256; byte++) {
            memcpy(bad, token, len);
            bad[i] = (char) byte;
            same += verify(bad, len) == SK_JWT_OK;
        }

        assert_int_equal(same, 1);      /* the byte itself */
    }
}


static void
malformed(void **state)
{
    char    text[SK_JWT_MINT + 16];
    size_t  i, len;

    static const char *const  bad[] = {
        "", "X", ".", "..", "...", "....", "a.b", "a.b.c", "a.b.c.d", "a..", "..a", ".a.",
        "Bearer", "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9..",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.e30.",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9==.e30.AAAA"
    };

    static const char *const  tails[] = {
        " ", "\t", "=", ".", "A", "\n", "\r\n", ".e30", "\xff", ","
    };

    (void) state;

    for (i = 0; i < unit_count(bad); i++) {
        assert_int_not_equal(verify(bad[i], strlen(bad[i])), SK_JWT_OK);
    }

    len = good_token();

    for (i = 0; i < unit_count(tails); i++) {
        memcpy(text, token, len);
        memcpy(text + len, tails[i], strlen(tails[i]));
        assert_int_not_equal(verify(text, len + strlen(tails[i])), SK_JWT_OK);

        memcpy(text, tails[i], strlen(tails[i]));
        memcpy(text + strlen(tails[i]), token, len);
        assert_int_not_equal(verify(text, len + strlen(tails[i])), SK_JWT_OK);
    }

    memcpy(text, token, len);
    text[len] = '\0';
    assert_int_not_equal(verify(text, len + 1), SK_JWT_OK);
}


/* The payload is not looked at before its signature is right. */

static void
signature_first(void **state)
{
    size_t  len;

    (void) state;

    len = unit_token(token, other, UNIT_HS256, "not json", 8);
    assert_int_equal(verify(token, len), SK_JWT_SIGNATURE);

    len = unit_token(token, other, UNIT_HS256, "{\"sub\":\"7\",\"exp\":1}", 19);
    assert_int_equal(verify(token, len), SK_JWT_SIGNATURE);

    /* a payload that is no base64url */
    len = sk_base64url_encode(token, (const uint8_t *) UNIT_HS256, strlen(UNIT_HS256));
    token[len++] = '.';
    token[len++] = '*';

    assert_int_equal(verify(token, unit_token_sign(token, len, other)), SK_JWT_SIGNATURE);
    assert_int_equal(verify(token, unit_token_sign(token, len, key)), SK_JWT_MALFORMED);
}


/* Case E11. */

static void
rotation(void **state)
{
    size_t      len;
    sk_hmac_t  *both[2];

    (void) state;

    len = unit_token(token, other, UNIT_HS256, USER_7, strlen(USER_7));
    both[0] = key;
    both[1] = other;

    assert_int_equal(verify(token, len), SK_JWT_SIGNATURE);
    rules.keys = both;
    rules.nkeys = 2;
    assert_int_equal(verify(token, len), SK_JWT_OK);
    assert_int_equal(verify(token, good_token()), SK_JWT_OK);
    rules.nkeys = 0;
    assert_int_equal(verify(token, good_token()), SK_JWT_SIGNATURE);
}


static void
reasons(void **state)
{
    int  rc;

    (void) state;

    for (rc = SK_JWT_OK; rc <= SK_JWT_NOT_YET; rc++) {
        assert_true(strlen(sk_jwt_reason((sk_jwt_e) rc)) > 0);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(minted, unit_jwt_fresh),
        cmocka_unit_test_setup(rfc_7515, unit_jwt_fresh),
        cmocka_unit_test_setup(algorithm, unit_jwt_fresh),
        cmocka_unit_test_setup(good_headers, unit_jwt_fresh),
        cmocka_unit_test_setup(bad_headers, unit_jwt_fresh),
        cmocka_unit_test_setup(damaged, unit_jwt_fresh),
        cmocka_unit_test_setup(malformed, unit_jwt_fresh),
        cmocka_unit_test_setup(signature_first, unit_jwt_fresh),
        cmocka_unit_test_setup(rotation, unit_jwt_fresh),
        cmocka_unit_test_setup(reasons, unit_jwt_fresh)
    };

    return cmocka_run_group_tests_name("jwt", tests, unit_jwt_setup, unit_jwt_teardown);
}
