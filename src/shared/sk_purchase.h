/*
 * What a buyer may say in the body of a purchase: {"quantity": 1, "ext": ".."}.
 */

#ifndef _SK_PURCHASE_H_INCLUDED_
#define _SK_PURCHASE_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SK_QUANTITY_MAX    1000000
#define SK_EXT_MAX         256          /* bytes of UTF-8 */
#define SK_REQUEST_ID_MAX  64

typedef struct {
    uint32_t  quantity;                 /* 1 when not given */
    size_t    ext_len;
    char      ext[SK_EXT_MAX];
} sk_purchase_t;

/*
 * An empty body (len 0, or only JSON blanks) is {}.  Refused with -1: not an
 * object, quantity not an integer in 1..SK_QUANTITY_MAX (1.0, 1e0 and "1" too),
 * ext not a string, too long or with NUL, either key given twice, nesting deeper
 * than 16, a string longer than 8191 bytes as written, trailing text, bad UTF-8.
 * Other keys are ignored.  After a refusal *purchase means nothing.
 */
int sk_purchase_parse(sk_purchase_t *purchase, const char *body, size_t len);

/* 1 when a client's X-Request-ID is sane: 1..64 of A-Z a-z 0-9 . _ - */
int sk_request_id_ok(const char *text, size_t len);

#endif /* _SK_PURCHASE_H_INCLUDED_ */
