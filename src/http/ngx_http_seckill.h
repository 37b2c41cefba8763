
/*
 * What the files of src/http share: configuration, the request's context, and
 * the steps of the funnel.  Each step lives in the file named beside it.
 */


#ifndef _NGX_HTTP_SECKILL_H_INCLUDED_
#define _NGX_HTTP_SECKILL_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "ngx_seckill_redis.h"

#include "sk_id.h"
#include "sk_journal.h"
#include "sk_jwt.h"
#include "sk_key.h"
#include "sk_limit.h"
#include "sk_order_no.h"
#include "sk_purchase.h"
#include "sk_result.h"
#include "sk_ticket.h"
#include "sk_verdict.h"


#define NGX_HTTP_SECKILL_BATCH_MAX  256         /* purchases of one call */
#define NGX_HTTP_SECKILL_KEYS_MAX   8           /* auth keys of a location */

/* ngx_current_msec may be this much behind, in milliseconds */
#define NGX_HTTP_SECKILL_CLOCK_SLACK  20

#define NGX_HTTP_SECKILL_HMAC_KEY   32          /* bytes of the token_key */


typedef struct ngx_http_seckill_ctx_s    ngx_http_seckill_ctx_t;
typedef struct ngx_http_seckill_load_s   ngx_http_seckill_load_t;
typedef struct ngx_http_seckill_batch_s  ngx_http_seckill_batch_t;
typedef struct ngx_http_seckill_lane_s   ngx_http_seckill_lane_t;
typedef struct ngx_http_seckill_gone_s   ngx_http_seckill_gone_t;
typedef struct ngx_http_seckill_waiter_s  ngx_http_seckill_waiter_t;


/*
 * A step of the funnel: NGX_OK next step, NGX_DONE ctx->verdict is final,
 * NGX_AGAIN suspended, NGX_DECLINED the body is being read (which counts the
 * request itself), NGX_ERROR or an HTTP status: answered by the core.
 */
typedef ngx_int_t (*ngx_http_seckill_step_pt)(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);


typedef enum {
    NGX_HTTP_SECKILL_AUTH_JWT = 0,
    NGX_HTTP_SECKILL_AUTH_REDIS,
    NGX_HTTP_SECKILL_AUTH_VARIABLE
} ngx_http_seckill_auth_e;


typedef struct {
    ngx_shm_zone_t              *shm_zone;      /* of "seckill_zone" */
    ngx_open_file_t             *journal;       /* NULL: "off", or not set */
    ngx_uint_t                   journal_set;
    ngx_array_t                  journal_confs; /* of locations that sell */
    ngx_uint_t                   untold_pages;  /* any: see own.c */
} ngx_http_seckill_main_conf_t;


