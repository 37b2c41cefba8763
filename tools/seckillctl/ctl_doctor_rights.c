/*
 * doctor, rights in Redis: every command that seckilld and the nodes send is
 * tried with ACL DRYRUN, which runs nothing.
 */

#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"

#define CTL_RIGHTS_MAX  400

/* what follows "ACL DRYRUN user"; its %s is a key, or after '!' a channel */
static const char *const  ctl_rights_both[] = {
    "SELECT 0", "TIME", "EVALSHA 0 0", "SCRIPT LOAD x", "GET %s", "HMGET %s f",
    "HSET %s f v", "EXISTS %s", "SCARD %s", "SADD %s m", "SREM %s m", "SSCAN %s 0", "XLEN %s", "XADD %s * f v",
    NULL
};

static const char *const  ctl_rights_nginx[] = {
    "HLEN %s", "HSTRLEN %s f", "TYPE %s", "GETRANGE %s 0 1", "MGET %s", "SET %s v",
    "HSETNX %s f v", "SISMEMBER %s m", "DECRBY %s 1", "!SUBSCRIBE %s", "!UNSUBSCRIBE %s", NULL
};

static const char *const  ctl_rights_seckilld[] = {
    "PING", "INFO memory", "HGET %s f", "SMEMBERS %s", "SPOP %s", "SET %s v",
    "MSET %s v", "INCRBY %s 1",
    "HINCRBY %s f 1", "XREADGROUP GROUP g c STREAMS %s 0", "XGROUP CREATE %s g 0",
    "XAUTOCLAIM %s g c 0 0", "XCLAIM %s g c 0 0-1", "XACK %s g 0-1", "XRANGE %s - +",
    "XPENDING %s g", "XTRIM %s MAXLEN 0", "XINFO GROUPS %s", "XDEL %s 0-1", "!PUBLISH %s m",
    "PTTL %s", "PEXPIREAT %s 1", NULL
};

typedef struct {
    ctl_doctor_t  *doctor;
    const char    *check;
    const char    *user;
    int            untold;              /* Redis does not let us ask */
    size_t         missing;
    char           names[CTL_RIGHTS_MAX];
} ctl_rights_t;


/* the reply to a DRYRUN: OK, a sentence that denies, or an error */
static void
ctl_rights_judge(ctl_rights_t *rights, const char *row, const redisReply *reply)
{
    int     len;
    size_t  used;

    if (reply->type == REDIS_REPLY_STATUS) {
        return;
    }

    if (reply->type == REDIS_REPLY_ERROR) {
        rights->untold = 1;
        ctl_doctor_tell(rights->doctor, CTL_IS_WARNING, rights->check, "Redis 7.0 tells it to a "
                        "user with +acl|dryrun; else compare ACL GETUSER with README.md",
                        "of \"%s\": %s", rights->user, reply->str);
        return;
    }

    row += *row == '!';
    len = (int) strcspn(row, " ");
    used = strlen(rights->names);
    rights->missing++;
    snprintf(rights->names + used, sizeof(rights->names) - used, " %.*s", len, row);
}


static int
ctl_rights_rows(ctl_rights_t *rights, const char *const *rows)
{
    int          rc;
    char         fmt[128], key[SK_KEY_MAX + 1], channel[SK_KEY_MAX + 1];
    redisReply  *reply;

    ctl_key(rights->doctor->ctl, key, SK_KEY_STOCK, 1, 0);
    ctl_key(rights->doctor->ctl, channel, SK_KEY_RESULTS, 1, 0);

    for (; *rows && !rights->untold; rows++) {
        snprintf(fmt, sizeof(fmt), "ACL DRYRUN %%s %s", *rows + (**rows == '!'));

        rc = ctl_redis_try(rights->doctor->ctl, &reply, fmt, rights->user,
                           **rows == '!' ? channel : key);
        if (rc != CTL_FINE) {
            return rc;
        }

        ctl_rights_judge(rights, *rows, reply);
        freeReplyObject(reply);
    }

    return CTL_FINE;
}


static int
ctl_rights_user(ctl_doctor_t *doctor, const char *check, const char *user,
    const char *const *own)
{
    int           rc;
    ctl_rights_t  rights;

    memset(&rights, 0, sizeof(rights));
    rights.doctor = doctor;
    rights.check = check;
    rights.user = user;

    if ((rc = ctl_rights_rows(&rights, ctl_rights_both)) != CTL_FINE
        || (rc = ctl_rights_rows(&rights, own)) != CTL_FINE || rights.untold)
    {
        return rc;
    }

    ctl_doctor_tell(doctor, rights.missing ? CTL_IS_WRONG : CTL_IS_OK, check,
                    "the ACL SETUSER line of README.md", "\"%s\" may %s%s", user,
                    rights.missing ? "not send, or not on these keys:" : "all that it needs",
                    rights.names);

    return CTL_FINE;
}


int
ctl_doctor_redis_rights(ctl_doctor_t *doctor)
{
    int          rc;
    const char  *user;

    user = doctor->seckilld_user;

    if (user == NULL) {
        user = ctl_config(doctor->ctl)->redis.user;
        user = user[0] ? user : "default";
    }

    rc = ctl_rights_user(doctor, "seckilld rights", user, ctl_rights_seckilld);

    if (rc == CTL_FINE && doctor->nginx_user) {
        rc = ctl_rights_user(doctor, "nginx rights", doctor->nginx_user, ctl_rights_nginx);
    }

    return rc;
}
