/*
 * A line first, as its unique key tells whether it is new; then the product, then
 * the activity's row.  Who else writes these takes the row's lock before.
 */

#include <inttypes.h>
#include <mysqld_error.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "skb_ledger.h"

#define SKB_LINES           16          /* of one statement */
#define SKB_NOTE_MAX        255         /* bytes, as the column has characters */
#define SKB_WORD_MAX        64
#define SKB_LINE_MAX        1024
#define SKB_STATEMENT_MAX   1024

#define SKB_CHECK_MARIADB   4025
#define SKB_CHECK_MYSQL     3819

typedef enum {
    SKB_NOTES,
    SKB_RESERVES,
    SKB_SETTLES,
    SKB_RELEASES,
    SKB_CANCELS
} skb_effect_e;

/* What many movements change. */
typedef struct {
    int      reserves;
    int64_t  stock;                     /* added to products.stock */
    int64_t  returned;                  /* added */
    int64_t  unsold;                    /* taken from sold */
} skb_change_t;


int
skb_ledger_broken(MYSQL *mysql)
{
    unsigned  number = mysql_errno(mysql);

    return (number == SKB_CHECK_MARIADB || number == SKB_CHECK_MYSQL)
           && strstr(mysql_error(mysql), "ck_units") != NULL;
}


static skb_ledger_e
skb_ledger_failed(MYSQL *mysql, char *error)
{
    snprintf(error, SKB_LEDGER_ERROR_MAX, "%u %.200s", mysql_errno(mysql), mysql_error(mysql));

    return SKB_LEDGER_FAILED;
}


static skb_ledger_e skb_ledger_refuse(char *error, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static skb_ledger_e
skb_ledger_refuse(char *error, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    vsnprintf(error, SKB_LEDGER_ERROR_MAX, fmt, args);
    va_end(args);

    return SKB_LEDGER_REFUSED;
}


/* One statement made as by printf(); res NULL: it yields no rows. */
static skb_ledger_e skb_ledger_sql(MYSQL *mysql, MYSQL_RES **res, char *error,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

static skb_ledger_e
skb_ledger_sql(MYSQL *mysql, MYSQL_RES **res, char *error, const char *fmt, ...)
{
    int      n;
    char     statement[SKB_STATEMENT_MAX];
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(statement, sizeof(statement), fmt, args);
    va_end(args);

    if (n < 0 || (size_t) n >= sizeof(statement)) {
        return skb_ledger_refuse(error, "a statement is too long");
    }

    if (mysql_real_query(mysql, statement, (unsigned long) n) != 0) {
        return skb_ledger_failed(mysql, error);
    }

    if (res == NULL) {
        return SKB_LEDGER_ADDED;
    }

    *res = mysql_store_result(mysql);

    return *res != NULL ? SKB_LEDGER_ADDED : skb_ledger_failed(mysql, error);
}


static skb_effect_e
skb_ledger_effect(const char *kind)
{
    static const struct {
        const char    *kind;
        skb_effect_e   effect;
    } kinds[] = {
        { "preheat", SKB_RESERVES },
        { "restock", SKB_RESERVES },
        { "settle",  SKB_SETTLES },
        { "release", SKB_RELEASES },
        { "surplus", SKB_RELEASES },
        { "cancel",  SKB_CANCELS },
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kind, kinds[i].kind) == 0) {
            return kinds[i].effect;
        }
    }

    return SKB_NOTES;
}


static void
skb_ledger_count(skb_change_t *change, const skb_movement_t *movement)
{
    const char    *target = movement->target != NULL ? movement->target : "";
    skb_effect_e   effect = skb_ledger_effect(movement->kind);

    switch (effect) {

    case SKB_NOTES:
        break;

    case SKB_RESERVES:
        change->reserves = 1;
        change->stock += movement->units;
        break;

    case SKB_SETTLES:
        change->stock += movement->units;
        change->returned += movement->units;
        break;

    case SKB_RELEASES:
    case SKB_CANCELS:
        if (strcmp(target, "product") == 0) {
            change->stock += movement->units;
            change->returned += movement->units;
        }

        if (effect == SKB_CANCELS && target[0] != '\0') {
            change->unsold += movement->units;
        }

        break;
    }
}


/* Bytes of text that a column of max holds, whole characters of UTF-8. */
static size_t
skb_ledger_cut(const char *text, size_t max)
{
    size_t  len = strnlen(text, max + 1);

    if (len > max) {
        len = max;

        while (len > 0 && ((unsigned char) text[len] & 0xC0) == 0x80) {
            len--;
        }
    }

    return len;
}


