/*
 * Giving units back.
 *
 * In one transaction, under the activity's row lock: whoever got an order after
 * all is left alone; the tombstone, which a late replay meets; one line of the
 * ledger per user, which happens once.  Then Redis, which is told totals and not
 * differences, so that a run after a crash adds what is missing and no more.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl_ledger.h"
#include "ctl_release.h"

#define CTL_CHUNK    50                 /* users of one transaction, and of one script */
#define CTL_TRIES    3                  /* of the script, against a total that moves */
#define CTL_RESULT   "{\"success\":false,\"reason\":\"released\"}"

typedef struct {
    ctl_repair_t   *repair;
    ctl_finding_t  *chunk[CTL_CHUNK];
    const char     *done[CTL_CHUNK];    /* as it will be when the transaction is there */
    int             told[CTL_CHUNK];    /* 0: the user has an order, only the letter goes */
    size_t          n;
    uint64_t        units;              /* of the transaction */
    uint64_t        released;
    uint64_t        already;
    uint64_t        left;
    uint64_t        product;            /* the one that the units came from */
    int64_t         real;               /* units that open letters hold and that exist */
} ctl_release_t;

/* What MySQL says of a user, under the lock. */
typedef struct {
    int       ordered;
    uint64_t  epoch;                    /* of the order */
    uint64_t  seq;
    int       released;
    char      note[64];                 /* of the release */
} ctl_fate_t;


static int
ctl_release_fate(ctl_t *ctl, uint64_t activity, uint64_t user, ctl_fate_t *fate)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    memset(fate, 0, sizeof(*fate));

    rc = ctl_sql(ctl, &res, "SELECT epoch, seq FROM seckill_orders WHERE user_id = %" PRIu64
                 " AND activity_id = %" PRIu64, user, activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column) {
        fate->ordered = 1;
        fate->epoch = ctl_column_u64(column[0]);
        fate->seq = ctl_column_u64(column[1]);
    }

    mysql_free_result(res);

    /* in whatever epoch: taking part is once, giving back too */
    rc = ctl_sql(ctl, &res, "SELECT note FROM seckill_stock_log WHERE activity_id = %" PRIu64
                 " AND kind = 'release' AND ref = 'user:%" PRIu64 "'", activity, user);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);

    if (column) {
        fate->released = 1;
        snprintf(fate->note, sizeof(fate->note), "%s", column[0] ? column[0] : "");
    }

    mysql_free_result(res);

    return CTL_FINE;
}


/* one line of the ledger; *fresh is 0 when it was there */
static int
ctl_release_log(ctl_t *ctl, ctl_release_t *release, const ctl_finding_t *finding,
    const char *kind, int *fresh)
{
    int                 rc;
    char                ref[64], note[112];
    MYSQL_RES          *res;
    skb_movement_t      movement;
    const ctl_books_t  *books;

    books = release->repair->books;
    *fresh = 0;

    if (strcmp(kind, "surplus") == 0) {
        snprintf(ref, sizeof(ref), "seq:%" PRIu64 ":%" PRIu64, finding->epoch, finding->seq);
    } else {
        snprintf(ref, sizeof(ref), "user:%" PRIu64, finding->user);
    }

    rc = ctl_sql(ctl, &res, "SELECT id FROM seckill_stock_log WHERE activity_id = %" PRIu64
                 " AND kind = '%s' AND ref = '%s'", books->activity, kind, ref);
    if (rc != CTL_FINE) {
        return rc;
    }

    *fresh = mysql_num_rows(res) == 0;
    mysql_free_result(res);

    if (!*fresh) {
        return CTL_FINE;
    }

    snprintf(note, sizeof(note), "epoch %" PRIu64 " seq %" PRIu64 " user %" PRIu64,
             finding->epoch, finding->seq, finding->user);

    memset(&movement, 0, sizeof(movement));
    movement.activity = books->activity;
    movement.product = release->product;
    movement.epoch = books->row.epoch;
    movement.kind = kind;
    movement.ref = ref;
    movement.units = (int64_t) finding->units;
    movement.target = finding->units == 0 ? ""
                      : release->repair->target == CTL_TO_REDIS ? "redis" : "product";
    movement.note = note;

    return ctl_ledger_add(ctl, &movement, fresh);
}


/* The user's order, or the release of before, is of this very purchase. */
static int
ctl_release_same(const ctl_fate_t *fate, const ctl_finding_t *finding)
{
    uint64_t  epoch, seq;

    if (fate->ordered) {
        return fate->epoch == finding->epoch && fate->seq == finding->seq;
    }

    return ctl_word_number(ctl_word_number(fate->note, "epoch ", &epoch), " seq ", &seq) == NULL
           || epoch == 0 || finding->epoch == 0
           || (epoch == finding->epoch && seq == finding->seq);
}


static int
ctl_release_tombstone(ctl_t *ctl, uint64_t activity, uint64_t user)
{
    return ctl_sql(ctl, NULL, "INSERT INTO seckill_records (user_id, activity_id, status) "
                   "VALUES (%" PRIu64 ", %" PRIu64 ", 2) ON DUPLICATE KEY UPDATE status = 2",
                   user, activity);
}


