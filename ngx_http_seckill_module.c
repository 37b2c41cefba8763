
/*
 * The front door: directives, the module's context, configuration and its
 * defaults, and what a worker does when it starts and ends.  What the module
 * does is in src/http, its Redis client in src/redis.
 */


#include "ngx_http_seckill_journal.h"
#include "ngx_http_seckill_path.h"
#include "ngx_http_seckill_secret.h"


static ngx_int_t ngx_http_seckill_preconfiguration(ngx_conf_t *cf);
static ngx_int_t ngx_http_seckill_postconfiguration(ngx_conf_t *cf);
static void *ngx_http_seckill_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_seckill_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_seckill_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);
static char *ngx_http_seckill_check_loc_conf(ngx_conf_t *cf,
    ngx_http_seckill_loc_conf_t *conf);
static void ngx_http_seckill_exit_process(ngx_cycle_t *cycle);


static ngx_conf_enum_t  ngx_http_seckill_algs[] = {
    { ngx_string("HS256"), SK_HS256 },
    { ngx_string("HS384"), SK_HS384 },
    { ngx_string("HS512"), SK_HS512 },
    { ngx_null_string, 0 }
};


static ngx_conf_enum_t  ngx_http_seckill_languages[] = {
    { ngx_string("zh"), NGX_HTTP_SECKILL_ZH },
    { ngx_string("en"), NGX_HTTP_SECKILL_EN },
    { ngx_null_string, 0 }
};


static ngx_conf_num_bounds_t  ngx_http_seckill_batch_bounds = {
    ngx_conf_check_num_bounds, 1, NGX_HTTP_SECKILL_BATCH_MAX
};


static ngx_conf_num_bounds_t  ngx_http_seckill_connections_bounds = {
    ngx_conf_check_num_bounds, 1, NGX_SECKILL_REDIS_CONNECTIONS
};


static ngx_conf_num_bounds_t  ngx_http_seckill_pending_bounds = {
    ngx_conf_check_num_bounds, 1, 1000000
};


static ngx_conf_num_bounds_t  ngx_http_seckill_waiters_bounds = {
    ngx_conf_check_num_bounds, 0, 1000000
};


#define NGX_HTTP_SECKILL_ANYWHERE                                             \
    NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF


