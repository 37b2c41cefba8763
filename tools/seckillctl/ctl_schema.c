/*
 * schema: the numbered files of sql/, applied in order, each once.
 *
 * seckill_schema records which.  Statements that define tables commit by
 * themselves, so a file that broke off half way is run again from its start:
 * the files are written for that.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl_backend.h"
#include "ctl_json.h"
#include "ctl_schema_fill.h"
#include "ctl_sqlfile.h"
#include "ctl_text.h"
#include "skb_schema.h"
#include "skb_redis.h"
#include "skb_token_key.h"

#define CTL_SCHEMA_LOCK  "schema"
#define CTL_SHARED       "/share/seckill/sql"
#define CTL_DIR_MAX      4096

typedef struct {
    const char     *dir;
    ctl_sqlfile_t  *files;
    size_t          n;
    char          (*at)[32];            /* when each was applied, "" for not yet */
    size_t          applied;            /* by this run */
    int             apply;
    int             plain;              /* lines for people */
    ctl_json_t      json;
} ctl_schema_t;

static const char  ctl_schema_table[] =
    "CREATE TABLE IF NOT EXISTS seckill_schema ("
    " version INT UNSIGNED NOT NULL,"
    " name VARCHAR(128) NOT NULL,"
    " applied_at TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP,"
    " PRIMARY KEY (version)"
    ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_unicode_ci";


static int
ctl_schema_read(ctl_t *ctl, ctl_schema_t *schema)
{
    int        rc;
    size_t     i;
    uint64_t   version;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT version, applied_at FROM seckill_schema ORDER BY version");
    if (rc != CTL_FINE) {
        return rc;
    }

    while ((column = mysql_fetch_row(res)) != NULL) {
        version = ctl_column_u64(column[0]);

        for (i = 0; i < schema->n && schema->files[i].version != version; i++) { /* void */ }

        if (i < schema->n) {
            snprintf(schema->at[i], sizeof(schema->at[i]), "%s", column[1] ? column[1] : "?");
        } else {
            ctl_warn("the database has file number %" PRIu64 ", \"%s\" does not", version,
                     schema->dir);
        }
    }

    mysql_free_result(res);

    return CTL_FINE;
}


static int
ctl_schema_apply_file(ctl_t *ctl, ctl_schema_t *schema, size_t i)
{
    int             rc;
    char           *text, *rest, *statement, quoted[CTL_QUOTE_MAX];
    ctl_sqlfile_t  *file;

    file = &schema->files[i];
    text = ctl_sqlfile_text(schema->dir, file->name);

    if (text == NULL) {
        return ctl_fail(ctl, CTL_USAGE, "file \"%s/%s\": %s", schema->dir, file->name,
                        strerror(errno));
    }

    rc = CTL_FINE;
    rest = text;

    while (rc == CTL_FINE && (statement = ctl_sql_statement(&rest)) != NULL) {
        rc = ctl_sql_again(ctl, statement);
    }

    free(text);

    if (rc != CTL_FINE) {
        ctl_warn("file \"%s\" is not applied whole; mend the cause and run it again",
                 file->name);
        return rc;
    }

    ctl_sql_quote(ctl, quoted, file->name);

    return ctl_sql(ctl, NULL, "INSERT INTO seckill_schema (version, name) VALUES (%u, %s)",
                   file->version, quoted);
}


/* the first copy of Redis' key; the daemon does the same, so Redis may be away */
static void
ctl_schema_token_key(ctl_t *ctl)
{
    char              error[SKB_ERROR_MAX];
    redisContext     *redis;
    skb_token_key_e   rc;

    redis = skb_redis_connect(ctl_config(ctl), error, sizeof(error));

    if (redis == NULL) {
        ctl_warn("the token key is not copied into MySQL, seckilld will do it: Redis: %s", error);
        return;
    }

    rc = skb_token_key_sync(ctl_mysql(ctl), redis, ctl_config(ctl)->redis.prefix, error,
                            sizeof(error));
    redisFree(redis);

    if (rc == SKB_TOKEN_KEY_REPLACED) {
        ctl_warn("Redis had another token key than MySQL, and has MySQL's again");

    } else if (rc >= SKB_TOKEN_KEY_NO_TABLE) {
        ctl_warn("the token key is not copied into MySQL, seckilld will do it: %s", error);
    }
}


