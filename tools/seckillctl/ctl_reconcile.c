/*
 * reconcile: the books of a sale, everybody on the wrong side of them, and what
 * to do about it.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_activities.h"
#include "ctl_lost.h"
#include "ctl_reconcile.h"
#include "sk_id.h"

#define CTL_GRACE_MS  5000

typedef enum {
    CTL_REPAIR_NONE,
    CTL_REPAIR_REPLAY,
    CTL_REPAIR_RELEASE
} ctl_repair_e;

typedef struct {
    int             all;
    int             yes;
    int             shop_stock;         /* the shop changes products.stock, too */
    ctl_repair_e    how;
    ctl_target_e    target;
    uint64_t        user;
    uint64_t        grace_ms;
    ctl_journals_t  journals;
    ctl_json_t      json;
} ctl_reconcile_t;


static void
ctl_reconcile_print_repair(const ctl_reconcile_t *options, const ctl_repair_t *repair)
{
    const ctl_person_t  *person;

    printf("  repaired: %" PRIu64 " mended, %" PRIu64 " queued, %" PRIu64 " released (%" PRIu64
           " units), %" PRIu64 " left\n", repair->mended, repair->queued, repair->released,
           repair->units, repair->left);

    if (repair->already > 0) {
        printf("  %" PRIu64 " were already done\n", repair->already);
    }

    person = options->user ? ctl_person((ctl_people_t *) &repair->books->people, options->user,
                                        0) : NULL;

    if (person && (person->flags & CTL_RELEASED) && repair->released == 0
        && repair->already == 0)
    {
        printf("  user %" PRIu64 ": already done\n", options->user);
    }
}


static int
ctl_reconcile_did(const ctl_repair_t *repair)
{
    return repair->mended > 0 || repair->queued > 0 || repair->released > 0
           || repair->already > 0 || repair->members > 0;
}


/* under the activity's lock, after findings made under it */
static int
ctl_reconcile_repair(ctl_t *ctl, const ctl_reconcile_t *options, ctl_repair_t *repair)
{
    int                 rc, told;
    const ctl_books_t  *books;

    books = repair->books;

    if (!books->live.exists || !books->row.exists || books->live.stock < 0) {
        return ctl_fail(ctl, CTL_REFUSED, "nothing is repaired while the sale is not whole in "
                        "%s: restore it first", books->row.exists ? "Redis" : "MySQL");
    }

    if (books->live.epoch != books->row.epoch) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis holds epoch %" PRIu64 ", MySQL epoch %" PRIu64
                        ": restore the sale first", books->live.epoch, books->row.epoch);
    }

    if (ctl_books_behind(books)) {
        return ctl_fail(ctl, CTL_REFUSED, "Redis is behind MySQL, it lost data: restore the "
                        "sale first");
    }

    if (options->how == CTL_REPAIR_RELEASE) {
        rc = ctl_confirm(ctl, options->yes, books->activity, "Users are told that they failed, "
                         "and their units are given back, for good");
        if (rc != CTL_FINE) {
            return rc;
        }
    }

    rc = ctl_repair_mend(ctl, repair);

    if (rc == CTL_FINE) {
        rc = options->how == CTL_REPAIR_REPLAY ? ctl_repair_replay(ctl, repair)
                                               : ctl_repair_release(ctl, repair);
    }

    /* whatever came of it: who was put back must be a buyer at every node */
    told = rc == CTL_UNREACHABLE ? CTL_FINE : ctl_repair_told(ctl, repair);
    rc = rc == CTL_FINE ? told : rc;

    /* what was done is told, and stays done */
    return rc != CTL_FINE && ctl_reconcile_did(repair) ? CTL_PARTLY : rc;
}


/* the books as they are after the repair, and what is still wrong */
static int
ctl_reconcile_again(ctl_t *ctl, const ctl_reconcile_t *options, uint64_t activity,
    const ctl_repair_t *repair)
{
    int             rc;
    ctl_books_t     books;
    ctl_findings_t  findings;

    rc = ctl_findings_read(ctl, activity, &options->journals, options->grace_ms, &books,
                           &findings);
    books.sums.shop_stock = options->shop_stock;

    if (rc == CTL_FINE) {
        rc = ctl_reconcile_wrong(&books, &findings) || repair->left > 0 ? CTL_NO : CTL_FINE;

        if (!ctl->json) {
            printf("after the repair: %zu wrong, %zu in flight, %" PRId64 " units missing\n",
                   findings.wrong, findings.skipped, books.missing);
        }
    }

    ctl_findings_free(&findings);
    ctl_books_free(&books);

    if (rc == CTL_UNREACHABLE && ctl_reconcile_did(repair)) {
        ctl_warn("the repair is done, the books after it could not be read");
        return CTL_PARTLY;
    }

    return rc;
}


