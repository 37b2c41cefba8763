
/*
 * The shared zone's life, and its records: one tree and one LRU queue per kind.
 * Under the mutex: look up, count, take slab memory; nothing else.
 */


#include "ngx_http_seckill_zone.h"
#include "ngx_http_seckill_sold_out.h"


/* raised with every change of what the zone's bytes mean */
#define NGX_HTTP_SECKILL_ZONE_LAYOUT  9

/* one tree of users, and of sessions, per so many bytes of the zone */
#define NGX_HTTP_SECKILL_TREE_BYTES   2048

/* the small tables have so many times fewer */
#define NGX_HTTP_SECKILL_TREE_SMALL   16

/* a record moves in its queue no more often: neighbours are cache misses */
#define NGX_HTTP_SECKILL_LRU_MS       1000


static void ngx_http_seckill_record_insert_value(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel);
static ngx_int_t ngx_http_seckill_record_cmp(ngx_http_seckill_key_t *a,
    ngx_http_seckill_key_t *b);
static uint32_t ngx_http_seckill_record_hash(ngx_http_seckill_key_t *key);
static ngx_http_seckill_shm_t *ngx_http_seckill_zone_create(
    ngx_shm_zone_t *shm_zone);
static void ngx_http_seckill_zone_reset_locked(ngx_shm_zone_t *shm_zone);
static ngx_uint_t ngx_http_seckill_table_trees(ngx_uint_t table, ngx_uint_t n);
static void ngx_http_seckill_table_init(ngx_http_seckill_table_t *table,
    ngx_rbtree_t *trees, ngx_uint_t n);
static ngx_rbtree_t *ngx_http_seckill_table_tree(
    ngx_http_seckill_table_t *table, uint32_t hash);


ngx_int_t
ngx_http_seckill_zone_init(ngx_shm_zone_t *shm_zone, void *data)
{
    ngx_slab_pool_t         *shpool;
    ngx_http_seckill_shm_t  *shm;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    if (data || shm_zone->shm.exists) {
        /* a reload, or a binary upgrade's workers: adopt */
        shm = data ? data : shpool->data;

        if (shm->layout != NGX_HTTP_SECKILL_ZONE_LAYOUT) {
            ngx_log_error(NGX_LOG_EMERG, shm_zone->shm.log, 0,
                          "seckill_zone \"%V\" was made by another version of "
                          "the module, give it another name",
                          &shm_zone->shm.name);
            return NGX_ERROR;
        }

        shm_zone->data = shm;
        return NGX_OK;
    }

    shm = ngx_http_seckill_zone_create(shm_zone);
    if (shm == NULL) {
        return NGX_ERROR;
    }

    shm_zone->data = shm;

    return NGX_OK;
}


/* the first allocation of an empty slab pool: always at the same address */

static ngx_http_seckill_shm_t *
ngx_http_seckill_zone_create(ngx_shm_zone_t *shm_zone)
{
    size_t                   size;
    ngx_uint_t               i, n, all;
    ngx_rbtree_t            *trees;
    ngx_slab_pool_t         *shpool;
    ngx_http_seckill_shm_t  *shm;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    for (n = NGX_HTTP_SECKILL_TREE_SMALL;
         n * NGX_HTTP_SECKILL_TREE_BYTES < shm_zone->shm.size;
         n *= 2)
    {
        /* void */
    }

    for (i = 0, all = 0; i < NGX_HTTP_SECKILL_TABLES; i++) {
        all += ngx_http_seckill_table_trees(i, n);
    }

    size = ngx_http_seckill_buyers_size(shm_zone->shm.size);

    shm = ngx_slab_alloc_locked(shpool, sizeof(ngx_http_seckill_shm_t)
                                        + all * sizeof(ngx_rbtree_t) + size);
    if (shm == NULL) {
        return NULL;
    }

    trees = (ngx_rbtree_t *) (shm + 1);

    ngx_memzero(shm, sizeof(ngx_http_seckill_shm_t));

    shm->layout = NGX_HTTP_SECKILL_ZONE_LAYOUT;

    for (i = 0; i < NGX_HTTP_SECKILL_TABLES; i++) {
        ngx_http_seckill_table_init(&shm->tables[i], trees,
                                    ngx_http_seckill_table_trees(i, n));
        trees += ngx_http_seckill_table_trees(i, n);
    }

    ngx_http_seckill_buyers_init(&shm->buyers, (u_char *) trees, size);

    shpool->log_ctx = ngx_slab_alloc_locked(shpool,
                                            sizeof(" in seckill_zone \"\"")
                                            + shm_zone->shm.name.len);
    if (shpool->log_ctx == NULL) {
        return NULL;
    }

    ngx_sprintf(shpool->log_ctx, " in seckill_zone \"%V\"%Z",
                &shm_zone->shm.name);

    /* a full zone makes room, it is no error */
    shpool->log_nomem = 0;
    shpool->data = shm;

    return shm;
}


