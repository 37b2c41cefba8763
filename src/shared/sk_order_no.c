
/*
 * The number on an order.  Dates are computed here and not by gmtime():
 * lua/admit.lua has no such call, and both must agree to the digit.
 */


#include "sk_order_no.h"


#define SK_DAY_MS         86400000u
#define SK_ERA_DAYS       146097u       /* of 400 years */
#define SK_EPOCH_DAY      719468u       /* 1970-01-01, counted from 0000-03-01 */


typedef struct {
    unsigned  year;
    unsigned  month;
    unsigned  day;
} sk_date_t;


static char *sk_order_no_put(char *p, uint64_t n, unsigned digits);
static uint64_t sk_order_no_get(const char **p, unsigned digits);
static void sk_date_from_days(sk_date_t *date, uint64_t days);
static uint64_t sk_date_to_days(const sk_date_t *date);
static unsigned sk_date_month_days(const sk_date_t *date);


void
sk_order_no_format(char *buf, const sk_order_no_t *no)
{
    unsigned   ms;
    sk_date_t  date;

    sk_date_from_days(&date, no->accepted_ms / SK_DAY_MS);
    ms = (unsigned) (no->accepted_ms % SK_DAY_MS);

    buf = sk_order_no_put(buf, date.year % 100, 2);
    buf = sk_order_no_put(buf, date.month, 2);
    buf = sk_order_no_put(buf, date.day, 2);
    buf = sk_order_no_put(buf, ms / 3600000, 2);
    buf = sk_order_no_put(buf, ms / 60000 % 60, 2);
    buf = sk_order_no_put(buf, ms / 1000 % 60, 2);
    buf = sk_order_no_put(buf, ms % 1000, 3);
    buf = sk_order_no_put(buf, no->activity, 6);
    buf = sk_order_no_put(buf, no->seq, 7);
    (void) sk_order_no_put(buf, no->user, 4);
}


int
sk_order_no_parse(const char *text, size_t len, sk_order_no_t *no)
{
    size_t     i;
    uint64_t   hour, minute, second, ms;
    sk_date_t  date;

    if (len != SK_ORDER_NO_LEN) {
        return -1;
    }

    for (i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return -1;
        }
    }

    date.year = 2000 + (unsigned) sk_order_no_get(&text, 2);
    date.month = (unsigned) sk_order_no_get(&text, 2);
    date.day = (unsigned) sk_order_no_get(&text, 2);
    hour = sk_order_no_get(&text, 2);
    minute = sk_order_no_get(&text, 2);
    second = sk_order_no_get(&text, 2);
    ms = sk_order_no_get(&text, 3);

    if (date.month < 1 || date.month > 12 || date.day < 1
        || date.day > sk_date_month_days(&date)
        || hour > 23 || minute > 59 || second > 59)
    {
        return -1;
    }

    no->accepted_ms = sk_date_to_days(&date) * SK_DAY_MS
                      + ((hour * 60 + minute) * 60 + second) * 1000 + ms;
    no->activity = sk_order_no_get(&text, 6);
    no->seq = sk_order_no_get(&text, 7);
    no->user = sk_order_no_get(&text, 4);

    return 0;
}


/* The last digits of n, with leading zeros. */

static char *
sk_order_no_put(char *p, uint64_t n, unsigned digits)
{
    unsigned  i;

    for (i = digits; i > 0; i--) {
        p[i - 1] = (char) ('0' + n % 10);
        n /= 10;
    }

    return p + digits;
}


static uint64_t
sk_order_no_get(const char **p, unsigned digits)
{
    uint64_t  n;

    for (n = 0; digits > 0; digits--) {
        n = n * 10 + (uint64_t) (*(*p)++ - '0');
    }

    return n;
}


/* Years begin in March, so that the leap day is the last of its year. */

static void
sk_date_from_days(sk_date_t *date, uint64_t days)
{
    uint64_t  era, day, year, month;

    days += SK_EPOCH_DAY;
    era = days / SK_ERA_DAYS;
    day = days % SK_ERA_DAYS;
    year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    month = (5 * day + 2) / 153;

    date->day = (unsigned) (day - (153 * month + 2) / 5 + 1);
    date->month = (unsigned) (month < 10 ? month + 3 : month - 9);
    date->year = (unsigned) (year + era * 400 + (date->month <= 2));
}


static uint64_t
sk_date_to_days(const sk_date_t *date)
{
    uint64_t  year, month, day;

    year = date->year - (date->month <= 2);
    month = date->month > 2 ? date->month - 3 : date->month + 9;
    day = (153 * month + 2) / 5 + date->day - 1;

    return 365 * year + year / 4 - year / 100 + year / 400 + day - SK_EPOCH_DAY;
}


static unsigned
sk_date_month_days(const sk_date_t *date)
{
    static const unsigned char  days[] = {
        31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
    };

    /* 2000 is a leap year, and no other century is in range */
    if (date->month == 2 && date->year % 4 == 0) {
        return 29;
    }

    return days[date->month - 1];
}
