/*
 * Signed tokens of any content, which sk_jwt_mint() would refuse to make.
 */

#ifndef _UNIT_TOKEN_H_INCLUDED_
#define _UNIT_TOKEN_H_INCLUDED_

#include "unit.h"
#include "sk_base64url.h"
#include "sk_hmac.h"

#define UNIT_TOKEN_MAX  65536
#define UNIT_HS256      "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

/* Signs what is in buf so far and appends the signature; returns the length. */
static inline size_t
unit_token_sign(char *buf, size_t len, sk_hmac_t *key)
{
    uint8_t  mac[SK_HMAC_MAX];

    assert_int_equal(sk_hmac(key, buf, len, mac), 0);
    buf[len++] = '.';

    return len + sk_base64url_encode(buf + len, mac, sk_hmac_size(key));
}

/* buf has UNIT_TOKEN_MAX bytes. */
static inline size_t
unit_token(char *buf, sk_hmac_t *key, const char *header, const char *payload,
    size_t payload_len)
{
    size_t  len;

    assert_true(sk_base64url_encoded_len(strlen(header) + payload_len) < UNIT_TOKEN_MAX - 128);

    len = sk_base64url_encode(buf, (const uint8_t *) header, strlen(header));
    buf[len++] = '.';
    len += sk_base64url_encode(buf + len, (const uint8_t *) payload, payload_len);

    return unit_token_sign(buf, len, key);
}

#endif /* _UNIT_TOKEN_H_INCLUDED_ */
