
/*
 * The last epoch and seq that Redis told this node of each activity.  Every
 * batch takes them along: a Redis that knows less has lost purchases, be it
 * after a failover or from a torn file, and admit.lua pauses the sale before
 * anybody is given a lost number again.  The mark is read before the batch
 * leaves, so whatever Redis knew then is in it already.
 */


#include "ngx_http_seckill_admit.h"
#include "ngx_http_seckill_sold_out.h"


ngx_uint_t
ngx_http_seckill_mark_behind(ngx_http_seckill_mark_t *a,
    ngx_http_seckill_mark_t *b)
{
    return a->epoch < b->epoch || (a->epoch == b->epoch && a->seq < b->seq);
}


void
ngx_http_seckill_mark_get(ngx_http_seckill_loc_conf_t *conf, uint64_t activity,
    ngx_http_seckill_mark_t *mark)
{
    ngx_http_seckill_shm_t           *shm;
    ngx_http_seckill_facts_record_t  *record;

    ngx_memzero(mark, sizeof(ngx_http_seckill_mark_t));

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);

    record = ngx_http_seckill_facts_find_locked(shm, conf->source, activity);

    if (record) {
        *mark = record->mark;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);
}


void
ngx_http_seckill_mark_set(ngx_http_seckill_loc_conf_t *conf, uint64_t activity,
    ngx_http_seckill_mark_t *told)
{
    ngx_http_seckill_shm_t           *shm;
    ngx_http_seckill_facts_record_t  *record;

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);

    record = ngx_http_seckill_facts_find_locked(shm, conf->source, activity);

    if (record && ngx_http_seckill_mark_behind(&record->mark, told)) {
        record->mark = *told;
        record->lost = 0;
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);
}


void
ngx_http_seckill_mark_lost(ngx_http_seckill_loc_conf_t *conf,
    uint64_t activity, ngx_http_seckill_mark_t *mark,
    ngx_http_seckill_mark_t *told)
{
    ngx_uint_t                        first;
    ngx_http_seckill_shm_t           *shm;
    ngx_http_seckill_facts_record_t  *record;

    first = 0;

    shm = ngx_http_seckill_zone_lock(conf->shm_zone);

    record = ngx_http_seckill_facts_find_locked(shm, conf->source, activity);

    if (record) {
        first = !record->lost;
        record->lost = 1;
        record->facts.closed = 1;
    }

    if (first) {
        (void) ngx_atomic_fetch_add(&shm->count.losses, 1);
    }

    ngx_http_seckill_zone_unlock(conf->shm_zone);

    if (first) {
        ngx_log_error(NGX_LOG_CRIT, ngx_cycle->log, 0,
                      "seckill redis lost data of activity %uL, restore it: it "
                      "told epoch %uL seq %uL, and now epoch %uL seq %uL",
                      activity, mark->epoch, mark->seq,
                      told->epoch, told->seq);
    }
}
