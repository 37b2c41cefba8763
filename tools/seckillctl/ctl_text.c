/*
 * What a terminal may get.  A backslash is doubled, so that what is shown as an
 * escape was one.
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "ctl_text.h"
#include "sk_utf8.h"

#define CTL_SHOWN_MAX   2048            /* bytes of one text */
#define CTL_SHOWN_AT_ONCE  8            /* arguments of one printf() */
#define CTL_PIECE_MAX  (4 * 4 + 1)      /* bytes of one character as it is shown, and a NUL */


uint32_t
ctl_text_code(const char *text, size_t n)
{
    size_t    i;
    uint32_t  code;

    code = (uint8_t) text[0] & (n == 1 ? 0x7f : 0xff >> (n + 1));

    for (i = 1; i < n; i++) {
        code = code << 6 | ((uint8_t) text[i] & 0x3f);
    }

    return code;
}


/* C0, DEL, C1; line ends of Unicode; what turns text around or can't be seen */
static int
ctl_text_obeyed(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0xad || code == 0x61c
           || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e)
           || (code >= 0x2060 && code <= 0x206f) || code == 0xfeff
           || (code >= 0xfff9 && code <= 0xfffb) || (code >= 0xe0000 && code <= 0xe007f);
}


size_t
ctl_text_odd(const char *text, size_t len)
{
    size_t  n;

    n = sk_utf8_char(text, len);

    if (n == 0) {
        return 1;
    }

    return ctl_text_obeyed(ctl_text_code(text, n)) ? n : 0;
}


/* The next character as it is shown; *n is its bytes in text.  Returns those of piece. */
static size_t
ctl_text_piece(char *piece, const char *text, size_t len, size_t *n)
{
    size_t  i, length;

    *n = ctl_text_odd(text, len);
    length = 0;

    if (*n > 0) {
        for (i = 0; i < *n; i++) {
            length += (size_t) sprintf(piece + length, "\\x%02x", (uint8_t) text[i]);
        }

        return length;
    }

    *n = sk_utf8_char(text, len);
    memcpy(piece, text, *n);
    length = *n;

    if (text[0] == '\\') {
        piece[length++] = '\\';
    }

    return length;
}


const char *
ctl_text_show(char *buf, size_t size, const char *text, size_t len)
{
    char    piece[CTL_PIECE_MAX];
    size_t  at, n, used, length;

    used = 0;

    for (at = 0; at < len; at += n) {
        length = ctl_text_piece(piece, text + at, len - at, &n);

        if (used + length + sizeof("...") > size) {
            memcpy(buf + used, "...", 3);
            used += 3;
            break;
        }

        memcpy(buf + used, piece, length);
        used += length;
    }

    buf[used] = '\0';

    return buf;
}


void
ctl_text_print(const char *text, size_t len)
{
    char    piece[CTL_PIECE_MAX];
    size_t  at, n, length;

    for (at = 0; at < len; at += n) {
        length = ctl_text_piece(piece, text + at, len - at, &n);
        (void) fwrite(piece, 1, length, stdout);
    }
}


const char *
ctl_shown(const char *text)
{
    static char      shown[CTL_SHOWN_AT_ONCE][CTL_SHOWN_MAX];
    static unsigned  next;

    if (text == NULL) {
        return "";
    }

    return ctl_text_show(shown[next++ % CTL_SHOWN_AT_ONCE], CTL_SHOWN_MAX, text, strlen(text));
}
