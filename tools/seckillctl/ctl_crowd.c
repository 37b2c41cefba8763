/*
 * The crowd on libcurl's multi interface and epoll.
 *
 * A slot is one connection's worth of traffic: one easy handle, made once and
 * used for request after request.  The only thing that changes between two
 * requests of a slot is the text its Authorization header points to, so a
 * request costs no allocation of ours, no name lookup and no new connection.
 */

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

#include "ctl_crowd.h"
#include "ctl_progress.h"

#define CTL_BODY_MAX    4096            /* longest answer looked at, in bytes */
#define CTL_EVENTS      512

typedef struct ctl_run_s  ctl_run_t;

typedef struct {
    ctl_run_t          *run;
    CURL               *easy;
    struct curl_slist   auth;           /* its text is the user's, not owned */
    struct curl_slist   type;
    struct curl_slist   accept;
    uint32_t            user;
    uint64_t            started;        /* usec */
    size_t              len;
    int                 too_long;
    char                body[CTL_BODY_MAX + 1];
} ctl_slot_t;

struct ctl_run_s {
    const ctl_crowd_t  *crowd;
    ctl_crowd_stats_t  *stats;
    CURLM              *multi;
    int                 epoll;
    uint64_t            timer;          /* usec, 0 when curl wants none */
    size_t              started;
    size_t              done;
    uint32_t           *usec;           /* of the answered requests */
    ctl_slot_t         *slots;
    unsigned            nslots;
    ctl_progress_t      progress;
};

static char  ctl_content_type[] = "Content-Type: application/json";
static char  ctl_no_accept[] = "Accept:";


static uint64_t
ctl_now_us(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}


static size_t
ctl_slot_write(char *text, size_t size, size_t n, void *data)
{
    size_t       len;
    ctl_slot_t  *slot;

    slot = data;
    len = size * n;

    if (len > CTL_BODY_MAX - slot->len) {
        slot->too_long = 1;
        return len;
    }

    memcpy(slot->body + slot->len, text, len);
    slot->len += len;

    return len;
}


static int
ctl_on_socket(CURL *easy, curl_socket_t fd, int what, void *data, void *known)
{
    ctl_run_t           *run;
    struct epoll_event   event;

    (void) easy;
    run = data;

    if (what == CURL_POLL_REMOVE) {
        /* curl closes the descriptor next; being gone already is fine */
        (void) epoll_ctl(run->epoll, EPOLL_CTL_DEL, fd, NULL);
        curl_multi_assign(run->multi, fd, NULL);
        return 0;
    }

    memset(&event, 0, sizeof(event));
    event.data.fd = fd;
    event.events = ((what & CURL_POLL_IN) ? EPOLLIN : 0u)
                   | ((what & CURL_POLL_OUT) ? EPOLLOUT : 0u);

    if (epoll_ctl(run->epoll, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) {
        return -1;
    }

    if (known == NULL) {
        curl_multi_assign(run->multi, fd, run);
    }

    return 0;
}


static int
ctl_on_timer(CURLM *multi, long ms, void *data)
{
    ctl_run_t  *run;

    (void) multi;
    run = data;
    run->timer = ms < 0 ? 0 : ctl_now_us() + (uint64_t) ms * 1000;

    return 0;
}


static int
ctl_slot_start(ctl_run_t *run, ctl_slot_t *slot)
{
    const ctl_users_t  *users;

    users = run->crowd->users;

    slot->user = run->crowd->plan[run->started];
    slot->auth.data = users->lines + users->at[slot->user];
    slot->len = 0;
    slot->too_long = 0;
    slot->started = ctl_now_us();

    if (curl_multi_add_handle(run->multi, slot->easy) != CURLM_OK) {
        return -1;
    }

    run->started++;

    return 0;
}


/* "code" of the body, or -1 when it is not a body of ours */
static int
ctl_slot_code(ctl_slot_t *slot)
{
    int               code;
    char              error[64];
    yajl_val          root, value;
    const char       *path[] = { "code", NULL };

    if (slot->too_long || slot->len == 0) {
        return -1;
    }

    slot->body[slot->len] = '\0';

    root = yajl_tree_parse(slot->body, error, sizeof(error));
    if (root == NULL) {
        return -1;
    }

    code = -1;
    value = yajl_tree_get(root, path, yajl_t_number);

    if (YAJL_IS_INTEGER(value) && YAJL_GET_INTEGER(value) >= 0
        && YAJL_GET_INTEGER(value) <= 99999)
    {
        code = (int) YAJL_GET_INTEGER(value);
    }

    yajl_tree_free(root);

    return code;
}


static sk_verdict_e
ctl_verdict_by_code(int code)
{
    unsigned  i;

    /* the first row of a code stands for it: accepted, not queueing or facts */
    for (i = 0; i < SK_VERDICTS; i++) {
        if (sk_verdicts[i].code == code) {
            break;
        }
    }

    return (sk_verdict_e) i;
}


static ctl_outcome_e
ctl_outcome(CURLcode rc)
{
    switch (rc) {

    case CURLE_OK:
        return CTL_ANSWERED;

    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
        return CTL_NOT_CONNECTED;

    case CURLE_OPERATION_TIMEDOUT:
        return CTL_TIMED_OUT;

    default:
        return CTL_CUT;
    }
}


static void
ctl_slot_done(ctl_run_t *run, ctl_slot_t *slot, CURLcode rc)
{
    long           status;
    ctl_answer_t   answer;

    answer.user = slot->user;
    answer.outcome = ctl_outcome(rc);
    answer.usec = (uint32_t) (ctl_now_us() - slot->started);
    answer.status = 0;
    answer.code = -1;
    answer.verdict = SK_VERDICTS;

    if (answer.outcome == CTL_ANSWERED) {
        status = 0;
        curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status);
        answer.status = (int) status;
        answer.code = ctl_slot_code(slot);
        answer.verdict = ctl_verdict_by_code(answer.code);
        run->usec[run->stats->answered++] = answer.usec;
    }

    run->done++;
    run->crowd->answer(run->crowd->data, &answer);
}


