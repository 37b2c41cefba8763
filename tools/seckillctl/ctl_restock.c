/*
 * restock: more units for a sale that was preheated, running or not.
 *
 * MySQL first, in one transaction: products.stock, stock_limit and the ledger.
 * Then Redis, which is told the new total: a run that was cut off in between is
 * finished by --finish, as often as one likes.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "ctl_json.h"
#include "ctl_ledger.h"
#include "ctl_sale.h"
#include "sk_id.h"

#define CTL_REF_MAX  40

typedef struct {
    uint64_t    activity;
    uint64_t    units;                  /* 0: --finish */
    const char *ref;                    /* of the operator, or NULL */
    int         done_before;            /* this ref is in the ledger */
    ctl_live_t  live;
    ctl_row_t   row;
    int64_t     reserved;               /* by the ledger */
    int64_t     restocked;
    int64_t     limit;                  /* of Redis, when it is done */
    uint64_t    restocks;               /* lines of the ledger */
    uint64_t    product;                /* the one that is sold, whatever the row says by now */
    char        run[24];                /* in the ledger's note: tells this run's line */
    int         booked;                 /* by this run */

    /* Redis' answer */
    uint64_t    added;
    uint64_t    rev;
    uint64_t    stock;
} ctl_restock_t;


static int
ctl_restock_run_id(ctl_t *ctl, ctl_restock_t *restock)
{
    uint64_t  random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t) sizeof(random)) {
        return ctl_fail(ctl, CTL_PARTLY, "the kernel gives no random bytes");
    }

    snprintf(restock->run, sizeof(restock->run), "run %016" PRIx64, random);

    return CTL_FINE;
}


/* totals and, for a ref, whether it was used */
static int
ctl_restock_ledger(ctl_t *ctl, ctl_restock_t *restock)
{
    int        rc;
    char       quoted[CTL_QUOTE_MAX];
    MYSQL_ROW  column;
    MYSQL_RES *res;

    ctl_sql_quote(ctl, quoted, restock->ref ? restock->ref : "");

    rc = ctl_sql(ctl, &res, "SELECT COALESCE(-SUM(units), 0), "
                 "COALESCE(-SUM(IF(kind = 'restock', units, 0)), 0), "
                 "COALESCE(SUM(kind = 'restock'), 0), "
                 "COALESCE(SUM(kind = 'restock' AND ref = %s), 0) "
                 "FROM seckill_stock_log WHERE activity_id = %" PRIu64
                 " AND kind IN ('preheat', 'restock')", quoted, restock->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column) {
        restock->reserved = ctl_column_i64(column[0]);
        restock->restocked = ctl_column_i64(column[1]);
        restock->restocks = ctl_column_u64(column[2]);
        restock->done_before = restock->ref && ctl_column_u64(column[3]) > 0;
    }

    mysql_free_result(res);

    return CTL_FINE;
}


/*
 * What Redis may sell: of what the ledger took no more than MySQL writes orders for.  A
 * preheat that lowered the limit has not yet given back what is above it.
 */
static int64_t
ctl_restock_limit(const ctl_restock_t *restock)
{
    int64_t  limit;

    limit = (int64_t) restock->row.stock_limit;

    return limit < restock->reserved ? limit : restock->reserved;
}


/* Redis is asked for the new limit after MySQL has it: it must not say no then. */
static int
ctl_restock_check_limit(ctl_t *ctl, const ctl_restock_t *restock)
{
    int64_t  limit, sells;

    limit = ctl_restock_limit(restock);
    sells = (int64_t) restock->live.stock_limit;

    if (limit > sells && restock->units) {
        return ctl_fail(ctl, CTL_REFUSED, "a restock before this one is not finished in Redis: "
                        "run \"restock %" PRIu64 " --finish\" first", restock->activity);
    }

    if (limit + (int64_t) restock->units < sells) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis sells %" PRId64 " units of activity %" PRIu64
                        ", stock_limit in MySQL is %" PRIu64 " and %" PRId64 " were reserved: "
                        "set the row back, restock as many as that, or restore the sale; nothing "
                        "was changed", sells,
                        restock->activity, restock->row.stock_limit, restock->reserved);
    }

    if (restock->row.stock_limit + restock->units > INT32_MAX) {
        return ctl_fail(ctl, CTL_REFUSED, "stock_limit would be above %d", INT32_MAX);
    }

    return CTL_FINE;
}


