/*
 * The MySQL half of the books: one snapshot, in pages along an index.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_books.h"
#include "sk_id.h"

#define CTL_ROWS  10000                 /* of one answer */

/* Takes a row whose first column is its id; CTL_FINE or a code after reporting. */
typedef int (*ctl_take_pt)(ctl_t *ctl, ctl_books_t *books, MYSQL_ROW column);


static int
ctl_books_pages(ctl_t *ctl, ctl_books_t *books, const char *columns, const char *table,
    const char *where, ctl_take_pt take)
{
    int        rc;
    uint64_t   id, rows;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    id = 0;

    do {
        rc = ctl_sql(ctl, &res, "SELECT id, %s FROM %s WHERE activity_id = %" PRIu64
                     " AND id > %" PRIu64 "%s ORDER BY id LIMIT %d", columns, table,
                     books->activity, id, where, CTL_ROWS);
        if (rc != CTL_FINE) {
            return rc;
        }

        rows = 0;

        while (rc == CTL_FINE && (column = mysql_fetch_row(res)) != NULL) {
            id = ctl_column_u64(column[0]);
            rc = take(ctl, books, column);
            rows++;
        }

        mysql_free_result(res);

    } while (rc == CTL_FINE && rows == CTL_ROWS);

    return rc;
}


static int
ctl_books_order(ctl_t *ctl, ctl_books_t *books, MYSQL_ROW column)
{
    ctl_person_t  *person;

    person = ctl_books_person(ctl, books, ctl_column_u64(column[1]));
    if (person == NULL) {
        return CTL_REFUSED;
    }

    person->flags |= CTL_ORDERED;
    person->order_id = ctl_column_u64(column[0]);
    person->units = (uint32_t) ctl_column_u64(column[2]);
    person->epoch = ctl_column_u64(column[3]);
    person->seq = ctl_column_u64(column[4]);
    snprintf(person->order_no, sizeof(person->order_no), "%s", column[5] ? column[5] : "");

    if (person->epoch == books->live.epoch && person->seq > books->seq_ordered) {
        books->seq_ordered = person->seq;
    }

    return CTL_FINE;
}


static int
ctl_books_record(ctl_t *ctl, ctl_books_t *books, MYSQL_ROW column)
{
    ctl_person_t  *person;

    person = ctl_books_person(ctl, books, ctl_column_u64(column[1]));
    if (person == NULL) {
        return CTL_REFUSED;
    }

    switch (ctl_column_u64(column[2])) {

    case 1:
        person->flags |= CTL_RECORDED;
        break;

    case 2:
        person->flags |= CTL_TOMB;
        break;

    default:
        break;
    }

    return CTL_FINE;
}


static int
ctl_books_add_extra(ctl_t *ctl, ctl_books_t *books, uint64_t epoch, uint64_t seq)
{
    void  *room;

    room = ctl_books_room(ctl, books->extras, books->nextras, &books->extras_room,
                          sizeof(ctl_identity_t), CTL_PEOPLE_MAX);
    if (room == NULL) {
        return CTL_REFUSED;
    }

    books->extras = room;
    books->extras[books->nextras].epoch = epoch;
    books->extras[books->nextras++].seq = seq;

    return CTL_FINE;
}


/* "user:7": the whole of what the user had is given back */
static int
ctl_books_released(ctl_t *ctl, ctl_books_t *books, const char *ref, const char *note)
{
    uint64_t       user;
    ctl_person_t  *person;

    if (strncmp(ref, "user:", 5) != 0 || sk_id_parse(ref + 5, strlen(ref + 5), &user) != 0) {
        return CTL_FINE;
    }

    person = ctl_books_person(ctl, books, user);
    if (person == NULL) {
        return CTL_REFUSED;
    }

    person->flags |= CTL_RELEASED;
    books->releases++;

    if ((person->flags & CTL_ORDERED) == 0
        && ctl_word_number(ctl_word_number(note, "epoch ", &person->epoch), " seq ",
                           &person->seq) == NULL)
    {
        person->epoch = person->seq = 0;
    }

    return CTL_FINE;
}


/* "user 7 ...": a letter was dropped, its units with it */
static int
ctl_books_kept(ctl_t *ctl, ctl_books_t *books, const char *note)
{
    uint64_t       user;
    ctl_person_t  *person;

    if (ctl_word_number(note, "user ", &user) == NULL) {
        return CTL_FINE;
    }

    person = ctl_books_person(ctl, books, user);
    if (person == NULL) {
        return CTL_REFUSED;
    }

    person->flags |= CTL_KEPT;

    return CTL_FINE;
}


static int
ctl_books_odd_terms(ctl_t *ctl, ctl_books_t *books, MYSQL_ROW column)
{
    ctl_person_t  *person;

    person = ctl_books_person(ctl, books, ctl_column_u64(column[1]));
    if (person == NULL) {
        return CTL_REFUSED;
    }

    person->flags |= CTL_TERMS_ODD;

    return CTL_FINE;
}


