/*
 * Builds one logfmt line on the stack and writes it at once.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "skb_log.h"

#define SKB_LOG_LINE_MAX  1024

static const char *const  skb_log_names[] = {
    "debug", "info", "notice", "warn", "error"
};

static atomic_int  skb_log_lowest = SKB_INFO;


void
skb_log_level(skb_level_e level)
{
    atomic_store(&skb_log_lowest, (int) level);
}


int
skb_log_level_parse(const char *text, skb_level_e *level)
{
    for (int i = SKB_DEBUG; i <= SKB_ERROR; i++) {
        if (strcmp(text, skb_log_names[i]) == 0) {
            *level = (skb_level_e) i;
            return 0;
        }
    }

    return -1;
}


/*
 * The file takes the place of standard error, which also what libraries and
 * sanitizers write there follows.
 */
int
skb_log_file(const char *path)
{
    int         fd;
    static int  first = -1;             /* standard error, once a file took its place */

    if (path[0] == '\0' && first == -1) {
        return 0;
    }

    if (first == -1) {
        first = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);

        if (first == -1) {
            return errno;
        }
    }

    fd = path[0] == '\0' ? fcntl(first, F_DUPFD_CLOEXEC, 3)
                         : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

    if (fd == -1) {
        return errno;
    }

    if (dup2(fd, STDERR_FILENO) == -1) {
        int  failed = errno;

        close(fd);
        return failed;
    }

    close(fd);

    return 0;
}


static size_t
skb_log_head(char *line, size_t size, skb_level_e level, const char *msg)
{
    struct timespec  now;
    struct tm        tm;
    char             stamp[32], quoted[256];
    int              n;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);

    n = snprintf(line, size, "time=%s.%03ldZ level=%s msg=%s", stamp,
                 now.tv_nsec / 1000000, skb_log_names[level],
                 skb_log_quote(quoted, sizeof(quoted), msg));

    return n < 0 ? 0 : (size_t) n;
}


/* A full disk or a closed pipe does not stop the work: the line is lost. */
static void
skb_log_write(char *line, size_t len)
{
    if (len > SKB_LOG_LINE_MAX - 1) {
        len = SKB_LOG_LINE_MAX - 1;
    }

    line[len++] = '\n';

    while (write(STDERR_FILENO, line, len) == -1 && errno == EINTR) {
        continue;
    }
}


void
skb_log_msg(skb_level_e level, const char *msg)
{
    int   saved = errno;
    char  line[SKB_LOG_LINE_MAX];

    if ((int) level >= atomic_load(&skb_log_lowest)) {
        skb_log_write(line, skb_log_head(line, sizeof(line), level, msg));
    }

    errno = saved;
}


void
skb_log(skb_level_e level, const char *msg, const char *fmt, ...)
{
    int      n, saved = errno;
    char     line[SKB_LOG_LINE_MAX];
    size_t   len;
    va_list  args;

    if ((int) level < atomic_load(&skb_log_lowest)) {
        return;
    }

    len = skb_log_head(line, sizeof(line), level, msg);
    line[len++] = ' ';

    va_start(args, fmt);
    n = vsnprintf(line + len, sizeof(line) - len, fmt, args);
    va_end(args);

    if (n > 0) {
        len += (size_t) n;
    }

    skb_log_write(line, len);
    errno = saved;
}


char *
skb_log_quote(char *buf, unsigned long size, const char *text)
{
    char  *dst = buf, *end = buf + size - 2;        /* room for '"' and NUL */

    if (text == NULL) {
        text = "";
    }

    *dst++ = '"';

    for ( ; *text != '\0' && dst + 4 <= end; text++) {
        unsigned char  ch = (unsigned char) *text;

        if (ch == '"' || ch == '\\') {
            *dst++ = '\\';
            *dst++ = (char) ch;

        } else if (ch == '\n') {
            *dst++ = '\\';
            *dst++ = 'n';

        } else if (ch < 0x20 || ch == 0x7f) {
            dst += snprintf(dst, 5, "\\x%02x", ch);

        } else {
            *dst++ = (char) ch;
        }
    }

    *dst++ = '"';
    *dst = '\0';

    return buf;
}
