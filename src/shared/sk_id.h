/*
 * Ids of users and activities: unsigned 64-bit decimals in canonical form, end
 * to end.  "0", "01", signs, spaces and exponents are refused.
 */

#ifndef _SK_ID_H_INCLUDED_
#define _SK_ID_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SK_ID_MAX  20                   /* digits of 2^64 - 1 */

/* Returns 0 and sets *id, or -1: not canonical, or above 2^64 - 1. */
int sk_id_parse(const char *text, size_t len, uint64_t *id);

/* Writes up to SK_ID_MAX digits without a final NUL; returns their count. */
size_t sk_id_format(char *buf, uint64_t id);

#endif /* _SK_ID_H_INCLUDED_ */
