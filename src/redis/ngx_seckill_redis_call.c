
/*
 * One call: its commands, its replies in pipeline order, and its one ending.
 *
 * QUEUED -> SENT (-> RESENT after NOSCRIPT) -> ANSWERED, NOT_RUN or UNKNOWN.
 */


#include "ngx_seckill_redis_private.h"


static void ngx_seckill_redis_count_call(ngx_seckill_call_t *call);
static ngx_int_t ngx_seckill_redis_call_resend(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_call_t *call);
static void ngx_seckill_redis_script_loaded(ngx_seckill_call_t *call);
static void ngx_seckill_redis_call_finish(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_call_t *call);
static void ngx_seckill_redis_call_drop_replies(ngx_seckill_call_t *call);
static ngx_uint_t ngx_seckill_redis_denied(const char *text);


static ngx_seckill_redis_count_t  *ngx_seckill_redis_counts;


/*
 * Error replies by their first word.  Redis 6 wraps errors of commands inside
 * scripts as "ERR Error running script ..: -OOM ..", so the word is looked for
 * there too: lua/admit.lua proves everything before its first write.
 */

static struct {
    const char           *word;
    size_t                len;
    ngx_seckill_error_e   error;
} ngx_seckill_redis_errors[NGX_SECKILL_KIND_ERRORS] = {
    { "NOSCRIPT", 8, NGX_SECKILL_ERROR_NOSCRIPT },
    { "SECKILL", 7, NGX_SECKILL_ERROR_REFUSED },
    { "WRONGTYPE", 9, NGX_SECKILL_ERROR_REFUSED },
    { "OOM", 3, NGX_SECKILL_ERROR_REFUSED },
    { "MISCONF", 7, NGX_SECKILL_ERROR_REFUSED },
    { "BUSY", 4, NGX_SECKILL_ERROR_REFUSED },
    { "NOPERM", 6, NGX_SECKILL_ERROR_REFUSED },
    { "NOREPLICAS", 10, NGX_SECKILL_ERROR_REFUSED },
    { "NOAUTH", 6, NGX_SECKILL_ERROR_WRONG_NODE },
    { "READONLY", 8, NGX_SECKILL_ERROR_WRONG_NODE },
    { "MOVED", 5, NGX_SECKILL_ERROR_CLUSTER },
    { "ASK", 3, NGX_SECKILL_ERROR_CLUSTER },
    { "TRYAGAIN", 8, NGX_SECKILL_ERROR_CLUSTER },
    { "CLUSTERDOWN", 11, NGX_SECKILL_ERROR_CLUSTER },
    { "MASTERDOWN", 10, NGX_SECKILL_ERROR_WRONG_NODE },
    { "LOADING", 7, NGX_SECKILL_ERROR_LOADING }
};


ngx_seckill_error_e
ngx_seckill_redis_error(const redisReply *reply, ngx_uint_t *kind)
{
    size_t       len;
    ngx_uint_t   i, wrapped;
    const char  *word, *p;

    wrapped = (ngx_strncmp(reply->str, "ERR Error running script",
                           sizeof("ERR Error running script") - 1) == 0);

    if (ngx_seckill_redis_denied(reply->str)) {
        *kind = NGX_SECKILL_KIND_NOPERM;
        return NGX_SECKILL_ERROR_REFUSED;
    }

    for (i = 0; i < NGX_SECKILL_KIND_ERRORS; i++) {
        word = ngx_seckill_redis_errors[i].word;
        len = ngx_seckill_redis_errors[i].len;

        p = wrapped ? strstr(reply->str, word) : reply->str;

        if (p && ngx_strncmp(p, word, len) == 0
            && (p[len] == ' ' || p[len] == '\0'))
        {
            *kind = i;
            return ngx_seckill_redis_errors[i].error;
        }
    }

    *kind = NGX_SECKILL_KIND_OTHER;

    return NGX_SECKILL_ERROR_OTHER;
}


