/*
 * verify: a crowd of distinct users against a running sale, then the books:
 * does what the crowd heard agree with Redis and with the orders?
 */

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctl_progress.h"
#include "ctl_verify.h"
#include "sk_id.h"

#define CTL_REQUEST_MS  10000           /* how long one request may take */
#define CTL_LOOK_MS     50              /* between two looks at the backlog */


static void
ctl_verify_heard(void *data, const ctl_answer_t *answer)
{
    uint8_t       *heard;
    ctl_verify_t  *verify;

    verify = data;
    heard = &verify->heard[answer->user];

    verify->outcomes[answer->outcome]++;

    switch (answer->outcome) {

    case CTL_ANSWERED:
        verify->verdicts[answer->verdict]++;
        verify->status_5xx += answer->status >= 500;
        break;

    case CTL_NOT_CONNECTED:
        return;

    default:
        *heard |= CTL_HEARD_NOTHING;
        return;
    }

    switch (answer->verdict) {

    case SK_ACCEPTED:
        *heard |= (*heard & (CTL_HEARD_ACCEPT | CTL_WAS_BUYER)) ? CTL_HEARD_TWICE : 0;
        *heard |= CTL_HEARD_ACCEPT;
        break;

    case SK_REPEAT:
        *heard |= CTL_HEARD_REPEAT;
        break;

    case SK_UNKNOWN:
    case SK_VERDICTS:
        *heard |= CTL_HEARD_NOTHING;
        break;

    default:
        break;
    }
}


static void
ctl_verify_polled(void *data, const ctl_answer_t *answer)
{
    ctl_verify_t  *verify;

    verify = data;

    if (answer->outcome == CTL_ANSWERED && answer->verdict == SK_SUCCESS) {
        verify->heard[answer->user] |= CTL_HEARD_SUCCESS;
    }
}


static int
ctl_verify_old(ctl_verify_t *verify, const redisReply *members)
{
    size_t     i;
    uint64_t  *old, user;

    old = realloc(verify->old, (verify->nold + members->elements + 1) * sizeof(uint64_t));
    if (old == NULL) {
        return -1;
    }

    verify->old = old;

    for (i = 0; i < members->elements; i++) {

        if (sk_id_parse(skb_redis_text(members, i), skb_redis_at(members, i)->len, &user) != 0) {
            continue;
        }

        old[verify->nold++] = user;

        if (user >= verify->first_user && user - verify->first_user < verify->users.n) {
            verify->heard[user - verify->first_user] |= CTL_WAS_BUYER;
        }
    }

    return 0;
}


/* finds everybody who bought before the crowd came */
static int
ctl_verify_buyers_before(ctl_t *ctl, ctl_verify_t *verify)
{
    int          rc, last;
    char         key[SK_KEY_MAX + 1], cursor[32];
    redisReply  *reply;

    ctl_key(ctl, key, SK_KEY_BUYERS, verify->activity, 0);
    snprintf(cursor, sizeof(cursor), "0");

    do {
        rc = ctl_redis(ctl, &reply, "SSCAN %s %s COUNT 1000", key, cursor);
        if (rc != CTL_FINE) {
            return rc;
        }

        rc = ctl_verify_old(verify, skb_redis_at(reply, 1));
        snprintf(cursor, sizeof(cursor), "%s", skb_redis_text(reply, 0));
        last = cursor[0] == '\0' || strcmp(cursor, "0") == 0;
        freeReplyObject(reply);

        if (rc != 0) {
            return ctl_fail(ctl, CTL_PARTLY, "no memory for the buyers");
        }

    } while (!last);

    qsort(verify->old, verify->nold, sizeof(uint64_t), ctl_id_cmp);

    return CTL_FINE;
}


static int
ctl_verify_crowd(ctl_t *ctl, ctl_verify_t *verify, ctl_crowd_t *crowd, const char *suffix,
    ctl_crowd_stats_t *stats)
{
    char         url[sizeof(verify->url) + 64];
    const char  *error;

    snprintf(url, sizeof(url), "%s%s%" PRIu64, verify->url, suffix, verify->activity);

    crowd->url = url;
    crowd->unix_socket = verify->socket[0] ? verify->socket : NULL;
    crowd->cacert = verify->cacert;
    crowd->insecure = verify->insecure;
    crowd->users = &verify->users;
    crowd->concurrency = (unsigned) verify->concurrency;
    crowd->timeout_ms = CTL_REQUEST_MS;
    crowd->data = verify;

    error = ctl_crowd_run(crowd, stats);

    return error ? ctl_fail(ctl, CTL_PARTLY, "the crowd stopped: %s", error) : CTL_FINE;
}


