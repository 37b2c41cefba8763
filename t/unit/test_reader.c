
/*
 * The reader of Redis' replies believes nothing that is announced (F-G1).
 */


#include <sys/resource.h>

#include "unit.h"
#include "sk_reader.h"


static const sk_reader_limits_t  limits = { 64, 100, 200, 20, 3 };

static sk_reader_t  reading;


/*
 * Feeds the text in pieces of so many bytes.  Returns the number of replies, or
 * -1 when the reader refuses; why is in "reading".
 */

static int
feed(const char *text, size_t piece)
{
    int           n = 0;
    void         *reply;
    size_t        len, take;
    redisReader  *reader;

    reader = sk_reader_create(&reading, &limits);
    assert_non_null(reader);

    for (len = strlen(text); n >= 0 && len > 0; text += take, len -= take) {
        take = len < piece ? len : piece;
        assert_int_equal(redisReaderFeed(reader, text, take), REDIS_OK);

        for ( ;; ) {
            if (sk_reader_reply(reader, &reply) != REDIS_OK) {
                assert_true(sk_reader_error(reader)[0] != '\0');
                n = -1;
                break;
            }

            if (reply == NULL) {
                break;
            }

            freeReplyObject(reply);
            n++;
        }
    }

    redisReaderFree(reader);

    return n;
}


static void
good(void **state)
{
    size_t  i, piece;

    static const struct {
        const char  *text;
        int          replies;
    } cases[] = {
        { "+OK\r\n", 1 },
        { ":12\r\n:-3\r\n$-1\r\n*-1\r\n*0\r\n$0\r\n\r\n", 6 },
        { "-NOSCRIPT No matching script.\r\n", 1 },
        { "$3\r\nabc\r\n", 1 },
        { ":999999999999\r\n", 1 },
        { "*3\r\n:1\r\n*2\r\n$1\r\na\r\n*1\r\n:5\r\n$3\r\n123\r\n", 1 },
        { "*2\r\n$100\r\n0123456789012345678901234567890123456789012345678901234567890123456789"
          "012345678901234567890123456789\r\n$100\r\n01234567890123456789012345678901234567890"
          "12345678901234567890123456789012345678901234567890123456789\r\n", 1 },
        { "*20\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"
          ":1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n", 1 },
        { "*1\r\n*1\r\n*1\r\n:1\r\n", 1 },
        { "*15\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n:1\r\n"
          ":1\r\n:1\r\n*15\r\n", 1 },
        { "*2147483", 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (piece = 1; piece < 40; piece += 3) {
            assert_int_equal(feed(cases[i].text, piece), cases[i].replies);
        }

        assert_int_equal(feed(cases[i].text, 1000), cases[i].replies);
    }
}


static void
refused(void **state)
{
    char    line[200], *p;
    size_t  i, piece;

    static const struct {
        const char  *text;
        const char  *why;
    } cases[] = {
        { "*2147483647\r\n", "refused: a reply of 2147483647 elements" },
        { "*21\r\n", "refused: a reply of 21 elements" },
        { "*2\r\n*19\r\n", "refused: a reply of 21 elements" },
        { "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "refused: arrays nested 4 deep" },
        { "$101\r\n", "refused: a string of 101 bytes" },
        { "$2000000000\r\nabc", "refused: a string of 2000000000 bytes" },
        { "*2\r\n:1\r\n$999999999999999999\r\n", "refused: a string of 999999999999999999 bytes" },
        { "*3\r\n$90\r\n012345678901234567890123456789012345678901234567890123456789012345678901234567"
          "890123456789\r\n$90\r\n0123456789012345678901234567890123456789012345678901234567890123456"
          "78901234567890123456789\r\n$90\r\n01234567890123456789012345678901234567890123456789012345"
          "6789012345678901234567890123456789\r\n", "refused: a reply of more than 200 bytes" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (piece = 1; piece < 40; piece += 3) {
            assert_int_equal(feed(cases[i].text, piece), -1);
            assert_string_equal(reading.refused, cases[i].why);
        }
    }

    /* a line that does not end */

    for (p = line; p < line + sizeof(line) - 1; p++) {
        *p = '7';
    }

    *p = '\0';

    for (p = "+-:$*"; *p != '\0'; p++) {
        line[0] = *p;
        assert_int_equal(feed(line, 1), -1);
        assert_string_equal(reading.refused, "refused: a line of more than 64 bytes");
    }
}


/* whatever comes ends in an error or not at all, with little memory */

static void
anything(void **state)
{
    int       n, k;
    char      text[40];
    unsigned  seed = 1;

    static const char  bytes[] = "*$:+-0123456789\r\n\r\n\r\n\r\n23$*a ";

    (void) state;

    for (n = 0; n < 200000; n++) {
        for (k = 0; k < (int) sizeof(text) - 1; k++) {
            seed = seed * 1103515245 + 12345;
            text[k] = bytes[(seed >> 16) % (sizeof(bytes) - 1)];
        }

        text[k] = '\0';
        (void) feed(text, 1 + (size_t) n % 13);
    }
}


int
main(void)
{
    struct rlimit  memory = { 512 << 20, 512 << 20 };

    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(good),
        cmocka_unit_test(refused),
        cmocka_unit_test(anything)
    };

#if !defined(__SANITIZE_ADDRESS__)
    (void) setrlimit(RLIMIT_AS, &memory);
#endif
    (void) memory;

    return cmocka_run_group_tests(tests, NULL, NULL);
}
