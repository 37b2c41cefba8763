
/*
 * The verdicts as a table, one row per line of sk_verdicts_x.h.
 */


#include "sk_verdict.h"


const sk_verdict_t  sk_verdicts[SK_VERDICTS] = {
#define SK_VERDICT(name, script, code, http, rest, word, zh, en)              \
    [SK_##name] = { script, code, http, rest, word, zh, en },
#include "sk_verdicts_x.h"
#undef SK_VERDICT
};


sk_verdict_e
sk_verdict_by_script(char digit)
{
    size_t  i;

    if (digit == 0) {                   /* the rows that the script never says */
        return SK_VERDICTS;
    }

    for (i = 0; i < SK_VERDICTS; i++) {
        if (sk_verdicts[i].script == digit) {
            return (sk_verdict_e) i;
        }
    }

    return SK_VERDICTS;
}