static int
ctl_verify_buy(ctl_t *ctl, ctl_verify_t *verify)
{
    int           rc;
    char          body[64];
    size_t        i;
    uint32_t     *plan;
    ctl_crowd_t   crowd;

    plan = ctl_crowd_plan(verify->requests, verify->users.n, verify->seed);
    if (plan == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "no memory for %" PRIu64 " requests",
                        verify->requests);
    }

    for (i = 0; i < verify->requests; i++) {
        verify->heard[plan[i]] |= CTL_ASKED;
    }

    body[0] = '\0';

    if (verify->quantity > 1) {
        snprintf(body, sizeof(body), "{\"quantity\":%" PRIu64 "}", verify->quantity);
    }

    memset(&crowd, 0, sizeof(crowd));
    crowd.post = 1;
    crowd.body = body;
    crowd.plan = plan;
    crowd.n = verify->requests;
    crowd.answer = ctl_verify_heard;
    crowd.progress = "buying";

    rc = ctl_verify_crowd(ctl, verify, &crowd, "/", &verify->stats);
    free(plan);

    if (rc == CTL_FINE && verify->outcomes[CTL_NOT_CONNECTED] == verify->requests) {
        return ctl_fail(ctl, CTL_UNREACHABLE, "nobody answers at \"%s\"", verify->url);
    }

    return rc;
}