static int
ctl_reconcile_locked(ctl_t *ctl, ctl_reconcile_t *options, uint64_t activity)
{
    int             rc, again;
    ctl_books_t     books;
    ctl_repair_t    repair;
    ctl_findings_t  findings;

    memset(&repair, 0, sizeof(repair));
    repair.books = &books;
    repair.findings = &findings;
    repair.user = options->user;
    repair.target = options->target;

    rc = ctl_findings_read(ctl, activity, &options->journals, options->grace_ms, &books,
                           &findings);
    books.sums.shop_stock = options->shop_stock;

    if (rc == CTL_FINE && !books.live.exists && !books.row.exists) {
        rc = ctl_fail(ctl, CTL_NO, "activity %" PRIu64 " is neither in Redis nor in MySQL",
                      activity);
    }

    if (rc == CTL_FINE) {
        rc = options->how == CTL_REPAIR_NONE ? CTL_FINE
                                             : ctl_reconcile_repair(ctl, options, &repair);

        if (ctl->json) {
            ctl_reconcile_json(&options->json, &books, &findings,
                               options->how == CTL_REPAIR_NONE ? NULL : &repair);
        } else {
            ctl_reconcile_print(&books, &findings);
        }

        if (!ctl->json && options->how != CTL_REPAIR_NONE && (rc == CTL_FINE || rc == CTL_PARTLY)) {
            ctl_reconcile_print_repair(options, &repair);
        }
    }

    if (rc == CTL_FINE) {
        again = options->how != CTL_REPAIR_NONE;
        rc = again ? ctl_reconcile_again(ctl, options, activity, &repair)
                   : ctl_reconcile_wrong(&books, &findings) ? CTL_NO : CTL_FINE;
    }

    ctl_findings_free(&findings);
    ctl_books_free(&books);

    return rc;
}


static int
ctl_reconcile_one(ctl_t *ctl, ctl_reconcile_t *options, uint64_t activity)
{
    int  rc;

    rc = ctl_activity_lock(ctl, activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    rc = ctl_reconcile_locked(ctl, options, activity);

    if (rc != CTL_UNREACHABLE) {
        ctl_activity_unlock(ctl, activity);
    }

    return rc;
}


static int
ctl_reconcile_all(ctl_t *ctl, ctl_reconcile_t *options)
{
    int                rc, worst;
    size_t             i;
    ctl_activities_t   activities;

    rc = ctl_activities_read(ctl, &activities);
    worst = CTL_FINE;

    /* a sale that Redis lost is not in its list */
    if (rc == CTL_FINE) {
        rc = ctl_activities_opened(ctl, &activities);
    }

    for (i = 0; rc == CTL_FINE && i < activities.n; i++) {
        rc = ctl_reconcile_one(ctl, options, activities.ids[i]);

        /* one wrong sale does not hide the next */
        if (rc == CTL_NO || rc == CTL_REFUSED || rc == CTL_PARTLY) {
            worst = rc > worst ? rc : worst;
            rc = CTL_FINE;
        }
    }

    ctl_activities_free(&activities);

    return rc == CTL_FINE ? worst : rc;
}


/* one word of several, as its place in the list; -1: none of them */
static int
ctl_reconcile_word(const char *text, const char *const *words)
{
    int  i;

    for (i = 0; words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }

    return -1;
}


enum {
    CTL_OPT_ALL = CTL_OPT, CTL_OPT_JOURNAL, CTL_OPT_UNSIGNED, CTL_OPT_REPAIR, CTL_OPT_TO, CTL_OPT_USER,
    CTL_OPT_GRACE, CTL_OPT_YES, CTL_OPT_SHOP_STOCK
};


/* Returns 0, or -1 after reporting. */
static int
ctl_reconcile_option(ctl_t *ctl, ctl_reconcile_t *options, int opt)
{
    int  at;

    static const char *const  repairs[] = { "none", "replay", "release", NULL };
    static const char *const  targets[] = { "product", "redis", NULL };

    switch (opt) {

    case CTL_OPT_ALL:
        options->all = 1;
        return 0;

    case CTL_OPT_YES:
        options->yes = 1;
        return 0;

    case CTL_OPT_SHOP_STOCK:
        options->shop_stock = 1;
        return 0;

    case CTL_OPT_JOURNAL:
        return ctl_journals_add(ctl, &options->journals, optarg) == CTL_FINE ? 0 : -1;

    case CTL_OPT_UNSIGNED:
        options->journals.unsigned_too = 1;
        return 0;

    case CTL_OPT_REPAIR:
        at = ctl_reconcile_word(optarg, repairs);
        options->how = at < 0 ? CTL_REPAIR_NONE : (ctl_repair_e) at;
        break;

    case CTL_OPT_TO:
        at = ctl_reconcile_word(optarg, targets);
        options->target = at < 0 ? CTL_TO_PRODUCT : (ctl_target_e) at;
        break;

    case CTL_OPT_USER:
        at = sk_id_parse(optarg, strlen(optarg), &options->user);
        break;

    default:                            /* CTL_OPT_GRACE */
        at = ctl_duration(optarg, &options->grace_ms);
        break;
    }

    if (at < 0) {
        ctl_usage(ctl, "not understood: \"%s\"", optarg);
    }

    return at < 0 ? -1 : 0;
}


/* ID, and more journals when one was given */
static int
ctl_reconcile_operands(ctl_t *ctl, ctl_reconcile_t *options, int argc, char **argv,
    uint64_t *activity)
{
    int  first;

    first = options->all ? 0 : 1;

    if (argc < first || (argc > first && options->journals.n == 0)) {
        return ctl_usage(ctl, "one activity or --all is wanted");
    }

    if (first && sk_id_parse(argv[0], strlen(argv[0]), activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[0]);
    }

    if (options->target == CTL_TO_REDIS && options->how != CTL_REPAIR_RELEASE) {
        return ctl_usage(ctl, "--to is for --repair release");
    }

    for ( ; first < argc; first++) {
        if (ctl_journals_add(ctl, &options->journals, argv[first]) != CTL_FINE) {
            return CTL_USAGE;
        }
    }

    return CTL_FINE;
}


static int
ctl_reconcile_work(ctl_t *ctl, ctl_reconcile_t *options, uint64_t activity)
{
    int  rc;

    if (ctl->json) {
        ctl_json_begin(ctl, &options->json);
        ctl_json_map(&options->json, NULL);
        ctl_json_array(&options->json, "activities");
    }

    rc = options->all ? ctl_reconcile_all(ctl, options)
                      : ctl_reconcile_one(ctl, options, activity);

    if (!ctl->json && options->journals.n > 0) {
        ctl_journals_print(&options->journals);
    }

    if (ctl->json) {
        ctl_json_array_end(&options->json);

        if (options->journals.n > 0) {
            ctl_journals_json(&options->journals, &options->json);
        }

        ctl_json_error(&options->json, ctl);
        ctl_json_map_end(&options->json);

        if (ctl_json_end(&options->json) != 0 && rc == CTL_FINE) {
            rc = CTL_PARTLY;
        }
    }

    return rc;
}


static int
ctl_reconcile_run(ctl_t *ctl, int argc, char **argv)
{
    int              opt, rc;
    uint64_t         activity;
    ctl_reconcile_t  reconcile;

    static const struct option  options[] = {
        { "all",     no_argument,       NULL, CTL_OPT_ALL },
        { "journal", required_argument, NULL, CTL_OPT_JOURNAL },
        { "unsigned", no_argument,      NULL, CTL_OPT_UNSIGNED },
        { "repair",  required_argument, NULL, CTL_OPT_REPAIR },
        { "to",      required_argument, NULL, CTL_OPT_TO },
        { "user",    required_argument, NULL, CTL_OPT_USER },
        { "grace",   required_argument, NULL, CTL_OPT_GRACE },
        { "yes",     no_argument,       NULL, CTL_OPT_YES },
        { "shop-stock", no_argument,    NULL, CTL_OPT_SHOP_STOCK },
        CTL_OPTIONS
    };

    memset(&reconcile, 0, sizeof(reconcile));
    reconcile.grace_ms = CTL_GRACE_MS;
    activity = 0;

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        if (ctl_reconcile_option(ctl, &reconcile, opt) != 0) {
            return CTL_USAGE;
        }
    }

    rc = ctl_reconcile_operands(ctl, &reconcile, argc - optind, argv + optind, &activity);

    if (rc != CTL_FINE || (rc = ctl_open_mysql(ctl)) != CTL_FINE
        || (rc = ctl_open_redis(ctl)) != CTL_FINE)
    {
        return rc;
    }

    rc = ctl_journals_check(ctl, &reconcile.journals);

    if (rc == CTL_FINE) {
        rc = ctl_reconcile_work(ctl, &reconcile, activity);
    }

    rc = ctl_journals_code(&reconcile.journals, rc);
    ctl_journals_free(&reconcile.journals);

    return rc;
}


