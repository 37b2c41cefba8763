/*
 * Text statements: one of 1000 rows costs a tenth of 1000 prepared ones.  What
 * buyers sent is escaped for the connection's character set, everything else
 * is digits.  Lists are cut at 500, below the size at which MariaDB turns an IN
 * list into a subquery.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_ledger.h"
#include "skd_clock.h"
#include "skd_rows.h"

#define SKD_LIST_MAX  500
#define SKD_SEQ_GAP   20               /* foreign rows read rather than one more statement */

/* Adds what an entry has in a list; returns 1 when it has something. */
typedef int (*skd_item_pt)(skd_writer_t *writer, skd_range_t *range, size_t i);

/* Takes a row of an answer. */
typedef void (*skd_row_pt)(skd_range_t *range, MYSQL_ROW row);

/* "SELECT ... WHERE activity_id = N AND <column> IN (items)": what stands before "(". */
typedef struct {
    const char  *head;
    uint64_t     activity;              /* goes between head and tail */
    const char  *tail;
} skd_select_t;


skd_rc_e
skd_rows_failed(skd_writer_t *writer)
{
    unsigned  number = mysql_errno(writer->mysql);

    writer->class = skb_mysql_class(writer->mysql);
    snprintf(writer->error, sizeof(writer->error), "%u %.200s", number,
             mysql_error(writer->mysql));

    if (skb_ledger_broken(writer->mysql)) {
        return SKD_BLOCKED;             /* no purchase's fault: nobody gets a dead letter */
    }

    switch (writer->class) {
    case SKB_MYSQL_CONFLICT:
        return SKD_CONFLICT;
    case SKB_MYSQL_DUPLICATE:
        return SKD_DUPLICATE;
    case SKB_MYSQL_TOO_LARGE:
    case SKB_MYSQL_DATA:
        return SKD_SPLIT;
    default:
        return SKD_MYSQL_LOST;
    }
}


skd_rc_e
skd_rows_run(skd_writer_t *writer, MYSQL_RES **res)
{
    skd_sql_t  *sql = &writer->sql;
    MYSQL_RES  *rows;

    if (res != NULL) {
        *res = NULL;
    }

    if (sql->overflow) {
        writer->class = SKB_MYSQL_TOO_LARGE;
        snprintf(writer->error, sizeof(writer->error),
                 "statement is larger than max_allowed_packet");
        return SKD_SPLIT;
    }

    if (mysql_real_query(writer->mysql, sql->text, (unsigned long) sql->len)) {
        return skd_rows_failed(writer);
    }

    rows = mysql_store_result(writer->mysql);

    if (rows == NULL && mysql_errno(writer->mysql) != 0) {
        return skd_rows_failed(writer);
    }

    writer->used_ms = skd_now_ms();

    if (writer->beat_ms != NULL) {
        atomic_store_explicit(writer->beat_ms, writer->used_ms, memory_order_relaxed);
    }

    if (res != NULL && rows != NULL) {
        *res = rows;
        return SKD_OK;
    }

    mysql_free_result(rows);

    return res != NULL ? skd_rows_failed(writer) : SKD_OK;
}


skd_rc_e
skd_rows_exec(skd_writer_t *writer, const char *text)
{
    skd_sql_begin(&writer->sql, text);

    return skd_rows_run(writer, NULL);
}


/* NULL columns count as 0: none of those read here may be NULL. */
static uint64_t
skd_column(const char *text)
{
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}


