
/*
 * The body of a purchase, from a stranger.
 */


#include <string.h>

#include "sk_id.h"
#include "sk_json.h"
#include "sk_purchase.h"


enum {
    SK_PURCHASE_QUANTITY,
    SK_PURCHASE_EXT,
    SK_PURCHASE_KEYS
};


static int sk_purchase_value(void *data, size_t key, const sk_json_value_t *value);


static const sk_json_key_t  sk_purchase_keys[SK_PURCHASE_KEYS] = {
    [SK_PURCHASE_QUANTITY] = sk_json_key("quantity"),
    [SK_PURCHASE_EXT]      = sk_json_key("ext")
};


int
sk_purchase_parse(sk_purchase_t *purchase, const char *body, size_t len)
{
    purchase->quantity = 1;
    purchase->ext_len = 0;

    if (sk_json_blank(body, len)) {
        return 0;
    }

    return sk_json_walk(body, len, sk_purchase_keys, SK_PURCHASE_KEYS,
                        sk_purchase_value, purchase);
}


static int
sk_purchase_value(void *data, size_t key, const sk_json_value_t *value)
{
    uint64_t        n;
    sk_purchase_t  *purchase = data;

    if (key == SK_PURCHASE_QUANTITY) {
        if (value->type != SK_JSON_NUMBER || sk_id_parse(value->text, value->len, &n) != 0
            || n > SK_QUANTITY_MAX)
        {
            return -1;
        }

        purchase->quantity = (uint32_t) n;

        return 0;
    }

    if (value->type != SK_JSON_TEXT || value->len > SK_EXT_MAX
        || memchr(value->text, '\0', value->len) != NULL)
    {
        return -1;
    }

    memcpy(purchase->ext, value->text, value->len);
    purchase->ext_len = value->len;

    return 0;
}


int
sk_request_id_ok(const char *text, size_t len)
{
    char    c;
    size_t  i;

    if (len == 0 || len > SK_REQUEST_ID_MAX) {
        return 0;
    }

    for (i = 0; i < len; i++) {
        c = text[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || c == '.' || c == '_' || c == '-'))
        {
            return 0;
        }
    }

    return 1;
}
