/*
 * Who is in the crowd, with their tokens, and in which order they come.
 */

#include <stdlib.h>
#include <string.h>

#include "ctl_crowd.h"
#include "sk_jwt.h"

#define CTL_LINE_MAX  1024              /* bytes of one header line */

static const char  ctl_bearer[] = "Authorization: Bearer ";


static int
ctl_users_reserve(ctl_users_t *users, size_t used, size_t *size)
{
    char    *lines;
    size_t   grown;

    if (*size - used >= CTL_LINE_MAX) {
        return 0;
    }

    grown = *size * 2 + CTL_LINE_MAX;
    lines = realloc(users->lines, grown);

    if (lines == NULL) {
        return -1;
    }

    users->lines = lines;
    *size = grown;

    return 0;
}


int
ctl_users_create(ctl_users_t *users, uint64_t first, uint32_t n, sk_hmac_t *key,
    sk_hmac_alg_e alg, const char *claim, int64_t now, int64_t expires)
{
    long      len;
    size_t    used, size;
    uint32_t  i;

    memset(users, 0, sizeof(*users));
    users->first = first;
    users->n = n;
    users->at = calloc(n, sizeof(size_t));

    if (users->at == NULL) {
        return -1;
    }

    used = 0;
    size = 0;

    for (i = 0; i < n; i++) {

        if (ctl_users_reserve(users, used, &size) != 0) {
            ctl_users_free(users);
            return -1;
        }

        users->at[i] = used;
        memcpy(users->lines + used, ctl_bearer, sizeof(ctl_bearer) - 1);
        used += sizeof(ctl_bearer) - 1;

        len = sk_jwt_mint(users->lines + used, CTL_LINE_MAX - sizeof(ctl_bearer), key, alg,
                          claim, first + i, now, expires);
        if (len < 0) {
            ctl_users_free(users);
            return -1;
        }

        used += (size_t) len;
        users->lines[used++] = '\0';
    }

    return 0;
}


void
ctl_users_free(ctl_users_t *users)
{
    free(users->lines);
    free(users->at);
    memset(users, 0, sizeof(*users));
}


/* splitmix64: a full period for any seed, 0 too */
static uint64_t
ctl_random(uint64_t *state)
{
    uint64_t  z;

    z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;

    return z ^ (z >> 31);
}


uint32_t *
ctl_crowd_plan(size_t n, uint32_t users, uint64_t seed)
{
    size_t     i, j;
    uint32_t  *plan, swap;

    plan = users > 0 ? malloc(n * sizeof(uint32_t)) : NULL;
    if (plan == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        plan[i] = (uint32_t) (i < users ? i : ctl_random(&seed) % users);
    }

    for (i = n; i > 1; i--) {
        j = (size_t) (ctl_random(&seed) % i);
        swap = plan[i - 1];
        plan[i - 1] = plan[j];
        plan[j] = swap;
    }

    return plan;
}
