/*
 * Quantity and units against the terms of the line's epoch, seq against the units
 * that were ever on sale.
 */

#include <inttypes.h>
#include <string.h>

#include "ctl_replay_check.h"
#include "skb_terms.h"


static int
ctl_replay_terms(ctl_t *ctl, const ctl_repair_t *repair, uint64_t epoch, uint64_t quantity,
    const char **why)
{
    char           error[SKB_ERROR_MAX];
    skb_terms_t    terms;

    switch (skb_terms_read(ctl_mysql(ctl), repair->books->activity, epoch, &terms, error,
                           sizeof(error)))
    {

    case SKB_TERMS_FAILED:
        return ctl_fail(ctl, CTL_UNREACHABLE, "MySQL: %s", error);

    case SKB_TERMS_NONE:
        *why = "not queued: no terms of its epoch are known";
        return CTL_FINE;

    default:
        if (quantity > terms.max_quantity) {
            *why = "not queued: more units than the terms of its epoch allow";
        }

        return CTL_FINE;
    }
}


/* each purchase takes a unit; a replay and a dead letter's retry may take a seq alone */
static int
ctl_replay_most(ctl_t *ctl, const ctl_repair_t *repair, uint64_t *most)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT COUNT(*) FROM seckill_stock_log WHERE activity_id = %" PRIu64
                 " AND kind IN ('replay', 'retry')", repair->books->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    *most = (column ? ctl_column_u64(column[0]) : 0) + repair->books->row.stock_limit
            + (uint64_t) (repair->books->resold > 0 ? repair->books->resold : 0);
    mysql_free_result(res);

    return CTL_FINE;
}


int
ctl_replay_check(ctl_t *ctl, const ctl_repair_t *repair, const ctl_finding_t *finding,
    int *fresh, const char **why)
{
    int                 rc;
    uint64_t            most, known;
    const ctl_books_t  *books;
    const ctl_trace_t  *trace;

    *why = NULL;
    books = repair->books;
    trace = finding->trace >= 0 ? &books->traces[finding->trace] : NULL;

    if (trace == NULL || (trace->kind != CTL_JOURNAL && trace->kind != CTL_MAYBE)) {
        return CTL_FINE;
    }

    if (trace->epoch > books->row.epoch) {
        *why = "not queued: MySQL does not know its epoch";
        return CTL_FINE;
    }

    rc = ctl_replay_terms(ctl, repair, trace->epoch ? trace->epoch : books->row.epoch,
                          trace->quantity, why);

    if (rc != CTL_FINE || *why) {
        return rc;
    }

    if (trace->kind == CTL_MAYBE) {
        *fresh = 1;
        return CTL_FINE;
    }

    rc = ctl_replay_most(ctl, repair, &most);
    if (rc != CTL_FINE) {
        return rc;
    }

    known = trace->epoch == books->live.epoch ? books->live.seq : 0;

    if (trace->seq > most && trace->seq > known) {
        *why = "not queued: its seq is above the units that were ever on sale";
    }

    /* the sale will give it to somebody else */
    if (trace->epoch == books->live.epoch && trace->seq > books->live.seq) {
        *fresh = 1;
    }

    return CTL_FINE;
}
