/*
 * restore: rebuilds a sale in Redis from MySQL after Redis lost data.
 *
 * All is proved before the first write.  The activity's row is locked, so that no
 * daemon can commit meanwhile; Redis is looked at, MySQL is read, the units are
 * summed up.  Then the row gets a new epoch, what is left in Redis goes, in the same
 * step with the proof that nothing of it changed or is on its way, and the row is
 * committed.  A batch of an older epoch that a daemon still holds then finds another
 * epoch in the row, and Redis does not know its entries.  Then buyers and results,
 * and the facts last.  A run that was cut off is run again: it begins another epoch.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl_findings.h"
#include "ctl_json.h"
#include "ctl_ledger.h"
#include "ctl_reserve.h"
#include "ctl_restore.h"
#include "sk_id.h"

#define CTL_GRACE_MS   1000
#define CTL_CLOCK_MAX  UINT64_C(999999999999999)        /* a time of Redis has 13 digits */

typedef struct {
    int             yes;
    ctl_journals_t  journals;
} ctl_restore_options_t;


/* nothing is sold to registered users before the shop has loaded them */
static int
ctl_restore_registered(ctl_t *ctl, const ctl_restore_t *restore)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    redisReply  *reply;

    ctl_key(ctl, key, SK_KEY_ELIGIBLE, restore->activity, 0);

    rc = ctl_redis(ctl, &reply, "SCARD %s", key);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (reply->integer == 0) {
        ctl_warn("activity %" PRIu64 " is for registered users: load them into \"%s\" again, "
                 "until then nothing is sold", restore->activity, key);
    }

    freeReplyObject(reply);

    return CTL_FINE;
}


static int
ctl_restore_check(ctl_t *ctl, const ctl_restore_t *restore)
{
    const ctl_row_t  *row;

    row = &restore->books.row;

    if (!row->exists) {
        return ctl_fail(ctl, CTL_NO, "activity %" PRIu64 " is not in seckill_activities",
                        restore->activity);
    }

    if (row->epoch == 0) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " was never in Redis: preheat it",
                        restore->activity);
    }

    if (row->status == 2) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " is settled", restore->activity);
    }

    return CTL_FINE;
}


/* what may still be sold; dead letters that Redis kept hold their units */
static int
ctl_restore_stock(ctl_t *ctl, ctl_restore_t *restore)
{
    ctl_row_t        *row;
    const ctl_sum_t  *sold;

    row = &restore->books.row;
    sold = &restore->books.sums.sums[CTL_SUM_SOLD];
    ctl_books_judge(&restore->books);

    /* a limit that was raised by hand: what the ledger never took does not exist */
    if (restore->books.reserved >= 0 && restore->books.reserved < (int64_t) row->stock_limit) {
        ctl_warn("stock_limit of activity %" PRIu64 " is %" PRIu64 ", of which %" PRId64 " units "
                 "were reserved: no more are sold", restore->activity, row->stock_limit,
                 restore->books.reserved);
        row->stock_limit = (uint64_t) restore->books.reserved;
    }

    restore->stock = (int64_t) row->stock_limit - (int64_t) row->sold - (int64_t) row->returned
                     - restore->books.dead;

    if (sold->known && sold->is != sold->should_be) {
        ctl_warn("\"sold\" of activity %" PRIu64 " is %" PRId64 ", its orders hold %" PRId64
                 " units", restore->activity, sold->is, sold->should_be);
    }

    if (restore->stock < 0) {
        return ctl_fail(ctl, CTL_REFUSED, "MySQL has sold, returned or lost %" PRId64 " units of "
                        "activity %" PRIu64 " too many%s; nothing was changed", -restore->stock,
                        restore->activity, restore->books.dead > 0 ? ": decide about its dead "
                        "letters first, \"reconcile ID --repair release\" or \"dead drop\""
                        : "");
    }

    return CTL_FINE;
}