/*
 * What a script hears of a right that is missing: no release has a word of its
 * own for that.  Our scripts prove their rights before they write.
 */

static ngx_uint_t
ngx_seckill_redis_denied(const char *text)
{
    return ngx_strncmp(text, "ERR ", 4) == 0
           && (strstr(text, "user executing the script") != NULL
               || strstr(text, "o permissions to ") != NULL);
}


const char *
ngx_seckill_redis_kind(ngx_uint_t kind)
{
    static const char  *others[] = { "other", "lost", "not_sent" };

    return kind < NGX_SECKILL_KIND_ERRORS
           ? ngx_seckill_redis_errors[kind].word
           : others[kind - NGX_SECKILL_KIND_ERRORS];
}


void
ngx_seckill_redis_count(ngx_seckill_redis_count_t *count)
{
    ngx_seckill_redis_counts = count;
}


void
ngx_seckill_histogram_add(ngx_seckill_histogram_t *histogram, ngx_msec_t value)
{
    ngx_uint_t  i;

    static const ngx_msec_t  bounds[] = NGX_SECKILL_BOUNDS;

    for (i = 0; i < NGX_SECKILL_BUCKETS - 1 && value > bounds[i]; i++) {
        /* void */
    }

    (void) ngx_atomic_fetch_add(&histogram->buckets[i], 1);
    (void) ngx_atomic_fetch_add(&histogram->sum, value);
}


static void
ngx_seckill_redis_count_call(ngx_seckill_call_t *call)
{
    if (ngx_seckill_redis_counts == NULL) {
        return;
    }

    if (call->end == NGX_SECKILL_ANSWERED) {
        ngx_seckill_histogram_add(&ngx_seckill_redis_counts->calls,
                                  ngx_current_msec - call->created);
        return;
    }

    if (call->kind == NGX_SECKILL_KINDS) {
        call->kind = (call->end == NGX_SECKILL_UNKNOWN)
                     ? NGX_SECKILL_KIND_LOST : NGX_SECKILL_KIND_NOT_SENT;
    }

    (void) ngx_atomic_fetch_add(&ngx_seckill_redis_counts->failed[call->kind],
                                1);
}


ngx_seckill_call_t *
ngx_seckill_call_create(ngx_seckill_call_done_pt done, void *data,
    ngx_msec_t deadline)
{
    ngx_seckill_call_t  *call;

    call = ngx_calloc(sizeof(ngx_seckill_call_t), ngx_cycle->log);
    if (call == NULL) {
        return NULL;
    }

    call->done = done;
    call->data = data;
    call->deadline = deadline;
    call->created = ngx_current_msec;
    call->kind = NGX_SECKILL_KINDS;

    return call;
}


ngx_int_t
ngx_seckill_call_command(ngx_seckill_call_t *call, ngx_uint_t argc,
    const char **argv, const size_t *lens)
{
    int    len;
    char  *cmd, *buf;

    if (call->expected == NGX_SECKILL_CALL_REPLIES) {
        return NGX_ERROR;
    }

    len = redisFormatCommandArgv(&cmd, (int) argc, argv, lens);
    if (len < 0) {
        return NGX_ERROR;
    }

    call->expected++;

    if (call->buf == NULL) {
        call->buf = cmd;
        call->len = len;
        return NGX_OK;
    }

    buf = realloc(call->buf, call->len + len);
    if (buf == NULL) {
        redisFreeCommand(cmd);
        return NGX_ERROR;
    }

    ngx_memcpy(buf + call->len, cmd, len);
    redisFreeCommand(cmd);

    call->buf = buf;
    call->len += len;

    return NGX_OK;
}


void
ngx_seckill_call_detach(ngx_seckill_call_t *call)
{
    call->done = NULL;
    call->data = NULL;
}


void
ngx_seckill_call_free(ngx_seckill_call_t *call)
{
    ngx_seckill_redis_call_drop_replies(call);

    if (call->buf) {
        redisFreeCommand(call->buf);
    }

    ngx_free(call);
}


