
/*
 * The names of the Redis keys, made in one place only.
 */


#include "sk_id.h"
#include "sk_key.h"
#include "sk_put.h"


typedef struct {
    const char  *name;
    size_t       len;
    int          per_user;
} sk_key_name_t;


#define sk_key_name(name, per_user)  { name, sizeof(name) - 1, per_user }


static const sk_key_name_t  sk_key_names[SK_KEYS] = {
    [SK_KEY_ACTIVITY] = sk_key_name(":activity:", 0),
    [SK_KEY_STOCK]    = sk_key_name(":stock:", 0),
    [SK_KEY_BUYERS]   = sk_key_name(":order_users:", 0),
    [SK_KEY_ORDERS]   = sk_key_name(":orders:", 0),
    [SK_KEY_DEAD]     = sk_key_name(":dead:", 0),
    [SK_KEY_ELIGIBLE] = sk_key_name(":eligible:", 0),
    [SK_KEY_LOOKUP]   = sk_key_name(":lookup:", 0),
    [SK_KEY_RESULTS]  = sk_key_name(":results:", 0),
    [SK_KEY_RESULT]   = sk_key_name(":result:", 1),
    [SK_KEY_LIMIT]    = sk_key_name(":limit:", 1)
};


size_t
sk_key(char *buf, const char *prefix, size_t prefix_len, sk_key_e key,
    uint64_t activity, uint64_t user)
{
    char                 *p;
    const sk_key_name_t  *name;

    if (prefix_len > SK_PREFIX_MAX || (unsigned) key >= SK_KEYS) {
        return 0;
    }

    name = &sk_key_names[key];

    p = sk_put(buf, prefix, prefix_len);
    p = sk_put(p, name->name, name->len);

    if (name->per_user) {
        p += sk_id_format(p, user);
        *p++ = ':';
    }

    *p++ = '{';
    p += sk_id_format(p, activity);
    *p++ = '}';

    return (size_t) (p - buf);
}


size_t
sk_key_global(char *buf, const char *prefix, size_t prefix_len,
    const char *name, size_t name_len)
{
    char  *p;

    if (prefix_len > SK_PREFIX_MAX || name_len > SK_KEY_MAX - SK_PREFIX_MAX - 1) {
        return 0;
    }

    p = sk_put(buf, prefix, prefix_len);
    *p++ = ':';
    p = sk_put(p, name, name_len);

    return (size_t) (p - buf);
}