const ctl_verb_t  ctl_reconcile_verb = {
    "reconcile",
    "ID|--all [--journal FILE...] [--unsigned] [--repair none|replay|release]\n"
    "ID --repair release [--to product|redis] [--user USER] [--yes]",
    "hold Redis, MySQL and journals against each other, and repair",
    "In units: limit = remaining + orders + unread + pending + dead letters + released.\n"
    "Names every user for whom Redis, MySQL and the nodes' journals disagree.  Who is\n"
    "in flight is never acted on.  Exit 1 when something is wrong, or still wrong\n"
    "after a repair.\n"
    "\n"
    "      --journal FILE   a node's seckill_journal; more files may follow.  Also .gz, and\n"
    "                       - for standard input.  Exit 5 when a line is not believed, 2\n"
    "                       when a file is no journal\n"
    "      --unsigned       list lines of version 0.1.0, which nobody signed; never replayed\n"
    "      --repair replay  queue buyers without an order again, and mend results and\n"
    "                       membership where MySQL is sure; \"maybe\" only with --user\n"
    "      --repair release give up buyers without an order and dead letters: they hear\n"
    "                       that they failed, their units are given back, each once\n"
    "      --to product     ... to products.stock (default)\n"
    "      --to redis       ... back on sale\n"
    "      --user USER      repair this user only\n"
    "      --shop-stock     the shop changes products.stock, too: a difference from the\n"
    "                       ledger is told, and is not wrong\n"
    "      --grace TIME     younger purchases are in flight, default 5s\n"
    "      --yes            do not ask\n",
    ctl_reconcile_run
};
