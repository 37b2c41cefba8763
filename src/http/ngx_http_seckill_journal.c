
/*
 * Purchases as lines of the journal: all of a batch in one write.  A client who
 * leaves while its batch is with Redis takes its memory along, so what its line
 * needs is copied then.
 */


#include "ngx_http_seckill_journal.h"


static ngx_uint_t ngx_http_seckill_journal_purchase(
    ngx_http_seckill_batch_t *batch, ngx_uint_t i, sk_journal_line_t *line);
static u_char *ngx_http_seckill_journal_put(ngx_http_seckill_batch_t *batch,
    ngx_uint_t i, sk_journal_key_t *key, sk_journal_line_t *line, u_char *p,
    ngx_uint_t *lost);


/* a worker writes one batch at a time */
static u_char  ngx_http_seckill_journal_text[1 + NGX_HTTP_SECKILL_BATCH_MAX
                                                 * (SK_JOURNAL_LINE + 1)];


void
ngx_http_seckill_journal_take(ngx_http_seckill_batch_t *batch,
    ngx_http_seckill_ctx_t *ctx)
{
    if (ctx->control.nkeys) {
        ngx_memcpy(batch->key, ctx->control.keys[0],
                   NGX_HTTP_SECKILL_HMAC_KEY);
    }

    batch->has_key = ctx->control.nkeys > 0;
    batch->epoch = ctx->facts.epoch;
}


void
ngx_http_seckill_journal_keep(ngx_http_seckill_ctx_t *ctx)
{
    ngx_http_seckill_gone_t  *gone;

    if (!ngx_http_seckill_journal_on()) {
        return;
    }

    gone = ngx_alloc(sizeof(ngx_http_seckill_gone_t) + ctx->request_id.len
                     + ctx->purchase->ext_len, ngx_cycle->log);
    if (gone == NULL) {
        /* found missing when the batch is written: counted as lost then */
        return;
    }

    gone->index = ctx->index;
    gone->user = ctx->user;
    gone->quantity = ctx->purchase->quantity;
    gone->request_id_len = ctx->request_id.len;
    gone->ext_len = ctx->purchase->ext_len;

    ngx_memcpy(gone->text, ctx->request_id.data, gone->request_id_len);
    ngx_memcpy(gone->text + gone->request_id_len, ctx->purchase->ext,
               gone->ext_len);

    gone->next = ctx->batch->gone;
    ctx->batch->gone = gone;
}


void
ngx_http_seckill_journal_done(ngx_http_seckill_batch_t *batch)
{
    ngx_http_seckill_gone_t  *gone;

    while (batch->gone) {
        gone = batch->gone;
        batch->gone = gone->next;
        ngx_free(gone);
    }
}


void
ngx_http_seckill_journal_accepted(ngx_http_seckill_batch_t *batch,
    uint64_t time_ms, uint64_t epoch, uint64_t seq, const char *digits)
{
    u_char             *p;
    ngx_uint_t          i, lines, lost;
    sk_order_no_t       no;
    sk_journal_key_t   *key;
    sk_journal_line_t   line;

    if (!ngx_http_seckill_journal_on()) {
        return;
    }

    lines = 0;

    for (i = 0; i < batch->n; i++) {
        lines += sk_verdict_by_script(digits[i]) == SK_ACCEPTED;
    }

    if (lines == 0) {
        return;
    }

    key = ngx_http_seckill_journal_key(batch->lane->conf,
                                       batch->has_key ? batch->key : NULL);

    line.kind = SK_JOURNAL_ACCEPTED;
    line.time_ms = time_ms;
    line.epoch = epoch;
    line.seq = seq - lines;

    no.accepted_ms = time_ms;
    no.activity = batch->lane->activity;

    p = ngx_http_seckill_journal_text;
    *p++ = LF;
    lost = 0;

    for (i = 0; i < batch->n; i++) {
        if (sk_verdict_by_script(digits[i]) != SK_ACCEPTED) {
            continue;
        }

        line.seq++;

        if (ngx_http_seckill_journal_purchase(batch, i, &line)) {
            no.seq = line.seq;
            no.user = line.user;
            sk_order_no_format(line.order_no, &no);
        }

        p = ngx_http_seckill_journal_put(batch, i, key, &line, p, &lost);
    }

    if (lost) {
        ngx_http_seckill_journal_lost(batch->lane->conf, lost,
                                      "no memory, or no key");
    }

    if (lines > lost) {
        ngx_http_seckill_journal_write(batch->lane->conf,
                            ngx_http_seckill_journal_text,
                            p - ngx_http_seckill_journal_text, lines - lost);
    }
}


