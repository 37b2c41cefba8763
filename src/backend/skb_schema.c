/*
 * See the header; the rows are in skb_schema_x.h.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "skb_schema.h"

#define SKB_SQL_MAX  2048

typedef enum {
    SKB_IS_UNSIGNED,
    SKB_IS_SIGNED,
    SKB_IS_DECIMAL,
    SKB_IS_BYTES,                       /* compared byte by byte */
    SKB_IS_TEXT,
    SKB_IS_TIME
} skb_column_e;

typedef enum {
    SKB_ALSO_ANY,
    SKB_ALSO_REQUIRED,
    SKB_ALSO_KEEPS_NULL,
    SKB_ALSO_NUMBERED,
    SKB_ALSO_STAMPED
} skb_also_e;

typedef struct {
    skb_column_e   kind;
    const char    *type;                /* the least integer */
    unsigned long  size;                /* characters, or digits */
    unsigned long  scale;
} skb_type_t;

typedef struct {
    const char    *table;
    const char    *column;
    skb_type_t     type;
    skb_also_e     also;
} skb_column_t;

typedef struct {
    const char  *table;
    const char  *name;
    const char  *columns;
} skb_key_t;

#define SKB_UNSIGNED(least)         { SKB_IS_UNSIGNED, least, 0, 0 }
#define SKB_SIGNED(least)           { SKB_IS_SIGNED, least, 0, 0 }
#define SKB_DECIMAL(digits, scale)  { SKB_IS_DECIMAL, "decimal", digits, scale }
#define SKB_BYTES(size)             { SKB_IS_BYTES, "varchar", size, 0 }
#define SKB_TEXT(size)              { SKB_IS_TEXT, "varchar", size, 0 }
#define SKB_TIME                    { SKB_IS_TIME, "datetime", 0, 0 }

#define SKB_COLUMN(table, column, type, also)  { #table, #column, type, SKB_ALSO_ ## also },
#define SKB_KEY(table, name, columns)
#define SKB_CHECK(table, name)

static const skb_column_t  skb_columns[] = {
#include "skb_schema_x.h"
};

#undef SKB_COLUMN
#undef SKB_KEY
#define SKB_COLUMN(table, column, type, also)
#define SKB_KEY(table, name, columns)  { #table, name, columns },

static const skb_key_t  skb_keys[] = {
#include "skb_schema_x.h"
};

#undef SKB_KEY
#undef SKB_CHECK
#define SKB_KEY(table, name, columns)
#define SKB_CHECK(table, name)  { #table, name, "" },

static const skb_key_t  skb_checks[] = {
#include "skb_schema_x.h"
};

#define SKB_COLUMNS  (sizeof(skb_columns) / sizeof(skb_columns[0]))
#define SKB_KEYS     (sizeof(skb_keys) / sizeof(skb_keys[0]))
#define SKB_CHECKS   (sizeof(skb_checks) / sizeof(skb_checks[0]))

typedef struct {
    MYSQL               *mysql;
    skb_schema_tell_pt   tell;
    void                *data;
    int                  told;
    char                 has[SKB_COLUMNS];      /* the table of each column is there */
} skb_schema_t;

/* The columns of the answer about columns. */
enum {
    SKB_AT_TABLE, SKB_AT_COLUMN, SKB_AT_DATA_TYPE, SKB_AT_TYPE, SKB_AT_NULLABLE, SKB_AT_LENGTH,
    SKB_AT_DIGITS, SKB_AT_SCALE, SKB_AT_COLLATION, SKB_AT_DEFAULT, SKB_AT_EXTRA
};


static void
skb_schema_say(skb_schema_t *schema, const char *table, const char *column, const char *what,
    const char *than)
{
    char  text[SKB_SCHEMA_TEXT_MAX];

    schema->told++;
    snprintf(text, sizeof(text), "%.48s%s%.48s %.90s%.64s", table, column[0] != '\0' ? "." : "",
             column, what, than);
    schema->tell(schema->data, text);
}