/* the ids of a new stream go on behind those of entries that letters tell of */
static void
ctl_restore_last(ctl_restore_t *restore)
{
    size_t    i;
    uint64_t  ms;

    for (i = 0; i < restore->books.nletters; i++) {
        ms = restore->books.letters[i].entry.ms;

        /* no clock says so: an id that somebody wrote by hand */
        if (ms > restore->last_ms && ms < CTL_CLOCK_MAX) {
            restore->last_ms = ms;
        }
    }
}


/* the terms go on in the new epoch, whatever the row says by now */
static int
ctl_restore_terms(ctl_t *ctl, ctl_restore_t *restore)
{
    char         error[CTL_MESSAGE_MAX];
    uint64_t     rows;
    skb_terms_e  rc;

    rc = skb_terms_copy(ctl_mysql(ctl), restore->activity, restore->books.row.epoch,
                        restore->live_epoch, &restore->terms, error, sizeof(error));

    /* a sale that version 0.1.0 put up since the schema was applied */
    if (rc == SKB_TERMS_NONE) {
        rc = skb_terms_fill(ctl_mysql(ctl), &rows, error, sizeof(error));

        if (rc == SKB_TERMS_DONE) {
            rc = skb_terms_copy(ctl_mysql(ctl), restore->activity, restore->books.row.epoch,
                                restore->live_epoch, &restore->terms, error, sizeof(error));
        }
    }

    switch (rc) {

    case SKB_TERMS_DONE:
        restore->epoch = restore->terms.epoch;
        return CTL_FINE;

    case SKB_TERMS_NONE:
        return ctl_fail(ctl, CTL_REFUSED, "MySQL has no terms of activity %" PRIu64
                        ": is \"seckillctl schema apply\" done?", restore->activity);

    default:
        return mysql_errno(ctl_mysql(ctl)) != 0 ? ctl_sql_failed(ctl)
                                                : ctl_fail(ctl, CTL_REFUSED, "MySQL: %s", error);
    }
}