/* Takes finished requests off and sends the next ones from their slots. */
static const char *
ctl_run_collect(ctl_run_t *run)
{
    int          left;
    char        *data;
    CURL        *easy;
    CURLMsg     *msg;
    CURLcode     rc;

    while ((msg = curl_multi_info_read(run->multi, &left)) != NULL) {

        if (msg->msg != CURLMSG_DONE) {
            continue;
        }

        easy = msg->easy_handle;        /* msg dies with the removal */
        rc = msg->data.result;
        data = NULL;

        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &data);
        curl_multi_remove_handle(run->multi, easy);
        ctl_slot_done(run, (ctl_slot_t *) (void *) data, rc);

        if (run->started < run->crowd->n
            && ctl_slot_start(run, (ctl_slot_t *) (void *) data) != 0)
        {
            return "libcurl refused a request";
        }
    }

    return NULL;
}


static int
ctl_run_wait_ms(ctl_run_t *run)
{
    uint64_t  now;

    if (run->timer == 0) {
        return 100;
    }

    now = ctl_now_us();

    if (run->timer <= now) {
        return 0;
    }

    now = (run->timer - now + 999) / 1000;

    return now > 100 ? 100 : (int) now;
}


static const char *
ctl_run_loop(ctl_run_t *run)
{
    int                  i, n, mask, running;
    const char          *error;
    struct epoll_event   events[CTL_EVENTS];

    while (run->done < run->crowd->n) {

        n = epoll_wait(run->epoll, events, CTL_EVENTS, ctl_run_wait_ms(run));

        if (n < 0 && errno != EINTR) {
            return "epoll_wait() failed";
        }

        for (i = 0; i < n; i++) {
            mask = ((events[i].events & EPOLLIN) ? CURL_CSELECT_IN : 0)
                   | ((events[i].events & EPOLLOUT) ? CURL_CSELECT_OUT : 0)
                   | ((events[i].events & (EPOLLERR|EPOLLHUP)) ? CURL_CSELECT_ERR : 0);

            if (curl_multi_socket_action(run->multi, events[i].data.fd, mask, &running)
                != CURLM_OK)
            {
                return "libcurl lost a socket";
            }
        }

        if (run->timer != 0 && run->timer <= ctl_now_us()) {
            run->timer = 0;

            if (curl_multi_socket_action(run->multi, CURL_SOCKET_TIMEOUT, 0, &running)
                != CURLM_OK)
            {
                return "libcurl failed";
            }
        }

        error = ctl_run_collect(run);
        if (error) {
            return error;
        }

        ctl_progress(&run->progress, run->done);
    }

    return NULL;
}


static int
ctl_slot_init(ctl_run_t *run, ctl_slot_t *slot)
{
    CURL               *easy;
    const ctl_crowd_t  *crowd;

    crowd = run->crowd;
    slot->run = run;

    easy = curl_easy_init();
    slot->easy = easy;

    if (easy == NULL) {
        return -1;
    }

    slot->auth.next = &slot->accept;
    slot->accept.data = ctl_no_accept;

    if (crowd->post) {
        slot->accept.next = &slot->type;
        slot->type.data = ctl_content_type;
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, crowd->body);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long) strlen(crowd->body));
    }

    curl_easy_setopt(easy, CURLOPT_PRIVATE, slot);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, &slot->auth);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ctl_slot_write);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, slot);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, crowd->timeout_ms);
    curl_easy_setopt(easy, CURLOPT_DNS_CACHE_TIMEOUT, -1L);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long) CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");      /* whatever the environment says */

    if (crowd->unix_socket) {
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, crowd->unix_socket);
    }

    /* a directory keeps libcurl from sharing one parsed store among connections */
    curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);

    if (crowd->cacert) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, crowd->cacert);
    }

    if (crowd->insecure) {
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
        curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    }

    return curl_easy_setopt(easy, CURLOPT_URL, crowd->url) == CURLE_OK ? 0 : -1;
}


