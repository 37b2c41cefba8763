/*
 * Options, messages, small parsing.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ctl.h"
#include "ctl_json.h"
#include "ctl_text.h"


static void
ctl_print_verb_help(const ctl_verb_t *verb)
{
    const char  *line, *end;

    line = verb->synopsis;

    for ( ;; ) {
        end = strchrnul(line, '\n');
        printf("%s seckillctl %s%s%.*s\n", line == verb->synopsis ? "usage:" : "      ",
               verb->name, end == line ? "" : " ", (int) (end - line), line);

        if (*end == '\0') {
            break;
        }

        line = end + 1;
    }

    printf("\n%s%s", verb->help,
           "  -c, --config FILE  settings of seckilld, default " CTL_CONF_PATH "\n"
           "      --json         answer in JSON on stdout\n"
           "  -h, --help         this text\n");
}


int
ctl_getopt(ctl_t *ctl, int argc, char **argv, const struct option *options)
{
    int  opt;

    for ( ;; ) {
        opt = getopt_long(argc, argv, "c:h", options, NULL);

        switch (opt) {

        case 'c':
            ctl->conf_path = optarg;
            break;

        case 'j':
            ctl->json = 1;
            break;

        case 'h':
            ctl_print_verb_help(ctl->verb);
            ctl->exit = CTL_FINE;
            return '?';

        case '?':
            ctl->exit = ctl_usage(ctl, NULL);
            return '?';

        default:
            return opt;
        }
    }
}


int
ctl_usage(const ctl_t *ctl, const char *fmt, ...)
{
    char     message[CTL_MESSAGE_MAX];
    va_list  args;

    if (fmt) {
        va_start(args, fmt);
        vsnprintf(message, sizeof(message), fmt, args);
        va_end(args);
        fprintf(stderr, "seckillctl: %s\n", ctl_shown(message));
    }

    fprintf(stderr, "try \"seckillctl %s%s--help\"\n", ctl->verb ? ctl->verb->name : "",
            ctl->verb ? " " : "");

    return CTL_USAGE;
}


int
ctl_fail(ctl_t *ctl, ctl_exit_e code, const char *fmt, ...)
{
    char     message[CTL_MESSAGE_MAX];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);

    fprintf(stderr, "seckillctl: %s\n", ctl_shown(message));

    if (ctl->failed == CTL_FINE) {
        ctl->failed = (int) code;
        memcpy(ctl->message, message, sizeof(message));
    }

    return (int) code;
}


void
ctl_warn(const char *fmt, ...)
{
    char     message[2 * CTL_MESSAGE_MAX];
    va_list  args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    fprintf(stderr, "seckillctl: warning: %s\n", ctl_shown(message));
}


int
ctl_number(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
    size_t    i;
    uint64_t  n, digit;

    n = 0;

    for (i = 0; text[i]; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }

        digit = (uint64_t) (text[i] - '0');

        if (n > (UINT64_MAX - digit) / 10) {
            return -1;
        }

        n = n * 10 + digit;
    }

    if (i == 0 || n < min || n > max) {
        return -1;
    }

    *value = n;

    return 0;
}


const char *
ctl_word_number(const char *text, const char *word, uint64_t *value)
{
    char    *end;
    size_t   len;

    len = strlen(word);

    if (text == NULL || strncmp(text, word, len) != 0 || text[len] < '0' || text[len] > '9') {
        return NULL;
    }

    *value = strtoull(text + len, &end, 10);

    return end;
}


int
ctl_duration(const char *text, uint64_t *ms)
{
    char      digits[16];
    size_t    len, i;
    uint64_t  n;

    static const struct {
        const char  *unit;
        uint64_t     ms;
    } units[] = {
        { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }
    };

    len = strspn(text, "0123456789");

    if (len == 0 || len >= sizeof(digits)) {
        return -1;
    }

    memcpy(digits, text, len);
    digits[len] = '\0';

    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text + len, units[i].unit) == 0) {

            /* at most ten years: no sum of two overflows */
            if (ctl_number(digits, 0, 87600ull * 3600000 / units[i].ms, &n) != 0) {
                return -1;
            }

            *ms = n * units[i].ms;
            return 0;
        }
    }

    return -1;
}


int
ctl_id_cmp(const void *a, const void *b)
{
    uint64_t  x, y;

    x = *(const uint64_t *) a;
    y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}


int
ctl_key_read(ctl_t *ctl, const char *path, sk_secret_t *key)
{
    if (sk_secret_read(key, path, SK_SECRET_KEY) != 0) {
        ctl_fail(ctl, CTL_USAGE, "key file \"%s\": %s", path, key->error);
        return -1;
    }

    if (key->open) {
        ctl_warn("key file \"%s\" may be read by everybody", path);
    }

    return 0;
}


static void
ctl_time(char *buf, int64_t ms, int local, const char *format)
{
    time_t     seconds;
    struct tm  tm;

    seconds = (time_t) (ms / 1000);

    if ((local ? localtime_r(&seconds, &tm) : gmtime_r(&seconds, &tm)) == NULL
        || strftime(buf, CTL_TIME_MAX, format, &tm) == 0)
    {
        snprintf(buf, CTL_TIME_MAX, "%lld ms", (long long) ms);
    }
}


void
ctl_time_utc(char *buf, int64_t ms)
{
    ctl_time(buf, ms, 0, "%Y-%m-%d %H:%M:%S UTC");
}


void
ctl_time_local(char *buf, int64_t ms)
{
    ctl_time(buf, ms, 1, "%Y-%m-%d %H:%M:%S %z (%Z)");
}


void
ctl_actor(char *buf, size_t size)
{
    struct passwd  *pw;

    pw = getpwuid(getuid());

    if (pw) {
        snprintf(buf, size, "%s", pw->pw_name);
    } else {
        snprintf(buf, size, "uid %u", (unsigned) getuid());
    }
}


int
ctl_confirm(ctl_t *ctl, int yes, uint64_t activity, const char *what)
{
    char  line[32], id[32];

    if (yes) {
        return CTL_FINE;
    }

    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        return ctl_fail(ctl, CTL_REFUSED, "%s: say --yes", what);
    }

    fprintf(stderr, "%s.\ntype %" PRIu64 " to go on: ", what, activity);
    snprintf(id, sizeof(id), "%" PRIu64 "\n", activity);

    if (fgets(line, sizeof(line), stdin) == NULL || strcmp(line, id) != 0) {
        return ctl_fail(ctl, CTL_REFUSED, "not confirmed, nothing was changed");
    }

    return CTL_FINE;
}


void
ctl_failpoint(const char *name)
{
    const char  *armed;

    armed = getenv("SECKILLCTL_FAILPOINT");

    if (armed && strcmp(armed, name) == 0) {
        raise(SIGKILL);
    }
}


int
ctl_finish(ctl_t *ctl, int code)
{
    ctl_json_t  json;

    if (ctl->json && !ctl->answered && ctl->failed != CTL_FINE) {
        ctl_json_begin(ctl, &json);
        ctl_json_map(&json, NULL);
        ctl_json_error(&json, ctl);
        ctl_json_map_end(&json);

        if (ctl_json_end(&json) != 0) {
            return code;                /* stderr has the reason */
        }
    }

    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return code;
    }

    fprintf(stderr, "seckillctl: cannot write the answer: %s\n", strerror(errno));

    return code == CTL_FINE ? CTL_PARTLY : code;
}