static void
ngx_seckill_redis_call_drop_replies(ngx_seckill_call_t *call)
{
    ngx_uint_t  i;

    for (i = 0; i < call->received; i++) {
        freeReplyObject(call->replies[i]);
    }

    call->received = 0;
}


void
ngx_seckill_redis_call_end(ngx_seckill_redis_t *redis, ngx_seckill_call_t *call,
    ngx_seckill_end_e end, const char *error)
{
    call->end = end;
    call->error = error;

    if (!call->internal) {
        redis->pending--;
        ngx_seckill_redis_count_call(call);
    }

    if (call->done) {
        call->done(call);
    }

    ngx_seckill_call_free(call);
}


void
ngx_seckill_redis_call_end_all(ngx_seckill_redis_t *redis, ngx_queue_t *queue,
    ngx_seckill_end_e end, const char *error)
{
    ngx_queue_t          own, *q;
    ngx_seckill_call_t  *call;

    /* done() may queue new calls: they are not ours */

    if (ngx_queue_empty(queue)) {
        return;
    }

    ngx_queue_init(&own);
    ngx_queue_add(&own, queue);
    ngx_queue_init(queue);

    while (!ngx_queue_empty(&own)) {
        q = ngx_queue_head(&own);
        ngx_queue_remove(q);

        call = ngx_queue_data(q, ngx_seckill_call_t, queue);
        ngx_seckill_redis_call_end(redis, call, end, error);
    }
}


/*
 * The connection has gone and the calls that wait go on with the next one: but
 * for those that only make sense where they were meant to run.
 */

void
ngx_seckill_redis_call_end_bound(ngx_seckill_redis_t *redis, ngx_queue_t *queue,
    const char *error)
{
    ngx_queue_t          bound, *q, *next;
    ngx_seckill_call_t  *call;

    ngx_queue_init(&bound);

    for (q = ngx_queue_head(queue); q != ngx_queue_sentinel(queue); q = next) {
        next = ngx_queue_next(q);
        call = ngx_queue_data(q, ngx_seckill_call_t, queue);

        /* the next server may not have the script either */
        call->resent = 0;

        if (call->session) {
            ngx_queue_remove(q);
            ngx_queue_insert_tail(&bound, q);
        }
    }

    ngx_seckill_redis_call_end_all(redis, &bound, NGX_SECKILL_NOT_RUN, error);
}


void
ngx_seckill_redis_call_reply(ngx_seckill_redis_conn_t *conn, redisReply *reply)
{
    ngx_queue_t         *q;
    ngx_seckill_call_t  *call;

    if (conn->subscriber
        && ngx_seckill_redis_message(conn->redis, reply) == NGX_OK)
    {
        freeReplyObject(reply);
        return;
    }

    if (ngx_queue_empty(&conn->sent)) {
        freeReplyObject(reply);
        ngx_seckill_redis_conn_fail(conn, "a reply nobody asked for");
        return;
    }

    q = ngx_queue_head(&conn->sent);
    call = ngx_queue_data(q, ngx_seckill_call_t, queue);

    if (call->written < call->len) {
        freeReplyObject(reply);
        ngx_seckill_redis_conn_fail(conn, "a reply before the call was sent");
        return;
    }

    call->replies[call->received++] = reply;

    if (call->received < call->expected) {
        return;
    }

    ngx_queue_remove(q);
    ngx_seckill_redis_call_finish(conn, call);

    if (conn->leaving && ngx_queue_empty(&conn->sent)) {
        ngx_seckill_redis_conn_fail(conn, "left for another node");
    }
}


