/*
 * A walk over one flat JSON object from a stranger: the caller names the keys
 * of the top level that it reads and is told their values; all the rest only
 * has to be JSON.  Takes no memory but the stack.
 */

#ifndef _SK_JSON_H_INCLUDED_
#define _SK_JSON_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SK_JSON_DEPTH_MAX  16           /* of nesting, the object itself included */
#define SK_JSON_TEXT_MAX   8191         /* bytes of one string, as written */
#define SK_JSON_KEYS_MAX   32           /* most keys that can be watched */

typedef enum {
    SK_JSON_NULL,
    SK_JSON_BOOL,                       /* text is "true" or "false" */
    SK_JSON_NUMBER,                     /* text as written */
    SK_JSON_TEXT,                       /* text without quotes and escapes */
    SK_JSON_OBJECT,                     /* no text */
    SK_JSON_ARRAY                       /* no text */
} sk_json_type_e;

typedef struct {
    sk_json_type_e  type;
    const char     *text;               /* valid during the call only; no final NUL */
    size_t          len;
} sk_json_value_t;

typedef struct {
    const char     *name;
    size_t          len;
} sk_json_key_t;

#define sk_json_key(name)  { name, sizeof(name) - 1 }

/* Told the value of keys[key]; anything but 0 stops the walk, which then returns -1. */
typedef int (*sk_json_value_pt)(void *data, size_t key, const sk_json_value_t *value);

/*
 * Returns 0, or -1: not one JSON object, a watched key given twice, too deep, a
 * string too long, bad UTF-8, half a surrogate pair, or refused by value().
 */
int sk_json_walk(const char *text, size_t len, const sk_json_key_t *keys,
    size_t nkeys, sk_json_value_pt value, void *data);

/* Returns 0, or -1: no number, a fraction or exponent, or beyond 64 bits. */
int sk_json_integer(const sk_json_value_t *value, int64_t *n);

/* 1 when text is nothing but JSON blanks. */
int sk_json_blank(const char *text, size_t len);

#endif /* _SK_JSON_H_INCLUDED_ */
