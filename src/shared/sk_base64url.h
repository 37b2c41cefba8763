/*
 * base64url of RFC 4648, section 5, without padding.
 */

#ifndef _SK_BASE64URL_H_INCLUDED_
#define _SK_BASE64URL_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define sk_base64url_encoded_len(len)  (((len) * 8 + 5) / 6)
#define sk_base64url_decoded_len(len)  ((len) * 6 / 8)

/* Returns the length written; no final NUL. */
size_t sk_base64url_encode(char *dst, const uint8_t *src, size_t len);

/*
 * Strict: padding, other characters and non-zero left-over bits are refused.
 * dst has room for sk_base64url_decoded_len(len).  Returns the length or -1.
 */
long sk_base64url_decode(uint8_t *dst, const char *src, size_t len);

#endif /* _SK_BASE64URL_H_INCLUDED_ */