void
ngx_http_seckill_journal_unknown(ngx_http_seckill_batch_t *batch)
{
    u_char             *p;
    ngx_uint_t          i, lost;
    ngx_time_t         *tp;
    sk_journal_key_t   *key;
    sk_journal_line_t   line;

    if (!ngx_http_seckill_journal_on()) {
        return;
    }

    key = ngx_http_seckill_journal_key(batch->lane->conf,
                                       batch->has_key ? batch->key : NULL);

    tp = ngx_timeofday();

    line.kind = SK_JOURNAL_UNKNOWN;
    line.time_ms = (uint64_t) tp->sec * 1000 + tp->msec;
    line.epoch = batch->mark.epoch ? batch->mark.epoch : batch->epoch;
    line.seq = 0;
    line.order_no[0] = '\0';

    p = ngx_http_seckill_journal_text;
    *p++ = LF;
    lost = 0;

    for (i = 0; i < batch->n; i++) {
        (void) ngx_http_seckill_journal_purchase(batch, i, &line);
        p = ngx_http_seckill_journal_put(batch, i, key, &line, p, &lost);
    }

    if (lost) {
        ngx_http_seckill_journal_lost(batch->lane->conf, lost,
                                      "no memory, or no key");
    }

    if (batch->n > lost) {
        ngx_http_seckill_journal_write(batch->lane->conf,
                            ngx_http_seckill_journal_text,
                            p - ngx_http_seckill_journal_text,
                            batch->n - lost);
    }
}


/* who bought what; 0, and user 0: the client has gone and nothing was kept */

static ngx_uint_t
ngx_http_seckill_journal_purchase(ngx_http_seckill_batch_t *batch,
    ngx_uint_t i, sk_journal_line_t *line)
{
    ngx_http_seckill_ctx_t   *ctx;
    ngx_http_seckill_gone_t  *gone;

    ctx = batch->requests[i];

    if (ctx) {
        line->user = ctx->user;
        line->quantity = ctx->purchase->quantity;
        line->request_id = (char *) ctx->request_id.data;
        line->request_id_len = ctx->request_id.len;
        line->ext = ctx->purchase->ext;
        line->ext_len = ctx->purchase->ext_len;

        return 1;
    }

    for (gone = batch->gone; gone; gone = gone->next) {
        if (gone->index == i) {
            line->user = gone->user;
            line->quantity = gone->quantity;
            line->request_id = (char *) gone->text;
            line->request_id_len = gone->request_id_len;
            line->ext = (char *) gone->text + gone->request_id_len;
            line->ext_len = gone->ext_len;

            return 1;
        }
    }

    line->user = 0;

    return 0;
}


static u_char *
ngx_http_seckill_journal_put(ngx_http_seckill_batch_t *batch, ngx_uint_t i,
    sk_journal_key_t *key, sk_journal_line_t *line, u_char *p, ngx_uint_t *lost)
{
    size_t  len;

    line->prefix = (char *) batch->lane->conf->prefix.data;
    line->prefix_len = batch->lane->conf->prefix.len;
    line->activity = batch->lane->activity;

    len = (key && line->user) ? sk_journal_format((char *) p, key, line) : 0;

    if (len == 0) {
        (*lost)++;
        return p;
    }

    p += len;
    *p++ = LF;

    return p;
}
