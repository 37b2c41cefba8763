/*
 * Rates and bursts as text.
 */

#include <string.h>

#include "sk_limit.h"


static int
sk_limit_number(const char *text, size_t len, uint32_t max, uint32_t *number)
{
    size_t    i;
    uint32_t  n;

    n = 0;

    for (i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }

        n = n * 10 + (uint32_t) (text[i] - '0');

        if (n > max) {
            return -1;
        }
    }

    *number = n;

    return len > 0 ? 0 : -1;
}


int
sk_rate_parse(const char *text, size_t len, uint32_t *interval_ms)
{
    uint32_t  rate, scale;

    if (len < 4 || memcmp(text + len - 3, "r/", 2) != 0) {
        return -1;
    }

    switch (text[len - 1]) {

    case 's':
        scale = 1000;
        break;

    case 'm':
        scale = 60000;
        break;

    default:
        return -1;
    }

    if (sk_limit_number(text, len - 3, SK_RATE_MAX, &rate) != 0 || rate == 0) {
        return -1;
    }

    *interval_ms = scale / rate;

    return 0;
}


int
sk_burst_parse(const char *text, size_t len, uint32_t *burst)
{
    return sk_limit_number(text, len, SK_BURST_MAX, burst);
}


int
sk_limit_parse(sk_limit_t *limit, const char *rate, size_t rate_len, const char *burst,
    size_t burst_len)
{
    if (sk_burst_parse(burst, burst_len, &limit->burst) != 0) {
        return -1;
    }

    if (rate_len == 3 && memcmp(rate, "off", 3) == 0) {
        limit->interval_ms = 0;
        return limit->burst == 0 ? 0 : -1;
    }

    return sk_rate_parse(rate, rate_len, &limit->interval_ms);
}
