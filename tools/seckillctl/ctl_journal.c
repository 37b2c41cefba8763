/*
 * The nodes' journals: one line per accepted purchase, written by nginx with
 *
 *   log_format seckill '$time_iso8601 activity=$seckill_activity user=... ';
 *
 * Only key=value words count, in any order; unknown ones are passed over.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_books.h"
#include "sk_id.h"
#include "sk_purchase.h"

#define CTL_BAD_LINES  3                /* told one by one */
#define CTL_LINE_MAX   16384            /* bytes; longer ones are bad */

enum {
    CTL_LINE_ACTIVITY,
    CTL_LINE_USER,
    CTL_LINE_SEQ,
    CTL_LINE_EPOCH,
    CTL_LINE_QUANTITY,
    CTL_LINE_TIME,
    CTL_LINE_NUMBERS
};

typedef struct {
    uint64_t  numbers[CTL_LINE_NUMBERS];
    char      order_no[SK_ORDER_NO_LEN + 1];
} ctl_line_t;


/* Returns 0, or -1: the line is not whole. */
static int
ctl_line_parse(ctl_line_t *line, char *text)
{
    char           *word, *value, *rest;
    size_t          i;
    unsigned        found;
    sk_order_no_t   no;

    static const char *const  names[CTL_LINE_NUMBERS] = {
        "activity", "user", "seq", "epoch", "quantity", "redis_time"
    };

    found = 0;
    memset(line, 0, sizeof(*line));

    for (word = strtok_r(text, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
        value = strchr(word, '=');

        if (value == NULL) {
            continue;
        }

        *value++ = '\0';

        if (strcmp(word, "order_no") == 0
            && sk_order_no_parse(value, strlen(value), &no) == 0)
        {
            memcpy(line->order_no, value, sizeof(line->order_no));
            continue;
        }

        for (i = 0; i < CTL_LINE_NUMBERS; i++) {
            if (strcmp(word, names[i]) == 0
                && sk_id_parse(value, strlen(value), &line->numbers[i]) == 0)
            {
                found |= 1u << i;
            }
        }
    }

    return found == (1u << CTL_LINE_NUMBERS) - 1 && line->order_no[0] != '\0'
           && line->numbers[CTL_LINE_QUANTITY] <= SK_QUANTITY_MAX ? 0 : -1;
}


/* nothing new: the user's fate is known, or this purchase was seen */
static int
ctl_line_known(const ctl_books_t *books, const ctl_line_t *line, const ctl_person_t *person)
{
    uint32_t            at;
    const ctl_trace_t  *trace;

    /* accepted after the books were opened, or in this very moment */
    if (books->live.exists && line->numbers[CTL_LINE_EPOCH] == books->live.epoch
        && line->numbers[CTL_LINE_TIME] + books->grace_ms > (uint64_t) books->live.now_ms)
    {
        return 1;
    }

    if (person == NULL) {
        return 0;
    }

    if (person->flags & (CTL_ORDERED | CTL_TOMB)) {
        return 1;
    }

    for (at = person->trace; at; at = trace->next) {
        trace = &books->traces[at - 1];

        if (trace->epoch == line->numbers[CTL_LINE_EPOCH]
            && trace->seq == line->numbers[CTL_LINE_SEQ])
        {
            return 1;
        }
    }

    return 0;
}


static int
ctl_books_line(ctl_t *ctl, ctl_books_t *books, const ctl_line_t *line)
{
    ctl_trace_t  *trace;

    if (line->numbers[CTL_LINE_ACTIVITY] != books->activity
        || ctl_line_known(books, line, ctl_person(&books->people, line->numbers[CTL_LINE_USER],
                                                  0)))
    {
        return CTL_FINE;
    }

    trace = ctl_books_trace(ctl, books, line->numbers[CTL_LINE_USER]);
    if (trace == NULL) {
        return CTL_REFUSED;
    }

    trace->kind = CTL_JOURNAL;
    trace->epoch = line->numbers[CTL_LINE_EPOCH];
    trace->seq = line->numbers[CTL_LINE_SEQ];
    trace->accepted_ms = line->numbers[CTL_LINE_TIME];
    trace->quantity = (uint32_t) line->numbers[CTL_LINE_QUANTITY];
    memcpy(trace->order_no, line->order_no, sizeof(trace->order_no));

    return CTL_FINE;
}


int
ctl_books_journal(ctl_t *ctl, ctl_books_t *books, const char *path)
{
    int          rc;
    FILE        *file;
    char         text[CTL_LINE_MAX];
    size_t       lines, bad;
    ctl_line_t   line;

    file = fopen(path, "re");

    if (file == NULL) {
        return ctl_fail(ctl, CTL_USAGE, "journal \"%s\": %s", path, strerror(errno));
    }

    rc = CTL_FINE;
    lines = bad = 0;

    while (rc == CTL_FINE && fgets(text, sizeof(text), file)) {
        lines++;

        if (ctl_line_parse(&line, text) == 0) {
            rc = ctl_books_line(ctl, books, &line);

        } else if (bad++ < CTL_BAD_LINES) {
            ctl_warn("%s:%zu is no line of a journal", path, lines);
        }
    }

    if (rc == CTL_FINE && ferror(file)) {
        rc = ctl_fail(ctl, CTL_USAGE, "journal \"%s\": %s", path, strerror(errno));
    }

    if (bad > CTL_BAD_LINES) {
        ctl_warn("%s has %zu such lines", path, bad);
    }

    (void) fclose(file);

    return rc;
}
