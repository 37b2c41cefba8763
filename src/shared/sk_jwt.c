
/*
 * JSON web tokens, HMAC only.  The order is the point: the algorithm is compared
 * with the configured one, then the signature of the text as it came is
 * verified, and only then does anybody read what the token claims.
 */


#include <string.h>

#include "sk_base64url.h"
#include "sk_id.h"
#include "sk_json.h"
#include "sk_jwt.h"
#include "sk_put.h"


#define SK_JWT_DECODED  sk_base64url_decoded_len(SK_JWT_MAX)
#define SK_JWT_HEADERS  2               /* common spellings per algorithm */

#define sk_jwt_header(text)  { text, sizeof(text) - 1 }


typedef struct {
    const char            *text;
    size_t                 len;
} sk_jwt_part_t;


typedef struct {
    sk_jwt_part_t          header;
    sk_jwt_part_t          payload;
    sk_jwt_part_t          signature;
    sk_jwt_part_t          input;       /* header and payload: what is signed */
} sk_jwt_parts_t;


typedef struct {
    const char            *alg;         /* the only one that is right */
    unsigned               alg_ok:1;
    unsigned               crit:1;
} sk_jwt_header_t;


typedef struct {
    int64_t                value;
    unsigned               given:1;
    unsigned               integer:1;
} sk_jwt_time_t;


typedef struct {
    uint64_t               user;        /* 0: none */
    sk_jwt_time_t          exp;
    sk_jwt_time_t          nbf;
    sk_jwt_time_t          iat;
} sk_jwt_payload_t;


static int sk_jwt_split(sk_jwt_parts_t *parts, const char *token, size_t len);
static sk_jwt_e sk_jwt_check_header(const sk_jwt_rules_t *rules,
    const sk_jwt_part_t *part);
static int sk_jwt_header_value(void *data, size_t key, const sk_json_value_t *value);
static sk_jwt_e sk_jwt_check_signature(const sk_jwt_rules_t *rules,
    const sk_jwt_parts_t *parts);
static sk_jwt_e sk_jwt_check_payload(const sk_jwt_rules_t *rules,
    const sk_jwt_part_t *part, int64_t now, sk_jwt_t *jwt);
static int sk_jwt_payload_value(void *data, size_t key, const sk_json_value_t *value);
static int64_t sk_jwt_add(int64_t a, int64_t b);
static int sk_jwt_claim_ok(const char *claim, size_t len);
static char *sk_jwt_put_time(char *p, int64_t t);


/* What nearly every issuer writes needs no parser. */

static const sk_jwt_part_t  sk_jwt_headers[][SK_JWT_HEADERS] = {
    [SK_HS256] = {
        sk_jwt_header("eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9"),
        sk_jwt_header("eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9")
    },
    [SK_HS384] = {
        sk_jwt_header("eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9"),
        sk_jwt_header("eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzM4NCJ9")
    },
    [SK_HS512] = {
        sk_jwt_header("eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9"),
        sk_jwt_header("eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzUxMiJ9")
    }
};


enum {
    SK_JWT_KEY_ALG,
    SK_JWT_KEY_CRIT,
    SK_JWT_HEADER_KEYS
};


static const sk_json_key_t  sk_jwt_header_keys[SK_JWT_HEADER_KEYS] = {
    [SK_JWT_KEY_ALG]  = sk_json_key("alg"),
    [SK_JWT_KEY_CRIT] = sk_json_key("crit")
};


enum {
    SK_JWT_KEY_USER,
    SK_JWT_KEY_EXP,
    SK_JWT_KEY_NBF,
    SK_JWT_KEY_IAT,
    SK_JWT_PAYLOAD_KEYS
};


static const char *const  sk_jwt_reasons[] = {
    [SK_JWT_OK]        = "ok",
    [SK_JWT_MALFORMED] = "malformed",
    [SK_JWT_ALGORITHM] = "algorithm",
    [SK_JWT_SIGNATURE] = "signature",
    [SK_JWT_CLAIM]     = "user claim",
    [SK_JWT_EXPIRED]   = "expired",
    [SK_JWT_NOT_YET]   = "not valid yet"
};


sk_jwt_e
sk_jwt_verify(const sk_jwt_rules_t *rules, const char *token, size_t len,
    int64_t now, sk_jwt_t *jwt)
{
    sk_jwt_e        rc;
    sk_jwt_parts_t  parts;

    if (len > SK_JWT_MAX || sk_jwt_split(&parts, token, len) != 0) {
        return SK_JWT_MALFORMED;
    }

    rc = sk_jwt_check_header(rules, &parts.header);
    if (rc != SK_JWT_OK) {
        return rc;
    }

    rc = sk_jwt_check_signature(rules, &parts);
    if (rc != SK_JWT_OK) {
        return rc;
    }

    return sk_jwt_check_payload(rules, &parts.payload, now, jwt);
}


