/*
 * Redis' facts and keys against what MySQL remembers of them: a seq that falls
 * means that purchases are gone, a key that is missing that more is gone.  MySQL is
 * read first, so that what it knows is never newer than what Redis is asked for.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_log.h"
#include "skd_keeper.h"
#include "skd_pause.h"
#include "skd_rows.h"

#define SKD_WATCH_PIPE  256             /* activities of one write */
#define SKD_WATCH_ROWS  500             /* of one SELECT */


static void
skd_watch_seen(const skd_care_t *care, skd_seen_t *seen)
{
    memset(seen, 0, sizeof(*seen));

    /* what is settled in MySQL loses its keys in time: no loss */
    if (care->has_row && !care->ended) {
        seen->epoch = care->row_epoch;
        seen->seq = care->seq_seen;
        seen->has_orders = care->sold;
    }
}


static void
skd_watch_care(skd_care_t *care, const skd_paused_t *paused)
{
    care->has_facts = strcmp(paused->status, "missing") != 0;
    care->surplus = paused->surplus > 0 ? care->surplus : 0;
    snprintf(care->missing, sizeof(care->missing), "%s", paused->lost);

    if (care->has_facts) {
        snprintf(care->state, sizeof(care->state), "%s", paused->state);
        care->epoch = paused->epoch;
        care->seq = paused->seq;
        care->end_ms = paused->end_ms;
        care->expire_ms = paused->expire_ms;
    }
}


/* More buyers than were counted is no loss: somebody wrote into the set. */
static void
skd_watch_surplus(skd_stream_t *stream, const skd_paused_t *paused)
{
    if (paused->surplus > 0 && !stream->care.surplus) {
        stream->care.surplus = 1;
        skd_count(SKD_COUNT_SURPLUS, 1);
        skb_log(SKB_ERROR, "a sale has more buyers than it counted, reconcile it",
                "activity=%" PRIu64 " surplus=%lld", stream->activity, paused->surplus);
    }
}


/* What can't be read is neither whole nor lost: its facts are damaged, or a key is. */
static skd_rc_e
skd_watch_take(skd_keeper_t *keeper, skd_stream_t *stream, skd_rc_e rc,
    const skd_paused_t *paused)
{
    stream->care.unread = rc != SKD_OK;

    if (rc != SKD_OK) {
        return skd_keeper_failed(keeper, SKD_DUTY_WATCH, stream->activity, rc);
    }

    skd_watch_surplus(stream, paused);
    skd_watch_care(&stream->care, paused);
    keeper->tell |= strcmp(paused->status, "paused") == 0;

    return SKD_OK;
}


/* The first one alone: it makes the server know the script. */
static skd_rc_e
skd_watch_pipe(skd_keeper_t *keeper, size_t first, size_t end)
{
    skd_rc_e       rc;
    skd_seen_t     seen;
    skd_paused_t   paused;
    skd_reader_t  *reader = &keeper->reader;
    skd_stream_t  *streams = keeper->activities.streams;

    skd_watch_seen(&streams[first].care, &seen);
    rc = skd_pause(reader, streams[first].activity, &seen, &paused);
    rc = skd_watch_take(keeper, &streams[first], rc, &paused);

    for (size_t i = first + 1; rc == SKD_OK && i < end; i++) {
        skd_watch_seen(&streams[i].care, &seen);
        rc = skd_pause_ask(reader, streams[i].activity, &seen);
    }

    for (size_t i = first + 1; rc == SKD_OK && i < end; i++) {
        rc = skd_watch_take(keeper, &streams[i], skd_pause_take(reader, &paused), &paused);
    }

    return rc;
}


static skd_rc_e
skd_watch_rows(skd_keeper_t *keeper, size_t first, size_t end)
{
    skd_rc_e       rc;
    MYSQL_ROW      row;
    MYSQL_RES     *res;
    skd_sql_t     *sql = &keeper->writer.sql;
    skd_stream_t  *stream;

    skd_sql_begin(sql, "SELECT id, status, epoch, seq_seen, sold FROM seckill_activities "
                       "WHERE id IN (");

    for (size_t i = first; i < end; i++) {
        keeper->activities.streams[i].care.has_row = 0;
        skd_sql_text(sql, i > first ? "," : "");
        skd_sql_u64(sql, keeper->activities.streams[i].activity);
    }

    skd_sql_text(sql, ")");
    rc = skd_rows_run(&keeper->writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        stream = skd_activities_find(&keeper->activities, strtoull(row[0], NULL, 10));

        if (stream != NULL) {
            stream->care.has_row = 1;
            stream->care.ended = row[1][0] == '2';
            stream->care.row_epoch = strtoull(row[2], NULL, 10);
            stream->care.seq_seen = strtoull(row[3], NULL, 10);
            stream->care.sold = row[4][0] != '0';
        }
    }

    mysql_free_result(res);

    return SKD_OK;
}


