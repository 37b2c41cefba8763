
/*
 * Lines of a journal: what one wrote the other reads, and nothing else.
 */


#include "unit.h"
#include "sk_journal.h"


#define SECRET  "0123456789abcdef0123456789abcdef"


static sk_journal_key_t  key;


static sk_journal_line_t
purchase(const char *ext, size_t ext_len)
{
    sk_journal_line_t  line;

    memset(&line, 0, sizeof(line));
    line.kind = SK_JOURNAL_ACCEPTED;
    line.prefix = "seckill";
    line.prefix_len = 7;
    line.time_ms = UINT64_C(1795914123456);
    line.activity = 42;
    line.epoch = 3;
    line.seq = 17;
    line.user = UINT64_C(18446744073709551615);
    line.quantity = 2;
    strcpy(line.order_no, "26112901020345600004200000171615");
    line.request_id = "req-1";
    line.request_id_len = 5;
    line.ext = ext;
    line.ext_len = ext_len;

    return line;
}


/* Made by hand: tools of others may read journals, so the form is a promise. */

static void
form(void **state)
{
    char               text[SK_JOURNAL_LINE];
    size_t             len;
    sk_journal_line_t  line;

    static const char  head[] = "1 accepted seckill ";
    static const char  rest[] = " 1795914123456 42 3 17 18446744073709551615 2 "
                                "26112901020345600004200000171615 req-1 a%20b%25%e4%b8%ad ";

    (void) state;

    line = purchase("a b%\xe4\xb8\xad", 7);
    len = sk_journal_format(text, &key, &line);

    assert_int_equal(len, sizeof(head) - 1 + SK_JOURNAL_ID + sizeof(rest) - 1 + 32);
    assert_memory_equal(text, head, sizeof(head) - 1);
    assert_memory_equal(text + sizeof(head) - 1, key.id, SK_JOURNAL_ID);
    assert_memory_equal(text + sizeof(head) - 1 + SK_JOURNAL_ID, rest, sizeof(rest) - 1);
    assert_true(sk_journal_signed(&key, text, len));
}


/* Every text of a buyer, among them all that could end a line or a field. */

static void
every_ext(void **state)
{
    char               ext[SK_EXT_MAX], text[SK_JOURNAL_LINE], *copy;
    size_t             i, k, len, n;
    sk_journal_line_t  line, read;

    static const char *const  odd[] = {
        "", "-", "--", "%", "%2d", " ", "\n", "\r\n", "\x1b[31m", "a=b user=7 seq=9", "\x7f", "\xc2\x9b",
        "\n1 accepted seckill 0 0 0"
    };

    (void) state;

    for (i = 0; i < unit_count(odd) + 256; i++) {
        if (i < unit_count(odd)) {
            n = strlen(odd[i]);
            memcpy(ext, odd[i], n);

        } else {
            n = i - unit_count(odd) + 1;
            memset(ext, (int) n, n);
        }

        line = purchase(ext, n);
        len = sk_journal_format(text, &key, &line);
        assert_true(len > 0 && len <= SK_JOURNAL_LINE);

        for (k = 0; k < len; k++) {
            assert_true(text[k] >= ' ' && text[k] < 0x7f);
        }

        copy = unit_copy(text, len);
        assert_int_equal(sk_journal_parse(&read, copy, len), 0);
        assert_true(sk_journal_signed(&key, copy, len));
        assert_int_equal(read.ext_len, n);
        assert_memory_equal(read.ext, ext, n);
        assert_int_equal(read.user, line.user);
        assert_int_equal(read.seq, 17);
        assert_string_equal(read.order_no, line.order_no);
        free(copy);
    }
}


static void
other_kinds(void **state)
{
    char               text[SK_JOURNAL_LINE];
    size_t             len;
    sk_journal_line_t  line, read;

    (void) state;

    line = purchase("", 0);
    line.kind = SK_JOURNAL_UNKNOWN;
    line.seq = 0;
    line.epoch = 0;
    line.order_no[0] = '\0';
    len = sk_journal_format(text, &key, &line);
    assert_int_equal(sk_journal_parse(&read, text, len), 0);
    assert_int_equal(read.kind, SK_JOURNAL_UNKNOWN);
    assert_string_equal(read.order_no, "");

    line.kind = SK_JOURNAL_OPEN;
    line.node = "shop-7.example";
    line.node_len = strlen(line.node);
    len = sk_journal_format(text, &key, &line);
    assert_int_equal(sk_journal_parse(&read, text, len), 0);
    assert_int_equal(read.kind, SK_JOURNAL_OPEN);
    assert_memory_equal(read.node, line.node, line.node_len);

    /* a host's name that does not fit is left out */
    line.node = "a b";
    line.node_len = 3;
    len = sk_journal_format(text, &key, &line);
    assert_int_equal(sk_journal_parse(&read, text, len), 0);
    assert_int_equal(read.node_len, 1);

    line.kind = SK_JOURNAL_GAP;
    line.lost = 9;
    line.from_ms = 1;
    line.to_ms = UINT64_MAX;
    len = sk_journal_format(text, &key, &line);
    assert_int_equal(sk_journal_parse(&read, text, len), 0);
    assert_int_equal(read.kind, SK_JOURNAL_GAP);
    assert_int_equal(read.lost, 9);
    assert_int_equal(read.to_ms, UINT64_MAX);
}


