
/*
 * HMAC: the vectors of RFC 4231 and the reuse of one object.
 */


#include <time.h>

#include "unit.h"
#include "sk_hmac.h"


#define EQUAL_HALF   50000
#define EQUAL_TIMES  (2 * EQUAL_HALF)
#define EQUAL_BYTES  1024


typedef struct {
    uint8_t      key[131];
    size_t       key_len;
    uint8_t      data[160];
    size_t       data_len;
    const char  *mac[3];                /* HS256, HS384, HS512 */
} vector_t;


static const vector_t  vectors[] = {
    { { 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
        0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b }, 20,
      "Hi There", 8,
      { "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59c"
        "faea9ea9076ede7f4af152e8b2fa9cb6",
        "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cde"
        "daa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854" } },
    { "Jefe", 4, "what do ya want for nothing?", 28,
      { "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e"
        "8e2240ca5e69e2c78b3239ecfab21649",
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
        "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737" } }
};


/* Test cases 6 and 7: a key longer than the block, data longer than it too. */

static const char  long_data[] =
    "This is a test using a larger than block-size key and a larger than block-size data. "
    "The key needs to be hashed before being used by the HMAC algorithm.";


static const char *const  long_macs[3] = {
    "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
    "6617178e941f020d351e2f254e8fd32c602420feb0b8fb9adccebb82461e99c5"
    "a678cc31e799176d3860e6110c46523e",
    "e37b6a775dc87dbaa4dfa9f96e5e3ffddebd71f8867289865df5a32d20cdc944"
    "b6022cac3c4982b10d5eeb55c3e4de15134676fb6de0446065c97440fa8c6a58"
};


static void
assert_mac(sk_hmac_t *hmac, const void *data, size_t len, const char *hex)
{
    char     text[2 * SK_HMAC_MAX + 1];
    size_t   i;
    uint8_t  mac[SK_HMAC_MAX];

    assert_int_equal(sk_hmac(hmac, data, len, mac), 0);

    for (i = 0; i < sk_hmac_size(hmac); i++) {
        (void) snprintf(text + 2 * i, 3, "%02x", mac[i]);
    }

    assert_string_equal(text, hex);
}


static void
rfc_4231(void **state)
{
    int             alg;
    size_t          i;
    uint8_t         key[131];
    sk_hmac_t      *hmac;

    (void) state;

    memset(key, 0xaa, sizeof(key));

    for (alg = SK_HS256; alg <= SK_HS512; alg++) {
        for (i = 0; i < unit_count(vectors); i++) {
            hmac = sk_hmac_create((sk_hmac_alg_e) alg, vectors[i].key, vectors[i].key_len);
            assert_non_null(hmac);
            assert_int_equal(sk_hmac_size(hmac), 32 + 16 * alg);

            /* twice: the first use must leave nothing behind */
            assert_mac(hmac, vectors[i].data, vectors[i].data_len, vectors[i].mac[alg]);
            assert_mac(hmac, vectors[i].data, vectors[i].data_len, vectors[i].mac[alg]);
            sk_hmac_free(hmac);
        }

        hmac = sk_hmac_create((sk_hmac_alg_e) alg, key, sizeof(key));
        assert_non_null(hmac);
        assert_mac(hmac, long_data, sizeof(long_data) - 1, long_macs[alg]);
        sk_hmac_free(hmac);
    }
}


static void
empty_key_and_data(void **state)
{
    sk_hmac_t  *hmac;

    (void) state;

    hmac = sk_hmac_create(SK_HS256, NULL, 0);
    assert_non_null(hmac);
    assert_mac(hmac, "", 0,
               "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
    sk_hmac_free(hmac);
    sk_hmac_free(NULL);
}


static void
names(void **state)
{
    int            alg;
    size_t         i;
    sk_hmac_alg_e  found;

    static const char *const  bad[] = {
        "", "HS", "HS25", "HS2566", "hs256", "Hs256", "none", "None", "nOnE", "RS256",
        "ES256", "PS256", "HS256 ", " HS256", "HS224", "EdDSA"
    };

    (void) state;

    for (alg = SK_HS256; alg <= SK_HS512; alg++) {
        assert_int_equal(sk_hmac_alg_parse(sk_hmac_alg_name((sk_hmac_alg_e) alg), 5, &found), 0);
        assert_int_equal(found, alg);
    }

    for (i = 0; i < unit_count(bad); i++) {
        assert_int_equal(sk_hmac_alg_parse(bad[i], strlen(bad[i]), &found), -1);
    }

    assert_int_equal(sk_hmac_alg_parse("HS256\0", 6, &found), -1);
}


static void
equal(void **state)
{
    size_t   i;
    uint8_t  a[64], b[64];

    (void) state;

    memset(a, 7, sizeof(a));
    memset(b, 7, sizeof(b));
    assert_int_equal(sk_equal(a, b, sizeof(a)), 1);
    assert_int_equal(sk_equal(a, b, 0), 1);

    for (i = 0; i < sizeof(a); i++) {
        b[i] ^= 0x80;
        assert_int_equal(sk_equal(a, b, sizeof(a)), 0);
        b[i] ^= 0x80;
    }
}


static uint64_t
equal_ns(const uint8_t *a, const uint8_t *b)
{
    volatile int     same;
    struct timespec  from, to;

    clock_gettime(CLOCK_MONOTONIC, &from);
    same = sk_equal(a, b, EQUAL_BYTES);
    clock_gettime(CLOCK_MONOTONIC, &to);
    (void) same;

    return (uint64_t) (to.tv_sec - from.tv_sec) * 1000000000 + (uint64_t) to.tv_nsec
           - (uint64_t) from.tv_nsec;
}


static int
by_value(const void *a, const void *b)
{
    uint64_t  x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}


/* Case E10: where they differ cannot be told from the time it takes. */
static void
equal_time(void **state)
{
    size_t           i;
    double           ratio;
    static uint8_t   a[EQUAL_BYTES], first[EQUAL_BYTES], last[EQUAL_BYTES];
    static uint64_t  ns[2][EQUAL_TIMES];

    (void) state;

    first[0] = 1;
    last[EQUAL_BYTES - 1] = 1;

    for (i = 0; i < EQUAL_TIMES; i++) {
        ns[0][i] = equal_ns(a, first);
        ns[1][i] = equal_ns(a, last);
    }

    qsort(ns[0], EQUAL_TIMES, sizeof(uint64_t), by_value);
    qsort(ns[1], EQUAL_TIMES, sizeof(uint64_t), by_value);
    ratio = (double) ns[1][EQUAL_HALF] / (double) ns[0][EQUAL_HALF];

    if (ratio < 0.8 || ratio > 1.25) {
        fail_msg("the last byte takes %.2f times as long as the first", ratio);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(rfc_4231),
        cmocka_unit_test(empty_key_and_data),
        cmocka_unit_test(names),
        cmocka_unit_test(equal),
        cmocka_unit_test(equal_time)
    };

    return cmocka_run_group_tests_name("hmac", tests, NULL, NULL);
}
