
/*
 * The embedded Lua scripts, in the order of sk_script_e.
 */


#include "sk_scripts.h"
#include "sk_scripts_data.h"


#define sk_script(noun)                                                       \
    { #noun, sk_script_##noun##_text, sizeof(sk_script_##noun##_text) - 1,    \
      sk_script_##noun##_sha1 }


const sk_script_t  sk_scripts[SK_SCRIPTS] = {
    [SK_SCRIPT_ADMIT]   = sk_script(admit),
    [SK_SCRIPT_PREHEAT] = sk_script(preheat),
    [SK_SCRIPT_SETTLE]  = sk_script(settle),
    [SK_SCRIPT_LOOKUP]  = sk_script(lookup)
};