typedef struct {
    ngx_flag_t                   enable;
    ngx_flag_t                   open;          /* "seckill_switch" */
    ngx_flag_t                   intercept_errors;
    ngx_uint_t                   path;          /* which rule: see path.c */
    ngx_str_t                    path_name;     /* of the location */
    unsigned                     path_results:1;  /* it serves nothing else */
    unsigned                     untold_pages:1;  /* see own.c */
    unsigned                     path_told:1;   /* by this worker */
    unsigned                     own_told:1;    /* the same */
    ngx_shm_zone_t              *shm_zone;

    ngx_seckill_redis_addr_t    *redis;         /* NULL: not set */
    ngx_seckill_redis_settings_t  redis_settings;
    ngx_seckill_redis_t         *client;        /* the worker's, made on first use */
    ngx_msec_t                   redis_timeout;
    ngx_msec_t                   timeout;
    ngx_uint_t                   batch;

    ngx_uint_t                   auth;
    ngx_int_t                    auth_variable; /* index */
    ngx_array_t                 *auth_keys;     /* of ngx_str_t: the secrets */
    ngx_uint_t                   auth_alg;      /* sk_hmac_alg_e */
    ngx_str_t                    auth_claim;
    time_t                       auth_leeway;
    sk_jwt_rules_t               jwt;           /* keyed in merge */
    sk_hmac_t                   *queue_token;   /* NULL: the key from Redis */
    sk_journal_key_t            *journal_key;   /* the same */
    ngx_uint_t                   journal_opened;        /* by this worker */
    ngx_uint_t                   journal_keyed;         /* it knows the secret */
    u_char                       journal_secret[NGX_HTTP_SECKILL_HMAC_KEY];

    ngx_uint_t                   limit;         /* milliseconds a request, 0: off */
    ngx_uint_t                   limit_burst;
    ngx_uint_t                   limit_cluster; /* all nodes share it */
    ngx_uint_t                   limit_dry_run;

    ngx_uint_t                   max_waiters;   /* per worker */
    ngx_uint_t                   status;        /* 0: none, or its format */

    ngx_msec_t                   refresh;
    ngx_msec_t                   negative;

    ngx_uint_t                   messages;      /* zh or en */
    ngx_flag_t                   rest_status;
    size_t                       body_max;
    ngx_msec_t                   body_timeout;  /* all of a body */
    ngx_str_t                    prefix;
    uint32_t                     source;        /* which Redis, db and prefix */
} ngx_http_seckill_loc_conf_t;


#define NGX_HTTP_SECKILL_PROMETHEUS  1
#define NGX_HTTP_SECKILL_JSON        2

#define NGX_HTTP_SECKILL_PATH_PREFIX  0
#define NGX_HTTP_SECKILL_PATH_TAIL    1

#define NGX_HTTP_SECKILL_ZH  0
#define NGX_HTTP_SECKILL_EN  1


/* what Redis said of an activity; times are epoch milliseconds */
typedef struct {
    uint64_t                     start_ms;
    uint64_t                     end_ms;
    uint64_t                     product_id;
    uint64_t                     epoch;
    uint64_t                     rev;
    uint64_t                     seq;           /* purchases so far */
    uint64_t                     control_rev;   /* of control, when asked */
    int64_t                      stock;         /* -1: missing in Redis */
    uint32_t                     max_quantity;
    u_char                       missing[12];   /* what is, where it is not whole */
    u_char                       price[16];
    uint8_t                      price_len;
    sk_limit_t                   limit;         /* with limit_set */
    unsigned                     known:1;       /* 0: there is no such activity */
    unsigned                     damaged:1;     /* there, and of no use */
    unsigned                     whole:1;       /* nothing of the sale is missing */
    unsigned                     broken:1;      /* .. which was so when last asked */
    unsigned                     closed:1;      /* not open, for any reason */
    unsigned                     paused:1;      /* .. and not by the operator */
    unsigned                     lost:1;        /* Redis had lost it: to be restored */
    unsigned                     settled:1;
    unsigned                     member:1;      /* the user asked for has bought */
    unsigned                     sold_out:1;    /* on Redis' word */
    unsigned                     vanished:1;    /* it was known: Redis lost it */
    unsigned                     limit_set:1;   /* in place of seckill_limit */
} ngx_http_seckill_facts_t;


/* the last purchase that Redis told this node of */
typedef struct {
    uint64_t                     epoch;         /* 0: none */
    uint64_t                     seq;
} ngx_http_seckill_mark_t;


/* what Redis said of the whole entry */
typedef struct {
    uint64_t                     rev;
    ngx_msec_int_t               clock;         /* Redis TIME - ngx_current_msec, at least */
    ngx_msec_int_t               clock_max;     /* and at most */
    u_char                       keys[2][NGX_HTTP_SECKILL_HMAC_KEY];
    uint8_t                      nkeys;         /* token_key and its predecessor */
    sk_limit_t                   limit;         /* with limit_set */
    unsigned                     known:1;       /* 0: Redis has lost its data */
    unsigned                     closed:1;
    unsigned                     limit_set:1;   /* in place of seckill_limit */
} ngx_http_seckill_control_t;


