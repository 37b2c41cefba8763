
/*
 * The embedded scripts: names, and a digest of the very bytes.
 */


#include <openssl/evp.h>

#include "unit.h"
#include "sk_scripts.h"


static const char *const  names[SK_SCRIPTS] = {
    [SK_SCRIPT_ADMIT] = "admit",
    [SK_SCRIPT_PREHEAT] = "preheat",
    [SK_SCRIPT_SETTLE] = "settle",
    [SK_SCRIPT_LOOKUP] = "lookup",
    [SK_SCRIPT_BOOKS] = "books",
    [SK_SCRIPT_PAUSE] = "pause",
    [SK_SCRIPT_RESTOCK] = "restock",
    [SK_SCRIPT_RELEASE] = "release",
    [SK_SCRIPT_REPLAY] = "replay",
    [SK_SCRIPT_CLEAR] = "clear",
    [SK_SCRIPT_RESTORE] = "restore",
    [SK_SCRIPT_CLOSE_OUT] = "close_out",
    [SK_SCRIPT_EXPIRE] = "expire",
    [SK_SCRIPT_DEAD_RETRY] = "dead_retry",
    [SK_SCRIPT_DEAD] = "dead",
    [SK_SCRIPT_SWITCH] = "switch",
    [SK_SCRIPT_LIMIT] = "limit",
    [SK_SCRIPT_CLAIM] = "claim",
    [SK_SCRIPT_THAW] = "thaw",
    [SK_SCRIPT_FACTS] = "facts",
    [SK_SCRIPT_CONTROL] = "control",
    [SK_SCRIPT_BOUGHT] = "bought",
    [SK_SCRIPT_TOKEN_KEY] = "token_key",
    [SK_SCRIPT_LOST] = "lost",
    [SK_SCRIPT_CONTROL_KEEP] = "control_keep",
    [SK_SCRIPT_MEND] = "mend",
    [SK_SCRIPT_HELD] = "held"
};


static void
names_in_order(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < SK_SCRIPTS; i++) {
        assert_string_equal(sk_scripts[i].name, names[i]);
    }
}


static void
sha1_is_that_of_the_text(void **state)
{
    char      hex[41];
    size_t    i, k;
    uint8_t   sum[EVP_MAX_MD_SIZE];
    unsigned  len;

    (void) state;

    for (i = 0; i < SK_SCRIPTS; i++) {
        assert_true(sk_scripts[i].len > 0);
        assert_int_equal(sk_scripts[i].text[sk_scripts[i].len], '\0');

        assert_int_equal(EVP_Digest(sk_scripts[i].text, sk_scripts[i].len, sum, &len,
                                    EVP_sha1(), NULL), 1);
        assert_int_equal(len, 20);

        for (k = 0; k < len; k++) {
            (void) snprintf(hex + 2 * k, 3, "%02x", sum[k]);
        }

        assert_string_equal(sk_scripts[i].sha1, hex);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(names_in_order),
        cmocka_unit_test(sha1_is_that_of_the_text)
    };

    return cmocka_run_group_tests_name("scripts", tests, NULL, NULL);
}
