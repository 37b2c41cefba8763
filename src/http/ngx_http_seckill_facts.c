
/*
 * Facts and control as Redis tells them, and whether a user has bought: the questions, and the answers as
 * structures.  Nothing that came over the wire is kept without a look at its
 * type, its length and its range.
 */


#include "ngx_http_seckill_facts.h"


#define NGX_HTTP_SECKILL_FACTS_KEYS  5


/* NAMES of lua/facts.lua, as far as they are read here */
enum {
    FACT_PRODUCT_ID = 0,
    FACT_PRICE,
    FACT_START_MS,
    FACT_END_MS,
    FACT_STATE,
    FACT_MAX_QUANTITY,
    FACT_EPOCH,
    FACT_REV,
    FACT_SEQ,
    FACT_LIMIT,
    FACT_LIMIT_BURST,
    FACTS
};

/* the answer of facts.lua */
enum {
    TOLD_STATUS = 0,
    TOLD_FACTS,
    TOLD_STOCK,
    TOLD_BUYERS,
    TOLD_MEMBER,
    TOLD
};

/* the answer of bought.lua */
enum {
    BOUGHT_STATUS = 0,
    BOUGHT_STATE,
    BOUGHT_EPOCH,
    BOUGHT_SEQ,
    BOUGHT_MEMBER,
    BOUGHT
};

/* NAMES of lua/control.lua */
enum {
    CONTROL_REV = 0,
    CONTROL_STATE,
    CONTROL_TOKEN_KEY,
    CONTROL_TOKEN_KEY_PREV,
    CONTROL_LIMIT,
    CONTROL_LIMIT_BURST,
    CONTROLS
};

/* the answer of control.lua */
enum {
    CLOCK_STATUS = 0,
    CLOCK_FIELDS,
    CLOCK_SECONDS,
    CLOCK_MICROS,
    CLOCK
};


static ngx_seckill_call_t *ngx_http_seckill_sale_question(sk_script_e script,
    ngx_http_seckill_loc_conf_t *conf, uint64_t activity, uint64_t user,
    ngx_seckill_call_done_pt done, void *data, ngx_msec_t deadline);
static ngx_seckill_call_t *ngx_http_seckill_question(const sk_script_t *script,
    ngx_uint_t argc, const char **argv, size_t *lens,
    ngx_seckill_call_done_pt done, void *data, ngx_msec_t deadline);
static ngx_int_t ngx_http_seckill_facts_fields(redisReply **fact,
    ngx_http_seckill_facts_t *facts);
static void ngx_http_seckill_facts_state(redisReply *state,
    ngx_http_seckill_facts_t *facts);
static ngx_int_t ngx_http_seckill_facts_number(redisReply *reply,
    uint64_t *number);
static ngx_uint_t ngx_http_seckill_facts_is(redisReply *reply,
    const char *word);
static ngx_uint_t ngx_http_seckill_facts_limit(redisReply **fields,
    uint64_t activity, sk_limit_t *limit);
static void ngx_http_seckill_control_key(redisReply *reply,
    ngx_http_seckill_control_t *control);


ngx_seckill_call_t *
ngx_http_seckill_facts_question(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, ngx_seckill_call_done_pt done, void *data,
    ngx_msec_t deadline)
{
    return ngx_http_seckill_sale_question(SK_SCRIPT_FACTS, conf, activity, 0,
                                          done, data, deadline);
}


ngx_seckill_call_t *
ngx_http_seckill_bought_question(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, uint64_t user, ngx_seckill_call_done_pt done,
    void *data, ngx_msec_t deadline)
{
    return ngx_http_seckill_sale_question(SK_SCRIPT_BOUGHT, conf, activity,
                                          user, done, data, deadline);
}


/* the script takes the keys of the sale, and a user who is not 0 */

static ngx_seckill_call_t *
ngx_http_seckill_sale_question(sk_script_e script,
    ngx_http_seckill_loc_conf_t *conf, uint64_t activity, uint64_t user,
    ngx_seckill_call_done_pt done, void *data, ngx_msec_t deadline)
{
    char         keys[NGX_HTTP_SECKILL_FACTS_KEYS][SK_KEY_MAX];
    char         id[SK_ID_MAX];
    size_t       lens[4 + NGX_HTTP_SECKILL_FACTS_KEYS];
    ngx_uint_t   i, n;
    const char  *argv[4 + NGX_HTTP_SECKILL_FACTS_KEYS];

    static const sk_key_e  names[NGX_HTTP_SECKILL_FACTS_KEYS] = {
        SK_KEY_ACTIVITY, SK_KEY_STOCK, SK_KEY_BUYERS, SK_KEY_ORDERS,
        SK_KEY_ELIGIBLE
    };

    argv[2] = "5";
    n = 3;

    for (i = 0; i < NGX_HTTP_SECKILL_FACTS_KEYS; i++) {
        argv[n] = keys[i];
        lens[n++] = sk_key(keys[i], (char *) conf->prefix.data,
                           conf->prefix.len, names[i], activity, 0);
    }

    if (user) {
        argv[n] = id;
        lens[n++] = sk_id_format(id, user);
    }

    return ngx_http_seckill_question(&sk_scripts[script], n, argv, lens, done,
                                     data, deadline);
}