/* why a request waits; one at a time */
typedef enum {
    NGX_HTTP_SECKILL_WAIT_NONE = 0,
    NGX_HTTP_SECKILL_WAIT_LOAD,         /* in load->waiters */
    NGX_HTTP_SECKILL_WAIT_LANE,         /* in lane->gathering */
    NGX_HTTP_SECKILL_WAIT_BATCH,        /* in batch->requests[] */
    NGX_HTTP_SECKILL_WAIT_CALL,         /* of a call */
    NGX_HTTP_SECKILL_WAIT_JOIN,         /* in hub->joining */
    NGX_HTTP_SECKILL_WAIT_HOLD          /* for the result, in the hub */
} ngx_http_seckill_wait_e;


struct ngx_http_seckill_ctx_s {
    const ngx_http_seckill_step_pt  *step;      /* the step that runs or waits */
    ngx_http_seckill_loc_conf_t  *conf;
    ngx_http_request_t           *request;

    sk_verdict_e                  verdict;
    sk_verdict_e                  refusal;      /* of all but known buyers, SK_VERDICTS: none */
    uint64_t                      activity;     /* 0: not known yet */
    uint64_t                      user;         /* 0: not known yet */
    uint64_t                      seq;          /* 0: not accepted */
    uint64_t                      epoch;
    uint64_t                      redis_ms;     /* Redis TIME of the verdict, 0: none */

    ngx_http_seckill_facts_t      facts;
    ngx_http_seckill_control_t    control;
    sk_limit_t                    limit;        /* of purchases, in force */
    ngx_msec_t                    charged;      /* to the limit of the node */
    sk_purchase_t                *purchase;
    sk_result_t                  *result;
    sk_verdict_e                  state;        /* QUEUEING, SUCCESS, FAILED: of a known buyer */

    ngx_str_t                     authorization;
    u_char                       *token_hash;   /* of an opaque token */
    ngx_msec_t                    asked;        /* when Redis was asked about it */
    ngx_str_t                     request_id;
    ngx_uint_t                    retry_after;  /* seconds, 0: none */
    uint32_t                      queueing;     /* the node heard so first then, 0: now */

    ngx_str_t                     body;
    ngx_event_t                  *body_timer;   /* while it is waited for */
    ngx_msec_t                    body_until;
    uint64_t                      body_user;    /* who asked before it was read */
    time_t                        identified;   /* by a signed token, then */

    ngx_http_seckill_wait_e       wait;
    ngx_queue_t                   queue;        /* LOAD, LANE, JOIN */
    ngx_http_seckill_batch_t     *batch;        /* BATCH */
    ngx_uint_t                    index;        /* BATCH */
    ngx_seckill_call_t           *call;         /* CALL */
    ngx_http_seckill_waiter_t    *waiter;       /* wants to be told, else NULL */
    ngx_msec_t                    waits_until;  /* seckill_timeout, set by the first wait */
    ngx_msec_t                    deadline;     /* of the purchase in its lane or batch */

    unsigned                      buy:1;        /* the route */
    unsigned                      result_route:1;
    unsigned                      not_own:1;    /* made behind another request */
    unsigned                      deadline_set:1;
    unsigned                      cleanup_set:1;
    unsigned                      authorizations:2;  /* headers seen, up to 2 */
    unsigned                      body_read:1;
    unsigned                      body_waited:1;
    unsigned                      body_late:1;
    unsigned                      body_too_large:1;
    unsigned                      ticket:1;     /* the user is that of a queue_token */
    unsigned                      told:1;       /* the facts are Redis' word, just now */
    unsigned                      remembered:1; /* the result, from before: see user.c */
    unsigned                      stranger:1;   /* no result and no buyer: is it whole? */
    unsigned                      answered:1;   /* what the step waited for has come */
    unsigned                      failed:1;     /* .. as nothing that helps: see verdict */
};


extern ngx_module_t  ngx_http_seckill_module;


