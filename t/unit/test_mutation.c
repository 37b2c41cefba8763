
/*
 * Random damage to good input, by a fixed seed.  Nothing may crash, read beyond
 * its input (each is a heap block of its own size, for ASan) or hand out what
 * the headers forbid.  SECKILL_ROUNDS and SECKILL_SEED make it longer or other.
 */


#include "unit.h"
#include "unit_token.h"
#include "sk_journal.h"
#include "sk_jwt.h"
#include "sk_message.h"
#include "sk_purchase.h"
#include "sk_result.h"
#include "sk_ticket.h"
#include "sk_utf8.h"


#define ROUNDS    40000
#define SEED      UINT64_C(20261129)
#define TEXT_MAX  4096
#define NOW       INT64_C(1800000000)
#define PAIRS     10


static uint64_t    rng;
static size_t      rounds;
static sk_hmac_t  *key;


/* Pieces that matter to one of the parsers. */

static const char *const  pieces[] = {
    "{", "}", "[", "]", "\"", "\\", ":", ",", ".", "..", "\\u0000", "\\ud800", "\\udc00", "\\u",
    "\"sub\"", "\"exp\":", "\"quantity\":", "\"ext\":\"", "\"success\":true", "null", "true",
    "1e9", "-1", "0", "18446744073709551616", "\xff", "\xc0\x80", "\xed\xa0\x80", "中",
    "\xf0\x9f", " ", "\v", "[[[[[[[[[[[[[[[[[[", "{\"a\":{\"a\":{\"a\":", "=", "-_", "\n"
};


static uint64_t
next(void)
{
    rng ^= rng << 13;                   /* xorshift64 */
    rng ^= rng >> 7;
    rng ^= rng << 17;

    return rng;
}


static size_t
below(size_t n)
{
    return (size_t) (next() % n);
}


/* 1..8 changes: a bit, a byte, a cut, a piece put in, a part doubled or swapped. */

static size_t
mutate(char *text, size_t len)
{
    char         part[64];
    size_t       changes, at, n;
    const char  *piece;

    for (changes = 1 + below(8); changes > 0 && len > 0; changes--) {
        at = below(len);

        switch (below(6)) {

        case 0:
            text[at] = (char) (text[at] ^ (1 << below(8)));
            break;

        case 1:
            text[at] = (char) next();
            break;

        case 2:
            len = below(4) == 0 ? at : len;
            break;

        case 3:
            n = 1 + below(len - at < 16 ? len - at : 16);
            memmove(text + at, text + at + n, len - at - n);
            len -= n;
            break;

        case 4:
            piece = pieces[below(unit_count(pieces))];
            n = strlen(piece);
            if (len + n <= TEXT_MAX) {
                memmove(text + at + n, text + at, len - at);
                memcpy(text + at, piece, n);
                len += n;
            }
            break;

        default:
            n = 1 + below(len - at < sizeof(part) ? len - at : sizeof(part));
            if (len + n <= TEXT_MAX) {
                memcpy(part, text + at, n);
                at = below(len);
                memmove(text + at + n, text + at, len - at);
                memcpy(text + at, part, n);
                len += n;
            }
            break;
        }
    }

    return len;
}


static size_t
pick(char *text, const char *const *from, size_t n)
{
    size_t       len;
    const char  *chosen;

    chosen = from[below(n)];
    len = strlen(chosen);
    memcpy(text, chosen, len);

    return mutate(text, len);
}


/* Half of them are signed after the damage, so that the payload is reached. */

