
/*
 * yajl does the grammar, this file what yajl lets pass: \v and \f as blanks,
 * overlong UTF-8, half surrogate pairs, repeated keys, any depth.
 *
 * yajl does not look at what its allocator returns, so it gets an arena on the
 * stack.  The scan before keeps its needs below the arena: no string longer than
 * SK_JSON_TEXT_MAX, which its buffer for unescaped strings must hold, and no
 * token cut off at the end of the text, which it would keep a copy of.  Should
 * another yajl want more, the walk is left by longjmp() and the text refused;
 * there is nothing to free.
 */


#include <setjmp.h>
#include <stdalign.h>
#include <string.h>

#include <yajl/yajl_parse.h>

#include "sk_json.h"
#include "sk_utf8.h"


#define SK_JSON_ARENA  12288            /* 8192 and 2048 of buffers, 500 of structs */
#define SK_JSON_ALIGN  16
#define SK_JSON_NONE   ((size_t) -1)


typedef struct {
    alignas(SK_JSON_ALIGN) unsigned char   memory[SK_JSON_ARENA];
    size_t                used;
    size_t                last;         /* where the newest block starts */
    jmp_buf               exhausted;
} sk_json_arena_t;


typedef struct {
    const sk_json_key_t  *keys;
    size_t                nkeys;
    sk_json_value_pt      value;
    void                 *data;
    size_t                key;          /* whose value is next, or NONE */
    unsigned              depth;
    uint32_t              seen;         /* a bit per key */
} sk_json_walk_t;


static int sk_json_parse(sk_json_arena_t *arena, sk_json_walk_t *walk,
    const char *text, size_t len);
static int sk_json_scan(const char *p, const char *end);
static const char *sk_json_scan_string(const char *p, const char *end);
static size_t sk_json_escape(const char *p, const char *end);
static long sk_json_hex4(const char *p);
static void *sk_json_malloc(void *ctx, size_t size);
static void *sk_json_realloc(void *ctx, void *old, size_t size);
static void sk_json_mfree(void *ctx, void *old);
static int sk_json_emit(sk_json_walk_t *walk, sk_json_type_e type,
    const void *text, size_t len);
static int sk_json_null(void *ctx);
static int sk_json_bool(void *ctx, int value);
static int sk_json_number(void *ctx, const char *text, size_t len);
static int sk_json_string(void *ctx, const unsigned char *text, size_t len);
static int sk_json_start_map(void *ctx);
static int sk_json_map_key(void *ctx, const unsigned char *text, size_t len);
static int sk_json_start_array(void *ctx);
static int sk_json_end(void *ctx);


static const yajl_callbacks  sk_json_callbacks = {
    .yajl_null = sk_json_null,
    .yajl_boolean = sk_json_bool,
    .yajl_number = sk_json_number,
    .yajl_string = sk_json_string,
    .yajl_start_map = sk_json_start_map,
    .yajl_map_key = sk_json_map_key,
    .yajl_end_map = sk_json_end,
    .yajl_start_array = sk_json_start_array,
    .yajl_end_array = sk_json_end
};


int
sk_json_walk(const char *text, size_t len, const sk_json_key_t *keys,
    size_t nkeys, sk_json_value_pt value, void *data)
{
    sk_json_walk_t   walk;
    sk_json_arena_t  arena;

    if (nkeys > SK_JSON_KEYS_MAX || sk_json_scan(text, text + len) != 0) {
        return -1;
    }

    walk.keys = keys;
    walk.nkeys = nkeys;
    walk.value = value;
    walk.data = data;
    walk.key = SK_JSON_NONE;
    walk.depth = 0;
    walk.seen = 0;

    arena.used = 0;
    arena.last = 0;

    if (setjmp(arena.exhausted) != 0) {
        return -1;
    }

    return sk_json_parse(&arena, &walk, text, len);
}


