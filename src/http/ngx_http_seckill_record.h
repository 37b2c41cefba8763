
/*
 * How records stand in the zone.  For the files that own a kind of record; the
 * caller holds the zone's mutex in every function named _locked.
 */


#ifndef _NGX_HTTP_SECKILL_RECORD_H_INCLUDED_
#define _NGX_HTTP_SECKILL_RECORD_H_INCLUDED_


#include "ngx_http_seckill_zone.h"


/* records freed in one go to make room for one */
#define NGX_HTTP_SECKILL_EVICT      16

/* the order in which room is made */
#define NGX_HTTP_SECKILL_USERS      0
#define NGX_HTTP_SECKILL_NEGATIVES  1       /* ids that are no activity */
#define NGX_HTTP_SECKILL_FACTS      2       /* and control, as activity 0 */
#define NGX_HTTP_SECKILL_TABLES     3


typedef struct {
    ngx_rbtree_node_t            node;      /* key: hash; must be first */
    ngx_queue_t                  queue;     /* in the table's LRU */
    ngx_http_seckill_key_t       key;
} ngx_http_seckill_record_t;


typedef struct {
    ngx_rbtree_t                 tree;
    ngx_rbtree_node_t            sentinel;
    ngx_queue_t                  lru;       /* last used first */
    ngx_uint_t                   count;
    ngx_uint_t                   evicted;
} ngx_http_seckill_table_t;


typedef struct {
    ngx_uint_t                   layout;
    ngx_http_seckill_table_t     tables[NGX_HTTP_SECKILL_TABLES];
} ngx_http_seckill_shm_t;


/* Found records become the last used. */
ngx_http_seckill_record_t *ngx_http_seckill_record_find_locked(
    ngx_http_seckill_table_t *table, ngx_http_seckill_key_t *key);

/* A zeroed record of "size" bytes; NULL when no room can be made. */
ngx_http_seckill_record_t *ngx_http_seckill_record_create_locked(
    ngx_shm_zone_t *shm_zone, ngx_http_seckill_table_t *table,
    ngx_http_seckill_key_t *key, size_t size);

/* Frees the least used record.  NGX_DECLINED: there is none. */
ngx_int_t ngx_http_seckill_record_evict_locked(ngx_shm_zone_t *shm_zone,
    ngx_http_seckill_table_t *table);


#endif /* _NGX_HTTP_SECKILL_RECORD_H_INCLUDED_ */