/* every accepted buyer asks for the result once */
static int
ctl_verify_poll(ctl_t *ctl, ctl_verify_t *verify)
{
    int                 rc;
    size_t              i;
    uint32_t           *plan;
    ctl_crowd_t         crowd;
    ctl_crowd_stats_t   stats;

    plan = malloc(verify->users.n * sizeof(uint32_t));
    if (plan == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    memset(&crowd, 0, sizeof(crowd));

    for (i = 0; i < verify->users.n; i++) {
        if (ctl_verify_is_buyer(verify, i)) {
            plan[crowd.n++] = (uint32_t) i;
        }
    }

    crowd.plan = plan;
    crowd.answer = ctl_verify_polled;
    crowd.progress = "asking";

    rc = ctl_verify_crowd(ctl, verify, &crowd, "/result/", &stats);
    free(plan);

    return rc;
}


static uint64_t
ctl_now_ms(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


/*
 * Waits until seckilld has read and finished everything: an accepted purchase
 * is in the stream before its buyer hears of it, so nothing can come later.
 * Where Redis cannot count the backlog, the orders are counted.
 */
static int
ctl_verify_wait(ctl_t *ctl, ctl_verify_t *verify)
{
    int              rc;
    size_t           i, buyers;
    uint64_t         start, orders, units, had;
    ctl_progress_t   progress;
    struct timespec  pause = { 0, CTL_LOOK_MS * 1000000 };

    buyers = 0;

    for (i = 0; i < verify->users.n; i++) {
        buyers += ctl_verify_is_buyer(verify, i) != 0;
    }

    had = (uint64_t) (verify->before.buyers > 0 ? verify->before.buyers : 0);
    ctl_progress_init(&progress, "orders", buyers);
    start = ctl_now_ms();

    for ( ;; ) {
        rc = ctl_live_read(ctl, verify->activity, &verify->after);

        if (rc == CTL_FINE) {
            rc = ctl_orders_count(ctl, verify->activity, &orders, &units);
        }

        verify->waited_ms = ctl_now_ms() - start;

        verify->settled = rc == CTL_FINE
                          && ((verify->after.unread == 0 && verify->after.pending == 0)
                              || (verify->after.unread < 0 && orders >= buyers + had));

        if (rc != CTL_FINE || verify->settled || verify->waited_ms >= verify->timeout_ms) {
            break;
        }

        ctl_progress(&progress, orders > had ? (size_t) (orders - had) : 0);
        nanosleep(&pause, NULL);
    }

    ctl_progress_end(&progress);

    return rc;
}


static int
ctl_verify_orders(ctl_t *ctl, ctl_verify_t *verify)
{
    int         rc;
    size_t      i;
    MYSQL_ROW   column;
    MYSQL_RES  *res;

    rc = ctl_sql(ctl, &res, "SELECT user_id, quantity FROM seckill_orders WHERE activity_id = %"
                 PRIu64 " ORDER BY user_id", verify->activity);
    if (rc != CTL_FINE) {
        return rc;
    }

    verify->nbought = (size_t) mysql_num_rows(res);
    verify->bought = calloc(verify->nbought + 1, sizeof(ctl_bought_t));

    if (verify->bought == NULL) {
        mysql_free_result(res);
        return ctl_fail(ctl, CTL_PARTLY, "no memory for %zu orders", verify->nbought);
    }

    for (i = 0; i < verify->nbought && (column = mysql_fetch_row(res)) != NULL; i++) {
        verify->bought[i].user = ctl_column_u64(column[0]);
        verify->bought[i].units = ctl_column_u64(column[1]);
    }

    mysql_free_result(res);

    return CTL_FINE;
}


static int
ctl_verify_prepare(ctl_t *ctl, ctl_verify_t *verify)
{
    int  rc;

    if ((rc = ctl_minter_open(ctl, &verify->minter)) != CTL_FINE
        || (rc = ctl_open_redis(ctl)) != CTL_FINE
        || (!verify->no_wait && (rc = ctl_open_mysql(ctl)) != CTL_FINE)
        || (rc = ctl_live_read(ctl, verify->activity, &verify->before)) != CTL_FINE)
    {
        return rc;
    }

    if (!verify->before.exists || verify->before.stock < 0) {
        return ctl_fail(ctl, CTL_NO, "activity %" PRIu64 " is not preheated",
                        verify->activity);
    }

    if (strcmp(ctl_live_phase(&verify->before), "running") != 0) {
        ctl_warn("activity %" PRIu64 " is %s", verify->activity,
                 ctl_live_phase(&verify->before));
    }

    verify->heard = calloc(verify->nusers, 1);

    if (verify->heard == NULL
        || ctl_users_create(&verify->users, verify->first_user, (uint32_t) verify->nusers,
                            verify->minter.key, verify->minter.alg, verify->minter.claim,
                            verify->minter.now, verify->minter.expires) != 0)
    {
        return ctl_fail(ctl, CTL_PARTLY, "no memory for %" PRIu64 " users", verify->nusers);
    }

    return ctl_verify_buyers_before(ctl, verify);
}


static int
ctl_verify_work(ctl_t *ctl, ctl_verify_t *verify)
{
    int     rc;
    size_t  i;

    if ((rc = ctl_verify_prepare(ctl, verify)) != CTL_FINE
        || (rc = ctl_verify_buy(ctl, verify)) != CTL_FINE)
    {
        return rc;
    }

    if (verify->no_wait) {
        rc = ctl_live_read(ctl, verify->activity, &verify->after);

    } else if ((rc = ctl_verify_wait(ctl, verify)) == CTL_FINE
               && (rc = ctl_verify_orders(ctl, verify)) == CTL_FINE)
    {
        rc = ctl_verify_poll(ctl, verify);
    }

    if (rc != CTL_FINE) {
        return rc;
    }

    ctl_verify_check(verify);

    rc = ctl_verify_print(ctl, verify);

    for (i = 0; rc == CTL_FINE && i < verify->nchecks; i++) {
        rc = verify->checks[i].result == CTL_FAIL ? CTL_NO : CTL_FINE;
    }

    return rc;
}


static int
ctl_verify_run(ctl_t *ctl, int argc, char **argv)
{
    int            rc;
    ctl_verify_t  *verify;

    verify = calloc(1, sizeof(*verify));
    if (verify == NULL) {
        return ctl_fail(ctl, CTL_PARTLY, "out of memory");
    }

    if (ctl_verify_options(ctl, verify, argc, argv) != 0) {
        rc = ctl->exit;

    } else if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        rc = ctl_fail(ctl, CTL_PARTLY, "libcurl does not start");

    } else {
        rc = ctl_verify_work(ctl, verify);
        curl_global_cleanup();
    }

    ctl_minter_close(&verify->minter);
    ctl_users_free(&verify->users);
    free(verify->heard);
    free(verify->bought);
    free(verify->old);
    free(verify);

    return rc;
}


const ctl_verb_t  ctl_verify_verb = {
    "verify",
    "ID --url URL [--users N] [--requests M] [--concurrency C] [--key-file FILE] ...",
    "send a crowd to a running sale, then check the books",
    "Sends M purchases of N distinct users over C kept connections to URL/ID, waits for\n"
    "seckilld, and checks that what the crowd heard agrees with Redis and MySQL.  It\n"
    "really buys.  Exit 1 when a check fails, 3 when nobody answers.\n"
    "\n"
    "      --url URL        http://127.0.0.1:8080/seckill, or unix:/path:/seckill\n"
    "      --users N        default 1000\n"
    "      --requests M     default twice the users\n"
    "      --concurrency C  default 50\n"
    "      --first-user U   the crowd is U .. U + N - 1, default 1\n"
    "      --quantity Q     units of each purchase, default 1\n"
    "      --seed S         who comes when; default random, printed\n"
    "      --timeout TIME   how long to wait for seckilld, default 30s\n"
    "      --no-wait        do not wait, and skip what needs the orders\n"
    "      --cacert FILE    PEM file to verify https with\n"
    "      --insecure       do not verify https\n"
    CTL_MINTER_HELP,
    ctl_verify_run
};