static int
sk_json_parse(sk_json_arena_t *arena, sk_json_walk_t *walk, const char *text,
    size_t len)
{
    yajl_handle       parser;
    yajl_status       status;
    yajl_alloc_funcs  alloc;

    alloc.malloc = sk_json_malloc;
    alloc.realloc = sk_json_realloc;
    alloc.free = sk_json_mfree;
    alloc.ctx = arena;

    parser = yajl_alloc(&sk_json_callbacks, &alloc, walk);

    /* the scan was stricter */
    (void) yajl_config(parser, yajl_dont_validate_strings, 1);

    status = yajl_parse(parser, (const unsigned char *) text, len);
    if (status == yajl_status_ok) {
        status = yajl_complete_parse(parser);
    }

    /* yajl_free() would only hand back the arena */

    return status == yajl_status_ok ? 0 : -1;
}


/*
 * One pass over the text: it runs from { to }, all strings end, and what is in
 * them is UTF-8.
 */

static int
sk_json_scan(const char *p, const char *end)
{
    while (p < end && sk_json_blank(p, 1)) {
        p++;
    }

    while (p < end && sk_json_blank(end - 1, 1)) {
        end--;
    }

    /* a "}" that ends a string has its quote behind it */

    if (p == end || *p != '{' || end[-1] != '}') {
        return -1;
    }

    while (p < end) {
        if (*p == '"') {
            p = sk_json_scan_string(p + 1, end);
            if (p == NULL) {
                return -1;
            }

        } else if ((unsigned char) *p < ' ' && !sk_json_blank(p, 1)) {
            return -1;

        } else {
            p++;
        }
    }

    return 0;
}


/* p is behind the opening quote; returns where the closing one ends, or NULL. */

static const char *
sk_json_scan_string(const char *p, const char *end)
{
    size_t       n;
    const char  *start;

    start = p;

    while (p < end && *p != '"') {

        if (*p == '\\') {
            n = sk_json_escape(p, end);

        } else if ((unsigned char) *p >= 0x80) {
            n = sk_utf8_char(p, (size_t) (end - p));

        } else {
            n = (unsigned char) *p >= ' ';
        }

        if (n == 0) {
            return NULL;
        }

        p += n;
    }

    if (p >= end || p - start > SK_JSON_TEXT_MAX) {
        return NULL;
    }

    return p + 1;
}


/* Bytes of the escape at p, a surrogate pair counting as one; 0 when it is bad. */

static size_t
sk_json_escape(const char *p, const char *end)
{
    long  high, low;

    if (end - p < 2) {
        return 0;
    }

    if (p[1] != 'u') {
        return 2;                       /* yajl knows which there are */
    }

    high = end - p < 6 ? -1 : sk_json_hex4(p + 2);

    if (high == -1 || (high >= 0xdc00 && high <= 0xdfff)) {
        return 0;
    }

    if (high < 0xd800 || high > 0xdbff) {
        return 6;
    }

    if (end - p < 12 || p[6] != '\\' || p[7] != 'u') {
        return 0;
    }

    low = sk_json_hex4(p + 8);

    return low >= 0xdc00 && low <= 0xdfff ? 12 : 0;
}


static long
sk_json_hex4(const char *p)
{
    int   i;
    long  n;

    n = 0;

    for (i = 0; i < 4; i++) {
        n <<= 4;

        if (p[i] >= '0' && p[i] <= '9') {
            n += p[i] - '0';

        } else if ((p[i] | 0x20) >= 'a' && (p[i] | 0x20) <= 'f') {
            n += (p[i] | 0x20) - 'a' + 10;

        } else {
            return -1;
        }
    }

    return n;
}


static void *
sk_json_malloc(void *ctx, size_t size)
{
    sk_json_arena_t  *arena = ctx;

    /* room is counted in whole units, so the sum cannot run over */
    if (size > SK_JSON_ARENA - arena->used) {
        longjmp(arena->exhausted, 1);
    }

    arena->last = arena->used;
    arena->used += (size + SK_JSON_ALIGN - 1) & ~(size_t) (SK_JSON_ALIGN - 1);

    return arena->memory + arena->last;
}


/* The newest block grows where it is: yajl's string buffer doubles. */

