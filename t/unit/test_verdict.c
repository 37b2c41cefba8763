
/*
 * The table of verdicts, and that lua/admit.lua spells them as it says.
 */


#include <ctype.h>

#include "unit.h"
#include "sk_scripts.h"
#include "sk_verdict.h"


#define NAME_MAX_LEN  32


typedef struct {
    char  name[NAME_MAX_LEN];
    char  digit;
} lua_name_t;


static const char *const  names[SK_VERDICTS] = {
#define SK_VERDICT(name, script, code, http, rest, word, zh, en)  [SK_##name] = #name,
#include "sk_verdicts_x.h"
#undef SK_VERDICT
};


/*
 * Reads 'local A, B = "1", "2"' lines, all names in capitals, into list.
 * Returns how many names there are.
 */

static size_t
lua_names(lua_name_t *list, size_t max)
{
    size_t       n, first, len, i;
    const char  *line, *p;

    n = 0;

    for (line = sk_scripts[SK_SCRIPT_ADMIT].text; line != NULL && *line != '\0';
         line = strchr(line, '\n'))
    {
        line += *line == '\n';

        if (strncmp(line, "local ", 6) != 0 || !isupper((unsigned char) line[6])) {
            continue;
        }

        first = n;

        for (p = line + 6; isupper((unsigned char) *p); p += strspn(p, ", ")) {
            len = strspn(p, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_");
            assert_true(n < max && len < NAME_MAX_LEN);
            memcpy(list[n].name, p, len);
            list[n++].name[len] = '\0';
            p += len;
        }

        assert_int_equal(*p, '=');
        p += strspn(p, "= ");

        for (i = first; i < n; i++) {
            assert_true(p[0] == '"' && isdigit((unsigned char) p[1]) && p[2] == '"');
            list[i].digit = p[1];
            p += 3;
            p += strspn(p, ", ");
        }
    }

    return n;
}


static void
script_and_table_agree(void **state)
{
    size_t      n, i, k, found;
    lua_name_t  list[64];

    (void) state;

    n = lua_names(list, unit_count(list));
    assert_true(n >= 8);

    for (i = 0; i < n; i++) {           /* nothing the table lacks */
        k = sk_verdict_by_script(list[i].digit);
        assert_true(k < SK_VERDICTS);
        assert_string_equal(names[k], list[i].name);
    }

    for (k = 0; k < SK_VERDICTS; k++) { /* nothing the script lacks */
        if (sk_verdicts[k].script == 0) {
            continue;
        }

        for (i = 0, found = 0; i < n; i++) {
            found += strcmp(list[i].name, names[k]) == 0
                     && list[i].digit == sk_verdicts[k].script;
        }

        if (found != 1) {
            fail_msg("admit.lua has no %s = \"%c\"", names[k], sk_verdicts[k].script);
        }
    }
}


static void
script_writes_no_bare_digits(void **state)
{
    int          letter;
    const char  *p;

    (void) state;

    /* outside of the lists a quoted digit may be data only: v is 1, a flag is 1 */

    for (p = sk_scripts[SK_SCRIPT_ADMIT].text; (p = strstr(p, "verdict = ")) != NULL; p++) {
        letter = (unsigned char) p[10];
        assert_true(isalpha(letter));
    }
}


static void
given_interface(void **state)
{
    size_t  i;

    static const struct {
        sk_verdict_e  verdict;
        int           code;
        const char   *zh;
    } given[] = {
        { SK_ACCEPTED, 0, "排队中" },
        { SK_QUEUEING, 0, "排队中" },
        { SK_SUCCESS, 1, "抢购成功" },
        { SK_FAILED, 2, "抢购失败" },
        { SK_NOT_STARTED, 40001, "活动未开始" },
        { SK_UNKNOWN_ACTIVITY, 40001, "活动未开始" },
        { SK_ENDED, 40002, "活动已结束" },
        { SK_LIMITED, 40003, "请求过于频繁" },
        { SK_REPEAT, 40004, "您已参与过该活动" },
        { SK_SOLD_OUT, 40005, "商品已抢完" }
    };

    (void) state;

    for (i = 0; i < unit_count(given); i++) {
        assert_int_equal(sk_verdicts[given[i].verdict].code, given[i].code);
        assert_string_equal(sk_verdicts[given[i].verdict].zh, given[i].zh);
        assert_int_equal(sk_verdicts[given[i].verdict].status, 200);
    }
}


static void
table_is_sound(void **state)
{
    size_t               i, k;
    const sk_verdict_t  *row;

    (void) state;

    for (i = 0; i < SK_VERDICTS; i++) {
        row = &sk_verdicts[i];

        assert_true(row->status >= 200 && row->status <= 503);
        assert_true(row->rest_status >= 200 && row->rest_status <= 503);
        assert_true(strlen(row->word) > 0 && strlen(row->zh) > 0 && strlen(row->en) > 0);
        assert_true(row->script == 0 || (row->script >= '0' && row->script <= '9'));

        for (k = 0; k < i; k++) {
            assert_string_not_equal(sk_verdicts[k].word, row->word);
            assert_true(row->script == 0 || sk_verdicts[k].script != row->script);
        }
    }
}


static void
by_script(void **state)
{
    int     digit;
    size_t  i;

    (void) state;

    for (i = 0; i < SK_VERDICTS; i++) {
        if (sk_verdicts[i].script != 0) {
            assert_int_equal(sk_verdict_by_script(sk_verdicts[i].script), i);
        }
    }

    for (digit = -128; digit < 128; digit++) {
        if (digit < '0' || digit > '9') {
            assert_int_equal(sk_verdict_by_script((char) digit), SK_VERDICTS);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(script_and_table_agree),
        cmocka_unit_test(script_writes_no_bare_digits),
        cmocka_unit_test(given_interface),
        cmocka_unit_test(table_is_sound),
        cmocka_unit_test(by_script)
    };

    return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