static void
ngx_seckill_redis_call_finish(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_call_t *call)
{
    char                  text[128];
    ngx_uint_t            i, internal;
    redisReply           *reply;
    ngx_seckill_end_e     end;
    ngx_seckill_error_e   error;
    ngx_seckill_redis_t  *redis;

    redis = conn->redis;
    reply = NULL;

    for (i = 0; i < call->received; i++) {
        if (call->replies[i]->type == REDIS_REPLY_ERROR) {
            reply = call->replies[i];
            break;
        }
    }

    if (reply == NULL) {
        if (call->script == &sk_scripts[SK_SCRIPT_ADMIT] && !call->internal) {
            ngx_seckill_redis_right_node(conn);
        }

        call->session = conn->session;
        ngx_seckill_redis_call_end(redis, call, NGX_SECKILL_ANSWERED, NULL);
        return;
    }

    error = ngx_seckill_redis_error(reply, &call->kind);

    if (error == NGX_SECKILL_ERROR_NOSCRIPT && call->script && !call->resent
        && ngx_seckill_redis_call_resend(conn, call) == NGX_OK)
    {
        return;
    }

    /* the reply dies with the call, but the connection may still need the text */

    ngx_cpystrn((u_char *) text, (u_char *) reply->str, sizeof(text));

    internal = call->internal;      /* the handshake fails its connection itself */
    end = (error == NGX_SECKILL_ERROR_OTHER) ? NGX_SECKILL_UNKNOWN
                                             : NGX_SECKILL_NOT_RUN;

    if (error == NGX_SECKILL_ERROR_CLUSTER && !redis->cluster) {
        redis->cluster = 1;
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "seckill redis \"%V\" is a node of a cluster, which is "
                      "not supported: %s", &redis->addr.name, text);
    }

    ngx_seckill_redis_call_end(redis, call, end, text);

    if (internal) {
        return;
    }

    if (error == NGX_SECKILL_ERROR_WRONG_NODE) {
        ngx_seckill_redis_wrong_node(conn, text);

    } else if (error == NGX_SECKILL_ERROR_LOADING) {
        ngx_seckill_redis_conn_fail(conn, text);
    }
}


/*
 * Redis forgot the script, so the call has not run: load the script again, once
 * for all calls that meet this, and send the call once more behind it.
 */

static ngx_int_t
ngx_seckill_redis_call_resend(ngx_seckill_redis_conn_t *conn,
    ngx_seckill_call_t *call)
{
    size_t               lens[3];
    const char          *argv[3];
    ngx_seckill_call_t  *load;

    if (conn->loading != call->script) {
        load = ngx_seckill_call_create(ngx_seckill_redis_script_loaded, conn,
                                       call->deadline);
        if (load == NULL) {
            return NGX_ERROR;
        }

        argv[0] = "SCRIPT";
        lens[0] = sizeof("SCRIPT") - 1;
        argv[1] = "LOAD";
        lens[1] = sizeof("LOAD") - 1;
        argv[2] = call->script->text;
        lens[2] = call->script->len;

        if (ngx_seckill_call_command(load, 3, argv, lens) != NGX_OK) {
            ngx_seckill_call_free(load);
            return NGX_ERROR;
        }

        load->internal = 1;
        load->script = call->script;
        conn->loading = call->script;
        ngx_queue_insert_tail(&conn->waiting, &load->queue);
    }

    ngx_log_error(NGX_LOG_NOTICE, ngx_cycle->log, 0,
                  "seckill redis \"%V\" lost script \"%s\", loading it again",
                  &conn->redis->addr.name, call->script->name);

    ngx_seckill_redis_call_drop_replies(call);
    call->written = 0;
    call->resent = 1;

    ngx_queue_insert_tail(&conn->waiting, &call->queue);
    ngx_seckill_redis_conn_post(conn);

    return NGX_OK;
}


static void
ngx_seckill_redis_script_loaded(ngx_seckill_call_t *call)
{
    ngx_seckill_redis_conn_t  *conn;

    /* a load that failed shows in the calls behind it */

    conn = call->data;

    if (conn->loading == call->script) {
        conn->loading = NULL;
    }
}