static int
sk_jwt_split(sk_jwt_parts_t *parts, const char *token, size_t len)
{
    const char  *dot, *second, *end;

    if (len == 0) {
        return -1;
    }

    end = token + len;

    dot = memchr(token, '.', len);
    if (dot == NULL) {
        return -1;
    }

    second = memchr(dot + 1, '.', (size_t) (end - dot - 1));
    if (second == NULL) {
        return -1;
    }

    /* a third dot is no base64url and so is refused with the signature */

    parts->header.text = token;
    parts->header.len = (size_t) (dot - token);
    parts->payload.text = dot + 1;
    parts->payload.len = (size_t) (second - dot - 1);
    parts->signature.text = second + 1;
    parts->signature.len = (size_t) (end - second - 1);
    parts->input.text = token;
    parts->input.len = (size_t) (second - token);

    return 0;
}


static sk_jwt_e
sk_jwt_check_header(const sk_jwt_rules_t *rules, const sk_jwt_part_t *part)
{
    long                  len;
    size_t                i;
    uint8_t               text[SK_JWT_DECODED];
    sk_jwt_header_t       header;
    const sk_jwt_part_t  *common;

    common = sk_jwt_headers[rules->alg];

    for (i = 0; i < SK_JWT_HEADERS; i++) {
        if (common[i].len == part->len
            && memcmp(common[i].text, part->text, part->len) == 0)
        {
            return SK_JWT_OK;
        }
    }

    len = sk_base64url_decode(text, part->text, part->len);
    if (len < 0) {
        return SK_JWT_MALFORMED;
    }

    header.alg = sk_hmac_alg_name(rules->alg);
    header.alg_ok = 0;
    header.crit = 0;

    if (sk_json_walk((const char *) text, (size_t) len, sk_jwt_header_keys,
                     SK_JWT_HEADER_KEYS, sk_jwt_header_value, &header)
        != 0)
    {
        return SK_JWT_MALFORMED;
    }

    return header.alg_ok && !header.crit ? SK_JWT_OK : SK_JWT_ALGORITHM;
}


static int
sk_jwt_header_value(void *data, size_t key, const sk_json_value_t *value)
{
    sk_jwt_header_t  *header = data;

    if (key == SK_JWT_KEY_CRIT) {       /* we know no extension: none is understood */
        header->crit = 1;

    } else {
        header->alg_ok = value->type == SK_JSON_TEXT
                         && value->len == strlen(header->alg)
                         && memcmp(value->text, header->alg, value->len) == 0;
    }

    return 0;
}


static sk_jwt_e
sk_jwt_check_signature(const sk_jwt_rules_t *rules, const sk_jwt_parts_t *parts)
{
    size_t   i, size;
    uint8_t  given[SK_HMAC_MAX], mac[SK_HMAC_MAX];

    for (i = 0; i < rules->nkeys; i++) {
        size = sk_hmac_size(rules->keys[i]);

        if (parts->signature.len != sk_base64url_encoded_len(size)) {
            return SK_JWT_SIGNATURE;
        }

        if (i == 0
            && sk_base64url_decode(given, parts->signature.text, parts->signature.len) < 0)
        {
            return SK_JWT_MALFORMED;
        }

        if (sk_hmac(rules->keys[i], parts->input.text, parts->input.len, mac) == 0
            && sk_equal(mac, given, size))
        {
            return SK_JWT_OK;
        }
    }

    return SK_JWT_SIGNATURE;
}


