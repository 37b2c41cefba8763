
/*
 * Lines of a journal.  Positions, and not names, tell fields apart: no text can
 * pose as another field, as no field can hold a space.
 */


#include <string.h>

#include <openssl/crypto.h>

#include "sk_id.h"
#include "sk_journal.h"
#include "sk_put.h"


#define SK_JOURNAL_MAC     16           /* bytes of the HMAC that are kept */
#define SK_JOURNAL_DIGITS  (2 * SK_JOURNAL_MAC)
#define SK_JOURNAL_TAIL    (1 + SK_JOURNAL_DIGITS)      /* with its space */


/* reading: what is left of the text */
typedef struct {
    const char  *at;
    const char  *end;
} sk_journal_rest_t;


static char *sk_journal_put_text(char *p, const char *text, size_t len);
static char *sk_journal_put_number(char *p, uint64_t number);
static char *sk_journal_put_escaped(char *p, const char *text, size_t len);
static char *sk_journal_put_hex(char *p, const uint8_t *bytes, size_t len);
static int sk_journal_visible(const char *text, size_t len);
static int sk_journal_field(sk_journal_rest_t *rest, const char **field, size_t *len);
static int sk_journal_number(sk_journal_rest_t *rest, uint64_t *number);
static int sk_journal_digit(char c);
static int sk_journal_unescape(sk_journal_line_t *line, const char *text, size_t len);
static int sk_journal_parse_purchase(sk_journal_line_t *line, sk_journal_rest_t *rest);


static const char  sk_journal_hex[] = "0123456789abcdef";

static const struct {
    const char  *name;
    size_t       len;
} sk_journal_kinds[SK_JOURNAL_KINDS] = {
    [SK_JOURNAL_ACCEPTED] = { "accepted", 8 },
    [SK_JOURNAL_UNKNOWN]  = { "unknown", 7 },
    [SK_JOURNAL_OPEN]     = { "open", 4 },
    [SK_JOURNAL_GAP]      = { "gap", 3 }
};


int
sk_journal_key_init(sk_journal_key_t *key, const void *token_key, size_t len)
{
    int         rc;
    uint8_t     mac[SK_HMAC_MAX], id[SK_HMAC_MAX];
    sk_hmac_t  *hmac;

    key->hmac = NULL;

    hmac = sk_hmac_create(SK_HS256, token_key, len);
    if (hmac == NULL) {
        return -1;
    }

    rc = -1;

    if (sk_hmac(hmac, "journal", sizeof("journal") - 1, mac) == 0
        && sk_hmac(hmac, "journal id", sizeof("journal id") - 1, id) == 0)
    {
        (void) sk_journal_put_hex(key->id, id, SK_JOURNAL_ID / 2);
        key->hmac = sk_hmac_create(SK_HS256, mac, sk_hmac_size(hmac));
        rc = key->hmac ? 0 : -1;
    }

    OPENSSL_cleanse(mac, sizeof(mac));
    sk_hmac_free(hmac);

    return rc;
}


void
sk_journal_key_done(sk_journal_key_t *key)
{
    sk_hmac_free(key->hmac);
    key->hmac = NULL;
}


size_t
sk_journal_format(char *buf, const sk_journal_key_t *key, const sk_journal_line_t *line)
{
    char     *p;
    size_t    len;
    uint8_t   mac[SK_HMAC_MAX];

    if (line->prefix_len == 0 || line->prefix_len > SK_PREFIX_MAX) {
        return 0;
    }

    p = sk_put_literal(buf, "1 ");
    p = sk_put(p, sk_journal_kinds[line->kind].name, sk_journal_kinds[line->kind].len);
    p = sk_journal_put_text(p, line->prefix, line->prefix_len);
    p = sk_journal_put_text(p, key->id, SK_JOURNAL_ID);
    p = sk_journal_put_number(p, line->time_ms);

    switch (line->kind) {

    case SK_JOURNAL_OPEN:
        p = sk_request_id_ok(line->node, line->node_len)
            ? sk_journal_put_text(p, line->node, line->node_len) : sk_put_literal(p, " -");
        break;

    case SK_JOURNAL_GAP:
        p = sk_journal_put_number(p, line->lost);
        p = sk_journal_put_number(p, line->from_ms);
        p = sk_journal_put_number(p, line->to_ms);
        break;

    default:
        if (line->ext_len > SK_EXT_MAX
            || !sk_request_id_ok(line->request_id, line->request_id_len))
        {
            return 0;
        }

        p = sk_journal_put_number(p, line->activity);
        p = sk_journal_put_number(p, line->epoch);
        p = sk_journal_put_number(p, line->seq);
        p = sk_journal_put_number(p, line->user);
        p = sk_journal_put_number(p, line->quantity);
        p = line->order_no[0] ? sk_journal_put_text(p, line->order_no, SK_ORDER_NO_LEN)
                              : sk_put_literal(p, " -");
        p = sk_journal_put_text(p, line->request_id, line->request_id_len);
        p = sk_journal_put_escaped(p, line->ext, line->ext_len);
    }

    len = (size_t) (p - buf);

    if (sk_hmac(key->hmac, buf, len, mac) != 0) {
        return 0;
    }

    *p++ = ' ';
    p = sk_journal_put_hex(p, mac, SK_JOURNAL_MAC);

    return (size_t) (p - buf);
}