static int
ctl_restock_check(ctl_t *ctl, const ctl_restock_t *restock)
{
    const ctl_row_t   *row;
    const ctl_live_t  *live;

    row = &restock->row;
    live = &restock->live;

    if (!row->exists || !live->exists) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is not in %s", restock->activity,
                        row->exists ? "Redis: preheat it, or restore it when data was lost"
                                    : "seckill_activities");
    }

    if (live->epoch != row->epoch) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis holds epoch %" PRIu64 ", MySQL epoch %" PRIu64
                        ": %s first", live->epoch, row->epoch, live->epoch > row->epoch
                        ? "a preheat was cut off, run preheat" : "restore the sale");
    }

    if (row->status == 2 || strcmp(live->state, "settled") == 0
        || strcmp(live->state, "paused") == 0 || strcmp(live->state, "lost") == 0)
    {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is %s", restock->activity,
                        live->state[0] == 'p' ? "paused: restore it first"
                        : live->state[0] == 'l' ? "lost in Redis: restore it first" : "settled");
    }

    if (live->now_ms >= live->end_ms) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is over", restock->activity);
    }

    if (live->stock < 0) {
        return ctl_fail(ctl, CTL_REFUSED, "the stock of activity %" PRIu64 " is missing in "
                        "Redis: restore the sale first", restock->activity);
    }

    return ctl_restock_check_limit(ctl, restock);
}


static int
ctl_restock_take(ctl_t *ctl, const ctl_restock_t *restock)
{
    int        rc;
    uint64_t   stock;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT stock FROM products WHERE id = %" PRIu64 " FOR UPDATE",
                 restock->product);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    stock = column ? ctl_column_u64(column[0]) : 0;
    mysql_free_result(res);

    if (stock < restock->units) {
        return ctl_fail(ctl, CTL_REFUSED, "product %" PRIu64 " has %" PRIu64 " units, %" PRIu64
                        " are wanted", restock->product, stock, restock->units);
    }

    return CTL_FINE;
}


static int
ctl_restock_mysql(ctl_t *ctl, void *data)
{
    int             rc;
    char            ref[CTL_REF_MAX + 1];
    ctl_restock_t  *restock;
    skb_movement_t  movement;

    restock = data;

    if ((rc = ctl_row_read(ctl, restock->activity, 1, &restock->row)) != CTL_FINE
        || (rc = ctl_live_read(ctl, restock->activity, &restock->live)) != CTL_FINE
        || (rc = ctl_restock_ledger(ctl, restock)) != CTL_FINE)
    {
        return rc;
    }

    if (restock->done_before) {
        restock->units = 0;
    }

    rc = ctl_restock_check(ctl, restock);

    if (rc != CTL_FINE || restock->units == 0) {
        return rc;
    }

    /* more of what is sold, whatever the row says by now */
    if ((rc = ctl_ledger_product(ctl, restock->activity, restock->row.product_id,
                                 &restock->product)) != CTL_FINE
        || (rc = ctl_restock_take(ctl, restock)) != CTL_FINE)
    {
        return rc;
    }

    snprintf(ref, sizeof(ref), "restock-%" PRIu64, restock->restocks + 1);
    memset(&movement, 0, sizeof(movement));
    movement.activity = restock->activity;
    movement.product = restock->product;
    movement.epoch = restock->row.epoch;
    movement.kind = "restock";
    movement.ref = restock->ref ? restock->ref : ref;
    movement.units = -(int64_t) restock->units;
    movement.note = restock->run;

    /* the limit first: the table's CHECK looks at both */
    rc = ctl_sql(ctl, NULL, "UPDATE seckill_activities SET stock_limit = stock_limit + %"
                 PRIu64 " WHERE id = %" PRIu64, restock->units, restock->activity);

    if (rc != CTL_FINE || (rc = ctl_ledger_add(ctl, &movement, NULL)) != CTL_FINE) {
        return rc;
    }

    restock->reserved += (int64_t) restock->units;
    restock->restocked += (int64_t) restock->units;
    restock->row.stock_limit += restock->units;
    restock->booked = 1;

    return CTL_FINE;
}


