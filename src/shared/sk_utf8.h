/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
 * U+10FFFF.
 */

#ifndef _SK_UTF8_H_INCLUDED_
#define _SK_UTF8_H_INCLUDED_

#include <stddef.h>

/* Bytes (1..4) of the character at text, len > 0 bytes left; 0 when it is none. */
size_t sk_utf8_char(const char *text, size_t len);

/* 1 when all of text is UTF-8 and holds no NUL. */
int sk_utf8_ok(const char *text, size_t len);

#endif /* _SK_UTF8_H_INCLUDED_ */
