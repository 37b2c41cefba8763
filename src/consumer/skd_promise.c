/*
 * Rows beside the terms of their epoch.  A preheat that was cut off after Redis had
 * the new epoch is finished; a row that the shop edited amid its sale, and a sale
 * without terms, are alarms: nothing here changes what buyers get.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "skb_ledger.h"
#include "skb_log.h"
#include "skb_terms.h"
#include "skd_keeper.h"
#include "skd_promise.h"
#include "skd_rows.h"

#define SKD_PROMISE_ROWS    500         /* of one SELECT */
#define SKD_PROMISE_KEPT_MS 30000       /* an older picture is not shown */

typedef struct {
    uint64_t  activity;
    int       missing;                  /* else edited */
} skd_named_t;

static pthread_mutex_t  skd_named_mutex = PTHREAD_MUTEX_INITIALIZER;
static skd_named_t      skd_named[SKD_BACKLOGS_MAX];    /* under the mutex, as what follows */
static size_t           skd_named_count;
static int64_t          skd_named_ms;

static const char *const  skd_promise_names[] = {
    "price", "product", "max_quantity", "by_registration", "start", "end"
};


/* A statement about one activity was refused; its text is there. */
static skd_rc_e
skd_promise_failed(skd_writer_t *writer)
{
    writer->class = skb_mysql_class(writer->mysql);

    switch (writer->class) {
    case SKB_MYSQL_CONFLICT:
        return SKD_CONFLICT;
    case SKB_MYSQL_DUPLICATE:
    case SKB_MYSQL_DATA:
        return SKD_BLOCKED;
    default:
        return SKD_MYSQL_LOST;
    }
}


/* Redis has an epoch that has terms, and the row is behind. */
static skd_rc_e
skd_promise_finish(skd_keeper_t *keeper, skd_stream_t *stream)
{
    skd_care_t    *care = &stream->care;
    skd_writer_t  *writer = &keeper->writer;

    if (!care->has_facts || !care->has_row || care->ended || care->epoch <= care->row_epoch) {
        return SKD_OK;
    }

    switch (skb_terms_finish(writer->mysql, stream->activity, care->epoch, writer->error,
                             sizeof(writer->error)))
    {

    case SKB_TERMS_DONE:
        skb_log(SKB_NOTICE, "a preheat that was cut off is finished",
                "activity=%" PRIu64 " epoch=%" PRIu64, stream->activity, care->epoch);
        care->row_epoch = care->epoch;
        care->seq_seen = 0;
        return SKD_OK;

    case SKB_TERMS_NONE:
        return SKD_OK;

    default:
        return skd_promise_failed(writer);
    }
}


static void
skd_promise_words(char *buf, size_t size, unsigned edits)
{
    size_t  len = 0;

    buf[0] = '\0';

    for (size_t i = 0; i < sizeof(skd_promise_names) / sizeof(skd_promise_names[0]); i++) {
        if ((edits & (1u << i)) && len < size) {
            len += (size_t) snprintf(buf + len, size - len, "%s%s", len > 0 ? "," : "",
                                     skd_promise_names[i]);
        }
    }
}


static void
skd_promise_tell(skd_stream_t *stream, unsigned edits, int missing)
{
    char         words[96];
    skd_care_t  *care = &stream->care;

    if (edits != 0 && edits != care->edits) {
        skd_promise_words(words, sizeof(words), edits);
        skb_log(SKB_ERROR, "the row of a running sale was edited, buyers get what was promised",
                "activity=%" PRIu64 " epoch=%" PRIu64 " edited=%s", stream->activity,
                care->row_epoch, words);

    } else if (edits == 0 && care->edits != 0) {
        skb_log(SKB_NOTICE, "the row of a sale is as promised again", "activity=%" PRIu64,
                stream->activity);
    }

    if (missing && !care->unpromised) {
        skb_log(SKB_ERROR, "a sale has no terms, its orders wait",
                "activity=%" PRIu64 " epoch=%" PRIu64 " cure=\"seckillctl schema apply\"",
                stream->activity, care->has_facts && care->epoch > care->row_epoch
                                  ? care->epoch : care->row_epoch);
    }

    care->edits = edits;
    care->unpromised = missing;
}


/*
 * The last word of a preheat that was cut off: Redis had this epoch.  Without it a
 * sale that Redis loses later would look like one that was never there.
 */
static skd_rc_e
skd_promise_opened(skd_keeper_t *keeper, uint64_t activity, uint64_t product, uint64_t epoch)
{
    char            error[SKB_LEDGER_ERROR_MAX];
    skb_movement_t  opened = {
        activity, product, epoch, "open", "redis", 0, NULL, "seckilld", NULL
    };

    switch (skb_ledger_add(keeper->writer.mysql, &opened, error)) {

    case SKB_LEDGER_ADDED:
        skb_log(SKB_NOTICE, "the ledger did not know that Redis has the sale",
                "activity=%" PRIu64 " epoch=%" PRIu64, activity, epoch);
        return SKD_OK;

    case SKB_LEDGER_FAILED:
        snprintf(keeper->writer.error, sizeof(keeper->writer.error), "%s", error);
        return skd_promise_failed(&keeper->writer);

    default:
        return SKD_OK;
    }
}


