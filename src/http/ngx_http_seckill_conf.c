
/*
 * Directives that do more than fill a slot.  No socket is opened, no name
 * looked up, so that "nginx -t" needs no network.
 */


#include "ngx_http_seckill_secret.h"
#include "ngx_http_seckill_zone.h"


#define NGX_HTTP_SECKILL_ZONE_MIN       (8 * ngx_pagesize)


static char *ngx_http_seckill_conf_limit_option(ngx_conf_t *cf,
    ngx_str_t *value, ngx_http_seckill_loc_conf_t *slcf);
static char *ngx_http_seckill_conf_limit_rate(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_seckill_loc_conf_t *slcf);


/* seckill_zone name:size; */

char *
ngx_http_seckill_conf_zone(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_seckill_main_conf_t  *smcf = conf;

    u_char     *colon;
    ssize_t     size;
    ngx_str_t  *value, name, text;

    if (smcf->shm_zone) {
        return "is duplicate";
    }

    value = cf->args->elts;

    colon = (u_char *) ngx_strchr(value[1].data, ':');

    if (colon == NULL || colon == value[1].data) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid zone \"%V\", "
                           "name:size is expected", &value[1]);
        return NGX_CONF_ERROR;
    }

    name.data = value[1].data;
    name.len = colon - name.data;

    text.data = colon + 1;
    text.len = value[1].data + value[1].len - text.data;

    size = ngx_parse_size(&text);

    if (size == NGX_ERROR) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid zone size \"%V\"",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    if (size < (ssize_t) NGX_HTTP_SECKILL_ZONE_MIN) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "zone \"%V\" is too small",
                           &value[1]);
        return NGX_CONF_ERROR;
    }

    smcf->shm_zone = ngx_shared_memory_add(cf, &name, size,
                                           &ngx_http_seckill_module);
    if (smcf->shm_zone == NULL) {
        return NGX_CONF_ERROR;
    }

    smcf->shm_zone->init = ngx_http_seckill_zone_init;

    return NGX_CONF_OK;
}


/* seckill_auth jwt | redis | $variable; */

char *
ngx_http_seckill_conf_auth(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_seckill_loc_conf_t  *slcf = conf;

    ngx_str_t  *value, name;

    if (slcf->auth != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "jwt") == 0) {
        slcf->auth = NGX_HTTP_SECKILL_AUTH_JWT;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value[1].data, "redis") == 0) {
        slcf->auth = NGX_HTTP_SECKILL_AUTH_REDIS;
        return NGX_CONF_OK;
    }

    if (value[1].len > 1 && value[1].data[0] == '$') {
        name.data = value[1].data + 1;
        name.len = value[1].len - 1;

        slcf->auth_variable = ngx_http_get_variable_index(cf, &name);

        if (slcf->auth_variable == NGX_ERROR) {
            return NGX_CONF_ERROR;
        }

        slcf->auth = NGX_HTTP_SECKILL_AUTH_VARIABLE;
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid value \"%V\", "
                       "\"jwt\", \"redis\" or a variable is expected",
                       &value[1]);

    return NGX_CONF_ERROR;
}


/* seckill_auth_key_file file; repeatable, any of the keys may have signed */

char *
ngx_http_seckill_conf_auth_key_file(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_seckill_loc_conf_t  *slcf = conf;

    ngx_str_t  *value, *key;

    if (slcf->auth_keys == NGX_CONF_UNSET_PTR) {
        slcf->auth_keys = ngx_array_create(cf->pool, 2, sizeof(ngx_str_t));
        if (slcf->auth_keys == NULL) {
            return NGX_CONF_ERROR;
        }
    }

    if (slcf->auth_keys->nelts == NGX_HTTP_SECKILL_KEYS_MAX) {
        return "is given too often";
    }

    key = ngx_array_push(slcf->auth_keys);
    if (key == NULL) {
        return NGX_CONF_ERROR;
    }

    value = cf->args->elts;

    return ngx_http_seckill_secret_key(cf, &value[1], key);
}


/* seckill_queue_token_key_file file; */

char *
ngx_http_seckill_conf_queue_token_key_file(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf)
{
    ngx_http_seckill_loc_conf_t  *slcf = conf;

    ngx_str_t  *value, key;

    if (slcf->queue_token != NGX_CONF_UNSET_PTR) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (ngx_http_seckill_secret_key(cf, &value[1], &key) != NGX_CONF_OK) {
        return NGX_CONF_ERROR;
    }

    slcf->queue_token = ngx_http_seckill_secret_hmac(cf, SK_HS256, &key);
    slcf->journal_key = ngx_http_seckill_secret_journal(cf, &key);

    return slcf->queue_token && slcf->journal_key ? NGX_CONF_OK
                                                  : NGX_CONF_ERROR;
}