static void
tokens(void **state)
{
    char            payload[TEXT_MAX], *text, *copy;
    size_t          i, len, good;
    sk_jwt_t        jwt;
    sk_jwt_e        rc;
    sk_jwt_rules_t  rules = { &key, 1, SK_HS256, "sub", 3, 0 };

    static const char *const  headers[] = {
        UNIT_HS256, "{\"alg\":\"HS256\"}", "{\"alg\":\"none\"}",
        "{\"kid\":\"\\u4e2d\",\"alg\":\"HS256\"}"
    };

    static const char *const  payloads[] = {
        "{\"sub\":\"7\",\"iat\":1700000000,\"nbf\":1700000000,\"exp\":1900000000}",
        "{\"iss\":\"a\",\"aud\":[\"b\",{\"c\":[1,2.5,null,true]}],\"sub\":\"18446744073709551615\","
        "\"exp\":1900000000,\"name\":\"\\u4e2d\\ud83c\\udf81\\n中\"}"
    };

    (void) state;

    text = malloc(UNIT_TOKEN_MAX);
    assert_non_null(text);
    good = 0;

    for (i = 0; i < rounds; i++) {
        char  header[TEXT_MAX + 1];

        if (i % 2 == 0) {
            len = below(2) == 0 ? pick(header, headers, unit_count(headers))
                                : (size_t) sprintf(header, "%s", headers[below(2)]);
            header[len] = '\0';
            len = pick(payload, payloads, unit_count(payloads));
            len = unit_token(text, key, header, payload, len);

        } else {
            len = unit_token(text, key, UNIT_HS256, payloads[0], strlen(payloads[0]));
            len = mutate(text, len);
        }

        copy = unit_copy(text, len);
        rc = sk_jwt_verify(&rules, copy, len, NOW, &jwt);
        free(copy);

        if (rc == SK_JWT_OK) {
            good++;
            assert_true(jwt.user != 0 && jwt.expires > NOW);
        }

        assert_non_null(sk_jwt_reason(rc));
    }

    assert_true(good > 0 && good < rounds / 2);
    free(text);
}


static void
purchases(void **state)
{
    char           text[TEXT_MAX], *copy;
    size_t         i, len, good;
    sk_purchase_t  purchase;

    static const char *const  bodies[] = {
        "{}", "", " ", "{\"quantity\": 2, \"ext\": \"sku-9\"}",
        "{\"ext\":\"\\u7ea2\\ud83c\\udf81红\",\"x\":[{\"y\":null}],\"quantity\":1000000}"
    };

    (void) state;

    good = 0;

    for (i = 0; i < rounds; i++) {
        len = pick(text, bodies, unit_count(bodies));
        copy = unit_copy(text, len);

        if (sk_purchase_parse(&purchase, copy, len) == 0) {
            good++;
            assert_true(purchase.quantity >= 1 && purchase.quantity <= SK_QUANTITY_MAX);
            assert_true(purchase.ext_len <= SK_EXT_MAX);
            assert_true(sk_utf8_ok(purchase.ext, purchase.ext_len));
        }

        free(copy);
    }

    assert_true(good > 0 && good < rounds);
}


static void
results(void **state)
{
    char         text[TEXT_MAX], buf[SK_RESULT_MAX], *copy;
    size_t       i, len, good;
    sk_result_t  result, again;

    static const char *const  texts[] = {
        "{\"success\":true,\"order_id\":7,\"order_no\":\"26112901020345655161574099310007\"}",
        "{\"success\":false,\"reason\":\"over_limit\"}"
    };

    (void) state;

    good = 0;

    for (i = 0; i < rounds; i++) {
        len = pick(text, texts, unit_count(texts));
        copy = unit_copy(text, len);

        if (sk_result_parse(&result, copy, len) == 0) {
            good++;
            len = sk_result_format(buf, &result);
            assert_true(len <= SK_RESULT_MAX);
            assert_int_equal(sk_result_parse(&again, buf, len), 0);
            assert_memory_equal(&again, &result, sizeof(result));
        }

        free(copy);
    }

    assert_true(good > 0 && good < rounds);
}


static void
messages(void **state)
{
    char          text[TEXT_MAX], *copies[2 * PAIRS];
    size_t        i, k, n, len, good;
    sk_text_t     fields[2 * PAIRS];
    sk_message_t  message;

    static const char *const  whole[2 * PAIRS] = {
        "v", "1", "user", "18446744073709551615", "activity", "42", "quantity", "1",
        "epoch", "3", "seq", "123456789", "order_no", "26112901020345655161574099310007",
        "accepted_ms", "1795914123456", "request_id", "req-1", "ext", "红色"
    };

    (void) state;

    good = 0;

    for (i = 0; i < rounds; i++) {
        for (k = 0; k < 2 * PAIRS; k++) {
            len = strlen(whole[k]);
            memcpy(text, whole[k], len);

            if (below(24) == 0) {
                len = mutate(text, len);
            }

            copies[k] = unit_copy(text, len);
            fields[k].data = copies[k];
            fields[k].len = len;
        }

        n = below(8) == 0 ? below(2 * PAIRS + 1) : 2 * PAIRS;

        if (sk_message_parse(&message, fields, n) == NULL) {
            good++;
            assert_true(message.user && message.activity && message.epoch && message.seq);
            assert_true(message.quantity >= 1 && message.quantity <= SK_QUANTITY_MAX);
            assert_int_equal(strlen(message.order_no), SK_ORDER_NO_LEN);
            assert_true(strlen(message.request_id) <= SK_REQUEST_ID_MAX);
            assert_true(message.ext_len <= SK_EXT_MAX && message.ext[message.ext_len] == '\0');
        }

        for (k = 0; k < 2 * PAIRS; k++) {
            free(copies[k]);
        }
    }

    assert_true(good > 0 && good < rounds);
}