ngx_seckill_call_t *
ngx_http_seckill_control_question(ngx_http_seckill_loc_conf_t *conf,
    ngx_seckill_call_done_pt done, void *data, ngx_msec_t deadline)
{
    char         key[SK_KEY_MAX];
    size_t       lens[4];
    const char  *argv[4];

    argv[2] = "1";
    argv[3] = key;
    lens[3] = sk_key_global(key, (char *) conf->prefix.data, conf->prefix.len,
                            "control", sizeof("control") - 1);

    return ngx_http_seckill_question(&sk_scripts[SK_SCRIPT_CONTROL], 4, argv,
                                     lens, done, data, deadline);
}


/* argv[0] and argv[1] are filled in here; argv[2] is one digit */

static ngx_seckill_call_t *
ngx_http_seckill_question(const sk_script_t *script, ngx_uint_t argc,
    const char **argv, size_t *lens, ngx_seckill_call_done_pt done,
    void *data, ngx_msec_t deadline)
{
    ngx_seckill_call_t  *call;

    call = ngx_seckill_call_create(done, data, deadline);
    if (call == NULL) {
        return NULL;
    }

    call->script = script;

    argv[0] = "EVALSHA";
    lens[0] = sizeof("EVALSHA") - 1;
    argv[1] = script->sha1;
    lens[1] = 40;
    lens[2] = 1;

    if (ngx_seckill_call_command(call, argc, argv, lens) != NGX_OK) {
        ngx_seckill_call_free(call);
        return NULL;
    }

    return call;
}


