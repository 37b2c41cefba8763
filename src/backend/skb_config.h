/*
 * The settings of seckilld.conf, an INI file that the daemon and seckillctl
 * share.  Owns their defaults, bounds and messages: whatever is wrong is said
 * with file and line, and nothing unknown is passed over.
 */

#ifndef _SKB_CONFIG_H_INCLUDED_
#define _SKB_CONFIG_H_INCLUDED_

#include <stddef.h>
#include <stdint.h>

#include "sk_key.h"
#include "sk_secret.h"
#include "skb_log.h"

#define SKB_PATH_MAX      256           /* bytes of a path, NUL included */
#define SKB_SOCKET_MAX    108           /* of a unix socket, as in sockaddr_un */
#define SKB_HOST_MAX      256
#define SKB_NAME_MAX      81            /* of a user, a database, a consumer */
#define SKB_PASSWORD_MAX  (SK_SECRET_MAX + 1)   /* bytes of a password, NUL included */
#define SKB_BATCH_MAX     10000         /* purchases of one transaction */
#define SKB_WORKERS_MAX   32
#define SKB_ERROR_MAX     640           /* room for any message made here */

/* Texts are NUL-terminated and "" when not given. */

typedef struct {
    char         socket[SKB_SOCKET_MAX];        /* a path, or "" */
    char         host[SKB_HOST_MAX];            /* used when socket is "" */
    uint16_t     port;
    uint32_t     db;
    char         user[SKB_NAME_MAX];
    char         password_file[SKB_PATH_MAX];
    char         prefix[SK_PREFIX_MAX + 1];
    char         queue_token_key_file[SKB_PATH_MAX];    /* of the nodes, "": the key is in Redis */
    uint32_t     timeout_ms;                    /* of connecting, and of one reply */
} skb_config_redis_t;

typedef struct {
    char         socket[SKB_SOCKET_MAX];        /* a path, or "" */
    char         host[SKB_HOST_MAX];            /* used when socket is "" */
    uint16_t     port;
    char         user[SKB_NAME_MAX];
    char         password_file[SKB_PATH_MAX];
    char         database[SKB_NAME_MAX];
    uint32_t     timeout_ms;                    /* of connecting, and of one statement */
    uint32_t     ssl;                           /* 1: TLS or nothing, proved against host */
    char         ca[SKB_PATH_MAX];              /* "": the system's authorities */
    char         cert[SKB_PATH_MAX];            /* ours and its key, or both "" */
    char         key[SKB_PATH_MAX];
} skb_config_mysql_t;

typedef enum {
    SKB_CANCELLED_NONE,                         /* nowhere: unsold */
    SKB_CANCELLED_PRODUCT,                      /* products.stock */
    SKB_CANCELLED_ACTIVITY                      /* on sale again */
} skb_cancelled_e;

typedef struct {
    char         name[SKB_NAME_MAX];            /* consumers are "<name>-1", "<name>-2" ... */
    uint32_t     workers;
    uint32_t     batch;                         /* purchases of one transaction, at most */
    uint32_t     idle_ms;                       /* sleep when nothing waits, at most */
    uint64_t     retain_ms;                     /* how long acknowledged entries stay */
    uint32_t     claim_idle_ms;                 /* a consumer silent for so long is dead */
    uint32_t     attempts;                      /* at storing a purchase, then a dead letter */
    uint32_t     retry_ms;                      /* between the first two of them */
    char         on_dead[SKB_PATH_MAX];         /* command run for each dead letter, or "" */
    uint64_t     settle_after_ms;               /* from the end of a sale to its settle */
    uint64_t     pay_timeout_ms;                /* unpaid orders are cancelled, 0: never */
    int          pay_timeout_given;             /* the file says so, and it is no default */
    uint64_t     clock_trust_ms;                /* nothing is settled for so long after a jump */
    uint64_t     clock_trust_start_ms;          /* and after the start */
    skb_cancelled_e  cancelled_units;           /* where their units go */
} skb_config_consumer_t;

typedef struct {
    skb_config_redis_t     redis;
    skb_config_mysql_t     mysql;
    skb_config_consumer_t  consumer;
    char                   http_host[SKB_HOST_MAX];     /* "" when off */
    uint16_t               http_port;                   /* 0 when off */
    skb_level_e            log_level;
    char                   log_file[SKB_PATH_MAX];      /* "": standard error */
    char                   warning[SKB_ERROR_MAX];      /* worth a line in the log, or "" */
} skb_config_t;

/* What holds when a file says nothing. */
void skb_config_defaults(skb_config_t *config);

/*
 * Reads a file over the defaults.  Returns 0, or -1 with the first fault in
 * error as "FILE:LINE: ..." (SKB_ERROR_MAX bytes are enough).  Password files
 * are opened too, so that a missing one is found now; one that everybody may
 * read is a warning.
 */
int skb_config_load(skb_config_t *config, const char *path, char *error, size_t size);

/* 1 when both say the same. */
int skb_config_same(const skb_config_t *left, const skb_config_t *right);

/*
 * Reads a password as sk_secret_read() does; path "" is the empty password.  buf has SKB_PASSWORD_MAX bytes: wipe it after use.  Returns
 * 0, or -1 and the reason, which never holds what was read.
 */
int skb_config_password(const char *path, char *buf, char *error, size_t size);

#endif /* _SKB_CONFIG_H_INCLUDED_ */
