/*
 * HMAC with SHA-256, SHA-384 or SHA-512 through OpenSSL, keyed once: a use
 * costs no key schedule and no fetch of the algorithm.  One thread per object.
 */

#ifndef _SK_HMAC_H_INCLUDED_
#define _SK_HMAC_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SK_HMAC_MAX  64                 /* bytes of HMAC-SHA512 */

typedef enum {
    SK_HS256,
    SK_HS384,
    SK_HS512
} sk_hmac_alg_e;

typedef struct sk_hmac_s  sk_hmac_t;

/* "HS256", "HS384", "HS512" and back; the first returns -1 for others. */
int sk_hmac_alg_parse(const char *name, size_t len, sk_hmac_alg_e *alg);
const char *sk_hmac_alg_name(sk_hmac_alg_e alg);

/* Returns NULL when memory or OpenSSL fail.  The key is copied. */
sk_hmac_t *sk_hmac_create(sk_hmac_alg_e alg, const uint8_t *key, size_t len);
void sk_hmac_free(sk_hmac_t *hmac);

/* Bytes of the result: 32, 48 or 64. */
size_t sk_hmac_size(const sk_hmac_t *hmac);

/* Returns 0 and writes sk_hmac_size() bytes, or -1 when OpenSSL fails. */
int sk_hmac(sk_hmac_t *hmac, const void *data, size_t len, uint8_t *mac);

/* Constant time for equal lengths; 1 when equal. */
int sk_equal(const void *a, const void *b, size_t len);

#endif /* _SK_HMAC_H_INCLUDED_ */