ngx_int_t
ngx_http_seckill_facts_read(ngx_seckill_call_t *call, uint64_t activity,
    ngx_http_seckill_facts_t *facts)
{
    uint64_t      stock;
    redisReply   *told, **fact;

    if (call->end != NGX_SECKILL_ANSWERED) {
        return NGX_ERROR;
    }

    told = call->replies[0];

    if (told->type != REDIS_REPLY_ARRAY || told->elements != TOLD
        || told->element[TOLD_STATUS]->type != REDIS_REPLY_STRING
        || told->element[TOLD_FACTS]->type != REDIS_REPLY_ARRAY)
    {
        return NGX_ERROR;
    }

    ngx_memzero(facts, sizeof(ngx_http_seckill_facts_t));

    facts->stock = -1;

    if (ngx_http_seckill_facts_is(told->element[TOLD_STATUS], "none")) {
        return NGX_OK;
    }

    facts->known = 1;
    facts->whole = ngx_http_seckill_facts_is(told->element[TOLD_STATUS],
                                             "whole");

    ngx_cpystrn(facts->missing, (u_char *) told->element[TOLD_STATUS]->str,
                sizeof(facts->missing));

    fact = told->element[TOLD_FACTS]->element;

    if (told->element[TOLD_FACTS]->elements >= FACTS) {
        ngx_http_seckill_facts_state(fact[FACT_STATE], facts);
    }

    /* what the tool leaves in place of a sale that Redis lost need not be whole */

    if (!facts->lost
        && (ngx_http_seckill_facts_is(told->element[TOLD_STATUS], "damaged")
            || told->element[TOLD_FACTS]->elements < FACTS
            || ngx_http_seckill_facts_fields(fact, facts) != NGX_OK))
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "seckill facts of activity %uL are damaged", activity);

        facts->damaged = 1;
        facts->closed = 1;
        return NGX_OK;
    }

    if (facts->lost) {
        (void) ngx_http_seckill_facts_number(fact[FACT_EPOCH], &facts->epoch);
        (void) ngx_http_seckill_facts_number(fact[FACT_REV], &facts->rev);
        return NGX_OK;
    }

    facts->limit_set = ngx_http_seckill_facts_limit(&fact[FACT_LIMIT], activity,
                                                    &facts->limit);

    /* without a stock the script refuses; here nobody is told "sold out" */

    if (ngx_http_seckill_facts_number(told->element[TOLD_STOCK], &stock)
        == NGX_OK)
    {
        facts->stock = (int64_t) stock;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_seckill_bought_read(ngx_seckill_call_t *call,
    ngx_http_seckill_facts_t *facts)
{
    ngx_uint_t    i;
    redisReply   *told;

    if (call->end != NGX_SECKILL_ANSWERED) {
        return NGX_ERROR;
    }

    told = call->replies[0];

    if (told->type != REDIS_REPLY_ARRAY || told->elements != BOUGHT
        || told->element[BOUGHT_STATUS]->type != REDIS_REPLY_STRING
        || told->element[BOUGHT_STATE]->type != REDIS_REPLY_STRING)
    {
        return NGX_ERROR;
    }

    for (i = BOUGHT_EPOCH; i < BOUGHT; i++) {
        if (told->element[i]->type != REDIS_REPLY_INTEGER
            || told->element[i]->integer < 0
            || told->element[i]->integer > NGX_HTTP_SECKILL_NUMBER_MAX)
        {
            return NGX_ERROR;
        }
    }

    ngx_memzero(facts, sizeof(ngx_http_seckill_facts_t));

    if (ngx_http_seckill_facts_is(told->element[BOUGHT_STATUS], "none")) {
        return NGX_OK;
    }

    facts->known = 1;
    facts->damaged = ngx_http_seckill_facts_is(told->element[BOUGHT_STATUS],
                                               "damaged");
    facts->whole = ngx_http_seckill_facts_is(told->element[BOUGHT_STATUS],
                                             "whole");
    facts->epoch = (uint64_t) told->element[BOUGHT_EPOCH]->integer;
    facts->seq = (uint64_t) told->element[BOUGHT_SEQ]->integer;
    facts->member = (told->element[BOUGHT_MEMBER]->integer == 1);

    ngx_http_seckill_facts_state(told->element[BOUGHT_STATE], facts);

    return NGX_OK;
}


static ngx_int_t
ngx_http_seckill_facts_fields(redisReply **fact,
    ngx_http_seckill_facts_t *facts)
{
    uint64_t  max_quantity;

    if (fact[FACT_STATE]->type != REDIS_REPLY_STRING
        || fact[FACT_PRODUCT_ID]->type != REDIS_REPLY_STRING
        || sk_id_parse(fact[FACT_PRODUCT_ID]->str, fact[FACT_PRODUCT_ID]->len,
                       &facts->product_id)
           != 0
        || ngx_http_seckill_facts_number(fact[FACT_START_MS], &facts->start_ms)
           != NGX_OK
        || ngx_http_seckill_facts_number(fact[FACT_END_MS], &facts->end_ms)
           != NGX_OK
        || ngx_http_seckill_facts_number(fact[FACT_MAX_QUANTITY],
                                         &max_quantity)
           != NGX_OK
        || ngx_http_seckill_facts_number(fact[FACT_EPOCH], &facts->epoch)
           != NGX_OK
        || ngx_http_seckill_facts_number(fact[FACT_REV], &facts->rev) != NGX_OK
        || ngx_http_seckill_facts_number(fact[FACT_SEQ], &facts->seq) != NGX_OK
        || fact[FACT_PRICE]->type != REDIS_REPLY_STRING
        || (size_t) fact[FACT_PRICE]->len > sizeof(facts->price))
    {
        return NGX_ERROR;
    }

    facts->max_quantity = (uint32_t) ngx_min(max_quantity, SK_QUANTITY_MAX);
    facts->price_len = (uint8_t) fact[FACT_PRICE]->len;
    ngx_memcpy(facts->price, fact[FACT_PRICE]->str, facts->price_len);

    return NGX_OK;
}


/* a word that we do not know is no reason to sell */

static void
ngx_http_seckill_facts_state(redisReply *state, ngx_http_seckill_facts_t *facts)
{
    facts->settled = ngx_http_seckill_facts_is(state, "settled");
    facts->lost = ngx_http_seckill_facts_is(state, "lost");
    facts->closed = !ngx_http_seckill_facts_is(state, "open");
    facts->paused = facts->closed && !facts->settled
                    && !ngx_http_seckill_facts_is(state, "closed");
}


ngx_int_t
ngx_http_seckill_control_read(ngx_seckill_call_t *call, ngx_msec_t asked,
    ngx_http_seckill_control_t *control)
{
    int64_t       now;
    uint64_t      seconds, micros;
    redisReply   *told, *fields;

    if (call->end != NGX_SECKILL_ANSWERED) {
        return NGX_ERROR;
    }

    told = call->replies[0];

    if (told->type != REDIS_REPLY_ARRAY || told->elements != CLOCK
        || told->element[CLOCK_STATUS]->type != REDIS_REPLY_STRING
        || told->element[CLOCK_FIELDS]->type != REDIS_REPLY_ARRAY
        || ngx_http_seckill_facts_number(told->element[CLOCK_SECONDS], &seconds)
           != NGX_OK
        || ngx_http_seckill_facts_number(told->element[CLOCK_MICROS], &micros)
           != NGX_OK
        || seconds > NGX_HTTP_SECKILL_NUMBER_MAX / 1000 || micros > 999999)
    {
        return NGX_ERROR;
    }

    ngx_memzero(control, sizeof(ngx_http_seckill_control_t));

    /* Redis read its clock after the question left and before this turn */

    now = (int64_t) (seconds * 1000 + micros / 1000);
    control->clock = now - (int64_t) ngx_current_msec;
    control->clock_max = now + 1 - (int64_t) asked;

    fields = told->element[CLOCK_FIELDS];

    if (ngx_http_seckill_facts_is(told->element[CLOCK_STATUS], "none")
        || (fields->elements == CONTROLS
            && fields->element[CONTROL_REV]->type == REDIS_REPLY_NIL))
    {
        return NGX_OK;
    }

    if (fields->elements != CONTROLS
        || ngx_http_seckill_facts_number(fields->element[CONTROL_REV],
                                         &control->rev)
           != NGX_OK)
    {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                      "seckill control in redis is damaged");
        return NGX_OK;
    }

    control->known = 1;
    control->closed = ngx_http_seckill_facts_is(fields->element[CONTROL_STATE],
                                                "closed");

    ngx_http_seckill_control_key(fields->element[CONTROL_TOKEN_KEY], control);
    ngx_http_seckill_control_key(fields->element[CONTROL_TOKEN_KEY_PREV],
                                 control);

    control->limit_set = ngx_http_seckill_facts_limit(
                                          &fields->element[CONTROL_LIMIT],
                                          0, &control->limit);

    return NGX_OK;
}