/* "(...)"; buf has SKB_LINE_MAX bytes, which the bounds of the texts keep. */
static size_t
skb_ledger_line(MYSQL *mysql, char *buf, const skb_movement_t *movement)
{
    char         ref[2 * SKB_WORD_MAX + 1], actor[2 * SKB_WORD_MAX + 1];
    char         note[2 * SKB_NOTE_MAX + 1];
    const char  *text = movement->note != NULL ? movement->note : "";
    const char  *target = movement->target != NULL ? movement->target : "";

    mysql_real_escape_string(mysql, ref, movement->ref,
                             (unsigned long) strnlen(movement->ref, SKB_WORD_MAX));
    mysql_real_escape_string(mysql, actor, movement->actor,
                             (unsigned long) skb_ledger_cut(movement->actor, SKB_WORD_MAX));
    mysql_real_escape_string(mysql, note, text,
                             (unsigned long) skb_ledger_cut(text, SKB_NOTE_MAX));

    /* kind and target are words of ours */
    return (size_t) snprintf(buf, SKB_LINE_MAX, "(%" PRIu64 ",%" PRIu64 ",%" PRIu64
                             ",'%.16s','%s',%" PRId64 ",'%.8s','%s','%s')",
                             movement->activity, movement->product, movement->epoch,
                             movement->kind, ref, movement->units, target, actor, note);
}


/* Up to SKB_LINES of them in one statement; THERE: one of them is there, none was written. */
static skb_ledger_e
skb_ledger_insert(MYSQL *mysql, const skb_movement_t *movements, size_t n, char *error)
{
    char    statement[SKB_STATEMENT_MAX + SKB_LINES * (SKB_LINE_MAX + 1)];
    size_t  len;

    len = (size_t) snprintf(statement, sizeof(statement), "INSERT INTO seckill_stock_log "
                            "(activity_id, product_id, epoch, kind, ref, units, target, actor, "
                            "note) VALUES ");

    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            statement[len++] = ',';
        }

        len += skb_ledger_line(mysql, statement + len, &movements[i]);
    }

    if (mysql_real_query(mysql, statement, (unsigned long) len) == 0) {
        return SKB_LEDGER_ADDED;
    }

    return mysql_errno(mysql) == ER_DUP_ENTRY ? SKB_LEDGER_THERE
                                              : skb_ledger_failed(mysql, error);
}


/* What the movements that were new amount to. */
typedef struct {
    skb_change_t  change;
    size_t        added;
    int64_t       units;
} skb_added_t;


/* In one statement; when one of them is there, one by one. */
static skb_ledger_e
skb_ledger_some(MYSQL *mysql, const skb_movement_t *movements, size_t n, skb_added_t *added,
    char *error)
{
    skb_ledger_e  rc;

    rc = skb_ledger_insert(mysql, movements, n, error);

    if (rc == SKB_LEDGER_ADDED) {
        for (size_t i = 0; i < n; i++) {
            skb_ledger_count(&added->change, &movements[i]);
            added->units += movements[i].units;
        }

        added->added += n;
    }

    if (rc != SKB_LEDGER_THERE) {
        return rc;
    }

    for (size_t i = 0; n > 1 && i < n; i++) {
        rc = skb_ledger_some(mysql, &movements[i], 1, added, error);

        if (rc != SKB_LEDGER_ADDED) {
            return rc;
        }
    }

    return SKB_LEDGER_ADDED;
}


static uint64_t
skb_ledger_u64(const char *text)
{
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}


static int64_t
skb_ledger_i64(const char *text)
{
    return text != NULL ? strtoll(text, NULL, 10) : 0;
}


static skb_ledger_e
skb_ledger_read(MYSQL *mysql, uint64_t activity, const char *lock, skb_units_t *units,
    char *error)
{
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_ledger_e  rc;

    memset(units, 0, sizeof(*units));

    rc = skb_ledger_sql(mysql, &res, error, "SELECT sold, returned, reserved "
                        "FROM seckill_activities WHERE id = %" PRIu64 "%s", activity, lock);
    if (rc != SKB_LEDGER_ADDED) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column == NULL) {
        mysql_free_result(res);
        return skb_ledger_refuse(error, "activity %" PRIu64 " is not in seckill_activities",
                                 activity);
    }

    units->sold = skb_ledger_u64(column[0]);
    units->returned = skb_ledger_u64(column[1]);
    units->has_reserved = column[2] != NULL;
    units->reserved = skb_ledger_u64(column[2]);
    mysql_free_result(res);

    rc = skb_ledger_sql(mysql, &res, error, "SELECT "
                        "COALESCE(SUM(kind IN ('preheat', 'restock')), 0), "
                        "COALESCE(-SUM(IF(kind IN ('preheat', 'restock'), units, 0)), 0), "
                        "COALESCE(SUM(IF(kind = 'settle' OR target = 'product', units, 0)), 0), "
                        "COALESCE(SUM(IF(kind = 'cancel' AND target = 'product', units, 0)), 0) "
                        "FROM seckill_stock_log WHERE activity_id = %" PRIu64, activity);
    if (rc != SKB_LEDGER_ADDED) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column != NULL) {
        units->lines = skb_ledger_u64(column[0]);
        units->taken = skb_ledger_i64(column[1]);
        units->given = skb_ledger_i64(column[2]);
        units->cancelled = skb_ledger_i64(column[3]);
    }

    mysql_free_result(res);

    return SKB_LEDGER_ADDED;
}