skd_rc_e
skd_rows_read_activity(skd_writer_t *writer, skd_activity_t *activity, int lock)
{
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    skd_sql_begin(&writer->sql, "SELECT stock_limit, sold, returned, epoch, reserved "
                                "FROM seckill_activities WHERE id = ");
    skd_sql_u64(&writer->sql, activity->id);
    skd_sql_text(&writer->sql, lock ? " FOR UPDATE" : "");

    rc = skd_rows_run(writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    row = mysql_fetch_row(res);

    if (row == NULL) {
        snprintf(writer->error, sizeof(writer->error), "the activity is not in MySQL");
        mysql_free_result(res);
        return SKD_BLOCKED;
    }

    activity->stock_limit = skd_column(row[0]);
    activity->sold = skd_column(row[1]);
    activity->returned = skd_column(row[2]);
    activity->epoch = skd_column(row[3]);
    activity->has_reserved = row[4] != NULL;
    activity->reserved = skd_column(row[4]);

    mysql_free_result(res);

    return SKD_OK;
}


static skd_rc_e
skd_rows_fetch(skd_writer_t *writer, skd_range_t *range, skd_row_pt take)
{
    skd_rc_e    rc;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    rc = skd_rows_run(writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        take(range, row);
    }

    mysql_free_result(res);

    return SKD_OK;
}


static void
skd_rows_begin_list(skd_writer_t *writer, const skd_select_t *select)
{
    skd_sql_begin(&writer->sql, select->head);
    skd_sql_u64(&writer->sql, select->activity);
    skd_sql_text(&writer->sql, select->tail);
}


/* Asks for all items of the range, 500 at a time. */
static skd_rc_e
skd_rows_select(skd_writer_t *writer, skd_range_t *range, const skd_select_t *select,
    skd_item_pt add, skd_row_pt take)
{
    size_t    n = 0, before, end = range->first + range->count;
    skd_rc_e  rc;

    for (size_t i = range->first; i < end; i++) {
        if (n == 0) {
            skd_rows_begin_list(writer, select);
        }

        before = writer->sql.len;
        skd_sql_text(&writer->sql, n == 0 ? "(" : ",");

        if (add(writer, range, i)) {
            n++;

        } else {
            writer->sql.len = before;
        }

        if (n == SKD_LIST_MAX || (n > 0 && i + 1 == end)) {
            skd_sql_text(&writer->sql, ")");
            rc = skd_rows_fetch(writer, range, take);

            if (rc != SKD_OK) {
                return rc;
            }

            n = 0;
        }
    }

    return SKD_OK;
}


static int
skd_add_user(skd_writer_t *writer, skd_range_t *range, size_t i)
{
    const skd_entry_t  *entry = &range->batch->entries[i];

    if (!entry->has_user || entry->owner != i) {
        return 0;
    }

    skd_sql_u64(&writer->sql, entry->message.user);

    return 1;
}


static void
skd_take_order(skd_range_t *range, MYSQL_ROW row)
{
    skd_entry_t  *owner = skd_range_owner(range, skd_column(row[0]));

    if (owner != NULL) {
        owner->order.exists = 1;
        owner->order.id = skd_column(row[1]);
        owner->order.epoch = skd_column(row[3]);
        owner->order.seq = skd_column(row[4]);
        snprintf(owner->order.number, sizeof(owner->order.number), "%s", row[2]);
    }
}


skd_rc_e
skd_rows_find_orders(skd_writer_t *writer, const skd_activity_t *activity, skd_range_t *range)
{
    /* an idle choice of idx_activity_id would read the whole sale for each batch */
    skd_select_t  select = {
        "SELECT user_id, id, order_no, epoch, seq FROM seckill_orders "
        "FORCE INDEX (uk_user_activity) WHERE activity_id = ", activity->id, " AND user_id IN "
    };

    return skd_rows_select(writer, range, &select, skd_add_user, skd_take_order);
}


static void
skd_take_record(skd_range_t *range, MYSQL_ROW row)
{
    skd_entry_t  *owner = skd_range_owner(range, skd_column(row[0]));

    if (owner != NULL) {
        owner->record = (skd_record_e) skd_column(row[1]);
    }
}


skd_rc_e
skd_rows_find_records(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range)
{
    skd_select_t  select = {
        "SELECT user_id, status FROM seckill_records FORCE INDEX (uk_user_activity) "
        "WHERE activity_id = ", activity->id, " AND user_id IN "
    };

    return skd_rows_select(writer, range, &select, skd_add_user, skd_take_record);
}


static int
skd_add_purchase(skd_writer_t *writer, skd_range_t *range, size_t i)
{
    const skd_entry_t  *entry = &range->batch->entries[i];

    if (entry->fault != NULL) {
        return 0;
    }

    skd_sql_text(&writer->sql, "(");
    skd_sql_u64(&writer->sql, entry->message.epoch);
    skd_sql_text(&writer->sql, ",");
    skd_sql_u64(&writer->sql, entry->message.seq);
    skd_sql_text(&writer->sql, ")");

    return 1;
}


static void
skd_take_purchase(skd_range_t *range, MYSQL_ROW row)
{
    skd_entry_t  *entry;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->fault == NULL && entry->message.epoch == skd_column(row[0])
            && entry->message.seq == skd_column(row[1])
            && entry->message.user != skd_column(row[2]))
        {
            entry->taken = 1;
        }
    }
}


