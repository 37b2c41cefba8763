/*
 * preheat: puts a sale into Redis before it starts.  The command and what it tells.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_json.h"
#include "ctl_preheat.h"
#include "sk_id.h"


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
    printf("  epoch    %" PRIu64 "\n", preheat->terms.epoch);
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
    ctl_json_count(json, "epoch", preheat->terms.epoch);
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
    "Writes down in MySQL what buyers are promised, reserves the units, and writes\n"
    "facts, stock and stream to Redis.  Running it again changes nothing, finishes a run\n"
    "that was cut off, or carries over what changed in seckill_activities.  Refused\n"
    "(exit 4) once the sale has started; edits since then are named, and buyers get what\n"
    "they were promised.  Also refused for an activity that was settled once.\n"
    "\n"
    "      --due TIME        all activities that start within that time (\"10m\"), for a\n"
    "                        timer; exit 5 when some of them are refused\n"
    "      --late            the start has passed, and nothing of the sale was ever\n"
    "                        in Redis or sold\n"
    "      --dry-run         check everything and tell, change nothing\n"
    "      --allow-eviction  do not insist on maxmemory-policy noeviction\n",
    ctl_preheat_run
};
