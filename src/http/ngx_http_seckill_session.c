
/*
 * Opaque tokens that Redis was asked about lately, good ones and bad ones: a
 * crowd of retries, or of made-up tokens, does not become a crowd of reads.
 * Records are keyed by 128 bits of the token's SHA-256.
 */


#include "ngx_http_seckill_session.h"
#include "ngx_http_seckill_record.h"


/* most tokens remembered; the least used is forgotten */
#define NGX_HTTP_SECKILL_SESSIONS_MAX  65536


typedef struct {
    ngx_http_seckill_record_t    record;
    ngx_msec_t                   asked;
    uint64_t                     user;      /* 0: Redis does not know the token */
} ngx_http_seckill_session_t;


static void ngx_http_seckill_session_key(ngx_http_seckill_loc_conf_t *conf,
    u_char *hash, ngx_http_seckill_key_t *key);


ngx_int_t
ngx_http_seckill_session_get(ngx_http_seckill_loc_conf_t *conf, u_char *hash,
    uint64_t *user)
{
    ngx_int_t                    rc;
    ngx_http_seckill_key_t       key;
    ngx_http_seckill_shm_t      *shm;
    ngx_http_seckill_session_t  *session;

    ngx_http_seckill_session_key(conf, hash, &key);
    rc = NGX_DECLINED;

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);

    session = (ngx_http_seckill_session_t *)
              ngx_http_seckill_record_find_locked(
                  &shm->tables[NGX_HTTP_SECKILL_SESSIONS], &key);

    if (session
        && (ngx_msec_int_t) (ngx_current_msec - session->asked)
           < (ngx_msec_int_t) conf->refresh)
    {
        *user = session->user;
        rc = NGX_OK;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);

    return rc;
}


void
ngx_http_seckill_session_set(ngx_http_seckill_loc_conf_t *conf, u_char *hash,
    uint64_t user, ngx_msec_t asked)
{
    ngx_http_seckill_key_t       key;
    ngx_http_seckill_shm_t      *shm;
    ngx_http_seckill_table_t    *table;
    ngx_http_seckill_session_t  *session;

    ngx_http_seckill_session_key(conf, hash, &key);

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);
    table = &shm->tables[NGX_HTTP_SECKILL_SESSIONS];

    session = (ngx_http_seckill_session_t *)
              ngx_http_seckill_record_find_locked(table, &key);

    if (session == NULL) {
        if (table->count >= NGX_HTTP_SECKILL_SESSIONS_MAX) {
            (void) ngx_http_seckill_record_evict_locked(conf->shm_zone, table);
        }

        session = (ngx_http_seckill_session_t *)
                  ngx_http_seckill_record_create_locked(conf->shm_zone, table,
                      &key, sizeof(ngx_http_seckill_session_t));
    }

    if (session) {
        session->asked = asked;
        session->user = user;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);
}


static void
ngx_http_seckill_session_key(ngx_http_seckill_loc_conf_t *conf, u_char *hash,
    ngx_http_seckill_key_t *key)
{
    key->source = conf->source;
    ngx_memcpy(&key->activity, hash, sizeof(uint64_t));
    ngx_memcpy(&key->user, hash + sizeof(uint64_t), sizeof(uint64_t));
}
