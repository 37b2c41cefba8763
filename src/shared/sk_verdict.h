/*
 * A verdict is what the funnel said to a buyer; the table is sk_verdicts_x.h.
 */

#ifndef _SK_VERDICT_H_INCLUDED_
#define _SK_VERDICT_H_INCLUDED_

#include <stddef.h>

typedef enum {
#define SK_VERDICT(name, script, code, http, rest, word, zh, en)  SK_##name,
#include "sk_verdicts_x.h"
#undef SK_VERDICT
    SK_VERDICTS
} sk_verdict_e;

typedef struct {
    char         script;        /* the digit in admit.lua's answer, or 0 */
    int          code;
    int          status;
    int          rest_status;
    const char  *word;
    const char  *zh;
    const char  *en;
} sk_verdict_t;

extern const sk_verdict_t  sk_verdicts[SK_VERDICTS];

/* The verdict admit.lua spells with this digit; SK_VERDICTS when it has none. */
sk_verdict_e sk_verdict_by_script(char digit);

#endif /* _SK_VERDICT_H_INCLUDED_ */
