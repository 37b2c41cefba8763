/*
 * key=value words in any order.  A word that comes twice is somebody's try.
 */

#include <stdio.h>
#include <string.h>

#include "ctl_old_line.h"
#include "sk_id.h"
#include "sk_purchase.h"

#define CTL_OLD_WORDS  6


int
ctl_old_line_parse(ctl_old_line_t *line, const char *text, size_t len)
{
    size_t          i, n;
    unsigned        found;
    const char     *at, *end, *word, *value, *space;
    sk_order_no_t   no;

    static const char *const  names[CTL_OLD_WORDS] = {
        "activity", "user", "seq", "epoch", "quantity", "redis_time"
    };

    uint64_t *const  numbers[CTL_OLD_WORDS] = {
        &line->activity, &line->user, &line->seq, &line->epoch, &line->quantity, &line->time_ms
    };

    found = 0;
    memset(line, 0, sizeof(*line));
    end = text + len;

    for (at = text; at < end; at = word + n + 1) {
        word = at;
        space = memchr(at, ' ', (size_t) (end - at));
        n = (size_t) ((space ? space : end) - at);
        value = memchr(word, '=', n);

        if (value == NULL) {
            continue;
        }

        value++;

        if ((size_t) (value - word) == sizeof("order_no=") - 1
            && memcmp(word, "order_no=", sizeof("order_no=") - 1) == 0
            && sk_order_no_parse(value, (size_t) (word + n - value), &no) == 0)
        {
            if (line->order_no[0]) {
                return -1;
            }

            memcpy(line->order_no, value, SK_ORDER_NO_LEN);
            continue;
        }

        for (i = 0; i < CTL_OLD_WORDS; i++) {
            if (strlen(names[i]) != (size_t) (value - word) - 1
                || memcmp(word, names[i], strlen(names[i])) != 0)
            {
                continue;
            }

            if ((found & (1u << i))
                || sk_id_parse(value, (size_t) (word + n - value), numbers[i]) != 0)
            {
                return -1;
            }

            found |= 1u << i;
        }
    }

    return found == (1u << CTL_OLD_WORDS) - 1 && line->order_no[0] != '\0'
           && line->quantity <= SK_QUANTITY_MAX ? 0 : -1;
}
