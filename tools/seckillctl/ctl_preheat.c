/*
 * preheat: puts a sale into Redis before it starts.
 *
 * MySQL first, in one transaction, then Redis; a crash in between is healed by
 * running it again, because each step finds out by itself whether it was done.
 * Everything that can refuse is asked before the first write.  A sale that has
 * started is never touched: Redis TIME says when, and lua/preheat.lua asks once
 * more in the very call that writes.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_json.h"
#include "ctl_preheat.h"
#include "sk_id.h"


static void
ctl_preheat_foresee(ctl_preheat_t *preheat)
{
    const char        *status;
    const ctl_row_t   *row;
    const ctl_live_t  *live;

    row = &preheat->row;
    live = &preheat->live;

    if (!live->exists) {
        status = "created";

    } else if (live->product_id == row->product_id && live->stock_limit == row->stock_limit
               && live->start_ms == row->start_ms && live->end_ms == row->end_ms
               && live->max_quantity == row->max_quantity
               && live->by_registration == row->by_registration
               && strcmp(live->price, row->price) == 0)
    {
        status = "unchanged";

    } else {
        status = "updated";
    }

    snprintf(preheat->status, sizeof(preheat->status), "%s", status);
    preheat->rev = live->rev + (status[1] != 'n');
    preheat->stock = (int64_t) row->stock_limit;
}


/* inside one transaction; the caller ends it */
static int
ctl_preheat_mysql(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int  rc;

    if ((rc = ctl_row_read(ctl, preheat->activity, 1, &preheat->row)) != CTL_FINE
        || (rc = ctl_live_read(ctl, preheat->activity, &preheat->live)) != CTL_FINE
        || (rc = ctl_preheat_check_row(ctl, preheat)) != CTL_FINE
        || (rc = ctl_reserve_read(ctl, preheat->activity, &preheat->row, &preheat->reserve))
           != CTL_FINE)
    {
        return rc;
    }

    rc = preheat->live.exists ? ctl_preheat_check_present(ctl, preheat)
                              : ctl_preheat_check_absent(ctl, preheat);
    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_preheat_foresee(preheat);

    return ctl_reserve(ctl, preheat->activity, &preheat->row, &preheat->reserve);
}


static int
ctl_preheat_script(ctl_t *ctl, const ctl_preheat_t *preheat, redisReply **reply)
{
    char              keys[4][SK_KEY_MAX + 1], number[7][24];
    const ctl_row_t  *row;

    row = &preheat->row;

    ctl_key(ctl, keys[0], SK_KEY_ACTIVITY, preheat->activity, 0);
    ctl_key(ctl, keys[1], SK_KEY_STOCK, preheat->activity, 0);
    ctl_key(ctl, keys[2], SK_KEY_BUYERS, preheat->activity, 0);
    ctl_key(ctl, keys[3], SK_KEY_ORDERS, preheat->activity, 0);

    snprintf(number[0], sizeof(number[0]), "%" PRIu64, row->product_id);
    snprintf(number[1], sizeof(number[1]), "%" PRIu64, row->stock_limit);
    snprintf(number[2], sizeof(number[2]), "%" PRId64, row->start_ms);
    snprintf(number[3], sizeof(number[3]), "%" PRId64, row->end_ms);
    snprintf(number[4], sizeof(number[4]), "%" PRIu64, row->max_quantity);
    snprintf(number[5], sizeof(number[5]), "%d", row->by_registration);
    snprintf(number[6], sizeof(number[6]), "%" PRIu64, preheat->reserve.epoch);

    return ctl_redis_eval(ctl, reply, SK_SCRIPT_PREHEAT, 4, (const char *[]) {
                              keys[0], keys[1], keys[2], keys[3],
                              preheat->late ? "1" : "0", number[0], row->price, number[1],
                              number[2], number[3], number[4], number[5], number[6]
                          }, 9);
}


