
/*
 * The embedded Lua scripts, in the order of sk_script_e.
 */


#include "sk_scripts.h"
#include "sk_scripts_data.h"


#define sk_script(noun)                                                       \
    { #noun, sk_script_##noun##_text, sizeof(sk_script_##noun##_text) - 1,    \
      sk_script_##noun##_sha1 }


const sk_script_t  sk_scripts[SK_SCRIPTS] = {
    [SK_SCRIPT_ADMIT]      = sk_script(admit),
    [SK_SCRIPT_PREHEAT]    = sk_script(preheat),
    [SK_SCRIPT_SETTLE]     = sk_script(settle),
    [SK_SCRIPT_LOOKUP]     = sk_script(lookup),
    [SK_SCRIPT_BOOKS]      = sk_script(books),
    [SK_SCRIPT_PAUSE]      = sk_script(pause),
    [SK_SCRIPT_RESTOCK]    = sk_script(restock),
    [SK_SCRIPT_RELEASE]    = sk_script(release),
    [SK_SCRIPT_REPLAY]     = sk_script(replay),
    [SK_SCRIPT_CLEAR]      = sk_script(clear),
    [SK_SCRIPT_RESTORE]    = sk_script(restore),
    [SK_SCRIPT_CLOSE_OUT]  = sk_script(close_out),
    [SK_SCRIPT_EXPIRE]     = sk_script(expire),
    [SK_SCRIPT_DEAD_RETRY] = sk_script(dead_retry),
    [SK_SCRIPT_DEAD]       = sk_script(dead),
    [SK_SCRIPT_SWITCH]     = sk_script(switch),
    [SK_SCRIPT_LIMIT]      = sk_script(limit),
    [SK_SCRIPT_CLAIM]      = sk_script(claim),
    [SK_SCRIPT_THAW]       = sk_script(thaw),
    [SK_SCRIPT_FACTS]      = sk_script(facts),
    [SK_SCRIPT_CONTROL]    = sk_script(control),
    [SK_SCRIPT_BOUGHT]     = sk_script(bought),
    [SK_SCRIPT_TOKEN_KEY]  = sk_script(token_key),
    [SK_SCRIPT_LOST]       = sk_script(lost),
    [SK_SCRIPT_CONTROL_KEEP] = sk_script(control_keep),
    [SK_SCRIPT_MEND]       = sk_script(mend),
    [SK_SCRIPT_HELD]       = sk_script(held)
};
