/*
 * The tables in MySQL, which somebody else may have made or changed: an alarm for
 * what is narrower, missing or other than sql/ makes it.  Orders go on: what does
 * not fit is refused by MySQL, purchase by purchase.
 */

#include <stdio.h>
#include <string.h>

#include "skb_log.h"
#include "skb_schema.h"
#include "skd_keeper.h"

#define SKD_SCHEMA_EVERY_MS  60000
#define SKD_SCHEMA_LINES     64

typedef struct {
    uint64_t  sum;                      /* of all lines, in any order; 0: there were none */
    size_t    count;
    char      lines[SKD_SCHEMA_LINES][SKB_SCHEMA_TEXT_MAX];
} skd_schema_t;


static void
skd_schema_take(void *data, const char *wrong)
{
    uint64_t       hash = 14695981039346656037u;
    skd_schema_t  *schema = data;

    for (const char *p = wrong; *p != '\0'; p++) {
        hash = (hash ^ (unsigned char) *p) * 1099511628211u;
    }

    schema->sum += hash | 1;

    if (schema->count < SKD_SCHEMA_LINES) {
        snprintf(schema->lines[schema->count++], SKB_SCHEMA_TEXT_MAX, "%s", wrong);
    }
}


skd_rc_e
skd_keeper_schema(skd_keeper_t *keeper)
{
    char          quoted[SKD_ERROR_MAX];
    skd_schema_t  schema;

    if (skd_now_ms() < keeper->schema_ms) {
        return SKD_OK;
    }

    keeper->schema_ms = skd_now_ms() + SKD_SCHEMA_EVERY_MS;
    schema.sum = 0;
    schema.count = 0;

    if (skb_schema_look(keeper->writer.mysql, 0, skd_schema_take, &schema) < 0) {
        snprintf(keeper->writer.error, sizeof(keeper->writer.error), "%s",
                 mysql_error(keeper->writer.mysql));
        return SKD_MYSQL_LOST;
    }

    if (schema.sum == keeper->schema_seen) {
        return SKD_OK;
    }

    keeper->schema_seen = schema.sum;

    for (size_t i = 0; i < schema.count; i++) {
        skb_log(SKB_ERROR, "a table is not as it should be", "wrong=%s",
                skb_log_quote(quoted, sizeof(quoted), schema.lines[i]));
    }

    if (schema.count == 0) {
        skb_log_msg(SKB_NOTICE, "all tables are as they should be");
    }

    return SKD_OK;
}