static char *
sk_journal_put_text(char *p, const char *text, size_t len)
{
    *p++ = ' ';
    return sk_put(p, text, len);
}


static char *
sk_journal_put_number(char *p, uint64_t number)
{
    *p++ = ' ';
    return p + sk_id_format(p, number);
}


/* a text that is "-" would look like an empty one: then "-" is escaped as well */

static char *
sk_journal_put_escaped(char *p, const char *text, size_t len)
{
    uint8_t  c;
    size_t   i;

    if (len == 0) {
        return sk_put_literal(p, " -");
    }

    *p++ = ' ';

    for (i = 0; i < len; i++) {
        c = (uint8_t) text[i];

        if (c > ' ' && c < 0x7f && c != '%' && !(c == '-' && len == 1)) {
            *p++ = (char) c;

        } else {
            *p++ = '%';
            *p++ = sk_journal_hex[c >> 4];
            *p++ = sk_journal_hex[c & 15];
        }
    }

    return p;
}


static char *
sk_journal_put_hex(char *p, const uint8_t *bytes, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        *p++ = sk_journal_hex[bytes[i] >> 4];
        *p++ = sk_journal_hex[bytes[i] & 15];
    }

    return p;
}


int
sk_journal_parse(sk_journal_line_t *line, const char *text, size_t len)
{
    size_t              n, i;
    const char         *field;
    sk_journal_rest_t   rest;

    memset(line, 0, offsetof(sk_journal_line_t, ext_text));
    line->ext_text[0] = '\0';
    line->ext = line->ext_text;
    line->lost = line->from_ms = line->to_ms = 0;
    line->node_len = 0;

    if (len > SK_JOURNAL_LINE || len < SK_JOURNAL_TAIL || !sk_journal_visible(text, len)) {
        return -1;
    }

    rest.at = text;
    rest.end = text + len;

    if (sk_journal_field(&rest, &field, &n) != 0 || n != 1 || field[0] != '1'
        || sk_journal_field(&rest, &field, &n) != 0)
    {
        return -1;
    }

    for (i = 0; i < SK_JOURNAL_KINDS; i++) {
        if (n == sk_journal_kinds[i].len && memcmp(field, sk_journal_kinds[i].name, n) == 0) {
            break;
        }
    }

    if (i == SK_JOURNAL_KINDS) {
        return -1;
    }

    line->kind = (sk_journal_kind_e) i;

    if (sk_journal_field(&rest, &line->prefix, &line->prefix_len) != 0
        || line->prefix_len > SK_PREFIX_MAX
        || sk_journal_field(&rest, &field, &n) != 0 || n != SK_JOURNAL_ID
        || sk_journal_number(&rest, &line->time_ms) != 0)
    {
        return -1;
    }

    memcpy(line->key_id, field, SK_JOURNAL_ID);

    switch (line->kind) {

    case SK_JOURNAL_OPEN:
        if (sk_journal_field(&rest, &line->node, &line->node_len) != 0
            || line->node_len > SK_JOURNAL_NODE)
        {
            return -1;
        }
        break;

    case SK_JOURNAL_GAP:
        if (sk_journal_number(&rest, &line->lost) != 0
            || sk_journal_number(&rest, &line->from_ms) != 0
            || sk_journal_number(&rest, &line->to_ms) != 0)
        {
            return -1;
        }
        break;

    default:
        if (sk_journal_parse_purchase(line, &rest) != 0) {
            return -1;
        }
    }

    /* the signature is the last field */
    return rest.end - rest.at == SK_JOURNAL_DIGITS
           && memchr(rest.at, ' ', SK_JOURNAL_DIGITS) == NULL ? 0 : -1;
}


