
/*
 * Strict UTF-8, after the table of well-formed byte sequences in RFC 3629.
 */


#include "sk_utf8.h"


size_t
sk_utf8_char(const char *text, size_t len)
{
    const unsigned char  *p = (const unsigned char *) text;
    unsigned char         low, high;
    size_t                n, i;

    /* the second byte tells overlong forms, surrogates and what is too large */
    low = 0x80;
    high = 0xbf;

    if (p[0] < 0x80) {
        return 1;

    } else if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;

    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        low = (p[0] == 0xe0) ? 0xa0 : 0x80;
        high = (p[0] == 0xed) ? 0x9f : 0xbf;

    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        low = (p[0] == 0xf0) ? 0x90 : 0x80;
        high = (p[0] == 0xf4) ? 0x8f : 0xbf;

    } else {
        return 0;
    }

    if (len < n || p[1] < low || p[1] > high) {
        return 0;
    }

    for (i = 2; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }

    return n;
}


int
sk_utf8_ok(const char *text, size_t len)
{
    size_t  n, i;

    for (i = 0; i < len; i += n) {
        if (text[i] == '\0') {
            return 0;
        }

        n = sk_utf8_char(text + i, len - i);
        if (n == 0) {
            return 0;
        }
    }

    return 1;
}
