/*
 * What became of a purchase, as the daemon leaves it under SK_KEY_RESULT:
 * {"success":true,"order_id":7,"order_no":"2611.."} or
 * {"success":false,"reason":"over_limit"}.
 */

#ifndef _SK_RESULT_H_INCLUDED_
#define _SK_RESULT_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SK_RESULT_MAX  160              /* longest text, in bytes */
#define SK_REASON_MAX  32               /* a-z and _ */

typedef struct {
    int       success;
    uint64_t  order_id;                 /* 0 when not a success */
    char      order_no[33];             /* NUL-terminated; "" when not a success */
    char      reason[SK_REASON_MAX + 1];    /* "" when a success */
} sk_result_t;

/* buf has SK_RESULT_MAX bytes.  Returns the length; no final NUL. */
size_t sk_result_format(char *buf, const sk_result_t *result);

/* Returns 0, or -1: not such an object. */
int sk_result_parse(sk_result_t *result, const char *text, size_t len);

#endif /* _SK_RESULT_H_INCLUDED_ */