/* { status, epoch, rev, now_ms, stock } */
static int
ctl_preheat_answer(ctl_t *ctl, ctl_preheat_t *preheat, const redisReply *reply)
{
    const char  *status;

    if (reply->type == REDIS_REPLY_ERROR) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis: %s", reply->str);
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 5
        || reply->element[0]->type != REDIS_REPLY_STRING)
    {
        return ctl_fail(ctl, CTL_REFUSED, "lua/preheat.lua gave an answer of another version");
    }

    status = reply->element[0]->str;

    if (strcmp(status, "started") == 0 || strcmp(status, "late") == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " started this very moment%s",
                        preheat->activity, status[0] == 'l' ? "; say --late to open it" : "");
    }

    snprintf(preheat->status, sizeof(preheat->status), "%s", status);
    preheat->reserve.epoch = ctl_reply_u64(reply->element[1]);
    preheat->rev = ctl_reply_u64(reply->element[2]);
    preheat->stock = (int64_t) ctl_reply_u64(reply->element[4]);

    return CTL_FINE;
}


static int
ctl_preheat_redis(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int          rc;
    redisReply  *reply;

    rc = ctl_register(ctl, preheat->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_preheat_script(ctl, preheat, &reply);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_preheat_answer(ctl, preheat, reply);
    freeReplyObject(reply);

    if (rc != CTL_FINE) {
        return rc;
    }

    /* last: the nodes drop what they remember, and find all of it there */
    rc = ctl_nodes_tell(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    return ctl_reserve_opened(ctl, preheat->activity, &preheat->row, preheat->reserve.epoch);
}


static int
ctl_preheat_eligible(ctl_t *ctl, const ctl_preheat_t *preheat)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    if (!preheat->row.by_registration) {
        return CTL_FINE;
    }

    ctl_key(ctl, key, SK_KEY_ELIGIBLE, preheat->activity, 0);

    rc = ctl_redis(ctl, &reply, "SCARD %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->integer == 0) {
        ctl_warn("activity %" PRIu64 " is for registered users, and \"%s\" has none yet",
                 preheat->activity, key);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


static int
ctl_preheat_work(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int  rc;

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE
        || (rc = ctl_open_redis(ctl)) != CTL_FINE
        || (rc = ctl_preheat_eviction(ctl, preheat)) != CTL_FINE)
    {
        return rc;
    }

    /* two preheats at once: the second finds the work of the first done */
    if ((rc = ctl_activity_lock(ctl, preheat->activity)) != CTL_FINE
        || (rc = ctl_sql(ctl, NULL, "START TRANSACTION")) != CTL_FINE)
    {
        return rc;
    }

    rc = ctl_preheat_mysql(ctl, preheat);

    if (rc != CTL_FINE || preheat->dry_run) {
        if (ctl_sql(ctl, NULL, "ROLLBACK") != CTL_FINE && rc == CTL_FINE) {
            rc = CTL_UNREACHABLE;
        }

        return rc;
    }

    rc = ctl_sql(ctl, NULL, "COMMIT");
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_preheat_redis(ctl, preheat);

    if (rc != CTL_FINE) {
        ctl_warn("MySQL has reserved the units of activity %" PRIu64 ", Redis is not ready: "
                 "run preheat again", preheat->activity);
        return CTL_PARTLY;
    }

    if ((rc = ctl_preheat_eligible(ctl, preheat)) != CTL_FINE) {
        return rc;
    }

    return ctl_activity_unlock(ctl, preheat->activity);
}


static void
ctl_preheat_print(const ctl_preheat_t *preheat)
{
    char              utc[CTL_TIME_MAX], local[CTL_TIME_MAX];
    const ctl_row_t  *row;

    row = &preheat->row;

    printf("activity %" PRIu64 ": %s%s\n", preheat->activity,
           preheat->dry_run ? "would be " : "", preheat->status);
    printf("  product  %" PRIu64 " at %s, at most %" PRIu64 " each%s\n", row->product_id,
           row->price, row->max_quantity, row->by_registration ? ", registered users only" : "");
    printf("  stock    %" PRId64 " units, products.stock %s %" PRId64 " (%+" PRId64 ")\n",
           preheat->stock, preheat->dry_run ? "would be" : "is", preheat->reserve.left,
           preheat->reserve.moved);

    ctl_time_utc(utc, row->start_ms);
    ctl_time_local(local, row->start_ms);
    printf("  start    %s, here %s\n", utc, local);

    ctl_time_utc(utc, row->end_ms);
    ctl_time_local(local, row->end_ms);
    printf("  end      %s, here %s\n", utc, local);
    puts("  zone     start_time and end_time in MySQL were read as UTC");
}


static void
ctl_preheat_json(ctl_json_t *json, const ctl_preheat_t *preheat)
{
    char              text[CTL_TIME_MAX];
    const ctl_row_t  *row;

    row = &preheat->row;

    ctl_json_map(json, NULL);
    ctl_json_id(json, "activity", preheat->activity);
    ctl_json_text(json, "status", preheat->status);
    ctl_json_bool(json, "dry_run", preheat->dry_run);
    ctl_json_count(json, "epoch", preheat->reserve.epoch);
    ctl_json_count(json, "rev", preheat->rev);
    ctl_json_id(json, "product_id", row->product_id);
    ctl_json_text(json, "price", row->price);
    ctl_json_count(json, "stock_limit", row->stock_limit);
    ctl_json_count(json, "stock", (uint64_t) preheat->stock);
    ctl_json_count(json, "products_stock", (uint64_t) preheat->reserve.left);
    ctl_json_count(json, "start_ms", (uint64_t) row->start_ms);
    ctl_json_count(json, "end_ms", (uint64_t) row->end_ms);
    ctl_time_utc(text, row->start_ms);
    ctl_json_text(json, "start_utc", text);
    ctl_time_local(text, row->start_ms);
    ctl_json_text(json, "start_local", text);
    ctl_time_utc(text, row->end_ms);
    ctl_json_text(json, "end_utc", text);
    ctl_time_local(text, row->end_ms);
    ctl_json_text(json, "end_local", text);
    ctl_json_map_end(json);
}


static int
ctl_preheat_one(ctl_t *ctl, ctl_preheat_t *preheat)
{
    int         rc;
    ctl_json_t  json;

    rc = ctl_preheat_work(ctl, preheat);

    if (rc != CTL_FINE) {
        return rc;
    }

    if (!ctl->json) {
        ctl_preheat_print(preheat);
        return CTL_FINE;
    }

    ctl_json_begin(ctl, &json);
    ctl_preheat_json(&json, preheat);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


/* what starts soon by MySQL's clock; each preheat asks Redis' one itself */
static int
ctl_preheat_due_rows(ctl_t *ctl, uint64_t due_ms, MYSQL_RES **res)
{
    int  rc;

    rc = ctl_open_mysql(ctl);
    if (rc != CTL_FINE) {
        return rc;
    }

    return ctl_sql(ctl, res, "SELECT id FROM seckill_activities WHERE status <> 2 "
                   "AND start_time > UTC_TIMESTAMP() AND start_time <= UTC_TIMESTAMP() "
                   "+ INTERVAL %" PRIu64 " SECOND ORDER BY start_time, id", due_ms / 1000);
}


/* one that is refused keeps none of the others from being ready */
static int
ctl_preheat_due(ctl_t *ctl, const ctl_preheat_t *how, uint64_t due_ms)
{
    int            rc, worst;
    size_t         ready;
    MYSQL_ROW      row;
    MYSQL_RES     *res;
    ctl_json_t     json;
    ctl_preheat_t  preheat;

    rc = ctl_preheat_due_rows(ctl, due_ms, &res);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (ctl->json) {
        ctl_json_begin(ctl, &json);
        ctl_json_map(&json, NULL);
        ctl_json_array(&json, "activities");
    }

    worst = CTL_FINE;
    ready = 0;

    while (worst != CTL_UNREACHABLE && (row = mysql_fetch_row(res)) != NULL) {
        preheat = *how;
        preheat.activity = ctl_column_u64(row[0]);
        rc = ctl_preheat_work(ctl, &preheat);

        if (rc != CTL_FINE) {
            worst = worst == CTL_FINE || rc == CTL_UNREACHABLE ? rc : worst;
            continue;
        }

        ready++;

        if (ctl->json) {
            ctl_preheat_json(&json, &preheat);
        } else {
            ctl_preheat_print(&preheat);
        }
    }

    mysql_free_result(res);

    if (ctl->json) {
        ctl_json_array_end(&json);
        ctl_json_error(&json, ctl);
        ctl_json_map_end(&json);
        worst = ctl_json_end(&json) != 0 && worst == CTL_FINE ? CTL_PARTLY : worst;

    } else if (ready == 0 && worst == CTL_FINE) {
        puts("no activity starts within that time");
    }

    return worst != CTL_FINE && worst != CTL_UNREACHABLE && ready > 0 ? CTL_PARTLY : worst;
}


static int
ctl_preheat_run(ctl_t *ctl, int argc, char **argv)
{
    int            opt;
    uint64_t       due_ms;
    ctl_preheat_t  preheat;

    enum { CTL_OPT_LATE = CTL_OPT, CTL_OPT_DRY_RUN, CTL_OPT_ALLOW_EVICTION, CTL_OPT_DUE };

    static const struct option  options[] = {
        { "late",           no_argument, NULL, CTL_OPT_LATE },
        { "dry-run",        no_argument, NULL, CTL_OPT_DRY_RUN },
        { "allow-eviction", no_argument, NULL, CTL_OPT_ALLOW_EVICTION },
        { "due",            required_argument, NULL, CTL_OPT_DUE },
        CTL_OPTIONS
    };

    memset(&preheat, 0, sizeof(preheat));
    due_ms = 0;

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        switch (opt) {

        case CTL_OPT_LATE:
            preheat.late = 1;
            break;

        case CTL_OPT_DRY_RUN:
            preheat.dry_run = 1;
            break;

        case CTL_OPT_ALLOW_EVICTION:
            preheat.allow_eviction = 1;
            break;

        case CTL_OPT_DUE:
            if (ctl_duration(optarg, &due_ms) != 0 || due_ms < 1000 || due_ms > 86400000) {
                return ctl_usage(ctl, "--due takes 1s to 24h, not \"%s\"", optarg);
            }
            break;

        default:
            return ctl->exit;
        }
    }

    if (due_ms) {
        return argc == optind && !preheat.late ? ctl_preheat_due(ctl, &preheat, due_ms)
               : ctl_usage(ctl, "--due takes neither an activity nor --late");
    }

    if (argc - optind != 1) {
        return ctl_usage(ctl, "one activity is wanted, or --due");
    }

    if (sk_id_parse(argv[optind], strlen(argv[optind]), &preheat.activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[optind]);
    }

    return ctl_preheat_one(ctl, &preheat);
}


const ctl_verb_t  ctl_preheat_verb = {
    "preheat",
    "ID [--late] [--dry-run] [--allow-eviction]\n--due TIME [--dry-run] [--allow-eviction]",
    "put a sale into Redis before it starts",
    "Reserves the units in MySQL and writes facts, stock and stream to Redis.  Running\n"
    "it again changes nothing, or carries over what changed in seckill_activities.\n"
    "Refused (exit 4) once the sale has started.\n"
    "\n"
    "      --due TIME        all activities that start within that time (\"10m\"), for a\n"
    "                        timer; exit 5 when some of them are refused\n"
    "      --late            the start has passed, and nothing of the sale was ever\n"
    "                        in Redis or sold\n"
    "      --dry-run         check everything and tell, change nothing\n"
    "      --allow-eviction  do not insist on maxmemory-policy noeviction\n",
    ctl_preheat_run
};
