/*
 * Secrets from files: keys and passwords.  One reader for nginx, seckilld and
 * seckillctl, so that all three take the same bytes of the same file.
 */

#ifndef _SK_SECRET_H_INCLUDED_
#define _SK_SECRET_H_INCLUDED_

#include <stddef.h>

#define SK_SECRET_MAX  4096             /* bytes of a secret */

/* RFC 7518, 3.2 wants the size of the hash; shorter than this is a mistake */
#define SK_SECRET_KEY  16               /* the least bytes of a key */
#define SK_SECRET_PASSWORD  1           /* ... and of a password */

typedef struct {
    char      text[SK_SECRET_MAX + 1];  /* with a NUL after it, and none in it */
    size_t    len;
    unsigned  open:1;                   /* everybody may read the file */
    char      error[128];               /* why it was refused, without the name */
} sk_secret_t;

/*
 * Reads the file's bytes less one LF or CRLF at the end.  Refused are files that
 * cannot be read, are larger than SK_SECRET_MAX or shorter than least bytes,
 * hold a NUL byte, begin with a byte order mark or hold nothing but blanks.
 * Returns 0, or -1 with an error and no text.  Wipe it after use.
 */
int sk_secret_read(sk_secret_t *secret, const char *path, size_t least);

void sk_secret_wipe(sk_secret_t *secret);

#endif /* _SK_SECRET_H_INCLUDED_ */