/* -1: no integer. */
static int
skb_integer_rank(const char *type)
{
    static const char *const  types[] = { "tinyint", "smallint", "mediumint", "int", "bigint" };

    for (int i = 0; i < 5; i++) {
        if (strcasecmp(type, types[i]) == 0) {
            return i;
        }
    }

    return -1;
}


static int
skb_integer_fits(const skb_column_t *column, MYSQL_ROW row)
{
    int  is_unsigned = strstr(row[SKB_AT_TYPE], "unsigned") != NULL;

    return skb_integer_rank(row[SKB_AT_DATA_TYPE]) >= skb_integer_rank(column->type.type)
           && is_unsigned == (column->type.kind == SKB_IS_UNSIGNED);
}


static unsigned long
skb_schema_number(const char *text)
{
    return text != NULL ? strtoul(text, NULL, 10) : 0;
}


static int
skb_text_fits(const skb_column_t *column, MYSQL_ROW row)
{
    const char  *type = row[SKB_AT_DATA_TYPE], *collation = row[SKB_AT_COLLATION];

    if ((strstr(type, "char") == NULL && strstr(type, "text") == NULL)
        || skb_schema_number(row[SKB_AT_LENGTH]) < column->type.size || collation == NULL)
    {
        return 0;
    }

    if (column->type.kind == SKB_IS_BYTES) {
        return strlen(collation) > 4 && strcmp(collation + strlen(collation) - 4, "_bin") == 0;
    }

    return 1;
}


static int
skb_type_fits(const skb_column_t *column, MYSQL_ROW row)
{
    const char  *type = row[SKB_AT_DATA_TYPE];

    switch (column->type.kind) {

    case SKB_IS_UNSIGNED:
    case SKB_IS_SIGNED:
        return skb_integer_fits(column, row);

    case SKB_IS_DECIMAL:
        return strcasecmp(type, "decimal") == 0
               && skb_schema_number(row[SKB_AT_DIGITS]) >= column->type.size
               && skb_schema_number(row[SKB_AT_SCALE]) == column->type.scale;

    case SKB_IS_TIME:
        return strcasecmp(type, "datetime") == 0 || strcasecmp(type, "timestamp") == 0;

    default:
        return skb_text_fits(column, row);
    }
}


static void
skb_type_text(char *buf, size_t size, const skb_type_t *type)
{
    switch (type->kind) {

    case SKB_IS_UNSIGNED:
        snprintf(buf, size, "%s unsigned", type->type);
        break;

    case SKB_IS_DECIMAL:
        snprintf(buf, size, "decimal(%lu,%lu)", type->size, type->scale);
        break;

    case SKB_IS_BYTES:
        snprintf(buf, size, "varchar(%lu) with a _bin collation", type->size);
        break;

    case SKB_IS_TEXT:
        snprintf(buf, size, "varchar(%lu)", type->size);
        break;

    default:
        snprintf(buf, size, "%s", type->type);
    }
}


static void
skb_column_judge(skb_schema_t *schema, const skb_column_t *column, MYSQL_ROW row)
{
    char         is[96], want[64];
    const char  *extra = row[SKB_AT_EXTRA] != NULL ? row[SKB_AT_EXTRA] : "";
    const char  *preset = row[SKB_AT_DEFAULT] != NULL ? row[SKB_AT_DEFAULT] : "";
    int          nullable = strcasecmp(row[SKB_AT_NULLABLE], "YES") == 0;

    if (!skb_type_fits(column, row)) {
        skb_type_text(want, sizeof(want), &column->type);
        snprintf(is, sizeof(is), "is %.60s, not ", row[SKB_AT_TYPE]);
        skb_schema_say(schema, column->table, column->column, is, want);
    }

    switch (column->also) {

    case SKB_ALSO_REQUIRED:
        if (nullable) {
            skb_schema_say(schema, column->table, column->column, "may be NULL", "");
        }

        break;

    case SKB_ALSO_KEEPS_NULL:
        if (!nullable) {
            skb_schema_say(schema, column->table, column->column, "can't be NULL", "");
        }

        break;

    case SKB_ALSO_NUMBERED:
        if (strstr(extra, "auto_increment") == NULL) {
            skb_schema_say(schema, column->table, column->column, "is not AUTO_INCREMENT", "");
        }

        break;

    case SKB_ALSO_STAMPED:
        if (strncasecmp(preset, "current_timestamp", 17) != 0) {
            skb_schema_say(schema, column->table, column->column,
                           "is not set to CURRENT_TIMESTAMP", "");
        }

        break;

    default:
        break;
    }
}


