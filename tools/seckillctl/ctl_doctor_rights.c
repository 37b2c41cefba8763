/*
 * doctor, rights in Redis: every command that seckilld and the nodes send is
 * tried with ACL DRYRUN, which runs nothing.
 */

#include <stdio.h>
#include <string.h>

#include "ctl_backend.h"
#include "ctl_doctor.h"

#define CTL_RIGHTS_MAX  400

/*
 * What follows "ACL DRYRUN user"; its %s is a key of a sale.  Another one after
 * '!': its channel, '$': the limit of a user, '&': its buyers.
 */
static const char *const  ctl_rights_both[] = {
    "SELECT 0", "TIME", "EVALSHA 0 0", "SCRIPT LOAD x", "TYPE %s", "GET %s", "GETRANGE %s 0 1",
    "HLEN %s", "HSTRLEN %s f", "HMGET %s f", "HSET %s f v", "EXISTS %s", "SCARD %s", "SADD %s m",
    "SISMEMBER %s m", "SSCAN %s 0", "XLEN %s", "XADD %s * f v",
    NULL
};

static const char *const  ctl_rights_nginx[] = {
    "MGET %s", "$SET %s v", "&SREM %s m", "HSETNX %s f v", "DECRBY %s 1", "!SUBSCRIBE %s",
    "!UNSUBSCRIBE %s", NULL
};

static const char *const  ctl_rights_seckilld[] = {
    "PING", "INFO memory", "HGET %s f", "SMEMBERS %s", "SPOP %s", "SET %s v",
    "MSET %s v", "INCRBY %s 1",
    "HINCRBY %s f 1", "XREADGROUP GROUP g c STREAMS %s 0", "XGROUP CREATE %s g 0",
    "XAUTOCLAIM %s g c 0 0", "XCLAIM %s g c 0 0-1", "XACK %s g 0-1", "XRANGE %s - +",
    "XPENDING %s g", "XTRIM %s MAXLEN 0", "XINFO GROUPS %s", "XDEL %s 0-1", "!PUBLISH %s m",
    "PTTL %s", "PEXPIREAT %s 1", NULL
};

/* what nobody needs who only sells: each of them ends a sale */
static const char *const  ctl_rights_harm[] = {
    "SET %s v", "DEL %s", "UNLINK %s", "PEXPIRE %s 1", "RENAME %s x", "XTRIM %s MAXLEN 0", "FLUSHDB", NULL
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

    row += strspn(row, "!$&");
    len = (int) strcspn(row, " ");
    used = strlen(rights->names);
    rights->missing++;
    snprintf(rights->names + used, sizeof(rights->names) - used, " %.*s", len, row);
}


/* asks about one of them, with this key */
static int
ctl_rights_ask(ctl_rights_t *rights, const char *row, sk_key_e key, redisReply **reply)
{
    char  fmt[128], name[SK_KEY_MAX + 1];

    ctl_key(rights->doctor->ctl, name, key, 1, 1);
    snprintf(fmt, sizeof(fmt), "ACL DRYRUN %%s %s", row);

    return ctl_redis_try(rights->doctor->ctl, reply, fmt, rights->user, name);
}


static int
ctl_rights_rows(ctl_rights_t *rights, const char *const *rows)
{
    int          rc;
    sk_key_e     key;
    redisReply  *reply;

    for (; *rows && !rights->untold; rows++) {
        key = **rows == '!' ? SK_KEY_RESULTS : **rows == '$' ? SK_KEY_LIMIT
              : **rows == '&' ? SK_KEY_BUYERS : SK_KEY_STOCK;

        rc = ctl_rights_ask(rights, *rows + (key != SK_KEY_STOCK), key, &reply);
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


/* the nodes stand where buyers can reach them: what their user may beyond its need */
static int
ctl_rights_beyond(ctl_doctor_t *doctor, const char *user)
{
    int                 rc, yes;
    size_t              len;
    char                names[CTL_RIGHTS_MAX];
    redisReply         *reply;
    ctl_rights_t        rights;
    const char *const  *row;

    memset(&rights, 0, sizeof(rights));
    rights.doctor = doctor;
    rights.user = user;
    names[0] = '\0';
    len = 0;

    for (row = ctl_rights_harm; *row; row++) {
        rc = ctl_rights_ask(&rights, *row, SK_KEY_ORDERS, &reply);
        if (rc != CTL_FINE) {
            return rc;
        }

        yes = reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);

        if (yes) {
            len += (size_t) snprintf(names + len, sizeof(names) - len, " %.*s",
                                     (int) strcspn(*row, " "), *row);
        }
    }

    if (names[0]) {
        ctl_doctor_tell(doctor, CTL_IS_WARNING, "nginx rights", "ACL SETUSER name resetkeys "
                        "-@all, then the line of README.md: with its parentheses, from Redis 7.0 "
                        "on", "\"%s\" may also end a sale, by%s on its stream", user, names);
    }

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

        if (rc == CTL_FINE) {
            rc = ctl_rights_beyond(doctor, doctor->nginx_user);
        }
    }

    return rc;
}
