/*
 * order_no, 32 digits: yymmddHHMMSSmmm in UTC (15), activity mod 10^6 (6),
 * seq mod 10^7 (7), user mod 10^4 (4).  lua/admit.lua makes the same.
 */

#ifndef _SK_ORDER_NO_H_INCLUDED_
#define _SK_ORDER_NO_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#define SK_ORDER_NO_LEN  32

typedef struct {
    uint64_t  accepted_ms;              /* epoch milliseconds, 2000..2099 */
    uint64_t  activity;                 /* read back: mod 10^6 */
    uint64_t  seq;                      /* read back: mod 10^7 */
    uint64_t  user;                     /* read back: mod 10^4 */
} sk_order_no_t;

/* Writes 32 digits without a final NUL. */
void sk_order_no_format(char *buf, const sk_order_no_t *no);

/* Returns 0, or -1: wrong length, a non-digit, or no such date and time. */
int sk_order_no_parse(const char *text, size_t len, sk_order_no_t *no);

#endif /* _SK_ORDER_NO_H_INCLUDED_ */
