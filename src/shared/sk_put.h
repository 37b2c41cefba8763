/*
 * Writing text forward into a buffer whose size the caller has proved.
 */

#ifndef _SK_PUT_H_INCLUDED_
#define _SK_PUT_H_INCLUDED_

#include <string.h>

/* A string literal, without its NUL. */
#define sk_put_literal(p, text)  sk_put(p, text, sizeof(text) - 1)

/* Returns the end of what was written. */
static inline char *
sk_put(char *p, const char *text, size_t len)
{
    memcpy(p, text, len);
    return p + len;
}

#endif /* _SK_PUT_H_INCLUDED_ */
