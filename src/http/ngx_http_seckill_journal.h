
/*
 * The journal of this node: every purchase that may have been taken, written
 * before its buyer hears of it.
 */


#ifndef _NGX_HTTP_SECKILL_JOURNAL_H_INCLUDED_
#define _NGX_HTTP_SECKILL_JOURNAL_H_INCLUDED_


#include "ngx_http_seckill_admit.h"

#include "sk_journal.h"


/* a purchase of a batch whose client has gone */
struct ngx_http_seckill_gone_s {
    ngx_http_seckill_gone_t     *next;
    ngx_uint_t                   index;         /* in the batch */
    uint64_t                     user;
    uint64_t                     epoch;
    uint32_t                     quantity;
    size_t                       request_id_len;
    size_t                       ext_len;
    u_char                       text[1];       /* request_id, then ext */
};


/* The batch leaves: what its lines will be signed with. */
void ngx_http_seckill_journal_take(ngx_http_seckill_batch_t *batch,
    ngx_http_seckill_ctx_t *ctx);

/* The client of ctx, which is in a batch, leaves: its purchase may be taken. */
void ngx_http_seckill_journal_keep(ngx_http_seckill_ctx_t *ctx);

/*
 * Redis answered, with the digits of admit.lua and the seq of the last accepted
 * purchase: a line for each of these.
 */
void ngx_http_seckill_journal_accepted(ngx_http_seckill_batch_t *batch,
    uint64_t time_ms, uint64_t epoch, uint64_t seq, const char *digits);

/* The batch was sent and never answered: a line for each of its purchases. */
void ngx_http_seckill_journal_unknown(ngx_http_seckill_batch_t *batch);

/* Frees what was kept. */
void ngx_http_seckill_journal_done(ngx_http_seckill_batch_t *batch);


/* ngx_http_seckill_journal_file.c: opening, writing, and what can't be */

/* Text of whole lines, with a line end before the first and behind each. */
void ngx_http_seckill_journal_write(ngx_http_seckill_loc_conf_t *conf,
    u_char *text, size_t len, ngx_uint_t lines);

/* Lines that can't even be made. */
void ngx_http_seckill_journal_lost(ngx_http_seckill_loc_conf_t *conf,
    ngx_uint_t lines, const char *why);

/* What signs: made once for each key.  NULL: there is no key, or no memory. */
sk_journal_key_t *ngx_http_seckill_journal_key(
    ngx_http_seckill_loc_conf_t *conf, u_char *key);

/* 1 when this node has a journal. */
ngx_uint_t ngx_http_seckill_journal_on(void);

ngx_int_t ngx_http_seckill_journal_init_module(ngx_cycle_t *cycle);
ngx_int_t ngx_http_seckill_journal_init_process(ngx_cycle_t *cycle);
void ngx_http_seckill_journal_exit(void);

/* Makes the file so that others can't read it, or mends that. */
ngx_int_t ngx_http_seckill_journal_prepare(ngx_str_t *name, ngx_log_t *log);

/* nginx is about to open the file again. */
void ngx_http_seckill_journal_flush(ngx_open_file_t *file, ngx_log_t *log);


/* ngx_http_seckill_conf_journal.c */

char *ngx_http_seckill_conf_journal(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* A location sells: its lines go there as well. */
char *ngx_http_seckill_conf_journal_location(ngx_conf_t *cf,
    ngx_http_seckill_main_conf_t *smcf, ngx_http_seckill_loc_conf_t *conf);

/* Warns when purchases are written nowhere. */
void ngx_http_seckill_conf_journal_check(ngx_conf_t *cf,
    ngx_http_seckill_main_conf_t *smcf);


#endif /* _NGX_HTTP_SECKILL_JOURNAL_H_INCLUDED_ */
