
/*
 * UTF-8: every code point in, everything else out.
 */


#include "unit.h"
#include "sk_utf8.h"


static size_t
encode(char *dst, uint32_t c)
{
    if (c < 0x80) {
        dst[0] = (char) c;
        return 1;
    }

    if (c < 0x800) {
        dst[0] = (char) (0xc0 | c >> 6);
        dst[1] = (char) (0x80 | (c & 63));
        return 2;
    }

    if (c < 0x10000) {
        dst[0] = (char) (0xe0 | c >> 12);
        dst[1] = (char) (0x80 | (c >> 6 & 63));
        dst[2] = (char) (0x80 | (c & 63));
        return 3;
    }

    dst[0] = (char) (0xf0 | c >> 18);
    dst[1] = (char) (0x80 | (c >> 12 & 63));
    dst[2] = (char) (0x80 | (c >> 6 & 63));
    dst[3] = (char) (0x80 | (c & 63));
    return 4;
}


static void
every_code_point(void **state)
{
    char      text[4], *copy;
    size_t    len, cut, want;
    uint32_t  c;

    (void) state;

    for (c = 0; c < 0x120000; c++) {
        len = encode(text, c);
        want = (c >= 0xd800 && c <= 0xdfff) || c > 0x10ffff ? 0 : len;

        if (sk_utf8_char(text, len) != want) {
            fail_msg("U+%X", c);
        }
    }

    for (c = 0x80; c < 0x110000; c = c * 2 + 1) {
        len = encode(text, c);

        for (cut = 1; cut < len; cut++) {
            copy = unit_copy(text, cut);
            assert_int_equal(sk_utf8_char(copy, cut), 0);
            free(copy);
        }
    }
}


/* How many two- and three-byte sequences pass is known from the count of code points. */

static void
every_short_sequence(void **state)
{
    char      text[3];
    size_t    two, three;
    uint32_t  n;

    (void) state;

    two = 0;
    three = 0;

    for (n = 0; n < 0x1000000; n++) {
        text[0] = (char) (n >> 16);
        text[1] = (char) (n >> 8);
        text[2] = (char) n;

        two += (n & 0xff) == 0 && sk_utf8_char(text, 2) == 2;
        three += sk_utf8_char(text, 3) == 3;
    }

    assert_int_equal(two, 0x800 - 0x80);
    assert_int_equal(three, 0x10000 - 0x800 - 0x800);
}


static void
whole_texts(void **state)
{
    (void) state;

    assert_true(sk_utf8_ok("", 0));
    assert_true(sk_utf8_ok("plain", 5));
    assert_true(sk_utf8_ok("红色 🎁", strlen("红色 🎁")));
    assert_false(sk_utf8_ok("a\0b", 3));
    assert_false(sk_utf8_ok("a\xc0\x80", 3));
    assert_false(sk_utf8_ok("红", 2));
    assert_false(sk_utf8_ok("\xed\xa0\x80", 3));
    assert_false(sk_utf8_ok("\xf4\x90\x80\x80", 4));
    assert_false(sk_utf8_ok("\xff", 1));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(every_short_sequence),
        cmocka_unit_test(whole_texts)
    };

    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