/* One that is not ours: our INSERTs do not name it. */
static void
skb_column_foreign(skb_schema_t *schema, MYSQL_ROW row)
{
    const char  *extra = row[SKB_AT_EXTRA] != NULL ? row[SKB_AT_EXTRA] : "";

    if (strcasecmp(row[SKB_AT_NULLABLE], "YES") != 0 && row[SKB_AT_DEFAULT] == NULL
        && strcasestr(extra, "auto_increment") == NULL && strcasestr(extra, "GENERATED") == NULL
        && strcmp(row[SKB_AT_TABLE], "products") != 0
        && strcmp(row[SKB_AT_TABLE], "seckill_activities") != 0)
    {
        skb_schema_say(schema, row[SKB_AT_TABLE], row[SKB_AT_COLUMN],
                       "is no column of ours and needs a default", "");
    }
}


static MYSQL_RES *
skb_schema_ask(skb_schema_t *schema, const char *sql)
{
    if (mysql_real_query(schema->mysql, sql, (unsigned long) strlen(sql))) {
        return NULL;
    }

    return mysql_store_result(schema->mysql);
}


/* The first column of its table. */
static int
skb_schema_first(size_t i)
{
    return i == 0 || strcmp(skb_columns[i].table, skb_columns[i - 1].table) != 0;
}


static int
skb_schema_has(const skb_schema_t *schema, const char *table)
{
    for (size_t i = 0; i < SKB_COLUMNS; i++) {
        if (strcmp(skb_columns[i].table, table) == 0) {
            return schema->has[i];
        }
    }

    return 0;
}


/* "'a','b'": every table once. */
static void
skb_schema_tables(char *buf, size_t size)
{
    size_t  len = 0;

    for (size_t i = 0; i < SKB_COLUMNS && len < size; i++) {
        if (skb_schema_first(i)) {
            len += (size_t) snprintf(buf + len, size - len, "%s'%s'", i > 0 ? "," : "",
                                     skb_columns[i].table);
        }
    }
}


/*
 * Which tables are there: of one that is not, one line is enough.  Rows without
 * transactions are not taken back.
 */
static int
skb_schema_engines(skb_schema_t *schema, const char *tables, int present)
{
    char        sql[SKB_SQL_MAX];
    size_t      i;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    snprintf(sql, sizeof(sql), "SELECT table_name, engine FROM information_schema.tables "
             "WHERE table_schema = DATABASE() AND table_name IN (%s)", tables);

    res = skb_schema_ask(schema, sql);

    if (res == NULL) {
        return -1;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        for (i = 0; i < SKB_COLUMNS; i++) {
            if (strcmp(skb_columns[i].table, row[0]) == 0) {
                schema->has[i] = 1;
            }
        }

        if (row[1] == NULL || strcasecmp(row[1], "InnoDB") != 0) {
            skb_schema_say(schema, row[0], "", "has no transactions, its engine is ",
                           row[1] != NULL ? row[1] : "none: it is a view");
        }
    }

    mysql_free_result(res);

    for (i = 0; i < SKB_COLUMNS && !present; i++) {
        if (skb_schema_first(i) && !schema->has[i]) {
            skb_schema_say(schema, skb_columns[i].table, "", "is missing", "");
        }
    }

    return 0;
}