static void
tickets(void **state)
{
    char      text[TEXT_MAX], whole[SK_TICKET_LEN], *copy;
    size_t    i, len;
    uint64_t  activity, user;

    (void) state;

    assert_int_equal(sk_ticket_format(whole, key, 42, 7), 0);

    for (i = 0; i < rounds; i++) {
        memcpy(text, whole, SK_TICKET_LEN);
        len = mutate(text, SK_TICKET_LEN);
        copy = unit_copy(text, len);

        if (sk_ticket_verify(&key, 1, copy, len, &activity, &user) == 0) {
            assert_true(len == SK_TICKET_LEN && memcmp(copy, whole, len) == 0);
        }

        free(copy);
    }
}


/* Nothing but the very line may pass as a signed one: F-A1, F-A2. */

static void
journals(void **state)
{
    char               text[TEXT_MAX], whole[SK_JOURNAL_LINE], *copy;
    size_t             i, len, whole_len, parsed;
    sk_journal_key_t   signs;
    sk_journal_line_t  line;

    (void) state;

    assert_int_equal(sk_journal_key_init(&signs, "0123456789abcdef", 16), 0);

    memset(&line, 0, sizeof(line));
    line.kind = SK_JOURNAL_ACCEPTED;
    line.prefix = "seckill";
    line.prefix_len = 7;
    line.activity = 42;
    line.epoch = line.seq = line.user = line.quantity = 1;
    strcpy(line.order_no, "26112901020345655161574099310007");
    line.request_id = "req-1";
    line.request_id_len = 5;
    line.ext = "a b%";
    line.ext_len = 4;
    whole_len = sk_journal_format(whole, &signs, &line);
    assert_true(whole_len > 0);
    parsed = 0;

    for (i = 0; i < rounds; i++) {
        memcpy(text, whole, whole_len);
        len = mutate(text, whole_len);
        copy = unit_copy(text, len);

        if (sk_journal_parse(&line, copy, len) == 0) {
            parsed++;
            assert_true(line.user && line.activity && line.quantity <= SK_QUANTITY_MAX);
            assert_true(line.ext_len <= SK_EXT_MAX && line.ext[line.ext_len] == '\0');

            if (sk_journal_signed(&signs, copy, len)) {
                assert_true(len == whole_len && memcmp(copy, whole, len) == 0);
            }
        }

        free(copy);
    }

    assert_true(parsed > 0 && parsed < rounds);
    sk_journal_key_done(&signs);
}


static int
setup(void **state)
{
    uint64_t     seed;
    const char  *text;

    (void) state;

    text = getenv("SECKILL_ROUNDS");
    rounds = text != NULL ? strtoul(text, NULL, 10) : ROUNDS;

    text = getenv("SECKILL_SEED");
    seed = text != NULL ? strtoull(text, NULL, 10) : SEED;
    rng = seed != 0 ? seed : SEED;

    print_message("seed %llu, %zu rounds each\n", (unsigned long long) rng, rounds);

    key = sk_hmac_create(SK_HS256, (const uint8_t *) "0123456789abcdef0123456789abcdef", 32);

    return key != NULL && rounds >= 1000 ? 0 : -1;
}


static int
teardown(void **state)
{
    (void) state;
    sk_hmac_free(key);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(tokens),
        cmocka_unit_test(purchases),
        cmocka_unit_test(results),
        cmocka_unit_test(messages),
        cmocka_unit_test(tickets),
        cmocka_unit_test(journals)
    };

    return cmocka_run_group_tests_name("mutation", tests, setup, teardown);
}