/* a descriptor for each connection, and a few of our own */
static int
ctl_raise_descriptors(unsigned concurrency)
{
    rlim_t         need;
    struct rlimit  limit;

    need = (rlim_t) concurrency + 64;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return -1;
    }

    if (limit.rlim_cur >= need) {
        return 0;
    }

    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < need) {
        return -1;
    }

    limit.rlim_cur = need;

    return setrlimit(RLIMIT_NOFILE, &limit);
}


static const char *
ctl_run_init(ctl_run_t *run)
{
    unsigned            i;
    const ctl_crowd_t  *crowd;

    crowd = run->crowd;

    if (ctl_raise_descriptors(crowd->concurrency) != 0) {
        return "more connections than the limit of open files allows";
    }

    run->nslots = crowd->concurrency < crowd->n ? crowd->concurrency : (unsigned) crowd->n;
    run->slots = calloc(run->nslots, sizeof(ctl_slot_t));
    run->usec = malloc(crowd->n * sizeof(uint32_t));
    run->multi = curl_multi_init();
    run->epoll = epoll_create1(EPOLL_CLOEXEC);

    if (run->slots == NULL || run->usec == NULL || run->multi == NULL || run->epoll < 0) {
        return "out of memory or descriptors";
    }

    curl_multi_setopt(run->multi, CURLMOPT_SOCKETFUNCTION, ctl_on_socket);
    curl_multi_setopt(run->multi, CURLMOPT_SOCKETDATA, run);
    curl_multi_setopt(run->multi, CURLMOPT_TIMERFUNCTION, ctl_on_timer);
    curl_multi_setopt(run->multi, CURLMOPT_TIMERDATA, run);
    curl_multi_setopt(run->multi, CURLMOPT_MAXCONNECTS, (long) crowd->concurrency);
    curl_multi_setopt(run->multi, CURLMOPT_PIPELINING, (long) CURLPIPE_NOTHING);

    for (i = 0; i < run->nslots; i++) {
        if (ctl_slot_init(run, &run->slots[i]) != 0) {
            return "libcurl does not take the address";
        }
    }

    return NULL;
}


static void
ctl_run_free(ctl_run_t *run)
{
    unsigned  i;

    for (i = 0; run->slots && i < run->nslots; i++) {
        if (run->slots[i].easy) {
            curl_multi_remove_handle(run->multi, run->slots[i].easy);
            curl_easy_cleanup(run->slots[i].easy);
        }
    }

    curl_multi_cleanup(run->multi);

    if (run->epoll >= 0) {
        close(run->epoll);
    }

    free(run->slots);
    free(run->usec);
}


static int
ctl_usec_cmp(const void *a, const void *b)
{
    uint32_t  x, y;

    x = *(const uint32_t *) a;
    y = *(const uint32_t *) b;

    return (x > y) - (x < y);
}


static void
ctl_run_percentiles(ctl_run_t *run)
{
    size_t              n;
    ctl_crowd_stats_t  *stats;

    stats = run->stats;
    n = stats->answered;

    if (n == 0) {
        return;
    }

    qsort(run->usec, n, sizeof(uint32_t), ctl_usec_cmp);

    stats->p50 = run->usec[(n - 1) * 50 / 100];
    stats->p90 = run->usec[(n - 1) * 90 / 100];
    stats->p99 = run->usec[(n - 1) * 99 / 100];
    stats->max = run->usec[n - 1];
}


const char *
ctl_crowd_run(const ctl_crowd_t *crowd, ctl_crowd_stats_t *stats)
{
    unsigned     i;
    uint64_t     start;
    ctl_run_t    run;
    const char  *error;

    memset(stats, 0, sizeof(*stats));

    if (crowd->n == 0) {
        return NULL;
    }

    memset(&run, 0, sizeof(run));
    run.crowd = crowd;
    run.stats = stats;
    run.epoll = -1;
    ctl_progress_init(&run.progress, crowd->progress, crowd->n);

    error = ctl_run_init(&run);
    start = ctl_now_us();

    for (i = 0; error == NULL && i < run.nslots; i++) {
        if (ctl_slot_start(&run, &run.slots[i]) != 0) {
            error = "libcurl refused a request";
        }
    }

    if (error == NULL) {
        error = ctl_run_loop(&run);
    }

    stats->seconds = (double) (ctl_now_us() - start) / 1e6;
    ctl_progress_end(&run.progress);

    ctl_run_percentiles(&run);
    ctl_run_free(&run);

    return error;
}