static int
ctl_restore_row(ctl_t *ctl, ctl_restore_t *restore)
{
    int             rc;
    skb_movement_t  movement;

    rc = ctl_sql(ctl, NULL, "UPDATE seckill_activities SET epoch = %" PRIu64
                 ", seq_seen = 0 WHERE id = %" PRIu64, restore->epoch, restore->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    memset(&movement, 0, sizeof(movement));
    movement.activity = restore->activity;
    movement.product = restore->books.row.product_id;
    movement.epoch = restore->epoch;
    movement.kind = "restore";
    movement.ref = "redis";

    return ctl_ledger_add(ctl, &movement, NULL);
}


/* under the row's lock, and before anything of it is committed */
static int
ctl_restore_prove(ctl_t *ctl, void *data)
{
    int             rc;
    ctl_books_t    *books;
    ctl_restore_t  *restore;

    restore = data;
    books = &restore->books;

    if ((rc = ctl_row_read(ctl, restore->activity, 1, &books->row)) != CTL_FINE
        || (rc = ctl_restore_check(ctl, restore)) != CTL_FINE
        || (rc = ctl_restore_look(ctl, restore)) != CTL_FINE
        || (rc = ctl_books_open(ctl, books)) != CTL_FINE)
    {
        return rc;
    }

    /* every order belongs to an earlier life: none is late */
    restore->live_epoch = books->live.exists ? books->live.epoch : 0;
    books->live.exists = 0;
    memset(&books->last, 0, sizeof(books->last));

    if ((rc = ctl_books_letters(ctl, books)) != CTL_FINE
        || (rc = ctl_books_rows(ctl, books)) != CTL_FINE
        || (rc = ctl_restore_stock(ctl, restore)) != CTL_FINE
        || (rc = ctl_restore_terms(ctl, restore)) != CTL_FINE
        || (rc = ctl_restore_row(ctl, restore)) != CTL_FINE)
    {
        return rc;
    }

    ctl_restore_last(restore);
    ctl_failpoint("before_clear");

    rc = ctl_restore_clear(ctl, restore);

    if (rc == CTL_FINE) {
        ctl_failpoint("after_clear");
    }

    return rc;
}


static int
ctl_restore_work(ctl_t *ctl, ctl_restore_t *restore)
{
    int  rc;

    rc = ctl_sql_transaction(ctl, ctl_restore_prove, restore);

    if (rc != CTL_FINE && !restore->cleared) {
        return rc;
    }

    if (rc != CTL_FINE
        || ctl_restore_write(ctl, restore) != CTL_FINE
        || ctl_reserve_opened(ctl, restore->activity, &restore->books.row, restore->epoch)
           != CTL_FINE)
    {
        ctl_warn("activity %" PRIu64 " is not restored whole, nothing is sold: run it again",
                 restore->activity);
        return CTL_PARTLY;
    }

    if (restore->terms.by_registration) {
        return ctl_restore_registered(ctl, restore);
    }

    return CTL_FINE;
}


/* accepted purchases that neither Redis nor MySQL know any more */
static int
ctl_restore_vanished(ctl_t *ctl, const ctl_restore_options_t *options, uint64_t activity,
    ctl_books_t *books, ctl_findings_t *findings)
{
    if (options->journals.n == 0) {
        memset(books, 0, sizeof(*books));
        memset(findings, 0, sizeof(*findings));
        return CTL_FINE;
    }

    return ctl_findings_read(ctl, activity, &options->journals, CTL_GRACE_MS, books, findings);
}


static void
ctl_restore_print(const ctl_restore_t *restore, const ctl_restore_options_t *options,
    const ctl_books_t *books, const ctl_findings_t *findings)
{
    printf("activity %" PRIu64 ": restored, epoch %" PRIu64 ", %s\n", restore->activity,
           restore->epoch, restore->state);
    printf("  buyers   %" PRIu64 "\n", restore->buyers);
    printf("  stock    %" PRId64 " of %" PRIu64 " units are left\n", restore->stock,
           restore->books.row.stock_limit);

    if (options->journals.n == 0) {
        puts("  lost     not known without journals: \"reconcile ID --journal FILE...\"");
        return;
    }

    ctl_lost_print(books, findings, &options->journals);
}


static int
ctl_restore_json(ctl_t *ctl, const ctl_restore_t *restore, const ctl_restore_options_t *options,
    const ctl_books_t *books, const ctl_findings_t *findings)
{
    ctl_json_t  json;

    ctl_json_begin(ctl, &json);
    ctl_json_map(&json, NULL);
    ctl_json_id(&json, "activity", restore->activity);
    ctl_json_count(&json, "epoch", restore->epoch);
    ctl_json_count(&json, "rev", restore->rev);
    ctl_json_text(&json, "state", restore->state);
    ctl_json_count(&json, "buyers", restore->buyers);
    ctl_json_count(&json, "stock", (uint64_t) restore->stock);
    ctl_json_count(&json, "stock_limit", restore->books.row.stock_limit);
    ctl_lost_json(books, findings, &options->journals, &json);
    ctl_json_map_end(&json);

    return ctl_json_end(&json) == 0 ? CTL_FINE : CTL_PARTLY;
}


static int
ctl_restore_locked(ctl_t *ctl, const ctl_restore_options_t *options, uint64_t activity)
{
    int             rc;
    ctl_books_t     books;
    ctl_restore_t   restore;
    ctl_findings_t  findings;

    memset(&restore, 0, sizeof(restore));
    memset(&books, 0, sizeof(books));
    memset(&findings, 0, sizeof(findings));
    restore.activity = restore.books.activity = activity;
    strcpy(restore.state, "open");

    rc = ctl_row_read(ctl, activity, 0, &restore.books.row);

    if (rc == CTL_FINE
        && (rc = ctl_restore_check(ctl, &restore)) == CTL_FINE
        && (rc = ctl_confirm(ctl, options->yes, activity, "What Redis holds of the sale is "
                             "replaced by what MySQL holds")) == CTL_FINE
        && (rc = ctl_restore_work(ctl, &restore)) == CTL_FINE)
    {
        rc = ctl_restore_vanished(ctl, options, activity, &books, &findings);

        if (ctl->json) {
            rc = ctl_restore_json(ctl, &restore, options, &books, &findings) == CTL_FINE ? rc
                                                                               : CTL_PARTLY;
        } else {
            ctl_restore_print(&restore, options, &books, &findings);
        }
    }

    ctl_findings_free(&findings);
    ctl_books_free(&books);
    ctl_books_free(&restore.books);

    return rc;
}


static int
ctl_restore_run(ctl_t *ctl, int argc, char **argv)
{
    int                     opt, rc;
    uint64_t                activity;
    ctl_restore_options_t   restore;

    enum { CTL_OPT_YES = CTL_OPT, CTL_OPT_JOURNAL, CTL_OPT_UNSIGNED };

    static const struct option  options[] = {
        { "journal", required_argument, NULL, CTL_OPT_JOURNAL },
        { "unsigned", no_argument,      NULL, CTL_OPT_UNSIGNED },
        { "yes",     no_argument,       NULL, CTL_OPT_YES },
        CTL_OPTIONS
    };

    memset(&restore, 0, sizeof(restore));

    while ((opt = ctl_getopt(ctl, argc, argv, options)) != -1) {
        if (opt == '?') {
            return ctl->exit;
        }

        if (opt == CTL_OPT_YES) {
            restore.yes = 1;

        } else if (opt == CTL_OPT_UNSIGNED) {
            restore.journals.unsigned_too = 1;

        } else if (ctl_journals_add(ctl, &restore.journals, optarg) != CTL_FINE) {
            return CTL_USAGE;
        }
    }

    if (argc - optind < 1 || (argc - optind > 1 && restore.journals.n == 0)) {
        return ctl_usage(ctl, "one activity is wanted");
    }

    if (sk_id_parse(argv[optind], strlen(argv[optind]), &activity) != 0) {
        return ctl_usage(ctl, "not an activity: \"%s\"", argv[optind]);
    }

    while (++optind < argc) {
        if (ctl_journals_add(ctl, &restore.journals, argv[optind]) != CTL_FINE) {
            return CTL_USAGE;
        }
    }

    if ((rc = ctl_open_mysql(ctl)) != CTL_FINE
        || (rc = ctl_open_redis(ctl)) != CTL_FINE
        || (rc = ctl_activity_lock(ctl, activity)) != CTL_FINE)
    {
        return rc;
    }

    /* what is no journal is found before anything is done */
    rc = ctl_journals_check(ctl, &restore.journals);

    if (rc == CTL_FINE) {
        rc = ctl_restore_locked(ctl, &restore, activity);
    }

    rc = ctl_journals_code(&restore.journals, rc);
    ctl_journals_free(&restore.journals);

    return rc;
}


const ctl_verb_t  ctl_restore_verb = {
    "restore",
    "ID [--journal FILE...] [--unsigned] [--yes]",
    "rebuild a sale in Redis from MySQL after Redis lost data",
    "Writes facts, remaining units, buyers and results, and begins a new epoch.\n"
    "Refused (exit 4), with nothing changed, while purchases are unread or pending, when\n"
    "the units don't add up, and for a sale that is open with nothing missing.  Journals\n"
    "tell which accepted purchases are lost; \"reconcile\" with the same journals queues\n"
    "them again or gives them up.\n"
    "\n"
    "      --journal FILE  a node's seckill_journal; more files may follow.  Also .gz, and\n"
    "                      - for standard input.  Exit 5 when a line is not believed, 2\n"
    "                      (before anything is done) when a file is no journal\n"
    "      --unsigned      list lines of version 0.1.0, which nobody signed\n"
    "      --yes           do not ask\n",
    ctl_restore_run
};
