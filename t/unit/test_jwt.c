
/*
 * Tokens: what is let in, and why the rest is not.
 */


#include "unit.h"
#include "unit_token.h"
#include "sk_jwt.h"


#define NOW     INT64_C(1800000000)
#define KEY     "0123456789abcdef0123456789abcdef"
#define USER_7  "{\"sub\":\"7\",\"exp\":1900000000}"


typedef struct {
    const char  *payload;
    sk_jwt_e     rc;
} payload_case_t;


static sk_hmac_t       *key, *other;
static sk_jwt_rules_t   rules;
static sk_jwt_t         jwt;
static char             token[UNIT_TOKEN_MAX];


static int
setup(void **state)
{
    (void) state;

    key = sk_hmac_create(SK_HS256, (const uint8_t *) KEY, 32);
    other = sk_hmac_create(SK_HS256, (const uint8_t *) "another", 7);

    return key != NULL && other != NULL ? 0 : -1;
}


static int
teardown(void **state)
{
    (void) state;

    sk_hmac_free(key);
    sk_hmac_free(other);

    return 0;
}


static int
fresh(void **state)
{
    (void) state;

    rules.keys = &key;
    rules.nkeys = 1;
    rules.alg = SK_HS256;
    rules.claim = "sub";
    rules.claim_len = 3;
    rules.leeway = 0;
    memset(&jwt, 0, sizeof(jwt));

    return 0;
}


static sk_jwt_e
verify(const char *text, size_t len)
{
    char      *copy;
    sk_jwt_e   rc;

    copy = unit_copy(text, len);
    rc = sk_jwt_verify(&rules, copy, len, NOW, &jwt);
    free(copy);

    return rc;
}


static sk_jwt_e
verify_payload_len(const char *payload, size_t len)
{
    return verify(token, unit_token(token, key, UNIT_HS256, payload, len));
}


static sk_jwt_e
verify_payload(const char *payload)
{
    return verify_payload_len(payload, strlen(payload));
}


static sk_jwt_e
verify_header(const char *header)
{
    return verify(token, unit_token(token, key, header, USER_7, strlen(USER_7)));
}


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

    memcpy(token, UNIT_HS256, 4);
    len = sk_base64url_encode(token, (const uint8_t *) UNIT_HS256, strlen(UNIT_HS256));
    memcpy(token + len, ".***", 4);
    len = unit_token_sign(token, len + 4, other);
    assert_int_equal(verify(token, len), SK_JWT_SIGNATURE);

    /* signed, and yet no base64url */
    len = sk_base64url_encode(token, (const uint8_t *) UNIT_HS256, strlen(UNIT_HS256));
    memcpy(token + len, ".***", 4);
    len = unit_token_sign(token, len + 4, key);
    assert_int_equal(verify(token, len), SK_JWT_MALFORMED);
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


/* Case E8, and the arena of sk_json.c: the largest strings with and without escapes. */

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
            len = (size_t) sprintf(payload, "{\"exp\":1900000000,\"sub\":\"7\",\"name\":\"");

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
        cmocka_unit_test_setup(minted, fresh),
        cmocka_unit_test_setup(rfc_7515, fresh),
        cmocka_unit_test_setup(algorithm, fresh),
        cmocka_unit_test_setup(good_headers, fresh),
        cmocka_unit_test_setup(bad_headers, fresh),
        cmocka_unit_test_setup(user_claim, fresh),
        cmocka_unit_test_setup(times, fresh),
        cmocka_unit_test_setup(leeway, fresh),
        cmocka_unit_test_setup(damaged, fresh),
        cmocka_unit_test_setup(malformed, fresh),
        cmocka_unit_test_setup(signature_first, fresh),
        cmocka_unit_test_setup(rotation, fresh),
        cmocka_unit_test_setup(large, fresh),
        cmocka_unit_test_setup(nesting, fresh),
        cmocka_unit_test_setup(reasons, fresh)
    };

    return cmocka_run_group_tests_name("jwt", tests, setup, teardown);
}