/* kind, ref, units, epoch, target, note */
static int
ctl_books_movement(ctl_t *ctl, ctl_books_t *books, MYSQL_ROW column)
{
    int          rc;
    int64_t      units;
    uint64_t     epoch, its_epoch, seq;
    const char  *kind, *ref, *target, *note;

    note = column[6] ? column[6] : "";
    kind = column[1];
    ref = column[2];
    units = ctl_column_i64(column[3]);
    epoch = ctl_column_u64(column[4]);
    target = column[5];

    if (strcmp(target, "redis") == 0) {
        books->resold += units;
    }

    if (strcmp(kind, "cancel") == 0) {
        return CTL_FINE;                /* an order still stands for these units */
    }

    /* what went nowhere is back on sale since a restore, as no order took it */
    if (target[0] != '\0' || epoch == books->row.epoch) {
        books->booked += units;
    }

    if (strcmp(kind, "extra") == 0) {
        return ctl_books_add_extra(ctl, books, epoch, strtoull(ref, NULL, 10));
    }

    if (strcmp(kind, "drop") == 0 && (rc = ctl_books_kept(ctl, books, note)) != CTL_FINE) {
        return rc;
    }

    if (ctl_word_number(ctl_word_number(ref, "seq:", &its_epoch), ":", &seq)) {
        return ctl_books_add_extra(ctl, books, its_epoch, seq);
    }

    return ctl_books_released(ctl, books, ref, note);
}


static int
ctl_identity_cmp(const void *a, const void *b)
{
    const ctl_identity_t  *x = a, *y = b;

    if (x->epoch != y->epoch) {
        return x->epoch < y->epoch ? -1 : 1;
    }

    return (x->seq > y->seq) - (x->seq < y->seq);
}


int
ctl_books_extra(const ctl_books_t *books, uint64_t epoch, uint64_t seq)
{
    ctl_identity_t  key;

    key.epoch = epoch;
    key.seq = seq;

    return books->nextras > 0
           && bsearch(&key, books->extras, books->nextras, sizeof(key), ctl_identity_cmp)
              != NULL;
}


static int
ctl_books_reserved(ctl_t *ctl, ctl_books_t *books)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT COUNT(*), COALESCE(-SUM(units), 0), "
                 "COALESCE(-SUM(IF(kind = 'restock', units, 0)), 0) FROM seckill_stock_log "
                 "WHERE activity_id = %" PRIu64 " AND kind IN ('preheat', 'restock')",
                 books->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    books->reserved = column && ctl_column_u64(column[0]) > 0 ? ctl_column_i64(column[1]) : -1;
    books->restocks = column ? ctl_column_i64(column[2]) : 0;
    mysql_free_result(res);

    return CTL_FINE;
}


int
ctl_books_rows(ctl_t *ctl, void *data)
{
    int           rc;
    ctl_books_t  *books;

    books = data;

    if ((rc = ctl_row_read(ctl, books->activity, 0, &books->row)) != CTL_FINE
        || (rc = ctl_books_reserved(ctl, books)) != CTL_FINE
        || (rc = ctl_sums_read(ctl, books->activity, &books->sums)) != CTL_FINE
        || (rc = ctl_books_pages(ctl, books, "user_id, quantity, epoch, seq, order_no",
                                 "seckill_orders FORCE INDEX (idx_activity_id)", "",
                                 ctl_books_order)) != CTL_FINE
        || (rc = ctl_books_pages(ctl, books, "user_id",
                                 "(SELECT o.id, o.activity_id, o.user_id FROM seckill_orders o "
                                 "JOIN seckill_terms t ON t.activity_id = o.activity_id "
                                 "AND t.epoch = o.epoch WHERE t.kind <> 'migration' "
                                 "AND (o.seckill_price <> t.price "
                                 "OR o.product_id <> t.product_id "
                                 "OR o.quantity > t.max_quantity)) odd", "",
                                 ctl_books_odd_terms)) != CTL_FINE
        || (rc = ctl_books_pages(ctl, books, "user_id, status",
                                 "seckill_records FORCE INDEX (idx_activity_id)", "",
                                 ctl_books_record)) != CTL_FINE
        || (rc = ctl_books_pages(ctl, books, "kind, ref, units, epoch, target, note",
                                 "seckill_stock_log",
                                 " AND kind IN ('release', 'surplus', 'extra', 'drop', "
                                 "'cancel')", ctl_books_movement)) != CTL_FINE)
    {
        return rc;
    }

    if (books->nextras > 0) {
        qsort(books->extras, books->nextras, sizeof(ctl_identity_t), ctl_identity_cmp);
    }

    return CTL_FINE;
}


int
ctl_books_mysql(ctl_t *ctl, ctl_books_t *books)
{
    int  rc, ended;

    /* one view of all tables: the first read opens it */
    if ((rc = ctl_sql(ctl, NULL, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")) != CTL_FINE
        || (rc = ctl_sql(ctl, NULL, "START TRANSACTION READ ONLY")) != CTL_FINE)
    {
        return rc;
    }

    rc = ctl_books_rows(ctl, books);
    ended = rc == CTL_UNREACHABLE ? CTL_FINE : ctl_sql(ctl, NULL, "ROLLBACK");

    return rc == CTL_FINE ? ended : rc;
}