skb_ledger_e
skb_ledger_units(MYSQL *mysql, uint64_t activity, skb_units_t *units, char *error)
{
    return skb_ledger_read(mysql, activity, " FOR UPDATE", units, error);
}


skb_ledger_e
skb_ledger_look(MYSQL *mysql, uint64_t activity, skb_units_t *units, char *error)
{
    return skb_ledger_read(mysql, activity, "", units, error);
}


/*
 * A cancel to the product is returned and sold no more: 0.1.0 left it in sold.  What
 * the ledger gave back and the row does not count is that.
 */
static void
skb_ledger_shift(const skb_units_t *units, int64_t *sold, int64_t *returned)
{
    int64_t  moved = units->given - *returned;

    if (moved > 0 && moved <= units->cancelled && moved <= *sold) {
        *sold -= moved;
        *returned += moved;
    }
}


static skb_ledger_e
skb_ledger_stock(MYSQL *mysql, const skb_movement_t *movement, int64_t added, char *error)
{
    skb_ledger_e  rc;

    rc = skb_ledger_sql(mysql, NULL, error, "UPDATE products SET stock = CAST(stock AS SIGNED) "
                        "+ %" PRId64 " WHERE id = %" PRIu64 " AND CAST(stock AS SIGNED) + %"
                        PRId64 " BETWEEN 0 AND 4294967295", added, movement->product, added);

    if (rc == SKB_LEDGER_ADDED && mysql_affected_rows(mysql) != 1) {
        return skb_ledger_refuse(error, "product %" PRIu64 " is not in products, or %" PRId64
                                 " units can't be added to its stock", movement->product, added);
    }

    return rc;
}


/* From here on stock = base + what the ledger moves, unless somebody else changes it. */
static skb_ledger_e
skb_ledger_base(MYSQL *mysql, uint64_t product, char *error)
{
    return skb_ledger_sql(mysql, NULL, error, "REPLACE INTO seckill_stock_base (product_id, base) "
                          "SELECT p.id, CAST(p.stock AS SIGNED) - COALESCE(SUM(l.units), 0) "
                          "FROM products p LEFT JOIN seckill_stock_log l ON l.product_id = p.id "
                          "AND (l.kind IN ('preheat', 'restock', 'settle') "
                          "OR l.target = 'product') WHERE p.id = %" PRIu64 " GROUP BY p.id, p.stock",
                          product);
}


/* The row's counts, with reserved as the ledger has it by now. */
static skb_ledger_e
skb_ledger_row(MYSQL *mysql, const skb_movement_t *movement, const skb_change_t *change,
    char *error)
{
    char          reserved[64] = "";
    int64_t       sold, returned;
    skb_units_t   units;
    skb_ledger_e  rc;

    rc = skb_ledger_units(mysql, movement->activity, &units, error);

    if (rc != SKB_LEDGER_ADDED) {
        return rc;
    }

    sold = (int64_t) units.sold - change->unsold;
    returned = (int64_t) units.returned + change->returned;

    if (sold < 0 || returned < 0) {
        return skb_ledger_refuse(error, "activity %" PRIu64 " has sold %" PRIu64 " and returned %"
                                 PRIu64 " units, %" PRId64 " are more than that",
                                 movement->activity, units.sold, units.returned, movement->units);
    }

    skb_ledger_shift(&units, &sold, &returned);

    if (units.lines > 0 && sold + returned <= units.taken) {
        snprintf(reserved, sizeof(reserved), ", reserved = %" PRId64, units.taken);

    } else if (units.lines > 0 && (change->reserves || change->returned > change->unsold)) {
        /* a cancel makes nothing worse where the row was wrong before */
        return skb_ledger_refuse(error, "activity %" PRIu64 " would have sold %" PRId64
                                 " and returned %" PRId64 " units of %" PRId64 " reserved",
                                 movement->activity, sold, returned, units.taken);
    }

    return skb_ledger_sql(mysql, NULL, error, "UPDATE seckill_activities SET sold = %" PRId64
                          ", returned = %" PRId64 "%s WHERE id = %" PRIu64, sold, returned,
                          reserved, movement->activity);
}