skd_rc_e
skd_rows_find_taken(skd_writer_t *writer, const skd_activity_t *activity, skd_range_t *range)
{
    skd_entry_t   *entries = range->batch->entries;
    skd_select_t   select = {
        "SELECT epoch, seq, user_id FROM seckill_orders FORCE INDEX (uk_purchase) "
        "WHERE activity_id = ", activity->id, " AND (epoch, seq) IN "
    };

    for (size_t i = range->first; i < range->first + range->count; i++) {
        for (size_t k = range->first; k < i && entries[i].fault == NULL; k++) {
            if (entries[k].fault == NULL && !entries[k].taken
                && entries[k].message.epoch == entries[i].message.epoch
                && entries[k].message.seq == entries[i].message.seq
                && entries[k].message.user != entries[i].message.user)
            {
                entries[i].taken = 1;
            }
        }
    }

    return skd_rows_select(writer, range, &select, skd_add_purchase, skd_take_purchase);
}


/* The row that an entry with outcome SKD_INSERT becomes. */
static void
skd_add_order(skd_writer_t *writer, const skd_activity_t *activity, const skd_entry_t *entry)
{
    skd_sql_t           *sql = &writer->sql;
    const sk_message_t  *message = &entry->message;
    const skd_terms_t   *terms = skd_activity_terms(activity, message->epoch);

    skd_sql_text(sql, "('");
    skd_sql_bytes(sql, entry->number, SK_ORDER_NO_LEN);         /* digits */
    skd_sql_text(sql, "',");
    skd_sql_u64(sql, message->user);
    skd_sql_text(sql, ",");
    skd_sql_u64(sql, terms->product);
    skd_sql_text(sql, ",");
    skd_sql_u64(sql, activity->id);
    skd_sql_text(sql, ",");
    skd_sql_text(sql, terms->price);
    skd_sql_text(sql, ",");
    skd_sql_u64(sql, message->quantity);
    skd_sql_text(sql, ",");
    skd_sql_quote(sql, writer->mysql, message->ext, message->ext_len);
    skd_sql_text(sql, ",");
    skd_sql_quote(sql, writer->mysql, message->request_id, strlen(message->request_id));
    skd_sql_text(sql, ",");
    skd_sql_u64(sql, message->epoch);
    skd_sql_text(sql, ",");
    skd_sql_u64(sql, message->seq);
    skd_sql_text(sql, ")");
}


skd_rc_e
skd_rows_insert_orders(skd_writer_t *writer, const skd_activity_t *activity,
    skd_range_t *range, uint64_t *first_id)
{
    size_t              n = 0;
    skd_rc_e            rc;
    const skd_entry_t  *entry;

    skd_sql_begin(&writer->sql, "INSERT INTO seckill_orders (order_no, user_id, product_id, "
                  "activity_id, seckill_price, quantity, ext, request_id, epoch, seq) "
                  "VALUES ");

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->outcome == SKD_INSERT) {
            skd_sql_text(&writer->sql, n++ > 0 ? "," : "");
            skd_add_order(writer, activity, entry);
        }
    }

    rc = skd_rows_run(writer, NULL);
    *first_id = rc == SKD_OK ? mysql_insert_id(writer->mysql) : 0;

    return rc;
}


/* Reads the ids of those in inserted from first to end, whose seqs are close together. */
static skd_rc_e
skd_rows_find_run(skd_writer_t *writer, const skd_activity_t *activity,
    skd_batch_t *batch, size_t first, size_t end)
{
    skd_rc_e      rc;
    MYSQL_ROW     row;
    MYSQL_RES    *res;
    skd_sql_t    *sql = &writer->sql;
    skd_entry_t  *entry = &batch->entries[batch->inserted[first]];

    skd_sql_begin(sql, "SELECT seq, id FROM seckill_orders FORCE INDEX (uk_purchase) "
                       "WHERE activity_id = ");
    skd_sql_u64(sql, activity->id);
    skd_sql_text(sql, " AND epoch = ");
    skd_sql_u64(sql, entry->message.epoch);
    skd_sql_text(sql, " AND seq BETWEEN ");
    skd_sql_u64(sql, entry->message.seq);
    skd_sql_text(sql, " AND ");
    skd_sql_u64(sql, batch->entries[batch->inserted[end - 1]].message.seq);
    skd_sql_text(sql, " ORDER BY seq");

    rc = skd_rows_run(writer, &res);

    if (rc != SKD_OK) {
        return rc;
    }

    while (first < end && (row = mysql_fetch_row(res)) != NULL) {
        entry = &batch->entries[batch->inserted[first]];

        if (skd_column(row[0]) == entry->message.seq) {
            batch->entries[entry->owner].order.id = skd_column(row[1]);
            first++;
        }
    }

    mysql_free_result(res);

    if (first < end) {
        snprintf(writer->error, sizeof(writer->error), "order %s can't be read back",
                 batch->entries[batch->inserted[first]].number);
        return SKD_BLOCKED;
    }

    return SKD_OK;
}


