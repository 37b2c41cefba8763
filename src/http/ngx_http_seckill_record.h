
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
#define NGX_HTTP_SECKILL_SESSIONS   0       /* opaque tokens */
#define NGX_HTTP_SECKILL_USERS      1
#define NGX_HTTP_SECKILL_NEGATIVES  2       /* ids that are no activity */
#define NGX_HTTP_SECKILL_FACTS      3       /* and control, as activity 0 */
#define NGX_HTTP_SECKILL_TABLES     4


typedef struct {
    ngx_rbtree_node_t            node;      /* key: hash; must be first */
    ngx_queue_t                  queue;     /* in the table's LRU */
    ngx_http_seckill_key_t       key;
    uint32_t                     used;      /* when it was put first there */
} ngx_http_seckill_record_t;


/* many small trees: the way down a large one is a cache miss at every step */
typedef struct {
    ngx_rbtree_t                *trees;     /* by hash */
    ngx_uint_t                   mask;      /* of their index */
    ngx_rbtree_node_t            sentinel;  /* of all */
    ngx_queue_t                  lru;       /* last used first */
    ngx_uint_t                   count;
    ngx_uint_t                   evicted;
} ngx_http_seckill_table_t;


/* memory for the buyers' filters, in chunks; see ngx_http_seckill_buyers.c */
typedef struct {
    u_char                      *used;      /* one byte per chunk */
    uint32_t                    *slots;
    ngx_uint_t                   chunks;
    ngx_uint_t                   in_use;
} ngx_http_seckill_arena_t;


/* a run of chunks; n 0: none */
typedef struct {
    uint32_t                     first;
    uint32_t                     n;
} ngx_http_seckill_run_t;


/* activities with counters of their own; the others share one */
#define NGX_HTTP_SECKILL_COUNTED  64

/* workers with gauges of their own */
#define NGX_HTTP_SECKILL_WORKERS  64


/* requests of one activity by verdict */
typedef struct {
    ngx_atomic_t                 activity;  /* 0: free, or "other" in the last */
    ngx_atomic_t                 source;
    ngx_atomic_t                 verdicts[SK_VERDICTS];
} ngx_http_seckill_counted_t;


/* written by its worker only */
typedef struct {
    ngx_atomic_t                 pid;       /* 0: no such worker */
    ngx_atomic_t                 pending;   /* purchases */
    ngx_atomic_t                 waiters;
    ngx_atomic_t                 redis_up;
} ngx_http_seckill_gauges_t;


typedef struct {
    ngx_atomic_t                 lines;
    ngx_atomic_t                 failures;  /* of writing */
    ngx_atomic_t                 lost;      /* lines */
    ngx_atomic_t                 gap_ms;    /* of all workers together */
} ngx_http_seckill_journal_count_t;


/* counted since the zone was made, also over a reset of its records */
typedef struct {
    ngx_atomic_t                 resets;    /* after a death inside the lock */
    ngx_atomic_t                 batches;
    ngx_atomic_t                 purchases; /* in them */
    ngx_atomic_t                 losses;    /* Redis fell behind a mark */
    ngx_http_seckill_journal_count_t
                                 journal;
    ngx_http_seckill_counted_t   activities[NGX_HTTP_SECKILL_COUNTED + 1];
    ngx_seckill_histogram_t      requests;  /* milliseconds */
    ngx_seckill_redis_count_t    redis;
    ngx_http_seckill_gauges_t    workers[NGX_HTTP_SECKILL_WORKERS];
} ngx_http_seckill_count_t;


typedef struct {
    ngx_uint_t                   layout;
    ngx_uint_t                   dirty;     /* somebody is inside the lock */
    ngx_http_seckill_table_t     tables[NGX_HTTP_SECKILL_TABLES];
    ngx_http_seckill_arena_t     buyers;
    ngx_http_seckill_count_t     count;     /* by atomic adds, without the lock */
} ngx_http_seckill_shm_t;


/*
 * Every look into the zone stands between these.  Nothing that can block or
 * log in between; no pointer is kept.
 */
ngx_http_seckill_shm_t *ngx_http_seckill_zone_lock(ngx_shm_zone_t *shm_zone);
void ngx_http_seckill_zone_unlock(ngx_shm_zone_t *shm_zone);

/* ngx_http_seckill_count.c: the activity gets counters, while there are some. */
void ngx_http_seckill_count_activity_locked(ngx_http_seckill_shm_t *shm,
    uint32_t source, uint64_t activity);

/* ngx_http_seckill_activity.c: what is known of all activities; else zeroed. */
void ngx_http_seckill_zone_control_locked(ngx_http_seckill_shm_t *shm,
    uint32_t source, ngx_http_seckill_control_t *control);

/* Found records become the last used, give or take a second. */
ngx_http_seckill_record_t *ngx_http_seckill_record_find_locked(
    ngx_http_seckill_table_t *table, ngx_http_seckill_key_t *key);

/* A zeroed record of "size" bytes; NULL when no room can be made. */
ngx_http_seckill_record_t *ngx_http_seckill_record_create_locked(
    ngx_shm_zone_t *shm_zone, ngx_http_seckill_table_t *table,
    ngx_http_seckill_key_t *key, size_t size);

/* Frees the least used record.  NGX_DECLINED: there is none. */
ngx_int_t ngx_http_seckill_record_evict_locked(ngx_shm_zone_t *shm_zone,
    ngx_http_seckill_table_t *table);


/* ngx_http_seckill_buyers.c: the filters' memory */

/* Bytes of the arena in a zone of that size. */
size_t ngx_http_seckill_buyers_size(size_t zone_size);

void ngx_http_seckill_buyers_init(ngx_http_seckill_arena_t *arena,
    u_char *memory, size_t size);

/* Empty room for n buyers; run->n is 0 when there is none. */
void ngx_http_seckill_buyers_take_locked(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run, uint64_t n);
void ngx_http_seckill_buyers_give_locked(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run);

/* NGX_ERROR: does not fit, the filter is of no use. */
ngx_int_t ngx_http_seckill_buyers_add(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run, uint64_t user);

/* 0: surely not added. */
ngx_uint_t ngx_http_seckill_buyers_has(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run, uint64_t user);


#endif /* _NGX_HTTP_SECKILL_RECORD_H_INCLUDED_ */
