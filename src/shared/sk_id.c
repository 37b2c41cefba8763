
/*
 * Canonical decimals of 64 bits, without strtoull(): it takes blanks, signs
 * and leading zeros, and so gives one id many names.
 */


#include <string.h>

#include "sk_id.h"


int
sk_id_parse(const char *text, size_t len, uint64_t *id)
{
    unsigned  digit;
    uint64_t  n;
    size_t    i;

    if (len == 0 || len > SK_ID_MAX || text[0] == '0') {
        return -1;
    }

    n = 0;

    for (i = 0; i < len; i++) {
        digit = (unsigned char) text[i] - (unsigned) '0';

        if (digit > 9 || n > UINT64_MAX / 10) {
            return -1;
        }

        n *= 10;

        if (n > UINT64_MAX - digit) {
            return -1;
        }

        n += digit;
    }

    *id = n;

    return 0;
}


size_t
sk_id_format(char *buf, uint64_t id)
{
    char    digits[SK_ID_MAX], *p;
    size_t  len;

    p = digits + SK_ID_MAX;

    do {
        *--p = (char) ('0' + id % 10);
        id /= 10;
    } while (id > 0);

    len = (size_t) (digits + SK_ID_MAX - p);
    memcpy(buf, p, len);

    return len;
}
