
/*
 * The result of a purchase, written by the daemon, read by the module.
 */


#include <string.h>

#include "sk_id.h"
#include "sk_json.h"
#include "sk_put.h"
#include "sk_result.h"


enum {
    SK_RESULT_SUCCESS,
    SK_RESULT_ORDER_ID,
    SK_RESULT_ORDER_NO,
    SK_RESULT_REASON,
    SK_RESULT_KEYS
};


typedef struct {
    sk_result_t  *result;
    unsigned      told:1;               /* "success" was there */
} sk_result_walk_t;


static int sk_result_value(void *data, size_t key, const sk_json_value_t *value);
static int sk_result_copy(char *dst, size_t size, const sk_json_value_t *value,
    int (*ok)(char c));
static int sk_result_digit(char c);
static int sk_result_letter(char c);


static const sk_json_key_t  sk_result_keys[SK_RESULT_KEYS] = {
    [SK_RESULT_SUCCESS]  = sk_json_key("success"),
    [SK_RESULT_ORDER_ID] = sk_json_key("order_id"),
    [SK_RESULT_ORDER_NO] = sk_json_key("order_no"),
    [SK_RESULT_REASON]   = sk_json_key("reason")
};


size_t
sk_result_format(char *buf, const sk_result_t *result)
{
    char  *p;

    if (result->success) {
        p = sk_put_literal(buf, "{\"success\":true,\"order_id\":");
        p += sk_id_format(p, result->order_id);
        p = sk_put_literal(p, ",\"order_no\":\"");
        p = sk_put(p, result->order_no,
                   strnlen(result->order_no, sizeof(result->order_no) - 1));

    } else {
        p = sk_put_literal(buf, "{\"success\":false,\"reason\":\"");
        p = sk_put(p, result->reason,
                   strnlen(result->reason, sizeof(result->reason) - 1));
    }

    p = sk_put_literal(p, "\"}");

    return (size_t) (p - buf);
}


int
sk_result_parse(sk_result_t *result, const char *text, size_t len)
{
    sk_result_walk_t  walk;

    memset(result, 0, sizeof(sk_result_t));

    walk.result = result;
    walk.told = 0;

    if (sk_json_walk(text, len, sk_result_keys, SK_RESULT_KEYS, sk_result_value, &walk) != 0
        || !walk.told)
    {
        return -1;
    }

    if (result->success) {
        result->reason[0] = '\0';
        return result->order_id != 0 && result->order_no[0] != '\0' ? 0 : -1;
    }

    result->order_id = 0;
    result->order_no[0] = '\0';

    return result->reason[0] != '\0' ? 0 : -1;
}


static int
sk_result_value(void *data, size_t key, const sk_json_value_t *value)
{
    sk_result_t       *result;
    sk_result_walk_t  *walk = data;

    result = walk->result;

    switch (key) {

    case SK_RESULT_SUCCESS:
        walk->told = 1;
        result->success = value->text[0] == 't';
        return value->type == SK_JSON_BOOL ? 0 : -1;

    case SK_RESULT_ORDER_ID:
        if (value->type != SK_JSON_NUMBER) {
            return -1;
        }

        return sk_id_parse(value->text, value->len, &result->order_id);

    case SK_RESULT_ORDER_NO:
        return sk_result_copy(result->order_no, sizeof(result->order_no), value,
                              sk_result_digit);

    default:                            /* SK_RESULT_REASON */
        return sk_result_copy(result->reason, sizeof(result->reason), value,
                              sk_result_letter);
    }
}


static int
sk_result_copy(char *dst, size_t size, const sk_json_value_t *value,
    int (*ok)(char c))
{
    size_t  i;

    if (value->type != SK_JSON_TEXT || value->len >= size) {
        return -1;
    }

    for (i = 0; i < value->len; i++) {
        if (!ok(value->text[i])) {
            return -1;
        }
    }

    memcpy(dst, value->text, value->len);
    dst[value->len] = '\0';

    return 0;
}


static int
sk_result_digit(char c)
{
    return c >= '0' && c <= '9';
}


static int
sk_result_letter(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}