static ngx_command_t  ngx_http_seckill_commands[] = {

    { ngx_string("seckill"),
      NGX_HTTP_LOC_CONF|NGX_HTTP_LIF_CONF|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, enable),
      NULL },

    { ngx_string("seckill_switch"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, open),
      NULL },

    { ngx_string("seckill_zone"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_seckill_conf_zone,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("seckill_journal"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_TAKE1,
      ngx_http_seckill_conf_journal,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("seckill_redis"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_1MORE,
      ngx_http_seckill_conf_redis,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("seckill_redis_timeout"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, redis_timeout),
      NULL },

    { ngx_string("seckill_redis_connect_timeout"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, redis_settings.connect_timeout),
      NULL },

    { ngx_string("seckill_redis_connections"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, redis_settings.connections),
      &ngx_http_seckill_connections_bounds },

    { ngx_string("seckill_timeout"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, timeout),
      NULL },

    { ngx_string("seckill_batch"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, batch),
      &ngx_http_seckill_batch_bounds },

    { ngx_string("seckill_max_pending"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, redis_settings.max_pending),
      &ngx_http_seckill_pending_bounds },

    { ngx_string("seckill_max_waiters"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_num_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, max_waiters),
      &ngx_http_seckill_waiters_bounds },

    { ngx_string("seckill_auth"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_seckill_conf_auth,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("seckill_auth_key_file"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_seckill_conf_auth_key_file,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("seckill_auth_alg"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, auth_alg),
      &ngx_http_seckill_algs },

    { ngx_string("seckill_auth_claim"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_str_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, auth_claim),
      NULL },

    { ngx_string("seckill_auth_leeway"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_sec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, auth_leeway),
      NULL },

    { ngx_string("seckill_queue_token_key_file"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_seckill_conf_queue_token_key_file,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("seckill_limit"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1234,
      ngx_http_seckill_conf_limit,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("seckill_refresh"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, refresh),
      NULL },

    { ngx_string("seckill_negative"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, negative),
      NULL },

    { ngx_string("seckill_messages"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_enum_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, messages),
      &ngx_http_seckill_languages },

    { ngx_string("seckill_rest_status"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, rest_status),
      NULL },

    { ngx_string("seckill_intercept_errors"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_FLAG,
      ngx_conf_set_flag_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, intercept_errors),
      NULL },

    { ngx_string("seckill_body_max"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_size_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, body_max),
      NULL },

    { ngx_string("seckill_body_timeout"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_conf_set_msec_slot,
      NGX_HTTP_LOC_CONF_OFFSET,
      offsetof(ngx_http_seckill_loc_conf_t, body_timeout),
      NULL },

    { ngx_string("seckill_prefix"),
      NGX_HTTP_SECKILL_ANYWHERE|NGX_CONF_TAKE1,
      ngx_http_seckill_conf_prefix,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("seckill_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_NOARGS|NGX_CONF_TAKE1,
      ngx_http_seckill_conf_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_seckill_module_ctx = {
    ngx_http_seckill_preconfiguration,     /* preconfiguration */
    ngx_http_seckill_postconfiguration,    /* postconfiguration */

    ngx_http_seckill_create_main_conf,     /* create main configuration */
    NULL,                                  /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_seckill_create_loc_conf,      /* create location configuration */
    ngx_http_seckill_merge_loc_conf        /* merge location configuration */
};


ngx_module_t  ngx_http_seckill_module = {
    NGX_MODULE_V1,
    &ngx_http_seckill_module_ctx,          /* module context */
    ngx_http_seckill_commands,             /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_seckill_journal_init_module,  /* init module */
    ngx_http_seckill_journal_init_process, /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_seckill_exit_process,         /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static void
ngx_http_seckill_exit_process(ngx_cycle_t *cycle)
{
    /* ends calls in flight: the journal gets a line for each of them */
    ngx_seckill_redis_exit();
    ngx_http_seckill_journal_exit();
    ngx_http_seckill_ticket_exit();
}


static ngx_int_t
ngx_http_seckill_preconfiguration(ngx_conf_t *cf)
{
    return ngx_http_seckill_add_variables(cf);
}


static ngx_int_t
ngx_http_seckill_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_core_main_conf_t  *cmcf;

    /* a phase handler: nested locations and "if" inherit it with their settings */

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_CONTENT_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_seckill_handler;

    ngx_http_seckill_conf_journal_check(cf,
        ngx_http_conf_get_module_main_conf(cf, ngx_http_seckill_module));

    if (ngx_http_seckill_own_init(cf) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_seckill_conf_redis_owner(cf);
}


static void *
ngx_http_seckill_create_main_conf(ngx_conf_t *cf)
{
    /* set by ngx_pcalloc(): all zero; no journal */

    return ngx_pcalloc(cf->pool, sizeof(ngx_http_seckill_main_conf_t));
}


static void *
ngx_http_seckill_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_seckill_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_seckill_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    /*
     * set by ngx_pcalloc():
     *
     *     conf->shm_zone = NULL;
     *     conf->client = NULL;
     *     conf->auth_claim = { 0, NULL };
     *     conf->prefix = { 0, NULL };
     *     conf->jwt = { 0 };
     *     conf->source = 0;
     *     conf->journal_opened = 0;
     */

    conf->enable = NGX_CONF_UNSET;
    conf->open = NGX_CONF_UNSET;
    conf->intercept_errors = NGX_CONF_UNSET;
    conf->redis = NGX_CONF_UNSET_PTR;
    conf->redis_settings.connections = NGX_CONF_UNSET_UINT;
    conf->redis_settings.max_pending = NGX_CONF_UNSET_UINT;
    conf->redis_settings.connect_timeout = NGX_CONF_UNSET_MSEC;
    conf->redis_timeout = NGX_CONF_UNSET_MSEC;
    conf->timeout = NGX_CONF_UNSET_MSEC;
    conf->batch = NGX_CONF_UNSET_UINT;
    conf->auth = NGX_CONF_UNSET_UINT;
    conf->auth_variable = NGX_CONF_UNSET;
    conf->auth_keys = NGX_CONF_UNSET_PTR;
    conf->auth_alg = NGX_CONF_UNSET_UINT;
    conf->auth_leeway = NGX_CONF_UNSET;
    conf->queue_token = NGX_CONF_UNSET_PTR;
    conf->journal_key = NGX_CONF_UNSET_PTR;
    conf->limit = NGX_CONF_UNSET_UINT;
    conf->limit_burst = NGX_CONF_UNSET_UINT;
    conf->limit_cluster = NGX_CONF_UNSET_UINT;
    conf->limit_dry_run = NGX_CONF_UNSET_UINT;
    conf->max_waiters = NGX_CONF_UNSET_UINT;
    conf->refresh = NGX_CONF_UNSET_MSEC;
    conf->negative = NGX_CONF_UNSET_MSEC;
    conf->messages = NGX_CONF_UNSET_UINT;
    conf->rest_status = NGX_CONF_UNSET;
    conf->body_max = NGX_CONF_UNSET_SIZE;
    conf->body_timeout = NGX_CONF_UNSET_MSEC;

    return conf;
}


static char *
ngx_http_seckill_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_seckill_loc_conf_t  *prev = parent;
    ngx_http_seckill_loc_conf_t  *conf = child;

    ngx_conf_merge_value(conf->enable, prev->enable, 0);
    ngx_conf_merge_value(conf->open, prev->open, 1);
    ngx_conf_merge_value(conf->intercept_errors, prev->intercept_errors, 0);

    ngx_conf_merge_ptr_value(conf->redis, prev->redis, NULL);
    ngx_conf_merge_uint_value(conf->redis_settings.connections,
                              prev->redis_settings.connections, 2);
    ngx_conf_merge_uint_value(conf->redis_settings.max_pending,
                              prev->redis_settings.max_pending, 4096);
    ngx_conf_merge_msec_value(conf->redis_settings.connect_timeout,
                              prev->redis_settings.connect_timeout, 200);
    ngx_conf_merge_msec_value(conf->redis_timeout, prev->redis_timeout, 200);
    ngx_conf_merge_msec_value(conf->timeout, prev->timeout, 800);
    ngx_conf_merge_uint_value(conf->batch, prev->batch, 32);

    if (conf->auth == NGX_CONF_UNSET_UINT) {
        conf->auth_variable = prev->auth_variable;
    }

    ngx_conf_merge_uint_value(conf->auth, prev->auth,
                              NGX_HTTP_SECKILL_AUTH_JWT);
    ngx_conf_merge_ptr_value(conf->auth_keys, prev->auth_keys, NULL);
    ngx_conf_merge_uint_value(conf->auth_alg, prev->auth_alg, SK_HS256);
    ngx_conf_merge_str_value(conf->auth_claim, prev->auth_claim, "sub");
    ngx_conf_merge_sec_value(conf->auth_leeway, prev->auth_leeway, 0);
    ngx_conf_merge_ptr_value(conf->queue_token, prev->queue_token, NULL);
    ngx_conf_merge_ptr_value(conf->journal_key, prev->journal_key, NULL);

    ngx_conf_merge_uint_value(conf->limit, prev->limit, 1000);
    ngx_conf_merge_uint_value(conf->limit_burst, prev->limit_burst, 0);
    ngx_conf_merge_uint_value(conf->limit_cluster, prev->limit_cluster, 0);
    ngx_conf_merge_uint_value(conf->limit_dry_run, prev->limit_dry_run, 0);
    ngx_conf_merge_uint_value(conf->max_waiters, prev->max_waiters, 10000);
    ngx_conf_merge_msec_value(conf->refresh, prev->refresh, 1000);
    ngx_conf_merge_msec_value(conf->negative, prev->negative, 60000);

    ngx_conf_merge_uint_value(conf->messages, prev->messages,
                              NGX_HTTP_SECKILL_ZH);
    ngx_conf_merge_value(conf->rest_status, prev->rest_status, 0);
    ngx_conf_merge_size_value(conf->body_max, prev->body_max, 1024);
    ngx_conf_merge_msec_value(conf->body_timeout, prev->body_timeout, 5000);
    ngx_conf_merge_str_value(conf->prefix, prev->prefix, "seckill");

    ngx_http_seckill_conf_path(cf, prev, conf);
    ngx_http_seckill_conf_own(cf,
        ngx_http_conf_get_module_main_conf(cf, ngx_http_seckill_module),
        prev, conf);

    return ngx_http_seckill_check_loc_conf(cf, conf);
}


/* what "nginx -t" is to find, and not the sale */

static char *
ngx_http_seckill_check_loc_conf(ngx_conf_t *cf,
    ngx_http_seckill_loc_conf_t *conf)
{
    ngx_http_seckill_main_conf_t  *smcf;

    if (!conf->enable) {
        return NGX_CONF_OK;
    }

    smcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_seckill_module);

    if (smcf->shm_zone == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"seckill on\" needs a "
                           "\"seckill_zone\" in the http block");
        return NGX_CONF_ERROR;
    }

    if (conf->redis == NULL) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"seckill on\" needs a "
                           "\"seckill_redis\"");
        return NGX_CONF_ERROR;
    }

    if (conf->redis_timeout == 0 || conf->redis_settings.connect_timeout == 0
        || conf->refresh == 0 || conf->body_timeout == 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"seckill_redis_timeout\", "
                           "\"seckill_redis_connect_timeout\", "
                           "\"seckill_refresh\" and "
                           "\"seckill_body_timeout\" must not be 0");
        return NGX_CONF_ERROR;
    }

    if (ngx_http_seckill_conf_redis_check(cf, conf) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    if (conf->auth_claim.len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"seckill_auth_claim\" must not be empty");
        return NGX_CONF_ERROR;
    }

    if (conf->redis_timeout >= conf->timeout) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"seckill_redis_timeout\" "
                           "must be less than \"seckill_timeout\"");
        return NGX_CONF_ERROR;
    }

    if (conf->auth == NGX_HTTP_SECKILL_AUTH_JWT) {
        if (conf->auth_keys == NULL) {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "\"seckill_auth jwt\" "
                               "needs a \"seckill_auth_key_file\"");
            return NGX_CONF_ERROR;
        }

        if (ngx_http_seckill_secret_jwt(cf, conf) != NGX_CONF_OK) {
            return NGX_CONF_ERROR;
        }
    }

    conf->shm_zone = smcf->shm_zone;

    conf->source = ngx_crc32_long(conf->redis->name.data,
                                  conf->redis->name.len);
    conf->source ^= ngx_crc32_long(conf->prefix.data, conf->prefix.len)
                    * 0x9e3779b1 + (uint32_t) conf->redis->db;

    return ngx_http_seckill_conf_journal_location(cf, smcf, conf);
}