/* from 0 to 2^53 - 1, without a sign or leading zeros */

static ngx_int_t
ngx_http_seckill_facts_number(redisReply *reply, uint64_t *number)
{
    uint64_t  value;

    if (reply->type != REDIS_REPLY_STRING) {
        return NGX_ERROR;
    }

    if (reply->len == 1 && reply->str[0] == '0') {
        *number = 0;
        return NGX_OK;
    }

    if (sk_id_parse(reply->str, reply->len, &value) != 0
        || value > NGX_HTTP_SECKILL_NUMBER_MAX)
    {
        return NGX_ERROR;
    }

    *number = value;

    return NGX_OK;
}


static ngx_uint_t
ngx_http_seckill_facts_is(redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_STRING
           && (size_t) reply->len == ngx_strlen(word)
           && ngx_memcmp(reply->str, word, reply->len) == 0;
}


/* rate and burst, as lua/limit.lua writes them; 0: none is set */

static ngx_uint_t
ngx_http_seckill_facts_limit(redisReply **fields, uint64_t activity,
    sk_limit_t *limit)
{
    if (fields[0]->type == REDIS_REPLY_NIL) {
        return 0;
    }

    if (fields[0]->type == REDIS_REPLY_STRING
        && fields[1]->type == REDIS_REPLY_STRING
        && sk_limit_parse(limit, fields[0]->str, fields[0]->len,
                          fields[1]->str, fields[1]->len)
           == 0)
    {
        return 1;
    }

    if (activity) {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "seckill limit of "
                      "activity %uL is damaged, the next one in line is used",
                      activity);
    } else {
        ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0, "seckill limit of all "
                      "activities is damaged, that of nginx is used");
    }

    return 0;
}


/* 64 hex digits */

static void
ngx_http_seckill_control_key(redisReply *reply,
    ngx_http_seckill_control_t *control)
{
    ngx_int_t   n;
    ngx_uint_t  i;

    if (reply->type != REDIS_REPLY_STRING
        || reply->len != NGX_HTTP_SECKILL_HMAC_KEY * 2)
    {
        return;
    }

    for (i = 0; i < NGX_HTTP_SECKILL_HMAC_KEY; i++) {
        n = ngx_hextoi((u_char *) reply->str + i * 2, 2);
        if (n == NGX_ERROR) {
            return;
        }

        control->keys[control->nkeys][i] = (u_char) n;
    }

    control->nkeys++;
}
