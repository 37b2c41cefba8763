/*
 * Every setting with its bounds, and how its value is read.
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "skb_setting.h"

static const char *skb_set_address(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_socket(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_text(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_name(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_prefix(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_number(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_port(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_duration(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_long(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_path(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_flag(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_cancelled(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_listen(const skb_setting_t *setting, skb_config_t *config,
    const char *value);
static const char *skb_set_level(const skb_setting_t *setting, skb_config_t *config,
    const char *value);

#define SKB_AT(field)    offsetof(skb_config_t, field)
#define SKB_SIZE(field)  sizeof(((skb_config_t *) 0)->field)
#define SKB_TEXT(field)  SKB_AT(field), 0, SKB_SIZE(field)

const skb_setting_t  skb_settings[] = {
    { "redis", "address", skb_set_address, 0, 0, 0 },
    { "redis", "db", skb_set_number, SKB_AT(redis.db), 0, 65535 },
    { "redis", "user", skb_set_text, SKB_TEXT(redis.user) },
    { "redis", "password_file", skb_set_text, SKB_TEXT(redis.password_file) },
    { "redis", "prefix", skb_set_prefix, SKB_TEXT(redis.prefix) },
    { "redis", "queue_token_key_file", skb_set_path, SKB_TEXT(redis.queue_token_key_file) },
    { "redis", "timeout", skb_set_duration, SKB_AT(redis.timeout_ms), 10, 60000 },

    { "mysql", "socket", skb_set_socket, SKB_TEXT(mysql.socket) },
    { "mysql", "host", skb_set_text, SKB_TEXT(mysql.host) },
    { "mysql", "port", skb_set_port, SKB_AT(mysql.port), 1, 65535 },
    { "mysql", "user", skb_set_text, SKB_TEXT(mysql.user) },
    { "mysql", "password_file", skb_set_text, SKB_TEXT(mysql.password_file) },
    { "mysql", "database", skb_set_text, SKB_TEXT(mysql.database) },
    { "mysql", "timeout", skb_set_duration, SKB_AT(mysql.timeout_ms), 2000, 600000 },
    { "mysql", "ssl", skb_set_flag, SKB_AT(mysql.ssl), 0, 0 },
    { "mysql", "ca", skb_set_path, SKB_TEXT(mysql.ca) },
    { "mysql", "cert", skb_set_path, SKB_TEXT(mysql.cert) },
    { "mysql", "key", skb_set_path, SKB_TEXT(mysql.key) },

    { "consumer", "name", skb_set_name, SKB_TEXT(consumer.name) },
    { "consumer", "workers", skb_set_number, SKB_AT(consumer.workers), 1, SKB_WORKERS_MAX },
    { "consumer", "batch", skb_set_number, SKB_AT(consumer.batch), 1, SKB_BATCH_MAX },
    { "consumer", "idle", skb_set_duration, SKB_AT(consumer.idle_ms), 1, 50 },
    { "consumer", "retain", skb_set_long, SKB_AT(consumer.retain_ms), 0, 604800000 },
    { "consumer", "claim_idle", skb_set_duration, SKB_AT(consumer.claim_idle_ms), 100, 3600000 },
    { "consumer", "attempts", skb_set_number, SKB_AT(consumer.attempts), 1, 20 },
    { "consumer", "retry", skb_set_duration, SKB_AT(consumer.retry_ms), 1, 60000 },
    { "consumer", "on_dead", skb_set_path, SKB_TEXT(consumer.on_dead) },
    { "consumer", "settle_after", skb_set_long, SKB_AT(consumer.settle_after_ms), 0,
      604800000 },
    { "consumer", "pay_timeout", skb_set_long, SKB_AT(consumer.pay_timeout_ms), 0,
      31536000000 },
    { "consumer", "clock_trust", skb_set_long, SKB_AT(consumer.clock_trust_ms), 1000,
      86400000 },
    { "consumer", "clock_trust_start", skb_set_long, SKB_AT(consumer.clock_trust_start_ms), 0,
      3600000 },
    { "consumer", "cancelled_units", skb_set_cancelled, 0, 0, 0 },

    { "http", "listen", skb_set_listen, 0, 0, 0 },

    { "log", "level", skb_set_level, 0, 0, 0 },
    { "log", "file", skb_set_path, SKB_TEXT(log_file) },
};

const size_t  skb_settings_count = sizeof(skb_settings) / sizeof(skb_settings[0]);


/* Plain digits; returns 0 or -1. */
static int
skb_number(const char *text, size_t len, uint64_t max, uint64_t *value)
{
    uint64_t  n = 0;

    if (len == 0 || len > 15) {
        return -1;
    }

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }

        n = n * 10 + (uint64_t) (text[i] - '0');
    }

    *value = n;

    return n > max ? -1 : 0;
}


/* "50ms" "10s" "5m" "1h", the unit is required; returns 0 or -1. */
static int
skb_duration_parse(const char *text, uint64_t *ms)
{
    size_t    len = strspn(text, "0123456789");
    uint64_t  scale, n;

    if (strcmp(text + len, "ms") == 0) {
        scale = 1;

    } else if (strcmp(text + len, "s") == 0) {
        scale = 1000;

    } else if (strcmp(text + len, "m") == 0) {
        scale = 60000;

    } else if (strcmp(text + len, "h") == 0) {
        scale = 3600000;

    } else {
        return -1;
    }

    if (skb_number(text, len, UINT32_MAX, &n) != 0) {
        return -1;
    }

    *ms = n * scale;

    return 0;
}


