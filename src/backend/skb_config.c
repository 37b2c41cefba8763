/*
 * One pass over the file: inih cuts it into lines, sections and values, the
 * table of skb_setting.c takes them.  inih's handler is not told the line, so
 * the reader counts.
 */

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "skb_config.h"
#include "skb_setting.h"
#include "skb_token_key.h"

#define SKB_LINE_MAX  1024              /* of the file, with its line end */

typedef struct {
    FILE          *file;
    const char    *path;
    unsigned       line;
    skb_config_t  *config;
    char          *error;
    size_t         size;
    int            failed;
    uint64_t       seen;                /* a bit per setting: given once only */
}  skb_parse_t;


void
skb_config_defaults(skb_config_t *config)
{
    memset(config, 0, sizeof(skb_config_t));

    strcpy(config->redis.host, "127.0.0.1");
    config->redis.port = 6379;
    strcpy(config->redis.prefix, "seckill");
    config->redis.timeout_ms = 2000;

    strcpy(config->mysql.host, "127.0.0.1");
    config->mysql.port = 3306;
    strcpy(config->mysql.database, "seckill");
    config->mysql.timeout_ms = 10000;

    strcpy(config->consumer.name, "seckilld");
    config->consumer.workers = 3;
    config->consumer.batch = 1000;
    config->consumer.idle_ms = 50;
    config->consumer.retain_ms = 600000;
    config->consumer.claim_idle_ms = 60000;
    config->consumer.attempts = 5;
    config->consumer.retry_ms = 500;
    config->consumer.settle_after_ms = 60000;
    config->consumer.clock_trust_ms = 600000;
    config->consumer.clock_trust_start_ms = 10000;
    config->consumer.cancelled_units = SKB_CANCELLED_NONE;

    config->log_level = SKB_INFO;
}


/* Byte by byte: all of it, what lies between the fields too, began as zero. */
int
skb_config_same(const skb_config_t *left, const skb_config_t *right)
{
    const unsigned char  *a = (const unsigned char *) left;
    const unsigned char  *b = (const unsigned char *) right;

    for (size_t i = 0; i < sizeof(skb_config_t); i++) {
        if (a[i] != b[i]) {
            return 0;
        }
    }

    return 1;
}


/* The first fault stands. */
static void
skb_parse_fail(skb_parse_t *parse, const char *what, const char *name, const char *quoted)
{
    if (parse->failed) {
        return;
    }

    parse->failed = 1;

    if (quoted != NULL) {
        snprintf(parse->error, parse->size, "%s:%u: %s \"%.128s\"%s%.160s", parse->path,
                 parse->line, what, quoted, name[0] != '\0' ? " " : "", name);

    } else {
        snprintf(parse->error, parse->size, "%s:%u: %s", parse->path, parse->line, what);
    }
}


