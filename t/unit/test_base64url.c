
/*
 * base64url: RFC 4648's vectors, and one spelling per byte string.
 */


#include "unit.h"
#include "sk_base64url.h"


static long
decode(uint8_t *dst, const char *text, size_t len)
{
    long   n;
    char  *copy;

    copy = unit_copy(text, len);
    n = sk_base64url_decode(dst, copy, len);
    free(copy);

    return n;
}


static void
vectors(void **state)
{
    char     text[16];
    size_t   i;
    uint8_t  bytes[16];

    static const char *const  pairs[][2] = {
        { "", "" }, { "f", "Zg" }, { "fo", "Zm8" }, { "foo", "Zm9v" },
        { "foob", "Zm9vYg" }, { "fooba", "Zm9vYmE" }, { "foobar", "Zm9vYmFy" },
        { "\xff\xef\xbe", "_---" }, { "\xfb\xff", "-_8" }
    };

    (void) state;

    for (i = 0; i < unit_count(pairs); i++) {
        size_t  len = strlen(pairs[i][0]), coded = strlen(pairs[i][1]);

        assert_int_equal(sk_base64url_encoded_len(len), coded);
        assert_int_equal(sk_base64url_decoded_len(coded), len);
        assert_int_equal(sk_base64url_encode(text, (const uint8_t *) pairs[i][0], len), coded);
        assert_memory_equal(text, pairs[i][1], coded);
        assert_int_equal(decode(bytes, pairs[i][1], coded), len);
        assert_memory_equal(bytes, pairs[i][0], len);
    }
}


static void
round_trip(void **state)
{
    char     *text;
    size_t    len, i, coded;
    uint8_t   src[256], *back;

    (void) state;

    for (len = 0; len < sizeof(src); len++) {
        for (i = 0; i < len; i++) {
            src[i] = (uint8_t) (i * 167 + len * 31);
        }

        coded = sk_base64url_encoded_len(len);
        text = malloc(coded > 0 ? coded : 1);
        back = malloc(len > 0 ? len : 1);
        assert_true(text != NULL && back != NULL);

        assert_int_equal(sk_base64url_encode(text, src, len), coded);
        assert_int_equal(sk_base64url_decode(back, text, coded), len);
        assert_memory_equal(back, src, len);

        free(text);
        free(back);
    }
}


static void
strict(void **state)
{
    size_t   i;
    uint8_t  bytes[64];

    static const char *const  bad[] = {
        "A", "AAAAA", "Zg==", "Zg=", "Zm8=", "Zh", "Zm9", "Z/8", "Z+8", "Zm9v\n", " Zm9v",
        "Zm 9v", "Zm9v.", "Zm9v=", "====", "Zm\xc3\xa9", "Zm9\x80", "*AAA", "A*AA", "AA*A",
        "AAA*", "A.", "AA.", "A*", "*A", "AA\x7f"
    };

    (void) state;

    for (i = 0; i < unit_count(bad); i++) {
        if (decode(bytes, bad[i], strlen(bad[i])) != -1) {
            fail_msg("\"%s\" was decoded", bad[i]);
        }
    }

    assert_int_equal(decode(bytes, "AAA\0", 4), -1);
}


/* Of the 64 last characters only those with no left-over bits are good. */

static void
one_spelling(void **state)
{
    int      byte, good2, good3;
    char     text[3] = { 'A', 'A', 'A' };
    uint8_t  bytes[3];

    (void) state;

    good2 = 0;
    good3 = 0;

    for (byte = 0; byte < 256; byte++) {
        text[1] = (char) byte;
        good2 += sk_base64url_decode(bytes, text, 2) == 1;
        text[1] = 'A';
        text[2] = (char) byte;
        good3 += sk_base64url_decode(bytes, text, 3) == 2;
    }

    assert_int_equal(good2, 4);
    assert_int_equal(good3, 16);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(vectors),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(strict),
        cmocka_unit_test(one_spelling)
    };

    return cmocka_run_group_tests_name("base64url", tests, NULL, NULL);
}
