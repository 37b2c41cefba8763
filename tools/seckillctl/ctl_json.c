/*
 * JSON on stdout.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_json.h"
#include "ctl_text.h"
#include "sk_utf8.h"


static void
ctl_json_check(ctl_json_t *json, yajl_gen_status status)
{
    if (status != yajl_gen_status_ok && status != yajl_gen_generation_complete) {
        json->failed = 1;
    }
}


/* written by yajl as it is: a string with all escapes that yajl leaves out */
static int
ctl_json_escaped(ctl_json_t *json, const char *text, size_t len)
{
    int        rc;
    char      *all, *p;
    size_t     at, n, i;
    uint32_t   code;

    all = malloc(12 * len + 3);

    if (all == NULL) {
        return -1;
    }

    p = all;
    *p++ = '"';

    for (at = 0; at < len; at += n) {
        n = sk_utf8_char(text + at, len - at);
        code = n == 0 ? 0xfffd : ctl_text_code(text + at, n);

        if (n > 0 && ctl_text_odd(text + at, len - at) == 0 && code != '"' && code != '\\') {
            for (i = 0; i < n; i++) {
                *p++ = text[at + i];
            }

        } else if (code > 0xffff) {
            p += sprintf(p, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));

        } else {
            p += sprintf(p, "\\u%04x", code);
        }

        n = n > 0 ? n : 1;
    }

    *p++ = '"';
    rc = yajl_gen_number(json->gen, all, (size_t) (p - all)) == yajl_gen_status_ok ? 0 : -1;
    free(all);

    return rc;
}


/* C1 and what turns text around pass yajl, but somebody may look at it in a terminal */
static int
ctl_json_odd(const char *text, size_t len)
{
    size_t  at, n;

    for (at = 0; at < len; at += n) {
        n = sk_utf8_char(text + at, len - at);

        if (n == 0 || (n > 1 && ctl_text_odd(text + at, len - at) > 0) || text[at] == 0x7f) {
            return 1;
        }
    }

    return 0;
}


static void
ctl_json_string(ctl_json_t *json, const char *text)
{
    if (json->gen && ctl_json_odd(text, strlen(text))) {
        json->failed |= ctl_json_escaped(json, text, strlen(text)) != 0;
        return;
    }

    if (json->gen) {
        ctl_json_check(json, yajl_gen_string(json->gen, (const unsigned char *) text,
                                             strlen(text)));
    }
}


static int
ctl_json_key(ctl_json_t *json, const char *key)
{
    if (json->gen == NULL) {
        return -1;
    }

    if (key) {
        ctl_json_string(json, key);
    }

    return 0;
}


void
ctl_json_begin(ctl_t *ctl, ctl_json_t *json)
{
    ctl->answered = 1;
    json->gen = yajl_gen_alloc(NULL);
    json->failed = json->gen == NULL;
}


int
ctl_json_end(ctl_json_t *json)
{
    size_t                len;
    const unsigned char  *text;

    if (json->gen == NULL) {
        return -1;
    }

    ctl_json_check(json, yajl_gen_get_buf(json->gen, &text, &len));

    if (!json->failed
        && (fwrite(text, 1, len, stdout) != len || putchar('\n') == EOF))
    {
        json->failed = 1;
    }

    yajl_gen_free(json->gen);
    json->gen = NULL;

    return json->failed ? -1 : 0;
}


void
ctl_json_map(ctl_json_t *json, const char *key)
{
    if (ctl_json_key(json, key) == 0) {
        ctl_json_check(json, yajl_gen_map_open(json->gen));
    }
}


void
ctl_json_map_end(ctl_json_t *json)
{
    if (json->gen) {
        ctl_json_check(json, yajl_gen_map_close(json->gen));
    }
}


void
ctl_json_array(ctl_json_t *json, const char *key)
{
    if (ctl_json_key(json, key) == 0) {
        ctl_json_check(json, yajl_gen_array_open(json->gen));
    }
}


void
ctl_json_array_end(ctl_json_t *json)
{
    if (json->gen) {
        ctl_json_check(json, yajl_gen_array_close(json->gen));
    }
}


void
ctl_json_text(ctl_json_t *json, const char *key, const char *text)
{
    if (ctl_json_key(json, key) != 0) {
        return;
    }

    if (text == NULL) {
        ctl_json_check(json, yajl_gen_null(json->gen));
        return;
    }

    ctl_json_string(json, text);
}


void
ctl_json_id(ctl_json_t *json, const char *key, uint64_t id)
{
    char  text[32];

    snprintf(text, sizeof(text), "%" PRIu64, id);
    ctl_json_text(json, key, text);
}


void
ctl_json_count(ctl_json_t *json, const char *key, uint64_t n)
{
    int   len;
    char  text[32];

    if (ctl_json_key(json, key) == 0) {
        len = snprintf(text, sizeof(text), "%" PRIu64, n);
        ctl_json_check(json, yajl_gen_number(json->gen, text, (size_t) len));
    }
}


void
ctl_json_signed(ctl_json_t *json, const char *key, int64_t n)
{
    int   len;
    char  text[32];

    if (ctl_json_key(json, key) == 0) {
        len = snprintf(text, sizeof(text), "%" PRId64, n);
        ctl_json_check(json, yajl_gen_number(json->gen, text, (size_t) len));
    }
}


void
ctl_json_known(ctl_json_t *json, const char *key, int64_t n)
{
    if (n < 0) {
        ctl_json_text(json, key, NULL);
        return;
    }

    ctl_json_count(json, key, (uint64_t) n);
}


void
ctl_json_real(ctl_json_t *json, const char *key, double value, int digits)
{
    int   len;
    char  text[64];

    if (ctl_json_key(json, key) == 0) {
        len = snprintf(text, sizeof(text), "%.*f", digits, value);
        ctl_json_check(json, yajl_gen_number(json->gen, text, (size_t) len));
    }
}


void
ctl_json_bool(ctl_json_t *json, const char *key, int value)
{
    if (ctl_json_key(json, key) == 0) {
        ctl_json_check(json, yajl_gen_bool(json->gen, value));
    }
}


void
ctl_json_error(ctl_json_t *json, const ctl_t *ctl)
{
    if (ctl->failed == CTL_FINE) {
        return;
    }

    ctl_json_map(json, "error");
    ctl_json_count(json, "exit", (uint64_t) ctl->failed);
    ctl_json_text(json, "message", ctl->message);
    ctl_json_map_end(json);
}