static sk_jwt_e
sk_jwt_check_payload(const sk_jwt_rules_t *rules, const sk_jwt_part_t *part,
    int64_t now, sk_jwt_t *jwt)
{
    long              len;
    int64_t           early;
    uint8_t           text[SK_JWT_DECODED];
    sk_jwt_payload_t  payload;

    const sk_json_key_t  keys[SK_JWT_PAYLOAD_KEYS] = {
        [SK_JWT_KEY_USER] = { rules->claim, rules->claim_len },
        [SK_JWT_KEY_EXP]  = sk_json_key("exp"),
        [SK_JWT_KEY_NBF]  = sk_json_key("nbf"),
        [SK_JWT_KEY_IAT]  = sk_json_key("iat")
    };

    len = sk_base64url_decode(text, part->text, part->len);
    if (len < 0) {
        return SK_JWT_MALFORMED;
    }

    memset(&payload, 0, sizeof(payload));

    if (sk_json_walk((const char *) text, (size_t) len, keys, SK_JWT_PAYLOAD_KEYS,
                     sk_jwt_payload_value, &payload)
        != 0)
    {
        return SK_JWT_MALFORMED;
    }

    if (payload.user == 0) {
        return SK_JWT_CLAIM;
    }

    if (!payload.exp.integer || now >= sk_jwt_add(payload.exp.value, rules->leeway)) {
        return SK_JWT_EXPIRED;
    }

    early = sk_jwt_add(now, rules->leeway);

    if ((payload.nbf.given && (!payload.nbf.integer || early < payload.nbf.value))
        || (payload.iat.given && (!payload.iat.integer || early < payload.iat.value)))
    {
        return SK_JWT_NOT_YET;
    }

    jwt->user = payload.user;
    jwt->expires = payload.exp.value;

    return SK_JWT_OK;
}


static int
sk_jwt_payload_value(void *data, size_t key, const sk_json_value_t *value)
{
    sk_jwt_time_t     *time;
    sk_jwt_payload_t  *payload = data;

    switch (key) {

    case SK_JWT_KEY_EXP:
        time = &payload->exp;
        break;

    case SK_JWT_KEY_NBF:
        time = &payload->nbf;
        break;

    case SK_JWT_KEY_IAT:
        time = &payload->iat;
        break;

    default:                            /* SK_JWT_KEY_USER */
        if (value->type != SK_JSON_TEXT
            || sk_id_parse(value->text, value->len, &payload->user) != 0)
        {
            payload->user = 0;
        }

        return 0;
    }

    time->given = 1;
    time->integer = sk_json_integer(value, &time->value) == 0;

    return 0;
}


/* A sum beyond 64 bits is the end of time, or its beginning. */

static int64_t
sk_jwt_add(int64_t a, int64_t b)
{
    int64_t  sum;

    if (__builtin_add_overflow(a, b, &sum)) {
        return b > 0 ? INT64_MAX : INT64_MIN;
    }

    return sum;
}


const char *
sk_jwt_reason(sk_jwt_e rc)
{
    return sk_jwt_reasons[rc];
}


long
sk_jwt_mint(char *buf, size_t size, sk_hmac_t *key, sk_hmac_alg_e alg,
    const char *claim, uint64_t user, int64_t issued, int64_t expires)
{
    char                 *p, *q;
    char                  payload[SK_JWT_MINT];
    size_t                claim_len;
    uint8_t               mac[SK_HMAC_MAX];
    const sk_jwt_part_t  *header;

    /* SHA-256, 384, 512: the digest's size tells the algorithm */

    claim_len = strlen(claim);
    header = &sk_jwt_headers[alg][0];

    if (size < SK_JWT_MINT || !sk_jwt_claim_ok(claim, claim_len)
        || sk_hmac_size(key) != 32 + 16 * (size_t) alg)
    {
        return -1;
    }

    q = sk_put_literal(payload, "{\"");
    q = sk_put(q, claim, claim_len);
    q = sk_put_literal(q, "\":\"");
    q += sk_id_format(q, user);
    q = sk_put_literal(q, "\",\"iat\":");
    q = sk_jwt_put_time(q, issued);
    q = sk_put_literal(q, ",\"exp\":");
    q = sk_jwt_put_time(q, expires);
    *q++ = '}';

    p = sk_put(buf, header->text, header->len);
    *p++ = '.';
    p += sk_base64url_encode(p, (uint8_t *) payload, (size_t) (q - payload));

    if (sk_hmac(key, buf, (size_t) (p - buf), mac) != 0) {
        return -1;
    }

    *p++ = '.';
    p += sk_base64url_encode(p, mac, sk_hmac_size(key));

    return (long) (p - buf);
}


static int
sk_jwt_claim_ok(const char *claim, size_t len)
{
    size_t  i;

    if (len == 0 || len > SK_JWT_CLAIM_MAX || strcmp(claim, "iat") == 0
        || strcmp(claim, "exp") == 0)
    {
        return 0;
    }

    for (i = 0; i < len; i++) {
        if (claim[i] < ' ' || claim[i] > '~' || claim[i] == '"' || claim[i] == '\\') {
            return 0;
        }
    }

    return 1;
}


static char *
sk_jwt_put_time(char *p, int64_t t)
{
    uint64_t  n;

    n = (uint64_t) t;

    if (t < 0) {
        *p++ = '-';
        n = 0 - n;
    }

    return p + sk_id_format(p, n);
}