/*
 * The answer of the COMMIT is lost: another connection, which waits for the row until
 * the first one's transaction has ended, tells whether the line is there.
 */
static int
ctl_restock_ask(ctl_t *ctl, ctl_restock_t *restock)
{
    int        rc;
    ctl_row_t  row;
    MYSQL_RES *res;

    if ((rc = ctl_reopen_mysql(ctl)) != CTL_FINE
        || (rc = ctl_activity_lock(ctl, restock->activity)) != CTL_FINE
        || (rc = ctl_row_read(ctl, restock->activity, 1, &row)) != CTL_FINE)
    {
        return rc;
    }

    rc = ctl_sql(ctl, &res, "SELECT id FROM seckill_stock_log WHERE activity_id = %" PRIu64
                 " AND kind = 'restock' AND note = '%s'", restock->activity, restock->run);
    if (rc == CTL_FINE) {
        restock->booked = mysql_num_rows(res) > 0;
        mysql_free_result(res);
    }

    return rc;
}


static int
ctl_restock_book(ctl_t *ctl, ctl_restock_t *restock)
{
    int  rc, unsure;

    restock->booked = 0;
    rc = ctl_sql_asked(ctl, ctl_restock_mysql, restock, &unsure);

    if (!unsure || !restock->booked) {
        return rc;
    }

    if (ctl_restock_ask(ctl, restock) != CTL_FINE) {
        ctl_warn("it is not known whether MySQL has booked %" PRIu64 " units for activity %"
                 PRIu64 ": run \"restock %" PRIu64 " --finish\", which says \"%" PRIu64
                 " units added\" when it has; only if not, run this again", restock->units,
                 restock->activity, restock->activity, restock->units);
        return CTL_PARTLY;
    }

    return restock->booked ? CTL_FINE
                           : ctl_fail(ctl, CTL_UNREACHABLE, "nothing was changed: run it again");
}


static int
ctl_restock_redis(ctl_t *ctl, ctl_restock_t *restock)
{
    int          rc;
    char         keys[2][SK_KEY_MAX + 1], number[3][24];
    redisReply  *reply;

    ctl_key(ctl, keys[0], SK_KEY_ACTIVITY, restock->activity, 0);
    ctl_key(ctl, keys[1], SK_KEY_STOCK, restock->activity, 0);
    snprintf(number[0], sizeof(number[0]), "%" PRIu64, restock->row.epoch);
    snprintf(number[1], sizeof(number[1]), "%" PRId64, restock->limit);
    snprintf(number[2], sizeof(number[2]), "%" PRId64, restock->restocked);

    rc = ctl_redis_eval(ctl, &reply, SK_SCRIPT_RESTOCK, 2, (const char *[]) {
                            keys[0], keys[1], number[0], number[1], number[2]
                        }, 3);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) {
        rc = ctl_redis_refused(ctl, reply);
        freeReplyObject(reply);
        return rc;
    }

    restock->rev = ctl_reply_u64(skb_redis_at(reply, 1));
    restock->stock = ctl_reply_u64(skb_redis_at(reply, 2));
    restock->added = ctl_reply_u64(skb_redis_at(reply, 3));
    freeReplyObject(reply);
    ctl_failpoint("after_restock");

    return CTL_FINE;
}