/* "host:port", "[v6]:port" or, with port 0 allowed, nothing else. */
static const char *
skb_host_port(const char *value, char *host, uint16_t *port)
{
    size_t       len;
    uint64_t     n;
    const char  *colon = strrchr(value, ':');

    if (colon == NULL || colon == value) {
        return "host:port expected";
    }

    len = (size_t) (colon - value);

    if (value[0] == '[' && value[len - 1] == ']') {
        value++;
        len -= 2;
    }

    if (len == 0 || len >= SKB_HOST_MAX) {
        return "host is empty or too long";
    }

    if (skb_number(colon + 1, strlen(colon + 1), 65535, &n) != 0 || n == 0) {
        return "port must be 1..65535";
    }

    memcpy(host, value, len);
    host[len] = '\0';
    *port = (uint16_t) n;

    return NULL;
}


static const char *
skb_set_address(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    (void) setting;

    if (strncmp(value, "unix:", 5) == 0) {
        value += 5;

        if (value[0] == '\0' || strlen(value) >= SKB_SOCKET_MAX) {
            return "path is empty or longer than 107 bytes";
        }

        strcpy(config->redis.socket, value);

        return NULL;
    }

    return skb_host_port(value, config->redis.host, &config->redis.port);
}


static const char *
skb_set_socket(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    if (value[0] == '\0' || strlen(value) >= setting->max) {
        return "path is empty or longer than 107 bytes";
    }

    strcpy((char *) config + setting->offset, value);

    return NULL;
}


static const char *
skb_set_text(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    if (value[0] == '\0') {
        return "is empty";
    }

    if (strlen(value) >= setting->max) {
        return "is too long";
    }

    strcpy((char *) config + setting->offset, value);

    return NULL;
}


static const char *
skb_set_name(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    for (const char *p = value; *p != '\0'; p++) {
        if (*p <= ' ' || *p > '~') {
            return "printable characters without blanks expected";
        }
    }

    return skb_set_text(setting, config, value);
}


/* Braces would move the hash tag, and so the activity's slot. */
static const char *
skb_set_prefix(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    if (strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-")
        != strlen(value))
    {
        return "letters, digits and _ . : - expected";
    }

    return skb_set_text(setting, config, value);
}


static const char *
skb_set_number(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    uint64_t            n;
    uint32_t            small;
    static _Thread_local char  message[64];

    if (skb_number(value, strlen(value), setting->max, &n) != 0 || n < setting->min) {
        snprintf(message, sizeof(message), "a number in %lu..%lu expected",
                 (unsigned long) setting->min, (unsigned long) setting->max);
        return message;
    }

    small = (uint32_t) n;
    memcpy((char *) config + setting->offset, &small, sizeof(small));

    return NULL;
}


static const char *
skb_set_port(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    uint64_t  n;
    uint16_t  port;

    if (skb_number(value, strlen(value), setting->max, &n) != 0 || n < setting->min) {
        return "port must be 1..65535";
    }

    port = (uint16_t) n;
    memcpy((char *) config + setting->offset, &port, sizeof(port));

    return NULL;
}


static const char *
skb_duration(const skb_setting_t *setting, const char *value, uint64_t *ms)
{
    static _Thread_local char  message[96];

    if (skb_duration_parse(value, ms) != 0) {
        return "a time like 50ms, 10s, 5m or 1h expected";
    }

    if (*ms < setting->min || *ms > setting->max) {
        snprintf(message, sizeof(message), "a time of %lums to %lums expected",
                 (unsigned long) setting->min, (unsigned long) setting->max);
        return message;
    }

    return NULL;
}


static const char *
skb_set_duration(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    uint64_t     ms;
    uint32_t     small;
    const char  *wrong = skb_duration(setting, value, &ms);

    if (wrong == NULL) {
        small = (uint32_t) ms;
        memcpy((char *) config + setting->offset, &small, sizeof(small));
    }

    return wrong;
}


static const char *
skb_set_long(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    uint64_t     ms;
    const char  *wrong = skb_duration(setting, value, &ms);

    if (wrong == NULL) {
        memcpy((char *) config + setting->offset, &ms, sizeof(ms));
    }

    return wrong;
}


static const char *
skb_set_path(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    if (value[0] != '/') {
        return "an absolute path expected";
    }

    return skb_set_text(setting, config, value);
}


static const char *
skb_set_flag(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    uint32_t  on = strcmp(value, "on") == 0;

    if (!on && strcmp(value, "off") != 0) {
        return "on or off expected";
    }

    memcpy((char *) config + setting->offset, &on, sizeof(on));

    return NULL;
}


static const char *
skb_set_cancelled(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    static const char *const  names[] = { "none", "product", "activity" };

    (void) setting;

    for (int i = 0; i < 3; i++) {
        if (strcmp(value, names[i]) == 0) {
            config->consumer.cancelled_units = (skb_cancelled_e) i;
            return NULL;
        }
    }

    return "none, product or activity expected";
}


static const char *
skb_set_listen(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    const char      *wrong;
    struct in_addr   address;

    (void) setting;

    if (strcmp(value, "off") == 0) {
        config->http_host[0] = '\0';
        config->http_port = 0;
        return NULL;
    }

    wrong = skb_host_port(value, config->http_host, &config->http_port);

    if (wrong != NULL) {
        return wrong;
    }

    /* it tells about the shop to whoever asks */
    if (inet_pton(AF_INET, config->http_host, &address) != 1
        || (ntohl(address.s_addr) >> 24) != 127)
    {
        return "a loopback address like 127.0.0.1:9090 expected";
    }

    return NULL;
}


static const char *
skb_set_level(const skb_setting_t *setting, skb_config_t *config, const char *value)
{
    (void) setting;

    if (skb_log_level_parse(value, &config->log_level) != 0) {
        return "debug, info, notice, warn or error expected";
    }

    return NULL;
}