static int
ctl_release_one(ctl_t *ctl, ctl_release_t *release, size_t i)
{
    int             rc, fresh, second;
    ctl_fate_t      fate;
    ctl_finding_t  *finding;

    finding = release->chunk[i];

    rc = ctl_release_fate(ctl, release->repair->books->activity, finding->user, &fate);
    if (rc != CTL_FINE) {
        return rc;
    }

    release->told[i] = !fate.ordered;

    second = finding->kind == CTL_IS_SECOND
             || (finding->kind == CTL_IS_LETTER && finding->epoch != 0
                 && (fate.ordered || fate.released) && !ctl_release_same(&fate, finding));

    if (!second && (finding->kind == CTL_IS_CLOSED || fate.released)) {
        release->done[i] = "already released";
        release->already++;
        return CTL_FINE;
    }

    if (!second && fate.ordered) {
        release->done[i] = "not released: has an order now";
        release->left++;
        return CTL_FINE;
    }

    if (!fate.ordered) {
        rc = ctl_release_tombstone(ctl, release->repair->books->activity, finding->user);
        if (rc != CTL_FINE) {
            return rc;
        }
    }

    rc = ctl_release_log(ctl, release, finding, second ? "surplus" : "release", &fresh);
    if (rc != CTL_FINE) {
        return rc;
    }

    release->done[i] = !fresh ? "already released"
                       : finding->unreal ? "released without its units: they do not exist"
                                         : "released";
    release->released += fresh;
    release->already += !fresh;
    release->units += fresh ? finding->units : 0;

    return CTL_FINE;
}


static int
ctl_release_mysql(ctl_t *ctl, void *data)
{
    int                 rc;
    size_t              i;
    ctl_row_t           row;
    ctl_release_t      *release;
    const ctl_books_t  *books;

    release = data;
    books = release->repair->books;

    rc = ctl_row_read(ctl, books->activity, 1, &row);
    if (rc != CTL_FINE) {
        return rc;
    }

    if (row.status == 2 || row.epoch != books->row.epoch) {
        return ctl_fail(ctl, CTL_REFUSED, "activity %" PRIu64 " was %s meanwhile",
                        books->activity, row.status == 2 ? "settled" : "restored");
    }

    rc = ctl_ledger_product(ctl, books->activity, row.product_id, &release->product);

    for (i = 0; rc == CTL_FINE && i < release->n; i++) {
        rc = ctl_release_one(ctl, release, i);
    }

    return rc;
}


/* units that MySQL ever put back on sale */
static int
ctl_release_total(ctl_t *ctl, uint64_t activity, char *total, size_t size)
{
    int        rc;
    MYSQL_ROW  column;
    MYSQL_RES *res;

    rc = ctl_sql(ctl, &res, "SELECT COALESCE(SUM(units), 0) FROM seckill_stock_log "
                 "WHERE activity_id = %" PRIu64 " AND target = 'redis'", activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    column = mysql_fetch_row(res);
    snprintf(total, size, "%s", column && column[0] ? column[0] : "0");
    mysql_free_result(res);

    return CTL_FINE;
}


/* the user of this one hears "failed" */
static int
ctl_release_tells(const ctl_release_t *release, size_t i)
{
    return release->told[i] && release->done[i][0] != 'n'
           && release->chunk[i]->kind != CTL_IS_SECOND;
}


/* letters of users who have an order: nobody is told anything */
static int
ctl_release_letters(ctl_t *ctl, const ctl_release_t *release)
{
    int          rc;
    char         key[SK_KEY_MAX + 1];
    size_t       i;
    redisReply  *reply;

    ctl_key(ctl, key, SK_KEY_DEAD, release->repair->books->activity, 0);

    for (i = 0; i < release->n; i++) {
        if (release->told[i] || release->chunk[i]->letter < 0 || release->done[i][0] == 'n') {
            continue;
        }

        rc = ctl_redis(ctl, &reply, "XDEL %s %s", key,
                       release->repair->books->letters[release->chunk[i]->letter].id);
        if (rc != CTL_FINE) {
            return rc;
        }

        freeReplyObject(reply);
    }

    return CTL_FINE;
}


/* argv of lua/release.lua; the keys' texts are in buf */
static int
ctl_release_args(ctl_t *ctl, ctl_release_t *release, char (*buf)[SK_KEY_MAX + 1],
    char (*users)[24], const char **argv, int *nkeys)
{
    int                 n;
    size_t              i;
    ctl_finding_t      *finding;
    const ctl_books_t  *books;

    static const sk_key_e  which[4] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_DEAD
    };

    n = 0;
    books = release->repair->books;

    for (i = 0; i < 4; i++) {
        ctl_key(ctl, buf[i], which[i], books->activity, 0);
        argv[n++] = buf[i];
    }

    for (i = 0; i < release->n; i++) {
        if (ctl_release_tells(release, i)) {
            ctl_key(ctl, buf[n], SK_KEY_RESULT, books->activity, release->chunk[i]->user);
            argv[n] = buf[n];
            n++;
        }
    }

    *nkeys = n;
    n += 4;

    for (i = 0; i < release->n; i++) {
        finding = release->chunk[i];

        if (ctl_release_tells(release, i)) {
            snprintf(users[i], 24, "%" PRIu64, finding->user);
            argv[n++] = users[i];
            argv[n++] = finding->letter >= 0 ? books->letters[finding->letter].id : "";
        }
    }

    return n;
}


