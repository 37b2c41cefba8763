/*
 * Redis' facts against what MySQL remembers of them: a seq that falls means
 * that purchases are gone.
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


static uint64_t
skd_fact(const redisReply *facts, size_t i)
{
    const redisReply  *fact = facts->element[i];

    return fact->type == REDIS_REPLY_STRING ? strtoull(fact->str, NULL, 10) : 0;
}


static void
skd_watch_facts(skd_care_t *care, const redisReply *reply)
{
    care->has_facts = reply->type == REDIS_REPLY_ARRAY && reply->elements == 4
                      && reply->element[0]->type == REDIS_REPLY_STRING;

    if (care->has_facts) {
        snprintf(care->state, sizeof(care->state), "%s", reply->element[0]->str);
        care->epoch = skd_fact(reply, 1);
        care->seq = skd_fact(reply, 2);
        care->end_ms = skd_fact(reply, 3);
    }
}


static skd_rc_e
skd_watch_pipe(skd_keeper_t *keeper, size_t first, size_t end)
{
    char           key[SK_KEY_MAX + 1];
    void          *reply;
    skd_rc_e       rc = SKD_OK, one;
    skd_reader_t  *reader = &keeper->reader;
    const char    *prefix = keeper->config->redis.prefix;
    skd_stream_t  *streams = keeper->activities.streams;

    for (size_t i = first; i < end; i++) {
        key[sk_key(key, prefix, strlen(prefix), SK_KEY_ACTIVITY, streams[i].activity, 0)] = '\0';

        if (redisAppendCommand(reader->redis, "HMGET %s state epoch seq end_ms", key)
            != REDIS_OK)
        {
            return skd_reader_failed(reader, NULL);
        }
    }

    for (size_t i = first; i < end; i++) {
        if (redisGetReply(reader->redis, &reply) != REDIS_OK) {
            return skd_reader_failed(reader, NULL);
        }

        one = SKD_OK;
        streams[i].care.unread = skb_redis_class(reply) != SKB_REDIS_FINE;

        if (streams[i].care.unread) {
            one = skd_reader_failed(reader, reply);

        } else {
            skd_watch_facts(&streams[i].care, reply);
        }

        freeReplyObject(reply);

        /* what can't be read is neither whole nor lost */
        if (one != SKD_OK) {
            one = skd_keeper_failed(keeper, SKD_DUTY_WATCH, streams[i].activity, one);
            rc = one != SKD_OK ? one : rc;
        }
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

    skd_sql_begin(sql, "SELECT id, status, epoch, seq_seen FROM seckill_activities "
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


/* Once for each loss. */
static void
skd_watch_alarm(skd_stream_t *stream, const char *status, long long seq)
{
    skd_care_t  *care = &stream->care;

    if (!care->lost) {
        care->lost = 1;
        skd_count(SKD_COUNT_PAUSED, 1);
        skb_log(SKB_ERROR, "Redis lost data of a sale, restore it",
                "activity=%" PRIu64 " state=%s epoch=%" PRIu64 " seq_seen=%" PRIu64
                " seq=%lld", stream->activity, status, care->row_epoch, care->seq_seen, seq);
    }
}


static skd_rc_e
skd_watch_pause(skd_keeper_t *keeper, skd_stream_t *stream)
{
    skd_rc_e      rc;
    skd_care_t   *care = &stream->care;
    skd_paused_t  paused;

    rc = skd_pause(&keeper->reader, stream->activity, care->row_epoch, care->seq_seen, &paused);

    if (rc != SKD_OK) {
        return rc;
    }

    if (strcmp(paused.status, "fine") == 0) {
        care->lost = 0;

    } else if (!care->ended) {
        skd_watch_alarm(stream, paused.status, paused.seq);
    }

    return SKD_OK;
}


static skd_rc_e
skd_watch_judge(skd_keeper_t *keeper, skd_stream_t *stream)
{
    skd_care_t  *care = &stream->care;

    if (!care->has_row || care->row_epoch == 0 || strcmp(care->state, "settled") == 0) {
        return SKD_OK;
    }

    if (!care->has_facts) {
        /* before the first purchase a preheat heals it */
        if (care->seq_seen == 0 || care->ended || care->lost) {
            return SKD_OK;
        }

        skd_watch_alarm(stream, "missing", 0);

        return skd_pause_raise(&keeper->reader);
    }

    if (care->epoch < care->row_epoch
        || (care->epoch == care->row_epoch && care->seq < care->seq_seen))
    {
        return skd_watch_pause(keeper, stream);
    }

    care->lost = 0;

    return care->epoch == care->row_epoch && care->seq > care->seq_seen
           ? skd_watch_remember(keeper, stream) : SKD_OK;
}


skd_rc_e
skd_keeper_watch(skd_keeper_t *keeper)
{
    size_t         n = keeper->activities.count, end;
    skd_rc_e       rc = SKD_OK;
    skd_stream_t  *stream;

    for (size_t i = 0; rc == SKD_OK && i < n; i = end) {
        end = i + SKD_WATCH_PIPE < n ? i + SKD_WATCH_PIPE : n;
        rc = skd_watch_pipe(keeper, i, end);
    }

    for (size_t i = 0; rc == SKD_OK && i < n; i = end) {
        end = i + SKD_WATCH_ROWS < n ? i + SKD_WATCH_ROWS : n;
        rc = skd_watch_rows(keeper, i, end);
    }

    /* one activity's own trouble keeps none of the others waiting */
    for (size_t i = 0; rc == SKD_OK && i < n; i++) {
        stream = &keeper->activities.streams[i];

        if (!stream->care.unread && !skd_trouble_aside(SKD_DUTY_WATCH, stream->activity)) {
            rc = skd_watch_judge(keeper, stream);
            rc = skd_keeper_failed(keeper, SKD_DUTY_WATCH, stream->activity, rc);
        }
    }

    return rc;
}
