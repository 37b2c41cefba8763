
/*
 * What admit.lua is asked and what it answers: a batch as a command, and its
 * reply as verdicts.
 */


#include "ngx_http_seckill_facts.h"
#include "ngx_http_seckill_journal.h"
#include "ngx_http_seckill_sold_out.h"


/*
 * EVALSHA, sha, number of keys, keys, activity, how much of what follows, then
 * four per purchase, and the mark; with a limit of the cluster one key more per
 * purchase, and two arguments
 */
#define NGX_HTTP_SECKILL_ADMIT_KEYS  5
#define NGX_HTTP_SECKILL_ADMIT_ARGS                                           \
    (3 + NGX_HTTP_SECKILL_ADMIT_KEYS + 4 + 5 * NGX_HTTP_SECKILL_BATCH_MAX + 4)


/* a call of admit.lua while it is put together */
typedef struct {
    ngx_uint_t                    n;
    ngx_uint_t                    used;         /* of numbers */
    const char                   *argv[NGX_HTTP_SECKILL_ADMIT_ARGS];
    size_t                        lens[NGX_HTTP_SECKILL_ADMIT_ARGS];
    char                          keys[NGX_HTTP_SECKILL_ADMIT_KEYS
                                       + NGX_HTTP_SECKILL_BATCH_MAX][SK_KEY_MAX];
    char                          numbers[7 + 2 * NGX_HTTP_SECKILL_BATCH_MAX]
                                         [SK_ID_MAX];
} ngx_http_seckill_command_t;


static ngx_uint_t ngx_http_seckill_admit_limits(
    ngx_http_seckill_batch_t *batch);
static void ngx_http_seckill_arg(ngx_http_seckill_command_t *command,
    const char *text, size_t len);
static void ngx_http_seckill_arg_number(ngx_http_seckill_command_t *command,
    uint64_t number);
static void ngx_http_seckill_admit_keys(ngx_http_seckill_batch_t *batch,
    ngx_http_seckill_command_t *command);
static void ngx_http_seckill_admit_purchases(ngx_http_seckill_batch_t *batch,
    ngx_http_seckill_command_t *command);
static void ngx_http_seckill_admit_told(ngx_http_seckill_batch_t *batch,
    uint64_t epoch, uint64_t seq);
static void ngx_http_seckill_admit_trouble(ngx_http_seckill_batch_t *batch,
    const char *text);


ngx_seckill_call_t *
ngx_http_seckill_admit_question(ngx_http_seckill_batch_t *batch,
    ngx_seckill_call_done_pt done, ngx_msec_t deadline)
{
    ngx_uint_t                   n;
    const sk_script_t           *script;
    ngx_seckill_call_t          *call;
    ngx_http_seckill_command_t  *command;

    /* a worker makes one call at a time: the formatter copies all this */
    static ngx_http_seckill_command_t  the_command;

    ngx_http_seckill_mark_get(batch->lane->conf, batch->lane->activity,
                              &batch->mark);

    script = &sk_scripts[SK_SCRIPT_ADMIT];
    command = &the_command;

    call = ngx_seckill_call_create(done, batch, deadline);
    if (call == NULL) {
        return NULL;
    }

    call->script = script;

    n = NGX_HTTP_SECKILL_ADMIT_KEYS;

    if (ngx_http_seckill_admit_limits(batch)) {
        n += batch->n;
    }

    command->n = 0;
    command->used = 0;

    ngx_http_seckill_arg(command, "EVALSHA", sizeof("EVALSHA") - 1);
    ngx_http_seckill_arg(command, script->sha1, 40);
    ngx_http_seckill_arg_number(command, n);

    ngx_http_seckill_admit_keys(batch, command);
    ngx_http_seckill_admit_purchases(batch, command);

    if (ngx_seckill_call_command(call, command->n, command->argv,
                                 command->lens)
        != NGX_OK)
    {
        ngx_seckill_call_free(call);
        return NULL;
    }

    return call;
}


/* the script is to keep the limit: one key more per purchase */

static ngx_uint_t
ngx_http_seckill_admit_limits(ngx_http_seckill_batch_t *batch)
{
    return batch->lane->conf->limit_cluster && batch->limit.interval_ms;
}


static void
ngx_http_seckill_arg(ngx_http_seckill_command_t *command, const char *text,
    size_t len)
{
    command->argv[command->n] = text;
    command->lens[command->n++] = len;
}


static void
ngx_http_seckill_arg_number(ngx_http_seckill_command_t *command,
    uint64_t number)
{
    char  *text;

    text = command->numbers[command->used++];

    if (number == 0) {
        ngx_http_seckill_arg(command, "0", 1);
        return;
    }

    ngx_http_seckill_arg(command, text, sk_id_format(text, number));
}


static void
ngx_http_seckill_admit_keys(ngx_http_seckill_batch_t *batch,
    ngx_http_seckill_command_t *command)
{
    char        *key;
    ngx_str_t   *prefix;
    ngx_uint_t   i;

    static const sk_key_e  names[NGX_HTTP_SECKILL_ADMIT_KEYS] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_ORDERS,
        SK_KEY_ELIGIBLE
    };

    prefix = &batch->lane->conf->prefix;

    for (i = 0; i < NGX_HTTP_SECKILL_ADMIT_KEYS; i++) {
        key = command->keys[i];
        ngx_http_seckill_arg(command, key,
                             sk_key(key, (char *) prefix->data, prefix->len,
                                    names[i], batch->lane->activity, 0));
    }

    if (!ngx_http_seckill_admit_limits(batch)) {
        return;
    }

    for (i = 0; i < batch->n; i++) {
        key = command->keys[NGX_HTTP_SECKILL_ADMIT_KEYS + i];
        ngx_http_seckill_arg(command, key,
                             sk_key(key, (char *) prefix->data, prefix->len,
                                    SK_KEY_LIMIT, batch->lane->activity,
                                    batch->requests[i]->user));
    }
}


