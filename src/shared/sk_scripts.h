/*
 * The Lua scripts, compiled in by tools/embed-lua.sh with their SHA-1.
 */

#ifndef _SK_SCRIPTS_H_INCLUDED_
#define _SK_SCRIPTS_H_INCLUDED_

#include <stddef.h>

typedef enum {
    SK_SCRIPT_ADMIT,                    /* lua/admit.lua */
    SK_SCRIPT_PREHEAT,
    SK_SCRIPT_SETTLE,
    SK_SCRIPT_LOOKUP,
    SK_SCRIPT_BOOKS,
    SK_SCRIPT_PAUSE,
    SK_SCRIPT_RESTOCK,
    SK_SCRIPT_RELEASE,
    SK_SCRIPT_REPLAY,
    SK_SCRIPT_CLEAR,
    SK_SCRIPT_RESTORE,
    SK_SCRIPT_CLOSE_OUT,
    SK_SCRIPT_EXPIRE,
    SK_SCRIPT_DEAD_RETRY,
    SK_SCRIPT_DEAD,
    SK_SCRIPT_SWITCH,
    SK_SCRIPT_LIMIT,
    SK_SCRIPT_CLAIM,
    SK_SCRIPT_THAW,
    SK_SCRIPT_FACTS,
    SK_SCRIPT_CONTROL,
    SK_SCRIPT_BOUGHT,
    SK_SCRIPT_TOKEN_KEY,
    SK_SCRIPT_LOST,
    SK_SCRIPT_CONTROL_KEEP,
    SK_SCRIPT_MEND,
    SK_SCRIPT_HELD,
    SK_SCRIPTS
} sk_script_e;

typedef struct {
    const char  *name;
    const char  *text;
    size_t       len;
    const char  *sha1;                  /* 40 hex digits */
} sk_script_t;

extern const sk_script_t  sk_scripts[SK_SCRIPTS];

#endif /* _SK_SCRIPTS_H_INCLUDED_ */
