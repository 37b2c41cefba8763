/*
 * JSON web tokens signed with HMAC (RFC 7515, 7519).  The algorithm is fixed by
 * configuration, never by the token.
 */

#ifndef _SK_JWT_H_INCLUDED_
#define _SK_JWT_H_INCLUDED_

#include "sk_hmac.h"

#define SK_JWT_MAX        8192          /* longest token looked at, in bytes */
#define SK_JWT_MINT       512           /* room for any token that is minted */
#define SK_JWT_CLAIM_MAX  64            /* longest claim that is minted */

typedef struct {
    sk_hmac_t    **keys;                /* any may have signed; all of one alg */
    size_t         nkeys;
    sk_hmac_alg_e  alg;
    const char    *claim;               /* holds the user id, a JSON string: "sub" */
    size_t         claim_len;
    int64_t        leeway;              /* seconds, for exp, nbf and iat alike */
} sk_jwt_rules_t;

typedef struct {
    uint64_t       user;
    int64_t        expires;             /* "exp", epoch seconds */
} sk_jwt_t;

/* Why a token was refused; for the log, the buyer hears "unauthorized" only. */
typedef enum {
    SK_JWT_OK,
    SK_JWT_MALFORMED,                   /* not three parts of base64url, not JSON, repeated keys */
    SK_JWT_ALGORITHM,                   /* "alg" is missing or another; any "crit" */
    SK_JWT_SIGNATURE,
    SK_JWT_CLAIM,                       /* claim missing, not a string, not a canonical id */
    SK_JWT_EXPIRED,                     /* "exp" missing, not an integer, or now >= exp + leeway */
    SK_JWT_NOT_YET                      /* "nbf" or "iat" not an integer, or now < it - leeway */
} sk_jwt_e;

/*
 * now: epoch seconds.  The signature is verified before the payload is read;
 * *jwt is set only with SK_JWT_OK.
 */
sk_jwt_e sk_jwt_verify(const sk_jwt_rules_t *rules, const char *token,
    size_t len, int64_t now, sk_jwt_t *jwt);

/* A static text for the log: "malformed", "signature" ... */
const char *sk_jwt_reason(sk_jwt_e rc);

/*
 * Signs {"<claim>":"<user>","iat":..,"exp":..}; size >= SK_JWT_MINT.  Returns the
 * length, or -1: size too small, claim empty, longer than SK_JWT_CLAIM_MAX, not
 * plain ASCII, with a quote or backslash, "iat" or "exp"; alg not that of the key.
 */
long sk_jwt_mint(char *buf, size_t size, sk_hmac_t *key, sk_hmac_alg_e alg,
    const char *claim, uint64_t user, int64_t issued, int64_t expires);

#endif /* _SK_JWT_H_INCLUDED_ */