static int
skb_schema_columns(skb_schema_t *schema, const char *tables)
{
    char        sql[SKB_SQL_MAX], seen[SKB_COLUMNS] = { 0 };
    size_t      i;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    snprintf(sql, sizeof(sql), "SELECT table_name, column_name, data_type, column_type, "
             "is_nullable, character_maximum_length, numeric_precision, numeric_scale, "
             "collation_name, column_default, extra FROM information_schema.columns "
             "WHERE table_schema = DATABASE() AND table_name IN (%s)", tables);

    res = skb_schema_ask(schema, sql);

    if (res == NULL) {
        return -1;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        for (i = 0; i < SKB_COLUMNS; i++) {
            if (strcmp(skb_columns[i].table, row[SKB_AT_TABLE]) == 0
                && strcasecmp(skb_columns[i].column, row[SKB_AT_COLUMN]) == 0)
            {
                break;
            }
        }

        if (i < SKB_COLUMNS) {
            seen[i] = 1;
            skb_column_judge(schema, &skb_columns[i], row);

        } else {
            skb_column_foreign(schema, row);
        }
    }

    mysql_free_result(res);

    for (i = 0; i < SKB_COLUMNS; i++) {
        if (!seen[i] && skb_schema_has(schema, skb_columns[i].table)) {
            skb_schema_say(schema, skb_columns[i].table, skb_columns[i].column, "is missing", "");
        }
    }

    return 0;
}


/* Whole columns: a unique key on the begin of one refuses what it must not. */
static int
skb_schema_keys(skb_schema_t *schema, const char *tables)
{
    char        sql[SKB_SQL_MAX], seen[SKB_KEYS] = { 0 };
    size_t      i;
    MYSQL_ROW   row;
    MYSQL_RES  *res;

    snprintf(sql, sizeof(sql), "SELECT table_name, GROUP_CONCAT(column_name ORDER BY column_name) "
             "FROM information_schema.statistics WHERE table_schema = DATABASE() "
             "AND table_name IN (%s) AND non_unique = 0 GROUP BY table_name, index_name "
             "HAVING COUNT(sub_part) = 0", tables);

    res = skb_schema_ask(schema, sql);

    if (res == NULL) {
        return -1;
    }

    while ((row = mysql_fetch_row(res)) != NULL) {
        for (i = 0; i < SKB_KEYS; i++) {
            if (strcmp(skb_keys[i].table, row[0]) == 0 && row[1] != NULL
                && strcasecmp(skb_keys[i].columns, row[1]) == 0)
            {
                seen[i] = 1;
            }
        }
    }

    mysql_free_result(res);

    for (i = 0; i < SKB_KEYS; i++) {
        if (!seen[i] && skb_schema_has(schema, skb_keys[i].table)) {
            snprintf(sql, sizeof(sql), "has no unique key %s (%s)", skb_keys[i].name,
                     skb_keys[i].columns);
            skb_schema_say(schema, skb_keys[i].table, "", sql, "");
        }
    }

    return 0;
}


static int
skb_schema_checks(skb_schema_t *schema)
{
    char        sql[SKB_SQL_MAX];
    size_t      i;
    MYSQL_RES  *res;

    for (i = 0; i < SKB_CHECKS; i++) {
        if (!skb_schema_has(schema, skb_checks[i].table)) {
            continue;
        }

        snprintf(sql, sizeof(sql), "SELECT 1 FROM information_schema.table_constraints "
                 "WHERE table_schema = DATABASE() AND table_name = '%s' "
                 "AND constraint_type = 'CHECK' AND constraint_name = '%s'", skb_checks[i].table,
                 skb_checks[i].name);

        res = skb_schema_ask(schema, sql);

        if (res == NULL) {
            return -1;
        }

        if (mysql_num_rows(res) == 0) {
            skb_schema_say(schema, skb_checks[i].table, "", "has no CHECK ", skb_checks[i].name);
        }

        mysql_free_result(res);
    }

    return 0;
}


int
skb_schema_look(MYSQL *mysql, int present, skb_schema_tell_pt tell, void *data)
{
    char          tables[512];
    skb_schema_t  schema;

    memset(&schema, 0, sizeof(schema));
    schema.mysql = mysql;
    schema.tell = tell;
    schema.data = data;

    skb_schema_tables(tables, sizeof(tables));

    if (skb_schema_engines(&schema, tables, present) != 0
        || skb_schema_columns(&schema, tables) != 0 || skb_schema_keys(&schema, tables) != 0
        || skb_schema_checks(&schema) != 0)
    {
        return -1;
    }

    return schema.told;
}