static skd_rc_e
skd_watch_remember(skd_keeper_t *keeper, const skd_stream_t *stream)
{
    skd_sql_t  *sql = &keeper->writer.sql;

    skd_sql_begin(sql, "UPDATE seckill_activities SET seq_seen = GREATEST(seq_seen, ");
    skd_sql_u64(sql, stream->care.seq);
    skd_sql_text(sql, ") WHERE id = ");
    skd_sql_u64(sql, stream->activity);
    skd_sql_text(sql, " AND epoch = ");
    skd_sql_u64(sql, stream->care.epoch);

    return skd_rows_run(&keeper->writer, NULL);
}


/* Once for each loss: again only when something else is missing. */
static void
skd_watch_alarm(skd_stream_t *stream, const char *state, const char *words, const char *cure)
{
    skd_care_t  *care = &stream->care;

    if (strcmp(care->lost, care->missing) == 0) {
        return;
    }

    snprintf(care->lost, sizeof(care->lost), "%s", care->missing);
    skd_count(SKD_COUNT_PAUSED, 1);
    skb_log(SKB_ERROR, words, "activity=%" PRIu64 " state=%s lost=%s epoch=%" PRIu64
            " seq_seen=%" PRIu64 " seq=%" PRIu64 " cure=\"%s %" PRIu64 "\"", stream->activity,
            state, care->missing, care->row_epoch, care->seq_seen,
            care->has_facts ? care->seq : 0, cure, stream->activity);
}


static void
skd_watch_found(skd_stream_t *stream)
{
    skd_care_t  *care = &stream->care;

    if (care->lost[0] != '\0') {
        care->lost[0] = '\0';
        skb_log(SKB_NOTICE, "sale is whole again", "activity=%" PRIu64, stream->activity);
    }
}


static skd_rc_e
skd_watch_judge(skd_keeper_t *keeper, skd_stream_t *stream)
{
    int          known;
    skd_care_t  *care = &stream->care;

    if (!care->has_row || care->row_epoch == 0 || care->ended
        || (care->has_facts && strcmp(care->state, "settled") == 0))
    {
        care->missing[0] = '\0';
        return SKD_OK;
    }

    if (!care->has_facts) {
        known = care->seq_seen > 0 || care->sold;

        /* a preheat that was cut off has put nothing there yet */
        if (!known && !care->opened) {
            care->missing[0] = '\0';
            return SKD_OK;
        }

        keeper->tell |= strcmp(care->lost, care->missing) != 0;
        skd_watch_alarm(stream, "missing", known ? "Redis lost data of a sale, restore it"
                        : "Redis lost a sale that has not begun, preheat it",
                        known ? "seckillctl restore" : "seckillctl preheat");
        return SKD_OK;
    }

    if (strcmp(care->missing, "eligible") == 0) {
        skd_watch_alarm(stream, care->state, "registered users of a sale are missing in Redis, "
                        "load them again", "load seckill:eligible of");
        return SKD_OK;
    }

    if (care->missing[0] != '\0') {
        skd_watch_alarm(stream, care->state, "Redis lost data of a sale, restore it",
                        "seckillctl restore");
        return SKD_OK;
    }

    skd_watch_found(stream);

    return care->epoch == care->row_epoch && care->seq > care->seq_seen
           ? skd_watch_remember(keeper, stream) : SKD_OK;
}


/* What the metrics say of all of them. */
static void
skd_watch_count(const skd_keeper_t *keeper)
{
    int64_t            n[SKD_MISSES] = { 0 };
    const skd_care_t  *care;

    for (size_t i = 0; i < keeper->activities.count; i++) {
        care = &keeper->activities.streams[i].care;

        for (int k = 0; k < SKD_MISSES; k++) {
            n[k] += strstr(care->missing, skd_miss_name((skd_miss_e) k)) != NULL;
        }
    }

    skd_misses_set(n);
}


skd_rc_e
skd_keeper_watch(skd_keeper_t *keeper)
{
    size_t         n = keeper->activities.count, end;
    skd_rc_e       rc = SKD_OK;
    skd_stream_t  *stream;

    keeper->tell = 0;

    for (size_t i = 0; rc == SKD_OK && i < n; i = end) {
        end = i + SKD_WATCH_ROWS < n ? i + SKD_WATCH_ROWS : n;
        rc = skd_watch_rows(keeper, i, end);
    }

    for (size_t i = 0; rc == SKD_OK && i < n; i = end) {
        end = i + SKD_WATCH_PIPE < n ? i + SKD_WATCH_PIPE : n;
        rc = skd_watch_pipe(keeper, i, end);
    }

    /* one activity's own trouble keeps none of the others waiting */
    for (size_t i = 0; rc == SKD_OK && i < n; i++) {
        stream = &keeper->activities.streams[i];

        if (!stream->care.unread && !skd_trouble_aside(SKD_DUTY_WATCH, stream->activity)) {
            rc = skd_watch_judge(keeper, stream);
            rc = skd_keeper_failed(keeper, SKD_DUTY_WATCH, stream->activity, rc);
        }
    }

    if (rc == SKD_OK) {
        skd_watch_count(keeper);

    } else {
        skd_misses_set(NULL);
    }

    return rc == SKD_OK && keeper->tell ? skd_pause_raise(&keeper->reader) : rc;
}