static int
ctl_restock_work(ctl_t *ctl, ctl_restock_t *restock)
{
    int  rc;

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE
        || (rc = ctl_open_redis(ctl)) != CTL_FINE
        || (rc = ctl_activity_lock(ctl, restock->activity)) != CTL_FINE
        || (rc = ctl_restock_run_id(ctl, restock)) != CTL_FINE
        || (rc = ctl_restock_book(ctl, restock)) != CTL_FINE)
    {
        return rc;
    }

    restock->limit = ctl_restock_limit(restock);
    rc = ctl_restock_redis(ctl, restock);

    if (rc != CTL_FINE) {
        ctl_warn("MySQL has the units of activity %" PRIu64 ", Redis does not yet: run "
                 "\"restock %" PRIu64 " --finish\"", restock->activity, restock->activity);
        return CTL_PARTLY;
    }

    /* sold out is remembered by the nodes until they hear of it */
    rc = ctl_nodes_tell(ctl);

    if (rc != CTL_FINE) {
        ctl_warn("MySQL and Redis have the units of activity %" PRIu64 ", only the nodes were not "
                 "told: they hear of it within seckill_refresh, or by \"restock %" PRIu64
                 " --finish\"", restock->activity, restock->activity);
        return CTL_PARTLY;
    }

    ctl_activity_unlock(ctl, restock->activity);

    return CTL_FINE;
}


static int
ctl_restock_tell(ctl_t *ctl, const ctl_restock_t *restock)
{
    ctl_json_t  json;

    if (!ctl->json) {
        printf("activity %" PRIu64 ": %" PRIu64 " units added%s\n", restock->activity,
               restock->added, restock->added ? "" : ", it was done before");
        printf("  limit    %" PRId64 " units, %" PRIu64 " are left\n", restock->reserved,
               restock->stock);

        return CTL_FINE;
    }

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);
    ctl_json_id(&json, "activity", restock->activity);
    ctl_json_count(&json, "added", restock->added);
    ctl_json_count(&json, "stock_limit", (uint64_t) restock->limit);
    ctl_json_count(&json, "stock", restock->stock);
    ctl_json_count(&json, "rev", restock->rev);
    ctl_json_map_end(&json);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


static int
ctl_restock_run(ctl_t *ctl, int argc, char **argv)
{
    int            opt, finish, rc;
    ctl_restock_t  restock;

    enum { CTL_OPT_FINISH = CTL_OPT, CTL_OPT_REF };

    static const struct option  options[] = {
        { "finish", no_argument,       NULL, CTL_OPT_FINISH },
        { "ref",    required_argument, NULL, CTL_OPT_REF },
        CTL_OPTIONS
    };

    finish = 0;
    memset(&restock, 0, sizeof(restock));

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        switch (opt) {

        case CTL_OPT_FINISH:
            finish = 1;
            break;

        case CTL_OPT_REF:
            restock.ref = optarg;

            if (strlen(optarg) == 0 || strlen(optarg) > CTL_REF_MAX
                || strspn(optarg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                          "0123456789._-") != strlen(optarg))
            {
                return ctl_usage(ctl, "not a word of 1 to %d of A-Za-z0-9._-: \"%s\"",
                                 CTL_REF_MAX, optarg);
            }

            break;

        default:
            return ctl->exit;
        }
    }

    if (argc - optind != (finish ? 1 : 2)) {
        return ctl_usage(ctl, "an activity and a number of units are wanted");
    }

    if (sk_id_parse(argv[optind], strlen(argv[optind]), &restock.activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[optind]);
    }

    if (!finish && ctl_number(argv[optind + 1], 1, INT32_MAX, &restock.units) != 0) {
        return ctl_usage(ctl, "not a number of units: \"%s\"", argv[optind + 1]);
    }

    rc = ctl_restock_work(ctl, &restock);

    return rc == CTL_FINE ? ctl_restock_tell(ctl, &restock) : rc;
}


const ctl_verb_t  ctl_restock_verb = {
    "restock",
    "ID UNITS [--ref WORD]\nID --finish",
    "add units to a sale, also while it runs",
    "Takes units from products.stock and puts them on sale; nodes that said sold out\n"
    "sell again within seckill_refresh.  Every run adds; a run that was cut off\n"
    "(exit 5) is finished by --finish, which adds nothing twice.\n"
    "\n"
    "      --finish    bring Redis to what MySQL has booked\n"
    "      --ref WORD  names this restock: the same word again adds nothing\n",
    ctl_restock_run
};
