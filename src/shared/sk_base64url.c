
/*
 * base64url, four characters at a time.  Strict on input, so that a signed
 * text has one spelling only.
 */


#include "sk_base64url.h"


#define XX  0x80                        /* not in the alphabet */


static const char  sk_base64url_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";


static const uint8_t  sk_base64url_values[128] = {
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX,
    XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, XX, 62, XX, XX,
    52, 53, 54, 55, 56, 57, 58, 59, 60, 61, XX, XX, XX, XX, XX, XX,
    XX,  0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14,
    15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, XX, XX, XX, XX, 63,
    XX, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, XX, XX, XX, XX, XX
};


static inline uint32_t
sk_base64url_value(char c)
{
    uint8_t  byte = (uint8_t) c;

    return byte < 128 ? sk_base64url_values[byte] : XX;
}


size_t
sk_base64url_encode(char *dst, const uint8_t *src, size_t len)
{
    char      *p;
    uint32_t   bits;

    p = dst;

    for ( /* void */ ; len >= 3; len -= 3, src += 3) {
        bits = (uint32_t) src[0] << 16 | (uint32_t) src[1] << 8 | src[2];
        *p++ = sk_base64url_alphabet[bits >> 18];
        *p++ = sk_base64url_alphabet[bits >> 12 & 63];
        *p++ = sk_base64url_alphabet[bits >> 6 & 63];
        *p++ = sk_base64url_alphabet[bits & 63];
    }

    if (len > 0) {
        bits = (uint32_t) src[0] << 16;
        if (len == 2) {
            bits |= (uint32_t) src[1] << 8;
        }

        *p++ = sk_base64url_alphabet[bits >> 18];
        *p++ = sk_base64url_alphabet[bits >> 12 & 63];
        if (len == 2) {
            *p++ = sk_base64url_alphabet[bits >> 6 & 63];
        }
    }

    return (size_t) (p - dst);
}


long
sk_base64url_decode(uint8_t *dst, const char *src, size_t len)
{
    uint8_t   *p;
    uint32_t   a, b, c, d;

    p = dst;

    for ( /* void */ ; len >= 4; len -= 4, src += 4) {
        a = sk_base64url_value(src[0]);
        b = sk_base64url_value(src[1]);
        c = sk_base64url_value(src[2]);
        d = sk_base64url_value(src[3]);

        if ((a | b | c | d) & XX) {
            return -1;
        }

        *p++ = (uint8_t) (a << 2 | b >> 4);
        *p++ = (uint8_t) (b << 4 | c >> 2);
        *p++ = (uint8_t) (c << 6 | d);
    }

    if (len == 1) {                     /* six bits are no byte */
        return -1;
    }

    if (len > 0) {
        a = sk_base64url_value(src[0]);
        b = sk_base64url_value(src[1]);
        c = (len == 3) ? sk_base64url_value(src[2]) : 0;

        if ((a | b | c) & XX) {
            return -1;
        }

        *p++ = (uint8_t) (a << 2 | b >> 4);

        if (len == 3) {
            *p++ = (uint8_t) (b << 4 | c >> 2);
            d = c & 3;
        } else {
            d = b & 15;
        }

        if (d != 0) {                   /* left over */
            return -1;
        }
    }

    return (long) (p - dst);
}