static int
skb_section_known(const char *name, size_t len)
{
    for (size_t i = 0; i < skb_settings_count; i++) {
        if (strlen(skb_settings[i].section) == len
            && memcmp(skb_settings[i].section, name, len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* The parser tells of sections with settings only: see to the others here. */
static void
skb_parse_section(skb_parse_t *parse, const char *line)
{
    char         name[64];
    const char  *end;

    line += strspn(line, " \t");

    if (*line != '[') {
        return;
    }

    line++;
    end = strchr(line, ']');

    if (end != NULL && !skb_section_known(line, (size_t) (end - line))) {
        snprintf(name, sizeof(name), "%.*s", (int) (end - line), line);
        skb_parse_fail(parse, "unknown section", "", name);
    }
}


/* Reads as fgets() does. */
static char *
skb_parse_line(char *buf, int size, void *stream)
{
    char         *line;
    size_t        len;
    skb_parse_t  *parse = stream;
    char          text[SKB_LINE_MAX];

    if (parse->failed || fgets(text, sizeof(text), parse->file) == NULL) {
        return NULL;
    }

    parse->line++;
    len = strlen(text);
    line = text;

    if (parse->line == 1 && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        len -= 3;
    }

    if (len + 1 > (size_t) size || (len > 0 && line[len - 1] != '\n' && !feof(parse->file))) {
        skb_parse_fail(parse, "line is too long", "", NULL);
        return NULL;
    }

    skb_parse_section(parse, line);

    if (parse->failed) {
        return NULL;
    }

    memcpy(buf, line, len + 1);

    return buf;
}


static int
skb_parse_setting(void *data, const char *section, const char *name, const char *value)
{
    char            full[128];
    const char     *wrong;
    skb_parse_t    *parse = data;

    if (section[0] == '\0') {
        skb_parse_fail(parse, "setting outside of any section:", "", name);
        return 0;
    }

    for (size_t i = 0; i < skb_settings_count; i++) {
        const skb_setting_t  *setting = &skb_settings[i];

        if (strcmp(setting->section, section) != 0 || strcmp(setting->name, name) != 0) {
            continue;
        }

        if (parse->seen & (UINT64_C(1) << i)) {
            skb_parse_fail(parse, "setting", "is duplicate", name);
            return 0;
        }

        parse->seen |= UINT64_C(1) << i;
        wrong = setting->set(setting, parse->config, value);

        if (wrong != NULL) {
            snprintf(full, sizeof(full), "for \"%s\": %s", name, wrong);
            skb_parse_fail(parse, "invalid value", full, value);
            return 0;
        }

        return 1;
    }

    snprintf(full, sizeof(full), "in section [%.40s]", section);
    skb_parse_fail(parse, "unknown setting", full, name);

    return 0;
}


static uint64_t
skb_seen(const skb_parse_t *parse, const char *section, const char *name)
{
    for (size_t i = 0; i < skb_settings_count; i++) {
        if (strcmp(skb_settings[i].section, section) == 0
            && strcmp(skb_settings[i].name, name) == 0)
        {
            return parse->seen & (UINT64_C(1) << i);
        }
    }

    return 0;
}


/* TLS is asked for in whole, or not at all. */
static void
skb_parse_tls(skb_parse_t *parse)
{
    const skb_config_mysql_t  *mysql = &parse->config->mysql;

    if (mysql->ssl && mysql->socket[0] != '\0') {
        skb_parse_fail(parse, "[mysql] \"ssl\" is for \"host\", not for \"socket\"", "", NULL);
    }

    if (!mysql->ssl && (mysql->ca[0] != '\0' || mysql->cert[0] != '\0' || mysql->key[0] != '\0')) {
        skb_parse_fail(parse, "[mysql] \"ca\", \"cert\" and \"key\" need \"ssl = on\"", "", NULL);
    }

    if ((mysql->cert[0] == '\0') != (mysql->key[0] == '\0')) {
        skb_parse_fail(parse, "[mysql] \"cert\" and \"key\" need each other", "", NULL);
    }
}


/* What can be judged only with the whole file read. */
static void
skb_parse_whole(skb_parse_t *parse)
{
    skb_config_t  *config = parse->config;

    if (skb_seen(parse, "mysql", "socket")
        && (skb_seen(parse, "mysql", "host") || skb_seen(parse, "mysql", "port")))
    {
        skb_parse_fail(parse, "[mysql] has both \"socket\" and \"host\" or \"port\"", "", NULL);
        return;
    }

    if (config->redis.user[0] != '\0' && config->redis.password_file[0] == '\0') {
        skb_parse_fail(parse, "[redis] \"user\" needs \"password_file\"", "", NULL);
    }

    skb_parse_tls(parse);
    config->consumer.pay_timeout_given = skb_seen(parse, "consumer", "pay_timeout") != 0;
}


static int
skb_config_file(skb_parse_t *parse)
{
    int  line;

    parse->file = fopen(parse->path, "re");

    if (parse->file == NULL) {
        snprintf(parse->error, parse->size, "%s: cannot open: %s", parse->path,
                 strerror(errno));
        return -1;
    }

    ini_allow_multiline = false;
    ini_stop_on_first_error = true;
    ini_use_stack = false;
    ini_max_line = SKB_LINE_MAX;
    ini_initial_alloc = SKB_LINE_MAX;

    line = ini_parse_stream(skb_parse_line, parse, skb_parse_setting, parse);

    if (line == 0 && ferror(parse->file)) {
        parse->failed = 1;
        snprintf(parse->error, parse->size, "%s: cannot read: %s", parse->path,
                 strerror(errno));

    } else if (line == -2) {
        parse->failed = 1;
        snprintf(parse->error, parse->size, "%s: out of memory", parse->path);

    } else if (line > 0) {
        skb_parse_fail(parse, "not a section, a setting or a comment", "", NULL);
    }

    fclose(parse->file);

    if (!parse->failed) {
        skb_parse_whole(parse);
    }

    return parse->failed ? -1 : 0;
}


/* One line for all of them; what does not fit is not the first one. */
static void
skb_config_warn(skb_config_t *config, const char *fmt, ...)
{
    char     *end = config->warning + strlen(config->warning);
    size_t    left = sizeof(config->warning) - strlen(config->warning);
    va_list   args;

    if (end != config->warning && left > 2) {
        strcpy(end, "; ");
        end += 2;
        left -= 2;
    }

    va_start(args, fmt);
    vsnprintf(end, left, fmt, args);
    va_end(args);
}


static void
skb_config_public(skb_config_t *config, const char *what, const char *path)
{
    struct stat  st;

    if (path[0] != '\0' && stat(path, &st) == 0 && (st.st_mode & S_IROTH)) {
        skb_config_warn(config, "%s \"%s\" may be read by everybody", what, path);
    }
}


/*
 * What nginx would not take is found now, and not when a connection is made or
 * a journal is read.
 */
static int
skb_config_secret(skb_config_t *config, const char *what, const char *path, size_t least,
    char *error, size_t size)
{
    int          rc;
    sk_secret_t  secret;

    if (path[0] == '\0') {
        return 0;
    }

    rc = sk_secret_read(&secret, path, least);

    if (rc != 0) {
        snprintf(error, size, "%s file \"%s\": %s", what, path, secret.error);

    } else if (secret.open) {
        skb_config_warn(config, "%s file \"%s\" may be read by everybody", what, path);
    }

    sk_secret_wipe(&secret);

    return rc;
}


/* The files are the library's to read, with each connection; a missing one is found now. */
static int
skb_config_tls(skb_config_t *config, char *error, size_t size)
{
    int                  fd;
    skb_config_mysql_t  *mysql = &config->mysql;
    const char *const    files[][2] = { { "ca", mysql->ca }, { "cert", mysql->cert },
                                        { "key", mysql->key } };

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (files[i][1][0] == '\0') {
            continue;
        }

        fd = open(files[i][1], O_RDONLY | O_CLOEXEC);

        if (fd == -1) {
            snprintf(error, size, "[mysql] %s \"%s\": %s", files[i][0], files[i][1],
                     strerror(errno));
            return -1;
        }

        close(fd);
    }

    skb_config_public(config, "[mysql] key", mysql->key);

    return 0;
}


/* What 0.1.0 took in another way. */
static void
skb_config_changed(skb_config_t *config)
{
    const skb_config_mysql_t  *mysql = &config->mysql;

    if (mysql->socket[0] == '\0' && !mysql->ssl && strcmp(mysql->host, "localhost") == 0) {
        skb_config_warn(config, "[mysql] \"host = localhost\" is TCP to port %u since 1.0: say "
                        "127.0.0.1, or \"socket\" for the socket", (unsigned) mysql->port);
    }
}


int
skb_config_load(skb_config_t *config, const char *path, char *error, size_t size)
{
    skb_parse_t  parse;

    memset(&parse, 0, sizeof(parse));
    parse.path = path;
    parse.config = config;
    parse.error = error;
    parse.size = size;

    skb_config_defaults(config);

    if (skb_config_file(&parse) != 0
        || skb_config_secret(config, "key", config->redis.queue_token_key_file,
                             SK_SECRET_KEY, error, size) != 0
        || skb_config_secret(config, "password", config->redis.password_file,
                             SK_SECRET_PASSWORD, error, size) != 0
        || skb_config_secret(config, "password", config->mysql.password_file,
                             SK_SECRET_PASSWORD, error, size) != 0
        || skb_config_tls(config, error, size) != 0)
    {
        return -1;
    }

    skb_config_changed(config);

    return 0;
}


int
skb_config_password(const char *path, char *buf, char *error, size_t size)
{
    int          rc;
    sk_secret_t  secret;

    buf[0] = '\0';

    if (path[0] == '\0') {
        return 0;
    }

    rc = sk_secret_read(&secret, path, SK_SECRET_PASSWORD);

    if (rc == 0) {
        memcpy(buf, secret.text, secret.len + 1);

    } else {
        snprintf(error, size, "password file \"%s\": %s", path, secret.error);
    }

    sk_secret_wipe(&secret);

    return rc;
}