skb_ledger_e
skb_ledger_add_all(MYSQL *mysql, const skb_movement_t *movements, size_t n, int64_t *units,
    char *error)
{
    size_t               left;
    skb_added_t          added;
    skb_ledger_e         rc = SKB_LEDGER_ADDED;
    const skb_change_t  *change = &added.change;

    error[0] = '\0';
    memset(&added, 0, sizeof(added));

    for (size_t i = 0; rc == SKB_LEDGER_ADDED && i < n; i += SKB_LINES) {
        left = n - i;
        rc = skb_ledger_some(mysql, movements + i, left < SKB_LINES ? left : SKB_LINES, &added,
                             error);
    }

    *units = added.units;

    if (rc == SKB_LEDGER_ADDED && change->stock != 0) {
        rc = skb_ledger_stock(mysql, movements, change->stock, error);
    }

    if (rc == SKB_LEDGER_ADDED && change->reserves) {
        rc = skb_ledger_base(mysql, movements->product, error);
    }

    if (rc == SKB_LEDGER_ADDED
        && (change->reserves || change->returned != 0 || change->unsold != 0))
    {
        rc = skb_ledger_row(mysql, movements, change, error);
    }

    return rc == SKB_LEDGER_ADDED && added.added == 0 ? SKB_LEDGER_THERE : rc;
}


skb_ledger_e
skb_ledger_add(MYSQL *mysql, const skb_movement_t *movement, char *error)
{
    int64_t  units;

    return skb_ledger_add_all(mysql, movement, 1, &units, error);
}


skb_ledger_e
skb_ledger_product(MYSQL *mysql, uint64_t activity, uint64_t fallback, uint64_t *product,
    char *error)
{
    MYSQL_ROW     column;
    MYSQL_RES    *res;
    skb_ledger_e  rc;

    *product = fallback;

    rc = skb_ledger_sql(mysql, &res, error, "SELECT product_id FROM seckill_stock_log "
                        "WHERE activity_id = %" PRIu64 " AND (kind IN ('preheat', 'restock', "
                        "'settle') OR target = 'product') GROUP BY product_id "
                        "ORDER BY SUM(units), product_id LIMIT 1", activity);
    if (rc != SKB_LEDGER_ADDED) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column != NULL) {
        *product = skb_ledger_u64(column[0]);
    }

    mysql_free_result(res);

    return SKB_LEDGER_ADDED;
}


skb_ledger_e
skb_ledger_take_over(MYSQL *mysql, uint64_t activity, skb_units_t *units, char *error)
{
    int64_t       sold, returned;
    skb_ledger_e  rc;

    error[0] = '\0';
    rc = skb_ledger_units(mysql, activity, units, error);

    if (rc != SKB_LEDGER_ADDED) {
        return rc;
    }

    if (units->lines == 0) {
        return SKB_LEDGER_THERE;        /* it never took units from a product */
    }

    sold = (int64_t) units->sold;
    returned = (int64_t) units->returned;
    skb_ledger_shift(units, &sold, &returned);

    if (sold + returned > units->taken) {
        return skb_ledger_refuse(error, "activity %" PRIu64 " has sold %" PRIu64 " and returned %"
                                 PRIu64 " units, but its ledger reserved %" PRId64, activity,
                                 units->sold, units->returned, units->taken);
    }

    if (units->has_reserved && units->reserved == (uint64_t) units->taken
        && sold == (int64_t) units->sold)
    {
        return SKB_LEDGER_THERE;
    }

    return skb_ledger_sql(mysql, NULL, error, "UPDATE seckill_activities SET sold = %" PRId64
                          ", returned = %" PRId64 ", reserved = %" PRId64 " WHERE id = %" PRIu64,
                          sold, returned, units->taken, activity);
}


int
skb_ledger_behind(MYSQL *mysql, MYSQL_RES **res)
{
    static const char  statement[] = "SELECT a.id FROM seckill_activities AS a JOIN ("
        "SELECT activity_id, SUM(kind IN ('preheat', 'restock')) AS n, "
        "-SUM(IF(kind IN ('preheat', 'restock'), units, 0)) AS taken, "
        "SUM(IF(kind = 'settle' OR target = 'product', units, 0)) AS given "
        "FROM seckill_stock_log GROUP BY activity_id) AS l ON l.activity_id = a.id "
        "WHERE l.n > 0 AND (a.reserved IS NULL OR a.reserved <> l.taken "
        "OR a.returned < l.given) ORDER BY a.id";

    if (mysql_real_query(mysql, statement, sizeof(statement) - 1) != 0) {
        return -1;
    }

    *res = mysql_store_result(mysql);

    return *res != NULL ? 0 : -1;
}
