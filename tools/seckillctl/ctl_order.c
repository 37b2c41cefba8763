/*
 * order show: what an order number says, and the row behind it.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_json.h"
#include "ctl_text.h"
#include "sk_id.h"
#include "sk_order_no.h"

typedef struct {
    const char     *number;             /* NULL: by user and activity */
    uint64_t        user;
    uint64_t        activity;
    sk_order_no_t   no;
    int             decoded;
} ctl_order_t;

/* in the order of the SELECT; the first ones are printed as they are */
static const char *const  ctl_order_columns[] = {
    "id", "order_no", "user_id", "product_id", "activity_id", "seckill_price", "quantity",
    "ext", "request_id", "epoch", "seq", "created_at", "updated_at", "status"
};

#define CTL_ORDER_COLUMNS  (sizeof(ctl_order_columns) / sizeof(ctl_order_columns[0]))

enum { CTL_ORDER_NO = 1, CTL_ORDER_STATUS = CTL_ORDER_COLUMNS - 1 };


static const char *
ctl_order_status(const char *text)
{
    static const char *const  words[] = { "created", "paid", "cancelled" };

    return text && text[0] >= '1' && text[0] <= '3' && text[1] == '\0'
           ? words[text[0] - '1'] : "unknown";
}


static int
ctl_order_query(ctl_t *ctl, const ctl_order_t *order, MYSQL_RES **res)
{
    char  quoted[CTL_QUOTE_MAX], where[CTL_QUOTE_MAX + 64];

    if (order->number) {
        ctl_sql_quote(ctl, quoted, order->number);
        snprintf(where, sizeof(where), "order_no = %s", quoted);
    } else {
        snprintf(where, sizeof(where), "user_id = %" PRIu64 " AND activity_id = %" PRIu64,
                 order->user, order->activity);
    }

    return ctl_sql(ctl, res, "SELECT id, order_no, user_id, product_id, activity_id, "
                   "seckill_price, quantity, ext, request_id, epoch, seq, created_at, "
                   "updated_at, status FROM seckill_orders WHERE %s", where);
}


static int
ctl_order_print_json(ctl_t *ctl, const ctl_order_t *order, MYSQL_ROW column)
{
    size_t      i;
    char        when[CTL_TIME_MAX];
    ctl_json_t  json;

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);

    if (order->decoded) {
        ctl_time_utc(when, (int64_t) order->no.accepted_ms);
        ctl_json_map(&json, "order_no");
        ctl_json_count(&json, "accepted_ms", order->no.accepted_ms);
        ctl_json_text(&json, "accepted", when);
        ctl_json_count(&json, "activity_mod_1000000", order->no.activity);
        ctl_json_count(&json, "seq_mod_10000000", order->no.seq);
        ctl_json_count(&json, "user_mod_10000", order->no.user);
        ctl_json_map_end(&json);
    } else {
        ctl_json_text(&json, "order_no", NULL);
    }

    if (column == NULL) {
        ctl_json_text(&json, "order", NULL);

    } else {
        ctl_json_map(&json, "order");

        for (i = 0; i < CTL_ORDER_STATUS; i++) {
            ctl_json_text(&json, ctl_order_columns[i], column[i]);
        }

        ctl_json_text(&json, "status", ctl_order_status(column[CTL_ORDER_STATUS]));
        ctl_json_map_end(&json);
    }

    ctl_json_map_end(&json);

    return ctl_json_end(&json);
}


static void
ctl_order_print(const ctl_order_t *order, MYSQL_ROW column)
{
    size_t  i;
    char    when[CTL_TIME_MAX];

    if (order->decoded) {
        ctl_time_utc(when, (int64_t) order->no.accepted_ms);
        printf("accepted        %s and %03u ms\n", when,
               (unsigned) (order->no.accepted_ms % 1000));
        printf("activity        ...%06" PRIu64 "\n", order->no.activity);
        printf("seq             ...%07" PRIu64 "\n", order->no.seq);
        printf("user            ...%04" PRIu64 "\n\n", order->no.user);
    }

    if (column == NULL) {
        puts("no such order in MySQL");
        return;
    }

    for (i = 0; i < CTL_ORDER_STATUS; i++) {
        printf("%-15s %s\n", ctl_order_columns[i], ctl_shown(column[i]));
    }

    printf("%-15s %s\n", "status", ctl_order_status(column[CTL_ORDER_STATUS]));
}


static int
ctl_order_show(ctl_t *ctl, ctl_order_t *order)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_open_mysql(ctl);

    if (rc == CTL_FINE) {
        rc = ctl_order_query(ctl, order, &res);
    }

    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column && order->number == NULL && column[CTL_ORDER_NO]) {
        order->decoded = sk_order_no_parse(column[CTL_ORDER_NO], strlen(column[CTL_ORDER_NO]),
                                           &order->no) == 0;
    }

    rc = column ? CTL_FINE : CTL_NO;

    if (!ctl->json) {
        ctl_order_print(order, column);

    } else if (ctl_order_print_json(ctl, order, column) != 0) {
        rc = CTL_PARTLY;
    }

    mysql_free_result(res);

    return rc;
}


/* "show ORDER_NO" or "show --user U --activity A", not both */
static int
ctl_order_operands(ctl_t *ctl, ctl_order_t *order, int argc, char **argv, int by_user)
{
    if (argc < 1 || strcmp(argv[0], "show") != 0) {
        return ctl_usage(ctl, "\"show\" is wanted");
    }

    if (argc == 1 && by_user == 2) {
        return CTL_FINE;
    }

    if (argc != 2 || by_user != 0) {
        return ctl_usage(ctl, "an order number is wanted, or --user and --activity");
    }

    order->number = argv[1];
    order->decoded = sk_order_no_parse(argv[1], strlen(argv[1]), &order->no) == 0;

    if (!order->decoded) {
        return ctl_usage(ctl, "not an order number of %d digits: \"%s\"", SK_ORDER_NO_LEN,
                         argv[1]);
    }

    return CTL_FINE;
}


static int
ctl_order_run(ctl_t *ctl, int argc, char **argv)
{
    int          opt, rc;
    uint64_t    *id;
    ctl_order_t  order;

    enum { CTL_OPT_USER = CTL_OPT, CTL_OPT_ACTIVITY };

    static const struct option  options[] = {
        { "user",     required_argument, NULL, CTL_OPT_USER },
        { "activity", required_argument, NULL, CTL_OPT_ACTIVITY },
        CTL_OPTIONS
    };

    memset(&order, 0, sizeof(order));

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        id = opt == CTL_OPT_USER ? &order.user : &order.activity;

        if (sk_id_parse(optarg, strlen(optarg), id) != 0) {
            return ctl_usage(ctl, "not an id: \"%s\"", optarg);
        }
    }

    rc = ctl_order_operands(ctl, &order, argc - optind, argv + optind,
                            (order.user != 0) + (order.activity != 0));

    return rc == CTL_FINE ? ctl_order_show(ctl, &order) : rc;
}


const ctl_verb_t  ctl_order_verb = {
    "order",
    "show ORDER_NO\nshow --user USER --activity ID",
    "read an order number back and show its row",
    "Shows what the number itself says (when it was accepted, and the last digits of\n"
    "activity, seq and user) and the row in MySQL.  Exit 1 when there is no row.\n"
    "\n",
    ctl_order_run
};