/* seckill_limit rate=1r/s [burst=0] [scope=node|cluster] [dry_run] | off; */

char *
ngx_http_seckill_conf_limit(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_seckill_loc_conf_t  *slcf = conf;

    ngx_str_t   *value;
    ngx_uint_t   i;

    if (slcf->limit != NGX_CONF_UNSET_UINT) {
        return "is duplicate";
    }

    value = cf->args->elts;

    if (cf->args->nelts == 2 && ngx_strcmp(value[1].data, "off") == 0) {
        slcf->limit = 0;

    } else {
        for (i = 1; i < cf->args->nelts; i++) {
            if (ngx_http_seckill_conf_limit_option(cf, &value[i], slcf)
                != NGX_CONF_OK)
            {
                return NGX_CONF_ERROR;
            }
        }
    }

    if (slcf->limit_cluster == 1 && slcf->limit_dry_run == 1) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"dry_run\" is for \"scope=node\" only");
        return NGX_CONF_ERROR;
    }

    /* one directive is one whole setting: nothing is inherited in parts */

    ngx_conf_init_uint_value(slcf->limit, 1000);
    ngx_conf_init_uint_value(slcf->limit_burst, 0);
    ngx_conf_init_uint_value(slcf->limit_cluster, 0);
    ngx_conf_init_uint_value(slcf->limit_dry_run, 0);

    return NGX_CONF_OK;
}


static char *
ngx_http_seckill_conf_limit_option(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_seckill_loc_conf_t *slcf)
{
    uint32_t  burst;

    if (ngx_strncmp(value->data, "rate=", 5) == 0
        && slcf->limit == NGX_CONF_UNSET_UINT)
    {
        return ngx_http_seckill_conf_limit_rate(cf, value, slcf);
    }

    if (ngx_strncmp(value->data, "burst=", 6) == 0
        && slcf->limit_burst == NGX_CONF_UNSET_UINT)
    {
        if (sk_burst_parse((char *) value->data + 6, value->len - 6, &burst)
            != 0)
        {
            ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                               "invalid burst \"%V\", 0..1000 is expected",
                               value);
            return NGX_CONF_ERROR;
        }

        slcf->limit_burst = burst;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value->data, "scope=node") == 0
        && slcf->limit_cluster == NGX_CONF_UNSET_UINT)
    {
        slcf->limit_cluster = 0;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value->data, "scope=cluster") == 0
        && slcf->limit_cluster == NGX_CONF_UNSET_UINT)
    {
        slcf->limit_cluster = 1;
        return NGX_CONF_OK;
    }

    if (ngx_strcmp(value->data, "dry_run") == 0) {
        slcf->limit_dry_run = 1;
        return NGX_CONF_OK;
    }

    ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid parameter \"%V\"",
                       value);

    return NGX_CONF_ERROR;
}


/* "rate=5r/s" or "rate=60r/m" as milliseconds between two requests */

static char *
ngx_http_seckill_conf_limit_rate(ngx_conf_t *cf, ngx_str_t *value,
    ngx_http_seckill_loc_conf_t *slcf)
{
    uint32_t  interval;

    if (sk_rate_parse((char *) value->data + 5, value->len - 5, &interval)
        != 0)
    {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid rate \"%V\", "
                           "1r/s..1000r/s or 1r/m..1000r/m is expected", value);
        return NGX_CONF_ERROR;
    }

    slcf->limit = interval;

    return NGX_CONF_OK;
}


/* seckill_prefix string; */

char *
ngx_http_seckill_conf_prefix(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_seckill_loc_conf_t  *slcf = conf;

    u_char      c;
    ngx_str_t  *value;
    ngx_uint_t  i;

    if (slcf->prefix.data) {
        return "is duplicate";
    }

    value = cf->args->elts;

    for (i = 0; i < value[1].len; i++) {
        c = value[1].data[i];

        /* braces would move the hash tag of the keys */

        if (c <= ' ' || c >= 0x7f || c == '{' || c == '}') {
            break;
        }
    }

    if (i == 0 || i > SK_PREFIX_MAX || i < value[1].len) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "invalid prefix \"%V\", "
                           "1..%d visible characters without braces are "
                           "expected", &value[1], SK_PREFIX_MAX);
        return NGX_CONF_ERROR;
    }

    slcf->prefix = value[1];

    return NGX_CONF_OK;
}
