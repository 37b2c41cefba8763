
/*
 * The directive "seckill_journal", and which locations write there.
 */


#include "ngx_http_seckill_journal.h"


static ngx_int_t ngx_http_seckill_conf_journal_file(ngx_conf_t *cf,
    ngx_http_seckill_main_conf_t *smcf, ngx_str_t *value);


/* seckill_journal file | off; */

char *
ngx_http_seckill_conf_journal(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
    ngx_http_seckill_main_conf_t  *smcf = conf;

    ngx_str_t  *value;

    if (smcf->journal_set) {
        return "is duplicate";
    }

    smcf->journal_set = 1;
    value = cf->args->elts;

    if (ngx_strcmp(value[1].data, "off") == 0) {
        return NGX_CONF_OK;
    }

    if (value[1].len == 0) {
        ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
                           "\"seckill_journal\" must not be empty");
        return NGX_CONF_ERROR;
    }

    return ngx_http_seckill_conf_journal_file(cf, smcf, &value[1]) == NGX_OK
           ? NGX_CONF_OK : NGX_CONF_ERROR;
}


/* an entry of its own in nginx' list, whatever access logs there are */

static ngx_int_t
ngx_http_seckill_conf_journal_file(ngx_conf_t *cf,
    ngx_http_seckill_main_conf_t *smcf, ngx_str_t *value)
{
    ngx_str_t        *name;
    ngx_open_file_t  *file;

    name = ngx_palloc(cf->pool, sizeof(ngx_str_t));
    if (name == NULL) {
        return NGX_ERROR;
    }

    *name = *value;

    if (ngx_conf_full_name(cf->cycle, name, 0) != NGX_OK
        || ngx_http_seckill_journal_prepare(name, cf->log) != NGX_OK)
    {
        return NGX_ERROR;
    }

    file = ngx_list_push(&cf->cycle->open_files);
    if (file == NULL) {
        return NGX_ERROR;
    }

    file->fd = NGX_INVALID_FILE;
    file->name = *name;
    file->flush = ngx_http_seckill_journal_flush;
    file->data = name;                  /* also while nginx must not open it */

    smcf->journal = file;

    return NGX_OK;
}


char *
ngx_http_seckill_conf_journal_location(ngx_conf_t *cf,
    ngx_http_seckill_main_conf_t *smcf, ngx_http_seckill_loc_conf_t *conf)
{
    ngx_uint_t                     i;
    ngx_http_seckill_loc_conf_t  **known;

    known = smcf->journal_confs.elts;

    for (i = 0; i < smcf->journal_confs.nelts; i++) {
        if (known[i]->source == conf->source
            && known[i]->journal_key == conf->journal_key)
        {
            return NGX_CONF_OK;
        }
    }

    if (known == NULL
        && ngx_array_init(&smcf->journal_confs, cf->pool, 4,
                          sizeof(ngx_http_seckill_loc_conf_t *))
           != NGX_OK)
    {
        return NGX_CONF_ERROR;
    }

    known = ngx_array_push(&smcf->journal_confs);
    if (known == NULL) {
        return NGX_CONF_ERROR;
    }

    *known = conf;

    return NGX_CONF_OK;
}


void
ngx_http_seckill_conf_journal_check(ngx_conf_t *cf,
    ngx_http_seckill_main_conf_t *smcf)
{
    if (!smcf->journal_set && smcf->journal_confs.nelts) {
        ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "\"seckill_journal\" is not "
                           "set: what Redis loses nobody can name");
    }
}