static void *
sk_json_realloc(void *ctx, void *old, size_t size)
{
    void             *new;
    size_t            copied;
    sk_json_arena_t  *arena = ctx;

    if (old == NULL) {
        return sk_json_malloc(ctx, size);
    }

    if (old == arena->memory + arena->last) {
        arena->used = arena->last;
        return sk_json_malloc(ctx, size);
    }

    /* how long the old one was is not known, but it ended before the newest */
    copied = (size_t) (arena->memory + arena->last - (unsigned char *) old);

    new = sk_json_malloc(ctx, size);
    memcpy(new, old, copied < size ? copied : size);

    return new;
}


static void
sk_json_mfree(void *ctx, void *old)
{
    (void) ctx;
    (void) old;
}


static int
sk_json_emit(sk_json_walk_t *walk, sk_json_type_e type, const void *text,
    size_t len)
{
    size_t           key;
    sk_json_value_t  value;

    key = walk->key;

    if (walk->depth != 1 || key == SK_JSON_NONE) {
        return 1;
    }

    walk->key = SK_JSON_NONE;

    value.type = type;
    value.text = text;
    value.len = len;

    return walk->value(walk->data, key, &value) == 0;
}


static int
sk_json_null(void *ctx)
{
    return sk_json_emit(ctx, SK_JSON_NULL, "null", 4);
}


static int
sk_json_bool(void *ctx, int value)
{
    return value ? sk_json_emit(ctx, SK_JSON_BOOL, "true", 4)
                 : sk_json_emit(ctx, SK_JSON_BOOL, "false", 5);
}


static int
sk_json_number(void *ctx, const char *text, size_t len)
{
    return sk_json_emit(ctx, SK_JSON_NUMBER, text, len);
}


static int
sk_json_string(void *ctx, const unsigned char *text, size_t len)
{
    return sk_json_emit(ctx, SK_JSON_TEXT, text, len);
}


static int
sk_json_start_map(void *ctx)
{
    sk_json_walk_t  *walk = ctx;

    if (!sk_json_emit(walk, SK_JSON_OBJECT, "", 0)) {
        return 0;
    }

    return ++walk->depth <= SK_JSON_DEPTH_MAX;
}


static int
sk_json_start_array(void *ctx)
{
    sk_json_walk_t  *walk = ctx;

    if (!sk_json_emit(walk, SK_JSON_ARRAY, "", 0)) {
        return 0;
    }

    return ++walk->depth <= SK_JSON_DEPTH_MAX;
}


static int
sk_json_end(void *ctx)
{
    sk_json_walk_t  *walk = ctx;

    walk->depth--;

    return 1;
}


static int
sk_json_map_key(void *ctx, const unsigned char *text, size_t len)
{
    size_t           i;
    uint32_t         bit;
    sk_json_walk_t  *walk = ctx;

    if (walk->depth != 1) {
        return 1;
    }

    for (i = 0; i < walk->nkeys; i++) {
        if (walk->keys[i].len == len && memcmp(walk->keys[i].name, text, len) == 0) {
            bit = (uint32_t) 1 << i;

            if (walk->seen & bit) {
                return 0;
            }

            walk->seen |= bit;
            walk->key = i;
            break;
        }
    }

    return 1;
}


int
sk_json_integer(const sk_json_value_t *value, int64_t *n)
{
    int      negative;
    size_t   i;
    int64_t  sum;

    if (value->type != SK_JSON_NUMBER) {
        return -1;
    }

    negative = value->len > 0 && value->text[0] == '-';
    sum = 0;

    /* JSON allows no leading zeros, and at least one digit is there */

    for (i = (size_t) negative; i < value->len; i++) {

        if (value->text[i] < '0' || value->text[i] > '9') {
            return -1;
        }

        /* downwards, where there is one more */
        if (__builtin_mul_overflow(sum, (int64_t) 10, &sum)
            || __builtin_sub_overflow(sum, (int64_t) (value->text[i] - '0'), &sum))
        {
            return -1;
        }
    }

    if (!negative) {
        if (sum == INT64_MIN) {
            return -1;
        }

        sum = -sum;
    }

    *n = sum;

    return 0;
}


int
sk_json_blank(const char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (text[i] != ' ' && text[i] != '\t' && text[i] != '\n' && text[i] != '\r') {
            return 0;
        }
    }

    return 1;
}