static int
ctl_schema_apply(ctl_t *ctl, ctl_schema_t *schema)
{
    int     rc;
    size_t  i;

    rc = ctl_sql_lock(ctl, CTL_SCHEMA_LOCK);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_sql(ctl, NULL, "%s", ctl_schema_table);

    if (rc == CTL_FINE) {
        rc = ctl_schema_read(ctl, schema);
    }

    for (i = 0; rc == CTL_FINE && i < schema->n; i++) {
        if (schema->at[i][0] != '\0') {
            continue;
        }

        rc = ctl_schema_apply_file(ctl, schema, i);

        if (rc == CTL_FINE) {
            snprintf(schema->at[i], sizeof(schema->at[i]), "now");
            schema->applied++;
        }
    }

    if (rc == CTL_FINE) {
        rc = ctl_schema_fill(ctl);
    }

    if (rc == CTL_FINE) {
        ctl_schema_token_key(ctl);
        ctl_sql_unlock(ctl, CTL_SCHEMA_LOCK);
        return CTL_FINE;
    }

    return rc == CTL_REFUSED && schema->applied > 0 ? CTL_PARTLY : rc;
}


static int
ctl_schema_status(ctl_t *ctl, ctl_schema_t *schema)
{
    int        rc;
    size_t     i;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SHOW TABLES LIKE 'seckill\\_schema'");
    if (rc != CTL_FINE) {
        return rc;
    }

    i = (size_t) mysql_num_rows(res);
    mysql_free_result(res);

    rc = i > 0 ? ctl_schema_read(ctl, schema) : CTL_FINE;

    for (i = 0; rc == CTL_FINE && i < schema->n; i++) {
        if (schema->at[i][0] == '\0') {
            return CTL_NO;
        }
    }

    return rc;
}


static void
ctl_schema_tell(void *data, const char *wrong)
{
    ctl_schema_t  *schema;

    schema = data;

    if (schema->plain) {
        printf("wrong: %s\n", ctl_shown(wrong));
    } else {
        ctl_json_text(&schema->json, NULL, wrong);
    }
}


/* only tables that are there: DIR may hold other files than ours */
static int
ctl_schema_judge(ctl_t *ctl, ctl_schema_t *schema, int code)
{
    int  told;

    told = skb_schema_look(ctl_mysql(ctl), 1, ctl_schema_tell, schema);

    if (told < 0) {
        return ctl_fail(ctl, CTL_UNREACHABLE, "MySQL: %s", mysql_error(ctl_mysql(ctl)));
    }

    if (told > 0 && code == CTL_FINE) {
        return schema->apply ? ctl_fail(ctl, CTL_PARTLY, "all files are applied, and the tables "
                                        "are not as they make them") : CTL_NO;
    }

    return code;
}


static int
ctl_schema_print(ctl_t *ctl, ctl_schema_t *schema, int code)
{
    size_t       i;
    ctl_json_t  *json;

    schema->plain = !ctl->json;

    if (schema->plain) {
        for (i = 0; i < schema->n; i++) {
            printf("%-32s %s\n", schema->files[i].name,
                   schema->at[i][0] ? schema->at[i] : "not applied");
        }

        return ctl_schema_judge(ctl, schema, code);
    }

    json = &schema->json;
    ctl_json_begin(ctl, json);
    ctl_json_map(json, NULL);
    ctl_json_count(json, "applied", schema->applied);
    ctl_json_array(json, "files");

    for (i = 0; i < schema->n; i++) {
        ctl_json_map(json, NULL);
        ctl_json_count(json, "version", schema->files[i].version);
        ctl_json_text(json, "name", schema->files[i].name);
        ctl_json_text(json, "applied_at", schema->at[i][0] ? schema->at[i] : NULL);
        ctl_json_map_end(json);
    }

    ctl_json_array_end(json);
    ctl_json_array(json, "wrong");
    code = ctl_schema_judge(ctl, schema, code);
    ctl_json_array_end(json);
    ctl_json_map_end(json);

    return ctl_json_end(json) == 0 ? code : CTL_PARTLY;
}


