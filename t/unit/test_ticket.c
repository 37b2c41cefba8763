
/*
 * The queue_token.
 */


#include "unit.h"
#include "sk_base64url.h"
#include "sk_ticket.h"


static sk_hmac_t *
key(sk_hmac_alg_e alg, char fill)
{
    uint8_t     bytes[32];
    sk_hmac_t  *hmac;

    memset(bytes, fill, sizeof(bytes));
    hmac = sk_hmac_create(alg, bytes, sizeof(bytes));
    assert_non_null(hmac);

    return hmac;
}


static void
round_trip(void **state)
{
    char        text[SK_TICKET_LEN], again[SK_TICKET_LEN];
    size_t      i, k;
    uint64_t    activity, user;
    sk_hmac_t  *hmac;

    static const uint64_t  ids[] = { 1, 42, UINT64_C(9007199254740993), UINT64_MAX };

    (void) state;

    hmac = key(SK_HS256, 'k');

    for (i = 0; i < unit_count(ids); i++) {
        for (k = 0; k < unit_count(ids); k++) {
            assert_int_equal(sk_ticket_format(text, hmac, ids[i], ids[k]), 0);
            assert_int_equal(sk_ticket_format(again, hmac, ids[i], ids[k]), 0);
            assert_memory_equal(text, again, SK_TICKET_LEN);

            assert_int_equal(sk_ticket_verify(&hmac, 1, text, SK_TICKET_LEN, &activity, &user),
                             0);
            assert_true(activity == ids[i] && user == ids[k]);
        }
    }

    sk_hmac_free(hmac);
}


/* Pins the format: a node of another version must make the same. */

static void
known(void **state)
{
    char        text[SK_TICKET_LEN];
    uint8_t     bytes[33];
    sk_hmac_t  *hmac;

    (void) state;

    hmac = key(SK_HS256, 'k');
    assert_int_equal(sk_ticket_format(text, hmac, 1, 258), 0);
    assert_int_equal(sk_base64url_decode(bytes, text, SK_TICKET_LEN), 33);
    assert_memory_equal(bytes, "\1" "\0\0\0\0\0\0\0\1" "\0\0\0\0\0\0\1\2", 17);
    assert_memory_equal(text, "AQAAAAAAAAABAAAAAAAAAQJHrc7xARZuWctUt9t3AENa", SK_TICKET_LEN);
    sk_hmac_free(hmac);
}


static void
rotation(void **state)
{
    char        text[SK_TICKET_LEN];
    uint64_t    activity, user;
    sk_hmac_t  *keys[2], *swapped[2];

    (void) state;

    keys[0] = key(SK_HS256, 'n');
    keys[1] = key(SK_HS256, 'o');
    swapped[0] = keys[1];
    swapped[1] = keys[0];

    assert_int_equal(sk_ticket_format(text, keys[1], 1, 2), 0);
    assert_int_equal(sk_ticket_verify(keys, 2, text, SK_TICKET_LEN, &activity, &user), 0);
    assert_int_equal(sk_ticket_verify(swapped, 2, text, SK_TICKET_LEN, &activity, &user), 0);
    assert_int_equal(sk_ticket_verify(keys, 1, text, SK_TICKET_LEN, &activity, &user), -1);
    assert_int_equal(sk_ticket_verify(keys, 0, text, SK_TICKET_LEN, &activity, &user), -1);

    sk_hmac_free(keys[0]);
    sk_hmac_free(keys[1]);
}


static void
forged(void **state)
{
    int         byte;
    char        text[SK_TICKET_LEN], bad[SK_TICKET_LEN + 1], *copy;
    size_t      i;
    uint8_t     bytes[33];
    uint64_t    activity, user;
    sk_hmac_t  *hmac;

    (void) state;

    hmac = key(SK_HS256, 'k');
    assert_int_equal(sk_ticket_format(text, hmac, 42, 7), 0);

    for (i = 0; i < SK_TICKET_LEN; i++) {
        for (byte = 0; byte < 256; byte++) {
            if ((char) byte == text[i]) {
                continue;
            }
            memcpy(bad, text, SK_TICKET_LEN);
            bad[i] = (char) byte;
            assert_int_equal(sk_ticket_verify(&hmac, 1, bad, SK_TICKET_LEN, &activity, &user),
                             -1);
        }

        copy = unit_copy(text, i);
        assert_int_equal(sk_ticket_verify(&hmac, 1, copy, i, &activity, &user), -1);
        free(copy);
    }

    memcpy(bad, text, SK_TICKET_LEN);
    bad[SK_TICKET_LEN] = 'A';
    assert_int_equal(sk_ticket_verify(&hmac, 1, bad, SK_TICKET_LEN + 1, &activity, &user), -1);

    assert_int_equal(sk_base64url_decode(bytes, text, SK_TICKET_LEN), 33);

    for (i = 0; i < sizeof(bytes) * 8; i++) {
        bytes[i / 8] ^= (uint8_t) (1u << i % 8);
        (void) sk_base64url_encode(bad, bytes, sizeof(bytes));
        assert_int_equal(sk_ticket_verify(&hmac, 1, bad, SK_TICKET_LEN, &activity, &user), -1);
        bytes[i / 8] ^= (uint8_t) (1u << i % 8);
    }

    sk_hmac_free(hmac);
}


static void
only_sha256_signs(void **state)
{
    char        text[SK_TICKET_LEN];
    sk_hmac_t  *hmac;

    (void) state;

    hmac = key(SK_HS512, 'k');
    assert_int_equal(sk_ticket_format(text, hmac, 1, 2), -1);
    sk_hmac_free(hmac);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(known),
        cmocka_unit_test(rotation),
        cmocka_unit_test(forged),
        cmocka_unit_test(only_sha256_signs)
    };

    return cmocka_run_group_tests_name("ticket", tests, NULL, NULL);
}