void
ngx_http_seckill_key_set(ngx_http_seckill_key_t *key, uint32_t source,
    uint64_t activity, uint64_t user)
{
    key->source = source;
    key->activity = activity;
    key->user = user;
}


ngx_http_seckill_shm_t *
ngx_http_seckill_zone_lock(ngx_shm_zone_t *shm_zone)
{
    ngx_slab_pool_t         *shpool;
    ngx_http_seckill_shm_t  *shm;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shm = shm_zone->data;

    ngx_shmtx_lock(&shpool->mutex);

    if (shm->dirty) {
        ngx_http_seckill_zone_reset_locked(shm_zone);
    }

    shm->dirty = 1;
    ngx_memory_barrier();

    return shm;
}


void
ngx_http_seckill_zone_unlock(ngx_shm_zone_t *shm_zone)
{
    ngx_slab_pool_t         *shpool;
    ngx_http_seckill_shm_t  *shm;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shm = shm_zone->data;

    ngx_memory_barrier();
    shm->dirty = 0;

    ngx_shmtx_unlock(&shpool->mutex);
}


/*
 * A worker died between lock and unlock: lists and the slab may be torn.  What
 * the zone held is only a cache, so it starts anew; what was counted is kept.
 */

static void
ngx_http_seckill_zone_reset_locked(ngx_shm_zone_t *shm_zone)
{
    ngx_slab_pool_t          *shpool;
    ngx_http_seckill_shm_t   *shm;
    ngx_http_seckill_count_t  count;

    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;
    shm = shm_zone->data;

    count = shm->count;

    ngx_slab_init(shpool);

    /* cannot fail: it fitted into the empty pool before */
    shm = ngx_http_seckill_zone_create(shm_zone);

    shm->count = count;
    shm->count.resets++;

    ngx_log_error(NGX_LOG_ERR, ngx_cycle->log, 0,
                  "seckill_zone \"%V\" was left locked by a worker that died, "
                  "starting it anew", &shm_zone->shm.name);
}


static ngx_uint_t
ngx_http_seckill_table_trees(ngx_uint_t table, ngx_uint_t n)
{
    return (table == NGX_HTTP_SECKILL_USERS
            || table == NGX_HTTP_SECKILL_SESSIONS)
           ? n : n / NGX_HTTP_SECKILL_TREE_SMALL;
}


static void
ngx_http_seckill_table_init(ngx_http_seckill_table_t *table,
    ngx_rbtree_t *trees, ngx_uint_t n)
{
    ngx_uint_t  i;

    table->trees = trees;
    table->mask = n - 1;

    for (i = 0; i < n; i++) {
        ngx_rbtree_init(&trees[i], &table->sentinel,
                        ngx_http_seckill_record_insert_value);
    }

    ngx_queue_init(&table->lru);
}


static ngx_rbtree_t *
ngx_http_seckill_table_tree(ngx_http_seckill_table_t *table, uint32_t hash)
{
    return &table->trees[hash & table->mask];
}