/* ngx_http_seckill_handler.c: the request machine */

ngx_int_t ngx_http_seckill_handler(ngx_http_request_t *r);

/* The verdict is known: NGX_DONE for the step to return. */
ngx_int_t ngx_http_seckill_say(ngx_http_seckill_ctx_t *ctx,
    sk_verdict_e verdict);

/* What a call's ending means for a buyer who needed it. */
sk_verdict_e ngx_http_seckill_end_verdict(ngx_seckill_end_e end);

/* Goes on with a request whose wait is over.  It may be gone afterwards. */
void ngx_http_seckill_resume(ngx_http_seckill_ctx_t *ctx);
/* The same from inside a call of the core, which still uses the request. */
void ngx_http_seckill_go_on(ngx_http_seckill_ctx_t *ctx);

/* From here a request that ends is taken out of whatever it waits for. */
ngx_int_t ngx_http_seckill_cleanup(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* Registers the wait, so that a client who leaves is taken out of it. */
ngx_int_t ngx_http_seckill_wait(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, ngx_http_seckill_wait_e wait);

/*
 * Sends a call that only this request waits for, and owns it from here.
 * NGX_AGAIN: suspended until done() resumes.  NGX_BUSY: it did not run.
 */
ngx_int_t ngx_http_seckill_ask(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx, ngx_seckill_call_t *call);

/* The deadline of the request's next call, within seckill_timeout. */
ngx_msec_t ngx_http_seckill_deadline(ngx_http_seckill_ctx_t *ctx);

/* The worker's Redis client of the location.  NULL: out of memory. */
ngx_seckill_redis_t *ngx_http_seckill_client(ngx_http_seckill_loc_conf_t *conf);


/* ngx_http_seckill_route.c: path and method */

ngx_int_t ngx_http_seckill_route(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* The body was waited for: what may have changed meanwhile is looked at again. */
void ngx_http_seckill_route_again(ngx_http_seckill_ctx_t *ctx);

/* The value of a request header, or NULL. */
ngx_str_t *ngx_http_seckill_find_header(ngx_http_request_t *r,
    const char *name, size_t len);

/* Headers the funnel reads, in one pass. */
ngx_int_t ngx_http_seckill_headers(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);


/* steps, in the order of the funnel */

/* ngx_http_seckill_activity.c */
ngx_int_t ngx_http_seckill_control_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
ngx_int_t ngx_http_seckill_facts_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
ngx_int_t ngx_http_seckill_window_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
ngx_int_t ngx_http_seckill_generation_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
/* ngx_http_seckill_auth.c */
ngx_int_t ngx_http_seckill_identify_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
/* ngx_http_seckill_sold_out.c */
ngx_int_t ngx_http_seckill_sold_out_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
/* ngx_http_seckill_user.c */
ngx_int_t ngx_http_seckill_user_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
/* ctx->result is final: this node answers the user from memory for a while. */
void ngx_http_seckill_user_remember(ngx_http_seckill_ctx_t *ctx);
/* The same, published to all: what is remembered and differs is replaced. */
void ngx_http_seckill_user_published(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, uint64_t user, sk_result_t *result);
/*
 * The user is a buyer without a result: sets ctx->queueing; 1 when the daemon is
 * to be asked.
 */
ngx_uint_t ngx_http_seckill_user_overdue(ngx_http_seckill_ctx_t *ctx);
/* The request turned out not to have been one: gives the charge back. */
void ngx_http_seckill_limit_refund(ngx_http_seckill_ctx_t *ctx);

/* ngx_http_seckill_body.c */
ngx_int_t ngx_http_seckill_body_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
/* After the checks that were repeated: says the refusal, if there is one. */
ngx_int_t ngx_http_seckill_again_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
/* The request ends. */
void ngx_http_seckill_body_leave(ngx_http_seckill_ctx_t *ctx);
/* ngx_http_seckill_admit.c */
ngx_int_t ngx_http_seckill_admit_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
/* ngx_http_seckill_result.c */
ngx_int_t ngx_http_seckill_result_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* ngx_http_seckill_poll.c: milliseconds until the buyer should ask again */
ngx_uint_t ngx_http_seckill_poll_after(ngx_http_seckill_ctx_t *ctx);

/* ngx_http_seckill_wait.c: around the result's step */
ngx_int_t ngx_http_seckill_wish_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
ngx_int_t ngx_http_seckill_join_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
ngx_int_t ngx_http_seckill_hold_step(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* ngx_http_seckill_answer.c: the verdict as status, headers and JSON */

/* room for any answer: facts, with every number at its longest */
#define NGX_HTTP_SECKILL_ANSWER_SIZE  768

/* The body; NULL: no memory.  Returns its end. */
u_char *ngx_http_seckill_answer_text(ngx_http_seckill_ctx_t *ctx, u_char *p);

/* Headers of every answer. */
ngx_int_t ngx_http_seckill_common_headers(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

ngx_int_t ngx_http_seckill_add_header(ngx_http_request_t *r,
    const char *name, size_t name_len, ngx_str_t *value);

#define ngx_http_seckill_header(r, name, value)                               \
    ngx_http_seckill_add_header(r, name, sizeof(name) - 1, value)

ngx_int_t ngx_http_seckill_answer(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);

/* Milliseconds since the epoch by Redis' clock, as well as the node knows it. */
uint64_t ngx_http_seckill_now_ms(ngx_http_seckill_ctx_t *ctx);


/* ngx_http_seckill_ticket.c: the queue_token */

ngx_int_t ngx_http_seckill_ticket(ngx_http_seckill_ctx_t *ctx, u_char *buf);
ngx_int_t ngx_http_seckill_ticket_user(ngx_http_seckill_ctx_t *ctx,
    ngx_str_t *token);

/* The worker ends. */
void ngx_http_seckill_ticket_exit(void);


/* ngx_http_seckill_body.c: the answer leaves before the body was read */
ngx_int_t ngx_http_seckill_drop_body(ngx_http_request_t *r, size_t body_max);


/* ngx_http_seckill_conf.c: directives that do more than fill a slot */

char *ngx_http_seckill_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_seckill_conf_redis(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_seckill_conf_redis_check(ngx_conf_t *cf,
    ngx_http_seckill_loc_conf_t *slcf);
ngx_int_t ngx_http_seckill_conf_redis_owner(ngx_conf_t *cf);

/* NGX_DECLINED: not an option of TLS. */
ngx_int_t ngx_http_seckill_conf_tls_option(ngx_str_t *option,
    ngx_seckill_redis_tls_t *tls, ngx_uint_t *on);
/* All options are read: loads the files. */
char *ngx_http_seckill_conf_tls(ngx_conf_t *cf, ngx_seckill_redis_addr_t *addr,
    ngx_seckill_redis_tls_t *tls, ngx_uint_t on);
char *ngx_http_seckill_conf_auth(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_seckill_conf_auth_key_file(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_seckill_conf_queue_token_key_file(ngx_conf_t *cf,
    ngx_command_t *cmd, void *conf);
char *ngx_http_seckill_conf_limit(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_seckill_conf_prefix(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/* ngx_http_seckill_status.c */
char *ngx_http_seckill_conf_status(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);


/* ngx_http_seckill_intercept.c */

/* The status goes to an error_page of the location.  NGX_DECLINED: it has none. */
ngx_int_t ngx_http_seckill_intercept(ngx_http_request_t *r,
    ngx_http_seckill_ctx_t *ctx);
/* The context of the refusal that did, or NULL. */
ngx_http_seckill_ctx_t *ngx_http_seckill_intercepted(ngx_http_request_t *r);


/* ngx_http_seckill_variables.c */
ngx_int_t ngx_http_seckill_add_variables(ngx_conf_t *cf);


#endif /* _NGX_HTTP_SECKILL_H_INCLUDED_ */
