
/*
 * Secrets from files.  A NUL is refused wherever it stands: HMAC fills a short
 * key up with NULs, so a key of nothing else equals the empty one, and a key
 * with NULs at its end equals the key without them.
 */


#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sk_secret.h"


#define SK_SECRET_BOM  "\xef\xbb\xbf"


static int sk_secret_load(sk_secret_t *secret, const char *path, char *buf, size_t size,
    size_t *len);
static const char *sk_secret_check(const char *text, size_t len);


int
sk_secret_read(sk_secret_t *secret, const char *path, size_t least)
{
    int          rc = -1;
    char         buf[SK_SECRET_MAX + 3];    /* a line end, and one to see that it is too large */
    size_t       len = 0;
    const char  *why;

    memset(secret, 0, sizeof(*secret));

    if (sk_secret_load(secret, path, buf, sizeof(buf), &len) != 0) {
        goto done;
    }

    if (len > 0 && buf[len - 1] == '\n') {
        len--;
        len -= len > 0 && buf[len - 1] == '\r';
    }

    why = sk_secret_check(buf, len);

    if (why) {
        snprintf(secret->error, sizeof(secret->error), "%s", why);

    } else if (len > SK_SECRET_MAX) {
        snprintf(secret->error, sizeof(secret->error), "larger than %d bytes", SK_SECRET_MAX);

    } else if (len < least) {
        snprintf(secret->error, sizeof(secret->error), "shorter than %zu bytes", least);

    } else {
        memcpy(secret->text, buf, len);
        secret->text[len] = '\0';
        secret->len = len;
        rc = 0;
    }

done:

    explicit_bzero(buf, sizeof(buf));

    return rc;
}


/* A pipe is read to its end as well. */

static int
sk_secret_load(sk_secret_t *secret, const char *path, char *buf, size_t size, size_t *len)
{
    int          fd, failed;
    ssize_t      n;
    struct stat  st;

    fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd == -1) {
        snprintf(secret->error, sizeof(secret->error), "%s", strerror(errno));
        return -1;
    }

    secret->open = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & S_IROTH);

    do {
        n = read(fd, buf + *len, size - *len);
        failed = n == -1 ? errno : 0;
        *len += n > 0 ? (size_t) n : 0;
    } while (*len < size && (n > 0 || failed == EINTR));

    close(fd);

    if (failed) {
        snprintf(secret->error, sizeof(secret->error), "%s", strerror(failed));
        return -1;
    }

    return 0;
}


static const char *
sk_secret_check(const char *text, size_t len)
{
    size_t  i;

    if (len == 0) {
        return "empty";
    }

    if (memchr(text, '\0', len)) {
        return "holds a NUL byte";
    }

    if (len >= 3 && memcmp(text, SK_SECRET_BOM, 3) == 0) {
        return "begins with a byte order mark";
    }

    for (i = 0; i < len; i++) {
        if (strchr(" \t\r\n\v\f", text[i]) == NULL) {
            return NULL;
        }
    }

    return "nothing but blanks";
}


void
sk_secret_wipe(sk_secret_t *secret)
{
    explicit_bzero(secret, sizeof(*secret));
}