static void
ngx_http_seckill_record_insert_value(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t          **p;
    ngx_http_seckill_record_t   *r, *t;

    for ( ;; ) {

        if (node->key != temp->key) {
            p = (node->key < temp->key) ? &temp->left : &temp->right;

        } else {
            r = (ngx_http_seckill_record_t *) node;
            t = (ngx_http_seckill_record_t *) temp;

            p = (ngx_http_seckill_record_cmp(&r->key, &t->key) < 0)
                ? &temp->left : &temp->right;
        }

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


static ngx_int_t
ngx_http_seckill_record_cmp(ngx_http_seckill_key_t *a,
    ngx_http_seckill_key_t *b)
{
    if (a->user != b->user) {
        return a->user < b->user ? -1 : 1;
    }

    if (a->activity != b->activity) {
        return a->activity < b->activity ? -1 : 1;
    }

    if (a->source != b->source) {
        return a->source < b->source ? -1 : 1;
    }

    return 0;
}


static uint32_t
ngx_http_seckill_record_hash(ngx_http_seckill_key_t *key)
{
    uint64_t  h;

    /* users and activities are often consecutive: spread them */
    h = key->user * 0x9e3779b97f4a7c15ULL;
    h ^= (key->activity + key->source) * 0xc2b2ae3d27d4eb4fULL;
    h ^= h >> 32;

    return (uint32_t) h;
}


ngx_http_seckill_record_t *
ngx_http_seckill_record_find_locked(ngx_http_seckill_table_t *table,
    ngx_http_seckill_key_t *key)
{
    uint32_t                    hash, now;
    ngx_int_t                   rc;
    ngx_rbtree_node_t          *node, *sentinel;
    ngx_http_seckill_record_t  *record;

    hash = ngx_http_seckill_record_hash(key);

    node = ngx_http_seckill_table_tree(table, hash)->root;
    sentinel = &table->sentinel;

    while (node != sentinel) {

        if (hash != node->key) {
            node = (hash < node->key) ? node->left : node->right;
            continue;
        }

        record = (ngx_http_seckill_record_t *) node;
        rc = ngx_http_seckill_record_cmp(key, &record->key);

        if (rc == 0) {
            now = (uint32_t) ngx_current_msec;

            if (now - record->used > NGX_HTTP_SECKILL_LRU_MS) {
                record->used = now;
                ngx_queue_remove(&record->queue);
                ngx_queue_insert_head(&table->lru, &record->queue);
            }

            return record;
        }

        node = (rc < 0) ? node->left : node->right;
    }

    return NULL;
}


ngx_http_seckill_record_t *
ngx_http_seckill_record_create_locked(ngx_shm_zone_t *shm_zone,
    ngx_http_seckill_table_t *table, ngx_http_seckill_key_t *key, size_t size)
{
    ngx_uint_t                  i, n;
    ngx_slab_pool_t            *shpool;
    ngx_http_seckill_shm_t     *shm;
    ngx_http_seckill_record_t  *record;

    shm = shm_zone->data;
    shpool = (ngx_slab_pool_t *) shm_zone->shm.addr;

    record = ngx_slab_calloc_locked(shpool, size);

    /* room is made among users first: a fact is worth more than a limit */

    for (i = 0; record == NULL && i < NGX_HTTP_SECKILL_TABLES; i++) {
        for (n = 0; record == NULL && n < NGX_HTTP_SECKILL_EVICT; n++) {
            if (ngx_http_seckill_record_evict_locked(shm_zone, &shm->tables[i])
                != NGX_OK)
            {
                break;
            }

            record = ngx_slab_calloc_locked(shpool, size);
        }
    }

    if (record == NULL) {
        return NULL;
    }

    record->key = *key;
    record->used = (uint32_t) ngx_current_msec;
    record->node.key = ngx_http_seckill_record_hash(key);

    ngx_rbtree_insert(ngx_http_seckill_table_tree(table, record->node.key),
                      &record->node);
    ngx_queue_insert_head(&table->lru, &record->queue);
    table->count++;

    return record;
}


ngx_int_t
ngx_http_seckill_record_evict_locked(ngx_shm_zone_t *shm_zone,
    ngx_http_seckill_table_t *table)
{
    ngx_queue_t                *q;
    ngx_http_seckill_shm_t     *shm;
    ngx_http_seckill_record_t  *record;

    shm = shm_zone->data;

    if (ngx_queue_empty(&table->lru)) {
        return NGX_DECLINED;
    }

    q = ngx_queue_last(&table->lru);
    record = ngx_queue_data(q, ngx_http_seckill_record_t, queue);

    ngx_queue_remove(q);
    ngx_rbtree_delete(ngx_http_seckill_table_tree(table, record->node.key),
                      &record->node);
    table->count--;
    table->evicted++;

    if (table == &shm->tables[NGX_HTTP_SECKILL_FACTS] && record->key.activity) {
        ngx_http_seckill_buyers_give_locked(&shm->buyers,
                        &((ngx_http_seckill_facts_record_t *) record)->buyers);
    }

    ngx_slab_free_locked((ngx_slab_pool_t *) shm_zone->shm.addr, record);

    return NGX_OK;
}
