
/*
 * The buyers' filters: who may have bought, in few bytes.  A filter is a run of
 * chunks; a user's hash chooses a chunk and a place in it, and leaves a 32-bit
 * fingerprint.  A user without one surely did not buy; with one, Redis is asked.
 */


#include "ngx_http_seckill_record.h"


#define NGX_HTTP_SECKILL_CHUNK       256        /* fingerprints: 1 KiB */
#define NGX_HTTP_SECKILL_CHUNK_FILL  128        /* on average */

/* this part of the zone is for filters */
#define NGX_HTTP_SECKILL_ARENA_PART  8


static uint64_t ngx_http_seckill_buyers_hash(uint64_t user);
static uint32_t *ngx_http_seckill_buyers_slot(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run, uint64_t user, uint32_t *print);


size_t
ngx_http_seckill_buyers_size(size_t zone_size)
{
    size_t  chunks;

    chunks = zone_size / NGX_HTTP_SECKILL_ARENA_PART
             / (NGX_HTTP_SECKILL_CHUNK * sizeof(uint32_t) + 1);

    return chunks * (NGX_HTTP_SECKILL_CHUNK * sizeof(uint32_t) + 1);
}


void
ngx_http_seckill_buyers_init(ngx_http_seckill_arena_t *arena, u_char *memory,
    size_t size)
{
    arena->chunks = size / (NGX_HTTP_SECKILL_CHUNK * sizeof(uint32_t) + 1);
    arena->in_use = 0;
    arena->slots = (uint32_t *) memory;
    arena->used = memory
                  + arena->chunks * NGX_HTTP_SECKILL_CHUNK * sizeof(uint32_t);

    ngx_memzero(arena->used, arena->chunks);
}


void
ngx_http_seckill_buyers_take_locked(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run, uint64_t n)
{
    uint64_t    wanted;
    ngx_uint_t  i, found;

    run->n = 0;
    wanted = n / NGX_HTTP_SECKILL_CHUNK_FILL + 1;

    if (wanted > arena->chunks) {
        return;
    }

    for (i = 0, found = 0; i < arena->chunks && found < wanted; i++) {
        found = arena->used[i] ? 0 : found + 1;
    }

    if (found < wanted) {
        return;
    }

    run->n = (uint32_t) wanted;
    run->first = (uint32_t) (i - wanted);
    arena->in_use += wanted;

    ngx_memset(arena->used + run->first, 1, run->n);
    ngx_memzero(arena->slots + run->first * NGX_HTTP_SECKILL_CHUNK,
                run->n * NGX_HTTP_SECKILL_CHUNK * sizeof(uint32_t));
}


void
ngx_http_seckill_buyers_give_locked(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run)
{
    if (run->n) {
        ngx_memzero(arena->used + run->first, run->n);
        arena->in_use -= run->n;
        run->n = 0;
    }
}


static uint64_t
ngx_http_seckill_buyers_hash(uint64_t user)
{
    /* the finalizer of splitmix64: every bit of the id reaches every bit */

    user ^= user >> 30;
    user *= 0xbf58476d1ce4e5b9ULL;
    user ^= user >> 27;
    user *= 0x94d049bb133111ebULL;
    user ^= user >> 31;

    return user;
}


/* the user's fingerprint, or the free slot for it; NULL: the chunk is full */

static uint32_t *
ngx_http_seckill_buyers_slot(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run, uint64_t user, uint32_t *print)
{
    uint32_t   *chunk;
    uint64_t    hash;
    ngx_uint_t  i, n;

    hash = ngx_http_seckill_buyers_hash(user);

    /* 0 marks a free slot */
    *print = (uint32_t) hash | 1;

    chunk = arena->slots
            + (run->first + ((hash >> 32) * run->n >> 32))
              * NGX_HTTP_SECKILL_CHUNK;

    i = (hash >> 8) % NGX_HTTP_SECKILL_CHUNK;

    for (n = 0; n < NGX_HTTP_SECKILL_CHUNK; n++) {

        if (chunk[i] == 0 || chunk[i] == *print) {
            return &chunk[i];
        }

        i = (i + 1) % NGX_HTTP_SECKILL_CHUNK;
    }

    return NULL;
}


ngx_int_t
ngx_http_seckill_buyers_add(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run, uint64_t user)
{
    uint32_t  print, *slot;

    slot = ngx_http_seckill_buyers_slot(arena, run, user, &print);

    if (slot == NULL) {
        return NGX_ERROR;
    }

    *slot = print;

    return NGX_OK;
}


ngx_uint_t
ngx_http_seckill_buyers_has(ngx_http_seckill_arena_t *arena,
    ngx_http_seckill_run_t *run, uint64_t user)
{
    uint32_t  print, *slot;

    slot = ngx_http_seckill_buyers_slot(arena, run, user, &print);

    return slot == NULL || *slot == print;
}
