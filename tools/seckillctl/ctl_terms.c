/*
 * Comparing terms and row.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ctl_terms.h"


int
ctl_terms_read(ctl_t *ctl, uint64_t activity, uint64_t epoch, skb_terms_t *terms, int *found)
{
    int          rc;
    char         error[CTL_MESSAGE_MAX / 2];
    skb_terms_e  how;

    rc = ctl_open_mysql(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    how = skb_terms_read(ctl_mysql(ctl), activity, epoch, terms, error, sizeof(error));
    *found = how == SKB_TERMS_DONE;

    if (how == SKB_TERMS_FAILED) {
        return ctl_fail(ctl, mysql_ping(ctl_mysql(ctl)) == 0 ? CTL_REFUSED : CTL_UNREACHABLE,
                        "%s", error);
    }

    return CTL_FINE;
}


static void ctl_edit(char edits[CTL_EDITS_MAX], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void
ctl_edit(char edits[CTL_EDITS_MAX], const char *fmt, ...)
{
    size_t   len;
    va_list  args;

    len = strlen(edits);

    if (len > 0 && len < CTL_EDITS_MAX - 3) {
        len += (size_t) snprintf(edits + len, CTL_EDITS_MAX - len, "; ");
    }

    va_start(args, fmt);
    vsnprintf(edits + len, CTL_EDITS_MAX - len, fmt, args);
    va_end(args);
}


static void
ctl_edit_time(char edits[CTL_EDITS_MAX], const char *name, int64_t was_ms, int64_t is_ms)
{
    char  was[CTL_TIME_MAX], is[CTL_TIME_MAX];

    if (was_ms != is_ms) {
        ctl_time_utc(was, was_ms);
        ctl_time_utc(is, is_ms);
        ctl_edit(edits, "%s %s, now %s", name, was, is);
    }
}


int
ctl_terms_same(const skb_terms_t *terms, const ctl_row_t *row, char edits[CTL_EDITS_MAX])
{
    edits[0] = '\0';

    if (strcmp(terms->price, row->price) != 0) {
        ctl_edit(edits, "price %s, now %s", terms->price, row->price);
    }

    if (terms->product != row->product_id) {
        ctl_edit(edits, "product %" PRIu64 ", now %" PRIu64, terms->product, row->product_id);
    }

    if (terms->max_quantity != row->max_quantity) {
        ctl_edit(edits, "max_quantity %" PRIu64 ", now %" PRIu64, terms->max_quantity,
                 row->max_quantity);
    }

    if (terms->by_registration != row->by_registration) {
        ctl_edit(edits, "by_registration %d, now %d", terms->by_registration,
                 row->by_registration);
    }

    ctl_edit_time(edits, "start", terms->start_ms, row->start_ms);
    ctl_edit_time(edits, "end", terms->end_ms, row->end_ms);

    return edits[0] == '\0';
}


int
ctl_terms_shown(const skb_terms_t *terms, const ctl_live_t *live, char edits[CTL_EDITS_MAX])
{
    ctl_row_t  row;

    memset(&row, 0, sizeof(row));
    row.product_id = live->product_id;
    row.max_quantity = live->max_quantity;
    row.by_registration = live->by_registration;
    row.start_ms = live->start_ms;
    row.end_ms = live->end_ms;
    snprintf(row.price, sizeof(row.price), "%s", live->price);

    return ctl_terms_same(terms, &row, edits);
}


void
ctl_terms_of_row(const ctl_row_t *row, uint64_t epoch, skb_terms_t *terms)
{
    memset(terms, 0, sizeof(*terms));
    terms->epoch = epoch;
    terms->product = row->product_id;
    snprintf(terms->price, sizeof(terms->price), "%s", row->price);
    terms->max_quantity = row->max_quantity;
    terms->by_registration = row->by_registration;
    terms->start_ms = row->start_ms;
    terms->end_ms = row->end_ms;
}


const char *
ctl_promise_word(const ctl_promise_t *promise)
{
    switch (promise->state) {

    case CTL_TERMS_EDITED:
        return "edited";

    case CTL_TERMS_SHOWN:
        return "shown";

    case CTL_TERMS_MISSING:
        return "missing";

    default:
        return "kept";
    }
}


int
ctl_promise_read(ctl_t *ctl, const ctl_live_t *live, const ctl_row_t *row,
    ctl_promise_t *promise)
{
    int          rc, found;
    skb_terms_t  terms;

    memset(promise, 0, sizeof(*promise));

    if (!row->exists || row->status == 2 || strcmp(live->state, "settled") == 0) {
        return CTL_FINE;
    }

    /* a preheat that was cut off is ahead in Redis */
    promise->epoch = live->exists && live->epoch > row->epoch ? live->epoch : row->epoch;

    if (promise->epoch == 0) {
        return CTL_FINE;
    }

    rc = ctl_terms_read(ctl, live->activity, promise->epoch, &terms, &found);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (!found && promise->epoch != row->epoch) {
        promise->state = CTL_TERMS_MISSING;
        return CTL_FINE;
    }

    /* a seckillctl of version 0.1.0 changes facts and leaves the epoch */
    if (found && live->exists && live->epoch == terms.epoch
        && !ctl_terms_shown(&terms, live, promise->edits))
    {
        promise->state = CTL_TERMS_SHOWN;
        return CTL_FINE;
    }

    if (live->now_ms < (live->exists ? live->start_ms : found ? terms.start_ms : row->start_ms)
        && live->seq == 0)
    {
        return CTL_FINE;
    }

    if (!found) {
        promise->state = CTL_TERMS_MISSING;

    } else if (!ctl_terms_same(&terms, row, promise->edits)) {
        promise->state = CTL_TERMS_EDITED;
    }

    return CTL_FINE;
}