static int
ctl_schema_work(ctl_t *ctl, ctl_schema_t *schema)
{
    int          rc;
    const char  *error;

    error = ctl_sqlfiles(schema->dir, &schema->files, &schema->n);

    if (error) {
        return ctl_fail(ctl, CTL_USAGE, "directory \"%s\" %s%s%s", schema->dir, error,
                        errno ? ": " : "", errno ? strerror(errno) : "");
    }

    schema->at = calloc(schema->n, sizeof(schema->at[0]));
    if (schema->at == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    rc = ctl_open_mysql(ctl);

    if (rc == CTL_FINE) {
        rc = schema->apply ? ctl_schema_apply(ctl, schema) : ctl_schema_status(ctl, schema);

        if (rc == CTL_FINE || rc == CTL_NO) {
            rc = ctl_schema_print(ctl, schema, rc);
        }
    }

    return rc;
}


/* "make install" knows other prefixes than the packages: bin and share stand side by side */
static const char *
ctl_schema_installed(char *buf, size_t size)
{
    int          i;
    char        *slash;
    ssize_t      len;
    struct stat  st;

    len = readlink("/proc/self/exe", buf, size - sizeof(CTL_SHARED));

    if (len <= 0 || (size_t) len == size - sizeof(CTL_SHARED)) {
        return SECKILL_SQL_DIR;
    }

    buf[len] = '\0';

    for (i = 0; i < 2; i++) {           /* the name, and bin */
        slash = strrchr(buf, '/');

        if (slash == NULL) {
            return SECKILL_SQL_DIR;
        }

        *slash = '\0';
    }

    strcat(buf, CTL_SHARED);

    return stat(buf, &st) == 0 && S_ISDIR(st.st_mode) ? buf : SECKILL_SQL_DIR;
}


static int
ctl_schema_run(ctl_t *ctl, int argc, char **argv)
{
    int           opt, rc;
    char          installed[CTL_DIR_MAX];
    ctl_schema_t  schema;

    static const struct option  options[] = {
        { "dir", required_argument, NULL, CTL_OPT },
        CTL_OPTIONS
    };

    memset(&schema, 0, sizeof(schema));
    schema.dir = ctl_schema_installed(installed, sizeof(installed));

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        schema.dir = optarg;
    }

    if (argc - optind != 1) {
        return ctl_usage(ctl, "\"apply\" or \"status\" is wanted");
    }

    schema.apply = strcmp(argv[optind], "apply") == 0;

    if (!schema.apply && strcmp(argv[optind], "status") != 0) {
        return ctl_usage(ctl, "\"apply\" or \"status\" is wanted, not \"%s\"", argv[optind]);
    }

    rc = ctl_schema_work(ctl, &schema);
    free(schema.files);
    free(schema.at);

    return rc;
}


const ctl_verb_t  ctl_schema_verb = {
    "schema",
    "apply [--dir DIR]\nstatus [--dir DIR]",
    "create or show the tables in MySQL",
    "apply   runs the numbered files of DIR that the database does not have yet, in\n"
    "        order, then writes down terms for epochs that have none, by the row as it\n"
    "        is: those that a seckillctl of version 0.1.0 made; copies Redis' token key\n"
    "        into MySQL; takes reserved units over from the ledger, exit 5 when that of\n"
    "        an activity does not add up; safe to run again\n"
    "status  tells which it has; exit 1 when some are missing\n"
    "\n"
    "      --dir DIR      default: the one installed beside this program, else\n"
    "                     " SECKILL_SQL_DIR "\n",
    ctl_schema_run
};