/* Of the activities from first to end. */
static skd_rc_e
skd_promise_rows(skd_keeper_t *keeper, size_t first, size_t end, skd_named_t *named, size_t *n)
{
    int            missing;
    skd_rc_e       rc;
    unsigned       edits;
    MYSQL_ROW      row;
    MYSQL_RES     *res;
    skd_sql_t     *sql = &keeper->writer.sql;
    skd_stream_t  *stream;

    /* begun: by Redis' clock, which opens a sale */
    skd_sql_begin(sql, "SELECT a.id, t.epoch IS NULL, COALESCE((t.price <> a.seckill_price) "
                       "+ 2 * (t.product_id <> a.product_id) "
                       "+ 4 * (t.max_quantity <> a.max_quantity) "
                       "+ 8 * (t.by_registration <> (a.by_registration <> 0)) "
                       "+ 16 * (t.start_time <> a.start_time) "
                       "+ 32 * (t.end_time <> a.end_time), 0), a.epoch, "
                       "COALESCE(t.product_id, a.product_id), EXISTS (SELECT 1 "
                       "FROM seckill_stock_log AS l WHERE l.activity_id = a.id "
                       "AND l.epoch = a.epoch AND l.kind IN ('open', 'restore')) "
                       "FROM seckill_activities AS a "
                       "LEFT JOIN seckill_terms AS t ON t.activity_id = a.id "
                       "AND t.epoch = a.epoch WHERE a.status <> 2 AND a.epoch > 0 "
                       "AND COALESCE(t.start_time, a.start_time) <= '1970-01-01 00:00:00' "
                       "+ INTERVAL ");
    skd_sql_u64(sql, keeper->now_ms / 1000);
    skd_sql_text(sql, " SECOND AND a.id IN (");

    for (size_t i = first; i < end; i++) {
        skd_sql_text(sql, i > first ? "," : "");
        skd_sql_u64(sql, keeper->activities.streams[i].activity);
        keeper->activities.streams[i].care.judged = 0;
    }

    skd_sql_text(sql, ")");
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    while (rc == SKD_OK && (row = mysql_fetch_row(res)) != NULL) {
        stream = skd_activities_find(&keeper->activities, strtoull(row[0], NULL, 10));

        if (stream == NULL) {
            continue;
        }

        if (row[5][0] == '0' && stream->care.has_facts
            && stream->care.epoch == strtoull(row[3], NULL, 10))
        {
            rc = skd_promise_opened(keeper, stream->activity, strtoull(row[4], NULL, 10),
                                    stream->care.epoch);
            rc = skd_keeper_failed(keeper, SKD_DUTY_PROMISE, stream->activity, rc);
        }

        edits = (unsigned) strtoul(row[2], NULL, 10);
        missing = row[1][0] == '1'
                  || (stream->care.has_facts && stream->care.epoch > stream->care.row_epoch);
        stream->care.judged = 1;
        skd_promise_tell(stream, edits, missing);

        if ((missing || edits != 0) && *n < SKD_BACKLOGS_MAX) {
            named[(*n)++] = (skd_named_t) { stream->activity, missing };
        }
    }

    mysql_free_result(res);

    for (size_t i = first; rc == SKD_OK && i < end; i++) {
        if (!keeper->activities.streams[i].care.judged) {
            skd_promise_tell(&keeper->activities.streams[i], 0, 0);
        }
    }

    return rc;
}


skd_rc_e
skd_keeper_promise(skd_keeper_t *keeper)
{
    size_t         n = keeper->activities.count, end, count = 0;
    skd_rc_e       rc = SKD_OK;
    skd_named_t   *named = calloc(SKD_BACKLOGS_MAX, sizeof(skd_named_t));
    skd_stream_t  *stream;

    if (named == NULL) {
        snprintf(keeper->writer.error, sizeof(keeper->writer.error), "out of memory");
        return SKD_BLOCKED;
    }

    /* whatever is wrong with one: later, and the others now */
    for (size_t i = 0; rc == SKD_OK && i < n; i++) {
        stream = &keeper->activities.streams[i];

        if (!skd_trouble_aside(SKD_DUTY_PROMISE, stream->activity)) {
            rc = skd_promise_finish(keeper, stream);
            rc = skd_keeper_failed(keeper, SKD_DUTY_PROMISE, stream->activity, rc);
        }
    }

    for (size_t i = 0; rc == SKD_OK && i < n; i = end) {
        end = i + SKD_PROMISE_ROWS < n ? i + SKD_PROMISE_ROWS : n;
        rc = skd_promise_rows(keeper, i, end, named, &count);
    }

    if (rc == SKD_OK) {
        pthread_mutex_lock(&skd_named_mutex);
        memcpy(skd_named, named, count * sizeof(skd_named_t));
        skd_named_count = count;
        skd_named_ms = skd_now_ms();
        pthread_mutex_unlock(&skd_named_mutex);
    }

    free(named);

    return rc;
}


void
skd_promise_metrics(FILE *out)
{
    static const char *const  names[][2] = {
        { "seckilld_edited_terms", "The row was edited amid the sale, buyers get what was "
                                   "promised." },
        { "seckilld_missing_terms", "The sale has no terms, its orders wait." }
    };

    pthread_mutex_lock(&skd_named_mutex);

    for (int k = 0; k < 2; k++) {
        fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", names[k][0], names[k][1], names[k][0]);

        /* what is not known any more is not shown */
        for (size_t i = 0; skd_now_ms() - skd_named_ms < SKD_PROMISE_KEPT_MS
                           && i < skd_named_count; i++)
        {
            if (skd_named[i].missing == k) {
                fprintf(out, "%s{activity=\"%" PRIu64 "\"} 1\n", names[k][0],
                        skd_named[i].activity);
            }
        }
    }

    pthread_mutex_unlock(&skd_named_mutex);
}