static void
ngx_http_seckill_admit_purchases(ngx_http_seckill_batch_t *batch,
    ngx_http_seckill_command_t *command)
{
    ngx_uint_t               i;
    ngx_http_seckill_ctx_t  *ctx;

    ngx_http_seckill_arg_number(command, batch->lane->activity);
    ngx_http_seckill_arg_number(command, batch->n);
    ngx_http_seckill_arg(command, batch->mark.epoch ? "2" : "0", 1);
    ngx_http_seckill_arg(command,
                         ngx_http_seckill_admit_limits(batch) ? "2" : "0", 1);

    for (i = 0; i < batch->n; i++) {
        ctx = batch->requests[i];

        ngx_http_seckill_arg_number(command, ctx->user);
        ngx_http_seckill_arg_number(command, ctx->purchase->quantity);
        ngx_http_seckill_arg(command, (char *) ctx->request_id.data,
                             ctx->request_id.len);
        ngx_http_seckill_arg(command, ctx->purchase->ext,
                             ctx->purchase->ext_len);
    }

    if (batch->mark.epoch) {
        ngx_http_seckill_arg_number(command, batch->mark.epoch);
        ngx_http_seckill_arg_number(command, batch->mark.seq);
    }

    if (ngx_http_seckill_admit_limits(batch)) {
        ngx_http_seckill_arg_number(command, batch->limit.interval_ms);
        ngx_http_seckill_arg_number(command, batch->limit.burst);
    }
}


/* what the script says of the sale as a whole */

static void
ngx_http_seckill_admit_told(ngx_http_seckill_batch_t *batch, uint64_t epoch,
    uint64_t seq)
{
    ngx_http_seckill_mark_t  told;

    told.epoch = epoch;
    told.seq = seq;

    if (ngx_http_seckill_mark_behind(&told, &batch->mark)) {
        ngx_http_seckill_mark_lost(batch->lane->conf, batch->lane->activity,
                                   &batch->mark, &told);

    } else if (ngx_http_seckill_mark_behind(&batch->mark, &told)) {
        ngx_http_seckill_mark_set(batch->lane->conf, batch->lane->activity,
                                  &told);
    }
}


/* the answer stands, but something is wrong: an alarm, and not one per batch */

static void
ngx_http_seckill_admit_trouble(ngx_http_seckill_batch_t *batch,
    const char *text)
{
    static time_t  said;

    if (said == ngx_time()) {
        return;
    }

    said = ngx_time();

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "seckill purchases of activity %uL: %s",
                  batch->lane->activity, text);
}


ngx_int_t
ngx_http_seckill_admit_verdicts(ngx_http_seckill_batch_t *batch,
    redisReply *reply)
{
    char                    *digits;
    uint64_t                 seq;
    ngx_uint_t               i;
    sk_verdict_e             verdict;
    ngx_http_seckill_ctx_t  *ctx;

    if (reply->type != REDIS_REPLY_ARRAY
        || (reply->elements != 6
            && (reply->elements != 7
                || reply->element[6]->type != REDIS_REPLY_STRING)))
    {
        return NGX_ERROR;
    }

    for (i = 0; i < 5; i++) {
        if (reply->element[i]->type != REDIS_REPLY_INTEGER
            || reply->element[i]->integer < 0
            || reply->element[i]->integer > NGX_HTTP_SECKILL_NUMBER_MAX)
        {
            /* what is kept of them outlives this call and a reload */
            return NGX_ERROR;
        }
    }

    if (reply->element[5]->type != REDIS_REPLY_STRING
        || (ngx_uint_t) reply->element[5]->len != batch->n)
    {
        return NGX_ERROR;
    }

    digits = reply->element[5]->str;
    seq = (uint64_t) reply->element[3]->integer;

    for (i = 0; i < batch->n; i++) {
        verdict = sk_verdict_by_script(digits[i]);

        if (verdict == SK_VERDICTS) {
            return NGX_ERROR;
        }

        if (verdict == SK_ACCEPTED && seq-- == 0) {
            return NGX_ERROR;
        }
    }

    if (reply->elements == 7) {
        ngx_http_seckill_admit_trouble(batch, reply->element[6]->str);
    }

    ngx_http_seckill_admit_told(batch, (uint64_t) reply->element[1]->integer,
                                (uint64_t) reply->element[3]->integer);

    if (reply->element[4]->integer == 0) {
        ngx_http_seckill_sold_out_set(batch->lane->conf, batch->lane->activity,
                                      (uint64_t) reply->element[1]->integer,
                                      (uint64_t) reply->element[2]->integer);
    }

    ngx_http_seckill_journal_accepted(batch,
                                      (uint64_t) reply->element[0]->integer,
                                      (uint64_t) reply->element[1]->integer,
                                      (uint64_t) reply->element[3]->integer,
                                      digits);

    for (i = 0; i < batch->n; i++) {
        verdict = sk_verdict_by_script(digits[i]);

        if (verdict == SK_ACCEPTED) {
            seq++;
        }

        ctx = batch->requests[i];
        if (ctx == NULL) {
            continue;
        }

        if (verdict == SK_LIMITED) {
            ctx->retry_after = (batch->limit.interval_ms + 999) / 1000;
        }

        ctx->verdict = verdict;
        ctx->redis_ms = (uint64_t) reply->element[0]->integer;
        ctx->epoch = (uint64_t) reply->element[1]->integer;
        ctx->seq = (verdict == SK_ACCEPTED) ? seq : 0;
    }

    return NGX_OK;
}