static int
ctl_release_script(ctl_t *ctl, ctl_release_t *release, redisReply **reply)
{
    int          rc, n, nkeys;
    char         keys[CTL_CHUNK + 4][SK_KEY_MAX + 1], users[CTL_CHUNK][24];
    char         epoch[24], total[24], channel[SK_KEY_MAX + 1];
    const char  *argv[4 + CTL_CHUNK + 4 + 2 * CTL_CHUNK];

    rc = ctl_release_total(ctl, release->repair->books->activity, total, sizeof(total));
    if (rc != CTL_FINE) {
        return rc;
    }

    n = ctl_release_args(ctl, release, keys, users, argv, &nkeys);

    snprintf(epoch, sizeof(epoch), "%" PRIu64, release->repair->books->live.epoch);
    ctl_key(ctl, channel, SK_KEY_RESULTS, release->repair->books->activity, 0);
    argv[nkeys] = epoch;
    argv[nkeys + 1] = total;
    argv[nkeys + 2] = channel;
    argv[nkeys + 3] = CTL_RESULT;

    return ctl_redis_eval(ctl, reply, SK_SCRIPT_RELEASE, nkeys, argv, n - nkeys);
}


static int
ctl_release_redis(ctl_t *ctl, ctl_release_t *release)
{
    int          rc, tries;
    redisReply  *reply;

    for (tries = 1; ; tries++) {
        rc = ctl_release_script(ctl, release, &reply);
        if (rc != CTL_FINE) {
            return rc;
        }

        if (reply->type == REDIS_REPLY_ARRAY) {
            break;
        }

        /* the daemon gave units back between our two reads */
        if (tries == CTL_TRIES || strstr(reply->str, "than the ledger") == NULL) {
            rc = ctl_redis_refused(ctl, reply);
            freeReplyObject(reply);
            return rc;
        }

        freeReplyObject(reply);
    }

    freeReplyObject(reply);
    ctl_failpoint("after_release");

    rc = ctl_release_letters(ctl, release);

    return rc == CTL_FINE ? ctl_nodes_tell(ctl) : rc;
}


static int
ctl_release_chunk(ctl_t *ctl, ctl_release_t *release)
{
    int            rc;
    size_t         i;
    ctl_repair_t  *repair;

    repair = release->repair;

    rc = ctl_sql_transaction(ctl, ctl_release_mysql, release);
    if (rc != CTL_FINE) {
        return rc;
    }

    for (i = 0; i < release->n; i++) {
        release->chunk[i]->done = release->done[i];
    }

    repair->released += release->released;
    repair->already += release->already;
    repair->units += release->units;
    repair->left += release->left;

    rc = ctl_release_redis(ctl, release);

    if (rc != CTL_FINE) {
        ctl_warn("MySQL has it, Redis not yet: run the same again to finish");
        return CTL_PARTLY;
    }

    return CTL_FINE;
}


/* the units that this one gives back, of those that exist */
static void
ctl_release_grant(ctl_release_t *release, ctl_finding_t *finding)
{
    /* Redis kept no unit of these */
    if (finding->kind == CTL_IS_VANISHED) {
        finding->units = 0;
    }

    if (finding->kind != CTL_IS_LETTER) {
        return;
    }

    if ((int64_t) finding->units > release->real) {
        finding->units = 0;
        finding->unreal = 1;
    }

    release->real -= (int64_t) finding->units;
}


int
ctl_repair_release(ctl_t *ctl, ctl_repair_t *repair)
{
    int             rc;
    size_t          i;
    const char     *why;
    ctl_release_t   release;
    ctl_finding_t  *finding;

    memset(&release, 0, sizeof(release));
    release.repair = repair;

    rc = ctl_release_prove(ctl, repair, &release.real);
    if (rc != CTL_FINE) {
        return rc;
    }


    for (i = 0; i < repair->findings->n; i++) {
        finding = &repair->findings->all[i];

        if (!ctl_release_is_candidate(repair, finding)) {
            continue;
        }

        why = ctl_release_refusal(repair, finding);

        if (why) {
            finding->done = why;
            repair->left++;
            continue;
        }

        ctl_release_grant(&release, finding);
        release.chunk[release.n++] = finding;

        if (release.n == CTL_CHUNK) {
            rc = ctl_release_chunk(ctl, &release);
            if (rc != CTL_FINE) {
                return rc;
            }

            release.n = 0;
            release.units = release.released = release.already = release.left = 0;
        }
    }

    /* also without anybody: what a run before left undone */
    if (release.n > 0 || repair->books->resold > repair->books->released) {
        return ctl_release_chunk(ctl, &release);
    }

    return CTL_FINE;
}