static int
sk_journal_parse_purchase(sk_journal_line_t *line, sk_journal_rest_t *rest)
{
    size_t          n;
    const char     *field;
    sk_order_no_t   no;

    if (sk_journal_number(rest, &line->activity) != 0 || line->activity == 0
        || sk_journal_number(rest, &line->epoch) != 0
        || sk_journal_number(rest, &line->seq) != 0
        || sk_journal_number(rest, &line->user) != 0 || line->user == 0
        || sk_journal_number(rest, &line->quantity) != 0 || line->quantity == 0
        || line->quantity > SK_QUANTITY_MAX
        || sk_journal_field(rest, &field, &n) != 0)
    {
        return -1;
    }

    if (line->kind == SK_JOURNAL_ACCEPTED) {
        if (line->epoch == 0 || line->seq == 0 || sk_order_no_parse(field, n, &no) != 0) {
            return -1;
        }

        memcpy(line->order_no, field, SK_ORDER_NO_LEN);

    } else if (line->seq != 0 || n != 1 || field[0] != '-') {
        return -1;
    }

    line->order_no[line->kind == SK_JOURNAL_ACCEPTED ? SK_ORDER_NO_LEN : 0] = '\0';

    if (sk_journal_field(rest, &line->request_id, &line->request_id_len) != 0
        || !sk_request_id_ok(line->request_id, line->request_id_len)
        || sk_journal_field(rest, &field, &n) != 0)
    {
        return -1;
    }

    return sk_journal_unescape(line, field, n);
}


/* also ends every later look at a field: what is not visible can't be in one */

static int
sk_journal_visible(const char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (text[i] < ' ' || text[i] >= 0x7f) {
            return 0;
        }
    }

    return 1;
}


/* a field and the space behind it: the last one has none, and is no field */

static int
sk_journal_field(sk_journal_rest_t *rest, const char **field, size_t *len)
{
    const char  *space;

    space = memchr(rest->at, ' ', (size_t) (rest->end - rest->at));

    if (space == NULL || space == rest->at) {
        return -1;
    }

    *field = rest->at;
    *len = (size_t) (space - rest->at);
    rest->at = space + 1;

    return 0;
}


static int
sk_journal_number(sk_journal_rest_t *rest, uint64_t *number)
{
    size_t       len;
    const char  *field;

    if (sk_journal_field(rest, &field, &len) != 0) {
        return -1;
    }

    if (len == 1 && field[0] == '0') {
        *number = 0;
        return 0;
    }

    return sk_id_parse(field, len, number);
}


static int
sk_journal_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


static int
sk_journal_unescape(sk_journal_line_t *line, const char *text, size_t len)
{
    int     high, low;
    char    escaped[1 + 3 * SK_EXT_MAX];
    size_t  i, n;

    n = 0;

    for (i = 0; i < len && !(len == 1 && text[0] == '-'); i++) {
        if (n == SK_EXT_MAX) {
            return -1;
        }

        if (text[i] != '%') {
            line->ext_text[n++] = text[i];
            continue;
        }

        if (len - i < 3) {
            return -1;
        }

        high = sk_journal_digit(text[i + 1]);
        low = sk_journal_digit(text[i + 2]);

        if (high < 0 || low < 0) {
            return -1;
        }

        line->ext_text[n++] = (char) (high * 16 + low);
        i += 2;
    }

    line->ext_text[n] = '\0';
    line->ext_len = n;

    /* one text has one form */
    return (size_t) (sk_journal_put_escaped(escaped, line->ext_text, n) - escaped) == len + 1
           && memcmp(escaped + 1, text, len) == 0 ? 0 : -1;
}


int
sk_journal_signed(const sk_journal_key_t *key, const char *text, size_t len)
{
    char     digits[SK_JOURNAL_DIGITS];
    uint8_t  mac[SK_HMAC_MAX];

    if (len < SK_JOURNAL_TAIL || sk_hmac(key->hmac, text, len - SK_JOURNAL_TAIL, mac) != 0) {
        return 0;
    }

    (void) sk_journal_put_hex(digits, mac, SK_JOURNAL_MAC);

    return sk_equal(digits, text + len - SK_JOURNAL_DIGITS, SK_JOURNAL_DIGITS);
}
