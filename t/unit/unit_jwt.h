/*
 * Two keys, rules and a buffer for tests of tokens; tests start with fresh rules
 * that know the first key.
 */

#ifndef _UNIT_JWT_H_INCLUDED_
#define _UNIT_JWT_H_INCLUDED_

#include "unit.h"
#include "unit_token.h"
#include "sk_jwt.h"

#define NOW     INT64_C(1800000000)
#define KEY     "0123456789abcdef0123456789abcdef"
#define USER_7  "{\"sub\":\"7\",\"exp\":1900000000}"

static sk_hmac_t       *key, *other;
static sk_jwt_rules_t   rules;
static sk_jwt_t         jwt;
static char             token[UNIT_TOKEN_MAX];

static inline int
unit_jwt_setup(void **state)
{
    (void) state;

    key = sk_hmac_create(SK_HS256, (const uint8_t *) KEY, 32);
    other = sk_hmac_create(SK_HS256, (const uint8_t *) "another", 7);

    return key != NULL && other != NULL ? 0 : -1;
}

static inline int
unit_jwt_teardown(void **state)
{
    (void) state;

    sk_hmac_free(key);
    sk_hmac_free(other);

    return 0;
}

static inline int
unit_jwt_fresh(void **state)
{
    (void) state;

    rules.keys = &key;
    rules.nkeys = 1;
    rules.alg = SK_HS256;
    rules.claim = "sub";
    rules.claim_len = 3;
    rules.leeway = 0;
    memset(&jwt, 0, sizeof(jwt));

    return 0;
}

static inline sk_jwt_e
verify(const char *text, size_t len)
{
    char      *copy;
    sk_jwt_e   rc;

    copy = unit_copy(text, len);
    rc = sk_jwt_verify(&rules, copy, len, NOW, &jwt);
    free(copy);

    return rc;
}

static inline sk_jwt_e
verify_payload_len(const char *payload, size_t len)
{
    return verify(token, unit_token(token, key, UNIT_HS256, payload, len));
}

static inline sk_jwt_e
verify_payload(const char *payload)
{
    return verify_payload_len(payload, strlen(payload));
}

#endif /* _UNIT_JWT_H_INCLUDED_ */