/* What the module must never write is refused before it is signed. */

static void
not_written(void **state)
{
    char               text[SK_JOURNAL_LINE];
    sk_journal_line_t  line;

    (void) state;

    line = purchase("", 0);
    line.request_id = "a b";
    line.request_id_len = 3;
    assert_int_equal(sk_journal_format(text, &key, &line), 0);

    line = purchase("", 0);
    line.ext_len = SK_EXT_MAX + 1;
    assert_int_equal(sk_journal_format(text, &key, &line), 0);

    line = purchase("", 0);
    line.prefix_len = 0;
    assert_int_equal(sk_journal_format(text, &key, &line), 0);
}


static void
keys(void **state)
{
    char               text[SK_JOURNAL_LINE];
    size_t             len;
    sk_journal_key_t   other;
    sk_journal_line_t  line;

    (void) state;

    assert_int_equal(sk_journal_key_init(&other, "another secret of some bytes", 28), 0);
    assert_memory_not_equal(key.id, other.id, SK_JOURNAL_ID);

    line = purchase("x", 1);
    len = sk_journal_format(text, &key, &line);
    assert_true(sk_journal_signed(&key, text, len));
    assert_false(sk_journal_signed(&other, text, len));
    assert_false(sk_journal_signed(&key, text, len - 1));
    assert_false(sk_journal_signed(&key, text, 0));

    sk_journal_key_done(&other);
    assert_null(other.hmac);
}


/* Any one byte that differs, at any place, and any cut. */

static void
every_change(void **state)
{
    char               text[SK_JOURNAL_LINE], *copy;
    size_t             i, len;
    sk_journal_line_t  line, read;

    (void) state;

    line = purchase("a b", 3);
    len = sk_journal_format(text, &key, &line);

    for (i = 0; i < len; i++) {
        copy = unit_copy(text, len);
        copy[i] = copy[i] == '1' ? '2' : '1';

        assert_false(sk_journal_parse(&read, copy, len) == 0 && sk_journal_signed(&key, copy, len));
        free(copy);

        copy = unit_copy(text, i);
        assert_false(sk_journal_parse(&read, copy, i) == 0 && sk_journal_signed(&key, copy, i));
        free(copy);
    }
}


/* Forms that a signature would be no excuse for. */

static void
not_whole(void **state)
{
    size_t             i;
    sk_journal_line_t  line;

#define MAC  " 00112233445566778899aabbccddeeff"
#define ID   " 0011223344556677 "
#define NO   "26112901020345600004200000171615"

    static const char *const  bad[] = {
        "", " ", "1", "1 ", "1 accepted", MAC,
        "2 accepted seckill" ID "1 42 3 17 7 1 " NO " r -" MAC,
        "1 bought seckill" ID "1 42 3 17 7 1 " NO " r -" MAC,
        "1 accepted  seckill" ID "1 42 3 17 7 1 " NO " r -" MAC,
        "1 accepted seckill" ID "1 0 3 17 7 1 " NO " r -" MAC,
        "1 accepted seckill" ID "1 42 0 17 7 1 " NO " r -" MAC,
        "1 accepted seckill" ID "1 42 3 0 7 1 " NO " r -" MAC,
        "1 accepted seckill" ID "1 42 3 17 0 1 " NO " r -" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 0 " NO " r -" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 1000001 " NO " r -" MAC,
        "1 accepted seckill" ID "1 42 3 017 7 1 " NO " r -" MAC,
        "1 accepted seckill" ID "1 42 3 18446744073709551616 7 1 " NO " r -" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 1 - r -" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 1 " NO " r! -" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 1 " NO " r" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 1 " NO " r - more" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 1 " NO " r %2" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 1 " NO " r %2D" MAC,
        "1 accepted seckill" ID "1 42 3 17 7 1 " NO " r %41" MAC,
        "1 unknown seckill" ID "1 42 3 17 7 1 - r -" MAC,
        "1 unknown seckill" ID "1 42 3 0 7 1 " NO " r -" MAC,
        "1 open seckill" ID "1" MAC,
        "1 gap seckill" ID "1 2 3" MAC,
        "1 open seckill" ID "1 host 00112233445566778899aabbccddeef",
        "1 open seckill" ID "1 host 00112233445566778899aabbccddeefff",
        "1 open seckill" ID "1 ho\tst" MAC,
        "1 open seckill" ID "1 host" MAC "\n"
    };

    (void) state;

    for (i = 0; i < unit_count(bad); i++) {
        assert_int_equal(sk_journal_parse(&line, bad[i], strlen(bad[i])), -1);
    }

    assert_int_equal(sk_journal_parse(&line, "1 open seckill" ID "1 host" MAC,
                                      strlen("1 open seckill" ID "1 host" MAC)), 0);
}


static int
setup(void **state)
{
    (void) state;
    return sk_journal_key_init(&key, SECRET, sizeof(SECRET) - 1);
}


static int
teardown(void **state)
{
    (void) state;
    sk_journal_key_done(&key);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(form),
        cmocka_unit_test(every_ext),
        cmocka_unit_test(other_kinds),
        cmocka_unit_test(not_written),
        cmocka_unit_test(keys),
        cmocka_unit_test(every_change),
        cmocka_unit_test(not_whole)
    };

    return cmocka_run_group_tests_name("journal", tests, setup, teardown);
}