/* By the purchase, not by order_no: a batch is one short stretch of that index. */
static skd_rc_e
skd_rows_read_ids(skd_writer_t *writer, const skd_activity_t *activity, skd_range_t *range)
{
    size_t               first = 0;
    skd_rc_e             rc;
    skd_batch_t         *batch = range->batch;
    const sk_message_t  *last, *next;

    skd_range_sort_inserts(range);

    for (size_t i = 1; i <= batch->inserts; i++) {
        if (i < batch->inserts) {
            last = &batch->entries[batch->inserted[i - 1]].message;
            next = &batch->entries[batch->inserted[i]].message;

            if (next->epoch == last->epoch && next->seq - last->seq <= SKD_SEQ_GAP) {
                continue;
            }
        }

        rc = skd_rows_find_run(writer, activity, batch, first, i);

        if (rc != SKD_OK) {
            return rc;
        }

        first = i;
    }

    return SKD_OK;
}


skd_rc_e
skd_rows_find_ids(skd_writer_t *writer, const skd_activity_t *activity, skd_range_t *range,
    uint64_t first_id)
{
    skd_rc_e      rc;
    uint64_t      last_id;
    skd_batch_t  *batch = range->batch;
    skd_entry_t  *entry;

    skd_range_list_inserts(range);
    rc = skd_rows_find_run(writer, activity, batch, batch->inserts - 1, batch->inserts);

    if (rc != SKD_OK) {
        return rc;
    }

    entry = &batch->entries[batch->inserted[batch->inserts - 1]];
    last_id = batch->entries[entry->owner].order.id;

    /*
     * The ids of one statement rise from row to row.  As many of them as there
     * are numbers from the first to the last: none is left out.  Servers may
     * count in larger steps, then all are read.
     */
    if (first_id == 0 || last_id - first_id != batch->inserts - 1) {
        return skd_rows_read_ids(writer, activity, range);
    }

    for (size_t i = 0; i < batch->inserts; i++) {
        entry = &batch->entries[batch->inserted[i]];
        batch->entries[entry->owner].order.id = first_id + i;
    }

    return SKD_OK;
}


skd_rc_e
skd_rows_add_sold(skd_writer_t *writer, const skd_activity_t *activity,
    const skd_range_t *range, uint64_t units)
{
    uint64_t            seq = 0;
    skd_rc_e            rc;
    const skd_entry_t  *entry;

    for (size_t i = range->first; i < range->first + range->count; i++) {
        entry = &range->batch->entries[i];

        if (entry->outcome == SKD_INSERT && entry->message.epoch == activity->epoch
            && entry->message.seq > seq)
        {
            seq = entry->message.seq;
        }
    }

    skd_sql_begin(&writer->sql, "UPDATE seckill_activities SET sold = sold + ");
    skd_sql_u64(&writer->sql, units);
    skd_sql_text(&writer->sql, ", seq_seen = GREATEST(seq_seen, ");
    skd_sql_u64(&writer->sql, seq);
    skd_sql_text(&writer->sql, "), status = IF(status = 0, 1, status) WHERE id = ");
    skd_sql_u64(&writer->sql, activity->id);
    skd_sql_text(&writer->sql, " AND sold + returned + ");
    skd_sql_u64(&writer->sql, units);
    skd_sql_text(&writer->sql, " <= LEAST(stock_limit, COALESCE(reserved, stock_limit)) "
                               "AND epoch = ");
    skd_sql_u64(&writer->sql, activity->epoch);

    rc = skd_rows_run(writer, NULL);

    if (rc == SKD_OK && mysql_affected_rows(writer->mysql) != 1) {
        snprintf(writer->error, sizeof(writer->error), "the activity has changed meanwhile");
        rc = SKD_DUPLICATE;
    }

    return rc;
}
